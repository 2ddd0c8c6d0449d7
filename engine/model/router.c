/* router.c - which experts a token takes. Shared by all instruction sets: a thousand compares. */
#include "engine.h"

#include <math.h>

uint32_t k3_route(const struct k3_config *c, const float *scores, const float *bias,
                  int32_t *selected, float *weights)
{
    const uint32_t k = c->top_k;
    uint32_t n = 0;
    /* Insertion into a sorted list: experts come in rising index, so an equal score stays behind.
     * `weights` holds the biased scores meanwhile. */
    for (uint32_t x = 0; x < c->experts; x++) {
        const float s = scores[x] + bias[x];
        if (isnan(s)) /* left out it would be another model, and a fluent one */
            return x;
        if (n == k && !(s > weights[k - 1]))
            continue;
        uint32_t at = n < k ? n++ : k - 1;
        while (at > 0 && s > weights[at - 1]) {
            weights[at] = weights[at - 1];
            selected[at] = selected[at - 1];
            at--;
        }
        weights[at] = s;
        selected[at] = (int32_t)x;
    }
    float sum = 0.0f;
    for (uint32_t i = 0; i < k; i++) {
        weights[i] = scores[selected[i]];
        sum += weights[i];
    }
    for (uint32_t i = 0; i < k; i++) {
        if (c->renormalize && k > 1)
            weights[i] /= sum + 1e-20f;
        weights[i] *= c->routed_scale;
    }
    return c->experts;
}
