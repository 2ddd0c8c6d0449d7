/* load.c - brings into memory what stays there: vectors as fp32, state, workspace. */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

struct loader {
    struct k3_engine *e;
    float *at;
    k3_progress_fn progress;
    void *ud;
    uint64_t done, total;
};

/* Next n floats of the vectors' memory, filled from the tensor. */
static float *load_vector(struct loader *l, const struct k3_vector *v, struct k3_error *err)
{
    float *out = l->at;
    uint64_t stored = 1;
    for (size_t i = 0; i < v->tensor.ndim; i++)
        stored *= v->tensor.shape[i];
    enum k3_status st;
    if (stored == v->n) {
        st = k3_checkpoint_read_f32(l->e->ckpt, &v->tensor, out, v->n, err);
    } else { /* a padded A_log */
        float *all = malloc(stored * sizeof *all);
        st = all ? k3_checkpoint_read_f32(l->e->ckpt, &v->tensor, all, stored, err)
                 : k3_fail_memory(err, "a padded vector", stored * sizeof *all);
        if (st == K3_OK)
            memcpy(out, all, v->n * sizeof *out);
        free(all);
    }
    if (st != K3_OK)
        return NULL;
    l->at += v->n;
    l->done += v->tensor.bytes;
    return out;
}

/* a[i] *= b[i]: the norm weight and the projection row of an aggregation meet only as a product. */
static void multiply(float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        a[i] *= b[i];
}

/* [channels][taps] as stored -> [head][tap][dim], so that one head's taps are contiguous and the
 * vector runs over channels. */
static enum k3_status transpose_conv(float *w, const struct k3_config *c, struct k3_error *err)
{
    const size_t p = k3_kda_width(c), taps = c->conv_taps, dim = c->kda_dim;
    float *old = malloc(p * taps * sizeof *old);
    if (!old)
        return k3_fail_memory(err, "convolution taps", p * taps * sizeof *old);
    memcpy(old, w, p * taps * sizeof *old);
    for (size_t ch = 0; ch < p; ch++)
        for (size_t t = 0; t < taps; t++)
            w[(ch / dim * taps + t) * dim + ch % dim] = old[ch * taps + t];
    free(old);
    return K3_OK;
}

static enum k3_status load_layer(struct loader *l, uint32_t layer, struct k3_error *err)
{
    struct k3_engine *e = l->e;
    float *mem[LAYER_VECTORS] = {0};
    for (int i = 0; i < LAYER_VECTORS; i++) {
        const struct k3_vector *v = &e->bind.layers[layer].vec[i];
        if (v->n == 0)
            continue;
        mem[i] = load_vector(l, v, err);
        if (!mem[i])
            return err->status;
        e->layers[layer].vec[i] = mem[i];
    }
    multiply(mem[VEC_ATTN_RES_NORM], mem[VEC_ATTN_RES_PROJ], e->cfg.hidden);
    multiply(mem[VEC_MLP_RES_NORM], mem[VEC_MLP_RES_PROJ], e->cfg.hidden);
    if (mem[VEC_A_LOG]) {
        const float *a = mem[VEC_A_LOG];
        float *log = malloc(e->cfg.kda_heads * sizeof *log);
        if (!log)
            return k3_fail_memory(err, "A_log", e->cfg.kda_heads * sizeof *log);
        memcpy(log, a, e->cfg.kda_heads * sizeof *log);
        e->k->exp(mem[VEC_A_LOG], log, e->cfg.kda_heads);
        free(log);
        for (int i = VEC_CONV_Q; i <= VEC_CONV_V; i++)
            if (transpose_conv(mem[i], &e->cfg, err) != K3_OK)
                return err->status;
    }
    return K3_OK;
}

enum k3_status k3_load_vectors(struct k3_engine *e, k3_progress_fn progress, void *ud,
                               struct k3_error *err)
{
    e->vectors_bytes = e->bind.vector_floats * sizeof(float);
    e->vectors = k3_io_alloc(e->vectors_bytes);
    e->layers = calloc(e->cfg.layers, sizeof *e->layers);
    if (!e->vectors || !e->layers)
        return k3_fail_memory(err, "norms and other vectors", e->vectors_bytes);
    struct loader l = {.e = e, .at = e->vectors, .progress = progress, .ud = ud};
    for (uint32_t i = 0; i < e->cfg.layers; i++) {
        if (load_layer(&l, i, err) != K3_OK)
            return err->status;
        if (progress)
            progress(ud, "loading norms", i + 1, e->cfg.layers);
    }
    float *top[TOP_VECTORS];
    for (int i = 0; i < TOP_VECTORS; i++) {
        top[i] = load_vector(&l, &e->bind.top[i], err);
        if (!top[i])
            return err->status;
        e->top[i] = top[i];
    }
    multiply(top[TOP_RES_NORM], top[TOP_RES_PROJ], e->cfg.hidden);
    atomic_fetch_add(&e->progress.embed_bytes, l.done);
    return K3_OK;
}

/* Hands the layers their part of the state's memory. */
static void share_state(struct k3_engine *e)
{
    const struct k3_config *c = &e->cfg;
    const size_t p = k3_kda_width(c), history = p * (c->conv_taps - 1);
    float *at = (float *)e->state;
    uint32_t moe = 0;
    for (uint32_t l = 0; l < c->layers; l++) {
        struct k3_layer *y = &e->layers[l];
        if (k3_is_moe(c, l))
            y->moe = moe++;
        if (c->is_mla[l]) {
            y->latents = at;
            at += (size_t)e->plan.context * k3_latent_width(c);
            continue;
        }
        y->kda = at;
        at += p * c->kda_dim;
        for (int i = 0; i < 3; i++, at += history)
            y->conv[i] = at;
    }
}

enum k3_status k3_allocate(struct k3_engine *e, struct k3_error *err)
{
    const struct k3_config *c = &e->cfg;
    const struct k3_plan *p = &e->plan;
    uint64_t latent;
    e->state_bytes = k3_state_bytes(c, p->context, &latent);
    e->state_bytes += latent;
    e->state = k3_io_alloc(e->state_bytes);
    if (!e->state)
        return k3_fail_memory(err, "the carried state", e->state_bytes);
    share_state(e);
    const uint32_t rows = e->opt.full_logits ? p->chunk : 1;
    e->work_bytes =
        k3_workspace_carve(&e->ws, NULL, c, p->chunk, p->threads, p->context, rows);
    e->work = k3_io_alloc(e->work_bytes);
    e->chunk_ids = calloc(p->chunk, sizeof *e->chunk_ids);
    e->uses = calloc(c->experts, sizeof *e->uses);
    e->use_of = calloc(c->experts, sizeof *e->use_of);
    e->use_first = calloc((size_t)c->experts + 1, sizeof *e->use_first);
    if (!e->work || !e->chunk_ids || !e->uses || !e->use_of || !e->use_first)
        return k3_fail_memory(err, "activations", e->work_bytes);
    k3_workspace_carve(&e->ws, e->work, c, p->chunk, p->threads, p->context, rows);
    return K3_OK;
}
