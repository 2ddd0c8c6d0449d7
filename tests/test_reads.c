/* test_reads.c - what a token reads against what the plan says it reads, to the byte. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../engine/model/engine.h"
#include "../engine/model/host.h"
#include "fixture.h"

#define KB UINT64_C(1000)
#define MB (1000 * KB)
#define STEPS 6

static const int32_t prompt[] = {384, 3, 300, 301, 17, 5, 386};
#define N_PROMPT (sizeof prompt / sizeof prompt[0])

static char scratch[FIXTURE_PATH], dir[FIXTURE_PATH];

static k3_engine *engine_with(uint64_t budget, uint64_t ring)
{
    struct k3_options opt = fixture_options(dir);
    opt.budget = budget;
    opt.program_bytes = 200 * MB; /* more than it takes: the plans differ in what is said here only */
    opt.ring = ring;
    opt.experts = 100 * KB; /* some of them stay */
    opt.chunk = 3;
    return fixture_engine(&opt);
}

/* The least budget for this ring. */
static uint64_t least_budget(uint64_t ring)
{
    k3_engine *e = engine_with(2000 * MB, ring);
    const struct k3_plan *p = k3_get_plan(e);
    const uint64_t least = p->total - p->residents - p->checkpoints;
    k3_close(e);
    return least;
}

static void feed(k3_engine *e, const int32_t *ids, size_t n)
{
    struct k3_error err;
    if (k3_feed(e, ids, n, K3_WANT_LAST, NULL, NULL, &err) != K3_OK)
        fail_msg("%s", err.message);
}

/* The counters once nothing is under way: the ring is as full as it gets. */
static struct k3_metrics settled(k3_engine *e)
{
    struct k3_metrics m;
    k3_io_drain(e->io);
    k3_get_metrics(e, &m);
    return m;
}

/* With a ring that holds all that may be read ahead, what is read between two settled moments is what
 * a step takes, exactly. */
static void every_step_to_the_byte(void **state)
{
    (void)state;
    const uint64_t ring = 8 * MB, least = least_budget(ring);
    unsigned parts = 0;
    for (uint64_t more = 0; more <= 1000 * KB; more += 200 * KB) {
        k3_engine *e = engine_with(least + more, ring);
        const struct k3_plan *p = k3_get_plan(e);
        assert_true(p->trunk_bytes < ring / 2);
        assert_int_equal(p->bytes_per_token, p->trunk_per_token + e->bind.embed_row_bytes);
        parts += p->trunk_per_token > 0 && p->trunk_per_token < p->trunk_bytes;
        feed(e, prompt, N_PROMPT);
        struct k3_metrics before = settled(e);
        for (int32_t i = 0; i < STEPS; i++) {
            feed(e, &i, 1);
            const struct k3_metrics after = settled(e);
            assert_int_equal(after.bytes_trunk - before.bytes_trunk, p->bytes_per_token);
            /* experts by request: each that was not there is read whole */
            assert_int_equal(after.bytes_experts - before.bytes_experts,
                             p->expert_bytes * (after.requests - after.resident -
                                                before.requests + before.resident));
            before = after;
        }
        k3_close(e);
    }
    assert_true(parts >= 2); /* something stayed, and something was read */
}

/* With a small one, over all steps to within that ring. */
static void all_steps_to_within_a_ring(void **state)
{
    (void)state;
    k3_engine *e = engine_with(least_budget(1) + 300 * KB, 1);
    const struct k3_plan *p = k3_get_plan(e);
    assert_true(p->ring < p->trunk_bytes && p->residents > 0);
    feed(e, prompt, N_PROMPT);
    const struct k3_metrics before = settled(e);
    for (int32_t i = 0; i < STEPS; i++)
        feed(e, &i, 1);
    const uint64_t want = STEPS * p->bytes_per_token;
    const uint64_t got = settled(e).bytes_trunk - before.bytes_trunk;
    assert_true(got + p->ring >= want && got <= want + p->ring);
    k3_close(e);
}

/* What a process says of its own age goes forward, and reading begins after it began. */
static void when_reading_began(void **state)
{
    (void)state;
    const double before = k3_host_process_seconds();
    k3_engine *e = engine_with(2000 * MB, 0);
    struct k3_metrics m;
    k3_get_metrics(e, &m);
    assert_true(before > 0 && m.first_read_s >= before);
    assert_true(k3_host_process_seconds() >= m.first_read_s);
    k3_close(e);
}

static int setup(void **state)
{
    (void)state;
    fixture_scratch(scratch);
    fixture_join(dir, scratch, "tiny");
    const struct k3_synth s = fixture_preset("tiny");
    fixture_write(&s, dir);
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
        cmocka_unit_test(every_step_to_the_byte),
        cmocka_unit_test(all_steps_to_within_a_ring),
        cmocka_unit_test(when_reading_began),
    };
    return cmocka_run_group_tests_name("reads", tests, setup, teardown);
}
