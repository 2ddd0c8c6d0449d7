/* test_ui_screens.c - what the screen looks like, compared with stored pictures. With
 * K3_UPDATE_SCREENS set the pictures are written anew instead (make update-screens). */
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

#include "ui_rig.h"

#define PICTURE_CAP 65536
#define PICTURE_TRIES 500 /* of 20 ms, when nothing comes */

static void take_picture(struct vt *vt, int rows, char *out)
{
    size_t n = 0;
    for (int y = 0; y < rows; y++)
        n += (size_t)snprintf(out + n, PICTURE_CAP - n, "%s\n", vt_row(vt, y));
    assert_true(n < PICTURE_CAP);
}

static void store(const char *path, const char *picture)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(picture, f);
    assert_int_equal(fclose(f), 0);
}

static const char *load(const char *path)
{
    static char stored[PICTURE_CAP];
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s: no such picture; make update-screens makes it", path);
    const size_t n = fread(stored, 1, sizeof stored - 1, f);
    stored[n] = '\0';
    fclose(f);
    return stored;
}

/* The screen comes to be as stored: a busy machine may take its time over the last frame. */
static void compare(struct vt *vt, int rows, const char *path)
{
    static char picture[PICTURE_CAP];
    const char *stored = load(path);
    for (int tries = 0; tries < PICTURE_TRIES; tries++) {
        take_picture(vt, rows, picture);
        if (strcmp(stored, picture) == 0)
            return;
        vt_pump(vt, 20);
    }
    for (const char *p = picture; *p; p += strcspn(p, "\n") + 1)
        fprintf(stderr, "# |%.*s\n", (int)strcspn(p, "\n"), p);
    fail_msg("the screen is not as in %s; make update-screens stores the new picture", path);
}

static void check(struct rig *r, int rows, const char *name)
{
    static char picture[PICTURE_CAP];
    char path[4096];
    const char *src = getenv("K3_SRCDIR");
    snprintf(path, sizeof path, "%s/tests/data/screens/%s.txt", src ? src : ".", name);
    if (!getenv("K3_UPDATE_SCREENS")) {
        compare(r->vt, rows, path);
        return;
    }
    vt_settle(r->vt);
    take_picture(r->vt, rows, picture);
    store(path, picture);
}

static void leave(struct rig *r)
{
    vt_send(r->vt, "\x11\x11");
    assert_int_equal(WEXITSTATUS(vt_wait_exit(r->vt)), 0);
    rig_free(r);
}

static struct rig *scene(int rows, int cols, const struct rig_options *more)
{
    struct rig_options opt = more ? *more : (struct rig_options){0};
    opt.rows = rows;
    opt.cols = cols;
    struct rig *r = rig_start(&opt);
    assert_non_null(r);
    rig_play_scene(r);
    assert_true(vt_wait_text(r->vt, "answering"));
    assert_true(vt_wait_text(r->vt, "24.1 s/tok"));
    return r;
}

static void check_scene(int rows, int cols, const struct rig_options *more, const char *name)
{
    struct rig *r = scene(rows, cols, more);
    check(r, rows, name);
    leave(r);
}

static void test_sizes(void **state)
{
    (void)state;
    check_scene(12, 40, NULL, "answering-40x12");
    check_scene(24, 80, NULL, "answering-80x24");
    check_scene(34, 120, NULL, "answering-120x34");
    check_scene(60, 200, NULL, "answering-200x60");
    check_scene(40, 60, NULL, "answering-60x40");
}

static void test_ascii(void **state)
{
    (void)state;
    check_scene(24, 80, &(struct rig_options){.locale = "C", .term = "vt220"},
                "answering-ascii-80x24");
    check_scene(24, 80, &(struct rig_options){.arg = "--graph-block"}, "answering-block-80x24");
}

static void test_presets(void **state)
{
    (void)state;
    struct rig *r = scene(34, 120, NULL);
    vt_send(r->vt, "\033OQ");
    assert_true(vt_wait_text(r->vt, "chat alone"));
    check(r, 34, "chat-120x34");
    vt_send(r->vt, "\033OQ");
    assert_true(vt_wait_text(r->vt, "panes large"));
    check(r, 34, "panes-120x34");
    leave(r);
}

static void test_overlays(void **state)
{
    (void)state;
    struct rig *r = scene(24, 80, NULL);
    vt_send(r->vt, "\033OP");
    assert_true(vt_wait_text(r->vt, "Esc closes"));
    check(r, 24, "help-80x24");
    vt_send(r->vt, "\033");
    assert_true(vt_wait_gone(r->vt, "Esc closes"));
    rig_say(r, "saved rust-lifetimes 0 2 Explain lifetimes in Rust with one example.");
    rig_say(r, "saved travel 0 14 A week in Lisbon, by train and on foot, with two children");
    rig_say(r, "saved damaged 0 0 x");
    rig_say(r, "set reasoning_tokens 62"); /* seen in the status: the lines before were taken */
    rig_say(r, "set answer_tokens 99");
    rig_say(r, "wake");
    assert_true(vt_wait_text(r->vt, "99 tok"));
    vt_send(r->vt, "/sessions\r");
    assert_true(vt_wait_text(r->vt, "3 sessions"));
    vt_send(r->vt, "\033[B");
    vt_settle(r->vt);
    check(r, 24, "sessions-80x24");
    leave(r);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_ascii),
        cmocka_unit_test(test_presets),
        cmocka_unit_test(test_overlays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
