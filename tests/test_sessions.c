/* test_sessions.c - `k3chat sessions` from outside: list, show, export, import, rename, delete,
 * search, check. */
#include <config.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "program.h"

static char scratch[FIXTURE_PATH], model[FIXTURE_PATH], sessions[FIXTURE_PATH];

/* Runs to the end; the status must be this one. The caller frees the child. */
static struct child expect(struct child c, int status)
{
    program_wait(&c);
    if (c.status != status)
        fail_msg("exit status %d instead of %d; stdout '%s', stderr '%s'", c.status, status,
                 c.out_text, c.err_text);
    return c;
}

#define DO(status, ...) expect(program_start(NULL, "sessions", __VA_ARGS__, NULL), status)

static void done(struct child c)
{
    program_free(&c);
}

static void expect_out(const struct child *c, const char *part)
{
    if (strstr(c->out_text, part) == NULL)
        fail_msg("stdout lacks '%s': '%s'", part, c->out_text);
}

static void expect_err(struct child c, const char *part)
{
    if (strstr(c.err_text, part) == NULL)
        fail_msg("stderr lacks '%s': '%s'", part, c.err_text);
    program_free(&c);
}

static char *write_text(char path[FIXTURE_PATH], const char *name, const char *text)
{
    fixture_join(path, scratch, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    return path;
}

static bool there_is(const char *name)
{
    char path[FIXTURE_PATH];
    fixture_join(path, sessions, name);
    return access(path, F_OK) == 0;
}

/* What a terminal gets of a command, up to this. */
static void on_terminal(char *text, size_t cap, const char *action, const char *what, const char *end)
{
    size_t n = 0;
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY); /* else what it says is gone with it */
    assert_true(slave >= 0);
    done(expect(program_start(ptsname(master), "sessions", action, what, NULL), 0));
    for (text[0] = '\0'; n + 1 < cap && strstr(text, end) == NULL;) {
        const ssize_t got = read(master, text + n, cap - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
        text[n] = '\0';
    }
    close(slave);
    close(master);
}

/* What the model or a file says does not command the terminal; a pipe is given it as it is. */
static void control_characters(void **state)
{
    (void)state;
    char path[FIXTURE_PATH], text[4096] = "";
    write_text(path, "control.jsonl",
               "{\"role\":\"user\",\"content\":\"a\\u001b[2Jb\\u009b1mc\\r\\nd\\u0007\\te\"}\n");
    done(DO(0, "import", path, "--session", "control"));
    on_terminal(text, sizeof text, "show", "control", "\te");
    assert_non_null(strstr(text, "a^[[2Jb\xEF\xBF\xBD" "1mc\r\nd^G\te"));
    assert_null(strpbrk(text, "\033\007"));
    assert_null(strstr(text, "\xC2\x9B"));
    on_terminal(text, sizeof text, "search", "2j", "\n");
    assert_non_null(strstr(text, "[2Jb\xEF\xBF\xBD" "1mc"));
    struct child c = DO(0, "show", "control");
    expect_out(&c, "a\033[2Jb\xC2\x9B" "1mc\r\nd\007\te");
    done(c);
    done(DO(0, "delete", "control", "--yes"));
}

/* Every shape that other programs write; what cannot be rendered is refused and leaves nothing. */
static void imports(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    static const char lines[] =
        "{\"role\":\"Developer\",\"content\":\"Be brief.\"}\n\n"
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"What is\"},"
        "{\"type\":\"text\",\"text\":\" the weather?\"}],\"id\":\"m1\",\"ids\":\"none of ours\"}\n"
        "{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"I must look.\","
        "\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"weather\","
        "\"arguments\":\"{\\\"town\\\":\\\"Graz\\\"}\"}}],\"finish\":7}\n"
        "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"storm\"}\n"
        "{\"role\":\"assistant\",\"content\":\"A storm.\"}";
    struct child c = DO(0, "import", write_text(path, "a.jsonl", lines), "--session", "weather");
    assert_string_equal(c.out_text, "weather\n");
    done(c);
    c = DO(0, "show", "weather");
    expect_out(&c, "--- system");
    expect_out(&c, "What is the weather?");
    expect_out(&c, "(thinking)\nI must look.\n(answer)");
    expect_out(&c, "tool call: weather \"{\\\"town\\\":\\\"Graz\\\"}\"");
    done(c);
    expect_err(DO(2, "import", path, "--session", "weather"), "already");
    done(DO(0, "import", write_text(path, "b.json", "[{\"role\":\"user\",\"content\":\"array\"}]")));
    done(DO(0, "import", write_text(path, "c.json", "{\"messages\":[{\"role\":\"user\","
                                                    "\"content\":\"wrapped\"}]}"),
            "--session=wrapped"));
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "there is no message"},
        {"[1]", "message 1 is no object"},
        {"{\"content\":\"x\"}", "has no \"role\""},
        {"{\"role\":\"poet\",\"content\":\"x\"}", "unknown_role"},
        {"{\"role\":\"user\",\"content\":{}}", "bad_content"},
        {"{\"role\":\"user\",\"content\":\"x\"}\nnonsense", "line 2"},
        {"[{\"role\":\"user\"", "no valid JSON"},
        {"{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{}}]}", "image"},
        {"{\"format\":\"k3chat-transcript\",\"version\":1}", "is a transcript already"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_err(DO(2, "import", write_text(path, "bad.json", bad[i].text), "--session", "bad"),
                   bad[i].why);
        assert_false(there_is("bad.jsonl"));
    }
    expect_err(DO(2, "import", "/nonexistent"), "/nonexistent");
}

/* What is exported as jsonl and imported again is the same conversation. */
static void exports(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    struct child c = DO(0, "export", "weather", "--format", "jsonl");
    assert_null(strstr(c.out_text, "none of ours"));
    assert_null(strstr(c.out_text, "\"finish\""));
    expect_out(&c, "\"tool_call_id\":\"c1\"");
    done(DO(0, "import", write_text(path, "d.jsonl", c.out_text), "--session", "twice"));
    struct child again = DO(0, "export", "twice", "--format=jsonl");
    assert_string_equal(again.out_text, c.out_text);
    done(again);
    done(c);
    c = DO(0, "export", "weather");
    expect_out(&c, "# weather\n");
    expect_out(&c, "> I must look.");
    done(c);
    expect_err(DO(2, "export", "weather", "--format", "pdf"), "md, jsonl or txt");
    expect_err(DO(2, "export", "nobody"), "there is no session 'nobody'");
    expect_err(DO(2, "show", "a/b"), "cannot hold");
}

static void searches(void **state)
{
    (void)state;
    struct child c = DO(0, "search", "STORM");
    expect_out(&c, "weather: 4 tool: storm");
    expect_out(&c, "weather: 5 assistant: A storm.");
    done(c);
    done(DO(1, "search", "no such word"));
}

/* A chat of the program's own: states in the list, renamed and deleted with it. */
static void renames_and_deletes(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    done(expect(program_start(NULL, "--batch", "--model", model, "--threads", "1", "--io",
                              "buffered", "--budget", "2GB", "--context", "1024", "--max-tokens",
                              "12", "--ignore-stop", "--seed", "3", "--top-k", "50", "--min-p",
                              "0.01", "--session", "own", "--chat",
                              write_text(path, "q.jsonl",
                                         "{\"role\":\"user\",\"content\":\"a question\\nof two "
                                         "lines that goes on and on and on\"}"),
                              NULL),
                0));
    struct child c = DO(0, "list");
    expect_out(&c, "last use");
    expect_out(&c, "a question of two lines that goes on and");
    assert_true(strstr(c.out_text, "  own ") < strstr(c.out_text, "  weather ")); /* newest first */
    done(c);
    c = DO(0, "check", "own", "--model", model, "--context", "1024", "--io", "buffered", "--threads",
           "1", "--budget", "2GB");
    expect_out(&c, "1 answer with 12 tokens: what a fresh run gives\nthe saved state of ");
    done(c);
    c = DO(0, "check", "weather", "--model", model, "--context", "1024", "--budget", "2GB");
    expect_out(&c, "2 answers were not compared");
    expect_out(&c, "there is no answer that could be compared");
    done(c);

    expect_err(DO(2, "rename", "own", "weather"), "File exists");
    done(DO(0, "rename", "own", "mine"));
    assert_false(there_is("own.jsonl"));
    assert_true(there_is("mine.jsonl"));
    c = DO(0, "show", "mine");
    expect_out(&c, "a question\nof two lines");
    done(c);
    c = DO(0, "check", "mine", "--model", model, "--context", "1024", "--budget", "2GB");
    expect_out(&c, "gives the same bits"); /* it has moved along */
    done(c);
    fixture_flip(sessions, "mine.jsonl", 200);
    c = DO(0, "list"); /* one that cannot be read is in the list nevertheless */
    expect_out(&c, "mine");
    done(c);
    fixture_flip(sessions, "mine.jsonl", 200);

    expect_err(DO(2, "delete", "mine"), "--yes");
    done(DO(0, "delete", "mine", "--yes"));
    assert_false(there_is("mine.jsonl"));
    c = DO(0, "list");
    assert_null(strstr(c.out_text, "mine"));
    done(c);
    struct child ls = expect(program_start(NULL, "sessions", "delete", "--yes", "mine", NULL), 2);
    expect_err(ls, "there is no session");
    assert_int_equal(rmdir(sessions) == 0, 0); /* the others are there */
}

static void usage(void **state)
{
    (void)state;
    struct child c = DO(0, "--help");
    expect_out(&c, "import FILE");
    done(c);
    expect_err(DO(2, "dance"), "unknown action 'dance'");
    expect_err(expect(program_start(NULL, "sessions", NULL), 2), "--help");
    expect_err(DO(2, "check"), "takes a session");
    expect_err(DO(2, "check", "weather", "--wrong"), "--wrong");
    expect_err(DO(2, "rename", "weather"), "new name");
}

static int setup(void **state)
{
    (void)state;
    fixture_scratch(scratch);
    setenv("XDG_DATA_HOME", scratch, 1);
    setenv("XDG_CONFIG_HOME", scratch, 1);
    fixture_join(sessions, scratch, "k3chat/sessions");
    fixture_join(model, scratch, "model");
    const struct k3_synth tiny = fixture_preset("tiny");
    fixture_write(&tiny, model);
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
        cmocka_unit_test(imports),
        cmocka_unit_test(control_characters),
        cmocka_unit_test(exports),
        cmocka_unit_test(searches),
        cmocka_unit_test(renames_and_deletes),
        cmocka_unit_test(usage),
    };
    return cmocka_run_group_tests_name("sessions", tests, setup, teardown);
}
