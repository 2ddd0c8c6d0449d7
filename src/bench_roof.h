/* bench_roof.h - the two limits that kernels are measured against. */
#ifndef BENCH_ROOF_H
#define BENCH_ROOF_H

#include <stddef.h>

#include "../engine/k3.h"

/* Reads `bytes` (a multiple of 4096) once; the sum keeps the compiler from leaving it out. */
uint64_t bench_read(const void *p, size_t bytes);

/* Runs `rounds` blocks of independent fused multiply-adds in registers of the set's width; returns
 * the floating-point operations done (2 per lane), 0 when there is no such measure for the set. */
double bench_fma(enum k3_isa isa, size_t rounds);

#endif
