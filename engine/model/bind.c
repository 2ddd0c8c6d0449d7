/* bind.c - see bind.h. */
#include "bind.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMED 6 /* problems spelled out in one message */

struct binder {
    const struct k3_config *cfg;
    const struct k3_checkpoint *c; /* NULL = made-up places */
    struct k3_bind *b;
    const char *prefix;            /* "language_model." or "" */
    uint64_t made_up;              /* next made-up offset */
    size_t place;                  /* of the last tensor in the checkpoint's table */
    char problems[1500];
    size_t used;
    unsigned n_problems;
};

static void problem(struct binder *d, const char *fmt, ...) K3_PRINTF(2, 3);
static void problem(struct binder *d, const char *fmt, ...)
{
    if (++d->n_problems > MAX_NAMED)
        return;
    va_list ap;
    va_start(ap, fmt);
    if (d->used && d->used + 3 < sizeof d->problems) {
        memcpy(d->problems + d->used, "; ", 3);
        d->used += 2;
    }
    const int n = vsnprintf(d->problems + d->used, sizeof d->problems - d->used, fmt, ap);
    va_end(ap);
    d->used += n > 0 ? (size_t)n : 0;
    if (d->used >= sizeof d->problems)
        d->used = sizeof d->problems - 1;
}

/* "[896, 7168]" */
static const char *shape_text(char *out, size_t cap, const uint64_t *shape, size_t ndim)
{
    size_t at = (size_t)snprintf(out, cap, "[");
    for (size_t i = 0; i < ndim && at < cap; i++)
        at += (size_t)snprintf(out + at, cap - at, "%s%" PRIu64, i ? ", " : "", shape[i]);
    if (at < cap)
        snprintf(out + at, cap - at, "]");
    return out;
}

static const char *shard_name(const struct binder *d, const struct k3_tensor *t)
{
    return d->c->shards[t->shard].name;
}

/* The tensor of this name with this shape; NULL after noting the problem. In a plan without a
 * checkpoint a made-up one in *fake. */
static const struct k3_tensor *expect(struct binder *d, const char *name, const uint64_t *shape,
                                      size_t ndim, bool packed, struct k3_tensor *fake)
{
    uint64_t n = 1;
    for (size_t i = 0; i < ndim; i++)
        n *= shape[i];
    if (!d->c) {
        *fake = (struct k3_tensor){.ndim = (uint8_t)ndim,
                                   .dtype = packed ? K3_DT_U8 : K3_DT_BF16,
                                   .offset = d->made_up,
                                   .bytes = packed ? n : 2 * n};
        memcpy(fake->shape, shape, ndim * sizeof *shape);
        d->made_up += fake->bytes;
        return fake;
    }
    const struct k3_tensor *t = k3_checkpoint_find_next(d->c, name, &d->place);
    if (!t) {
        problem(d, "%s is missing", name);
        return NULL;
    }
    char want[128], got[256];
    if (t->ndim != ndim || memcmp(t->shape, shape, ndim * sizeof *shape) != 0) {
        problem(d, "%s in %s has shape %s, expected %s", name, shard_name(d, t),
                shape_text(got, sizeof got, t->shape, t->ndim),
                shape_text(want, sizeof want, shape, ndim));
        return NULL;
    }
    const bool ok = packed ? t->dtype == K3_DT_U8
                           : t->dtype == K3_DT_BF16 || t->dtype == K3_DT_F32;
    if (!ok) {
        problem(d, "%s in %s has dtype %s, expected %s", name, shard_name(d, t), t->dtype_name,
                packed ? "U8" : "BF16 or F32");
        return NULL;
    }
    return t;
}

static void layer_name(const struct binder *d, char *out, size_t cap, uint32_t layer,
                       const char *suffix)
{
    snprintf(out, cap, "%smodel.layers.%u.%s", d->prefix, layer, suffix);
}

static void take_vector(struct binder *d, struct k3_vector *v, const char *name,
                        const uint64_t *shape, size_t ndim)
{
    struct k3_tensor fake;
    uint64_t n = 1;
    for (size_t i = 0; i < ndim; i++)
        n *= shape[i];
    const struct k3_tensor *t = expect(d, name, shape, ndim, false, &fake);
    if (t)
        v->tensor = *t;
    v->n = (uint32_t)n;
    v->tensor.name = NULL;
    d->b->vector_floats += n;
}

static void layer_vector(struct binder *d, uint32_t layer, enum k3_layer_vector which,
                         const char *suffix, uint64_t d0, uint64_t d1, uint64_t d2)
{
    const uint64_t shape[3] = {d0, d1, d2};
    char name[256];
    layer_name(d, name, sizeof name, layer, suffix);
    take_vector(d, &d->b->layers[layer].vec[which], name, shape, d2 ? 3 : d1 ? 2 : 1);
}

/* A_log: one number per head, but files may pad it; any length from num_heads up will do. */
static void a_log_vector(struct binder *d, uint32_t layer)
{
    char name[256];
    layer_name(d, name, sizeof name, layer, "self_attn.A_log");
    const uint64_t heads = d->cfg->kda_heads;
    uint64_t shape[1] = {heads};
    const struct k3_tensor *t = d->c ? k3_checkpoint_find(d->c, name) : NULL;
    if (t && t->ndim == 1 && t->shape[0] > heads)
        shape[0] = t->shape[0];
    struct k3_vector *v = &d->b->layers[layer].vec[VEC_A_LOG];
    take_vector(d, v, name, shape, 1);
    d->b->vector_floats -= shape[0] - heads;
    v->n = (uint32_t)heads;
}

static void take_matrix(struct binder *d, const char *name, uint64_t rows, uint64_t cols,
                        uint32_t unit, bool head)
{
    struct k3_tensor fake;
    const uint64_t shape[2] = {rows, cols};
    const struct k3_tensor *t = expect(d, name, shape, 2, false, &fake);
    const uint32_t i = d->b->n_matrices++;
    d->b->matrices[i] = (struct k3_matrix){.rows = (uint32_t)rows, .cols = (uint32_t)cols};
    if (!t)
        return;
    d->b->matrices[i].dtype = t->dtype;
    d->b->tape[i] = (struct k3_tape_matrix){.shard = t->shard,
                                            .unit = unit,
                                            .offset = t->offset,
                                            .rows = rows,
                                            .row_bytes = t->bytes / rows,
                                            .head = head};
}

static void layer_matrix(struct binder *d, uint32_t layer, const char *suffix, uint64_t rows,
                         uint64_t cols)
{
    char name[256];
    layer_name(d, name, sizeof name, layer, suffix);
    take_matrix(d, name, rows, cols, 1, false);
}

static void bind_common(struct binder *d, uint32_t l)
{
    const uint64_t e = d->cfg->hidden;
    layer_vector(d, l, VEC_INPUT_NORM, "input_layernorm.weight", e, 0, 0);
    layer_vector(d, l, VEC_POST_NORM, "post_attention_layernorm.weight", e, 0, 0);
    layer_vector(d, l, VEC_ATTN_RES_NORM, "self_attention_res_norm.weight", e, 0, 0);
    layer_vector(d, l, VEC_ATTN_RES_PROJ, "self_attention_res_proj.weight", 1, e, 0);
    layer_vector(d, l, VEC_MLP_RES_NORM, "mlp_res_norm.weight", e, 0, 0);
    layer_vector(d, l, VEC_MLP_RES_PROJ, "mlp_res_proj.weight", 1, e, 0);
}

static void bind_kda(struct binder *d, uint32_t l)
{
    const struct k3_config *c = d->cfg;
    const uint64_t e = c->hidden, p = k3_kda_width(c), dim = c->kda_dim;
    layer_matrix(d, l, "self_attn.b_proj.weight", c->kda_heads, e);
    layer_matrix(d, l, "self_attn.f_a_proj.weight", dim, e);
    layer_matrix(d, l, "self_attn.g_proj.weight", p, e);
    layer_matrix(d, l, "self_attn.k_proj.weight", p, e);
    layer_matrix(d, l, "self_attn.q_proj.weight", p, e);
    layer_matrix(d, l, "self_attn.v_proj.weight", p, e);
    layer_matrix(d, l, "self_attn.f_b_proj.weight", p, dim);
    layer_matrix(d, l, "self_attn.o_proj.weight", e, p);
    layer_vector(d, l, VEC_CONV_Q, "self_attn.q_conv1d.weight", p, 1, c->conv_taps);
    layer_vector(d, l, VEC_CONV_K, "self_attn.k_conv1d.weight", p, 1, c->conv_taps);
    layer_vector(d, l, VEC_CONV_V, "self_attn.v_conv1d.weight", p, 1, c->conv_taps);
    a_log_vector(d, l);
    layer_vector(d, l, VEC_DT_BIAS, "self_attn.dt_bias", p, 0, 0);
    layer_vector(d, l, VEC_O_NORM, "self_attn.o_norm.weight", dim, 0, 0);
}

static void bind_mla(struct binder *d, uint32_t l)
{
    const struct k3_config *c = d->cfg;
    const uint64_t e = c->hidden, h = c->heads, hv = h * c->v_head;
    char name[256];
    layer_matrix(d, l, "self_attn.g_proj.weight", hv, e);
    layer_matrix(d, l, "self_attn.kv_a_proj_with_mqa.weight", k3_latent_width(c), e);
    layer_matrix(d, l, "self_attn.q_a_proj.weight", c->q_lora, e);
    layer_matrix(d, l, "self_attn.q_b_proj.weight", h * (c->nope + c->rope), c->q_lora);
    /* Whole heads stay together: each is used twice, for the query and for the output. */
    layer_name(d, name, sizeof name, l, "self_attn.kv_b_proj.weight");
    take_matrix(d, name, h * (c->nope + c->v_head), c->kv_lora, c->nope + c->v_head, false);
    layer_matrix(d, l, "self_attn.o_proj.weight", e, hv);
    layer_vector(d, l, VEC_QA_NORM, "self_attn.q_a_layernorm.weight", c->q_lora, 0, 0);
    layer_vector(d, l, VEC_KVA_NORM, "self_attn.kv_a_layernorm.weight", c->kv_lora, 0, 0);
}

static void bind_dense(struct binder *d, uint32_t l)
{
    const uint64_t e = d->cfg->hidden, f = d->cfg->dense_inter;
    layer_matrix(d, l, "mlp.gate_proj.weight", f, e);
    layer_matrix(d, l, "mlp.up_proj.weight", f, e);
    layer_matrix(d, l, "mlp.down_proj.weight", e, f);
}

static void bind_moe(struct binder *d, uint32_t l)
{
    const struct k3_config *c = d->cfg;
    const uint64_t e = c->hidden, s = (uint64_t)c->inter * c->shared;
    layer_matrix(d, l, "block_sparse_moe.gate.weight", c->experts, e);
    layer_matrix(d, l, "block_sparse_moe.routed_expert_down_proj.weight", c->latent, e);
    layer_matrix(d, l, "block_sparse_moe.shared_experts.gate_proj.weight", s, e);
    layer_matrix(d, l, "block_sparse_moe.shared_experts.up_proj.weight", s, e);
    layer_matrix(d, l, "block_sparse_moe.shared_experts.down_proj.weight", e, s);
    layer_matrix(d, l, "block_sparse_moe.routed_expert_up_proj.weight", e, c->latent);
    layer_vector(d, l, VEC_ROUTER_BIAS, "block_sparse_moe.gate.e_score_correction_bias",
                 c->experts, 0, 0);
    if (c->latent_norm)
        layer_vector(d, l, VEC_EXPERT_NORM, "block_sparse_moe.routed_expert_norm.weight",
                     c->latent, 0, 0);
}

/* ---- experts ------------------------------------------------------------------------------- */

#define EXPERT_NAME 256

/* "...experts.7.": what the names of an expert's tensors begin with. Returns its length; without a
 * checkpoint nobody looks at names, and there are half a million. */
static size_t expert_prefix(const struct binder *d, char name[EXPERT_NAME], uint32_t layer,
                            uint32_t expert)
{
    name[0] = '\0';
    if (d->c)
        snprintf(name, EXPERT_NAME, "%smodel.layers.%u.block_sparse_moe.experts.%u.", d->prefix,
                 layer, expert);
    return strlen(name);
}

/* MXFP4, BF16 or F32: as the first expert of the first MoE layer has it. */
static bool expert_format(struct binder *d, uint32_t layer)
{
    struct k3_expert_shape *s = &d->b->expert_shape;
    char name[EXPERT_NAME];
    strcpy(name + expert_prefix(d, name, layer, 0), "w1.weight");
    const struct k3_tensor *t = d->c ? k3_checkpoint_find(d->c, name) : NULL;
    s->format = K3_EXPERT_MXFP4;
    if (t)
        s->format = t->dtype == K3_DT_F32 ? K3_EXPERT_F32 : K3_EXPERT_BF16;
    const uint64_t values = (uint64_t)d->cfg->latent * d->cfg->inter;
    for (int m = 0; m < K3_EXPERT_MATRICES; m++) {
        s->bytes[m][0] = s->format == K3_EXPERT_MXFP4 ? values / 2
                       : s->format == K3_EXPERT_BF16 ? values * 2 : values * 4;
        s->bytes[m][1] = s->format == K3_EXPERT_MXFP4 ? values / 32 : 0;
        s->rows[m] = m == K3_W2 ? d->cfg->latent : d->cfg->inter;
    }
    if (s->format == K3_EXPERT_MXFP4 && (d->cfg->latent % 32 || d->cfg->inter % 32)) {
        problem(d, "MXFP4 experts need widths that are multiples of 32, but "
                   "routed_expert_hidden_size is %u and moe_intermediate_size is %u",
                d->cfg->latent, d->cfg->inter);
        return false;
    }
    return true;
}

static void take_expert_part(struct binder *d, struct k3_expert_place *p, const char *name,
                             uint64_t rows, uint64_t cols, int m, int part)
{
    struct k3_tensor fake;
    const uint64_t shape[2] = {rows, cols};
    const struct k3_expert_shape *s = &d->b->expert_shape;
    const struct k3_tensor *t =
        expect(d, name, shape, 2, s->format == K3_EXPERT_MXFP4, &fake);
    if (!t)
        return;
    if (t->bytes != s->bytes[m][part]) {
        problem(d, "%s has dtype %s, unlike the first expert", name, t->dtype_name);
        return;
    }
    if (m == K3_W1 && part == 0)
        p->shard = t->shard;
    else if (t->shard != p->shard)
        problem(d, "%s is in %s, but the expert's w1 is in %s; one expert must be in one shard",
                name, shard_name(d, t), d->c->shards[p->shard].name);
    p->offset[m][part] = t->offset;
}

static void bind_expert(struct binder *d, uint32_t layer, uint32_t expert,
                        struct k3_expert_place *p)
{
    static const char *const packed[K3_EXPERT_MATRICES] = {"w1.weight_packed", "w2.weight_packed",
                                                           "w3.weight_packed"};
    static const char *const scales[K3_EXPERT_MATRICES] = {"w1.weight_scale", "w2.weight_scale",
                                                           "w3.weight_scale"};
    static const char *const plain[K3_EXPERT_MATRICES] = {"w1.weight", "w2.weight", "w3.weight"};
    const struct k3_expert_shape *s = &d->b->expert_shape;
    char name[EXPERT_NAME];
    char *const end = name + expert_prefix(d, name, layer, expert);
    for (int m = 0; m < K3_EXPERT_MATRICES; m++) {
        const uint64_t rows = m == K3_W2 ? d->cfg->latent : d->cfg->inter;
        const uint64_t cols = m == K3_W2 ? d->cfg->inter : d->cfg->latent;
        if (s->format == K3_EXPERT_MXFP4) {
            strcpy(end, packed[m]);
            take_expert_part(d, p, name, rows, cols / 2, m, 0);
            strcpy(end, scales[m]);
            take_expert_part(d, p, name, rows, cols / 32, m, 1);
        } else {
            strcpy(end, plain[m]);
            take_expert_part(d, p, name, rows, cols, m, 0);
        }
    }
}

static void bind_experts(struct binder *d)
{
    struct k3_bind *b = d->b;
    uint32_t at = 0;
    for (uint32_t l = d->cfg->dense_layers; l < d->cfg->layers; l++, at++) {
        if (at == 0 && !expert_format(d, l))
            return;
        b->layer_numbers[at] = l;
        for (uint32_t x = 0; x < d->cfg->experts; x++)
            bind_expert(d, l, x, &b->places[(size_t)at * d->cfg->experts + x]);
    }
}

/* ---- whole model --------------------------------------------------------------------------- */

static void bind_top(struct binder *d)
{
    const uint64_t e = d->cfg->hidden, v = d->cfg->vocab;
    struct k3_tensor fake;
    char name[256];
    const uint64_t embed[2] = {v, e}, flat[1] = {e}, row[2] = {1, e};
    snprintf(name, sizeof name, "%smodel.embed_tokens.weight", d->prefix);
    const struct k3_tensor *t = expect(d, name, embed, 2, false, &fake);
    if (t) {
        d->b->embed_shard = t->shard;
        d->b->embed_dtype = t->dtype;
        d->b->embed_offset = t->offset;
        d->b->embed_row_bytes = t->bytes / v;
    }
    snprintf(name, sizeof name, "%smodel.norm.weight", d->prefix);
    take_vector(d, &d->b->top[TOP_NORM], name, flat, 1);
    snprintf(name, sizeof name, "%smodel.output_attn_res_norm.weight", d->prefix);
    take_vector(d, &d->b->top[TOP_RES_NORM], name, flat, 1);
    snprintf(name, sizeof name, "%smodel.output_attn_res_proj.weight", d->prefix);
    take_vector(d, &d->b->top[TOP_RES_PROJ], name, row, 2);
    snprintf(name, sizeof name, "%slm_head.weight", d->prefix);
    d->b->lm_head = d->b->n_matrices;
    take_matrix(d, name, v, e, 1, true);
}

static enum k3_status allocate(struct k3_bind *b, const struct k3_config *cfg,
                               struct k3_error *err)
{
    const size_t most = (size_t)cfg->layers * ((size_t)KDA_MATRICES + MOE_MATRICES) + 1;
    b->n_moe = k3_count_moe(cfg);
    b->layers = calloc(cfg->layers, sizeof *b->layers);
    b->matrices = calloc(most, sizeof *b->matrices);
    b->tape = calloc(most, sizeof *b->tape);
    b->places = calloc((size_t)b->n_moe * cfg->experts + 1, sizeof *b->places);
    b->layer_numbers = calloc((size_t)b->n_moe + 1, sizeof *b->layer_numbers);
    if (!b->layers || !b->matrices || !b->tape || !b->places || !b->layer_numbers)
        return k3_fail_memory(err, "the tensor tables",
                              (unsigned long long)b->n_moe * cfg->experts * sizeof *b->places);
    return K3_OK;
}

enum k3_status k3_bind_make(const struct k3_config *cfg, const struct k3_checkpoint *c,
                            struct k3_bind *b, struct k3_error *err)
{
    memset(b, 0, sizeof *b);
    struct binder d = {.cfg = cfg, .c = c, .b = b, .prefix = ""};
    if (c && k3_checkpoint_find(c, "language_model.model.embed_tokens.weight"))
        d.prefix = "language_model.";
    if (allocate(b, cfg, err) != K3_OK) {
        k3_bind_free(b);
        return err->status;
    }
    for (uint32_t l = 0; l < cfg->layers; l++) {
        bind_common(&d, l);
        b->layers[l].attn0 = b->n_matrices;
        if (cfg->is_mla[l])
            bind_mla(&d, l);
        else
            bind_kda(&d, l);
        b->layers[l].mlp0 = b->n_matrices;
        if (k3_is_moe(cfg, l))
            bind_moe(&d, l);
        else
            bind_dense(&d, l);
    }
    bind_top(&d);
    bind_experts(&d);
    if (d.n_problems) {
        k3_bind_free(b);
        if (d.n_problems > MAX_NAMED)
            return k3_fail(err, K3_FAILED, "%s: %u tensors are missing or wrong: %s; and %u more. "
                           "The checkpoint does not fit its config.json; fetch the shards again",
                           c ? c->dir : "config", d.n_problems, d.problems,
                           d.n_problems - MAX_NAMED);
        return k3_fail(err, K3_FAILED, "%s: %s. The checkpoint does not fit its config.json; fetch "
                       "the named shard or config again", c ? c->dir : "config", d.problems);
    }
    return K3_OK;
}

void k3_bind_free(struct k3_bind *b)
{
    free(b->layers);
    free(b->matrices);
    free(b->tape);
    free(b->places);
    free(b->layer_numbers);
    memset(b, 0, sizeof *b);
}
