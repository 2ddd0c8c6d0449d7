/* test_model_faults.c - what the engine refuses, with which words; and the storages it must accept.
 *
 * Each test damages its own copy of the generated "tiny" model and looks at status and message. */
#include <config.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"

#define PREFIX "language_model.model.layers."
#define EXPERT(l, x) PREFIX l ".block_sparse_moe.experts." x

/* A fresh tiny model, changed by nobody else. */
struct model {
    char scratch[FIXTURE_PATH], dir[FIXTURE_PATH];
};

static int make_model(void **state)
{
    struct model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    fixture_scratch(m->scratch);
    fixture_join(m->dir, m->scratch, "model");
    const struct k3_synth s = fixture_preset("tiny");
    fixture_write(&s, m->dir);
    *state = m;
    return 0;
}

static int drop_model(void **state)
{
    struct model *m = *state;
    fixture_scratch_end(m->scratch);
    free(m);
    return 0;
}

static void expect_text(const struct k3_error *err, const char *text)
{
    if (!strstr(err->message, text))
        fail_msg("the message lacks '%s': %s", text, err->message);
}

/* Opening the model fails with this status; the message has all of the texts (NULL ends them). */
static void refused(const struct model *m, enum k3_status status, const char *const *texts)
{
    const struct k3_options opt = fixture_options(m->dir);
    const struct k3_error err = fixture_refusal(&opt);
    if (err.status != status)
        fail_msg("status %d, expected %d: %s", (int)err.status, (int)status, err.message);
    for (; *texts; texts++)
        expect_text(&err, *texts);
}
#define REFUSED(m, status, ...) refused(m, status, (const char *const[]){__VA_ARGS__, NULL})

static void edit_config(const struct model *m, const char *old, const char *new_text)
{
    fixture_replace(m->dir, "config.json", old, new_text);
}

/* ---- config.json ------------------------------------------------------------------------------- */

static void all_missing_fields_are_named(void **state)
{
    const struct model *m = *state;
    edit_config(m, "\"q_lora_rank\": 48, \"kv_lora_rank\": 32,", "");
    edit_config(m, "\"num_experts\": 10,", "");
    edit_config(m, "\"hidden_act\": \"situ\",", "");
    edit_config(m, "\"gate_lower_bound\": -5.0,", "");
    edit_config(m, "\"rms_norm_eps\": 1e-05,", "");
    edit_config(m, "\"latent_moe_use_norm\": true,", "");
    REFUSED(m, K3_USAGE, "config.json", "q_lora_rank is missing", "kv_lora_rank is missing",
            "num_experts is missing", "hidden_act is missing", "gate_lower_bound is missing",
            "rms_norm_eps is missing", "latent_moe_use_norm is missing");
}

static void every_field_is_needed(void **state)
{
    const struct model *m = *state;
    static const char *const keys[] = {
        "hidden_size", "num_hidden_layers", "vocab_size", "rms_norm_eps", "full_attn_layers",
        "kda_layers", "gate_lower_bound", "num_heads", "head_dim", "short_conv_kernel_size",
        "use_full_rank_gate", "num_attention_heads", "num_key_value_heads", "q_lora_rank",
        "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "mla_use_nope",
        "mla_use_output_gate", "num_experts", "num_experts_per_token", "num_shared_experts",
        "routed_expert_hidden_size", "moe_intermediate_size", "routed_scaling_factor",
        "moe_renormalize", "latent_moe_use_norm", "moe_router_activation_func", "num_expert_group",
        "topk_group", "moe_layer_freq", "first_k_dense_replace", "intermediate_size",
        "attn_res_block_size", "hidden_act", "activation_situ_beta", "activation_situ_linear_beta",
        "tie_word_embeddings", "num_nextn_predict_layers", "bos_token_id", "eos_token_id",
        "pad_token_id",
    };
    json_t *top = fixture_json(m->dir, "config.json");
    json_t *text = json_object_get(top, "text_config");
    json_t *linear = json_object_get(text, "linear_attn_config");
    char path[FIXTURE_PATH];
    fixture_join(path, m->dir, "config.json");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        json_t *home = json_object_get(text, keys[i]) ? text : linear;
        json_t *value = json_incref(json_object_get(home, keys[i]));
        assert_non_null(value);
        json_object_del(home, keys[i]);
        assert_int_equal(json_dump_file(top, path, 0), 0);
        char want[96];
        snprintf(want, sizeof want, "%s is missing", keys[i]);
        REFUSED(m, K3_USAGE, "config.json", want);
        json_object_set_new(home, keys[i], value);
    }
    json_decref(top);
}

static void contradictions_are_named(void **state)
{
    const struct model *m = *state;
    edit_config(m, "\"num_key_value_heads\": 3", "\"num_key_value_heads\": 2");
    edit_config(m, "\"num_experts_per_token\": 2", "\"num_experts_per_token\": 11");
    edit_config(m, "\"first_k_dense_replace\": 1", "\"first_k_dense_replace\": 8");
    edit_config(m, "\"num_expert_group\": 1", "\"num_expert_group\": 4");
    edit_config(m, "\"hidden_act\": \"situ\"", "\"hidden_act\": \"silu\"");
    edit_config(m, "\"mla_use_nope\": true", "\"mla_use_nope\": false");
    edit_config(m, "\"use_full_rank_gate\": true", "\"use_full_rank_gate\": false");
    edit_config(m, "\"moe_layer_freq\": 1", "\"moe_layer_freq\": 2");
    edit_config(m, "\"sigmoid\"", "\"softmax\"");
    REFUSED(m, K3_USAGE, "num_key_value_heads is 2", "num_attention_heads is 3",
            "num_experts_per_token is 11", "first_k_dense_replace is 8", "num_expert_group is 4",
            "hidden_act is \"silu\"", "mla_use_nope is false", "use_full_rank_gate is false",
            "moe_layer_freq is 2", "moe_router_activation_func is \"softmax\"");
}

static void layers_named_twice_or_never(void **state)
{
    const struct model *m = *state;
    edit_config(m, "\"full_attn_layers\": [3, 6, 7]", "\"full_attn_layers\": [3, 4, 7]");
    REFUSED(m, K3_USAGE, "config.json", "layer 4 is named twice");
    edit_config(m, "[3, 4, 7]", "[3, 3, 6, 7]");
    REFUSED(m, K3_USAGE, "layer 3 is named twice");
    edit_config(m, "[3, 3, 6, 7]", "[3, 7]");
    REFUSED(m, K3_USAGE, "layer 6 is in neither");
    edit_config(m, "[3, 7]", "[0, 3, 6, 7, 8]");
    REFUSED(m, K3_USAGE, "full_attn_layers[0]", "full_attn_layers[4]", "1 to 7");
}

static void wrong_types_and_values(void **state)
{
    const struct model *m = *state;
    edit_config(m, "\"hidden_size\": 96", "\"hidden_size\": \"96\"");
    edit_config(m, "\"vocab_size\": 640", "\"vocab_size\": -1");
    edit_config(m, "\"q_lora_rank\": 48", "\"q_lora_rank\": 48.5");
    edit_config(m, "\"moe_renormalize\": true", "\"moe_renormalize\": 1");
    edit_config(m, "\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": 0");
    edit_config(m, "\"group_size\": 32", "\"group_size\": 16");
    REFUSED(m, K3_USAGE, "hidden_size must be an integer", "vocab_size is -1",
            "q_lora_rank must be an integer", "moe_renormalize must be true or false",
            "rms_norm_eps is 0", "group_size is 16");
}

/* Tables are made from the config before any budget can be compared: a few bytes of it must not ask
 * for gigabytes of them. */
static void a_config_of_absurd_size_is_refused(void **state)
{
    const struct model *m = *state;
    edit_config(m, "\"num_experts\": 10", "\"num_experts\": 65536");
    edit_config(m, "\"first_k_dense_replace\": 1", "\"first_k_dense_replace\": 0");
    edit_config(m, "\"num_hidden_layers\": 7", "\"num_hidden_layers\": 17");
    edit_config(m, "[1, 2, 4, 5]", "[1, 2, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]");
    REFUSED(m, K3_USAGE, "config.json", "num_hidden_layers x num_experts comes to 1114112");
    edit_config(m, "\"num_experts\": 65536", "\"num_experts\": 10");
    edit_config(m, "\"hidden_size\": 96", "\"hidden_size\": 1048576");
    edit_config(m, "\"vocab_size\": 640", "\"vocab_size\": 16777216");
    REFUSED(m, K3_USAGE, "config.json", "the matrices outside the experts hold comes to 17");
}

static void no_config_or_no_json(void **state)
{
    const struct model *m = *state;
    edit_config(m, "\"hidden_size\": 96,", "\"hidden_size\": 96,,");
    REFUSED(m, K3_USAGE, "config.json:", "not valid JSON");
    char path[FIXTURE_PATH];
    fixture_join(path, m->dir, "config.json");
    assert_int_equal(unlink(path), 0);
    REFUSED(m, K3_FAILED, "config.json", "cannot be read");
}

/* ---- tensors ----------------------------------------------------------------------------------- */

static void missing_tensors_are_named(void **state)
{
    const struct model *m = *state;
    fixture_rename(m->dir, PREFIX "2.self_attn.kv_a_layernorm.weight",
                   PREFIX "2.self_attn.kv_a_layernorm.WEIGHT");
    fixture_rename(m->dir, EXPERT("3", "7.w2.weight_scale"), EXPERT("3", "7.w2.weight_scalE"));
    fixture_rename(m->dir, EXPERT("5", "0.w1.weight_packed"), EXPERT("9", "0.w1.weight_packed"));
    fixture_rename(m->dir, "language_model.lm_head.weight", "language_model.lm_HEAD.weight");
    REFUSED(m, K3_FAILED, m->dir, PREFIX "2.self_attn.kv_a_layernorm.weight is missing",
            EXPERT("3", "7.w2.weight_scale is missing"),
            EXPERT("5", "0.w1.weight_packed is missing"), "lm_head.weight is missing");
}

/* A model that was cut short: the config promises more layers and experts than there are. */
static void missing_layers_and_experts(void **state)
{
    const struct model *m = *state;
    edit_config(m, "\"num_experts\": 10", "\"num_experts\": 12");
    REFUSED(m, K3_FAILED, "84 tensors are missing or wrong", PREFIX "1.block_sparse_moe.gate.weight",
            "has shape [10, 96]", "expected [12, 96]", "and 78 more");
    edit_config(m, "\"num_experts\": 12", "\"num_experts\": 10");
    edit_config(m, "\"num_hidden_layers\": 7", "\"num_hidden_layers\": 8");
    edit_config(m, "\"kda_layers\": [1, ", "\"kda_layers\": [8, 1, ");
    REFUSED(m, K3_FAILED, PREFIX "7.input_layernorm.weight is missing", "and ", "more");
}

static void wrong_shapes_are_named(void **state)
{
    const struct model *m = *state;
    fixture_edit_header(m->dir, PREFIX "0.mlp.gate_proj.weight", "[128,96]", "[96,128]");
    fixture_edit_header(m->dir, PREFIX "1.self_attn.q_conv1d.weight", "[48,1,4]", "[48,4,1]");
    fixture_edit_header(m->dir, EXPERT("5", "3.w1.weight_packed"), "[32,32]", "[16,64]");
    REFUSED(m, K3_FAILED, PREFIX "0.mlp.gate_proj.weight", "[96, 128]", "[128, 96]",
            "model-00001-of-000010.safetensors", PREFIX "1.self_attn.q_conv1d.weight",
            "[48, 4, 1]", "[48, 1, 4]", EXPERT("5", "3.w1.weight_packed"), "[16, 64]");
}

static void wrong_dtypes_are_named(void **state)
{
    const struct model *m = *state;
    fixture_edit_header(m->dir, PREFIX "4.self_attn.f_a_proj.weight", "\"BF16\"", "\"F16\" ");
    fixture_edit_header(m->dir, PREFIX "6.self_attn.q_a_proj.weight", "\"BF16\"", "\"I16\" ");
    fixture_edit_header(m->dir, EXPERT("2", "0.w3.weight_packed"), "\"U8\"", "\"I8\"");
    REFUSED(m, K3_FAILED, PREFIX "4.self_attn.f_a_proj.weight", "dtype F16", "BF16 or F32",
            PREFIX "6.self_attn.q_a_proj.weight", "dtype I16", EXPERT("2", "0.w3.weight_packed"),
            "dtype I8", "expected U8");
}

/* ---- contents ---------------------------------------------------------------------------------- */

static struct k3_error feed_error(const char *dir, enum k3_want want)
{
    static const int32_t ids[] = {384, 3, 300, 301, 17, 5};
    struct k3_error err = {.status = K3_OK};
    struct k3_options opt = fixture_options(dir);
    opt.full_logits = want == K3_WANT_ALL;
    k3_engine *e = fixture_engine(&opt);
    k3_feed(e, ids, sizeof ids / sizeof ids[0], want, NULL, NULL, &err);
    k3_close(e);
    return err;
}

static void nan_scale_names_the_expert(void **state)
{
    const struct model *m = *state;
    const unsigned char nan_scale = 255;
    /* Ten experts, two per token and six tokens: damage them all, the first one met is named. */
    for (int x = 0; x < 10; x++) {
        char name[128];
        snprintf(name, sizeof name, EXPERT("4", "%d.w2.weight_scale"), x);
        const struct fixture_tensor t = fixture_find(m->dir, name);
        fixture_poke(m->dir, t.shard, t.begin + 5, &nan_scale, 1);
    }
    const struct k3_error err = feed_error(m->dir, K3_WANT_LAST);
    assert_int_equal(err.status, K3_FAILED);
    expect_text(&err, "layer 4");
    expect_text(&err, "expert ");
    expect_text(&err, "w2");
    expect_text(&err, "255");
    expect_text(&err, "model-00005-of-000010.safetensors");
}

static void poke_bf16_nan(const struct model *m, const char *tensor, uint64_t element)
{
    static const unsigned char nan[2] = {0xc0, 0x7f};
    const struct fixture_tensor t = fixture_find(m->dir, tensor);
    fixture_poke(m->dir, t.shard, t.begin + 2 * element, nan, 2);
}

static void nan_weights_never_become_tokens(void **state)
{
    const struct model *m = *state;
    poke_bf16_nan(m, "language_model.model.norm.weight", 11);
    const struct k3_error err = feed_error(m->dir, K3_WANT_ALL);
    assert_int_equal(err.status, K3_UNSOUND);
    expect_text(&err, "not finite");
    expect_text(&err, m->dir);
}

static void one_nan_logit_is_seen(void **state)
{
    const struct model *m = *state;
    poke_bf16_nan(m, "language_model.lm_head.weight", 96 * 77 + 4);
    const struct k3_error err = feed_error(m->dir, K3_WANT_LAST);
    assert_int_equal(err.status, K3_UNSOUND);
    expect_text(&err, "not finite");
}

/* An expert that is never chosen would leave no trace in the logits. */
static void a_nan_in_the_router_is_seen(void **state)
{
    const struct model *m = *state;
    static const unsigned char nan[4] = {0, 0, 0xc0, 0x7f};
    const struct fixture_tensor t =
        fixture_find(m->dir, PREFIX "4.block_sparse_moe.gate.e_score_correction_bias");
    fixture_poke(m->dir, t.shard, t.begin + 4 * 7, nan, sizeof nan);
    struct k3_error err = feed_error(m->dir, K3_WANT_LAST);
    assert_int_equal(err.status, K3_UNSOUND);
    expect_text(&err, "layer 4: the router's score of expert 7 is not a number");
    poke_bf16_nan(m, PREFIX "2.block_sparse_moe.gate.weight", 96 * 3 + 50);
    err = feed_error(m->dir, K3_WANT_LAST);
    assert_int_equal(err.status, K3_UNSOUND);
    expect_text(&err, "layer 2: the router's score of expert 3 is not a number");
}

/* Headers are read by several threads; the message is that of the first faulty shard, always. */
static void the_first_faulty_shard_is_named(void **state)
{
    const struct model *m = *state;
    const struct k3_options opt = fixture_options(m->dir);
    for (unsigned i = 9; i > 2; i -= 3) {
        char name[64];
        snprintf(name, sizeof name, "model-%05u-of-000010.safetensors", i);
        fixture_poke(m->dir, name, 8, "[", 1);
        const struct k3_error err = fixture_refusal(&opt);
        assert_int_equal(err.status, K3_FAILED);
        expect_text(&err, name);
    }
}

/* The file shrinks while the engine runs: the step fails, and says where. */
static void shard_cut_under_us(void **state)
{
    const struct model *m = *state;
    static const int32_t ids[] = {384, 3};
    struct k3_error err = {.status = K3_OK};
    const struct k3_options opt = fixture_options(m->dir);
    k3_engine *e = fixture_engine(&opt);
    char path[FIXTURE_PATH];
    fixture_join(path, m->dir, "model-00004-of-000010.safetensors");
    assert_int_equal(truncate(path, 60000), 0);
    assert_int_equal(k3_feed(e, ids, 2, K3_WANT_LAST, NULL, NULL, &err), K3_FAILED);
    expect_text(&err, "model-00004-of-000010.safetensors");
    /* Nothing more comes from this timeline until it is reset. */
    assert_int_equal(k3_feed(e, ids, 2, K3_WANT_LAST, NULL, NULL, &err), K3_FAILED);
    expect_text(&err, "reset");
    k3_close(e);
}

/* ---- requests ---------------------------------------------------------------------------------- */

static void expect_usage(k3_engine *e, const int32_t *ids, size_t n, const char *a, const char *b)
{
    struct k3_error err = {.status = K3_OK};
    const uint32_t before = k3_position(e);
    assert_int_equal(k3_feed(e, ids, n, K3_WANT_LAST, NULL, NULL, &err), K3_USAGE);
    expect_text(&err, a);
    expect_text(&err, b);
    assert_int_equal(k3_position(e), before);
}

static void bad_ids_and_long_prompts(void **state)
{
    const struct model *m = *state;
    struct k3_options opt = fixture_options(m->dir);
    opt.context = 12;
    k3_engine *e = fixture_engine(&opt);
    const int32_t negative[] = {5, -3}, large[] = {5, 6, 640}, good[13] = {384, 1, 2, 3};
    expect_usage(e, negative, 2, "-3", "out of range");
    expect_usage(e, large, 3, "640", "0 to 639");
    expect_usage(e, good, 0, "no tokens", "");
    expect_usage(e, good, 13, "13 tokens do not fit", "of 12 positions");
    struct k3_error err;
    assert_int_equal(k3_feed(e, good, 10, K3_WANT_LAST, NULL, NULL, &err), K3_OK);
    expect_usage(e, good, 3, "3 tokens do not fit", "10 of 12");
    assert_int_equal(k3_feed(e, good, 2, K3_WANT_LAST, NULL, NULL, &err), K3_OK);
    expect_usage(e, good, 1, "do not fit", "12 of 12");
    k3_close(e);
}

static void small_budgets_are_refused(void **state)
{
    const struct model *m = *state;
    struct k3_options opt = fixture_options(m->dir);
    opt.budget = 1000000;
    struct k3_error err = fixture_refusal(&opt);
    assert_int_equal(err.status, K3_FAILED);
    expect_text(&err, "0.001 GB");
    expect_text(&err, "--budget");
    const char *least = strstr(err.message, "at least ");
    assert_non_null(least);
    assert_true(strtod(least + 9, NULL) > 0.001);
    /* A longer context needs more, and is named. */
    opt.context = 50u * 1000 * 1000;
    opt.budget = 1000u * 1000 * 1000;
    err = fixture_refusal(&opt);
    assert_int_equal(err.status, K3_FAILED);
    expect_text(&err, "50000000 positions");
    expect_text(&err, "--context");
}

static void parts_that_do_not_fit(void **state)
{
    const struct model *m = *state;
    struct k3_options opt = fixture_options(m->dir);
    opt.ring = 8000ull * 1000 * 1000;
    struct k3_error err = fixture_refusal(&opt);
    assert_int_equal(err.status, K3_FAILED);
    expect_text(&err, "a ring of 8.0");
    opt = fixture_options(m->dir);
    opt.isa = K3_ISA_SCALAR;
    opt.chunk = 100000;
    opt.context = 100000;
    opt.full_logits = true;
    opt.budget = 400u * 1000 * 1000;
    err = fixture_refusal(&opt);
    assert_int_equal(err.status, K3_FAILED);
    expect_text(&err, "100000");
    expect_text(&err, "0.400 GB");
}

/* ---- storages that mean the same model --------------------------------------------------------- */

static float *logits_of(const char *dir, size_t *n)
{
    static const int32_t ids[] = {384, 3, 300, 301, 17, 5, 386, 639, 0, 255, 256, 320, 44, 45};
    struct k3_options opt = fixture_options(dir);
    opt.full_logits = true;
    opt.chunk = 5;
    k3_engine *e = fixture_engine(&opt);
    float *rows = fixture_logits(e, ids, sizeof ids / sizeof ids[0]);
    *n = sizeof ids / sizeof ids[0] * k3_get_plan(e)->vocab;
    k3_close(e);
    return rows;
}

static void same_model(const struct model *m, const char *what, const struct k3_synth *s)
{
    char dir[FIXTURE_PATH];
    fixture_join(dir, m->scratch, "other");
    fixture_write(s, dir);
    size_t n, n_other;
    float *released = logits_of(m->dir, &n), *other = logits_of(dir, &n_other);
    assert_int_equal(n, n_other);
    if (memcmp(released, other, n * sizeof *other) != 0)
        fail_msg("%s: the logits differ from those of the released storage", what);
    free(released);
    free(other);
}

#define STORAGE(name, ...)                                     \
    static void name(void **state)                             \
    {                                                          \
        struct k3_synth s = fixture_preset("tiny");            \
        __VA_ARGS__;                                           \
        same_model(*state, #name, &s);                         \
    }

STORAGE(flat_config_is_accepted, s.config = K3_SYNTH_FLAT)
STORAGE(hoisted_config_is_accepted, s.config = K3_SYNTH_HOISTED)
STORAGE(no_prefix_is_accepted, s.no_prefix = 1; s.config = K3_SYNTH_FLAT)
STORAGE(scattered_tensors_are_accepted, s.scatter = 4)
STORAGE(f32_vectors_are_accepted, s.f32_small = 1)
STORAGE(bf16_experts_are_accepted, s.bf16_experts = 1)
STORAGE(scattered_bf16_experts_are_accepted, s.bf16_experts = 1; s.scatter = 2; s.f32_small = 1)
STORAGE(a_log_without_padding_is_accepted, s.short_a_log = 1)

#define WITH_MODEL(f) cmocka_unit_test_setup_teardown(f, make_model, drop_model)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MODEL(all_missing_fields_are_named),
        WITH_MODEL(every_field_is_needed),
        WITH_MODEL(contradictions_are_named),
        WITH_MODEL(layers_named_twice_or_never),
        WITH_MODEL(wrong_types_and_values),
        WITH_MODEL(a_config_of_absurd_size_is_refused),
        WITH_MODEL(no_config_or_no_json),
        WITH_MODEL(missing_tensors_are_named),
        WITH_MODEL(missing_layers_and_experts),
        WITH_MODEL(wrong_shapes_are_named),
        WITH_MODEL(wrong_dtypes_are_named),
        WITH_MODEL(nan_scale_names_the_expert),
        WITH_MODEL(nan_weights_never_become_tokens),
        WITH_MODEL(one_nan_logit_is_seen),
        WITH_MODEL(a_nan_in_the_router_is_seen),
        WITH_MODEL(the_first_faulty_shard_is_named),
        WITH_MODEL(shard_cut_under_us),
        WITH_MODEL(bad_ids_and_long_prompts),
        WITH_MODEL(small_budgets_are_refused),
        WITH_MODEL(parts_that_do_not_fit),
        WITH_MODEL(flat_config_is_accepted),
        WITH_MODEL(hoisted_config_is_accepted),
        WITH_MODEL(no_prefix_is_accepted),
        WITH_MODEL(scattered_tensors_are_accepted),
        WITH_MODEL(f32_vectors_are_accepted),
        WITH_MODEL(bf16_experts_are_accepted),
        WITH_MODEL(scattered_bf16_experts_are_accepted),
        WITH_MODEL(a_log_without_padding_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
