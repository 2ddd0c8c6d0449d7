/* test_ui_mouse.c - the wheel: off unless asked for, and given back on every path. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "ui_steps.h"

static void fill(struct rig *r)
{
    rig_make_idle(r);
    for (int i = 0; i < 60; i++)
        rig_say(r, "message user 0 0 line %d.", i);
    assert_true(vt_wait_text(r->vt, "line 59."));
    vt_settle(r->vt);
}

static void test_off(void **state)
{
    (void)state;
    struct rig *r = START(0);
    fill(r);
    assert_false(vt_mouse_reports(r->vt));
    assert_false(vt_wrote(r->vt, "\033[?1000h"));
    vt_send(r->vt, "/mouse\r");
    assert_true(vt_wait_text(r->vt, "/mouse takes wheel or off"));
    vt_send(r->vt, "/mouse wheel\r");
    assert_true(vt_wait_text(r->vt, "Shift"));
    vt_settle(r->vt);
    assert_true(vt_mouse_reports(r->vt));
    vt_wheel(r->vt, true);
    assert_true(vt_wait_text(r->vt, "scrolled back"));
    vt_wheel(r->vt, false);
    assert_true(vt_wait_gone(r->vt, "scrolled back"));
    vt_send(r->vt, "/mouse off\r");
    assert_true(vt_wait_text(r->vt, "the terminal's"));
    vt_settle(r->vt);
    assert_false(vt_mouse_reports(r->vt));
    quit(r);
}

static void test_wheel(void **state)
{
    (void)state;
    struct rig *r = START(.arg = "--mouse");
    fill(r);
    assert_true(vt_mouse_reports(r->vt));
    for (int i = 0; i < 60 && !vt_has(r->vt, "line 0."); i++) {
        vt_wheel(r->vt, true);
        vt_settle(r->vt);
    }
    assert_true(vt_has(r->vt, "line 0."));
    vt_send(r->vt, "\033[<0;5;5M\033[<0;5;5m\033[<35;6;6Mtyped"); /* clicks and motion are nothing */
    assert_true(vt_wait_text(r->vt, "typed"));
    assert_true(vt_has(r->vt, "line 0."));
    vt_send(r->vt, "\x15/help\r");
    assert_true(vt_wait_text(r->vt, "for more"));
    vt_wheel(r->vt, false);
    assert_true(vt_wait_gone(r->vt, "while an answer runs")); /* of the first rows */
    vt_send(r->vt, "\033");
    assert_true(vt_wait_gone(r->vt, "for more"));
    vt_send(r->vt, "\033OR"); /* F3, the bare view: the mouse selects */
    assert_true(vt_wait_text(r->vt, "any other key"));
    vt_settle(r->vt);
    assert_false(vt_mouse_reports(r->vt));
    vt_send(r->vt, " ");
    assert_true(vt_wait_gone(r->vt, "any other key"));
    vt_settle(r->vt);
    assert_true(vt_mouse_reports(r->vt));
    quit(r);
}

static void test_given_back(void **state)
{
    (void)state;
    static const int ends[] = {SIGTERM, SIGHUP, SIGSEGV, SIGABRT};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct rig *r = START(.arg = "--mouse");
        assert_true(vt_mouse_reports(r->vt));
        vt_signal(r->vt, ends[i]);
        assert_int_not_equal(vt_wait_exit(r->vt), -1);
        assert_restored(r);
        rig_free(r);
    }
    struct rig *r = START(.arg = "--mouse", .job_control = true);
    fill(r);
    vt_send(r->vt, "\x1a");
    assert_true(vt_wait_stopped(r->vt));
    assert_restored(r);
    vt_foreground(r->vt);
    assert_true(vt_wait_text(r->vt, "line 59."));
    vt_settle(r->vt);
    assert_true(vt_mouse_reports(r->vt));
    quit(r);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_wheel),
        cmocka_unit_test(test_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
