/* model_config.h - config.json of a K3 checkpoint, both shapes, nothing assumed.
 *
 * Source of the fields and their meaning: docs/model.md. An absent field is an error, never a
 * default: a config read half is a different model that still writes fluent text. */
#ifndef K3_MODEL_CONFIG_H
#define K3_MODEL_CONFIG_H

#include "../k3.h"

#define K3_MAX_LAYERS 4096u

struct k3_config {
    uint32_t hidden, layers, vocab;
    float rms_eps;
    /* KDA */
    uint32_t kda_heads, kda_dim, conv_taps;
    float gate_lower;
    /* MLA */
    uint32_t heads, q_lora, kv_lora, nope, rope, v_head;
    /* MoE */
    uint32_t experts, top_k, shared, latent, inter;
    float routed_scale;
    bool renormalize, latent_norm;
    uint32_t dense_layers, dense_inter;
    /* rest */
    uint32_t block;            /* attn_res_block_size */
    float situ_beta, situ_linear_beta;
    int32_t bos, eos, pad;
    bool quantized;            /* quantization_config says MXFP4 experts */
    bool is_mla[K3_MAX_LAYERS]; /* zero-based */
};

/* Widths that follow. */
static inline size_t k3_kda_width(const struct k3_config *c) /* P */
{
    return (size_t)c->kda_heads * c->kda_dim;
}
static inline size_t k3_latent_width(const struct k3_config *c) /* kv_lora + rope */
{
    return (size_t)c->kv_lora + c->rope;
}
static inline uint32_t k3_snapshots(const struct k3_config *c) /* over a whole pass */
{
    return (c->layers + c->block - 1) / c->block;
}
static inline bool k3_is_moe(const struct k3_config *c, uint32_t layer)
{
    return layer >= c->dense_layers;
}
uint32_t k3_count_mla(const struct k3_config *c);
uint32_t k3_count_moe(const struct k3_config *c);

/* Reads dir/config.json. On K3_USAGE the message lists every missing and contradictory field. */
enum k3_status k3_config_read(const char *dir, struct k3_config *c, struct k3_error *err);

/* What the config.json of the released checkpoint says, for those who have not fetched it yet. */
void k3_config_released(struct k3_config *c);
#define K3_RELEASED_BYTES UINT64_C(1560936091448) /* of its shards */

/* Ids that end a turn: eos of config.json and eos_token_id (number or list) of
 * generation_config.json when that file exists. Returns how many were put. */
size_t k3_config_stop_ids(const char *dir, const struct k3_config *c, int32_t *ids, size_t max);

#endif
