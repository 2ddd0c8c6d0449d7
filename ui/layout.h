/* layout.h - where things stand: a size and what is wanted in, rectangles out. Pure. */
#ifndef K3CHAT_UI_LAYOUT_H
#define K3CHAT_UI_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "grid.h"

#define LAYOUT_MIN_ROWS 8
#define LAYOUT_MIN_COLS 40
#define LAYOUT_MAX_PANES 8

enum layout_preset {
    LAYOUT_BOTH,    /* chat left, panes right (or above, where there is no width) */
    LAYOUT_CHAT,    /* no panes */
    LAYOUT_MONITOR, /* panes over the whole width, a few rows of chat */
    LAYOUT_PRESETS
};

/* What a pane needs; its title row is counted. */
struct layout_need {
    int min_rows, min_cols; /* smaller is useless: dropped */
    int max_rows;           /* more has no use */
    int weight;             /* its share of spare rows */
};

struct layout_in {
    int rows, cols;
    enum layout_preset preset;
    int editor_rows;                        /* that its text would like */
    size_t n_panes;                         /* wanted, most wanted first */
    struct layout_need panes[LAYOUT_MAX_PANES];
};

/* Rectangles with no rows are not shown. Each pane's first row is its title; the transcript has
 * none, the editor's title row is editor_title. */
struct layout {
    bool too_small;
    struct rect title, transcript, editor_title, editor, status;
    struct rect panes[LAYOUT_MAX_PANES];
    size_t n_shown;                         /* panes that were not dropped */
    struct rect rule;                       /* upright line between chat and panes */
};

void layout_compute(const struct layout_in *in, struct layout *out);

#endif
