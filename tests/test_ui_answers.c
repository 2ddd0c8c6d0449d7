/* test_ui_answers.c - answers as they come, the queue, hostile text and scrolling on a real pty. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>

#include "ui_steps.h"

static void test_streaming(void **state)
{
    (void)state;
    struct rig *r = START(0);
    ask(r, "why?");
    rig_say(r, "set prompt_done 120");
    rig_say(r, "set prompt_total 412");
    rig_say(r, "set eta 2040");
    rig_say(r, "wake");
    assert_true(vt_wait_text(r->vt, "120/412 tok 29 %"));
    assert_true(vt_has(r->vt, "ETA 34 min"));
    assert_true(vt_has(r->vt, "reading prompt"));
    rig_say(r, "answer 0");
    rig_say(r, "phase thinking");
    rig_say(r, "set reasoning_tokens 3");
    rig_say(r, "think Because it asks");
    assert_true(vt_wait_text(r->vt, "thinking  3 tok"));
    assert_true(vt_has(r->vt, "Because it asks"));
    rig_say(r, "phase answering");
    rig_say(r, "set answer_tokens 2");
    rig_say(r, "set last 24.1");
    rig_say(r, "set mean 23.7");
    rig_say(r, "set p95 25.9");
    rig_say(r, "set running 1");
    rig_say(r, "set layers 93");
    rig_say(r, "set layer 61");
    rig_say(r, "say It is **so**");
    rig_say(r, "step 1 24.1 18.8 3.6 21.7 98000000000 39000000000 1472 268 895 309");
    assert_true(vt_wait_text(r->vt, "It is so"));
    assert_true(vt_has(r->vt, "thought"));
    assert_false(vt_has(r->vt, "Because"));
    assert_true(vt_has(r->vt, "2 tok"));
    assert_true(vt_has(r->vt, "24.1 s/tok"));
    assert_true(vt_has(r->vt, "layer 61/93"));
    assert_true(vt_has(r->vt, "disk 93 %"));
    assert_true(vt_has(r->vt, "hit 18 %"));
    assert_true(vt_has(r->vt, "18.2 %"));
    assert_true(vt_has(r->vt, "trunk 78 %  experts 15 %"));
    assert_true(vt_has(r->vt, "now 24.1  avg 23.7  p95 25.9 s"));
    vt_send(r->vt, "\x14");
    assert_true(vt_wait_text(r->vt, "Because it asks"));
    vt_send(r->vt, "\x14");
    assert_true(vt_wait_gone(r->vt, "Because it asks"));
    rig_say(r, "set running 0");
    rig_say(r, "end length 60");
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, "[the length limit is reached]"));
    quit(r);
}

static void test_cancel(void **state)
{
    (void)state;
    struct rig *r = START(0);
    ask(r, "why?");
    rig_say(r, "answer 0");
    rig_say(r, "phase answering");
    rig_say(r, "say Half an ans");
    assert_true(vt_wait_text(r->vt, "Half an ans"));
    vt_send(r->vt, "\033");
    assert_non_null(rig_hear(r, "cancel"));
    rig_say(r, "phase cancelling");
    assert_true(vt_wait_text(r->vt, "cancelling"));
    rig_say(r, "end cancelled 3");
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, "[cancelled]"));
    assert_true(vt_has(r->vt, "Half an ans"));
    ask(r, "again?");
    assert_true(vt_wait_text(r->vt, "reading"));
    vt_send(r->vt, "\x03");
    assert_non_null(rig_hear(r, "cancel"));
    rig_say(r, "withdrawn again?");
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, "idle"));
    assert_int_equal(vt_find_row(r->vt, "again?"), 22);
    quit(r);
}

static void test_queue(void **state)
{
    (void)state;
    struct rig *r = START(0);
    ask(r, "one");
    rig_say(r, "answer 0");
    rig_say(r, "phase answering");
    assert_true(vt_wait_text(r->vt, "answering"));
    vt_send(r->vt, "two\r");
    assert_string_equal(rig_hear(r, "send"), "send two");
    vt_send(r->vt, "three\r");
    assert_string_equal(rig_hear(r, "send"), "send three");
    assert_true(vt_wait_text(r->vt, "queued: 2"));
    assert_true(vt_has(r->vt, "you  queued 1"));
    assert_true(vt_has(r->vt, "you  queued 2"));
    vt_send(r->vt, "\033[A");
    assert_non_null(rig_hear(r, "unqueue"));
    assert_true(vt_wait_text(r->vt, "taken back"));
    vt_settle(r->vt);
    assert_int_equal(vt_find_row(r->vt, "three"), 22);
    vt_send(r->vt, "\x15");
    assert_true(vt_wait_text(r->vt, "queued: 1"));
    rig_say(r, "end stop 3");
    rig_say(r, "take 0");
    assert_true(vt_wait_gone(r->vt, "queued"));
    assert_true(vt_has(r->vt, "two"));
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, "idle"));
    quit(r);
}

/* Seen by number, dropped, and put in another order. */
static void test_queue_order(void **state)
{
    (void)state;
    struct rig *r = START(0);
    ask(r, "one");
    rig_say(r, "answer 0");
    rig_say(r, "phase answering");
    assert_true(vt_wait_text(r->vt, "answering"));
    vt_send(r->vt, "/queue\r");
    assert_true(vt_wait_text(r->vt, "nothing is queued"));
    vt_send(r->vt, "aaa\rbbb\nb2\rccc\r");
    assert_string_equal(rig_hear(r, "send ccc"), "send ccc");
    vt_send(r->vt, "/queue\r");
    assert_true(vt_wait_text(r->vt, "queued: 1 aaa   2 bbb...   3 ccc"));
    vt_send(r->vt, "/queue first 3\r");
    assert_string_equal(rig_hear(r, "first"), "first ccc");
    assert_true(vt_wait_text(r->vt, "queued: 1 ccc   2 aaa   3 bbb..."));
    vt_send(r->vt, "/queue drop 2\r");
    assert_string_equal(rig_hear(r, "drop"), "drop aaa");
    assert_true(vt_wait_text(r->vt, "dropped"));
    vt_send(r->vt, "/queue drop 3\r");
    assert_true(vt_wait_text(r->vt, "no such queued message"));
    vt_send(r->vt, "/queue away\r");
    assert_true(vt_wait_text(r->vt, "/queue takes drop or first"));
    rig_say(r, "end stop 3");
    rig_say(r, "take 0");
    rig_say(r, "phase reading");
    assert_true(vt_wait_text(r->vt, "reading"));
    vt_send(r->vt, "/queue\r");
    assert_true(vt_wait_text(r->vt, "queued: 1 bbb..."));
    vt_send(r->vt, "ddd\r/queue first 2\r");
    assert_string_equal(rig_hear(r, "first"), "first ddd");
    rig_say(r, "message sent 0 0 bbb\\nb2"); /* the engine has taken it up at that moment */
    assert_true(vt_wait_gone(r->vt, "you  queued 2"));
    assert_true(vt_has(r->vt, "you  queued 1"));
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, "idle"));
    quit(r);
}

static void test_hostile_text(void **state)
{
    (void)state;
    struct rig *r = START(0);
    ask(r, "why?");
    rig_say(r, "answer 0");
    rig_say(r, "phase answering");
    rig_say(r, "say \\x1b]2;evil\\x07 \\x1b[2Jx \\xc2\\x9b31m \\xff\\xfe \\xe2\\x80\\xae!&#27;[5m");
    rig_say(r, "set session \\x1b]0;evil");
    rig_say(r, "notice \\x1b[?1049l gone");
    assert_true(vt_wait_text(r->vt, "^[[?1049l gone"));
    assert_true(vt_has(r->vt, "^[]2;evil^G ^[[2Jx"));
    assert_true(vt_has(r->vt, "\xef\xbf\xbd" "31m"));
    assert_true(vt_alternate(r->vt));
    vt_settle(r->vt);
    assert_false(vt_wrote(r->vt, "\033]2;evil"));
    assert_false(vt_wrote(r->vt, "\033]0;"));
    assert_false(vt_wrote(r->vt, "\033[5m"));
    assert_false(vt_wrote(r->vt, "\xc2\x9b"));
    assert_false(vt_wrote(r->vt, "\xff"));
    assert_false(vt_wrote(r->vt, "\xe2\x80\xae"));
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, "idle"));
    quit(r);
}

static void test_scrolling(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    for (int i = 0; i < 40; i++)
        rig_say(r, "message %s 0 0 line number %d", i % 2 ? "assistant" : "user", i);
    assert_true(vt_wait_text(r->vt, "line number 39"));
    vt_send(r->vt, "\033[5~");
    assert_true(vt_wait_gone(r->vt, "line number 39"));
    assert_true(vt_has(r->vt, "scrolled back"));
    const int row = vt_find_row(r->vt, "line number 32");
    assert_true(row > 0);
    rig_say(r, "message user 0 0 news");
    assert_true(vt_wait_text(r->vt, "new lines"));
    assert_int_equal(vt_find_row(r->vt, "line number 32"), row); /* not pulled away */
    vt_send(r->vt, "\033[F");
    assert_true(vt_wait_text(r->vt, "news"));
    assert_true(vt_wait_gone(r->vt, "new lines"));
    vt_send(r->vt, "\033[1;5H"); /* Ctrl+Home */
    assert_true(vt_wait_text(r->vt, "line number 0"));
    vt_send(r->vt, "/find LINE number 17\r");
    assert_true(vt_wait_text(r->vt, "line number 17"));
    vt_send(r->vt, "\033[1;5F");
    assert_true(vt_wait_text(r->vt, "news"));
    quit(r);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streaming),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_queue_order),
        cmocka_unit_test(test_hostile_text),
        cmocka_unit_test(test_scrolling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
