/* test_ui_terminal.c - the screen on a real pty: start, sizes, silence, colours, and every way out. */
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ui_steps.h"

static void test_first_frame(void **state)
{
    (void)state;
    struct rig *r = START(0);
    assert_true(vt_alternate(r->vt));
    assert_true(vt_bracketed_paste(r->vt));
    assert_true(vt_cursor_visible(r->vt));
    assert_false(vt_modes_restored(r->vt));
    assert_int_equal(vt_find_row(r->vt, "k3chat"), 0);
    assert_int_equal(vt_find_row(r->vt, "loading"), 23);
    assert_true(vt_has(r->vt, "token time"));
    assert_true(vt_has(r->vt, "disk wait"));
    assert_true(vt_has(r->vt, "true resident hit rate"));
    rig_say(r, "set detail indexing shards");
    rig_say(r, "set load_done 45");
    rig_say(r, "set load_total 96");
    assert_true(vt_wait_text(r->vt, "indexing shards"));
    assert_true(vt_has(r->vt, "47 %"));
    rig_say(r, "set demo 1");
    assert_true(vt_wait_text(r->vt, "knows only k3chat"));
    quit(r);
}

static void test_unknown_size(void **state)
{
    (void)state;
    struct rig *r = START(.zero_size = true);
    assert_int_equal(vt_find_row(r->vt, "loading"), 23);
    quit(r);
}

static void assert_refused(const char *term, const char *word)
{
    struct rig *r = rig_launch(&(struct rig_options){.term = term});
    assert_non_null(r);
    const int s = vt_wait_exit(r->vt);
    assert_true(WIFEXITED(s));
    assert_int_equal(WEXITSTATUS(s), 2);
    assert_true(vt_has(r->vt, word));
    assert_true(vt_has(r->vt, "--batch"));
    assert_false(vt_wrote(r->vt, "\033["));
    assert_true(vt_modes_restored(r->vt));
    rig_free(r);
}

static void test_terminals_refused(void **state)
{
    (void)state;
    assert_refused("dumb", "TERM is dumb");
    assert_refused("", "not set");
    assert_refused("no-such-terminal", "no-such-terminal");
}

static void test_no_terminal(void **state)
{
    (void)state;
    char cmd[4096], out[1024] = "";
    const char *build = getenv("K3_BUILDDIR");
    snprintf(cmd, sizeof cmd, "TERM=xterm '%s/ui_fake' 3</dev/null 4>/dev/null </dev/null 2>&1",
             build ? build : ".");
    FILE *p = popen(cmd, "r");
    assert_non_null(p);
    const size_t n = fread(out, 1, sizeof out - 1, p);
    out[n] = '\0';
    const int s = pclose(p);
    assert_int_equal(WEXITSTATUS(s), 2);
    assert_non_null(strstr(out, "--batch"));
}

static void test_resize_storm(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    for (int i = 0; i < 40; i++)
        rig_say(r, "message %s 0 0 some words that can be wrapped, number %d", i % 2 ? "assistant"
                                                                                     : "user", i);
    assert_true(vt_wait_text(r->vt, "number 39"));
    unsigned seed = 7;
    for (int i = 0; i < 150; i++) {
        seed = seed * 1103515245 + 12345;
        const int rows = 8 + (int)(seed >> 16) % 50, cols = 40 + (int)(seed >> 8) % 160;
        vt_resize(r->vt, rows, cols);
        if (i % 3 == 0)
            continue; /* several in a row */
        for (int k = 0; k < VT_DEADLINE_MS / 10 && vt_find_row(r->vt, "idle") != rows - 1; k++)
            vt_pump(r->vt, 10);
        assert_int_equal(vt_find_row(r->vt, "idle"), rows - 1);
    }
    vt_resize(r->vt, 24, 80);
    assert_true(vt_wait_text(r->vt, "true resident hit rate"));
    quit(r);
}

static void test_too_small(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    vt_send(r->vt, "kept");
    assert_true(vt_wait_text(r->vt, "kept"));
    vt_resize(r->vt, 5, 30);
    assert_true(vt_wait_text(r->vt, "too small: have 30x5"));
    assert_true(vt_has(r->vt, "need 40x8")); /* below it: one row has no room for both */
    vt_send(r->vt, "!");
    rig_say(r, "message assistant 0 0 meanwhile");
    vt_resize(r->vt, 1, 1);
    vt_settle(r->vt);
    vt_resize(r->vt, 12, 40);
    assert_true(vt_wait_text(r->vt, "kept!"));
    vt_send(r->vt, "\033OQ\033OQ");
    assert_true(vt_wait_text(r->vt, "no room for panes"));
    vt_send(r->vt, "\033OP"); /* help: the keys above what they do */
    assert_true(vt_wait_text(r->vt, "new line (a paste never sends)"));
    vt_send(r->vt, "\033");
    assert_true(vt_wait_gone(r->vt, "paste never"));
    assert_true(vt_wait_text(r->vt, "meanwhile"));
    assert_int_equal(vt_find_row(r->vt, "idle"), 11);
    quit(r);
}

static void test_silence(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    const size_t before = vt_written(r->vt);
    assert_int_equal(vt_pump(r->vt, 400), 0);
    rig_say(r, "wake"); /* a reason to look, and nothing new to see */
    assert_int_equal(vt_pump(r->vt, 400), 0);
    assert_int_equal(vt_written(r->vt), before);
    vt_send(r->vt, "x");
    assert_true(vt_wait_text(r->vt, "x"));
    quit(r);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void test_frame_limit(void **state)
{
    (void)state;
    struct rig *r = START(0);
    ask(r, "go");
    rig_say(r, "answer 0");
    rig_say(r, "phase answering");
    assert_true(vt_wait_text(r->vt, "answering"));
    vt_settle(r->vt);
    const size_t frames = vt_count_written(r->vt, "\033[?2026h");
    const double from = seconds();
    for (int i = 0; i < 100; i++) {
        rig_say(r, "say w%d ", i);
        vt_pump(r->vt, 10);
    }
    const double took = seconds() - from;
    const size_t drawn = vt_count_written(r->vt, "\033[?2026h") - frames;
    assert_true((double)drawn <= took * 5 + 2);
    assert_true(vt_wait_text(r->vt, "w99"));
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, "idle"));
    quit(r);
}

static void test_colours(void **state)
{
    (void)state;
    struct rig *r = START(0);
    assert_true(vt_coloured(r->vt));
    quit(r);
    r = START(.env = (const char *const[]){"NO_COLOR=1", NULL});
    assert_false(vt_coloured(r->vt));
    quit(r);
    r = START(.arg = "--mono");
    assert_false(vt_coloured(r->vt));
    quit(r);
    r = START(.term = "vt100");
    assert_false(vt_coloured(r->vt));
    rig_make_idle(r);
    vt_send(r->vt, "text");
    assert_true(vt_wait_text(r->vt, "text"));
    vt_send(r->vt, "\x11");
    const int s = vt_wait_exit(r->vt);
    assert_int_equal(WEXITSTATUS(s), 0);
    assert_true(vt_modes_restored(r->vt));
    rig_free(r);
    r = START(.term = "linux");
    assert_true(vt_coloured(r->vt));
    vt_send(r->vt, "\x11");
    assert_int_equal(WEXITSTATUS(vt_wait_exit(r->vt)), 0);
    rig_free(r);
}

static void test_plain_locale(void **state)
{
    (void)state;
    struct rig *r = START(.locale = "C");
    assert_true(vt_wait_text(r->vt, "no UTF-8"));
    rig_make_idle(r);
    vt_send(r->vt, "caf\xc3\xa9");
    assert_true(vt_wait_text(r->vt, "caf?"));
    rig_say(r, "step 1 24.1 18.8 3.6 21.7 98000000000 39000000000 1472 268 895 309");
    rig_say(r, "set last 24.1");
    rig_say(r, "message assistant 0 0 \\xe6\\x97\\xa5 **x** \\xf0\\x9f\\x99\\x82");
    assert_true(vt_wait_text(r->vt, "?  x ?"));
    vt_settle(r->vt);
    assert_true(vt_wrote_only_ascii(r->vt));
    vt_send(r->vt, "\r");
    assert_string_equal(rig_hear(r, "send"), "send caf\xc3\xa9");
    quit(r);
}

static void test_leaving(void **state)
{
    (void)state;
    struct rig *r = START(0);
    vt_send(r->vt, "\x04");
    assert_leaves(r, 0);

    r = START(0);
    rig_make_idle(r);
    vt_send(r->vt, "\x03");
    assert_true(vt_wait_text(r->vt, "Ctrl+C again leaves"));
    vt_send(r->vt, "x\x03");
    assert_true(vt_wait_text(r->vt, "Ctrl+C again leaves"));
    vt_send(r->vt, "\x03");
    assert_leaves(r, 0);

    r = START(0);
    rig_make_idle(r);
    rig_say(r, "phase answering");
    assert_true(vt_wait_text(r->vt, "answering"));
    vt_send(r->vt, "\x11");
    assert_true(vt_wait_text(r->vt, "answer running: Ctrl+Q stops it"));
    vt_send(r->vt, "\x11");
    assert_leaves(r, 0);

    r = START(0);
    rig_make_idle(r);
    rig_say(r, "unsaved 1");
    rig_say(r, "notice the disk is full");
    assert_true(vt_wait_text(r->vt, "the disk is full"));
    vt_send(r->vt, "\x11");
    assert_true(vt_wait_text(r->vt, "is not on the disk"));
    vt_send(r->vt, "x\x7f"); /* another key: asked again */
    vt_send(r->vt, "/quit\r");
    assert_true(vt_wait_text(r->vt, "is not on the disk"));
    vt_send(r->vt, "\x11");
    assert_leaves(r, 0);
}

/* What was typed but not read must not reach the shell. */
static void test_input_discarded(void **state)
{
    (void)state;
    struct rig *r = START(0);
    char junk[2000];
    memset(junk, 'j', sizeof junk);
    junk[0] = '\x11';
    vt_send_bytes(r->vt, junk, sizeof junk);
    const int s = vt_wait_exit(r->vt);
    assert_int_equal(WEXITSTATUS(s), 0);
    assert_int_equal(vt_unread_input(r->vt), 0);
    rig_free(r);
}

static void test_failure_is_told(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_say(r, "error model.safetensors: cannot be read");
    rig_say(r, "set detail model.safetensors: cannot be read");
    rig_say(r, "phase failed");
    assert_true(vt_wait_text(r->vt, "failed"));
    assert_true(vt_has(r->vt, "cannot be read"));
    vt_send(r->vt, "hello\r");
    assert_true(vt_wait_text(r->vt, "the engine has stopped"));
    assert_true(vt_has(r->vt, "hello"));
    vt_send(r->vt, "\x11");
    const int s = vt_wait_exit(r->vt);
    assert_int_equal(WEXITSTATUS(s), 1);
    assert_restored(r);
    assert_true(vt_has(r->vt, "ui_fake: model.safetensors: cannot be read"));
    rig_free(r);
}

static void test_signals(void **state)
{
    (void)state;
    static const int ends[] = {SIGTERM, SIGHUP, SIGINT};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct rig *r = START(0);
        vt_signal(r->vt, ends[i]);
        assert_leaves(r, 130);
    }
    /* A terminal that closes says so more than once, and the session is left in order all the same. */
    struct rig *r = START(0);
    for (int i = 0; i < 3; i++) {
        vt_signal(r->vt, SIGHUP);
        usleep(100);
    }
    assert_leaves(r, 130);
}

static void test_crashes(void **state)
{
    (void)state;
    static const int ends[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct rig *r = START(0);
        vt_signal(r->vt, ends[i]);
        const int s = vt_wait_exit(r->vt);
        assert_true(s != -1 && !(WIFEXITED(s) && WEXITSTATUS(s) == 0));
        assert_restored(r);
        rig_free(r);
    }
    struct rig *r = START(0);
    vt_send(r->vt, "\x1c"); /* Ctrl+\ ends a program that hangs */
    const int s = vt_wait_exit(r->vt);
    assert_true(WIFSIGNALED(s) && WTERMSIG(s) == SIGQUIT);
    assert_restored(r);
    rig_free(r);
}

static void test_suspend(void **state)
{
    (void)state;
    struct rig *r = START(.job_control = true);
    rig_make_idle(r);
    vt_send(r->vt, "kept\x1a");
    assert_true(vt_wait_stopped(r->vt));
    assert_restored(r);
    vt_foreground(r->vt);
    assert_true(vt_wait_text(r->vt, "kept"));
    vt_settle(r->vt);
    assert_true(vt_alternate(r->vt));
    assert_true(vt_bracketed_paste(r->vt));
    vt_send(r->vt, "!\x1a");
    assert_true(vt_wait_stopped(r->vt));
    vt_background(r->vt);
    const size_t before = vt_written(r->vt);
    rig_say(r, "message assistant 0 0 unseen work"); /* goes on without the terminal */
    rig_say(r, "no-such-command");
    assert_non_null(rig_hear(r, "no such command"));
    vt_pump(r->vt, 50);
    assert_int_equal(vt_written(r->vt), before);
    assert_restored(r);
    vt_foreground(r->vt);
    assert_true(vt_wait_text(r->vt, "unseen work"));
    assert_true(vt_has(r->vt, "kept!"));
    assert_true(vt_alternate(r->vt));
    vt_send(r->vt, "\x11");
    assert_leaves(r, 0);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_frame),
        cmocka_unit_test(test_unknown_size),
        cmocka_unit_test(test_terminals_refused),
        cmocka_unit_test(test_no_terminal),
        cmocka_unit_test(test_resize_storm),
        cmocka_unit_test(test_too_small),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_frame_limit),
        cmocka_unit_test(test_colours),
        cmocka_unit_test(test_plain_locale),
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_input_discarded),
        cmocka_unit_test(test_failure_is_told),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_crashes),
        cmocka_unit_test(test_suspend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
