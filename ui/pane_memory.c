/* pane_memory.c - memory against the budget, and what the plan gives to whom. */
#include <config.h>

#include <stdio.h>

#include "format.h"
#include "graph.h"
#include "pane.h"

struct part {
    const char *name;
    uint64_t bytes;
};

/* The other parts of the plan, two a row: the ones that grow with the budget first. */
static void draw_parts(const struct k3_plan *p, struct grid *g, const struct rect *r, int row)
{
    const struct part parts[] = {
        {"trunk", p->residents}, {"ring", p->ring}, {"staging", p->staging},
        {"state", p->state}, {"latents", p->latent}, {"working", p->activations},
        {"vectors", p->vectors}, {"index", p->index}, {"program", p->program},
    };
    const int half = r->cols / 2;
    char b[32];
    size_t shown = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && row < r->rows; i++) {
        if (parts[i].bytes == 0)
            continue;
        const int col = shown % 2 ? half + 1 : 0;
        grid_puts(g, r, row, col, INK_LABEL, parts[i].name);
        grid_puts_right(g, r, row, col + half - 1, INK_TEXT,
                        fmt_bytes(b, sizeof b, (double)parts[i].bytes));
        row += shown++ % 2;
    }
}

/* Three figures that overlap in other programs' bars and are told apart here: what the process holds
 * itself, against the budget; of it, the experts that are kept; and the system's page cache, no part of
 * it. */
static void draw_own(const struct ui_model *m, struct grid *g, const struct rect *r)
{
    const struct session_status *st = &m->st;
    char a[32], b[32];
    const double own = (double)model_memory(m), budget = (double)st->plan.budget;
    const bool over = budget > 0 && (double)st->rss > budget;
    if (budget > 0)
        fmt_bytes_of(a, b, sizeof a, own, budget);
    else
        fmt_bytes(a, sizeof a, own);
    int col = grid_puts(g, r, 0, 0, INK_LABEL, "anon ");
    col = grid_puts(g, r, 0, col, over ? INK_BAD : INK_VALUE, a);
    if (budget > 0)
        col = grid_printf(g, r, 0, col, INK_TEXT, " of %s", b);
    if (st->peak_rss > 0)
        pane_field(g, r, 0, col + 2, "peak", fmt_bytes(b, sizeof b, (double)st->peak_rss));
    graph_bar(g, r, 1, 0, r->cols, m->graph, budget > 0 ? own / budget : 0,
              over ? INK_BAD : INK_GRAPH, 0, INK_GRAPH);
}

static int draw_experts(const struct session_status *st, struct grid *g, const struct rect *r,
                        int row)
{
    char a[32], b[32];
    if (row >= r->rows || st->plan.experts == 0)
        return row;
    fmt_bytes_of(a, b, sizeof a, (double)st->metrics.expert_bytes_resident,
                 (double)st->plan.experts);
    const int col = grid_puts(g, r, row, 0, INK_LABEL, "expert cache ");
    grid_printf(g, r, row, col, INK_TEXT, "%s of %s", a, b);
    return row + 1;
}

static int draw_page_cache(const struct session_status *st, struct grid *g, const struct rect *r,
                           int row)
{
    char b[32];
    if (row >= r->rows || st->page_cache == 0)
        return row;
    int col = grid_puts(g, r, row, 0, INK_LABEL, "page cache ");
    col = grid_puts(g, r, row, col, INK_TEXT, fmt_bytes(b, sizeof b, (double)st->page_cache));
    grid_puts(g, r, row, col, INK_DIM, " (not ours)");
    return row + 1;
}

void pane_memory_draw(const struct ui_model *m, struct grid *g, const struct rect *r)
{
    draw_own(m, g, r);
    int row = draw_experts(&m->st, g, r, 2);
    row = draw_page_cache(&m->st, g, r, row);
    draw_parts(&m->st.plan, g, r, row);
}
