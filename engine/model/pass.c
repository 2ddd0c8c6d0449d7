/* pass.c - one chunk through all layers: block attention residuals around attention and MLP. */
#include "engine.h"

#include <math.h>
#include <string.h>

/* ---- embedding ----------------------------------------------------------------------------- */

static float *source(const struct k3_engine *e, size_t i)
{
    return e->ws.sources + i * e->chunk_n * e->cfg.hidden;
}

/* The running prefix stands behind all snapshots. */
static float *prefix(const struct k3_engine *e)
{
    return source(e, k3_snapshots(&e->cfg));
}

/* One row per token is all of the embedding that is ever read. */
static enum k3_status embed(struct k3_engine *e, struct k3_error *err)
{
    const size_t width = e->cfg.hidden;
    float *p = prefix(e);
    for (size_t t = 0; t < e->chunk_n; t++) {
        uint8_t *row = (uint8_t *)e->ws.out; /* free before the first layer; E floats at least */
        const uint64_t at = e->bind.embed_offset +
                            (uint64_t)e->chunk_ids[t] * e->bind.embed_row_bytes;
        if (k3_checkpoint_read(e->ckpt, e->bind.embed_shard, at, row, e->bind.embed_row_bytes,
                               err) != K3_OK)
            return err->status;
        atomic_fetch_add(&e->progress.embed_bytes, e->bind.embed_row_bytes);
        if (e->bind.embed_dtype == K3_DT_F32)
            memcpy(p + t * width, row, width * sizeof *p);
        else
            e->k->widen_bf16(p + t * width, row, width);
    }
    return K3_OK;
}

/* ---- block attention residuals --------------------------------------------------------------- */

static float inverse_rms(const struct k3_engine *e, const float *v)
{
    const size_t n = e->cfg.hidden;
    return 1.0f / sqrtf(e->k->sum_squares(v, n) / (float)n + e->cfg.rms_eps);
}

/* h[t] = rms(aggregate(snapshots, prefix; mix); norm). mix is norm weight x projection row. */
static void aggregate(struct k3_engine *e, const float *mix, const float *norm)
{
    const size_t n = e->snapshots, width = e->cfg.hidden;
#pragma omp parallel for num_threads(e->plan.threads) schedule(static) if (e->chunk_n > 1)
    for (size_t t = 0; t < e->chunk_n; t++) {
        const float *v[K3_MAX_LAYERS + 1];
        float p[K3_MAX_LAYERS + 1];
        for (size_t i = 0; i <= n; i++) {
            v[i] = (i < n ? source(e, i) : prefix(e)) + t * width;
            const float inv = i < n ? e->ws.inv_rms[i * e->chunk_n + t] : inverse_rms(e, v[i]);
            p[i] = inv * e->k->dot(v[i], mix, width);
        }
        e->k->softmax(p, n + 1, 1.0f);
        float *h = e->ws.h + t * width;
        e->k->weighted_sum(h, p, v, n + 1, width);
        e->k->rms_norm(h, h, norm, width, e->cfg.rms_eps);
    }
}

static void take_snapshot(struct k3_engine *e)
{
    const size_t width = e->cfg.hidden, i = e->snapshots++;
    memcpy(source(e, i), prefix(e), e->chunk_n * width * sizeof(float));
    for (size_t t = 0; t < e->chunk_n; t++)
        e->ws.inv_rms[i * e->chunk_n + t] = inverse_rms(e, source(e, i) + t * width);
}

static enum k3_status run_layer(struct k3_engine *e, uint32_t layer, struct k3_error *err)
{
    const struct k3_config *c = &e->cfg;
    const struct k3_layer *y = &e->layers[layer];
    const size_t width = c->hidden, n = e->chunk_n * width;
    if (e->snapshots == 0)
        for (size_t t = 0; t < e->chunk_n; t++)
            e->k->rms_norm(e->ws.h + t * width, prefix(e) + t * width, y->vec[VEC_INPUT_NORM],
                           width, c->rms_eps);
    else
        aggregate(e, y->vec[VEC_ATTN_RES_NORM], y->vec[VEC_INPUT_NORM]);
    const bool boundary = layer % c->block == 0;
    if (boundary)
        take_snapshot(e);
    if ((c->is_mla[layer] ? k3_mla_layer : k3_kda_layer)(e, layer, err) != K3_OK)
        return err->status;
    if (boundary)
        memcpy(prefix(e), e->ws.out, n * sizeof(float));
    else
        e->k->add(prefix(e), e->ws.out, n);
    aggregate(e, y->vec[VEC_MLP_RES_NORM], y->vec[VEC_POST_NORM]);
    if ((k3_is_moe(c, layer) ? k3_moe_layer : k3_dense_layer)(e, layer, err) != K3_OK)
        return err->status;
    e->k->add(prefix(e), e->ws.out, n);
    return K3_OK;
}

/* ---- the pass ------------------------------------------------------------------------------ */

static enum k3_status check_logits(const struct k3_engine *e, const float *row, size_t t,
                                   struct k3_error *err)
{
    size_t i = 0;
    while (i < e->cfg.vocab && isfinite(row[i]))
        i++;
    if (i == e->cfg.vocab)
        return K3_OK;
    return k3_fail(err, K3_UNSOUND,
                   "%s: the logits after position %zu are not finite; the checkpoint is damaged "
                   "(k3chat verify checks it)", e->model_dir, e->position + t);
}

static enum k3_status run_head(struct k3_engine *e, bool want_all, struct k3_error *err)
{
    const size_t width = e->cfg.hidden, first = want_all ? 0 : e->chunk_n - 1;
    const size_t rows = e->chunk_n - first;
    aggregate(e, e->top[TOP_RES_NORM], e->top[TOP_NORM]);
    if (k3_matmul(e, e->bind.lm_head, e->ws.logits, e->ws.h + first * width, rows, err) != K3_OK)
        return err->status;
    e->logits_row = (uint32_t)(rows - 1);
    for (size_t i = 0; i < rows; i++)
        if (check_logits(e, e->ws.logits + i * e->cfg.vocab, first + i, err) != K3_OK)
            return err->status;
    return K3_OK;
}

enum k3_status k3_pass(struct k3_engine *e, bool want_all, struct k3_error *err)
{
    if (e->chunk_layer == 0) {
        e->snapshots = 0;
        if (embed(e, err) != K3_OK)
            return err->status;
    }
    while (e->chunk_layer < e->cfg.layers) {
        if (atomic_load(&e->cancel))
            return k3_fail(err, K3_CANCELLED, "cancelled");
        if (run_layer(e, e->chunk_layer, err) != K3_OK)
            return err->status;
        e->chunk_layer++;
        atomic_store(&e->progress.layer, e->chunk_layer);
    }
    return e->chunk_head ? run_head(e, want_all, err) : K3_OK;
}
