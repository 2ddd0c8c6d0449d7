/* test_gates.c - the engine computes K3 and nothing else.
 *
 * GATE 1 teacher forcing, GATE 2 greedy, GATE 3 incremental: on two generated models with results of
 * the numpy reference, and on the oracle's two cases where they are present. Then what must never
 * change a bit: threads, budget, ring, policy, backend, instruction set, chunk, a cancelled feed. */
#include <config.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

#define LOGIT_TOLERANCE 2e-4 /* of the row's largest magnitude */
enum { CHUNK_ALL = 128 };

struct gate {
    const char *name;
    struct fixture f;
    bool there;
};

static struct gate gates[] = {{.name = "tiny"}, {.name = "odd"}, {.name = "case-a"},
                              {.name = "case-b"}};
enum { N_GATES = sizeof gates / sizeof gates[0] };

static void open_gates(void)
{
    for (size_t i = 0; i < N_GATES; i++) {
        gates[i].there = fixture_open(&gates[i].f, gates[i].name);
        if (!gates[i].there)
            printf("# %s is not under $K3_SHARED/oracle: its gates are skipped\n", gates[i].name);
    }
}

static int close_gates(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GATES; i++)
        if (gates[i].there)
            fixture_close(&gates[i].f);
    return 0;
}

static size_t argmax(const float *row, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (row[i] > row[best])
            best = i;
    return best;
}

static struct k3_options options(const struct fixture *f, uint32_t chunk)
{
    struct k3_options opt = fixture_options(f->dir);
    opt.chunk = chunk;
    opt.full_logits = true;
    return opt;
}

static void same_bits(const float *a, const float *b, size_t rows, size_t vocab, const char *what)
{
    for (size_t r = 0; r < rows; r++)
        if (memcmp(a + r * vocab, b + r * vocab, vocab * sizeof(float)) != 0)
            fail_msg("%s: the logits after position %zu differ", what, r);
}

/* Logits of the whole sequence with these options. */
static float *run(const struct fixture *f, const struct k3_options *opt)
{
    k3_engine *e = fixture_engine(opt);
    float *rows = fixture_logits(e, f->ids, f->n);
    k3_close(e);
    return rows;
}

/* ---- GATE 1 ------------------------------------------------------------------------------------ */

struct routes {
    const json_t *experts; /* [layer][position][k] */
    size_t seen;
};

static bool listed(const json_t *set, int32_t expert)
{
    for (size_t i = 0; i < json_array_size(set); i++)
        if (json_integer_value(json_array_get(set, i)) == expert)
            return true;
    return false;
}

static void check_route(void *ud, uint32_t layer, uint32_t position, const int32_t *experts,
                        uint32_t top_k)
{
    struct routes *r = ud;
    const json_t *want = json_array_get(json_array_get(r->experts, layer), position);
    if (json_array_size(want) != top_k)
        fail_msg("layer %u, position %u: %u experts, expected %zu", layer, position, top_k,
                 json_array_size(want));
    for (uint32_t i = 0; i < top_k; i++) {
        if (!listed(want, experts[i]))
            fail_msg("layer %u, position %u: expert %d was chosen", layer, position, experts[i]);
        for (uint32_t k = 0; k < i; k++)
            assert_int_not_equal(experts[i], experts[k]);
    }
    r->seen++;
}

static size_t expected_routes(const json_t *experts)
{
    size_t n = 0;
    for (size_t l = 0; l < json_array_size(experts); l++)
        n += json_array_size(json_array_get(experts, l));
    return n;
}

static void check_argmax(const struct fixture *f, const float *rows)
{
    const json_t *want = json_object_get(f->expected, "argmax");
    assert_int_equal(json_array_size(want), f->n);
    for (size_t p = 0; p < f->n; p++) {
        const size_t got = argmax(rows + p * f->vocab, f->vocab);
        if ((json_int_t)got != json_integer_value(json_array_get(want, p)))
            fail_msg("position %zu: argmax is %zu, expected %lld", p, got,
                     (long long)json_integer_value(json_array_get(want, p)));
    }
}

static void check_row(const float *row, const json_t *want, size_t vocab, long long position)
{
    double largest = 0, worst = 0;
    for (size_t i = 0; i < vocab; i++) {
        const double x = json_number_value(json_array_get(want, i));
        largest = fmax(largest, fabs(x));
        worst = fmax(worst, fabs(x - (double)row[i]));
    }
    if (!(worst <= LOGIT_TOLERANCE * largest))
        fail_msg("position %lld: a logit is off by %g, the largest being %g", position, worst,
                 largest);
}

static void check_logits(const struct fixture *f, const float *rows)
{
    const json_t *logits = json_object_get(f->expected, "logits");
    const json_t *positions = json_object_get(logits, "positions");
    const json_t *want = json_object_get(logits, "rows");
    assert_true(json_array_size(positions) > 0);
    for (size_t i = 0; i < json_array_size(positions); i++) {
        const json_int_t p = json_integer_value(json_array_get(positions, i));
        assert_true(p >= 0 && (size_t)p < f->n);
        assert_int_equal(json_array_size(json_array_get(want, i)), f->vocab);
        check_row(rows + (size_t)p * f->vocab, json_array_get(want, i), f->vocab, p);
    }
}

static void gate_teacher_forcing(void **state)
{
    const struct fixture *f = *state;
    const struct k3_options opt = options(f, 16);
    k3_engine *e = fixture_engine(&opt);
    assert_int_equal(k3_get_plan(e)->vocab, f->vocab);
    struct routes r = {.experts = json_object_get(f->expected, "experts")};
    k3_set_routing(e, check_route, &r);
    float *rows = fixture_logits(e, f->ids, f->n);
    k3_close(e);
    check_argmax(f, rows);
    check_logits(f, rows);
    assert_int_equal(r.seen, expected_routes(r.experts));
    free(rows);
}

/* ---- GATE 2 ------------------------------------------------------------------------------------ */

static void gate_greedy(void **state)
{
    const struct fixture *f = *state;
    struct k3_options opt = options(f, 8);
    opt.full_logits = false;
    k3_engine *e = fixture_engine(&opt);
    struct k3_error err;
    if (k3_feed(e, f->ids, f->n_prompt, K3_WANT_LAST, NULL, NULL, &err) != K3_OK)
        fail_msg("%s", err.message);
    for (size_t p = f->n_prompt; p < f->n; p++) {
        const int32_t id = (int32_t)argmax(k3_logits(e), f->vocab);
        if (id != f->ids[p])
            fail_msg("generated id %zu is %d, expected %d", p - f->n_prompt, id, f->ids[p]);
        if (k3_feed(e, &id, 1, K3_WANT_LAST, NULL, NULL, &err) != K3_OK)
            fail_msg("%s", err.message);
    }
    assert_int_equal(k3_position(e), f->n);
    k3_close(e);
}

/* ---- GATE 3 ------------------------------------------------------------------------------------ */

/* Every fifth prefix, the first and the last: computed anew from nothing. */
static void check_prefixes(const struct fixture *f, const float *decoded)
{
    struct k3_options opt = options(f, CHUNK_ALL);
    opt.full_logits = false;
    k3_engine *e = fixture_engine(&opt);
    for (size_t n = 1; n <= f->n; n = n == f->n ? n + 1 : n + 5 < f->n ? n + 5 : f->n) {
        struct k3_error err;
        k3_reset(e);
        if (k3_feed(e, f->ids, n, K3_WANT_LAST, NULL, NULL, &err) != K3_OK)
            fail_msg("%s", err.message);
        if (memcmp(k3_logits(e), decoded + (n - 1) * f->vocab, f->vocab * sizeof(float)) != 0)
            fail_msg("the prefix of %zu ids computed anew differs from decoding", n);
    }
    k3_close(e);
}

static void gate_incremental(void **state)
{
    const struct fixture *f = *state;
    static const uint32_t chunks[] = {3, 8, CHUNK_ALL};
    struct k3_options opt = options(f, 1);
    float *decoded = run(f, &opt);
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        char what[32];
        snprintf(what, sizeof what, "chunk %u", chunks[i]);
        opt = options(f, chunks[i]);
        float *rows = run(f, &opt);
        same_bits(rows, decoded, f->n, f->vocab, what);
        free(rows);
    }
    check_prefixes(f, decoded);
    free(decoded);
}

/* ---- what must not change a bit ---------------------------------------------------------------- */

static void threads_change_nothing(void **state)
{
    const struct fixture *f = *state;
    struct k3_options opt = options(f, 5);
    float *one = run(f, &opt);
    for (opt.threads = 2; opt.threads <= 3; opt.threads++) {
        float *more = run(f, &opt);
        same_bits(more, one, f->n, f->vocab, opt.threads == 2 ? "2 threads" : "3 threads");
        free(more);
    }
    free(one);
}

enum { PLENTY = UINT32_MAX };
struct combination {
    uint32_t above_floor; /* bytes of budget above the least that works; PLENTY = no limit */
    uint32_t ring, experts; /* bytes; PLENTY = the planner's choice */
    enum k3_policy policy;
    enum k3_io_kind io;
    uint32_t threads, chunk, depth;
    enum k3_isa isa;
};

static const struct combination combinations[] = {
    {0, PLENTY, PLENTY, K3_POLICY_QUOTA, K3_IO_BUFFERED, 1, 1, 1, K3_ISA_SCALAR},
    {0, PLENTY, 0, K3_POLICY_LRU, K3_IO_DIRECT, 2, 1, 16, K3_ISA_AUTO},
    {100000, PLENTY, PLENTY, K3_POLICY_LRU, K3_IO_BUFFERED, 3, 1, 2, K3_ISA_AUTO},
    {300000, PLENTY, PLENTY, K3_POLICY_QUOTA, K3_IO_DIRECT, 1, 2, 3, K3_ISA_AUTO},
    {600000, PLENTY, 60000, K3_POLICY_QUOTA, K3_IO_URING, 2, 3, 4, K3_ISA_AUTO},
    {900000, 200000, PLENTY, K3_POLICY_QUOTA, K3_IO_BUFFERED, 1, 4, 5, K3_ISA_SCALAR},
    {3000000, 400000, PLENTY, K3_POLICY_LRU, K3_IO_URING, 1, 7, 8, K3_ISA_AUTO},
    {PLENTY, PLENTY, 0, K3_POLICY_QUOTA, K3_IO_BUFFERED, 2, 13, 16, K3_ISA_AUTO},
    {PLENTY, 150000, 30000, K3_POLICY_QUOTA, K3_IO_BUFFERED, 1, 9, 16, K3_ISA_AVX2},
    {PLENTY, PLENTY, PLENTY, K3_POLICY_LRU, K3_IO_DIRECT, 3, 64, 16, K3_ISA_AVX512},
    {PLENTY, 5000000, 100000, K3_POLICY_LRU, K3_IO_URING, 2, 16, 32, K3_ISA_AUTO},
    {PLENTY, PLENTY, 400000, K3_POLICY_QUOTA, K3_IO_DIRECT, 1, CHUNK_ALL, 1, K3_ISA_NEON},
    {PLENTY, PLENTY, PLENTY, K3_POLICY_QUOTA, K3_IO_AUTO, 2, 0, 0, K3_ISA_AUTO},
    {1500000, PLENTY, PLENTY, K3_POLICY_LRU, K3_IO_AUTO, 1, 6, 12, K3_ISA_SCALAR},
    {200000, PLENTY, 20000, K3_POLICY_LRU, K3_IO_BUFFERED, 2, 1, 7, K3_ISA_AVX2},
    {2000000, PLENTY, PLENTY, K3_POLICY_QUOTA, K3_IO_URING, 3, 11, 16, K3_ISA_AVX512},
};
enum { N_COMBINATIONS = sizeof combinations / sizeof combinations[0] };

static struct k3_options combined(const struct fixture *f, const struct combination *c)
{
    struct k3_options opt = options(f, c->chunk);
    opt.threads = c->threads;
    opt.io = c->io;
    opt.policy = c->policy;
    opt.io_depth = c->depth;
    opt.isa = c->isa;
    /* More than this process will ever take, so that the floor does not move with its heap. */
    opt.program_bytes = 1000u * 1000 * 1000;
    return opt;
}

/* The least budget, asked for at chunk 1. What a larger chunk needs comes on top. */
static uint64_t floor_of(struct k3_options opt)
{
    struct k3_error err;
    k3_engine *e = k3_open(&opt, NULL, NULL, &err);
    if (!e)
        return 0;
    const struct k3_plan *p = k3_get_plan(e);
    const uint64_t floor = p->floor;
    const uint64_t chunk_bytes = p->activations;
    opt.chunk = 1;
    k3_engine *one = k3_open(&opt, NULL, NULL, &err);
    const uint64_t extra = one ? chunk_bytes - k3_get_plan(one)->activations : 0;
    k3_close(one);
    k3_close(e);
    return floor + extra;
}

/* Such kernels or such a backend this machine does not have: nothing to compare. */
static bool unavailable(const struct k3_error *err)
{
    return strstr(err->message, "does not run on this CPU") || strstr(err->message, "io_uring");
}

static bool try_combination(const struct fixture *f, size_t i, const float *want, bool *streamed)
{
    const struct combination *c = &combinations[i];
    struct k3_options opt = combined(f, c);
    struct k3_error err = {.status = K3_OK};
    if (c->above_floor != PLENTY)
        opt.budget = floor_of(opt) + c->above_floor;
    if (c->ring != PLENTY)
        opt.ring = c->ring;
    if (c->experts != PLENTY)
        opt.experts = c->experts;
    k3_engine *e = k3_open(&opt, NULL, NULL, &err);
    if (!e || k3_start(e, NULL, NULL, &err) != K3_OK) {
        k3_close(e);
        if (!unavailable(&err))
            fail_msg("combination %zu: %s", i, err.message);
        printf("# combination %zu left out: %s\n", i, err.message);
        return false;
    }
    const struct k3_plan *p = k3_get_plan(e);
    assert_true(p->total <= p->budget);
    *streamed = *streamed || p->trunk_per_token > 0;
    float *rows = fixture_logits(e, f->ids, f->n);
    k3_close(e);
    char what[48];
    snprintf(what, sizeof what, "combination %zu", i);
    same_bits(rows, want, f->n, f->vocab, what);
    free(rows);
    return true;
}

static void settings_change_nothing(void **state)
{
    const struct fixture *f = *state;
    struct k3_options opt = options(f, 1);
    opt.isa = K3_ISA_SCALAR;
    float *want = run(f, &opt);
    size_t tried = 0;
    bool streamed = false;
    for (size_t i = 0; i < N_COMBINATIONS; i++)
        tried += try_combination(f, i, want, &streamed);
    printf("# %s: %zu combinations gave the same bits\n", f->dir, tried);
    assert_true(tried >= 9);
    assert_true(streamed); /* otherwise the budgets were no test */
    free(want);
}

/* ---- a cancelled feed goes on where it stopped -------------------------------------------------- */

struct canceller {
    k3_engine *e;
    uint32_t layer, position;
    bool armed;
};

static void cancel_here(void *ud, uint32_t layer, uint32_t position, const int32_t *experts,
                        uint32_t top_k)
{
    (void)experts;
    (void)top_k;
    struct canceller *c = ud;
    if (c->armed && layer == c->layer && position == c->position) {
        c->armed = false;
        k3_cancel(c->e);
    }
}

/* Feeds ids, cancelled at one place on the way; returns false when that place never came. */
static void feed_cancelled(k3_engine *e, struct canceller *c, const struct fixture *f, size_t n)
{
    struct k3_error err;
    c->armed = true;
    const enum k3_status st = k3_feed(e, f->ids, n, K3_WANT_LAST, NULL, NULL, &err);
    if (st != K3_CANCELLED)
        fail_msg("cancelled in layer %u at position %u: status %d", c->layer, c->position, (int)st);
    const int32_t *pending;
    const size_t held = k3_pending(e, &pending);
    const uint32_t at = k3_position(e);
    assert_true(held > 0 && at <= c->position && c->position < at + held);
    assert_memory_equal(pending, f->ids + at, held * sizeof *pending);
    /* Other ids cannot go on from here, and asking changes nothing. */
    const int32_t other = (f->ids[at] + 1) % (int32_t)f->vocab;
    assert_int_equal(k3_feed(e, &other, 1, K3_WANT_LAST, NULL, NULL, &err), K3_USAGE);
    k3_clear_cancel(e);
}

static void finish(k3_engine *e, const struct fixture *f, size_t end, const float *want,
                   const char *what)
{
    struct k3_error err;
    const uint32_t at = k3_position(e);
    if (k3_feed(e, f->ids + at, end - at, K3_WANT_LAST, NULL, NULL, &err) != K3_OK)
        fail_msg("%s: %s", what, err.message);
    assert_int_equal(k3_position(e), end);
    if (memcmp(k3_logits(e), want + (end - 1) * f->vocab, f->vocab * sizeof(float)) != 0)
        fail_msg("%s: the logits after %zu ids differ", what, end);
}

static uint32_t first_moe_layer(const struct fixture *f)
{
    const json_t *experts = json_object_get(f->expected, "experts");
    uint32_t l = 0;
    while (json_is_null(json_array_get(experts, l)))
        l++;
    return l;
}

/* A suspended chunk that is to end the prompt after all takes another pass for its logits: cancelled
 * there it goes on as well, for itself and with more behind it. */
static void cancel_late_head(k3_engine *e, struct canceller *c, const struct fixture *f,
                             const float *want)
{
    for (size_t more = 0; more <= 1; more++) {
        k3_reset(e);
        *c = (struct canceller){.e = e, .layer = first_moe_layer(f), .position = 2};
        feed_cancelled(e, c, f, 14);
        const int32_t *pending;
        const size_t held = k3_pending(e, &pending);
        c->layer = k3_get_plan(e)->layers - 1; /* the pass is over before it is looked at */
        feed_cancelled(e, c, f, held);
        finish(e, f, held + more, want, "cancelled before the logits");
    }
}

static void cancelled_feed_goes_on(void **state)
{
    const struct fixture *f = *state;
    struct k3_options opt = options(f, 4);
    float *want = run(f, &opt);
    opt.full_logits = false;
    k3_engine *e = fixture_engine(&opt);
    struct canceller c = {.e = e};
    k3_set_routing(e, cancel_here, &c);
    const uint32_t layers = k3_get_plan(e)->layers;
    /* In the last layer the pass is over before the cancellation is looked at. */
    for (c.layer = first_moe_layer(f); c.layer + 1 < layers; c.layer++) {
        char what[64];
        snprintf(what, sizeof what, "cancelled in layer %u", c.layer);
        k3_reset(e);
        c.position = 2 + c.layer;
        feed_cancelled(e, &c, f, 14);
        finish(e, f, 14, want, what);
        finish(e, f, 15, want, what);
        /* The suspended chunk alone: it was begun as one that leaves the logits out. */
        k3_reset(e);
        feed_cancelled(e, &c, f, 14);
        const int32_t *pending;
        const size_t held = k3_pending(e, &pending);
        finish(e, f, k3_position(e) + held, want, what);
        /* Dropped: a reset forgets it. */
        k3_reset(e);
        feed_cancelled(e, &c, f, 14);
        k3_reset(e);
        assert_int_equal(k3_pending(e, &pending), 0);
        finish(e, f, 6, want, what);
    }
    cancel_late_head(e, &c, f, want);
    k3_close(e);
    free(want);
}

/* The same sequence twice on one engine: residents and experts are there the second time. */
static void warm_engine_gives_the_same(void **state)
{
    const struct fixture *f = *state;
    const struct k3_options opt = options(f, 6);
    k3_engine *e = fixture_engine(&opt);
    float *cold = fixture_logits(e, f->ids, f->n);
    k3_reset(e);
    assert_int_equal(k3_position(e), 0);
    float *warm = fixture_logits(e, f->ids, f->n);
    k3_close(e);
    same_bits(warm, cold, f->n, f->vocab, "second run");
    free(cold);
    free(warm);
}

/* What is tested on which models; those of the oracle count only when they are there. */
static const struct {
    const char *title;
    CMUnitTestFunction run;
    size_t models; /* the first so many of gates[] */
} table[] = {
    {"GATE 1 teacher forcing", gate_teacher_forcing, 4},
    {"GATE 2 greedy", gate_greedy, 4},
    {"GATE 3 incremental, bit for bit", gate_incremental, 4},
    {"1, 2 and 3 threads give the same bits", threads_change_nothing, 4},
    {"budget, ring, policy, backend, kernels give the same bits", settings_change_nothing, 2},
    {"a cancelled feed goes on with the same bits", cancelled_feed_goes_on, 2},
    {"a second run on a warm engine gives the same bits", warm_engine_gives_the_same, 1},
};
enum { N_TABLE = sizeof table / sizeof table[0] };

int main(void)
{
    static char names[N_TABLE * N_GATES][128];
    struct CMUnitTest tests[N_TABLE * N_GATES];
    size_t n = 0;
    open_gates();
    for (size_t t = 0; t < N_TABLE; t++)
        for (size_t i = 0; i < table[t].models; i++)
            if (gates[i].there) {
                snprintf(names[n], sizeof names[n], "%s: %s", table[t].title, gates[i].name);
                tests[n] = (struct CMUnitTest){.name = names[n], .test_func = table[t].run,
                                               .initial_state = &gates[i].f};
                n++;
            }
    return _cmocka_run_group_tests("gates", tests, n, NULL, close_gates);
}
