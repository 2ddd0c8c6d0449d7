/* test_ui_sessions.c - sessions on a real pty: the list of them, temporary ones, those that are only shown. */
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
#include <unistd.h>

#include "ui_steps.h"

static void test_sessions(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_say(r, "saved notes 1753711320 12 How do lifetimes work?");
    rig_say(r, "saved travel 1753701320 4 A week in Lisbon\\x1b[5m");
    rig_say(r, "saved broken 1753701320 0 x");
    for (int i = 0; i < 30; i++)
        rig_say(r, "saved old-%d 1700000000 2 something old", i);
    rig_make_idle(r);
    vt_send(r->vt, "/sessions\r");
    assert_true(vt_wait_text(r->vt, "33 sessions"));
    assert_true(vt_has(r->vt, "How do lifetimes work?"));
    assert_true(vt_has(r->vt, "broken.jsonl:7: damaged"));
    vt_send(r->vt, "\033[F");
    assert_true(vt_wait_text(r->vt, "old-29"));
    vt_send(r->vt, "LISBON");
    assert_true(vt_wait_text(r->vt, "1 of 33 with \"LISBON\""));
    assert_true(vt_wait_gone(r->vt, "lifetimes"));
    vt_send(r->vt, "\033");
    assert_true(vt_wait_gone(r->vt, "LISBON"));
    vt_send(r->vt, "/sessions\r");
    assert_true(vt_wait_text(r->vt, "33 sessions"));
    rig_say(r, "phase answering");
    assert_true(vt_wait_text(r->vt, "answering"));
    vt_send(r->vt, "\033[B\r");
    assert_true(vt_wait_text(r->vt, "an answer is running"));
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, "idle"));
    vt_send(r->vt, "/resume nonsense\r");
    assert_true(vt_wait_text(r->vt, "there is no session 'nonsense'"));
    vt_send(r->vt, "/new a/b\r");
    assert_true(vt_wait_text(r->vt, "no name for a session"));
    vt_send(r->vt, "/new travel\r");
    assert_true(vt_wait_text(r->vt, "/resume opens"));
    rig_say(r, "message user 0 0 said in notes");
    assert_true(vt_wait_text(r->vt, "said in notes"));
    vt_send(r->vt, "/sessions\r");
    assert_true(vt_wait_text(r->vt, "33 sessions"));
    vt_send(r->vt, "\033[B\r");
    assert_string_equal(rig_hear(r, "switch"), "switch travel");
    rig_say(r, "set session travel");
    rig_say(r, "opened");
    rig_say(r, "message user 0 0 said in travel");
    assert_true(vt_wait_text(r->vt, "said in travel"));
    assert_false(vt_has(r->vt, "said in notes"));
    assert_true(vt_has(r->vt, "k3chat   travel"));
    vt_send(r->vt, "/new\r");
    assert_string_equal(rig_hear(r, "switch"), "switch");
    quit(r);
}

/* Searching, renaming and deleting in the list. */
static void test_session_list(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_say(r, "saved notes 1753711320 12 How do lifetimes work?");
    rig_say(r, "saved travel 1753701320 4 A week in Lisbon, with lifetimes of joy");
    rig_say(r, "saved busy 1753701320 2 something");
    rig_make_idle(r);
    vt_send(r->vt, "/search lifetimes\r");
    assert_true(vt_wait_text(r->vt, "\"lifetimes\": 2 messages; searched 3 of 3 sessions"));
    vt_send(r->vt, "\033[B\r");
    assert_string_equal(rig_hear(r, "switch"), "switch travel");
    rig_say(r, "set session travel");
    rig_say(r, "opened");
    rig_say(r, "message user 0 0 words and lifetimes, number 0");
    assert_true(vt_wait_text(r->vt, "words and lifetimes, number 0"));
    for (int i = 1; i < 30; i++) /* and stays in view, though it was the end when it came */
        rig_say(r, "message user 0 0 words and more, number %d", i);
    const struct vt *vt = r->vt;
    for (int i = 0; i < 600 && !vt_has(vt, "new lines") && !vt_has(vt, "scrolled back"); i++)
        vt_pump(r->vt, 100);
    assert_true(vt_has(vt, "new lines") || vt_has(vt, "scrolled back"));
    assert_true(vt_has(vt, "words and lifetimes, number 0"));

    vt_send(r->vt, "/sessions\r"); /* a filter, then the same in the texts, and back */
    assert_true(vt_wait_text(r->vt, "3 sessions"));
    vt_send(r->vt, "week\t");
    assert_true(vt_wait_text(r->vt, "\"week\": 1 message;"));
    vt_send(r->vt, "\033");
    assert_true(vt_wait_text(r->vt, "1 of 3 with \"week\""));
    vt_send(r->vt, "\x7f\x7f\x7f\x7f");
    assert_true(vt_wait_text(r->vt, "3 sessions"));

    vt_send(r->vt, "\033[3~"); /* notes: asked, refused, then done */
    assert_true(vt_wait_text(r->vt, "delete \"notes\", 12 messages, for ever?"));
    vt_send(r->vt, "n");
    assert_true(vt_wait_gone(r->vt, "for ever?"));
    vt_send(r->vt, "\033OQ"); /* F2 */
    assert_true(vt_wait_text(r->vt, "new name of \"notes\": notes"));
    vt_send(r->vt, "\x15" "busy\r");
    assert_true(vt_wait_text(r->vt, "File exists"));
    vt_send(r->vt, "\033OQ");
    assert_true(vt_wait_text(r->vt, "new name of \"notes\""));
    vt_send(r->vt, "-2\r");
    assert_string_equal(rig_hear(r, "renamed"), "renamed notes to notes-2");
    assert_true(vt_wait_text(r->vt, "notes-2"));
    vt_send(r->vt, "\033[3~y");
    assert_string_equal(rig_hear(r, "deleted"), "deleted notes-2");
    assert_true(vt_wait_text(r->vt, "2 sessions"));
    vt_send(r->vt, "busy\033[3~");
    assert_true(vt_wait_text(r->vt, "delete \"busy\""));
    vt_send(r->vt, "y");
    assert_true(vt_wait_text(r->vt, "is open in another k3chat"));
    vt_send(r->vt, "\033");
    assert_true(vt_wait_gone(r->vt, "sessions  "));

    vt_send(r->vt, "/rename week\r"); /* the session that is open */
    assert_string_equal(rig_hear(r, "rename"), "rename week");
    vt_send(r->vt, "/delete\r");
    assert_true(vt_wait_text(r->vt, "/delete travel deletes this session"));
    vt_send(r->vt, "/delete travel\r");
    assert_string_equal(rig_hear(r, "forget"), "forget, switch");
    quit(r);
}

/* It says so in both lines, keeps nothing that is typed, and has no file to do things with. */
static void test_temporary(void **state)
{
    (void)state;
    struct rig *r = START(0);
    char path[200];
    rig_make_idle(r);
    vt_send(r->vt, "/temporary\r");
    assert_string_equal(rig_hear(r, "switch"), "switch (temporary)");
    vt_send(r->vt, "secret one\r"); /* sent before it is open: belongs there */
    assert_string_equal(rig_hear(r, "send"), "send secret one");
    rig_say(r, "set temporary 1");
    rig_say(r, "opened");
    rig_say(r, "phase idle");
    assert_true(vt_wait_text(r->vt, "temporary: not written"));
    assert_true(vt_has(r->vt, "idle \xe2\x94\x82 temporary"));
    vt_send(r->vt, "secret two\r");
    assert_string_equal(rig_hear(r, "send"), "send secret two");
    vt_send(r->vt, "/export x.md\r");
    assert_true(vt_wait_text(r->vt, "it is in no file"));
    vt_send(r->vt, "/rename x\r/branches\r/delete\r");
    vt_resize(r->vt, 12, 40);
    assert_true(vt_wait_text(r->vt, "idle \xe2\x94\x82 temporary"));
    vt_send(r->vt, "/new kept\r");
    assert_string_equal(rig_hear(r, "switch"), "switch kept"); /* the three above did nothing */
    rig_say(r, "set temporary 0");
    rig_say(r, "opened");
    assert_true(vt_wait_gone(r->vt, "temporary"));
    vt_send(r->vt, "open words\r");
    assert_string_equal(rig_hear(r, "send"), "send open words");
    vt_send(r->vt, "\x11");
    assert_int_equal(WEXITSTATUS(vt_wait_exit(r->vt)), 0);
    snprintf(path, sizeof path, "%s/.local/share/k3chat/history.jsonl", vt_home(r->vt));
    char text[4096] = "";
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_non_null(strstr(text, "open words"));
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "export"));
    rig_free(r);
}

static void test_read_only(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_say(r, "message user 0 0 asked elsewhere");
    rig_say(r, "set session shared");
    rig_say(r, "notice READ ONLY: session 'shared' is open in another k3chat");
    rig_say(r, "phase viewing");
    assert_true(vt_wait_text(r->vt, "asked elsewhere"));
    assert_int_equal(vt_find_row(r->vt, "read only"), 23);
    assert_true(vt_has(r->vt, "Read only. /resume tries"));
    rig_say(r, "answer 0");
    rig_say(r, "say answered elsewhere");
    assert_true(vt_wait_text(r->vt, "answered elsewhere"));
    vt_send(r->vt, "/resume\r");
    assert_string_equal(rig_hear(r, "switch"), "switch shared");
    quit(r);
}

/* What is typed behind a switch still waits when the other session is there, whatever was said in that. */
static void test_queue_of_the_next(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    vt_send(r->vt, "/new next\rone\rtwo\r");
    assert_string_equal(rig_hear(r, "send two"), "send two");
    rig_say(r, "opened");
    rig_say(r, "message user 0 0 one");
    rig_say(r, "notice it is there");
    assert_true(vt_wait_text(r->vt, "it is there"));
    vt_send(r->vt, "/queue\r");
    assert_true(vt_wait_text(r->vt, "queued: 1 one   2 two"));
    rig_say(r, "phase viewing");
    assert_true(vt_wait_gone(r->vt, "you  queued"));
    quit(r);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sessions),
        cmocka_unit_test(test_session_list),
        cmocka_unit_test(test_temporary),
        cmocka_unit_test(test_read_only),
        cmocka_unit_test(test_queue_of_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
