/* pane.h - the monitor panes: one table, one file each. A new pane is a file with a draw function
 * and a line in pane.c. */
#ifndef K3CHAT_UI_PANE_H
#define K3CHAT_UI_PANE_H

#include "grid.h"
#include "layout.h"
#include "model.h"

struct pane {
    const char *name;  /* in profiles and commands */
    const char *title;
    struct layout_need need; /* title row counted */
    /* Draws into r, the title row left out. r has at least need.min_rows - 1 rows and
     * need.min_cols columns. */
    void (*draw)(const struct ui_model *m, struct grid *g, const struct rect *r);
};

extern const struct pane panes[];
extern const size_t n_panes;
const struct pane *pane_find(const char *name); /* NULL = no such pane */

void pane_timing_draw(const struct ui_model *m, struct grid *g, const struct rect *r);
void pane_disk_draw(const struct ui_model *m, struct grid *g, const struct rect *r);
void pane_hits_draw(const struct ui_model *m, struct grid *g, const struct rect *r);
void pane_experts_draw(const struct ui_model *m, struct grid *g, const struct rect *r);
void pane_memory_draw(const struct ui_model *m, struct grid *g, const struct rect *r);

/* ---- what they share ---- */

/* A label and its value in one row; returns the column after it. Drawn whole or, where the room is
 * short, not at all: a number that is cut off would lie. */
int pane_field(struct grid *g, const struct rect *r, int row, int col, const char *label,
               const char *value);
/* A percent or time graph in rows [row, r->rows) with its scale at the left edge. */
void pane_graph(const struct ui_model *m, struct grid *g, const struct rect *r, int row,
                double (*figure)(const struct step_stats *), double max, const char *top);
/* The step whose figures are shown: the last decode step, else the prompt; NULL = none yet.
 * *what says which: "last token" or "prompt". */
const struct step_stats *pane_step(const struct ui_model *m, const char **what);
void pane_nothing_yet(struct grid *g, const struct rect *r);

#endif
