/* bench_roof.c - see bench_roof.h. */
#include <config.h>

#include "bench_roof.h"

#include <string.h>

enum { LINE = 64, STREAMS = 4, STEP = LINE * STREAMS, AHEAD = 2048 /* bytes of prefetch */ };

typedef uint64_t vec __attribute__((vector_size(LINE)));

uint64_t bench_read(const void *p, size_t bytes)
{
    const uint8_t *at = p;
    vec sum[STREAMS] = {0};
    for (size_t i = 0; i + STEP <= bytes; i += STEP) {
        __builtin_prefetch(at + i + AHEAD);
        __builtin_prefetch(at + i + AHEAD + 2 * LINE);
        for (int s = 0; s < STREAMS; s++) {
            vec v;
            memcpy(&v, at + i + s * LINE, sizeof v);
            sum[s] += v;
        }
    }
    uint64_t total = 0;
    for (int s = 0; s < STREAMS; s++)
        for (int j = 0; j < LINE / 8; j++)
            total += sum[s][j];
    return total;
}

/* Twelve chains: more than latency times issue width of any core so far. Written for the assembler,
 * because this file is compiled without the sets' flags. */
#define TWELVE(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)

#if defined(K3_KERNELS_X86)
#define CHAIN_YMM(n) "vfmadd231ps %%ymm12, %%ymm13, %%ymm" #n "\n\t"
#define CHAIN_ZMM(n) "vfmadd231ps %%zmm12, %%zmm13, %%zmm" #n "\n\t"
#define LOOP(chain)                                                                                \
    __asm__ volatile("vzeroall\n1:\n\t" TWELVE(chain) "dec %0\n\tjnz 1b\n\tvzeroupper"          \
                     : "+r"(left)::"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", \
                       "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc")

double bench_fma(enum k3_isa isa, size_t rounds)
{
    size_t left = rounds;
    if (isa == K3_ISA_AVX2)
        LOOP(CHAIN_YMM);
    else if (isa == K3_ISA_AVX512)
        LOOP(CHAIN_ZMM);
    else
        return 0;
    return 2.0 * (isa == K3_ISA_AVX2 ? 8 : 16) * 12 * (double)rounds;
}
#elif defined(K3_KERNELS_NEON)
#define CHAIN_Q(n) "fmla v" #n ".4s, v30.4s, v31.4s\n\t"

double bench_fma(enum k3_isa isa, size_t rounds)
{
    size_t left = rounds;
    if (isa != K3_ISA_NEON)
        return 0;
    __asm__ volatile("movi v30.4s, #0\n\tmovi v31.4s, #0\n1:\n\t" TWELVE(CHAIN_Q)
                     "subs %0, %0, #1\n\tb.ne 1b"
                     : "+r"(left)::"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",
                       "v11", "v30", "v31", "cc");
    return 2.0 * 4 * 12 * (double)rounds;
}
#else
double bench_fma(enum k3_isa isa, size_t rounds)
{
    (void)isa, (void)rounds;
    return 0;
}
#endif
