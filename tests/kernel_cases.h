/* kernel_cases.h - every kernel of a table over edge and model-like shapes, deterministic inputs.
 *
 * The inputs come from a counter-based generator in integer arithmetic, so the same cases run on
 * every architecture; outputs of two sets must be equal bit for bit (any NaN equals any NaN). */
#ifndef KERNEL_CASES_H
#define KERNEL_CASES_H

#include "../engine/kernels/kernels.h"

/* One result: `out` is the whole output buffer, sentinels around and between rows included, valid
 * during the call. `shape` is a short text such as "17x33x4 wild". */
typedef void kernel_emit(void *ud, const char *kernel, const char *shape, const float *out,
                         size_t n);

/* Runs all cases in a fixed order. Ends the program with a message when memory is short. */
void kernel_cases_run(const struct k3_kernels *k, kernel_emit *emit, void *ud);

/* The generator, for tests of their own. */
struct kernel_rng {
    uint64_t state;
};
uint64_t kernel_random(struct kernel_rng *rng);

/* What the numbers look like: PLAIN in (-1, 1); WILD of all exponents whose products stay finite,
 * with zeros of both signs and denormals; RAW any bit pattern, infinities and NaN too. */
enum kernel_inputs { INPUTS_PLAIN, INPUTS_WILD, INPUTS_RAW, INPUTS_COUNT };
void kernel_fill(struct kernel_rng *rng, enum kernel_inputs kind, float *x, size_t n);

#endif
