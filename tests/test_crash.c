/* test_crash.c - the program killed at any instant, a full disk, two programs on one session: nothing
 * that was shown longer than the flush interval is lost, and the conversation goes on as if nothing
 * had happened.
 *
 * K3_CRASH_KILLS sets how often it is killed (40). */
#include <config.h>

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../engine/text/tokenizer.h"
#include "../src/recorder.h"
#include "fixture.h"
#include "program.h"

static char scratch[FIXTURE_PATH], model[FIXTURE_PATH], sessions[FIXTURE_PATH];
static size_t longest_token;

#define TURNS 3
#define TOKENS "20"

/* Drawn, not greedy, and with the state saved after each token: all that a restart must get right. */
#define RUN(name) "--batch", "--model", model, "--threads", "1", "--io", "buffered", "--budget", \
    "2GB", "--context", "1024", "--thinking", "off", "--temperature", "0.9", "--seed", "5", \
    "--repetition-penalty", "1.1", "--ignore-stop", "--max-tokens", TOKENS, "--state-every", \
    "0.0001", "--session", name

static const char *const questions[TURNS] = {"tell me about the storm", "and then?", "the end"};

static char *question_file(char path[FIXTURE_PATH], size_t turn)
{
    char name[32];
    snprintf(name, sizeof name, "turn%zu.jsonl", turn);
    fixture_join(path, scratch, name);
    return path;
}

static void write_questions(void)
{
    for (size_t i = 0; i < TURNS; i++) {
        char path[FIXTURE_PATH];
        FILE *f = fopen(question_file(path, i), "w");
        assert_non_null(f);
        assert_true(fprintf(f, "{\"role\":\"user\",\"content\":\"%s\"}\n", questions[i]) > 0);
        assert_int_equal(fclose(f), 0);
    }
}

/* What is on disk; an empty conversation when there is no file. A torn end is left out. */
static struct conversation load(const char *name)
{
    char file[64], path[FIXTURE_PATH];
    struct transcript_contents c = {.torn = false};
    struct k3_error err;
    size_t n = 0;
    snprintf(file, sizeof file, "%s.jsonl", name);
    fixture_join(path, sessions, file);
    if (access(path, F_OK) != 0)
        return c.conversation;
    char *text = fixture_read(sessions, file, &n);
    if (transcript_parse(text, n, file, &c, &err) != K3_OK)
        fail_msg("%s", err.message);
    free(text);
    return c.conversation;
}

static bool is_answered(const struct conversation *c)
{
    const struct message *m = c->n == 0 ? NULL : &c->v[c->n - 1];
    return m == NULL || (strcmp(message_role(m), "assistant") == 0 && !m->unfinished &&
                         m->finish == FINISH_LENGTH);
}

/* The next piece of the conversation: a question, or the rest of an answer. */
static struct child step(const char *name, const struct conversation *c)
{
    char path[FIXTURE_PATH];
    if (!is_answered(c))
        return program_start(NULL, RUN(name), "--continue", NULL);
    return program_start(NULL, RUN(name), "--chat", question_file(path, c->n / 2), NULL);
}

static void finish(const char *name)
{
    for (;;) {
        struct conversation c = load(name);
        const bool done = c.n == 2 * TURNS && is_answered(&c);
        if (!done) {
            struct child p = step(name, &c);
            program_wait(&p);
            if (p.status != 0)
                fail_msg("exit status %d: %s", p.status, p.err_text);
            program_free(&p);
        }
        conversation_free(&c);
        if (done)
            return;
    }
}

/* All of it is what the undisturbed conversation has, as far as it goes; `whole`: all the way. */
static void expect_same(const struct conversation *have, const struct conversation *want, bool whole)
{
    assert_true(have->n <= want->n && (!whole || have->n == want->n));
    for (size_t i = 0; i < have->n; i++) {
        const struct message *a = &have->v[i], *b = &want->v[i];
        const bool last = i + 1 == have->n && !whole;
        if (last ? a->ids.n > b->ids.n : a->ids.n != b->ids.n)
            fail_msg("message %zu of %zu: %zu ids, expected %s%zu", i, have->n, a->ids.n,
                     last ? "at most " : "", b->ids.n);
        assert_memory_equal(a->ids.v, b->ids.v, a->ids.n * sizeof *a->ids.v);
        if (!last)
            assert_true(json_equal(a->body, b->body));
    }
}

static size_t tokens_of(const struct conversation *c)
{
    size_t n = c->n;
    for (size_t i = 0; i < c->n; i++)
        n += c->v[i].ids.n;
    return n;
}

/* What had been shown is on disk but for the tokens that may be waiting. */
static void expect_recorded(const struct child *p, const struct conversation *now)
{
    size_t n = 0;
    if (p->out_len == 0)
        return;
    assert_true(now->n > 0);
    const char *text = message_text(&now->v[now->n - 1], "content", &n);
    const bool answer = strcmp(message_role(&now->v[now->n - 1]), "assistant") == 0;
    n = answer ? n : 0;
    if (p->out_len > n + (RECORDER_TOKENS + 1) * longest_token + 1)
        fail_msg("%zu bytes were shown, %zu are recorded", p->out_len, n);
    assert_memory_equal(p->out_text, text, p->out_len < n ? p->out_len : n);
}

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void count_half_written(const char *name, unsigned limit)
{
    unsigned n = 0;
    DIR *d = opendir(sessions);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, name, strlen(name)) == 0 && strstr(e->d_name, ".tmp") != NULL;
    closedir(d);
    assert_true(n <= limit);
}

static void killed_at_any_instant(void **state)
{
    (void)state;
    const char *wish = getenv("K3_CRASH_KILLS");
    const int kills = wish != NULL ? atoi(wish) : 40;
    const double begin = seconds();
    finish("calm");
    const double turn = (seconds() - begin) / TURNS;
    struct conversation want = load("calm");
    assert_int_equal(want.n, 2 * TURNS);
    uint64_t random = 12345;
    char name[32] = "storm0";
    size_t before = 0, went_on = 0;
    /* Where loading takes most of a turn, few kills fall into an answer: on until one has. */
    for (int i = 0, round = 0; i < kills || (went_on == 0 && i < 10 * kills); i++) {
        struct conversation c = load(name);
        if (c.n == 2 * TURNS && is_answered(&c)) { /* through: once more from the beginning */
            expect_same(&c, &want, true);
            conversation_free(&c);
            snprintf(name, sizeof name, "storm%d", ++round);
            c = load(name);
            before = 0;
        }
        const bool unfinished = c.n > 0 && c.v[c.n - 1].unfinished;
        struct child p = step(name, &c);
        random = random * 6364136223846793005u + 1442695040888963407u;
        program_kill_after(&p, turn * 1.1 * (double)(random >> 40) / 0x1p24);
        assert_true(p.status == 128 + SIGKILL || p.status == 0);
        struct conversation now = load(name);
        expect_same(&now, &want, false);
        assert_true(tokens_of(&now) >= before); /* what was there is there */
        expect_recorded(&p, &now);
        count_half_written(name, 1);
        went_on += unfinished && tokens_of(&now) > before;
        before = tokens_of(&now);
        program_free(&p);
        conversation_free(&c);
        conversation_free(&now);
    }
    assert_true(kills < 40 || went_on > 0); /* answers were continued in their midst */
    finish(name);
    count_half_written(name, 0);
    struct conversation have = load(name);
    expect_same(&have, &want, true);
    conversation_free(&have);
    conversation_free(&want);
}

/* The transcript is full after so many bytes; states cannot be written at all. */
static void a_full_disk(void **state)
{
    (void)state;
    finish("calm");
    struct conversation want = load("calm");
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    for (rlim_t limit = 150; limit < 2500; limit += 391) {
        char name[32];
        snprintf(name, sizeof name, "full%u", (unsigned)limit);
        small = old;
        small.rlim_cur = limit;
        struct conversation c = load(name);
        setrlimit(RLIMIT_FSIZE, &small);
        struct child p = step(name, &c);
        setrlimit(RLIMIT_FSIZE, &old);
        program_wait(&p);
        assert_true(p.status == 0 || p.status == 1);
        assert_non_null(strstr(p.err_text, "File too large"));
        program_free(&p);
        c = load(name); /* whole records, as far as there was room */
        expect_same(&c, &want, false);
        conversation_free(&c);
        finish(name);
        c = load(name);
        expect_same(&c, &want, true);
        conversation_free(&c);
    }
    conversation_free(&want);
}

static void two_programs_on_one_session(void **state)
{
    (void)state;
    char path[FIXTURE_PATH], file[FIXTURE_PATH];
    fixture_join(file, sessions, "shared.jsonl");
    struct child first = program_start(NULL, RUN("shared"), "--chat", question_file(path, 0),
                                       "--simulate-disk", "300kB", NULL);
    program_wait_file(&first, file, "\"role\":\"user\"", 1);
    struct child second = program_start(NULL, RUN("shared"), "--chat", question_file(path, 1), NULL);
    program_wait(&second);
    assert_int_equal(second.status, 1);
    assert_non_null(strstr(second.err_text, "is open in another k3chat"));
    program_free(&second);
    second = program_start(NULL, "sessions", "delete", "--yes", "shared", NULL);
    program_wait(&second);
    assert_int_equal(second.status, 1);
    program_free(&second);
    second = program_start(NULL, "sessions", "show", "shared", NULL); /* reading is allowed */
    program_wait(&second);
    assert_int_equal(second.status, 0);
    assert_non_null(strstr(second.out_text, questions[0]));
    program_free(&second);
    program_kill_after(&first, 0);
    program_free(&first);
    struct conversation c = load("shared");
    assert_int_equal(c.n, 1);
    conversation_free(&c);
    finish("shared"); /* the lock went with the program */
}

static int setup(void **state)
{
    (void)state;
    struct k3_error err;
    fixture_scratch(scratch);
    setenv("XDG_DATA_HOME", scratch, 1);
    setenv("XDG_CONFIG_HOME", scratch, 1);
    fixture_join(sessions, scratch, "k3chat/sessions");
    fixture_join(model, scratch, "model");
    const struct k3_synth tiny = fixture_preset("tiny");
    fixture_write(&tiny, model);
    write_questions();
    k3_tokenizer *t = k3_tokenizer_open(model, &err);
    assert_non_null(t);
    for (size_t i = 0, n; i < k3_tokenizer_vocab(t); i++)
        if (k3_token_bytes(t, (int32_t)i, &n) != NULL && n > longest_token)
            longest_token = n;
    k3_tokenizer_close(t);
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
        cmocka_unit_test(killed_at_any_instant),
        cmocka_unit_test(a_full_disk),
        cmocka_unit_test(two_programs_on_one_session),
    };
    return cmocka_run_group_tests_name("crash", tests, setup, teardown);
}
