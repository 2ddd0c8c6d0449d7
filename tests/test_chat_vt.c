/* test_chat_vt.c - the whole program on a terminal: the real screen over the real engine with the
 * built-in model, on a disk made slow so that there is something to see and to interrupt. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vt.h"

static char data_home[300];

static int make_home(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(data_home, sizeof data_home, "%s/k3chat-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(data_home) ? 0 : -1;
}

static int remove_home(void **state)
{
    (void)state;
    char cmd[400];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", data_home);
    return system(cmd) == 0 ? 0 : -1;
}

static struct vt *start_with(const char *session, const char *option, const char *value)
{
    char path[4096], data[400], cache[400], config[400];
    const char *build = getenv("K3_BUILDDIR");
    snprintf(path, sizeof path, "%s/k3chat", build ? build : ".");
    snprintf(data, sizeof data, "XDG_DATA_HOME=%s/data", data_home);
    snprintf(cache, sizeof cache, "XDG_CACHE_HOME=%s/cache", data_home);
    snprintf(config, sizeof config, "XDG_CONFIG_HOME=%s/config", data_home);
    const char *argv[] = {path, "--session", session, "--threads", "1", "--context", "2048",
                          "--experts", "0", option, value, NULL};
    const struct vt_options opt = {
        .argv = argv, .env = (const char *const[]){data, cache, config, NULL},
        .rows = 24, .cols = 80, .control = -1, .report = -1,
    };
    return vt_start(&opt);
}

/* Experts are read for every token, from a disk so slow that an answer lasts until it is cut off. */
static struct vt *start(const char *session)
{
    return start_with(session, "--simulate-disk", "600kB");
}

static char *read_transcript(const char *session)
{
    char path[800];
    struct stat st;
    snprintf(path, sizeof path, "%s/data/k3chat/sessions/%s.jsonl", data_home, session);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    char *s = malloc((size_t)st.st_size + 1);
    assert_non_null(s);
    const size_t n = fread(s, 1, (size_t)st.st_size, f);
    s[n] = '\0';
    fclose(f);
    assert_true(n > 0 && s[n - 1] == '\n');
    return s;
}

static void assert_left_saying(struct vt *vt, int status, const char *text)
{
    const int s = vt_wait_exit(vt);
    if (text != NULL && !vt_has(vt, text)) {
        vt_dump(vt);
        fail_msg("\"%s\" is not in what it says at the end", text);
    }
    assert_true(WIFEXITED(s));
    assert_int_equal(WEXITSTATUS(s), status);
    assert_false(vt_alternate(vt));
    assert_false(vt_bracketed_paste(vt));
    assert_true(vt_cursor_visible(vt));
    assert_true(vt_modes_restored(vt));
    vt_free(vt);
}

static void assert_left(struct vt *vt, int status)
{
    assert_left_saying(vt, status, NULL);
}

/* Asks, and waits until the answer streams. */
static void ask(struct vt *vt, const char *text)
{
    vt_send(vt, text);
    vt_send(vt, "\r");
    assert_true(vt_wait_text(vt, "reading prompt"));
    assert_true(vt_wait_text(vt, "s/tok"));
    assert_true(vt_wait_text(vt, " tok"));
}

static void test_conversation(void **state)
{
    (void)state;
    struct vt *vt = start("talk");
    assert_non_null(vt);
    assert_true(vt_wait_text(vt, "knows only"));
    assert_true(vt_wait_text(vt, "idle"));
    vt_send(vt, "What is r\xc3\xbcst?\r");
    assert_true(vt_wait_text(vt, "reading prompt"));
    assert_true(vt_has(vt, "What is r\xc3\xbcst?"));
    vt_resize(vt, 40, 120);
    assert_true(vt_wait_text(vt, "demo model: knows only k3chat"));
    assert_true(vt_wait_text(vt, "ms/tok"));
    assert_true(vt_wait_text(vt, "thinking  "));
    assert_true(vt_wait_text(vt, "trunk "));
    vt_resize(vt, 12, 40);
    assert_true(vt_wait_gone(vt, "trunk "));
    vt_resize(vt, 24, 80);
    assert_true(vt_wait_text(vt, "true resident hit rate"));
    vt_send(vt, "\033");
    assert_true(vt_wait_text(vt, "[cancelled]"));
    assert_true(vt_wait_text(vt, "idle"));
    vt_send(vt, "/new other\r"); /* to another session, and back by the list */
    assert_true(vt_wait_text(vt, "k3chat   other"));
    assert_true(vt_wait_text(vt, "idle"));
    vt_send(vt, "/sessions\r");
    assert_true(vt_wait_text(vt, "type to filter"));
    vt_send(vt, "talk\r");
    assert_true(vt_wait_text(vt, "k3chat   talk"));
    assert_true(vt_wait_text(vt, "[cancelled]"));
    vt_send(vt, "\x11");
    assert_left(vt, 0);

    char *s = read_transcript("talk");
    assert_non_null(strstr(s, "What is r"));
    assert_non_null(strstr(s, "\"cancelled\""));
    free(s);

    vt = start("talk"); /* it is there again */
    assert_non_null(vt);
    assert_true(vt_wait_text(vt, "What is r\xc3\xbcst?"));
    assert_true(vt_wait_text(vt, "[cancelled]"));
    vt_send(vt, "\x04");
    assert_left(vt, 0);
}

static void test_cut_short(void **state)
{
    (void)state;
    struct vt *vt = start("cut");
    assert_non_null(vt);
    assert_true(vt_wait_text(vt, "idle"));
    vt_send(vt, "too early\r");
    assert_true(vt_wait_text(vt, "reading prompt"));
    vt_send(vt, "\x03"); /* before the first word: the message comes back */
    assert_true(vt_wait_text(vt, "back in the editor"));
    assert_true(vt_wait_text(vt, "idle"));
    assert_int_equal(vt_find_row(vt, "too early"), 22);
    vt_send(vt, "\x15");
    ask(vt, "once more");
    vt_signal(vt, SIGTERM);
    assert_left(vt, 130);
    char *s = read_transcript("cut");
    assert_non_null(strstr(s, "once more"));
    free(s);
}

/* A terminal that closes hangs up more than once; the session is left in order all the same: the file of
 * one in which nothing was said is removed. */
static void test_closed_terminal(void **state)
{
    (void)state;
    char path[800];
    snprintf(path, sizeof path, "%s/data/k3chat/sessions/closed.jsonl", data_home);
    struct vt *vt = start("closed");
    assert_non_null(vt);
    assert_true(vt_wait_text(vt, "idle"));
    assert_int_equal(access(path, F_OK), 0);
    for (int i = 0; i < 200; i++) {
        vt_signal(vt, SIGHUP);
        usleep(500);
    }
    assert_left(vt, 130);
    assert_int_equal(access(path, F_OK), -1);
}

/* Two programs on one session: the second looks on, and takes over when the first has left. */
static void test_second_program(void **state)
{
    (void)state;
    struct vt *first = start("both"), *second;
    assert_non_null(first);
    assert_true(vt_wait_text(first, "idle"));
    ask(first, "said in the first");
    vt_send(first, "\033");
    assert_true(vt_wait_text(first, "[cancelled]"));
    second = start("both");
    assert_non_null(second);
    assert_true(vt_wait_text(second, "READ ONLY"));
    assert_true(vt_has(second, "said in the first"));
    assert_int_equal(vt_find_row(second, "read only"), 23);
    vt_send(second, "hello\r");
    assert_true(vt_wait_text(second, "here it is only"));
    vt_send(second, "\x15");
    vt_send(first, "/rename \xc3\xbc" "ber\r"); /* it does not matter to who looks on */
    assert_true(vt_wait_text(first, "k3chat   \xc3\xbc" "ber"));
    vt_send(first, "/rename both\r");
    assert_true(vt_wait_text(first, "k3chat   both"));
    vt_send(first, "\x11");
    assert_left(first, 0);
    vt_send(second, "/resume\r");
    assert_true(vt_wait_text(second, "idle"));
    assert_true(vt_has(second, "said in the first"));
    ask(second, "said in the second");
    vt_send(second, "\033");
    assert_true(vt_wait_text(second, "idle"));
    vt_send(second, "\x11");
    assert_left(second, 0);
    char *s = read_transcript("both");
    assert_non_null(strstr(s, "said in the first"));
    assert_non_null(strstr(s, "said in the second"));
    free(s);
}

/* The whole message stands in the terminal afterwards, with both numbers and what to do. */
static void test_small_budget(void **state)
{
    (void)state;
    struct vt *vt = start_with("small", "--budget", "9MB");
    assert_non_null(vt);
    assert_true(vt_wait_text(vt, "failed"));
    vt_send(vt, "\x11");
    assert_left_saying(vt, 1, "--budget");
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversation),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_closed_terminal),
        cmocka_unit_test(test_second_program),
        cmocka_unit_test(test_small_budget),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
