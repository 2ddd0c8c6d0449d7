/* sampler.h - one token from one row of logits. The draw is a function of seed and position alone,
 * so a resumed run draws what it would have drawn. */
#ifndef K3_SAMPLER_H
#define K3_SAMPLER_H

#include "../k3.h"

/* Zero in a field that is "off" at zero leaves that step out, so that a struct with only the first
 * four fields set does what they say. */
struct k3_sampling {
    bool greedy;         /* the first of the largest logits; all else is ignored */
    float temperature;   /* above 0; anything else is taken as greedy */
    float top_p;         /* (0, 1]; 1 = off */
    uint64_t seed;
    uint32_t top_k;      /* 0 = off */
    float min_p;         /* [0, 1]; 0 = off */
    float repetition_penalty; /* > 0; 0 and 1 = off; above 1 makes ids of the history less likely */
    const int32_t *history;   /* for the penalty; ids out of range are passed over */
    size_t n_history;
};

/* Order: repetition penalty (once for each distinct id of the history: a logit above 0 is divided
 * by it, any other multiplied), temperature, top-k (ties to the lower id), softmax over what is
 * left, then top-p (the smallest set of the most likely whose mass reaches top_p, ties to the lower
 * id) and min-p (at least min_p times the largest probability), both by that softmax, then the
 * draw: PCG32(seed, stream = position) gives 53 bits, which walk the ids that are left - in rising
 * order of id when no step sorted them, from the most likely down otherwise.
 *
 * NaN and minus infinity are never chosen; of several plus infinities each is as likely. Returns -1
 * when no logit can be chosen at all: the row is unsound. All sums are in double and in a fixed
 * order, exp is the sampler's own: the same on every machine. Nothing is allocated; scratch holds
 * k3_sampler_scratch(n) bytes, aligned as by malloc, and is not needed (NULL) when greedy. */
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
