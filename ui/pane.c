/* pane.c - the table of panes, and what they share (see pane.h). */
#include <config.h>

#include "pane.h"

#include <string.h>

#include "graph.h"
#include "text.h"

const struct pane panes[] = {
    {"timing", "token time", {4, 32, 9, 4}, pane_timing_draw},
    {"disk", "disk wait", {4, 32, 9, 2}, pane_disk_draw},
    {"hits", "true resident hit rate", {5, 32, 9, 2}, pane_hits_draw},
    {"experts", "expert hits by layer", {4, 32, 8, 2}, pane_experts_draw},
    {"memory", "memory", {3, 32, 10, 1}, pane_memory_draw},
};
const size_t n_panes = sizeof panes / sizeof *panes;
_Static_assert(sizeof panes / sizeof *panes <= LAYOUT_MAX_PANES, "more panes than a layout");

const struct pane *pane_find(const char *name)
{
    for (size_t i = 0; i < n_panes; i++)
        if (strcmp(panes[i].name, name) == 0)
            return &panes[i];
    return NULL;
}

int pane_field(struct grid *g, const struct rect *r, int row, int col, const char *label,
               const char *value)
{
    const unsigned need = text_width(label, strlen(label)) + text_width(value, strlen(value)) + 1;
    if (col + (int)need > r->cols + (*label ? 0 : 1))
        return col;
    if (*label)
        col = grid_puts(g, r, row, col, INK_LABEL, label) + 1;
    return grid_puts(g, r, row, col, INK_TEXT, value);
}

#define SCALE_COLS 7
#define MAX_SAMPLES 1024

void pane_graph(const struct ui_model *m, struct grid *g, const struct rect *r, int row,
                double (*figure)(const struct step_stats *), double max, const char *top)
{
    const int rows = r->rows - row;
    if (rows < 1 || r->cols <= SCALE_COLS)
        return;
    const struct rect area = {r->row + row, r->col + SCALE_COLS, rows, r->cols - SCALE_COLS};
    double samples[MAX_SAMPLES];
    size_t n = graph_capacity(&area, m->graph);
    if (n > MAX_SAMPLES)
        n = MAX_SAMPLES;
    history_series(&m->steps, figure, samples, n);
    grid_puts_right(g, r, row, SCALE_COLS - 1, INK_DIM, top);
    if (rows > 1)
        grid_puts_right(g, r, r->rows - 1, SCALE_COLS - 1, INK_DIM, "0");
    graph_draw(g, &area, INK_GRAPH, m->graph, samples, n, max);
}

const struct step_stats *pane_step(const struct ui_model *m, const char **what)
{
    const struct step_stats *last = history_back(&m->steps, 0);
    *what = last ? "last token" : "prompt";
    if (!last && m->prefill.tokens > 0)
        last = &m->prefill;
    return last;
}

void pane_nothing_yet(struct grid *g, const struct rect *r)
{
    grid_puts(g, r, 0, 0, INK_DIM, "no token yet");
}
