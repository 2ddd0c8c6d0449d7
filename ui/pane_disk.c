/* pane_disk.c - how much of the time the compute waits for the disk, and what the disk gives. */
#include <config.h>

#include <string.h>

#include "format.h"
#include "graph.h"
#include "pane.h"

/* The rate now beside the roof, and which roof that is: measured by bench io, set by --simulate-disk,
 * else the best rate that this run has seen. */
static void draw_rates(const struct ui_model *m, struct grid *g, const struct rect *r, int row,
                       const struct step_stats *s)
{
    char a[32], b[32];
    const double bytes = (double)(s->bytes_trunk + s->bytes_experts);
    const double rate = m->live_rate >= 0 ? m->live_rate : s->seconds > 0 ? bytes / s->seconds : -1;
    const bool known = m->st.disk_roof > 0;
    const double roof = known ? m->st.disk_roof : m->best_rate;
    const char *which = m->st.disk_simulated ? "simulated" : known ? "measured" : "best so far";
    if (roof <= 0) {
        pane_field(g, r, row, 0, "read", fmt_rate(a, sizeof a, rate));
        return;
    }
    fmt_rate_of(a, b, sizeof a, rate, roof);
    int col = r->cols >= 38 ? grid_puts(g, r, row, 0, INK_LABEL, "read ") : 0;
    col = grid_puts(g, r, row, col, INK_TEXT, a);
    col = grid_printf(g, r, row, col, INK_TEXT, " of %s", b);
    if (col + 1 + (int)strlen(which) <= r->cols)
        grid_puts(g, r, row, col + 1, INK_DIM, which);
}

static void draw_bytes(struct grid *g, const struct rect *r, int row, const struct step_stats *s)
{
    char b[32];
    const double tokens = s->tokens > 0 ? s->tokens : 1;
    const double bytes = (double)(s->bytes_trunk + s->bytes_experts) / tokens;
    const int col = grid_printf(g, r, row, 0, INK_TEXT, "%s/tok", fmt_bytes(b, sizeof b, bytes));
    pane_field(g, r, row, col + 2, "disk busy", fmt_percent(b, sizeof b, step_device_busy(s)));
}

void pane_disk_draw(const struct ui_model *m, struct grid *g, const struct rect *r)
{
    const char *what;
    const struct step_stats *s = pane_step(m, &what);
    char b[32];
    if (!s) {
        pane_nothing_yet(g, r);
        return;
    }
    int col = grid_puts(g, r, 0, 0, INK_VALUE, fmt_percent(b, sizeof b, step_wait(s)));
    col = grid_puts(g, r, 0, col + 2, INK_GRAPH, "trunk ");
    col = grid_puts(g, r, 0, col, INK_TEXT, fmt_percent(b, sizeof b, step_wait_trunk(s)));
    col = grid_puts(g, r, 0, col + 2, INK_GRAPH2, "experts ");
    grid_puts(g, r, 0, col, INK_TEXT, fmt_percent(b, sizeof b, step_wait_experts(s)));
    graph_bar(g, r, 1, 0, r->cols, m->graph, step_wait_trunk(s), INK_GRAPH, step_wait_experts(s),
              INK_GRAPH2);
    draw_rates(m, g, r, 2, s);
    if (r->rows >= 4)
        draw_bytes(g, r, 3, s);
    if (r->rows >= 5)
        pane_graph(m, g, r, 4, step_wait, 1, "100 %");
}
