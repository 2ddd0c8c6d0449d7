/* mla.c - gated MLA without rotation, in absorbed form: queries move into the latent space, the
 * per-head keys and values are never formed. */
#include "engine.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* Appends the chunk's latents: normalised kv_lora part, then the shared rope slots as they are. */
static void store_latents(struct k3_engine *e, const struct k3_layer *y)
{
    const struct k3_config *c = &e->cfg;
    const size_t width = k3_latent_width(c);
    for (size_t t = 0; t < e->chunk_n; t++) {
        float *lat = y->latents + (e->position + t) * width;
        const float *kva = e->ws.kva + t * width;
        e->k->rms_norm(lat, kva, y->vec[VEC_KVA_NORM], c->kv_lora, K3_MLA_EPS);
        memcpy(lat + c->kv_lora, kva + c->kv_lora, c->rope * sizeof *lat);
    }
}

/* Heads [head0, head0 + n) of one token; kv_b points at the first one's rows. */
static void attend(struct k3_engine *e, const struct k3_layer *y, uint8_t dtype,
                   const uint8_t *kv_b, uint64_t row_bytes, size_t head0, size_t n, size_t t,
                   float *scores, float *scratch)
{
    const struct k3_config *c = &e->cfg;
    const struct k3_kernels *k = e->k;
    const size_t width = k3_latent_width(c), qk = (size_t)c->nope + c->rope;
    const size_t positions = e->position + t + 1, lds = (e->plan.context + 15u) / 16 * 16;
    const uint64_t head_bytes = row_bytes * (c->nope + c->v_head);
    float *q = scratch, *sum = scratch + K3_HEAD_GROUP * width;
    for (size_t i = 0; i < n; i++) {
        const float *mq = e->ws.mq + t * c->heads * qk + (head0 + i) * qk;
        k3_gemm_t(k, dtype, q + i * width, width, kv_b + i * head_bytes, c->kv_lora, c->nope,
                  c->kv_lora, mq, c->nope, 1);
        memcpy(q + i * width + c->kv_lora, mq + c->nope, c->rope * sizeof *q);
    }
    k->gemm_f32(scores, lds, y->latents, positions, width, q, width, n);
    const float scale = 1.0f / sqrtf((float)qk);
    for (size_t i = 0; i < n; i++)
        k->softmax(scores + i * lds, positions, scale);
    k->gemm_t_f32(sum, width, y->latents, width, positions, c->kv_lora, scores, lds, n);
    float *o = e->ws.mo + t * c->heads * c->v_head + head0 * c->v_head;
    for (size_t i = 0; i < n; i++)
        k3_gemm(k, dtype, o + i * c->v_head, c->v_head,
                kv_b + i * head_bytes + c->nope * row_bytes, c->v_head, c->kv_lora,
                sum + i * width, width, 1);
}

/* All tokens for the heads of one piece of kv_b_proj; heads split over the threads in groups. */
static void attend_piece(struct k3_engine *e, const struct k3_layer *y, const struct k3_rows *p,
                         uint8_t dtype, uint64_t row_bytes)
{
    const struct k3_config *c = &e->cfg;
    const size_t unit = (size_t)c->nope + c->v_head;
    const size_t heads = p->rows / unit, first = p->row0 / unit;
    const size_t lds = (e->plan.context + 15u) / 16 * 16;
    size_t group = (heads + e->plan.threads - 1) / e->plan.threads;
    group = group > K3_HEAD_GROUP ? K3_HEAD_GROUP : group;
    const size_t groups = (heads + group - 1) / group;
#pragma omp parallel for num_threads(e->plan.threads) schedule(dynamic) collapse(2)
    for (size_t g = 0; g < groups; g++)
        for (size_t t = 0; t < e->chunk_n; t++) {
            const size_t id = (size_t)omp_get_thread_num(), h = g * group;
            const size_t n = heads - h < group ? heads - h : group;
            attend(e, y, dtype, p->data + h * unit * row_bytes, row_bytes, first + h, n, t,
                   e->ws.scores + id * K3_HEAD_GROUP * lds,
                   e->ws.scratch + id * k3_scratch_floats(c));
        }
}

static enum k3_status attend_all(struct k3_engine *e, const struct k3_layer *y, uint32_t m,
                                 struct k3_error *err)
{
    struct k3_rows pieces[16];
    for (;;) {
        size_t n = 0;
        if (k3_tape_next(e->tape, m, pieces, 16, &n, err) != K3_OK)
            return err->status;
        if (n == 0)
            return K3_OK;
        for (size_t i = 0; i < n; i++)
            attend_piece(e, y, &pieces[i], e->bind.matrices[m].dtype, e->bind.tape[m].row_bytes);
        k3_tape_release(e->tape);
    }
}

enum k3_status k3_mla_layer(struct k3_engine *e, uint32_t layer, struct k3_error *err)
{
    const struct k3_config *c = &e->cfg;
    const struct k3_workspace *w = &e->ws;
    const struct k3_layer *y = &e->layers[layer];
    const uint32_t m = e->bind.layers[layer].attn0;
    const size_t t = e->chunk_n;
    float *const projections[] = {w->mg, w->kva, w->qa}; /* as on the tape */
    if (k3_matmuls(e, m + MLA_G, projections, MLA_QB - MLA_G, w->h, t, err) != K3_OK)
        return err->status;
    for (size_t i = 0; i < t; i++)
        e->k->rms_norm(w->qa + i * c->q_lora, w->qa + i * c->q_lora, y->vec[VEC_QA_NORM],
                       c->q_lora, K3_MLA_EPS);
    store_latents(e, y);
    if (k3_matmul(e, m + MLA_QB, w->mq, w->qa, t, err) != K3_OK ||
        attend_all(e, y, m + MLA_KVB, err) != K3_OK)
        return err->status;
    e->k->mul_logistic(w->mo, w->mg, t * c->heads * c->v_head);
    return k3_matmul(e, m + MLA_O, w->out, w->mo, t, err);
}
