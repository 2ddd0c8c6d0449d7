/* ui_rig.h - the screen on a pty, driven through tests/ui_fake.c. */
#ifndef K3CHAT_TESTS_UI_RIG_H
#define K3CHAT_TESTS_UI_RIG_H

#include "vt.h"

struct rig {
    struct vt *vt;
    int control, report;
    char *heard;      /* what the program reported */
    size_t n_heard;
    size_t passed;    /* of it, what was waited for already */
};

struct rig_options {
    int rows, cols;            /* 0 = 24 x 80 */
    const char *term, *locale;
    const char *const *env;
    const char *arg;
    bool zero_size, job_control;
};

/* Starts and waits for the first frame, unless opt->term is one that is refused. */
struct rig *rig_start(const struct rig_options *opt);
struct rig *rig_launch(const struct rig_options *opt); /* does not wait */
void rig_free(struct rig *r);
/* One command line for the fake session. */
void rig_say(struct rig *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Waits for a report that begins so, after those waited for before; NULL = it did not come. The
 * whole line, valid until the next call. */
const char *rig_hear(struct rig *r, const char *start);
/* An answer under way on a laptop: the scene of the stored screens. */
void rig_play_scene(struct rig *r);
/* idle, with some figures */
void rig_make_idle(struct rig *r);

#endif
