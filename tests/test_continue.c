/* test_continue.c - `--batch --continue` from outside: an answer that ended by itself is not gone on with,
 * one that was cut off ends as if it had never been. The built-in model, whose answers end. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fixture.h"
#include "program.h"

static char scratch[FIXTURE_PATH], sessions[FIXTURE_PATH];

#define RUN "--batch", "--threads", "1", "--io", "buffered", "--session"

static const char *in_scratch(const char *name)
{
    static char path[FIXTURE_PATH];
    fixture_join(path, scratch, name);
    return path;
}

static void expect(const struct child *c, int status, const char *said)
{
    if (c->status != status || strstr(c->err_text, said) == NULL)
        fail_msg("exit status %d, not %d with '%s'; stdout '%s', stderr '%s'", c->status, status,
                 said, c->out_text, c->err_text);
}

/* An answer of at most so many tokens; its stdout is to be freed. */
static char *answer(const char *session, const char *most, const char *finish)
{
    struct child c = program_start(NULL, RUN, session, "--chat", in_scratch("question"),
                                   "--thinking", "low", "--max-tokens", most, NULL);
    program_wait(&c);
    expect(&c, 0, finish);
    char *text = strdup(c.out_text);
    assert_non_null(text);
    program_free(&c);
    return text;
}

static void write_session(const char *name, const char *text, size_t len)
{
    char path[FIXTURE_PATH];
    fixture_join(path, sessions, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* Refused with a word, before anything is written. */
static void expect_refused(const char *session, const char *option)
{
    char file[128];
    struct stat st;
    size_t before = 0, after = 0;
    snprintf(file, sizeof file, "%s.jsonl", session);
    char *old = fixture_read(sessions, file, &before);
    struct child c = program_start(NULL, RUN, session, "--continue", "--json",
                                   in_scratch("result.json"), option, NULL);
    program_wait(&c);
    expect(&c, 2, "the last answer of session");
    expect(&c, 2, "is complete");
    assert_int_equal(c.out_len, 0);
    program_free(&c);
    assert_int_not_equal(stat(in_scratch("result.json"), &st), 0);
    char *now = fixture_read(sessions, file, &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, now, before);
    free(old);
    free(now);
}

static void ended_by_a_stop_token(void **state)
{
    (void)state;
    free(answer("done", "300", "(stop)"));
    expect_refused("done", NULL);
    expect_refused("done", "--ignore-stop");
}

/* The program died between the stop token's record and the one of the whole answer: the token says
 * that it is complete. */
static void its_last_record_is_lost(void **state)
{
    (void)state;
    size_t len = 0;
    free(answer("whole", "300", "(stop)"));
    char *text = fixture_read(sessions, "whole.jsonl", &len), *ids = NULL, *last;
    assert_true(len > 0 && text[len - 1] == '\n');
    text[len - 1] = '\0';
    last = strrchr(text, '\n') + 1;
    assert_non_null(ids = strstr(last, "\"ids\":["));
    char *all = strdup(ids + strlen("\"ids\":"));
    assert_non_null(all);
    strchr(all, ']')[1] = '\0';
    const size_t head = (size_t)(strstr(text, "{\"type\":\"partial\"") - text);
    char *lost = malloc(len + strlen(all) + 256);
    assert_non_null(lost);
    const int n = sprintf(lost, "%.*s{\"type\":\"partial\",\"id\":2,\"parent\":1,\"time\":1,\"from\":0,"
                                "\"ids\":%s,\"reasoning_content\":\"\",\"content\":\"said\","
                                "\"reasoning_tokens\":0}\n", (int)head, text, all);
    write_session("lost.jsonl", lost, (size_t)n);
    expect_refused("lost", NULL);
    free(lost);
    free(all);
    free(text);
}

/* Cut off by its length, it goes on to the end that it would have had; then there is no more. */
static void cut_off_and_continued(void **state)
{
    (void)state;
    char *whole = answer("reference", "300", "(stop)");
    char *begin = answer("cut", "30", "(length)");
    const size_t had = strcspn(begin, "\n");
    assert_true(had > 0 && strncmp(whole, begin, had) == 0);
    struct child c;
    bool stopped = false;
    for (int i = 0; i < 20 && !stopped; i++) { /* as long again each time */
        c = program_start(NULL, RUN, "cut", "--continue", NULL);
        program_wait(&c);
        assert_int_equal(c.status, 0);
        stopped = strstr(c.err_text, "(stop)") != NULL;
        if (stopped)
            assert_string_equal(c.out_text, whole);
        program_free(&c);
    }
    assert_true(stopped);
    expect_refused("cut", NULL);
    free(whole);
    free(begin);
}

static int setup(void **state)
{
    (void)state;
    fixture_scratch(scratch);
    setenv("XDG_DATA_HOME", scratch, 1);
    setenv("XDG_CACHE_HOME", in_scratch("cache"), 1);
    setenv("XDG_CONFIG_HOME", in_scratch("config"), 1);
    fixture_join(sessions, scratch, "k3chat/sessions");
    FILE *f = fopen(in_scratch("question"), "w");
    if (f == NULL || fputs("{\"role\":\"user\",\"content\":\"Why is it slow?\"}\n", f) < 0)
        return -1;
    return fclose(f);
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
        cmocka_unit_test(ended_by_a_stop_token),
        cmocka_unit_test(its_last_record_is_lost),
        cmocka_unit_test(cut_off_and_continued),
    };
    return cmocka_run_group_tests_name("continue", tests, setup, teardown);
}
