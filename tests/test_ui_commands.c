/* test_ui_commands.c - what is typed after a slash, pages and keys of the profile on a real pty. */
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
#include <unistd.h>

#include "ui_steps.h"

static void test_commands(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    vt_send(r->vt, "/th\t");
    assert_true(vt_wait_text(r->vt, "think  theme"));
    vt_send(r->vt, "i\t");
    assert_true(vt_wait_text(r->vt, "/think off|low|high|max: how long"));
    vt_send(r->vt, "h\t\r");
    assert_string_equal(rig_hear(r, "thinking"), "thinking high");
    assert_true(vt_wait_text(r->vt, "thinking high"));
    vt_send(r->vt, "/nonsense\r");
    assert_true(vt_wait_text(r->vt, "no command /nonsense"));
    vt_send(r->vt, "\x15//etc is a folder\r");
    assert_string_equal(rig_hear(r, "send"), "send /etc is a folder");
    vt_send(r->vt, "\033OP");
    assert_true(vt_wait_text(r->vt, "Alt+Enter, Ctrl+J"));
    assert_false(vt_cursor_visible(r->vt));
    vt_send(r->vt, "\033[F");
    assert_true(vt_wait_text(r->vt, "/quit"));
    vt_send(r->vt, "\033");
    assert_true(vt_wait_gone(r->vt, "/quit"));
    vt_send(r->vt, "\033OQ");
    assert_true(vt_wait_gone(r->vt, "disk wait"));
    vt_send(r->vt, "\033" "2");
    assert_true(vt_wait_text(r->vt, "disk wait: hidden"));
    vt_send(r->vt, "\033" "2");
    assert_true(vt_wait_text(r->vt, "disk wait: shown"));
    assert_true(vt_wait_text(r->vt, "token time"));
    vt_send(r->vt, "/quit\r");
    assert_leaves(r, 0);
}

static void test_branches(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_say(r, "message user 0 0 first question");
    rig_say(r, "message assistant 0 0 first answer");
    rig_say(r, "message user 0 0 second question");
    rig_say(r, "message assistant 0 0 second answer");
    rig_say(r, "notice a note in between");
    rig_say(r, "set reread 412");
    rig_say(r, "set reread_seconds 2040");
    rig_make_idle(r);
    assert_true(vt_wait_text(r->vt, "first reads 412 tok again, ~34 min"));
    vt_send(r->vt, "/regen\r");
    assert_non_null(rig_hear(r, "regenerate"));
    vt_send(r->vt, "/continue\r");
    assert_non_null(rig_hear(r, "continue"));
    vt_send(r->vt, "/edit 2\r");
    assert_true(vt_wait_text(r->vt, "edited: Enter"));
    vt_send(r->vt, "\033");
    assert_true(vt_wait_text(r->vt, "stays as it was"));
    assert_true(vt_wait_text(r->vt, "Enter sends")); /* the message is empty again */
    vt_send(r->vt, "/edit 2\r");
    assert_true(vt_wait_text(r->vt, "edited: Enter"));
    vt_send(r->vt, "!\r");
    assert_string_equal(rig_hear(r, "edit"), "edit 0 first question!");
    rig_say(r, "unedited 0 first question!"); /* cancelled before its answer: it is an edit still */
    assert_true(vt_wait_text(r->vt, "back in the editor"));
    vt_send(r->vt, "\x7f?\r");
    assert_string_equal(rig_hear(r, "edit"), "edit 0 first question?");
    rig_say(r, "dropped 0");
    rig_say(r, "message user 0 0 first question!");
    assert_true(vt_wait_gone(r->vt, "second answer"));
    assert_true(vt_wait_text(r->vt, "first question!"));
    assert_true(vt_has(r->vt, "a note in between"));
    rig_say(r, "answer 0");
    rig_say(r, "phase answering");
    rig_say(r, "say anew");
    assert_true(vt_wait_text(r->vt, "anew"));
    rig_say(r, "dropped 1");
    assert_true(vt_wait_gone(r->vt, "anew"));
    vt_send(r->vt, "/edit 7\r");
    assert_true(vt_wait_text(r->vt, "no such message"));
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, "idle"));
    vt_send(r->vt, "\x15");
    quit(r);
}

static void test_copy(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    rig_say(r, "message assistant 0 0 See:\\n\\n```c\\nint x;\\n```\\n");
    assert_true(vt_wait_text(r->vt, "int x;"));
    vt_send(r->vt, "/copy code\r");
    assert_true(vt_wait_text(r->vt, "copied code block (7 B"));
    assert_true(vt_wrote(r->vt, "\033]52;c;aW50IHg7Cg==\007"));
    vt_send(r->vt, "/copy\r");
    assert_true(vt_wait_text(r->vt, "copied answer"));
    assert_true(vt_wrote(r->vt, "\033]52;c;U2VlOgoKYGBgYwppbnQgeDsKYGBgCg==\007"));
    quit(r);
}

/* Keys of the profile: they work, the old ones do not, and every hint names the new ones. */
static void test_own_keys(void **state)
{
    (void)state;
    struct rig *r = START(.arg = "--keys");
    rig_make_idle(r);
    assert_true(vt_has(r->vt, "F5 help"));
    rig_say(r, "answer 0");
    rig_say(r, "think deep thoughts");
    rig_say(r, "say word");
    rig_say(r, "end stop 3");
    assert_true(vt_wait_text(r->vt, "Alt+T opens"));
    vt_send(r->vt, "\x14");
    vt_send(r->vt, "\033t");
    assert_true(vt_wait_text(r->vt, "deep thoughts"));
    vt_send(r->vt, "\033[15~");
    assert_true(vt_wait_text(r->vt, "PgDn for more"));
    vt_send(r->vt, "\033OP"); /* F1 means nothing now: it closes, as any key */
    assert_true(vt_wait_gone(r->vt, "PgDn for more"));
    vt_send(r->vt, "\033OP");
    vt_settle(r->vt);
    assert_false(vt_has(r->vt, "PgDn for more"));
    vt_send(r->vt, "/hel\t");
    assert_true(vt_wait_text(r->vt, "keys and commands (F5)"));
    vt_send(r->vt, "\x15");
    quit(r);
}

/* What a library writes to stderr is told and does not spoil the picture; afterwards stderr is the
 * terminal again. */
static void test_stray_output(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    rig_say(r, "stderr libexample: \\x1b[31mno such thing\\n");
    assert_true(vt_wait_text(r->vt, "stderr: libexample: ^[[31mno such thing"));
    assert_int_equal(vt_find_row(r->vt, "idle"), 23);
    assert_false(vt_wrote(r->vt, "\033[31mno"));
    for (int i = 0; i < 40; i++)
        rig_say(r, "stderr again and again %d\\n", i);
    assert_true(vt_wait_text(r->vt, "what follows is"));
    vt_settle(r->vt);
    assert_false(vt_has(r->vt, "again and again 39"));
    rig_say(r, "stderr without an end");
    rig_say(r, "no-such-command");
    assert_non_null(rig_hear(r, "no such command"));
    vt_send(r->vt, "\x11");
    const int s = vt_wait_exit(r->vt);
    assert_int_equal(WEXITSTATUS(s), 0);
    assert_restored(r);
    assert_true(vt_has(r->vt, "without an end"));
    rig_free(r);

    r = START(0); /* the last words of a crash are seen */
    rig_say(r, "stderr last words\\n");
    rig_say(r, "no-such-command");
    assert_non_null(rig_hear(r, "no such command"));
    vt_signal(r->vt, SIGABRT);
    vt_wait_exit(r->vt);
    assert_restored(r);
    rig_free(r);
}

static void test_pages(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    rig_say(r, "set plan_total 7900000000");
    rig_say(r, "set plan_ring 200000000");
    rig_say(r, "set profile laptop");
    rig_say(r, "wake");
    vt_settle(r->vt);
    vt_send(r->vt, "/profile\r");
    assert_true(vt_wait_text(r->vt, "trunk blocks on their way"));
    assert_true(vt_has(r->vt, "laptop"));
    vt_resize(r->vt, 50, 120);
    rig_say(r, "set page_cache 3100000000");
    rig_say(r, "wake");
    vt_settle(r->vt);
    vt_send(r->vt, "\033");
    assert_true(vt_wait_gone(r->vt, "trunk blocks on their way"));
    assert_true(vt_wait_text(r->vt, "page cache 3.1 GB (not ours)"));
    vt_send(r->vt, "/stats\r");
    assert_true(vt_wait_text(r->vt, "Tokens generated since the start"));
    vt_send(r->vt, "\033");
    assert_true(vt_wait_gone(r->vt, "Tokens generated"));
    vt_send(r->vt, "/theme mono\r");
    vt_settle(r->vt);
    assert_false(vt_coloured(r->vt));
    vt_send(r->vt, "/theme auto\r");
    vt_settle(r->vt);
    assert_true(vt_coloured(r->vt));
    vt_send(r->vt, "/theme pink\r");
    assert_true(vt_wait_text(r->vt, "/theme takes"));
    vt_send(r->vt, "/discard\r");
    assert_non_null(rig_hear(r, "discard"));
    vt_send(r->vt, "/branches\r");
    assert_true(vt_wait_text(r->vt, "answered first"));
    assert_true(vt_has(r->vt, "*  2"));
    vt_send(r->vt, "\033");
    assert_true(vt_wait_gone(r->vt, "answered first"));
    vt_send(r->vt, "/branch 3\r");
    assert_true(vt_wait_text(r->vt, "there are 2 branches"));
    vt_send(r->vt, "/branch 1\r");
    assert_string_equal(rig_hear(r, "branch"), "branch 2");
    vt_send(r->vt, "/system Be brief.\r");
    assert_string_equal(rig_hear(r, "system"), "system Be brief.");
    quit(r);
}

/* The rate beside the roof, and which roof it is. */
static void test_roof(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    rig_say(r, "step 1 10 2 1 9 40000000000 10000000000 1472 268 895 309");
    assert_true(vt_wait_text(r->vt, "5.0 of 5.0 GB/s best so far"));
    rig_say(r, "set roof 6000000000");
    rig_say(r, "wake");
    assert_true(vt_wait_text(r->vt, "5.0 of 6.0 GB/s measured"));
    rig_say(r, "set simulated 1");
    rig_say(r, "wake");
    assert_true(vt_wait_text(r->vt, "5.0 of 6.0 GB/s simulated"));
    quit(r);
}

static void test_files(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    vt_send(r->vt, "/save x\r");
    assert_true(vt_wait_text(r->vt, "no answer yet"));
    rig_say(r, "message assistant 0 0 **so** it is");
    assert_true(vt_wait_text(r->vt, "so it is"));
    vt_send(r->vt, "/save answer.md\r");
    assert_string_equal(rig_hear(r, "text"), "text **so** it is");
    assert_string_equal(rig_hear(r, "save"), "save answer.md");
    assert_true(vt_wait_text(r->vt, "saved answer.md"));
    vt_send(r->vt, "/save full\r");
    assert_true(vt_wait_text(r->vt, "no space left"));
    vt_send(r->vt, "/export all.txt\r");
    assert_string_equal(rig_hear(r, "export"), "export notes all.txt");
    quit(r);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_own_keys),
        cmocka_unit_test(test_stray_output),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_roof),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
