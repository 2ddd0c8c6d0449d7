/* workspace.c - see workspace.h. */
#include "workspace.h"

#include <string.h>

struct carver {
    uint8_t *base;
    uint64_t at;
};

/* 64 bytes: a cache line, so that two buffers never share one. */
static void *take(struct carver *c, uint64_t elements)
{
    void *p = c->base ? c->base + c->at : NULL;
    c->at += (elements * 4 + 63) / 64 * 64;
    return p;
}

static void carve_kda(struct carver *m, struct k3_workspace *w, const struct k3_config *c,
                      uint64_t t)
{
    const uint64_t p = k3_kda_width(c);
    w->q = take(m, t * p);
    w->k = take(m, t * p);
    w->v = take(m, t * p);
    w->g = take(m, t * p);
    w->z = take(m, t * p);
    w->fa = take(m, t * c->kda_dim);
    w->beta = take(m, t * c->kda_heads);
}

static void carve_mla(struct carver *m, struct k3_workspace *w, const struct k3_config *c,
                      uint64_t t)
{
    w->mg = take(m, t * c->heads * c->v_head);
    w->mo = take(m, t * c->heads * c->v_head);
    w->kva = take(m, t * k3_latent_width(c));
    w->qa = take(m, t * c->q_lora);
    w->mq = take(m, t * c->heads * ((uint64_t)c->nope + c->rope));
}

static void carve_mlp(struct carver *m, struct k3_workspace *w, const struct k3_config *c,
                      uint64_t t)
{
    const uint64_t shared = (uint64_t)c->shared * c->inter, pairs = t * c->top_k;
    const uint64_t inner = c->dense_layers && c->dense_inter > shared ? c->dense_inter : shared;
    w->gate = take(m, t * inner);
    w->up = take(m, t * inner);
    if (k3_count_moe(c) == 0)
        return;
    w->router = take(m, t * c->experts);
    w->latent = take(m, t * c->latent);
    w->routed = take(m, t * c->latent);
    w->gathered = take(m, pairs * c->latent);
    w->inner = take(m, pairs * c->inter);
    w->inner_up = take(m, pairs * c->inter);
    w->weights = take(m, pairs);
    w->shared_out = take(m, t * c->hidden);
    w->selected = take(m, pairs);
    w->pair_at = take(m, pairs);
    w->pair_token = take(m, pairs);
}

uint64_t k3_workspace_carve(struct k3_workspace *w, void *base, const struct k3_config *c,
                            uint32_t chunk, uint32_t threads, uint32_t context,
                            uint32_t logit_rows)
{
    memset(w, 0, sizeof *w);
    struct carver m = {.base = base};
    const uint64_t t = chunk, sources = k3_snapshots(c) + 1ull;
    w->sources = take(&m, sources * t * c->hidden);
    w->inv_rms = take(&m, sources * t);
    w->h = take(&m, t * c->hidden);
    w->out = take(&m, t * c->hidden);
    w->scores = take(&m, (uint64_t)threads * K3_HEAD_GROUP * ((context + 15ull) / 16 * 16));
    w->scratch = take(&m, threads * k3_scratch_floats(c));
    w->logits = take(&m, (uint64_t)logit_rows * c->vocab);
    const uint64_t shared_from = m.at;
    uint64_t most = shared_from;
    void (*const phases[])(struct carver *, struct k3_workspace *, const struct k3_config *,
                           uint64_t) = {carve_kda, carve_mla, carve_mlp};
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        m.at = shared_from;
        phases[i](&m, w, c, t);
        most = m.at > most ? m.at : most;
    }
    return most;
}
