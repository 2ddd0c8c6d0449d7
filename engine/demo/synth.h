/* synth.h - synthetic checkpoints in the released layout, for any geometry.
 *
 * The weights are noise of realistic size: activations stay finite, every part of the graph shows in
 * the logits, routing varies from token to token. The bytes are a function of the struct below
 * alone: the generator is integer arithmetic plus single roundings of IEEE operations, so they are
 * the same on every machine and at every thread count.
 *
 * The storage options (scatter, f32_small, bf16_experts, no_prefix, config, short_a_log) change how
 * the model is stored, never what it computes: its values are the same in every storage. But for
 * holes, which leave the values out. */
#ifndef K3_SYNTH_H
#define K3_SYNTH_H

#include <stdbool.h>
#include <stdint.h>

#include "../k3.h"

enum k3_synth_config {
    K3_SYNTH_NESTED,  /* as released: text_config, text_config.linear_attn_config */
    K3_SYNTH_FLAT,    /* text-only export: top level, linear_attn_config still nested */
    K3_SYNTH_HOISTED, /* the linear block hoisted too (kda_num_heads, situ_beta, ...) */
};

struct k3_synth {
    /* geometry, in the words of config.json */
    uint32_t layers, dense_layers, hidden, dense_inner, res_block;
    uint32_t kda_heads, kda_dim, conv; /* heads <= dim unless short_a_log */
    uint32_t heads, q_lora, kv_lora, nope, rope, v_dim;
    uint32_t mla_every;                /* one-based layers i with i % mla_every == 0, and the last */
    uint32_t experts, top_k, shared, latent, inner; /* latent, inner: multiples of 32 */
    uint32_t vocab;                    /* ranks of the tokenizer + 256; at least 512 */
    uint32_t routed_scale;             /* routed_scaling_factor in sixteenths: 16 = 1.0 */
    uint32_t no_renorm, no_latent_norm; /* moe_renormalize, latent_moe_use_norm false */
    /* storage; 0 = as released */
    uint32_t scatter;      /* n > 0: n shards, tensors dealt out and ordered at random */
    uint32_t f32_small;    /* vectors and the router as F32 */
    uint32_t bf16_experts; /* routed experts unpacked to BF16 */
    uint32_t no_prefix;    /* no "language_model.", no vision tensors */
    uint32_t short_a_log;  /* A_log without padding: kda_heads entries */
    uint32_t config;       /* enum k3_synth_config */
    uint32_t holes;        /* shards whose data are holes: all zero, and no disk space for it. A model
                            * of any size can be opened and run so; its tokens mean nothing */
    uint32_t seed;
};

/* "tiny", "odd", "mid", "full"; false when there is no such preset. */
bool k3_synth_preset(const char *name, struct k3_synth *out);
/* The names, NULL-terminated, and what each is for. */
extern const char *const k3_synth_preset_names[];
const char *k3_synth_preset_about(const char *name);

/* The member of that name as spelled above with '-' for '_' ("dense-layers"), or NULL.
 * k3_synth_field_name(i) lists the names, NULL behind the last. */
uint32_t *k3_synth_field(struct k3_synth *s, const char *name);
const char *k3_synth_field_name(unsigned i);

/* K3_USAGE with every contradiction in one message, or K3_OK. */
enum k3_status k3_synth_check(const struct k3_synth *s, struct k3_error *err);

/* Bytes of all tensors; 0 on an invalid geometry or when memory is short. */
uint64_t k3_synth_bytes(const struct k3_synth *s);

/* Writes the checkpoint into the folder `dir`, which must not exist or be empty. It is made beside
 * it under a temporary name and renamed when it is complete, so `dir` is whole or absent. Holds
 * about 10 MB plus the table of tensors. */
enum k3_status k3_synth_write(const struct k3_synth *s, const char *dir, k3_progress_fn progress,
                              void *ud, struct k3_error *err);

/* Removes a folder that holds plain files only; other content is left alone. */
void k3_synth_remove(const char *dir);

#endif
