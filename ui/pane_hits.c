/* pane_hits.c - the TRUE resident hit rate: experts that were in memory before the step asked. */
#include <config.h>

#include <stdio.h>

#include "format.h"
#include "graph.h"
#include "pane.h"

#define WINDOW 16

static void draw_rates(const struct ui_model *m, struct grid *g, const struct rect *r,
                       const struct step_stats *s, const char *what)
{
    char b[32], label[32];
    struct step_stats sum;
    int col = grid_puts(g, r, 0, 0, INK_VALUE, fmt_percent1(b, sizeof b, step_hit_rate(s)));
    const size_t n = history_sum(&m->steps, WINDOW, &sum);
    if (n > 1) {
        snprintf(label, sizeof label, "last %zu:", n);
        pane_field(g, r, 0, col + 3, label, fmt_percent1(b, sizeof b, step_hit_rate(&sum)));
    } else
        grid_puts(g, r, 0, col + 3, INK_LABEL, what);
}

void pane_hits_draw(const struct ui_model *m, struct grid *g, const struct rect *r)
{
    const char *what;
    const struct step_stats *s = pane_step(m, &what);
    char b[32];
    if (!s) {
        pane_nothing_yet(g, r);
        return;
    }
    draw_rates(m, g, r, s, what);
    graph_bar(g, r, 1, 0, r->cols, m->graph, step_hit_rate(s), INK_GRAPH, step_prefetched(s),
              INK_GRAPH2);
    int col = grid_puts(g, r, 2, 0, INK_GRAPH2, "prefetched ");
    col = grid_puts(g, r, 2, col, INK_TEXT, fmt_percent(b, sizeof b, step_prefetched(s)));
    pane_field(g, r, 2, col + 2, "waited", fmt_percent(b, sizeof b, step_waited(s)));
    col = grid_puts(g, r, 3, 0, INK_DIM, "raw ");
    col = grid_puts(g, r, 3, col, INK_DIM, fmt_percent(b, sizeof b, step_raw_hit_rate(s)));
    grid_puts(g, r, 3, col + 1, INK_DIM, "(not residency)");
    if (r->rows >= 5)
        pane_graph(m, g, r, 4, step_hit_rate, 1, "100 %");
}
