/* test_ui_vt.c - the screen on a real pty: keys, text, signals, sizes, modes. */
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

/* ---- start ------------------------------------------------------------------------------- */

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

/* ---- writing ----------------------------------------------------------------------------- */

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

/* ---- answers ----------------------------------------------------------------------------- */

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
    rig_say(r, "message user 0 0 bbb\\nb2"); /* the engine has taken it up at that moment */
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

/* ---- sizes ------------------------------------------------------------------------------- */

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

/* ---- quiet ------------------------------------------------------------------------------- */

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

/* ---- terminals --------------------------------------------------------------------------- */

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

/* ---- plain lines ------------------------------------------------------------------------- */

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

/* ---- ways out ---------------------------------------------------------------------------- */

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
        cmocka_unit_test(test_typing),
        cmocka_unit_test(test_broken_bytes),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_history_and_undo),
        cmocka_unit_test(test_history_kept),
        cmocka_unit_test(test_external_editor),
        cmocka_unit_test(test_streaming),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_queue_order),
        cmocka_unit_test(test_hostile_text),
        cmocka_unit_test(test_scrolling),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_sessions),
        cmocka_unit_test(test_session_list),
        cmocka_unit_test(test_temporary),
        cmocka_unit_test(test_read_only),
        cmocka_unit_test(test_own_keys),
        cmocka_unit_test(test_stray_output),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_roof),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_resize_storm),
        cmocka_unit_test(test_too_small),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_frame_limit),
        cmocka_unit_test(test_colours),
        cmocka_unit_test(test_plain_locale),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_plain_dumb),
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_input_discarded),
        cmocka_unit_test(test_failure_is_told),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_crashes),
        cmocka_unit_test(test_suspend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
