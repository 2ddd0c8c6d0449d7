/* kernel_check.h - helpers of the kernel tests: every set in turn, comparison bit for bit. */
#ifndef KERNEL_CHECK_H
#define KERNEL_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel_cases.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const enum k3_isa isas[] = {K3_ISA_SCALAR, K3_ISA_AVX2, K3_ISA_AVX512, K3_ISA_NEON};

/* Every set of this CPU in turn. */
#define FOR_SETS(k)                                                                                \
    for (size_t set_ = 0; set_ < COUNT(isas); set_++)                                              \
        for (const struct k3_kernels *k = k3_kernels_get(isas[set_]); k; k = NULL)

static inline uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* The same bits, or NaN both. */
static inline bool same(float a, float b)
{
    return bits_of(a) == bits_of(b) || (a != a && b != b);
}

static inline void assert_same(const char *set, const char *what, size_t i, float got, float want)
{
    if (!same(got, want))
        fail_msg("%s, %s, element %zu: %a (%08x) instead of %a (%08x)", set, what, i, (double)got,
                 bits_of(got), (double)want, bits_of(want));
}

static inline void assert_near(const char *set, const char *what, double got, double want,
                               double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s, %s: %.9g instead of %.9g", set, what, got, want);
}

#endif
