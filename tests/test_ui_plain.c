/* test_ui_plain.c - the chat as plain lines of text. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ui_steps.h"

static void test_plain(void **state)
{
    (void)state;
    struct rig *r = rig_launch(&(struct rig_options){.arg = "--plain"});
    assert_non_null(r);
    assert_true(vt_wait_text(r->vt, "Type a message"));
    rig_say(r, "message user 0 0 earlier question");
    rig_say(r, "message assistant 0 0 earlier answer");
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, "User: earlier question"));
    assert_true(vt_wait_text(r->vt, "Assistant: earlier answer"));
    assert_true(vt_wait_text(r->vt, ">"));
    vt_send(r->vt, "hello\n");
    assert_string_equal(rig_hear(r, "send"), "send hello");
    rig_say(r, "take 0");
    rig_say(r, "phase reading");
    assert_true(vt_wait_text(r->vt, "Reading the prompt."));
    rig_say(r, "answer 0");
    rig_say(r, "phase thinking");
    rig_say(r, "think hidden");
    rig_say(r, "phase answering");
    rig_say(r, "say First \\x1b[2J\\x9b words");
    rig_say(r, "say , and more.");
    assert_true(vt_wait_text(r->vt, "Assistant: First ^[[2J\xef\xbf\xbd words, and more."));
    assert_false(vt_has(r->vt, "User: hello")); /* it stands there as it was typed */
    assert_false(vt_has(r->vt, "hidden"));
    vt_send(r->vt, "/status\n");
    assert_true(vt_wait_text(r->vt, "answering."));
    vt_send(r->vt, "\x03");
    assert_non_null(rig_hear(r, "cancel"));
    rig_say(r, "set answer_tokens 7");
    rig_say(r, "end cancelled 3");
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, "Cancelled: 7 tokens in 3 s."));
    vt_paste(r->vt, "one\ntwo", 7);
    vt_send(r->vt, "\n");
    assert_string_equal(rig_hear(r, "send"), "send one\\ntwo");
    vt_send(r->vt, "/nonsense\n");
    assert_true(vt_wait_text(r->vt, "no command /nonsense"));
    assert_true(vt_bracketed_paste(r->vt));
    assert_false(vt_wrote(r->vt, "\033[2J"));
    assert_false(vt_wrote(r->vt, "1049"));
    vt_send(r->vt, "\x04");
    assert_leaves(r, 0);
}

static void test_plain_dumb(void **state)
{
    (void)state;
    struct rig *r = rig_launch(&(struct rig_options){.arg = "--plain", .term = "dumb"});
    assert_non_null(r);
    assert_true(vt_wait_text(r->vt, "Type a message"));
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, ">"));
    vt_send(r->vt, "\x03");
    assert_true(vt_wait_text(r->vt, "again leaves"));
    vt_send(r->vt, "\x03");
    const int s = vt_wait_exit(r->vt);
    assert_int_equal(WEXITSTATUS(s), 0);
    assert_false(vt_wrote(r->vt, "\033"));
    assert_true(vt_modes_restored(r->vt));
    rig_free(r);
    r = rig_launch(&(struct rig_options){.arg = "--plain"});
    assert_non_null(r);
    assert_true(vt_wait_text(r->vt, "Type a message"));
    vt_signal(r->vt, SIGTERM);
    assert_leaves(r, 130);
}

static void test_plain_sessions(void **state)
{
    (void)state;
    struct rig *r = rig_launch(&(struct rig_options){.arg = "--plain"});
    assert_non_null(r);
    assert_true(vt_wait_text(r->vt, "Type a message"));
    rig_say(r, "saved notes 1753711320 12 How do lifetimes work?");
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, ">"));
    vt_send(r->vt, "/sessions\n");
    assert_true(vt_wait_text(r->vt, "notes: 12 messages, How do lifetimes work?"));
    vt_send(r->vt, "/new notes\n");
    assert_true(vt_wait_text(r->vt, "There is a session notes; /resume opens it."));
    vt_send(r->vt, "/resume nobody\n");
    assert_true(vt_wait_text(r->vt, "Error: "));
    vt_send(r->vt, "/resume notes\n");
    assert_string_equal(rig_hear(r, "switch"), "switch notes");
    vt_send(r->vt, "/temporary\n");
    assert_string_equal(rig_hear(r, "switch"), "switch (temporary)");
    rig_say(r, "phase answering");
    vt_send(r->vt, "/new other\n");
    assert_true(vt_wait_text(r->vt, "An answer is running"));
    vt_send(r->vt, "/quit\n");
    assert_leaves(r, 0);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_plain_dumb),
        cmocka_unit_test(test_plain_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
