/* test_budget.c - the ceiling holds: the real program at budgets from the least that works to one
 * that holds everything, its peak against the budget, its tokens always the same; and the released
 * geometry, whose plan the config alone gives. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../engine/demo/synth_plan.h"
#include "../engine/model/model_config.h"
#include "fixture.h"
#include "program.h"

#define MB UINT64_C(1000000)

static char scratch[FIXTURE_PATH];
static bool sanitized; /* the sanitizers' own memory is in no plan */

/* ---- runs ------------------------------------------------------------------------------------ */

struct run {
    const char *model;
    const char *io, *threads;
    bool text;      /* with the tokenizer */
};

static struct child run_with(const struct run *r, uint64_t budget)
{
    char bytes[32];
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)budget);
    struct child c = program_start(NULL, "--batch", "--model", r->model, "--context", "64", "--io",
                                   r->io, "--threads", r->threads, "--ignore-stop", "--max-tokens",
                                   "40", "--json", "-", "--budget", bytes,
                                   r->text ? "--prompt" : "--ids", r->text ? "Hello" : "3,4,5",
                                   NULL);
    program_wait(&c);
    return c;
}

static json_t *result_of(const struct child *c)
{
    json_error_t why;
    json_t *j = json_loads(c->out_text, 0, &why);
    if (j == NULL)
        fail_msg("no JSON: %s in '%s', stderr '%s'", why.text, c->out_text, c->err_text);
    return j;
}

static uint64_t number(const json_t *j, const char *a, const char *b, const char *key)
{
    const json_t *o = json_object_get(j, a);
    const json_t *v = json_object_get(b ? json_object_get(o, b) : o, key);
    assert_true(json_is_integer(v));
    return (uint64_t)json_integer_value(v);
}

/* Runs at this budget; false when it is refused. The first run that works gives *ids, the others
 * must agree. *residents: bytes of trunk that stay. */
static bool holds(const struct run *r, uint64_t budget, json_t **ids, uint64_t *residents)
{
    struct child c = run_with(r, budget);
    if (c.status == 1) {
        assert_non_null(strstr(c.err_text, "is too small"));
        assert_int_equal(c.out_len, 0);
        program_free(&c);
        return false;
    }
    if (c.status != 0)
        fail_msg("exit status %d; stderr '%s'", c.status, c.err_text);
    json_t *j = result_of(&c);
    const uint64_t peak = number(j, "memory", NULL, "peak_rss");
    const uint64_t total = number(j, "memory", "plan", "total");
    assert_int_equal(number(j, "memory", NULL, "budget"), budget);
    if (peak > budget && !sanitized)
        fail_msg("%s: peak of %llu bytes at a budget of %llu", r->model, (unsigned long long)peak,
                 (unsigned long long)budget);
    if (total > budget)
        fail_msg("%s: a plan of %llu bytes at a budget of %llu", r->model,
                 (unsigned long long)total, (unsigned long long)budget);
    *residents = number(j, "memory", "plan", "residents");
    if (*ids == NULL)
        *ids = json_incref(json_object_get(j, "generated_ids"));
    else
        assert_true(json_equal(*ids, json_object_get(j, "generated_ids")));
    json_decref(j);
    program_free(&c);
    return true;
}

/* The least budget that works, to 100 kB; what works is checked on the way. */
static uint64_t least_budget(const struct run *r, json_t **ids)
{
    uint64_t low = 1 * MB, high = 400 * MB, residents = 0;
    assert_true(holds(r, high, ids, &residents));
    while (high - low > MB / 10) {
        const uint64_t middle = low + (high - low) / 2;
        if (holds(r, middle, ids, &residents))
            high = middle;
        else
            low = middle;
    }
    return high;
}

static void ceiling_holds(const struct run *r)
{
    json_t *ids = NULL;
    const uint64_t least = least_budget(r, &ids);
    uint64_t at_least = 0, between = 0, all = 0;
    /* What the process takes at start differs by some pages from run to run. */
    assert_true(holds(r, least + MB / 2, &ids, &at_least));
    assert_true(holds(r, least + 2 * MB, &ids, &between));
    assert_true(holds(r, least + 300 * MB, &ids, &all));
    assert_true(at_least <= between && between <= all);
    assert_true(all > 0);
    json_decref(ids);
}

static void ceiling_direct(void **state)
{
    (void)state;
    fixture_skip_emulated();
    char model[FIXTURE_PATH];
    fixture_join(model, scratch, "tiny");
    ceiling_holds(&(struct run){model, "auto", "1", false});
}

static void ceiling_threads_and_text(void **state)
{
    (void)state;
    fixture_skip_emulated();
    char model[FIXTURE_PATH];
    fixture_join(model, scratch, "tiny");
    ceiling_holds(&(struct run){model, "buffered", "3", true});
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Both numbers stand in the message, and the second one works. */
static void too_small_is_refused(void **state)
{
    (void)state;
    fixture_skip_emulated();
    char model[FIXTURE_PATH];
    fixture_join(model, scratch, "tiny");
    const struct run r = {model, "buffered", "1", false};
    struct child c = run_with(&r, 2 * MB);
    assert_int_equal(c.status, 1);
    assert_int_equal(c.out_len, 0);
    assert_non_null(strstr(c.err_text, "the budget of 0.002 GB is too small"));
    assert_non_null(strstr(c.err_text, "64 positions"));
    assert_null(strstr(c.err_text, "memory plan")); /* nothing was begun */
    const char *least = strstr(c.err_text, "at least ");
    assert_non_null(least);
    const uint64_t needed = (uint64_t)(strtod(least + 9, NULL) * 1e9 + 0.5);
    program_free(&c);
    json_t *ids = NULL;
    uint64_t residents = 0;
    assert_true(needed > 2 * MB);
    /* Under the sanitizers the heap grows while the index is read, which comes after this refusal. */
    assert_true(holds(&r, needed + (sanitized ? 8 * MB : 0), &ids, &residents));
    json_decref(ids);
}

/* ---- the released geometry --------------------------------------------------------------------- */

static void write_released_config(const char *dir)
{
    char path[FIXTURE_PATH];
    struct k3_synth s = fixture_preset("full");
    s.layers = 93;
    s.experts = 896;
    s.res_block = 12;
    s.vocab = 163840;
    assert_int_equal(mkdir(dir, 0700), 0);
    fixture_join(path, dir, "config.json");
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(synth_put_config(&s, f));
    assert_int_equal(fclose(f), 0);
}

static double figure_behind(const char *text, const char *words)
{
    const char *at = strstr(text, words);
    if (at == NULL)
        fail_msg("'%s' is not in '%s'", words, text);
    return strtod(at + strlen(words), NULL);
}

/* What the program knows of the released checkpoint is what its config.json says. */
static void released_is_known(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH];
    struct k3_config read, known;
    struct k3_error err = {0};
    fixture_join(dir, scratch, "known");
    write_released_config(dir);
    if (k3_config_read(dir, &read, &err) != K3_OK)
        fail_msg("%s", err.message);
    memset(&known, 0xFF, sizeof known);
    k3_config_released(&known);
    assert_memory_equal(known.is_mla, read.is_mla, sizeof read.is_mla);
    const uint32_t numbers[][2] = {
        {known.hidden, read.hidden}, {known.layers, read.layers}, {known.vocab, read.vocab},
        {known.kda_heads, read.kda_heads}, {known.kda_dim, read.kda_dim},
        {known.conv_taps, read.conv_taps}, {known.heads, read.heads},
        {known.q_lora, read.q_lora}, {known.kv_lora, read.kv_lora}, {known.nope, read.nope},
        {known.rope, read.rope}, {known.v_head, read.v_head}, {known.experts, read.experts},
        {known.top_k, read.top_k}, {known.shared, read.shared}, {known.latent, read.latent},
        {known.inter, read.inter}, {known.dense_layers, read.dense_layers},
        {known.dense_inter, read.dense_inter}, {known.block, read.block},
        {known.renormalize, read.renormalize}, {known.latent_norm, read.latent_norm},
        {known.quantized, read.quantized}, {(uint32_t)known.bos, (uint32_t)read.bos},
        {(uint32_t)known.eos, (uint32_t)read.eos}, {(uint32_t)known.pad, (uint32_t)read.pad}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        assert_int_equal(numbers[i][0], numbers[i][1]);
    assert_true(known.rms_eps == read.rms_eps && known.gate_lower == read.gate_lower);
    assert_true(known.routed_scale == read.routed_scale && known.situ_beta == read.situ_beta);
    assert_true(known.situ_linear_beta == read.situ_linear_beta);
}

/* Without weights: the config alone. */
static void released_geometry(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH];
    fixture_join(dir, scratch, "released");
    write_released_config(dir);
    struct child c = program_start(NULL, "doctor", "--model", dir, "--budget", "2GB", NULL);
    program_wait(&c);
    assert_int_equal(c.status, 0);
    const double doctor = figure_behind(c.out_text, "with 4096 positions: ");
    assert_true(doctor > 0.8 && doctor <= 2.0);
    assert_non_null(strstr(c.out_text, "of a budget of 2.00 GB"));
    assert_non_null(strstr(c.out_text, "trunk per token"));
    assert_non_null(strstr(c.out_text, "1.00 TB                0 B")); /* the trunk stays by then */
    program_free(&c);
}

/* ---- all ------------------------------------------------------------------------------------- */

static int setup(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
#if defined(__SANITIZE_ADDRESS__)
    sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    sanitized = true;
#endif
#endif
    fixture_scratch(scratch);
    fixture_join(path, scratch, "data");
    setenv("XDG_DATA_HOME", path, 1);
    setenv("XDG_CONFIG_HOME", "/nonexistent/config", 1);
    fixture_join(path, scratch, "tiny");
    const struct k3_synth s = fixture_preset("tiny");
    fixture_write(&s, path);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_scratch_end(scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ceiling_direct),
        cmocka_unit_test(ceiling_threads_and_text),
        cmocka_unit_test(too_small_is_refused),
        cmocka_unit_test(released_is_known),
        cmocka_unit_test(released_geometry),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
