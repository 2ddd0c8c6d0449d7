/* ui_steps.h - what the tests over ui_rig.h do at their beginning and end. After cmocka.h. */
#ifndef K3CHAT_TESTS_UI_STEPS_H
#define K3CHAT_TESTS_UI_STEPS_H

#include <sys/wait.h>

#include "ui_rig.h"

#define START(...) start(&(struct rig_options){__VA_ARGS__})

static inline struct rig *start(const struct rig_options *opt)
{
    struct rig *r = rig_start(opt);
    assert_non_null(r);
    return r;
}

static inline void assert_restored(struct rig *r)
{
    assert_false(vt_alternate(r->vt));
    assert_false(vt_bracketed_paste(r->vt));
    assert_false(vt_mouse_reports(r->vt));
    assert_true(vt_cursor_visible(r->vt));
    assert_true(vt_modes_restored(r->vt));
}

static inline void assert_leaves(struct rig *r, int status)
{
    const int s = vt_wait_exit(r->vt);
    assert_true(WIFEXITED(s));
    assert_int_equal(WEXITSTATUS(s), status);
    assert_restored(r);
    rig_free(r);
}

static inline void quit(struct rig *r)
{
    vt_send(r->vt, "\x11");
    assert_leaves(r, 0);
}

/* A question that is being read. */
static inline void ask(struct rig *r, const char *question)
{
    rig_make_idle(r);
    vt_send(r->vt, question);
    vt_send(r->vt, "\r");
    assert_non_null(rig_hear(r, "send"));
    rig_say(r, "take 0");
    rig_say(r, "phase reading");
}

#endif
