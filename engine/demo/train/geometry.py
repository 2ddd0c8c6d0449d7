"""Geometry of the demo model, in the words of config.json."""

HIDDEN, LAYERS, DENSE_LAYERS, RES_BLOCK = 128, 8, 1, 4
DENSE_INNER = 384
KDA_HEADS, KDA_DIM, CONV = 4, 32, 4
GATE_LOWER = -5.0
MLA_LAYERS = (4, 8)                     # one-based, as in config.json
HEADS, Q_LORA, KV_LORA, NOPE, ROPE, V_DIM = 4, 64, 48, 24, 8, 32
EXPERTS, TOP_K, SHARED, LATENT, INNER = 32, 2, 1, 64, 96
RANKS = 1280                            # tokens of the vocabulary without the 256 special ones
VOCAB = RANKS + 256
EPS, MLA_EPS = 1e-5, 1e-6
SITU_BETA, SITU_LINEAR_BETA = 4.0, 25.0


def kda_layers():
    return [i + 1 for i in range(LAYERS) if i + 1 not in MLA_LAYERS]


def config():
    """config.json in the released (nested) shape."""
    linear = {"full_attn_layers": list(MLA_LAYERS), "kda_layers": kda_layers(),
              "gate_lower_bound": GATE_LOWER, "num_heads": KDA_HEADS, "head_dim": KDA_DIM,
              "short_conv_kernel_size": CONV, "use_full_rank_gate": True}
    weights = {"dynamic": False, "group_size": 32, "num_bits": 4, "observer": "minmax",
               "scale_dtype": "torch.uint8", "strategy": "group", "symmetric": True,
               "type": "float"}
    quantization = {
        "config_groups": {"group_0": {"format": "mxfp4-pack-quantized", "input_activations": None,
                                      "output_activations": None, "targets": ["Linear"],
                                      "weights": weights}},
        "format": "mxfp4-pack-quantized",
        "ignore": ["re:.*self_attn.*", "re:.*shared_experts.*",
                   "re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "re:.*lm_head.*",
                   "re:.*vision_tower.*", "re:.*mm_projector.*"],
        "kv_cache_scheme": None, "quant_method": "compressed-tensors",
        "quantization_status": "compressed"}
    ids = {"bos_token_id": RANKS, "eos_token_id": RANKS + 2, "pad_token_id": VOCAB - 1}
    text = {
        "model_type": "kimi_linear", "dtype": "bfloat16", "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS, "vocab_size": VOCAB, "rms_norm_eps": EPS,
        "linear_attn_config": linear,
        "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "q_lora_rank": Q_LORA,
        "kv_lora_rank": KV_LORA, "qk_nope_head_dim": NOPE, "qk_rope_head_dim": ROPE,
        "v_head_dim": V_DIM, "mla_use_nope": True, "mla_use_output_gate": True,
        "num_experts": EXPERTS, "num_experts_per_token": TOP_K, "num_shared_experts": SHARED,
        "routed_expert_hidden_size": LATENT, "moe_intermediate_size": INNER,
        "routed_scaling_factor": 1.0, "moe_renormalize": True, "latent_moe_use_norm": True,
        "moe_router_activation_func": "sigmoid", "num_expert_group": 1, "topk_group": 1,
        "moe_layer_freq": 1, "first_k_dense_replace": DENSE_LAYERS,
        "intermediate_size": DENSE_INNER, "attn_res_block_size": RES_BLOCK,
        "hidden_act": "situ", "activation_situ_beta": SITU_BETA,
        "activation_situ_linear_beta": SITU_LINEAR_BETA, "tie_word_embeddings": False,
        "quantization_config": quantization, "num_nextn_predict_layers": 0,
        "max_position_embeddings": 1048576, **ids}
    return {"architectures": ["KimiK3ForConditionalGeneration"], "model_type": "kimi_k3",
            "dtype": "bfloat16", **ids, "text_config": text, "tie_word_embeddings": False}
