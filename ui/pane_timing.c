/* pane_timing.c - how long tokens take: now, on average, at worst, and where the running one is. */
#include <config.h>

#include <stdio.h>

#include "format.h"
#include "graph.h"
#include "pane.h"

/* Three times in one unit, so that they can be compared at a glance. */
static void draw_figures(const struct ui_model *m, struct grid *g, const struct rect *r)
{
    const struct session_status *st = &m->st;
    const double now = st->last_step_seconds, avg = st->mean_step_seconds,
                 p95 = st->p95_step_seconds;
    if (!(now > 0)) {
        pane_nothing_yet(g, r);
        return;
    }
    double most = now > avg ? now : avg;
    most = most > p95 ? most : p95;
    const double unit = most < 0.9995 ? 1000 : 1;
    const int digits = most < 0.9995 || most >= 99.95 ? 0 : most < 9.995 ? 2 : 1;
    int col = grid_puts(g, r, 0, 0, INK_LABEL, "now ");
    col = grid_printf(g, r, 0, col, INK_VALUE, "%.*f", digits, now * unit);
    if (avg > 0) {
        col = grid_puts(g, r, 0, col, INK_LABEL, "  avg ");
        col = grid_printf(g, r, 0, col, INK_TEXT, "%.*f", digits, avg * unit);
    }
    if (p95 > 0) {
        col = grid_puts(g, r, 0, col, INK_LABEL, "  p95 ");
        col = grid_printf(g, r, 0, col, INK_TEXT, "%.*f", digits, p95 * unit);
    }
    grid_puts(g, r, 0, col, INK_LABEL, unit > 1 ? " ms" : " s");
}

/* Where the running token, or chunk of the prompt, is. */
static void draw_progress(const struct ui_model *m, struct grid *g, const struct rect *r, int row)
{
    const struct k3_metrics *k = &m->st.metrics;
    char b[32];
    if (!k->running || k->layers == 0) {
        if (m->st.mean_step_seconds > 0) {
            const int col = grid_puts(g, r, row, 0, INK_LABEL, "100 tokens take about ");
            grid_puts(g, r, row, col, INK_TEXT,
                      fmt_about(b, sizeof b, 100 * m->st.mean_step_seconds));
        }
        return;
    }
    int col = grid_printf(g, r, row, 0, INK_TEXT, "layer %2u/%u ", k->layer, k->layers);
    const double age = m->st.step_seconds > 0 ? m->st.step_seconds : m->st.phase_seconds;
    const int end = r->cols - 7;
    if (end - col >= 4)
        graph_bar(g, r, row, col, end - col, m->graph, (double)k->layer / k->layers, INK_GRAPH, 0,
                  INK_GRAPH);
    grid_puts_right(g, r, row, r->cols, INK_TEXT, fmt_clock(b, sizeof b, age));
}

void pane_timing_draw(const struct ui_model *m, struct grid *g, const struct rect *r)
{
    double longest = 0;
    char b[32];
    draw_figures(m, g, r);
    draw_progress(m, g, r, 1);
    for (size_t i = 0; i < graph_capacity(r, m->graph); i++) {
        const struct step_stats *s = history_back(&m->steps, i);
        if (s && s->seconds > longest)
            longest = s->seconds;
    }
    if (longest > 0) {
        const double max = graph_nice_max(longest);
        pane_graph(m, g, r, 2, step_seconds_of, max,
                   max < 1 ? fmt_seconds(b, sizeof b, max)
                           : max < 1000 ? (snprintf(b, sizeof b, "%.0f s", max), b)
                                        : fmt_about(b, sizeof b, max));
    }
}
