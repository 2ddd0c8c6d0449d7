/* test_state.c - the carried state saved, loaded, kept and gone back to: the same bits as without;
 * and every damage refused by name before anything is touched. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"

static struct fixture model;
static char path[FIXTURE_PATH];

static k3_engine *open_engine(void)
{
    const struct k3_options opt = fixture_options(model.dir);
    return fixture_engine(&opt);
}

static void feed(k3_engine *e, const int32_t *ids, size_t n)
{
    struct k3_error err;
    if (k3_feed(e, ids, n, K3_WANT_LAST, NULL, NULL, &err) != K3_OK)
        fail_msg("k3_feed: %s", err.message);
}

static void save(k3_engine *e, size_t n)
{
    struct k3_error err;
    if (k3_state_save(e, path, model.ids, n, &err) != K3_OK)
        fail_msg("k3_state_save: %s", err.message);
}

static void load(k3_engine *e, size_t n)
{
    struct k3_error err;
    if (k3_state_load(e, path, model.ids, n, &err) != K3_OK)
        fail_msg("k3_state_load: %s", err.message);
}

static float *logits_of(const k3_engine *e)
{
    float *copy = malloc(model.vocab * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, k3_logits(e), model.vocab * sizeof *copy);
    return copy;
}

/* The rest of the ids, and the logits at the end as bytes. */
static void expect_same_end(k3_engine *e, const float *want)
{
    const uint32_t at = k3_position(e);
    feed(e, model.ids + at, model.n - at);
    assert_memory_equal(k3_logits(e), want, model.vocab * sizeof *want);
}

static float *end_of_fresh_run(void)
{
    k3_engine *e = open_engine();
    feed(e, model.ids, model.n);
    float *want = logits_of(e);
    k3_close(e);
    return want;
}

/* ---- files ------------------------------------------------------------------------------- */

static void another_process_goes_on_alike(void **state)
{
    (void)state;
    const size_t cuts[] = {1, model.n_prompt, model.n - 1};
    float *want = end_of_fresh_run();
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        k3_engine *e = open_engine();
        feed(e, model.ids, cuts[i]);
        float *here = logits_of(e);
        const uint64_t bytes = k3_state_file_bytes(e);
        save(e, cuts[i]);
        expect_same_end(e, want); /* saving has changed nothing */
        k3_close(e);
        struct stat sb;
        assert_int_equal(stat(path, &sb), 0);
        assert_int_equal(sb.st_size, bytes);
        assert_int_equal(sb.st_mode & 0777, 0600);

        e = open_engine();
        feed(e, model.ids + 1, 2); /* something else before it */
        load(e, cuts[i]);
        assert_int_equal(k3_position(e), cuts[i]);
        assert_true(k3_has_logits(e));
        assert_memory_equal(k3_logits(e), here, model.vocab * sizeof *here);
        expect_same_end(e, want);
        k3_close(e);
        free(here);
    }
    free(want);
}

static void info_tells_what_it_is(void **state)
{
    (void)state;
    struct k3_error err;
    struct k3_state_info info;
    k3_engine *e = open_engine();
    feed(e, model.ids, 5);
    save(e, 5);
    assert_int_equal(k3_state_read_info(path, &info, &err), K3_OK);
    assert_int_equal(info.contract, K3_CONTRACT_VERSION);
    assert_int_equal(info.position, 5);
    assert_true(info.has_logits);
    assert_memory_equal(info.ids, model.ids, 5 * sizeof *info.ids);
    const struct k3_fingerprint f = k3_get_fingerprint(e);
    assert_true(info.model.high == f.high && info.model.low == f.low && f.low != 0);
    assert_int_equal(k3_state_fits(e, path, &info, &err), K3_OK);
    info.contract++;
    assert_int_equal(k3_state_fits(e, path, &info, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "numeric contract"));
    info.contract--;
    info.model.low++;
    assert_int_equal(k3_state_fits(e, path, &info, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "another model"));
    info.model.low--;
    info.position = 100000;
    assert_int_equal(k3_state_fits(e, path, &info, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "room for 160"));
    k3_state_info_free(&info);
    k3_close(e);
}

/* A different last byte of the weights, another config: another fingerprint. */
static void fingerprints_tell_models_apart(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH];
    fixture_join(dir, model.scratch, "other");
    const struct k3_synth tiny = fixture_preset("tiny");
    fixture_write(&tiny, dir);
    struct k3_options opt = fixture_options(dir);
    struct k3_error err;
    k3_engine *a = k3_open(&opt, NULL, NULL, &err), *own = open_engine();
    assert_non_null(a);
    const struct k3_fingerprint same = k3_get_fingerprint(a), f = k3_get_fingerprint(own);
    assert_true(same.high == f.high && same.low == f.low); /* the folder's name does not count */
    k3_close(a);
    k3_close(own);

    const struct fixture_tensor t = fixture_find(dir, "language_model.lm_head.weight");
    unsigned char byte = 0x5a;
    struct stat sb;
    char shard[FIXTURE_PATH];
    fixture_join(shard, dir, t.shard);
    assert_int_equal(stat(shard, &sb), 0);
    fixture_poke(dir, t.shard, (uint64_t)sb.st_size - 1, &byte, 1);
    a = k3_open(&opt, NULL, NULL, &err);
    assert_non_null(a);
    const struct k3_fingerprint poked = k3_get_fingerprint(a);
    assert_true(poked.low != f.low);
    k3_close(a);
    fixture_replace(dir, "config.json", "{", "{ ");
    a = k3_open(&opt, NULL, NULL, &err);
    assert_non_null(a);
    assert_true(k3_get_fingerprint(a).low != poked.low);
    k3_close(a);
}

static void a_suspended_chunk_is_no_state(void **state)
{
    (void)state;
    struct k3_error err;
    k3_engine *e = open_engine();
    feed(e, model.ids, 4);
    assert_int_equal(k3_state_save(e, path, model.ids, 3, &err), K3_USAGE);
    assert_int_equal(k3_state_save(e, "/nonexistent/x.k3s", model.ids, 4, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "/nonexistent/x.k3s"));
    k3_reset(e);
    assert_int_equal(k3_state_save(e, path, model.ids, 0, &err), K3_USAGE);
    assert_false(k3_keep(e));
    k3_close(e);
}

/* ---- damages ----------------------------------------------------------------------------- */

static char *stored;
static size_t stored_len;

static void write_bytes(const char *data, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Refused with a reason, and the engine where it was: it goes on to the same bits. */
static void expect_refusal(k3_engine *e, const char *what, const char *word)
{
    struct k3_error err = {0};
    const uint32_t at = k3_position(e);
    if (k3_state_load(e, path, model.ids, model.n_prompt, &err) == K3_OK)
        fail_msg("%s: loaded", what);
    assert_int_equal(err.status, K3_FAILED);
    if (word && !strstr(err.message, word))
        fail_msg("%s: '%s'", what, err.message);
    assert_int_equal(k3_position(e), at);
}

static void damages_are_named(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH], what[64];
    float *want = end_of_fresh_run();
    k3_engine *e = open_engine();
    feed(e, model.ids, model.n_prompt);
    save(e, model.n_prompt);
    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
    stored = fixture_read(dir, strrchr(path, '/') + 1, &stored_len);
    char *bad = malloc(stored_len + 1);
    assert_non_null(bad);
    for (size_t n = 0; n < stored_len; n += n < 200 ? 1 : stored_len / 61) { /* cut off */
        snprintf(what, sizeof what, "cut at %zu", n);
        write_bytes(stored, n);
        expect_refusal(e, what, "cut short");
    }
    for (size_t at = 0; at < stored_len; at += at < 200 ? 1 : stored_len / 301) {
        memcpy(bad, stored, stored_len); /* one bit */
        bad[at] = (char)(bad[at] ^ (1 << at % 8));
        snprintf(what, sizeof what, "bit of byte %zu", at);
        write_bytes(bad, stored_len);
        expect_refusal(e, what, at < 8 ? "no state file" : at < 12 ? "format" : "damaged");
    }
    memcpy(bad, stored, stored_len);
    bad[stored_len] = 0;
    write_bytes(bad, stored_len + 1);
    expect_refusal(e, "longer", "behind its end");
    unlink(path);
    expect_refusal(e, "absent", "cannot be opened");
    assert_int_equal(mkdir(path, 0700), 0);
    expect_refusal(e, "a folder", "not a file");
    rmdir(path);
    write_bytes(stored, stored_len);
    struct k3_error err = {0};
    int32_t other = model.ids[0] + 1;
    assert_int_equal(k3_state_load(e, path, &other, 1, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "other tokens"));
    expect_same_end(e, want);
    k3_close(e);
    free(bad);
    free(stored);
    free(want);
}

static void a_full_disk_leaves_the_old_state(void **state)
{
    (void)state;
    struct k3_error err = {0};
    char temporary[FIXTURE_PATH + 8];
    float *want = end_of_fresh_run();
    k3_engine *e = open_engine();
    feed(e, model.ids, 3);
    save(e, 3);
    feed(e, model.ids + 3, 1);
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    small = old;
    small.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &small);
    const enum k3_status st = k3_state_save(e, path, model.ids, 4, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    assert_int_equal(st, K3_FAILED);
    assert_non_null(strstr(err.message, "cannot be written"));
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    assert_int_not_equal(access(temporary, F_OK), 0);
    load(e, 3);
    expect_same_end(e, want);
    k3_close(e);
    free(want);
}

/* ---- in memory --------------------------------------------------------------------------- */

static void going_back_gives_the_same_bits(void **state)
{
    (void)state;
    struct k3_error err;
    struct k3_kept_position kept[8];
    float *want = end_of_fresh_run();
    k3_engine *e = open_engine();
    assert_int_equal(k3_get_plan(e)->checkpoint_slots, 4);
    for (size_t at = 0; at < 6; at++) {
        feed(e, model.ids + at, 1);
        assert_true(k3_keep(e));
        assert_true(k3_keep(e)); /* twice is once */
    }
    assert_int_equal(k3_kept(e, kept, 8), 4);
    for (uint32_t i = 0; i < 4; i++) /* the oldest two made way */
        assert_true(kept[i].position == 6 - i && kept[i].has_logits);
    assert_int_equal(k3_go_back(e, 2, &err), K3_USAGE);
    const int32_t elsewhere[] = {model.ids[2], model.ids[1], model.ids[0]};
    feed(e, elsewhere, 3);
    assert_int_equal(k3_go_back(e, 4, &err), K3_OK);
    assert_int_equal(k3_kept(e, kept, 8), 2);
    float *here = logits_of(e);
    k3_engine *fresh = open_engine();
    feed(fresh, model.ids, 4);
    assert_memory_equal(here, k3_logits(fresh), model.vocab * sizeof *here);
    k3_close(fresh);
    expect_same_end(e, want);
    assert_int_equal(k3_go_back(e, 3, &err), K3_OK);
    expect_same_end(e, want);
    k3_reset(e);
    assert_int_equal(k3_kept(e, kept, 8), 0);
    k3_close(e);
    free(here);
    free(want);
}

/* A cancel that suspends a chunk: not a state, but one can go back from it. */
static int suspend_after;
static void on_routing(void *ud, uint32_t layer, uint32_t position, const int32_t *experts,
                       uint32_t top_k)
{
    (void)layer;
    (void)position;
    (void)experts;
    (void)top_k;
    if (suspend_after-- == 0)
        k3_cancel(ud);
}

static void back_from_a_suspended_chunk(void **state)
{
    (void)state;
    struct k3_error err;
    const int32_t *pending;
    float *want = end_of_fresh_run();
    k3_engine *e = open_engine();
    feed(e, model.ids, 4);
    assert_true(k3_keep(e));
    save(e, 4);
    for (int way = 0; way < 2; way++) {
        suspend_after = 1;
        k3_set_routing(e, on_routing, e);
        k3_clear_cancel(e);
        assert_int_equal(k3_feed(e, model.ids + 4, 3, K3_WANT_LAST, NULL, NULL, &err),
                         K3_CANCELLED);
        k3_set_routing(e, NULL, NULL);
        k3_clear_cancel(e);
        assert_int_equal(k3_pending(e, &pending), 3);
        assert_false(k3_keep(e));
        const uint32_t at = k3_position(e);
        assert_int_equal(k3_state_save(e, path, model.ids, at, &err), K3_USAGE);
        assert_non_null(strstr(err.message, "suspended"));
        if (way == 0)
            assert_int_equal(k3_go_back(e, 4, &err), K3_OK);
        else
            load(e, 4);
        assert_int_equal(k3_pending(e, &pending), 0);
    }
    expect_same_end(e, want);
    k3_close(e);
    free(want);
}

/* Every budget's checkpoints are inside it; a tight one has none. */
static void checkpoints_are_in_the_plan(void **state)
{
    (void)state;
    struct k3_options opt = fixture_options(model.dir);
    struct k3_plan plan;
    struct k3_error err;
    opt.program_bytes = 1000000000; /* more than this process takes, so that it is the same twice */
    assert_int_equal(k3_plan_config(&opt, &plan, &err), K3_OK);
    assert_int_equal(plan.checkpoint_slots, 4);
    assert_true(plan.checkpoints > 0 && plan.total <= plan.budget);
    opt.budget = plan.floor + 65536;
    assert_int_equal(k3_plan_config(&opt, &plan, &err), K3_OK);
    assert_int_equal(plan.checkpoint_slots, 0);
    assert_int_equal(plan.checkpoints, 0);
}

static int setup(void **state)
{
    (void)state;
    if (!fixture_open(&model, "tiny"))
        return -1;
    fixture_join(path, model.scratch, "a.k3s");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_process_goes_on_alike),
        cmocka_unit_test(info_tells_what_it_is),
        cmocka_unit_test(fingerprints_tell_models_apart),
        cmocka_unit_test(a_suspended_chunk_is_no_state),
        cmocka_unit_test(damages_are_named),
        cmocka_unit_test(a_full_disk_leaves_the_old_state),
        cmocka_unit_test(going_back_gives_the_same_bits),
        cmocka_unit_test(back_from_a_suspended_chunk),
        cmocka_unit_test(checkpoints_are_in_the_plan),
    };
    return cmocka_run_group_tests_name("state", tests, setup, teardown);
}
