/* kda.c - Kimi Delta Attention: projections from the tape, then every head on its own. */
#include "engine.h"

#include <math.h>
#include <omp.h>

/* One head over all tokens of the chunk: its state is touched by one thread only, in order. */
static void run_head(struct k3_engine *e, const struct k3_layer *y, size_t h, float *scratch)
{
    const struct k3_config *c = &e->cfg;
    const struct k3_workspace *w = &e->ws;
    const struct k3_kernels *k = e->k;
    const size_t p = k3_kda_width(c), d = c->kda_dim, taps = c->conv_taps, at = h * d;
    const float qscale = 1.0f / sqrtf((float)d);
    float *alpha = scratch, *o = scratch + d;
    float *state = y->kda + at * d;
    float *const history[3] = {y->conv[0] + at * (taps - 1), y->conv[1] + at * (taps - 1),
                               y->conv[2] + at * (taps - 1)};
    for (size_t t = 0; t < e->chunk_n; t++) {
        float *q = w->q + t * p + at, *kk = w->k + t * p + at, *v = w->v + t * p + at;
        k->conv_silu(q, history[0], q, y->vec[VEC_CONV_Q] + at * taps, d, taps);
        k->conv_silu(kk, history[1], kk, y->vec[VEC_CONV_K] + at * taps, d, taps);
        k->conv_silu(v, history[2], v, y->vec[VEC_CONV_V] + at * taps, d, taps);
        k->l2_norm(q, d, K3_L2_EPS);
        k->l2_norm(kk, d, K3_L2_EPS);
        k->kda_decay(alpha, w->z + t * p + at, y->vec[VEC_DT_BIAS] + at, y->vec[VEC_A_LOG][h],
                     c->gate_lower, d);
        k->kda_step(state, o, q, kk, v, alpha, w->beta[t * c->kda_heads + h], qscale, d);
        k->rms_norm(o, o, y->vec[VEC_O_NORM], d, c->rms_eps);
        k->mul_logistic(o, w->g + t * p + at, d);
        for (size_t i = 0; i < d; i++) /* q of this token is used up */
            q[i] = o[i];
    }
}

enum k3_status k3_kda_layer(struct k3_engine *e, uint32_t layer, struct k3_error *err)
{
    const struct k3_config *c = &e->cfg;
    const struct k3_workspace *w = &e->ws;
    const struct k3_layer *y = &e->layers[layer];
    const uint32_t m = e->bind.layers[layer].attn0;
    const size_t t = e->chunk_n;
    float *const projections[] = {w->beta, w->fa, w->g, w->k, w->q, w->v}; /* as on the tape */
    if (k3_matmuls(e, m + KDA_B, projections, KDA_FB - KDA_B, w->h, t, err) != K3_OK ||
        k3_matmul(e, m + KDA_FB, w->z, w->fa, t, err) != K3_OK)
        return err->status;
    e->k->logistic(w->beta, w->beta, t * c->kda_heads);
#pragma omp parallel for num_threads(e->plan.threads) schedule(static)
    for (uint32_t h = 0; h < c->kda_heads; h++)
        run_head(e, y, h, w->scratch + (size_t)omp_get_thread_num() * k3_scratch_floats(c));
    return k3_matmul(e, m + KDA_O, w->out, w->q, t, err);
}
