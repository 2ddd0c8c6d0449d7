/* synth.c - geometry of synthetic checkpoints: presets, named fields, checks. */
#include "synth.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "synth_plan.h"

struct preset {
    const char *name, *about;
    struct k3_synth s;
};

static const struct preset presets[] = {
    {"tiny", "a fixture: seven narrow layers, every kind of layer",
     {.layers = 7, .dense_layers = 1, .hidden = 96, .dense_inner = 128, .res_block = 3,
      .kda_heads = 3, .kda_dim = 16, .conv = 4,
      .heads = 3, .q_lora = 48, .kv_lora = 32, .nope = 16, .rope = 8, .v_dim = 16,
      .mla_every = 3, .experts = 10, .top_k = 2, .shared = 2, .latent = 64, .inner = 32,
      .vocab = 640, .routed_scale = 16, .seed = 1}},
    {"odd", "a fixture: widths that fill no vector, three dense layers, scattered storage",
     {.layers = 9, .dense_layers = 3, .hidden = 70, .dense_inner = 90, .res_block = 4,
      .kda_heads = 5, .kda_dim = 12, .conv = 3,
      .heads = 3, .q_lora = 37, .kv_lora = 26, .nope = 18, .rope = 5, .v_dim = 21,
      .mla_every = 2, .experts = 11, .top_k = 3, .shared = 1, .latent = 32, .inner = 64,
      .vocab = 549, .routed_scale = 24, .no_latent_norm = 1,
      .scatter = 3, .f32_small = 1, .no_prefix = 1, .short_a_log = 1, .seed = 2}},
    {"mid", "about a quarter of every released width, 13 layers, 1.9 GB",
     {.layers = 13, .dense_layers = 1, .hidden = 1792, .dense_inner = 8448, .res_block = 3,
      .kda_heads = 24, .kda_dim = 128, .conv = 4,
      .heads = 24, .q_lora = 384, .kv_lora = 128, .nope = 128, .rope = 64, .v_dim = 128,
      .mla_every = 4, .experts = 64, .top_k = 8, .shared = 2, .latent = 896, .inner = 768,
      .vocab = 8192, .routed_scale = 16, .seed = 4}},
    {"full", "the released widths, three layers of 48 experts, 6 GB",
     {.layers = 3, .dense_layers = 1, .hidden = 7168, .dense_inner = 33792, .res_block = 2,
      .kda_heads = 96, .kda_dim = 128, .conv = 4,
      .heads = 96, .q_lora = 1536, .kv_lora = 512, .nope = 128, .rope = 64, .v_dim = 128,
      .mla_every = 4, .experts = 48, .top_k = 16, .shared = 2, .latent = 3584, .inner = 3072,
      .vocab = 8192, .routed_scale = 16, .seed = 5}},
};
enum { N_PRESETS = sizeof presets / sizeof presets[0] };

const char *const k3_synth_preset_names[N_PRESETS + 1] = {"tiny", "odd", "mid", "full", NULL};

static const struct preset *find_preset(const char *name)
{
    for (size_t i = 0; i < N_PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

bool k3_synth_preset(const char *name, struct k3_synth *out)
{
    const struct preset *p = find_preset(name);
    if (p)
        *out = p->s;
    return p != NULL;
}

const char *k3_synth_preset_about(const char *name)
{
    const struct preset *p = find_preset(name);
    return p ? p->about : NULL;
}

/* ---- fields by name ---------------------------------------------------------------------------- */

#define FIELD(text, member) {text, offsetof(struct k3_synth, member)}
static const struct {
    const char *name;
    size_t at;
} fields[] = {
    FIELD("layers", layers), FIELD("dense-layers", dense_layers), FIELD("hidden", hidden),
    FIELD("dense-inner", dense_inner), FIELD("res-block", res_block),
    FIELD("kda-heads", kda_heads), FIELD("kda-dim", kda_dim), FIELD("conv", conv),
    FIELD("heads", heads), FIELD("q-lora", q_lora), FIELD("kv-lora", kv_lora), FIELD("nope", nope),
    FIELD("rope", rope), FIELD("v-dim", v_dim), FIELD("mla-every", mla_every),
    FIELD("experts", experts), FIELD("top-k", top_k), FIELD("shared", shared),
    FIELD("latent", latent), FIELD("inner", inner), FIELD("vocab", vocab),
    FIELD("routed-scale", routed_scale), FIELD("no-renorm", no_renorm),
    FIELD("no-latent-norm", no_latent_norm),
    FIELD("scatter", scatter), FIELD("f32-small", f32_small), FIELD("bf16-experts", bf16_experts),
    FIELD("no-prefix", no_prefix), FIELD("short-a-log", short_a_log), FIELD("config", config),
    FIELD("holes", holes), FIELD("seed", seed),
};
enum { N_FIELDS = sizeof fields / sizeof fields[0] };

uint32_t *k3_synth_field(struct k3_synth *s, const char *name)
{
    for (size_t i = 0; i < N_FIELDS; i++)
        if (strcmp(fields[i].name, name) == 0)
            return (uint32_t *)(void *)((char *)s + fields[i].at);
    return NULL;
}

const char *k3_synth_field_name(unsigned i)
{
    return i < N_FIELDS ? fields[i].name : NULL;
}

/* ---- checks ------------------------------------------------------------------------------------ */

struct complaints {
    char text[1024];
    size_t len;
};

static void complain(struct complaints *c, const char *fmt, ...) K3_PRINTF(2, 3);

static void complain(struct complaints *c, const char *fmt, ...)
{
    if (c->len > 0 && c->len + 2 < sizeof c->text)
        c->len += (size_t)snprintf(c->text + c->len, sizeof c->text - c->len, "; ");
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(c->text + c->len, sizeof c->text - c->len, fmt, ap);
    va_end(ap);
    c->len += n < 0 ? 0 : (size_t)n;
    if (c->len >= sizeof c->text)
        c->len = sizeof c->text - 1;
}

/* The bounds keep every product of a tensor's shape far inside 64 bits, and shapes inside 32. */
static void check_ranges(const struct k3_synth *s, struct complaints *c)
{
    static const struct {
        const char *name;
        uint32_t least, most;
    } ranges[] = {
        {"layers", 1, 1024}, {"dense-layers", 0, 1024}, {"hidden", 1, 65536},
        {"dense-inner", 1, 262144}, {"res-block", 1, 1024}, {"kda-heads", 1, 1024},
        {"kda-dim", 1, 1024}, {"conv", 1, 16}, {"heads", 1, 1024}, {"q-lora", 1, 16384},
        {"kv-lora", 1, 16384}, {"nope", 1, 1024}, {"rope", 1, 1024}, {"v-dim", 1, 1024},
        {"mla-every", 1, 1024}, {"experts", 1, 4096}, {"top-k", 1, 4096}, {"shared", 1, 64},
        {"latent", 32, 65536}, {"inner", 32, 65536}, {"vocab", 512, 245000},
        {"routed-scale", 1, 1600}, {"scatter", 0, 999},
        {"config", 0, K3_SYNTH_HOISTED},
    };
    struct k3_synth copy = *s;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        const uint32_t v = *k3_synth_field(&copy, ranges[i].name);
        if (v < ranges[i].least || v > ranges[i].most)
            complain(c, "%s is %u, must be %u to %u", ranges[i].name, v, ranges[i].least,
                     ranges[i].most);
    }
}

enum k3_status k3_synth_check(const struct k3_synth *s, struct k3_error *err)
{
    struct complaints c = {.len = 0};
    check_ranges(s, &c);
    if (s->latent % 32)
        complain(&c, "latent is %u, must be a multiple of 32", s->latent);
    if (s->inner % 32)
        complain(&c, "inner is %u, must be a multiple of 32", s->inner);
    if (s->top_k > s->experts)
        complain(&c, "top-k is %u, more than the %u experts", s->top_k, s->experts);
    if (s->dense_layers > s->layers)
        complain(&c, "dense-layers is %u, more than the %u layers", s->dense_layers, s->layers);
    if (!s->short_a_log && s->kda_heads > s->kda_dim)
        complain(&c, "kda-heads is %u, more than kda-dim %u (A_log has kda-dim entries; "
                 "short-a-log 1 lifts this)", s->kda_heads, s->kda_dim);
    if (c.len > 0)
        return k3_fail(err, K3_USAGE, "this geometry cannot be written: %s", c.text);
    return K3_OK;
}

bool synth_is_mla(const struct k3_synth *s, uint32_t layer)
{
    return (layer + 1) % s->mla_every == 0 || layer + 1 == s->layers;
}

uint64_t k3_synth_bytes(const struct k3_synth *s)
{
    struct k3_error err;
    struct synth_plan plan = {0};
    if (synth_plan_make(s, &plan, &err) != K3_OK)
        return 0;
    const uint64_t bytes = plan.bytes;
    synth_plan_free(&plan);
    return bytes;
}
