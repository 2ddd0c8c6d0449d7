/* graph.c - little graphs of characters (see graph.h). */
#include <config.h>

#include "graph.h"

#include <math.h>
#include <string.h>

enum ui_graph graph_choose(enum ui_graph asked, bool utf8, const char *term)
{
    if (!utf8)
        return UI_GRAPH_ASCII;
    if (asked != UI_GRAPH_AUTO)
        return asked;
    /* the fonts of the Linux console have blocks, but no braille */
    return term && strcmp(term, "linux") == 0 ? UI_GRAPH_BLOCK : UI_GRAPH_BRAILLE;
}

int graph_samples_per_cell(enum ui_graph set)
{
    return set == UI_GRAPH_BRAILLE ? 2 : 1;
}

int graph_levels(enum ui_graph set)
{
    return set == UI_GRAPH_BRAILLE ? 4 : set == UI_GRAPH_BLOCK ? 8 : 3;
}

uint32_t graph_cell(int left, int right, enum ui_graph set)
{
    /* dots from the bottom up */
    static const unsigned char dots_left[5] = {0x00, 0x40, 0x44, 0x46, 0x47};
    static const unsigned char dots_right[5] = {0x00, 0x80, 0xA0, 0xB0, 0xB8};
    static const char ascii[4] = {' ', '.', ':', '|'};
    const int top = graph_levels(set);
    left = left < 0 ? 0 : left > top ? top : left;
    right = right < 0 ? 0 : right > top ? top : right;
    if (set == UI_GRAPH_ASCII)
        return (uint32_t)ascii[left];
    if (set == UI_GRAPH_BLOCK)
        return left == 0 ? ' ' : 0x2580 + (uint32_t)left;
    return left == 0 && right == 0 ? ' ' : 0x2800u + dots_left[left] + dots_right[right];
}

size_t graph_capacity(const struct rect *r, enum ui_graph set)
{
    return r->cols > 0 ? (size_t)r->cols * (size_t)graph_samples_per_cell(set) : 0;
}

/* Height in steps; 0 = unknown. */
static int height_of(double v, double max, int steps)
{
    if (!(v >= 0))
        return 0;
    const double h = max > 0 ? v / max * steps : 0;
    const int i = h >= steps ? steps : (int)lround(h);
    return i < 1 ? 1 : i;
}

void graph_draw(struct grid *g, const struct rect *r, enum ink ink, enum ui_graph set,
                const double *samples, size_t n, double max)
{
    const int per = graph_samples_per_cell(set), levels = graph_levels(set);
    const long room = (long)graph_capacity(r, set);
    for (int x = 0; x < r->cols; x++) {
        int h[2] = {0, 0};
        for (int k = 0; k < per; k++) {
            const long i = (long)n - room + (long)x * per + k;
            h[k] = i >= 0 && i < (long)n ? height_of(samples[i], max, r->rows * levels) : 0;
        }
        for (int y = 0; y < r->rows; y++) {
            const int below = (r->rows - 1 - y) * levels;
            const uint32_t c = graph_cell(h[0] - below, h[1] - below, set);
            if (c != ' ')
                grid_set(g, r, y, x, ink, c);
        }
    }
}

double graph_nice_max(double v)
{
    if (!(v > 1e-9))
        return 1e-9;
    if (v > 1e30)
        return 1e30;
    const double p = pow(10, floor(log10(v)));
    static const double steps[] = {1, 2, 5, 10};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i] * p >= v * (1 - 1e-9))
            return steps[i] * p;
    return 10 * p;
}

void graph_bar(struct grid *g, const struct rect *r, int row, int col, int cols, enum ui_graph set,
               double first, enum ink ink, double second, enum ink ink2)
{
    const double a = first > 0 ? first : 0, b = second > 0 ? second : 0;
    const int n1 = (int)lround((a > 1 ? 1 : a) * cols);
    const int n2 = (int)lround((a + b > 1 ? 1 : a + b) * cols);
    for (int x = 0; x < cols; x++) {
        const int part = x < n1 ? 0 : x < n2 ? 1 : 2;
        const enum symbol s = part == 0 ? SYM_FULL : part == 1 ? SYM_HALF : SYM_EMPTY;
        grid_set(g, r, row, col + x, part == 0 ? ink : part == 1 ? ink2 : INK_RULE,
                 set == UI_GRAPH_ASCII ? (uint32_t)"#=."[part] : symbol(s));
    }
}
