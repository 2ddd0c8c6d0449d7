/* dispatch.c - which kernel sets this build carries and this CPU can run. */
#include <config.h>

#include "sets.h"

#ifdef K3_KERNELS_X86
/* The compiler's test includes the operating system's (XGETBV: are the wide registers saved?). */
static const struct k3_kernels *avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &k3_kernels_avx2 : NULL;
}

static const struct k3_kernels *avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
               ? &k3_kernels_avx512
               : NULL;
}
#else
static const struct k3_kernels *avx2(void)
{
    return NULL;
}

static const struct k3_kernels *avx512(void)
{
    return NULL;
}
#endif

static const struct k3_kernels *neon(void)
{
#ifdef K3_KERNELS_NEON
    return &k3_kernels_neon;
#else
    return NULL;
#endif
}

static const struct k3_kernels *best(void)
{
    const struct k3_kernels *k = avx512();
    if (!k)
        k = avx2();
    if (!k)
        k = neon();
    return k ? k : &k3_kernels_scalar;
}

const struct k3_kernels *k3_kernels_get(enum k3_isa isa)
{
    switch (isa) {
    case K3_ISA_AUTO:
        return best();
    case K3_ISA_SCALAR:
        return &k3_kernels_scalar;
    case K3_ISA_AVX2:
        return avx2();
    case K3_ISA_AVX512:
        return avx512();
    case K3_ISA_NEON:
        return neon();
    }
    return NULL;
}
