/* test_ui_message.c - writing a message on a real pty: keys, lines, history, the external editor. */
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
#include <unistd.h>

#include "ui_steps.h"

static void test_typing(void **state)
{
    (void)state;
    int row, col;
    struct rig *r = START(0);
    rig_make_idle(r);
    vt_send(r->vt, "h\xc3\xa9llo \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x99\x82!");
    assert_true(vt_wait_text(r->vt, "h\xc3\xa9llo \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x99\x82!"));
    vt_settle(r->vt);
    vt_cursor(r->vt, &row, &col);
    assert_int_equal(row, 22);
    assert_int_equal(col, 1 + 6 + 4 + 1 + 2 + 1);
    vt_send(r->vt, "\x7f\x7f\x7f\x7f"); /* the sign, the face, the blank, one kanji */
    assert_true(vt_wait_gone(r->vt, "\xe6\x9c\xac"));
    vt_send(r->vt, "\033[H\033[C\033[3~"); /* Home, Right, Delete */
    assert_true(vt_wait_text(r->vt, "hllo \xe6\x97\xa5"));
    vt_send(r->vt, "\r");
    assert_string_equal(rig_hear(r, "send"), "send hllo \xe6\x97\xa5");
    quit(r);
}

/* Bytes that are no UTF-8 take nothing with them. */
static void test_broken_bytes(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    vt_send(r->vt, "a\xff" "b\xc3" "c\xe6\x97" "d\r");
    assert_string_equal(rig_hear(r, "send"),
                        "send a\xef\xbf\xbd" "b\xef\xbf\xbd" "c\xef\xbf\xbd" "d");
    quit(r);
}

static void test_lines(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    vt_send(r->vt, "one\033\rtwo\nthree");
    assert_true(vt_wait_text(r->vt, "three"));
    assert_int_equal(vt_find_row(r->vt, "three"), 22);
    assert_int_equal(vt_find_row(r->vt, "one"), 20);
    vt_send(r->vt, "\033[A\033[Ax"); /* two rows up, into the first */
    assert_true(vt_wait_text(r->vt, "onex"));
    vt_send(r->vt, "\r");
    assert_string_equal(rig_hear(r, "send"), "send onex\\ntwo\\nthree");
    quit(r);
}

static void test_history_and_undo(void **state)
{
    (void)state;
    struct rig *r = START(0);
    rig_make_idle(r);
    vt_send(r->vt, "first\r");
    assert_string_equal(rig_hear(r, "send"), "send first");
    rig_say(r, "take 0");
    rig_say(r, "phase idle");
    vt_send(r->vt, "draft");
    assert_true(vt_wait_text(r->vt, "draft"));
    vt_send(r->vt, "\x10");
    assert_true(vt_wait_gone(r->vt, "draft"));
    vt_send(r->vt, "\x0e");
    assert_true(vt_wait_text(r->vt, "draft"));
    vt_send(r->vt, "\x17");
    assert_true(vt_wait_gone(r->vt, "draft"));
    vt_send(r->vt, "\x1f");
    assert_true(vt_wait_text(r->vt, "draft"));
    quit(r);
}

/* What was sent is there at the next start, the messages of the session that opens being nearer. */
static void test_history_kept(void **state)
{
    (void)state;
    char home[64], data[96], cmd[96];
    const char *tmp = getenv("TMPDIR");
    snprintf(home, sizeof home, "%.40s/k3hist-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(home));
    snprintf(data, sizeof data, "XDG_DATA_HOME=%s", home);
    const char *env[] = {data, NULL};
    struct rig *r = START(.env = env);
    rig_make_idle(r);
    vt_send(r->vt, "two\nrows of text\r"); /* Ctrl+J, Enter */
    assert_string_equal(rig_hear(r, "send"), "send two\\nrows of text");
    vt_send(r->vt, "/think low\r");
    assert_non_null(rig_hear(r, "thinking"));
    quit(r);
    r = START(.env = env);
    rig_say(r, "message user 0 0 said in this session");
    rig_make_idle(r);
    vt_send(r->vt, "\x10"); /* Ctrl+P */
    vt_settle(r->vt);
    assert_non_null(strstr(vt_row(r->vt, 22), "said in this session"));
    vt_send(r->vt, "\x10");
    assert_true(vt_wait_text(r->vt, "/think low"));
    vt_send(r->vt, "\x10");
    assert_true(vt_wait_text(r->vt, "rows of text"));
    vt_send(r->vt, "\r");
    assert_string_equal(rig_hear(r, "send"), "send two\\nrows of text");
    quit(r);
    r = START(.env = env, .arg = "--no-history");
    rig_make_idle(r);
    vt_send(r->vt, "\x10not kept\r");
    assert_string_equal(rig_hear(r, "send"), "send not kept");
    quit(r);
    r = START(.env = env);
    rig_make_idle(r);
    vt_send(r->vt, "\x10");
    assert_true(vt_wait_text(r->vt, "rows of text"));
    vt_send(r->vt, "\x15" "half a thought"); /* not sent; a row of the message is left of it */
    assert_true(vt_wait_text(r->vt, "half a thought"));
    quit(r);
    r = START(.env = env);
    rig_make_idle(r);
    vt_send(r->vt, "\x10");
    assert_true(vt_wait_text(r->vt, "half a thought"));
    quit(r);
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", home);
    assert_int_equal(system(cmd), 0);
}

static void test_external_editor(void **state)
{
    (void)state;
    char script[300], visual[340];
    const char *tmp = getenv("TMPDIR");
    snprintf(script, sizeof script, "%s/k3ed-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    const int fd = mkstemp(script);
    assert_true(fd >= 0);
    const char *text = "printf 'and more\\n' >> \"$1\"\nprintf 'tty: '; test -t 1 && echo yes\n";
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    snprintf(visual, sizeof visual, "VISUAL=sh %s", script);
    struct rig *r = START(.env = (const char *const[]){visual, NULL});
    rig_make_idle(r);
    vt_send(r->vt, "some ");
    assert_true(vt_wait_text(r->vt, "some"));
    vt_send(r->vt, "\x18\x05");
    assert_true(vt_wait_text(r->vt, "some and more"));
    vt_settle(r->vt);
    assert_true(vt_wrote(r->vt, "tty: yes"));
    assert_true(vt_alternate(r->vt));
    assert_true(vt_bracketed_paste(r->vt));
    vt_send(r->vt, "\r");
    assert_string_equal(rig_hear(r, "send"), "send some and more");
    unlink(script);
    quit(r);
}

/* A message that is longer than its window moves only as far as the cursor needs it. */
static void test_long_message(void **state)
{
    (void)state;
    struct rig *r = START(0);
    int row = 0, col = 0, up_row = 0;
    rig_make_idle(r);
    vt_send(r->vt, "\033[200~");
    for (int i = 1; i <= 30; i++) {
        char line[16];
        snprintf(line, sizeof line, "row %d;%s", i, i < 30 ? "\r" : "");
        vt_send(r->vt, line);
    }
    vt_send(r->vt, "\033[201~");
    assert_true(vt_wait_text(r->vt, "row 30;"));
    vt_settle(r->vt);
    vt_cursor(r->vt, &row, &col);
    vt_send(r->vt, "\033[A\033[A");
    vt_settle(r->vt);
    vt_cursor(r->vt, &up_row, &col);
    assert_int_equal(up_row, row - 2);
    assert_true(vt_has(r->vt, "row 30;"));
    for (int i = 0; i < 27; i++)
        vt_send(r->vt, "\033[A");
    assert_true(vt_wait_text(r->vt, "row 1;"));
    assert_true(vt_wait_gone(r->vt, "row 30;"));
    vt_send(r->vt, "\x1f"); /* undo: nothing is left of it */
    assert_true(vt_wait_gone(r->vt, "row 1;"));
    quit(r);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_message),
        cmocka_unit_test(test_typing),
        cmocka_unit_test(test_broken_bytes),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_history_and_undo),
        cmocka_unit_test(test_history_kept),
        cmocka_unit_test(test_external_editor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
