/* synth_text.c - config.json in its three spellings, the index, and the header of a shard. */
#include "synth_plan.h"

static void put_layer_list(FILE *f, const struct k3_synth *s, const char *key, bool mla)
{
    fprintf(f, "\"%s\": [", key);
    const char *comma = "";
    for (uint32_t i = 0; i < s->layers; i++)
        if (synth_is_mla(s, i) == mla) {
            fprintf(f, "%s%u", comma, i + 1);
            comma = ", ";
        }
    fputs("]", f);
}

static void put_linear(FILE *f, const struct k3_synth *s, bool hoisted)
{
    fputs(hoisted ? "" : "\"linear_attn_config\": {", f);
    put_layer_list(f, s, "full_attn_layers", true);
    fputs(", ", f);
    put_layer_list(f, s, "kda_layers", false);
    fprintf(f, ",\n  \"gate_lower_bound\": -5.0, \"%s\": %u, \"%s\": %u, "
            "\"short_conv_kernel_size\": %u, \"use_full_rank_gate\": true",
            hoisted ? "kda_num_heads" : "num_heads", s->kda_heads,
            hoisted ? "kda_head_dim" : "head_dim", s->kda_dim, s->conv);
    fputs(hoisted ? ",\n" : "},\n", f);
}

static void put_quantization(FILE *f)
{
    fputs("  \"quantization_config\": {\"config_groups\": {\"group_0\": {\n"
          "    \"format\": \"mxfp4-pack-quantized\", \"input_activations\": null, "
          "\"output_activations\": null, \"targets\": [\"Linear\"],\n"
          "    \"weights\": {\"dynamic\": false, \"group_size\": 32, \"num_bits\": 4, "
          "\"observer\": \"minmax\",\n"
          "      \"scale_dtype\": \"torch.uint8\", \"strategy\": \"group\", \"symmetric\": true, "
          "\"type\": \"float\"}}},\n"
          "    \"format\": \"mxfp4-pack-quantized\", \"ignore\": [\"re:.*self_attn.*\", "
          "\"re:.*shared_experts.*\",\n"
          "      \"re:.*mlp\\\\.(gate|up|gate_up|down)_proj.*\", \"re:.*lm_head.*\", "
          "\"re:.*vision_tower.*\", \"re:.*mm_projector.*\"],\n"
          "    \"kv_cache_scheme\": null, \"quant_method\": \"compressed-tensors\", "
          "\"quantization_status\": \"compressed\"},\n", f);
}

static void put_text_config(FILE *f, const struct k3_synth *s)
{
    const bool hoisted = s->config == K3_SYNTH_HOISTED;
    fprintf(f, "  \"model_type\": \"kimi_linear\", \"dtype\": \"bfloat16\",\n"
            "  \"hidden_size\": %u, \"num_hidden_layers\": %u, \"vocab_size\": %u, "
            "\"rms_norm_eps\": 1e-05,\n", s->hidden, s->layers, s->vocab);
    put_linear(f, s, hoisted);
    fprintf(f, "  \"num_attention_heads\": %u, \"num_key_value_heads\": %u, \"q_lora_rank\": %u, "
            "\"kv_lora_rank\": %u,\n  \"qk_nope_head_dim\": %u, \"qk_rope_head_dim\": %u, "
            "\"v_head_dim\": %u, \"mla_use_nope\": true, \"mla_use_output_gate\": true,\n",
            s->heads, s->heads, s->q_lora, s->kv_lora, s->nope, s->rope, s->v_dim);
    fprintf(f, "  \"num_experts\": %u, \"num_experts_per_token\": %u, \"num_shared_experts\": %u, "
            "\"routed_expert_hidden_size\": %u,\n  \"moe_intermediate_size\": %u, "
            "\"routed_scaling_factor\": %u.%04u, \"moe_renormalize\": %s, "
            "\"latent_moe_use_norm\": %s,\n", s->experts, s->top_k, s->shared, s->latent,
            s->inner, s->routed_scale / 16, s->routed_scale % 16 * 625,
            s->no_renorm ? "false" : "true", s->no_latent_norm ? "false" : "true");
    fprintf(f, "  \"moe_router_activation_func\": \"sigmoid\", \"num_expert_group\": 1, "
            "\"topk_group\": 1, \"moe_layer_freq\": 1,\n  \"first_k_dense_replace\": %u, "
            "\"intermediate_size\": %u, \"attn_res_block_size\": %u,\n",
            s->dense_layers, s->dense_inner, s->res_block);
    fprintf(f, "  \"hidden_act\": \"situ\", \"%s\": 4.0, \"%s\": 25.0, "
            "\"tie_word_embeddings\": false,\n",
            hoisted ? "situ_beta" : "activation_situ_beta",
            hoisted ? "situ_linear_beta" : "activation_situ_linear_beta");
    if (!s->bf16_experts)
        put_quantization(f);
    const uint32_t ranks = s->vocab - 256;
    fprintf(f, "  \"num_nextn_predict_layers\": 0, \"max_position_embeddings\": 1048576,\n"
            "  \"bos_token_id\": %u, \"eos_token_id\": %u, \"pad_token_id\": %u", ranks, ranks + 2,
            s->vocab - 1);
}

bool synth_put_config(const struct k3_synth *s, FILE *f)
{
    if (s->config != K3_SYNTH_NESTED) {
        fputs("{\n  \"architectures\": [\"KimiLinearForCausalLM\"],\n", f);
        put_text_config(f, s);
        fputs("\n}\n", f);
        return !ferror(f);
    }
    const uint32_t ranks = s->vocab - 256;
    fprintf(f, "{\n\"architectures\": [\"KimiK3ForConditionalGeneration\"],\n"
            "\"model_type\": \"kimi_k3\", \"dtype\": \"bfloat16\",\n"
            "\"bos_token_id\": %u, \"eos_token_id\": %u, \"pad_token_id\": %u, "
            "\"media_placeholder_token_id\": %u,\n\"text_config\": {\n", ranks, ranks + 2,
            s->vocab - 1, ranks + 21);
    put_text_config(f, s);
    fprintf(f, "\n},\n\"tie_word_embeddings\": false,\n"
            "\"vision_config\": {\"model_type\": \"kimi_k3_vision\", \"patch_size\": 2, "
            "\"text_hidden_size\": %u, \"vt_hidden_size\": 8, \"vt_num_hidden_layers\": 0}\n}\n",
            s->hidden);
    return !ferror(f);
}

bool synth_put_generation_config(const struct k3_synth *s, FILE *f)
{
    fprintf(f, "{\n  \"max_length\": 1048576,\n  \"eos_token_id\": %u\n}\n", s->vocab - 256 + 2);
    return !ferror(f);
}

/* ---- safetensors ------------------------------------------------------------------------------- */

void synth_shard_name(char name[64], uint32_t shard, uint32_t shards)
{
    snprintf(name, 64, "model-%05u-of-%06u.safetensors", shard + 1, shards);
}

bool synth_put_index(const struct synth_plan *p, FILE *f)
{
    fprintf(f, "{\n\"metadata\": {\"total_size\": %llu},\n\"weight_map\": {\n",
            (unsigned long long)p->bytes);
    for (size_t i = 0; i < p->n; i++) {
        char name[64];
        synth_shard_name(name, p->v[i].shard, p->shards);
        fprintf(f, "\"%s\": \"%s\"%s\n", p->v[i].name, name, i + 1 < p->n ? "," : "");
    }
    fputs("}\n}\n", f);
    return !ferror(f);
}

bool synth_put_header(const struct synth_tensor *t, size_t n, FILE *f)
{
    static const char *const dtype[] = {"F32", "BF16", "U8"};
    for (size_t i = 0; i < n; i++, t++) {
        fprintf(f, "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[%u", i ? ',' : '{', t->name,
                dtype[t->dtype], t->shape[0]);
        for (uint8_t d = 1; d < t->ndim; d++)
            fprintf(f, ",%u", t->shape[d]);
        fprintf(f, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)t->begin,
                (unsigned long long)t->end);
    }
    fputc('}', f);
    return !ferror(f);
}
