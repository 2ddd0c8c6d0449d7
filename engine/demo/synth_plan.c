/* synth_plan.c - the tensors of a checkpoint: names, shapes, sizes of values, place in the shards. */
#include "synth_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* While a plan is made: what the names begin with, and where new tensors go. */
struct maker {
    const struct k3_synth *s;
    struct synth_plan *p;
    const char *prefix; /* "language_model." or "" */
    char at[64];        /* "model.layers.3." */
    uint32_t shard;
    bool failed;        /* memory; all later calls do nothing */
};

static char *join(const char *a, const char *b, const char *c)
{
    const size_t size = strlen(a) + strlen(b) + strlen(c) + 1;
    char *out = malloc(size);
    if (out)
        snprintf(out, size, "%s%s%s", a, b, c);
    return out;
}

static struct synth_tensor *new_slot(struct synth_plan *p)
{
    if (p->n == p->cap) {
        const size_t cap = p->cap ? 2 * p->cap : 256;
        struct synth_tensor *v = realloc(p->v, cap * sizeof *v);
        if (!v)
            return NULL;
        p->v = v;
        p->cap = cap;
    }
    struct synth_tensor *t = &p->v[p->n];
    memset(t, 0, sizeof *t);
    return t;
}

/* `key_name` names the values: matrices of one expert share it between codes and scales. */
static void put(struct maker *m, const char *name, const char *key_name, enum synth_kind kind,
                enum synth_dtype dtype, const uint32_t shape[3], uint8_t ndim, float scale)
{
    struct synth_tensor *t = m->failed ? NULL : new_slot(m->p);
    char *key = join("", m->at, key_name);
    char *full = join(m->prefix, m->at, name);
    if (!t || !key || !full) {
        m->failed = true;
        free(key);
        free(full);
        return;
    }
    t->name = full;
    t->key = synth_mix(synth_hash(key) + m->s->seed);
    t->order = synth_mix(synth_hash(full) ^ 0x5ca77e5ed);
    t->kind = (uint8_t)kind;
    t->dtype = (uint8_t)dtype;
    t->scale = scale;
    t->shard = m->shard;
    t->ndim = ndim;
    memcpy(t->shape, shape, sizeof t->shape);
    m->p->n++;
    free(key);
}

static void put_2d(struct maker *m, const char *name, enum synth_kind kind, uint32_t rows,
                   uint32_t cols, double gain)
{
    char full[96];
    snprintf(full, sizeof full, "%s.weight", name);
    put(m, full, full, kind, SYNTH_BF16, (const uint32_t[3]){rows, cols, 1}, 2,
        (float)(gain / sqrt(cols)));
}

/* A matrix whose output has about `gain` times the size of its input. */
static void put_matrix(struct maker *m, const char *name, uint32_t rows, uint32_t cols, double gain)
{
    put_2d(m, name, SYNTH_MATRIX, rows, cols, gain);
}

/* Small tensors that exports may keep as F32: the value stays the BF16 one. */
static void make_small(struct maker *m)
{
    if (m->failed || !m->s->f32_small)
        return;
    struct synth_tensor *t = &m->p->v[m->p->n - 1];
    t->dtype = SYNTH_F32;
    t->rounded = true;
}

static void put_norm(struct maker *m, const char *name, uint32_t n)
{
    char full[96];
    snprintf(full, sizeof full, "%s.weight", name);
    put(m, full, full, SYNTH_NORM, SYNTH_BF16, (const uint32_t[3]){n, 1, 1}, 1, 0.1f);
    make_small(m);
}

/* Its output is the score of one source: it must spread, or all sources weigh the same. */
static void put_res_proj(struct maker *m, const char *name)
{
    put_2d(m, name, SYNTH_FLAT, 1, m->s->hidden, 1.2);
    make_small(m);
}

static void put_vector(struct maker *m, const char *name, enum synth_kind kind, uint32_t n,
                       float scale)
{
    put(m, name, name, kind, SYNTH_F32, (const uint32_t[3]){n, 1, 1}, 1, scale);
}

/* ---- layers ------------------------------------------------------------------------------------ */

/* Queries and keys are small before they are normalised, so that a wrong eps there is seen. */
static void put_kda(struct maker *m)
{
    const struct k3_synth *s = m->s;
    const uint32_t e = s->hidden, d = s->kda_dim, p = s->kda_heads * d;
    put_matrix(m, "self_attn.q_proj", p, e, 0.05);
    put_matrix(m, "self_attn.k_proj", p, e, 0.05);
    put_matrix(m, "self_attn.v_proj", p, e, 1.5);
    put_matrix(m, "self_attn.g_proj", p, e, 1);
    put_matrix(m, "self_attn.o_proj", e, p, 1.4);
    static const char *const conv[3] = {"self_attn.q_conv1d.weight", "self_attn.k_conv1d.weight",
                                        "self_attn.v_conv1d.weight"};
    for (int i = 0; i < 3; i++)
        put(m, conv[i], conv[i], SYNTH_CONV, SYNTH_F32, (const uint32_t[3]){p, 1, s->conv}, 3, 1);
    put_matrix(m, "self_attn.f_a_proj", d, e, 1);
    put_matrix(m, "self_attn.f_b_proj", p, d, 1);
    put_matrix(m, "self_attn.b_proj", s->kda_heads, e, 1);
    put_vector(m, "self_attn.A_log", SYNTH_A_LOG, s->short_a_log ? s->kda_heads : d, 0.7f);
    put_vector(m, "self_attn.dt_bias", SYNTH_DT, p, 1);
    put_vector(m, "self_attn.o_norm.weight", SYNTH_NORM, d, 0.1f);
}

/* The inputs of the two latent norms are small, so that a wrong eps in them is seen. */
static void put_mla(struct maker *m)
{
    const struct k3_synth *s = m->s;
    const uint32_t e = s->hidden;
    put_matrix(m, "self_attn.q_a_proj", s->q_lora, e, 0.05);
    put_norm(m, "self_attn.q_a_layernorm", s->q_lora);
    put_matrix(m, "self_attn.q_b_proj", s->heads * (s->nope + s->rope), s->q_lora, 1.7);
    put_matrix(m, "self_attn.kv_a_proj_with_mqa", s->kv_lora + s->rope, e, 0.1);
    put_norm(m, "self_attn.kv_a_layernorm", s->kv_lora);
    put_matrix(m, "self_attn.kv_b_proj", s->heads * (s->nope + s->v_dim), s->kv_lora, 1);
    put_matrix(m, "self_attn.g_proj", s->heads * s->v_dim, e, 1);
    put_matrix(m, "self_attn.o_proj", e, s->heads * s->v_dim, 3);
}

static void put_mlp(struct maker *m, const char *at, uint32_t inner, double gain)
{
    char name[96];
    snprintf(name, sizeof name, "%sgate_proj", at);
    put_matrix(m, name, inner, m->s->hidden, 2);
    snprintf(name, sizeof name, "%sup_proj", at);
    put_matrix(m, name, inner, m->s->hidden, 4);
    snprintf(name, sizeof name, "%sdown_proj", at);
    put_matrix(m, name, m->s->hidden, inner, gain);
}

/* The scale byte with which codes (1.82 root mean square) give `gain` at this width. */
static float middle_scale(uint32_t cols, double gain)
{
    double step = 1.82 * sqrt(cols) / gain;
    int byte = 127;
    while (step > 1.4142) {
        step /= 2;
        byte--;
    }
    return (float)byte;
}

static void put_expert_matrix(struct maker *m, uint32_t expert, const char *which, uint32_t rows,
                              uint32_t cols, double gain)
{
    char key[96], name[128];
    const float scale = middle_scale(cols, gain);
    snprintf(key, sizeof key, "block_sparse_moe.experts.%u.%s", expert, which);
    if (m->s->bf16_experts) {
        snprintf(name, sizeof name, "%s.weight", key);
        put(m, name, key, SYNTH_EXPERT, SYNTH_BF16, (const uint32_t[3]){rows, cols, 1}, 2, scale);
        return;
    }
    snprintf(name, sizeof name, "%s.weight_packed", key);
    put(m, name, key, SYNTH_CODES, SYNTH_U8, (const uint32_t[3]){rows, cols / 2, 1}, 2, scale);
    snprintf(name, sizeof name, "%s.weight_scale", key);
    put(m, name, key, SYNTH_SCALES, SYNTH_U8, (const uint32_t[3]){rows, cols / 32, 1}, 2, scale);
}

/* Scattered: an expert lies in one shard, whichever. */
static void put_experts(struct maker *m)
{
    const struct k3_synth *s = m->s;
    const uint32_t home = m->shard;
    for (uint32_t i = 0; i < s->experts && !m->failed; i++) {
        if (s->scatter)
            m->shard = (uint32_t)(synth_mix(synth_hash(m->at) + i) % s->scatter);
        put_expert_matrix(m, i, "w1", s->inner, s->latent, 2);
        put_expert_matrix(m, i, "w2", s->latent, s->inner, 1);
        put_expert_matrix(m, i, "w3", s->inner, s->latent, 4);
    }
    m->shard = home;
}

static void put_moe(struct maker *m)
{
    const struct k3_synth *s = m->s;
    put_2d(m, "block_sparse_moe.gate", SYNTH_FLAT, s->experts, s->hidden, 1.5);
    make_small(m);
    put_vector(m, "block_sparse_moe.gate.e_score_correction_bias", SYNTH_BIAS, s->experts, 0.1f);
    put_matrix(m, "block_sparse_moe.routed_expert_down_proj", s->latent, s->hidden, 1);
    put_matrix(m, "block_sparse_moe.routed_expert_up_proj", s->hidden, s->latent, 0.8);
    if (!s->no_latent_norm)
        put_norm(m, "block_sparse_moe.routed_expert_norm", s->latent);
    put_mlp(m, "block_sparse_moe.shared_experts.", s->inner * s->shared, 0.13);
    put_experts(m);
}

static void put_layer(struct maker *m, uint32_t layer)
{
    const struct k3_synth *s = m->s;
    snprintf(m->at, sizeof m->at, "model.layers.%u.", layer);
    put_norm(m, "input_layernorm", s->hidden);
    put_norm(m, "post_attention_layernorm", s->hidden);
    put_norm(m, "self_attention_res_norm", s->hidden);
    put_res_proj(m, "self_attention_res_proj");
    put_norm(m, "mlp_res_norm", s->hidden);
    put_res_proj(m, "mlp_res_proj");
    if (synth_is_mla(s, layer))
        put_mla(m);
    else
        put_kda(m);
    if (layer < s->dense_layers)
        put_mlp(m, "mlp.", s->dense_inner, 0.2);
    else
        put_moe(m);
}

/* Embedding, head and final norms; then, when the names have the released prefix, something of
 * the vision tower that a text engine must pass over. */
static void put_outer(struct maker *m)
{
    const struct k3_synth *s = m->s;
    m->at[0] = '\0';
    put(m, "model.embed_tokens.weight", "model.embed_tokens.weight", SYNTH_FLAT, SYNTH_BF16,
        (const uint32_t[3]){s->vocab, s->hidden, 1}, 2, 1);
    put_norm(m, "model.norm", s->hidden);
    put_norm(m, "model.output_attn_res_norm", s->hidden);
    put_res_proj(m, "model.output_attn_res_proj");
    put_2d(m, "lm_head", SYNTH_HEAD, s->vocab, s->hidden, 3);
    if (s->no_prefix)
        return;
    m->prefix = "";
    m->shard++;
    put_matrix(m, "mm_projector.proj.0", 8, s->hidden, 1);
    m->shard++;
    put_norm(m, "vision_tower.encoder.final_layernorm", 8);
    const char *patch = "vision_tower.patch_embed.proj.weight";
    put(m, patch, patch, SYNTH_MATRIX, SYNTH_BF16, (const uint32_t[3]){8, 3, 4}, 3, 0.1f);
}

/* ---- places ------------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
    const struct synth_tensor *x = a, *y = b;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool is_expert(const struct synth_tensor *t)
{
    return t->kind == SYNTH_CODES || t->kind == SYNTH_SCALES || t->kind == SYNTH_EXPERT;
}

/* Released order: F32, BF16, U8, each by name. Scattered: any shard, any order. */
static void place(const struct k3_synth *s, struct synth_plan *p, uint32_t shards)
{
    static const uint8_t size[] = {[SYNTH_F32] = 4, [SYNTH_BF16] = 2, [SYNTH_U8] = 1};
    p->shards = s->scatter ? s->scatter : shards;
    for (size_t i = 0; i < p->n; i++) {
        struct synth_tensor *t = &p->v[i];
        if (!s->scatter)
            t->order = t->dtype;
        else if (!is_expert(t))
            t->shard = (uint32_t)(synth_mix(t->order) % s->scatter);
    }
    qsort(p->v, p->n, sizeof *p->v, by_place);
    uint64_t at = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct synth_tensor *t = &p->v[i];
        if (i > 0 && t->shard != p->v[i - 1].shard)
            at = 0;
        const uint64_t bytes = (uint64_t)t->shape[0] * t->shape[1] * t->shape[2] * size[t->dtype];
        t->begin = at;
        t->end = at += bytes;
        p->bytes += bytes;
    }
}

/* With few tensors and many shards some shard may get none; such a file need not exist. */
static void close_gaps(struct synth_plan *p)
{
    uint32_t next = 0;
    for (size_t i = 0; i < p->n; next++) {
        const uint32_t shard = p->v[i].shard;
        while (i < p->n && p->v[i].shard == shard)
            p->v[i++].shard = next;
    }
    p->shards = next;
}

enum k3_status synth_plan_make(const struct k3_synth *s, struct synth_plan *p, struct k3_error *err)
{
    *p = (struct synth_plan){0};
    if (k3_synth_check(s, err) != K3_OK)
        return err->status;
    struct maker m = {.s = s, .p = p, .prefix = s->no_prefix ? "" : "language_model."};
    for (uint32_t i = 0; i < s->layers; i++) {
        m.shard = i;
        put_layer(&m, i);
    }
    m.shard = s->layers;
    put_outer(&m);
    if (m.failed) {
        const unsigned long long bytes = (unsigned long long)p->cap * sizeof *p->v;
        synth_plan_free(p);
        return k3_fail_memory(err, "the table of tensors", bytes);
    }
    place(s, p, m.shard + 1);
    close_gaps(p);
    return K3_OK;
}

void synth_plan_free(struct synth_plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->v[i].name);
    free(p->v);
    *p = (struct synth_plan){0};
}
