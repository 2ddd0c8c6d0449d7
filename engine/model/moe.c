/* moe.c - dense MLP, and latent MoE: router, shared experts while the routed ones are being read,
 * then every expert straight from its packed bytes as it arrives. */
#include "engine.h"

#include <omp.h>
#include <string.h>

#define ROW_TILE 128u /* rows of an expert matrix that one task computes */
#define MOST_JOBS 64

static void situ(struct k3_engine *e, float *y, const float *gate, const float *up, size_t n)
{
    /* One activation is cheap, a chunk of them is worth a team; slices do not change a bit. */
    const size_t slice = 4096, slices = (n + slice - 1) / slice;
#pragma omp parallel for num_threads(e->plan.threads) schedule(static) if (slices > 3)
    for (size_t i = 0; i < slices; i++) {
        const size_t at = i * slice, len = n - at < slice ? n - at : slice;
        e->k->situ_glu(y + at, gate + at, up + at, len, e->cfg.situ_beta, e->cfg.situ_linear_beta);
    }
}

enum k3_status k3_dense_layer(struct k3_engine *e, uint32_t layer, struct k3_error *err)
{
    const struct k3_workspace *w = &e->ws;
    const uint32_t m = e->bind.layers[layer].mlp0;
    const size_t t = e->chunk_n;
    float *const inner[] = {w->gate, w->up};
    if (k3_matmuls(e, m + DENSE_GATE, inner, 2, w->h, t, err) != K3_OK)
        return err->status;
    situ(e, w->gate, w->gate, w->up, t * e->cfg.dense_inter);
    return k3_matmul(e, m + DENSE_DOWN, w->out, w->gate, t, err);
}

/* ---- routing ------------------------------------------------------------------------------- */

static enum k3_status route_chunk(struct k3_engine *e, uint32_t layer, struct k3_error *err)
{
    const struct k3_config *c = &e->cfg;
    const struct k3_workspace *w = &e->ws;
    e->k->logistic(w->router, w->router, (size_t)e->chunk_n * c->experts);
    for (size_t t = 0; t < e->chunk_n; t++) {
        const uint32_t bad =
            k3_route(c, w->router + t * c->experts, e->layers[layer].vec[VEC_ROUTER_BIAS],
                     w->selected + t * c->top_k, w->weights + t * c->top_k);
        if (bad < c->experts)
            return k3_fail(err, K3_UNSOUND,
                           "%s: layer %u: the router's score of expert %u is not a number; the "
                           "checkpoint is damaged (k3chat verify checks it)", e->model_dir, layer,
                           bad);
        if (e->routing)
            e->routing(e->routing_ud, layer, e->position + (uint32_t)t,
                       w->selected + t * c->top_k, c->top_k);
    }
    if (!e->trace)
        return K3_OK;
    return k3_trace_put(e->trace, layer, w->selected, e->chunk_n, c->top_k, err);
}

/* Lists the distinct experts of the chunk and gives every choice a row in `gathered`, an expert's
 * rows side by side. Returns how many experts. */
static size_t group_by_expert(struct k3_engine *e)
{
    const struct k3_config *c = &e->cfg;
    const struct k3_workspace *w = &e->ws;
    const size_t pairs = (size_t)e->chunk_n * c->top_k;
    size_t n = 0;
    memset(e->use_of, 0xff, c->experts * sizeof *e->use_of);
    for (size_t i = 0; i < pairs; i++) {
        const uint32_t x = (uint32_t)w->selected[i], rank = (uint32_t)(i % c->top_k);
        if (e->use_of[x] == UINT32_MAX) {
            e->use_of[x] = (uint32_t)n;
            e->uses[n++] = (struct k3_expert_use){.expert = x, .best_rank = rank};
        }
        struct k3_expert_use *u = &e->uses[e->use_of[x]];
        u->requests++;
        u->last = (uint32_t)(i / c->top_k);
        u->best_rank = rank < u->best_rank ? rank : u->best_rank;
    }
    e->use_first[0] = 0;
    for (size_t i = 0; i < n; i++)
        e->use_first[i + 1] = e->use_first[i] + e->uses[i].requests;
    for (size_t i = 0; i < pairs; i++) {
        const uint32_t row = e->use_first[e->use_of[w->selected[i]]]++;
        w->pair_at[i] = row;
        w->pair_token[row] = (uint32_t)(i / c->top_k);
    }
    for (size_t i = n; i > 0; i--) /* undo the counting up */
        e->use_first[i] = e->use_first[i - 1];
    e->use_first[0] = 0;
    return n;
}

static void gather_inputs(struct k3_engine *e)
{
    const size_t l = e->cfg.latent, pairs = (size_t)e->chunk_n * e->cfg.top_k;
    for (size_t row = 0; row < pairs; row++)
        memcpy(e->ws.gathered + row * l, e->ws.latent + e->ws.pair_token[row] * l,
               l * sizeof(float));
}

/* ---- experts ------------------------------------------------------------------------------- */

/* Rows [row0, row0 + rows) of one expert matrix for all tokens that chose it. */
static void expert_rows(const struct k3_engine *e, const struct k3_expert_data *d, int m,
                        size_t row0, size_t rows, size_t cols, float *y, size_t ldy,
                        const float *x, size_t tokens)
{
    const struct k3_expert_shape *s = &e->bind.expert_shape;
    if (s->format == K3_EXPERT_MXFP4)
        e->k->gemm_mxfp4(y, ldy, d->weights[m] + row0 * (cols / 2), d->scales[m] + row0 * (cols / 32),
                         rows, cols, x, cols, tokens);
    else
        k3_gemm(e->k, s->format == K3_EXPERT_F32 ? K3_DT_F32 : K3_DT_BF16, y, ldy,
                d->weights[m] + row0 * cols * (s->format == K3_EXPERT_F32 ? 4 : 2), rows, cols, x,
                cols, tokens);
}

/* w1, w3 and the activation for a tile of inner rows. */
static void inner_tile(const struct k3_engine *e, const struct k3_expert_job *j, size_t row0)
{
    const struct k3_config *c = &e->cfg;
    const struct k3_workspace *w = &e->ws;
    const size_t inner = c->inter, rows = inner - row0 < ROW_TILE ? inner - row0 : ROW_TILE;
    const size_t first = e->use_first[j->use], tokens = e->uses[j->use].requests;
    const float *x = w->gathered + first * c->latent;
    float *a = w->inner + first * inner + row0, *b = w->inner_up + first * inner + row0;
    expert_rows(e, &j->data, K3_W1, row0, rows, c->latent, a, inner, x, tokens);
    expert_rows(e, &j->data, K3_W3, row0, rows, c->latent, b, inner, x, tokens);
    for (size_t t = 0; t < tokens; t++)
        e->k->situ_glu(a + t * inner, a + t * inner, b + t * inner, rows, c->situ_beta,
                       c->situ_linear_beta);
}

/* w2 for a tile of latent rows; the result takes the place of the expert's inputs. */
static void outer_tile(const struct k3_engine *e, const struct k3_expert_job *j, size_t row0)
{
    const struct k3_config *c = &e->cfg;
    const size_t rows = c->latent - row0 < ROW_TILE ? c->latent - row0 : ROW_TILE;
    const size_t first = e->use_first[j->use];
    expert_rows(e, &j->data, K3_W2, row0, rows, c->inter,
                e->ws.gathered + first * c->latent + row0, c->latent,
                e->ws.inner + first * c->inter, e->uses[j->use].requests);
}

static void run_jobs(const struct k3_engine *e, const struct k3_expert_job *jobs, size_t n)
{
    const size_t in = (e->cfg.inter + ROW_TILE - 1) / ROW_TILE;
    const size_t out = (e->cfg.latent + ROW_TILE - 1) / ROW_TILE;
    const struct k3_expert_job *order[MOST_JOBS];
    size_t n_in = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        if (!jobs[i].out)
            order[at++] = &jobs[i];
    n_in = at;
    for (size_t i = 0; i < n; i++)
        if (jobs[i].out)
            order[at++] = &jobs[i];
#pragma omp parallel num_threads(e->plan.threads)
    {
#pragma omp for schedule(dynamic)
        for (size_t i = 0; i < n_in * in; i++)
            inner_tile(e, order[i / in], i % in * ROW_TILE);
        /* The implicit barrier: an expert's w2 reads what w1 and w3 of all tiles wrote. */
#pragma omp for schedule(dynamic)
        for (size_t i = 0; i < (n - n_in) * out; i++)
            outer_tile(e, order[n_in + i / out], i % out * ROW_TILE);
    }
}

static enum k3_status run_experts(struct k3_engine *e, struct k3_error *err)
{
    struct k3_expert_job jobs[MOST_JOBS];
    for (;;) {
        size_t n = 0;
        if (k3_experts_next(e->experts, jobs, MOST_JOBS, &n, err) != K3_OK)
            return err->status;
        if (n == 0)
            return k3_experts_end(e->experts, err);
        run_jobs(e, jobs, n);
        for (size_t i = 0; i < n; i++)
            if (jobs[i].out)
                k3_experts_done(e->experts, jobs[i].use);
    }
}

/* routed[t] = sum over ranks of weight x expert output, then the latent norm. */
static void combine(struct k3_engine *e, uint32_t layer)
{
    const struct k3_config *c = &e->cfg;
    const struct k3_workspace *w = &e->ws;
#pragma omp parallel for num_threads(e->plan.threads) schedule(static) if (e->chunk_n > 1)
    for (size_t t = 0; t < e->chunk_n; t++) {
        const float *v[1024];
        for (size_t i = 0; i < c->top_k; i++)
            v[i] = w->gathered + (size_t)w->pair_at[t * c->top_k + i] * c->latent;
        float *r = w->routed + t * c->latent;
        e->k->weighted_sum(r, w->weights + t * c->top_k, v, c->top_k, c->latent);
        if (c->latent_norm)
            e->k->rms_norm(r, r, e->layers[layer].vec[VEC_EXPERT_NORM], c->latent, c->rms_eps);
    }
}

enum k3_status k3_moe_layer(struct k3_engine *e, uint32_t layer, struct k3_error *err)
{
    const struct k3_config *c = &e->cfg;
    const struct k3_workspace *w = &e->ws;
    const uint32_t m = e->bind.layers[layer].mlp0;
    const size_t t = e->chunk_n;
    if (k3_matmul(e, m + MOE_ROUTER, w->router, w->h, t, err) != K3_OK ||
        route_chunk(e, layer, err) != K3_OK)
        return err->status;
    const size_t n = group_by_expert(e);
    if (k3_experts_begin(e->experts, e->layers[layer].moe, e->uses, n, err) != K3_OK)
        return err->status;
    /* The missing experts are on their way; what needs no expert is computed meanwhile. */
    float *const meanwhile[] = {w->latent, w->gate, w->up};
    if (k3_matmuls(e, m + MOE_DOWN, meanwhile, MOE_SHARED_DOWN - MOE_DOWN, w->h, t, err) != K3_OK)
        goto fail;
    situ(e, w->gate, w->gate, w->up, t * c->shared * c->inter);
    if (k3_matmul(e, m + MOE_SHARED_DOWN, w->shared_out, w->gate, t, err) != K3_OK)
        goto fail;
    gather_inputs(e);
    if (run_experts(e, err) != K3_OK)
        goto fail;
    combine(e, layer);
    if (k3_matmul(e, m + MOE_UP, w->out, w->routed, t, err) != K3_OK)
        return err->status;
    e->k->add(w->out, w->shared_out, t * c->hidden);
    return K3_OK;
fail:
    k3_experts_abort(e->experts);
    return err->status;
}
