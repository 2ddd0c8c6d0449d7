/* pane_experts.c - which layers find their experts in memory: hits lately, layer by layer. */
#include <config.h>

#include <stdio.h>

#include "format.h"
#include "graph.h"
#include "pane.h"

#define SCALE_COLS 7
#define MAX_SAMPLES 1023 /* odd: one more may be added to fill a cell */

static void count_slots(const struct ui_model *m, uint64_t *used, uint64_t *slots)
{
    *used = *slots = 0;
    for (size_t i = 0; i < m->n_layers; i++) {
        *used += m->layers[i].counts.used;
        *slots += m->layers[i].counts.slots;
    }
}

/* The mean of the layers [from, to) that know theirs. */
static double mean_hits(const struct ui_model *m, size_t from, size_t to)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = from; i < to && i < m->n_layers; i++) {
        const double v = model_layer_hits(m, i);
        if (v >= 0) {
            sum += v;
            n++;
        }
    }
    return n > 0 ? sum / (double)n : -1;
}

/* One sample for a group of layers, or several for each, as the room is. */
static size_t sample_layers(const struct ui_model *m, double *samples, size_t room)
{
    const size_t n = m->n_layers;
    if (n == 0 || room == 0)
        return 0;
    if (n > room) {
        for (size_t i = 0; i < room; i++)
            samples[i] = mean_hits(m, i * n / room, (i + 1) * n / room);
        return room;
    }
    const size_t each = room / n;
    for (size_t i = 0; i < n * each; i++)
        samples[i] = model_layer_hits(m, i / each);
    return n * each;
}

static void draw_profile(const struct ui_model *m, struct grid *g, const struct rect *r)
{
    struct rect area = {r->row, r->col + SCALE_COLS, r->rows - 1, r->cols - SCALE_COLS};
    const struct rect axis = {area.row + area.rows, area.col, 1, area.cols};
    double samples[MAX_SAMPLES + 1];
    char b[16];
    const size_t room = graph_capacity(&area, m->graph);
    if (area.rows < 1)
        return;
    size_t n = sample_layers(m, samples, room < MAX_SAMPLES ? room : MAX_SAMPLES);
    if (n == 0)
        return;
    const size_t per = (size_t)graph_samples_per_cell(m->graph);
    area.cols = (int)((n + per - 1) / per);
    while (n % per)
        samples[n++] = -1;
    graph_draw(g, &area, INK_GRAPH, m->graph, samples, n, 1);
    grid_puts_right(g, r, 0, SCALE_COLS - 1, INK_DIM, "100 %");
    grid_puts_right(g, r, r->rows - 1, SCALE_COLS - 1, INK_DIM, "layer");
    grid_puts(g, &axis, 0, 0, INK_DIM, "0");
    snprintf(b, sizeof b, "%zu", m->n_layers - 1);
    grid_puts_right(g, &axis, 0, area.cols > 4 ? area.cols : 4, INK_DIM, b);
}

void pane_experts_draw(const struct ui_model *m, struct grid *g, const struct rect *r)
{
    char a[32], b[32], size[32];
    uint64_t used, slots;
    count_slots(m, &used, &slots);
    if (m->n_layers == 0) {
        pane_nothing_yet(g, r);
        return;
    }
    if (slots > 0) {
        int col = grid_puts(g, r, 0, 0, INK_LABEL, "kept ");
        col = grid_puts(g, r, 0, col, INK_VALUE, fmt_count(a, sizeof a, used));
        col = grid_printf(g, r, 0, col, INK_TEXT, " of %s", fmt_count(b, sizeof b, slots));
        pane_field(g, r, 0, col + 2, "",
                   fmt_bytes(size, sizeof size, (double)m->st.metrics.expert_bytes_resident));
    } else
        grid_puts(g, r, 0, 0, INK_LABEL, "no room to keep any");
    const struct rect rest = {r->row + 1, r->col, r->rows - 1, r->cols};
    draw_profile(m, g, &rest);
}
