/* test_faults.c - disks that fail while the model runs: reads that end with an error, shards that are
 * cut, taken away or replaced. The step fails with a name and a place, and nothing else is lost. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../engine/model/engine.h"
#include "fixture.h"
#include "program.h"

#define SHARDS 10
#define STEPS 3

static const int32_t ids[] = {384, 3, 300, 301, 17, 5, 386};
#define N_IDS (sizeof ids / sizeof ids[0])
#define PROMPT (N_IDS - STEPS)

static char scratch[FIXTURE_PATH], dir[FIXTURE_PATH];
static float *clean; /* the logits after ids, from an undisturbed engine */
static uint32_t vocab;

/* ---- shards ---------------------------------------------------------------------------------- */

static const char *shard_name(unsigned i)
{
    static char name[64];
    snprintf(name, sizeof name, "model-%05u-of-%06u.safetensors", i + 1, SHARDS);
    return name;
}

/* In place: the file stays the one that the engine has open. */
static void overwrite(const char *path, const char *data, size_t n)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), n);
    assert_int_equal(ftruncate(fd, (off_t)n), 0);
    assert_int_equal(close(fd), 0);
}

static void cut(const char *path, uint64_t size)
{
    if (truncate(path, (off_t)size) != 0)
        fail_msg("%s: %s", path, strerror(errno));
}

static void expect_text(const char *message, const char *part)
{
    if (strstr(message, part) == NULL)
        fail_msg("'%s' lacks '%s'", message, part);
}

/* ---- the engine ------------------------------------------------------------------------------ */

/* Options under which everything streams, always: the least budget, and no heap that moves it. */
static struct k3_options tight(void)
{
    struct k3_options opt = fixture_options(dir);
    struct k3_error err;
    opt.program_bytes = 1000u * 1000 * 1000;
    opt.budget = 4000ull * 1000 * 1000;
    opt.chunk = 1;
    k3_engine *e = k3_open(&opt, NULL, NULL, &err);
    if (!e)
        fail_msg("%s", err.message);
    opt.budget = k3_get_plan(e)->floor;
    k3_close(e);
    return opt;
}

/* A disk that fails at the read with this number. */
struct bad_disk {
    atomic_long left;
};

static int64_t bad_read(void *ud, int fd, void *buf, uint64_t n, uint64_t offset)
{
    struct bad_disk *d = ud;
    if (atomic_fetch_sub(&d->left, 1) == 0) {
        errno = EIO;
        return -1;
    }
    return pread(fd, buf, n, (off_t)offset);
}

static k3_engine *start_on(struct bad_disk *disk)
{
    const struct k3_options opt = tight();
    struct k3_error err;
    k3_engine *e = k3_open(&opt, NULL, NULL, &err);
    if (!e)
        fail_msg("%s", err.message);
    assert_int_equal(k3_get_plan(e)->residents, 0);
    if (disk) {
        e->read = bad_read;
        e->read_ud = disk;
    }
    if (k3_start(e, NULL, NULL, &err) != K3_OK)
        fail_msg("%s", err.message);
    return e;
}

/* The prompt, then token after token, as the program does. */
static enum k3_status run_ids(k3_engine *e, struct k3_error *err)
{
    enum k3_status st = k3_feed(e, ids, PROMPT, K3_WANT_LAST, NULL, NULL, err);
    for (size_t i = PROMPT; i < N_IDS && st == K3_OK; i++)
        st = k3_feed(e, ids + i, 1, K3_WANT_LAST, NULL, NULL, err);
    return st;
}

static void expect_clean_run(k3_engine *e)
{
    struct k3_error err;
    if (run_ids(e, &err) != K3_OK)
        fail_msg("%s", err.message);
    assert_memory_equal(k3_logits(e), clean, vocab * sizeof *clean);
}

/* Whatever read it is that fails: the step names shard, place and errno, no later call gives
 * anything, and after a reset the engine computes what it always does. */
static void a_read_error_ends_the_step(void **state)
{
    (void)state;
    struct bad_disk disk = {.left = -1}; /* counts down from below 0: never fails */
    k3_engine *e = start_on(&disk);
    expect_clean_run(e);
    k3_close(e);
    const long reads = -1 - atomic_load(&disk.left);
    assert_true(reads > 50);
    unsigned failed = 0;
    for (long at = 0; at < reads; at += 1 + reads / 23) {
        atomic_store(&disk.left, at);
        e = start_on(&disk);
        struct k3_error err = {.status = K3_OK};
        enum k3_status st = run_ids(e, &err);
        if (st == K3_OK) /* the last reads are ahead of what is computed: it may be one of the next */
            st = k3_feed(e, ids, 1, K3_WANT_LAST, NULL, NULL, &err);
        if (st != K3_OK) {
            failed++;
            assert_int_equal(st, K3_FAILED);
            expect_text(err.message, ".safetensors");
            expect_text(err.message, "at byte ");
            expect_text(err.message, "errno 5");
            assert_int_equal(k3_feed(e, ids, 1, K3_WANT_LAST, NULL, NULL, &err), K3_FAILED);
            expect_text(err.message, "reset");
        }
        atomic_store(&disk.left, -1);
        k3_reset(e);
        expect_clean_run(e);
        k3_close(e);
    }
    assert_true(failed > 15);
}

/* Cuts the shard after the prompt; false when nothing of what was cut is read any more. */
static bool cut_while_running(unsigned shard)
{
    char path[FIXTURE_PATH];
    size_t size = 0;
    struct k3_error err = {.status = K3_OK};
    char *whole = fixture_read(dir, shard_name(shard), &size);
    fixture_join(path, dir, shard_name(shard));
    k3_engine *e = start_on(NULL);
    assert_int_equal(k3_feed(e, ids, PROMPT, K3_WANT_LAST, NULL, NULL, &err), K3_OK);
    cut(path, 100);
    enum k3_status st = K3_OK;
    for (size_t i = PROMPT; i < N_IDS && st == K3_OK; i++)
        st = k3_feed(e, ids + i, 1, K3_WANT_LAST, NULL, NULL, &err);
    if (st != K3_OK) {
        assert_int_equal(st, K3_FAILED);
        expect_text(err.message, shard_name(shard));
        expect_text(err.message, "the file ends at byte ");
    }
    overwrite(path, whole, size);
    free(whole);
    k3_reset(e);
    expect_clean_run(e);
    k3_close(e);
    return st != K3_OK;
}

static void a_shard_that_is_cut(void **state)
{
    (void)state;
    unsigned failed = 0;
    for (unsigned i = 0; i < SHARDS; i++)
        failed += cut_while_running(i);
    assert_true(failed >= SHARDS - 2); /* one or two hold vectors only, read at start */
}

/* The embedding is read by other means than the rest. */
static void an_embedding_that_is_cut(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    size_t size = 0;
    struct k3_error err = {.status = K3_OK};
    const struct fixture_tensor t =
        fixture_find(dir, "language_model.model.embed_tokens.weight");
    char *whole = fixture_read(dir, t.shard, &size);
    fixture_join(path, dir, t.shard);
    k3_engine *e = start_on(NULL);
    cut(path, t.begin + 192 * 300); /* rows below 300 are still there */
    assert_int_equal(k3_feed(e, (int32_t[]){301}, 1, K3_WANT_LAST, NULL, NULL, &err), K3_FAILED);
    expect_text(err.message, t.shard);
    expect_text(err.message, "ends at byte ");
    overwrite(path, whole, size);
    free(whole);
    k3_reset(e);
    expect_clean_run(e);
    k3_close(e);
}

/* What is open stays what it was: a download that renames its file into place, or a folder that is
 * tidied up, changes nothing for who runs. */
static void shards_replaced_or_deleted(void **state)
{
    (void)state;
    struct k3_error err;
    char path[FIXTURE_PATH], aside[FIXTURE_PATH];
    k3_engine *e = start_on(NULL);
    assert_int_equal(k3_feed(e, ids, PROMPT, K3_WANT_LAST, NULL, NULL, &err), K3_OK);
    for (unsigned i = 0; i < SHARDS; i++) {
        fixture_join(path, dir, shard_name(i));
        fixture_join(aside, scratch, shard_name(i));
        assert_int_equal(rename(path, aside), 0);
        const int fd = i % 2 ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
        assert_true(fd < 0 || write(fd, "short", 5) == 5);
        assert_true(fd < 0 || close(fd) == 0);
    }
    for (size_t i = PROMPT; i < N_IDS; i++)
        assert_int_equal(k3_feed(e, ids + i, 1, K3_WANT_LAST, NULL, NULL, &err), K3_OK);
    assert_memory_equal(k3_logits(e), clean, vocab * sizeof *clean);
    k3_close(e);
    const struct k3_options opt = fixture_options(dir); /* one that starts now sees what is there */
    err = fixture_refusal(&opt);
    assert_int_equal(err.status, K3_FAILED);
    expect_text(err.message, ".safetensors");
    for (unsigned i = 0; i < SHARDS; i++) {
        fixture_join(path, dir, shard_name(i));
        fixture_join(aside, scratch, shard_name(i));
        assert_int_equal(rename(aside, path), 0);
    }
}

static void a_shard_that_may_not_be_read(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    fixture_join(path, dir, shard_name(4));
    assert_int_equal(chmod(path, 0), 0);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) { /* root reads everything */
        close(fd);
        assert_int_equal(chmod(path, 0600), 0);
        skip();
    }
    const struct k3_options opt = fixture_options(dir);
    const struct k3_error err = fixture_refusal(&opt);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(err.status, K3_FAILED);
    expect_text(err.message, shard_name(4));
    expect_text(err.message, "ermission");
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Slow enough that hundreds of tokens take minutes; no test waits for that. */
#define SLOW "--batch", "--model", dir, "--threads", "1", "--io", "buffered", "--budget", budget, \
             "--context", "2048", "--simulate-disk", "8MB", "--ring", "64KiB"

static char budget[32]; /* the least that the program takes: everything streams */

/* Asks until the figure of the refusal is enough: under the sanitizers, whose heap grows while the
 * index is read, the first one is not. test_budget.c sees to it that it is otherwise. */
static void find_budget(void)
{
    snprintf(budget, sizeof budget, "1MB");
    for (int i = 0; i < 4; i++) {
        struct child c = program_start(NULL, SLOW, "--prompt", "x", "--max-tokens", "1", NULL);
        program_wait(&c);
        const char *least = strstr(c.err_text, "at least ");
        if (c.status != 0 && least == NULL)
            fail_msg("exit status %d; stderr '%s'", c.status, c.err_text);
        if (c.status != 0)
            snprintf(budget, sizeof budget, "%.0f", strtod(least + 9, NULL) * 1e9);
        const bool found = c.status == 0;
        program_free(&c);
        if (found)
            return;
    }
    fail_msg("a budget of %s bytes, as asked for, is refused again", budget);
}

static void expect_status(const struct child *c, int status)
{
    if (c->status != status)
        fail_msg("exit status %d instead of %d; stdout '%s', stderr '%s'", c->status, status,
                 c->out_text, c->err_text);
}

/* Cuts every shard behind its header while the program runs. */
struct saved {
    char *data[SHARDS];
    size_t size[SHARDS];
};

static void cut_all(struct saved *s)
{
    char path[FIXTURE_PATH];
    for (unsigned i = 0; i < SHARDS; i++) {
        s->data[i] = fixture_read(dir, shard_name(i), &s->size[i]);
        fixture_join(path, dir, shard_name(i));
        cut(path, 4096);
    }
}

static void restore_all(struct saved *s)
{
    char path[FIXTURE_PATH];
    for (unsigned i = 0; i < SHARDS; i++) {
        fixture_join(path, dir, shard_name(i));
        overwrite(path, s->data[i], s->size[i]);
        free(s->data[i]);
    }
}

static json_t *json_of(const char *name)
{
    json_t *j = fixture_json(scratch, name);
    assert_non_null(j);
    return j;
}

/* The ids of one are the first ones of the other. Returns how many. */
static size_t expect_beginning(const json_t *part, const json_t *whole)
{
    const json_t *a = json_object_get(part, "generated_ids");
    const json_t *b = json_object_get(whole, "generated_ids");
    assert_true(json_array_size(a) <= json_array_size(b));
    for (size_t i = 0; i < json_array_size(a); i++)
        assert_int_equal(json_integer_value(json_array_get(a, i)),
                         json_integer_value(json_array_get(b, i)));
    return json_array_size(a);
}

/* Tokens had come out: status 4, and what there is is handed over as JSON and as text. */
static void batch_after_output(void **state)
{
    (void)state;
    fixture_skip_emulated();
    char part[FIXTURE_PATH], whole[FIXTURE_PATH];
    struct saved saved;
    fixture_join(part, scratch, "part.json");
    fixture_join(whole, scratch, "whole.json");
    struct child c = program_start(NULL, SLOW, "--prompt", "abc", "--max-tokens", "2000",
                                   "--ignore-stop", "--json", part, NULL);
    program_wait_bytes(&c, 1);
    cut_all(&saved);
    program_wait(&c);
    restore_all(&saved);
    expect_status(&c, 4);
    expect_text(c.err_text, ".safetensors: the file ends at byte ");
    expect_text(c.err_text, "memory: peak ");
    program_free(&c);
    c = program_start(NULL, "--batch", "--model", dir, "--threads", "1", "--io", "buffered",
                      "--budget", "2GB", "--context", "2048", "--prompt", "abc", "--max-tokens",
                      "60", "--ignore-stop", "--json", whole, NULL);
    program_wait(&c);
    expect_status(&c, 0);
    program_free(&c);
    json_t *a = json_of("part.json"), *b = json_of("whole.json");
    assert_string_equal(json_string_value(json_object_get(a, "finish")), "error");
    const size_t n = expect_beginning(a, b);
    assert_true(n > 0);
    assert_int_equal(json_array_size(json_object_get(a, "steps")), n);
    json_decref(a);
    json_decref(b);
    assert_int_equal(unlink(part), 0);
    assert_int_equal(unlink(whole), 0);
}

/* Nothing had come out: status 1 and no result. */
static void batch_before_output(void **state)
{
    (void)state;
    fixture_skip_emulated();
    char json[FIXTURE_PATH];
    struct saved saved;
    fixture_join(json, scratch, "none.json");
    struct child c = program_start(NULL, SLOW, "--chunk", "1", "--json", json, "--prompt",
                                   "A prompt that is long enough for a slow disk: it takes many "
                                   "passes over all the weights, one for every token of it, and "
                                   "all of them come before the first token of the answer.", NULL);
    program_wait_text(&c, true, "memory plan: ");
    cut_all(&saved);
    program_wait(&c);
    restore_all(&saved);
    expect_status(&c, 1);
    assert_int_equal(c.out_len, 0);
    expect_text(c.err_text, ".safetensors");
    assert_int_not_equal(access(json, F_OK), 0);
    program_free(&c);
}

/* The transcript has what was generated, marked as broken off, and the conversation goes on. */
static void a_session_outlives_the_fault(void **state)
{
    (void)state;
    fixture_skip_emulated();
    char chat[FIXTURE_PATH], json[FIXTURE_PATH];
    struct saved saved;
    size_t n = 0;
    fixture_join(chat, scratch, "chat.jsonl");
    FILE *f = fopen(chat, "we");
    assert_non_null(f);
    assert_true(fputs("{\"role\":\"user\",\"content\":\"Hello.\"}\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    struct child c = program_start(NULL, SLOW, "--chat", chat, "--session", "fault", "--thinking",
                                   "off", "--max-tokens", "1500", "--ignore-stop", NULL);
    program_wait_bytes(&c, 1);
    cut_all(&saved);
    program_wait(&c);
    restore_all(&saved);
    expect_status(&c, 4);
    program_free(&c);
    char *transcript = fixture_read(scratch, "data/k3chat/sessions/fault.jsonl", &n);
    expect_text(transcript, "Hello.");
    expect_text(transcript, "\"error\"");
    free(transcript);
    fixture_join(json, scratch, "more.json");
    c = program_start(NULL, "--batch", "--model", dir, "--threads", "1", "--io", "buffered",
                      "--budget", "2GB", "--context", "2048", "--chat", chat, "--session", "fault",
                      "--thinking", "off", "--max-tokens", "5", "--ignore-stop", "--json", json,
                      NULL);
    program_wait(&c);
    expect_status(&c, 0);
    program_free(&c);
    json_t *j = json_of("more.json");
    assert_int_equal(json_array_size(json_object_get(j, "generated_ids")), 5);
    json_decref(j);
    assert_int_equal(unlink(json), 0);
}

/* ---- all ------------------------------------------------------------------------------------- */

static int setup(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    fixture_scratch(scratch);
    fixture_join(path, scratch, "data");
    setenv("XDG_DATA_HOME", path, 1);
    setenv("XDG_CONFIG_HOME", "/nonexistent/config", 1);
    fixture_join(dir, scratch, "model");
    const struct k3_synth s = fixture_preset("tiny");
    fixture_write(&s, dir);
    struct k3_options opt = fixture_options(dir);
    k3_engine *e = fixture_engine(&opt);
    struct k3_error err;
    assert_int_equal(run_ids(e, &err), K3_OK);
    vocab = k3_get_plan(e)->vocab;
    clean = malloc(vocab * sizeof *clean);
    assert_non_null(clean);
    memcpy(clean, k3_logits(e), vocab * sizeof *clean);
    k3_close(e);
    find_budget();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(clean);
    fixture_scratch_end(scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_error_ends_the_step),
        cmocka_unit_test(a_shard_that_is_cut),
        cmocka_unit_test(an_embedding_that_is_cut),
        cmocka_unit_test(shards_replaced_or_deleted),
        cmocka_unit_test(a_shard_that_may_not_be_read),
        cmocka_unit_test(batch_after_output),
        cmocka_unit_test(batch_before_output),
        cmocka_unit_test(a_session_outlives_the_fault),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
