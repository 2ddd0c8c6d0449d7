/* sampler.h - one token from one row of logits. The draw is a function of seed and position alone,
 * so a resumed run draws what it would have drawn. */
#ifndef K3_SAMPLER_H
#define K3_SAMPLER_H

#include "../k3.h"

struct k3_sampling {
    bool greedy;         /* the first of the largest logits; all else is ignored */
    float temperature;   /* > 0 */
    float top_p;         /* (0, 1]; 1 = off */
    uint64_t seed;
};

/* scratch: n floats and n uint32, laid out by the caller's k3_sampler_scratch(n) bytes. Order:
 * temperature, softmax, top-p (smallest set whose mass reaches top_p, ties to the lower id), draw by
 * PCG32(seed, stream = position). */
size_t k3_sampler_scratch(size_t n);
int32_t k3_sample(const struct k3_sampling *s, const float *logits, size_t n, uint32_t position,
                  void *scratch);

/* PCG32 (XSH RR 64/32): the state after seeding, and the next 32 bits. */
struct k3_pcg32 {
    uint64_t state, inc;
};
void k3_pcg32_seed(struct k3_pcg32 *r, uint64_t seed, uint64_t stream);
uint32_t k3_pcg32_next(struct k3_pcg32 *r);

#endif
