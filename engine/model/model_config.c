/* model_config.c - see model_config.h. Problems are collected, so that one run names them all. */
#include "model_config.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const json_t *text;   /* where the language model's keys are */
    const json_t *linear; /* linear_attn_config, or text when its keys are hoisted */
    bool hoisted;
    char problems[1600];
    size_t used;
    unsigned n_problems;
};

static void problem(struct reader *r, const char *fmt, ...) K3_PRINTF(2, 3);
static void problem(struct reader *r, const char *fmt, ...)
{
    char one[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(one, sizeof one, fmt, ap);
    va_end(ap);
    r->n_problems++;
    const int n = snprintf(r->problems + r->used, sizeof r->problems - r->used, "%s%s",
                           r->used ? "; " : "", one);
    if (n > 0)
        r->used += (size_t)n;
    if (r->used >= sizeof r->problems)
        r->used = sizeof r->problems - 1;
}

static uint32_t get_count(struct reader *r, const json_t *from, const char *key, json_int_t least,
                          json_int_t most)
{
    const json_t *v = json_object_get(from, key);
    if (!v) {
        problem(r, "%s is missing", key);
        return 0;
    }
    if (!json_is_integer(v)) {
        problem(r, "%s must be an integer", key);
        return 0;
    }
    const json_int_t n = json_integer_value(v);
    if (n < least || n > most) {
        problem(r, "%s is %lld, expected %lld to %lld", key, (long long)n, (long long)least,
                (long long)most);
        return 0;
    }
    return (uint32_t)n;
}

static float get_number(struct reader *r, const json_t *from, const char *key)
{
    const json_t *v = json_object_get(from, key);
    if (!v)
        problem(r, "%s is missing", key);
    else if (!json_is_number(v))
        problem(r, "%s must be a number", key);
    else if (!isfinite((float)json_number_value(v)))
        problem(r, "%s is out of range", key);
    else
        return (float)json_number_value(v);
    return 0.0f;
}

static float get_positive(struct reader *r, const json_t *from, const char *key)
{
    const unsigned before = r->n_problems;
    const float x = get_number(r, from, key);
    if (r->n_problems == before && !(x > 0.0f))
        problem(r, "%s is %g, must be above 0", key, (double)x);
    return x;
}

static bool get_bool(struct reader *r, const json_t *from, const char *key)
{
    const json_t *v = json_object_get(from, key);
    if (!v)
        problem(r, "%s is missing", key);
    else if (!json_is_boolean(v))
        problem(r, "%s must be true or false", key);
    return json_is_true(v);
}

/* A switch whose other setting is a graph this engine does not compute. */
static void need_bool(struct reader *r, const json_t *from, const char *key, bool want)
{
    const unsigned before = r->n_problems;
    const bool b = get_bool(r, from, key);
    if (r->n_problems == before && b != want)
        problem(r, "%s is %s, only %s is supported", key, b ? "true" : "false",
                want ? "true" : "false");
}

static void need_count(struct reader *r, const json_t *from, const char *key, json_int_t want)
{
    const unsigned before = r->n_problems;
    const uint32_t n = get_count(r, from, key, 0, INT32_MAX);
    if (r->n_problems == before && n != want)
        problem(r, "%s is %u, only %lld is supported", key, n, (long long)want);
}

static void need_string(struct reader *r, const json_t *from, const char *key, const char *want)
{
    const json_t *v = json_object_get(from, key);
    if (!v)
        problem(r, "%s is missing", key);
    else if (!json_is_string(v))
        problem(r, "%s must be a string", key);
    else if (strcmp(json_string_value(v), want) != 0)
        problem(r, "%s is \"%.40s\", only \"%s\" is supported", key, json_string_value(v), want);
}

/* One of the two one-based layer lists: marks who was named by which list. */
static void read_layer_list(struct reader *r, const char *key, uint32_t layers, unsigned char mark,
                            unsigned char *named)
{
    const json_t *list = json_object_get(r->linear, key);
    if (!list) {
        problem(r, "%s is missing", key);
        return;
    }
    if (!json_is_array(list)) {
        problem(r, "%s must be a list of one-based layer numbers", key);
        return;
    }
    /* Without a layer count (a problem named already) there is nothing to compare with. */
    for (size_t i = 0; layers > 0 && i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        const json_int_t n = json_is_integer(v) ? json_integer_value(v) : 0;
        if (n < 1 || n > layers)
            problem(r, "%s[%zu] is no layer number (1 to %u)", key, i, layers);
        else if (named[n - 1])
            problem(r, "layer %lld is named twice in full_attn_layers and kda_layers",
                    (long long)n);
        else
            named[n - 1] = mark;
    }
}

static void read_layer_kinds(struct reader *r, struct k3_config *c)
{
    unsigned char named[K3_MAX_LAYERS] = {0};
    const unsigned before = r->n_problems;
    read_layer_list(r, "full_attn_layers", c->layers, 1, named);
    read_layer_list(r, "kda_layers", c->layers, 2, named);
    if (r->n_problems != before || c->layers == 0)
        return;
    for (uint32_t l = 0; l < c->layers; l++) {
        c->is_mla[l] = named[l] == 1;
        if (!named[l])
            problem(r, "layer %u is in neither full_attn_layers nor kda_layers", l + 1);
    }
}

static void read_linear(struct reader *r, struct k3_config *c)
{
    const json_t *lin = r->linear;
    c->kda_heads = get_count(r, lin, r->hoisted ? "kda_num_heads" : "num_heads", 1, 1 << 14);
    c->kda_dim = get_count(r, lin, r->hoisted ? "kda_head_dim" : "head_dim", 1, 1024);
    c->conv_taps = get_count(r, lin, "short_conv_kernel_size", 1, 64);
    c->gate_lower = get_number(r, lin, "gate_lower_bound");
    need_bool(r, lin, "use_full_rank_gate", true);
    read_layer_kinds(r, c);
}

static void read_attention(struct reader *r, struct k3_config *c)
{
    const json_t *t = r->text;
    c->heads = get_count(r, t, "num_attention_heads", 1, 1 << 14);
    const unsigned before = r->n_problems;
    const uint32_t kv = get_count(r, t, "num_key_value_heads", 1, 1 << 14);
    if (r->n_problems == before && c->heads && kv != c->heads)
        problem(r, "num_key_value_heads is %u but num_attention_heads is %u", kv, c->heads);
    c->q_lora = get_count(r, t, "q_lora_rank", 1, 1 << 20);
    c->kv_lora = get_count(r, t, "kv_lora_rank", 1, 1 << 20);
    c->nope = get_count(r, t, "qk_nope_head_dim", 1, 1 << 16);
    c->rope = get_count(r, t, "qk_rope_head_dim", 0, 1 << 16);
    c->v_head = get_count(r, t, "v_head_dim", 1, 1 << 16);
    need_bool(r, t, "mla_use_nope", true);
    need_bool(r, t, "mla_use_output_gate", true);
}

static void read_moe(struct reader *r, struct k3_config *c)
{
    const json_t *t = r->text;
    c->experts = get_count(r, t, "num_experts", 1, 1 << 16);
    c->top_k = get_count(r, t, "num_experts_per_token", 1, 1024);
    if (c->experts && c->top_k > c->experts)
        problem(r, "num_experts_per_token is %u but num_experts is %u", c->top_k, c->experts);
    c->shared = get_count(r, t, "num_shared_experts", 1, 1024);
    c->latent = get_count(r, t, "routed_expert_hidden_size", 1, 1 << 20);
    c->inter = get_count(r, t, "moe_intermediate_size", 1, 1 << 20);
    c->routed_scale = get_number(r, t, "routed_scaling_factor");
    c->renormalize = get_bool(r, t, "moe_renormalize");
    c->latent_norm = get_bool(r, t, "latent_moe_use_norm");
    need_string(r, t, "moe_router_activation_func", "sigmoid");
    need_count(r, t, "num_expert_group", 1);
    need_count(r, t, "topk_group", 1);
    need_count(r, t, "moe_layer_freq", 1);
    c->dense_layers = get_count(r, t, "first_k_dense_replace", 0, K3_MAX_LAYERS);
    if (c->layers && c->dense_layers > c->layers)
        problem(r, "first_k_dense_replace is %u but num_hidden_layers is %u", c->dense_layers,
                c->layers);
    c->dense_inter = get_count(r, t, "intermediate_size", 1, 1 << 24);
}

/* SiTU's two bounds: activation_situ_* in nested configs, situ_* in some flat ones. */
static float read_situ(struct reader *r, const char *key, const char *flat_key)
{
    const bool flat = !json_object_get(r->text, key) && json_object_get(r->text, flat_key);
    return get_positive(r, r->text, flat ? flat_key : key);
}

static int32_t read_id(struct reader *r, const struct k3_config *c, const char *key)
{
    const unsigned before = r->n_problems;
    const uint32_t id = get_count(r, r->text, key, 0, INT32_MAX);
    if (r->n_problems == before && c->vocab && id >= c->vocab)
        problem(r, "%s is %u but vocab_size is %u", key, id, c->vocab);
    return (int32_t)id;
}

static void read_quantization(struct reader *r, const json_t *root, struct k3_config *c)
{
    const json_t *q = json_object_get(r->text, "quantization_config");
    if (!q)
        q = json_object_get(root, "quantization_config");
    if (!q || json_is_null(q))
        return;
    if (!json_is_object(q)) {
        problem(r, "quantization_config must be an object");
        return;
    }
    c->quantized = true;
    need_string(r, q, "format", "mxfp4-pack-quantized");
    const char *key;
    json_t *group;
    json_object_foreach((json_t *)json_object_get(q, "config_groups"), key, group)
    {
        const json_t *w = json_object_get(group, "weights");
        const json_t *size = json_object_get(w, "group_size");
        if (json_is_integer(size) && json_integer_value(size) != 32)
            problem(r, "quantization_config.%.40s.weights.group_size is %lld, only 32 is supported",
                    key, (long long)json_integer_value(size));
    }
}

/* Values of all matrices outside the experts, rather too many than too few: every layer counts as the
 * wider kind. Widths within their bounds do not overflow it. */
static uint64_t trunk_values(const struct k3_config *c)
{
    const uint64_t e = c->hidden, p = k3_kda_width(c), h = c->heads;
    const uint64_t kda = p * (5 * e + c->kda_dim) + e * (c->kda_heads + (uint64_t)c->kda_dim);
    const uint64_t mla = e * (2 * h * c->v_head + c->q_lora + k3_latent_width(c)) +
                         h * ((uint64_t)c->nope + c->rope) * c->q_lora +
                         h * ((uint64_t)c->nope + c->v_head) * c->kv_lora;
    const uint64_t shared = (uint64_t)c->inter * c->shared;
    const uint64_t inner = shared > c->dense_inter ? shared : c->dense_inter;
    return c->layers * ((kda > mla ? kda : mla) + e * (3 * inner + 2ull * c->latent + c->experts)) +
           e * c->vocab;
}

/* What multiplies is bounded, so that sizes computed from it cannot overflow, and the tables made from
 * the config alone stay small: they are there before a budget can be compared with anything. */
static void check_product(struct reader *r, const char *what, uint64_t product, uint64_t most)
{
    if (product > most)
        problem(r, "%s comes to %llu, more than any K3 model has", what,
                (unsigned long long)product);
}

static void check_products(struct reader *r, const struct k3_config *c)
{
    const uint64_t width = 1u << 26;
    const unsigned before = r->n_problems;
    check_product(r, "linear_attn_config num_heads x head_dim", k3_kda_width(c), width);
    check_product(r, "num_attention_heads x (qk_nope_head_dim + qk_rope_head_dim)",
                  (uint64_t)c->heads * (c->nope + c->rope), width);
    check_product(r, "num_attention_heads x (qk_nope_head_dim + v_head_dim)",
                  (uint64_t)c->heads * (c->nope + c->v_head), width);
    check_product(r, "moe_intermediate_size x num_shared_experts", (uint64_t)c->inter * c->shared,
                  width);
    check_product(r, "num_hidden_layers x num_experts", (uint64_t)c->layers * c->experts, 1u << 20);
    if (r->n_problems == before)
        check_product(r, "what the matrices outside the experts hold", trunk_values(c),
                      UINT64_C(1) << 40);
}

static void read_all(struct reader *r, const json_t *root, struct k3_config *c)
{
    const json_t *t = r->text;
    c->hidden = get_count(r, t, "hidden_size", 1, 1 << 20);
    c->layers = get_count(r, t, "num_hidden_layers", 1, K3_MAX_LAYERS);
    c->vocab = get_count(r, t, "vocab_size", 1, 1 << 24);
    c->rms_eps = get_positive(r, t, "rms_norm_eps");
    if (r->linear)
        read_linear(r, c);
    read_attention(r, c);
    read_moe(r, c);
    c->block = get_count(r, t, "attn_res_block_size", 1, K3_MAX_LAYERS);
    need_string(r, t, "hidden_act", "situ");
    c->situ_beta = read_situ(r, "activation_situ_beta", "situ_beta");
    c->situ_linear_beta = read_situ(r, "activation_situ_linear_beta", "situ_linear_beta");
    need_bool(r, t, "tie_word_embeddings", false);
    need_count(r, t, "num_nextn_predict_layers", 0);
    c->bos = read_id(r, c, "bos_token_id");
    c->eos = read_id(r, c, "eos_token_id");
    c->pad = read_id(r, c, "pad_token_id");
    read_quantization(r, root, c);
    check_products(r, c);
}

/* Decides where the keys are: under text_config, or at the top; the linear-attention block in its
 * own object, or hoisted. */
static void find_blocks(struct reader *r, const json_t *root)
{
    r->text = root;
    const json_t *nested = json_object_get(root, "text_config");
    if (json_is_object(nested))
        r->text = nested;
    else if (nested)
        problem(r, "text_config must be an object");
    r->linear = json_object_get(r->text, "linear_attn_config");
    if (r->linear && !json_is_object(r->linear)) {
        problem(r, "linear_attn_config must be an object");
        r->linear = NULL;
    } else if (!r->linear && json_object_get(r->text, "kda_num_heads")) {
        r->linear = r->text;
        r->hoisted = true;
    } else if (!r->linear) {
        problem(r, "linear_attn_config is missing");
    }
}

static json_t *load(const char *dir, const char *name, char *path, size_t cap, json_error_t *je)
{
    snprintf(path, cap, "%s/%s", dir, name);
    return json_load_file(path, JSON_REJECT_DUPLICATES, je);
}

enum k3_status k3_config_read(const char *dir, struct k3_config *c, struct k3_error *err)
{
    memset(c, 0, sizeof *c);
    char path[4096];
    json_error_t je;
    json_t *root = load(dir, "config.json", path, sizeof path, &je);
    if (!root) {
        if (json_error_code(&je) == json_error_cannot_open_file)
            return k3_fail(err, K3_FAILED,
                           "%s: cannot be read (is this the folder of a K3 checkpoint?)", path);
        return k3_fail(err, K3_USAGE, "%s:%d:%d: not valid JSON: %s", path, je.line, je.column,
                       je.text);
    }
    struct reader r = {0};
    if (!json_is_object(root)) {
        problem(&r, "the file must hold one JSON object");
    } else {
        find_blocks(&r, root);
        read_all(&r, root, c);
    }
    json_decref(root);
    if (r.n_problems)
        return k3_fail(err, K3_USAGE,
                       "%s: %u problem%s: %s. A config read half is another model, so nothing is "
                       "assumed; get the file that belongs to the checkpoint",
                       path, r.n_problems, r.n_problems == 1 ? "" : "s", r.problems);
    return K3_OK;
}

void k3_config_released(struct k3_config *c)
{
    *c = (struct k3_config){
        .hidden = 7168, .layers = 93, .vocab = 163840, .rms_eps = 1e-5f,
        .kda_heads = 96, .kda_dim = 128, .conv_taps = 4, .gate_lower = -5,
        .heads = 96, .q_lora = 1536, .kv_lora = 512, .nope = 128, .rope = 64, .v_head = 128,
        .experts = 896, .top_k = 16, .shared = 2, .latent = 3584, .inter = 3072,
        .routed_scale = 1, .renormalize = true, .latent_norm = true,
        .dense_layers = 1, .dense_inter = 33792, .block = 12,
        .situ_beta = 4, .situ_linear_beta = 25,
        .bos = 163584, .eos = 163586, .pad = 163839, .quantized = true};
    for (uint32_t l = 0; l < c->layers; l++)
        c->is_mla[l] = l % 4 == 3 || l + 1 == c->layers;
}

uint32_t k3_count_mla(const struct k3_config *c)
{
    uint32_t n = 0;
    for (uint32_t l = 0; l < c->layers; l++)
        n += c->is_mla[l];
    return n;
}

uint32_t k3_count_moe(const struct k3_config *c)
{
    return c->layers - c->dense_layers;
}

static size_t put_id(int32_t *ids, size_t n, size_t max, const json_t *v)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > INT32_MAX)
        return n;
    const int32_t id = (int32_t)json_integer_value(v);
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return n;
    if (n < max)
        ids[n++] = id;
    return n;
}

size_t k3_config_stop_ids(const char *dir, const struct k3_config *c, int32_t *ids, size_t max)
{
    size_t n = 0;
    if (max > 0)
        ids[n++] = c->eos;
    char path[4096];
    json_error_t je;
    json_t *root = load(dir, "generation_config.json", path, sizeof path, &je);
    const json_t *v = json_object_get(root, "eos_token_id");
    if (json_is_array(v))
        for (size_t i = 0; i < json_array_size(v); i++)
            n = put_id(ids, n, max, json_array_get(v, i));
    else
        n = put_id(ids, n, max, v);
    json_decref(root);
    return n;
}
