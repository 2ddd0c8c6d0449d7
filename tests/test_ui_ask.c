/* test_ui_ask.c - the question before a long reading: on the screen and in plain lines, over a scripted
 * session. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "ui_rig.h"

#define QUESTION "412 tokens to read again, about 34 min: read, or only view?"

static struct rig *start(const char *arg)
{
    struct rig *r = rig_launch(&(struct rig_options){.rows = 24, .cols = 150, .arg = arg});
    assert_non_null(r);
    if (arg != NULL)
        rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, arg != NULL ? ">" : "loading"));
    return r;
}

static void quit(struct rig *r)
{
    vt_send(r->vt, "\x11\x04");
    assert_int_equal(WEXITSTATUS(vt_wait_exit(r->vt)), 0);
    rig_free(r);
}

/* A message is sent, and reading again would take long. */
static void ask(struct rig *r, const char *message)
{
    vt_send(r->vt, message);
    vt_send(r->vt, "\r");
    assert_non_null(rig_hear(r, "send"));
    rig_say(r, "take 0");
    rig_say(r, "set reread 412");
    rig_say(r, "set reread_seconds 2040");
    rig_say(r, "phase asking");
}

static void enter_reads(void **state)
{
    (void)state;
    struct rig *r = start(NULL);
    rig_make_idle(r);
    ask(r, "go on");
    assert_true(vt_wait_text(r->vt, QUESTION));
    assert_int_equal(vt_find_row(r->vt, "asking"), 23);
    assert_int_equal(vt_find_row(r->vt, "Enter reads, Esc only views"), 22);
    vt_send(r->vt, "/panes chat\r"); /* commands are there meanwhile */
    assert_true(vt_wait_gone(r->vt, "token time"));
    vt_send(r->vt, "\r");
    assert_non_null(rig_hear(r, "decide read"));
    rig_say(r, "phase reading");
    assert_true(vt_wait_gone(r->vt, "only view"));
    quit(r);
}

/* Nothing is lost: the message and what was queued behind it are in the editor, in their order. */
static void esc_only_views(void **state)
{
    (void)state;
    struct rig *r = start(NULL);
    rig_make_idle(r);
    ask(r, "the first");
    assert_true(vt_wait_text(r->vt, QUESTION));
    vt_send(r->vt, "the second\r");
    assert_string_equal(rig_hear(r, "send"), "send the second");
    vt_send(r->vt, "the third\r");
    assert_string_equal(rig_hear(r, "send"), "send the third");
    vt_send(r->vt, "half");
    assert_true(vt_wait_text(r->vt, "half"));
    vt_send(r->vt, "\033");
    assert_non_null(rig_hear(r, "decide view"));
    rig_say(r, "withdrawn the first");
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, "back in the editor"));
    assert_true(vt_wait_gone(r->vt, "queued"));
    assert_int_equal(vt_find_row(r->vt, "half"), 22);
    assert_int_equal(vt_find_row(r->vt, "the third"), 21);
    assert_int_equal(vt_find_row(r->vt, "the second"), 20);
    assert_int_equal(vt_find_row(r->vt, "the first"), 19);
    quit(r);
}

/* Ctrl+C is the same; an estimate by the plan is called so; a narrow screen has room for it all. */
static void narrow_and_planned(void **state)
{
    (void)state;
    struct rig *r = start(NULL);
    rig_make_idle(r);
    rig_say(r, "set reread_planned 1");
    ask(r, "go on");
    assert_true(vt_wait_text(r->vt, "about 34 min by the plan: read, or only view?"));
    vt_resize(r->vt, 12, 40);
    assert_true(vt_wait_text(r->vt, "412 tokens to read again"));
    assert_true(vt_wait_text(r->vt, "only view?"));
    vt_send(r->vt, "\x03");
    assert_non_null(rig_hear(r, "decide view"));
    quit(r);
}

static void plain_line(void **state)
{
    (void)state;
    struct rig *r = start("--plain");
    ask(r, "go on");
    assert_true(vt_wait_text(r->vt, QUESTION " (read/view)"));
    vt_send(r->vt, "and more\r"); /* no answer, but a message */
    assert_string_equal(rig_hear(r, "send"), "send and more");
    vt_send(r->vt, "view\r");
    assert_non_null(rig_hear(r, "unqueue"));
    assert_non_null(rig_hear(r, "decide view"));
    assert_true(vt_wait_text(r->vt, "Taken back: and more"));
    rig_say(r, "phase idle");
    ask(r, "once more");
    assert_true(vt_wait_text(r->vt, "once more"));
    vt_settle(r->vt);
    vt_send(r->vt, "read\r");
    assert_non_null(rig_hear(r, "decide read"));
    rig_say(r, "phase idle");
    vt_send(r->vt, "read\r"); /* without a question it is a message like any other */
    assert_string_equal(rig_hear(r, "send"), "send read");
    vt_send(r->vt, "\x04");
    assert_int_equal(WEXITSTATUS(vt_wait_exit(r->vt)), 0);
    rig_free(r);
}

/* Who looks at another window is told, in the way of the profile; who looks on is not. */
static void told_elsewhere(void **state)
{
    (void)state;
    static const struct {
        const char *arg, *bytes;
    } ways[] = {
        {NULL, NULL}, /* the bell */
        {"--osc", "\033]9;k3chat: read again, or only view?\007"},
        {"--osc777", "\033]777;notify;k3chat;read again, or only view?\007"},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct rig *r = rig_start(&(struct rig_options){.cols = 150, .rows = 24, .arg = ways[i].arg});
        assert_non_null(r);
        rig_make_idle(r);
        ask(r, "seen");
        assert_true(vt_wait_text(r->vt, QUESTION));
        vt_send(r->vt, "\r");
        assert_non_null(rig_hear(r, "decide read"));
        rig_say(r, "phase idle");
        assert_true(vt_wait_gone(r->vt, "only view"));
        const unsigned bells = vt_bells(r->vt);
        assert_false(vt_wrote(r->vt, "\033]9;") || vt_wrote(r->vt, "\033]777;"));
        vt_send(r->vt, "\033[O"); /* another window has the keys */
        ask(r, "unseen");
        assert_true(vt_wait_text(r->vt, QUESTION));
        assert_int_equal(vt_bells(r->vt) - bells, ways[i].bytes == NULL);
        assert_true(ways[i].bytes == NULL || vt_wrote(r->vt, ways[i].bytes));
        vt_send(r->vt, "\r");
        assert_non_null(rig_hear(r, "decide read"));
        rig_say(r, "phase idle");
        quit(r);
    }
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(enter_reads),
        cmocka_unit_test(esc_only_views),
        cmocka_unit_test(narrow_and_planned),
        cmocka_unit_test(plain_line),
        cmocka_unit_test(told_elsewhere),
    };
    return cmocka_run_group_tests_name("asking", tests, NULL, NULL);
}
