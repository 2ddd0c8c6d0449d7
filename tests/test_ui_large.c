/* test_ui_large.c - long conversations and large pastes on a real pty. Nothing is timed: what is counted
 * are bytes, of the paste and of what is drawn. */
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

#include "ui_steps.h"

#define PASTE 1000000
#define MESSAGES 10000
#define MESSAGE_BYTES 1000

/* Lines that would be commands and keys if they were typed, in between ordinary text. */
static char *make_paste(void)
{
    static const char evil[] = "\r/quit\r\x03\x11\x1a\x04rm -rf x\r";
    char *s = malloc(PASTE + 1);
    assert_non_null(s);
    for (size_t i = 0; i < PASTE; i++)
        s[i] = i % 60 == 59 ? '\r' : (char)('a' + i * 7 % 26);
    for (size_t at = 5000; at + sizeof evil < PASTE; at += 100000)
        memcpy(s + at, evil, sizeof evil - 1);
    memcpy(s + PASTE - 8, "the end.", 8);
    s[PASTE] = '\0';
    return s;
}

/* As ui_fake reports it. */
static char *as_reported(const char *s)
{
    char *out = malloc(4 * PASTE + 16);
    assert_non_null(out);
    size_t n = (size_t)sprintf(out, "send ");
    for (; *s; s++) {
        if (*s == '\r')
            n += (size_t)sprintf(out + n, "\\n");
        else if ((unsigned char)*s < 0x20)
            n += (size_t)sprintf(out + n, "\\x%02x", (unsigned char)*s);
        else
            out[n++] = *s;
    }
    out[n] = '\0';
    return out;
}

static void test_paste(void **state)
{
    (void)state;
    struct rig *r = START(0);
    char *s = make_paste();
    rig_make_idle(r);
    vt_paste(r->vt, s, PASTE);
    assert_true(vt_wait_text(r->vt, "the end."));
    vt_settle(r->vt);
    const size_t before = vt_written(r->vt);
    vt_send(r->vt, "!");
    assert_true(vt_wait_text(r->vt, "the end.!"));
    vt_settle(r->vt);
    assert_true(vt_written(r->vt) - before < 2000); /* one row is drawn, not the text */
    vt_send(r->vt, "\x7f\r");
    const char *line = rig_hear(r, "");
    while (line && strcmp(line, "open") == 0)
        line = rig_hear(r, "");
    char *expected = as_reported(s);
    assert_non_null(line); /* nothing was sent or asked for before */
    assert_true(strcmp(line, expected) == 0);
    free(expected);
    free(s);
    quit(r);
}

static void tell_messages(struct rig *r)
{
    char text[MESSAGE_BYTES];
    for (int i = 0; i < MESSAGES; i++) {
        size_t n = (size_t)snprintf(text, sizeof text, "Message %d. ", i);
        while (n + 12 < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, i % 2 ? "*word* " : "word ");
        rig_say(r, "message %s 0 0 %s", i % 2 ? "assistant" : "user", text);
        vt_pump(r->vt, 0); /* else both would wait for each other with full pipes */
    }
}

static size_t bytes_of(struct rig *r, const char *keys, const char *text)
{
    const size_t before = vt_written(r->vt);
    vt_send(r->vt, keys);
    assert_true(vt_wait_text(r->vt, text));
    vt_settle(r->vt);
    return vt_written(r->vt) - before;
}

static void test_long_session(void **state)
{
    (void)state;
    struct rig *r = START(.rows = 40, .cols = 100);
    rig_make_idle(r);
    tell_messages(r);
    rig_say(r, "message user 0 0 the very last one");
    assert_true(vt_wait_text(r->vt, "the very last one"));
    vt_settle(r->vt);
    assert_true(bytes_of(r, "\033[5~", "scrolled back") < 20000);
    assert_true(bytes_of(r, "\033[1;5H", "Message 0.") < 20000);
    assert_true(bytes_of(r, "\033[6~", "Message 2.") < 20000);
    assert_true(bytes_of(r, "\033[1;5F", "the very last one") < 20000);
    assert_true(bytes_of(r, "typed", "typed") < 2000);
    vt_resize(r->vt, 24, 80);
    assert_true(vt_wait_text(r->vt, "the very last one"));
    vt_send(r->vt, "\x15/find Message 5000\r");
    assert_true(vt_wait_text(r->vt, "Message 5000"));
    quit(r);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paste),
        cmocka_unit_test(test_long_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
