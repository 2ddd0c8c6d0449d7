/* layout.c - where things stand (see layout.h). */
#include <config.h>

#include "layout.h"

/* Below this the panes would leave no room to read: they go. */
#define CHAT_MIN_COLS 42
#define CHAT_MIN_ROWS 5

static int clamp(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* How many of panes [from, n) fit one below the other. */
static size_t fit_column(const struct layout_in *in, size_t from, size_t n, int rows, int cols)
{
    int used = 0;
    size_t i = from;
    while (i < n && in->panes[i].min_cols <= cols && used + in->panes[i].min_rows <= rows)
        used += in->panes[i++].min_rows;
    return i - from;
}

/* Gives spare rows to panes [from, from + n) by weight, none beyond its maximum. */
static void spread(const struct layout_in *in, size_t from, size_t n, int rows, int *heights)
{
    int spare = rows;
    for (size_t i = 0; i < n; i++) {
        heights[i] = in->panes[from + i].min_rows;
        spare -= heights[i];
    }
    while (spare > 0) {
        size_t best = n;
        for (size_t i = 0; i < n; i++) {
            const struct layout_need *p = &in->panes[from + i];
            if (heights[i] >= p->max_rows || p->weight <= 0)
                continue;
            /* the one that has had the least of its share */
            if (best == n || (heights[i] - p->min_rows) * in->panes[from + best].weight <
                                 (heights[best] - in->panes[from + best].min_rows) * p->weight)
                best = i;
        }
        if (best == n)
            return;
        heights[best]++;
        spare--;
    }
}

static void place_column(const struct layout_in *in, struct layout *out, size_t from, size_t n,
                         struct rect area)
{
    int heights[LAYOUT_MAX_PANES], row = area.row;
    spread(in, from, n, area.rows, heights);
    for (size_t i = 0; i < n; i++) {
        out->panes[from + i] = (struct rect){row, area.col, heights[i], area.cols};
        row += heights[i];
    }
}

/* Places panes in columns of equal width; those that do not fit are dropped, the last first. */
static void place_panes(const struct layout_in *in, struct layout *out, size_t n, struct rect area,
                        int columns)
{
    const int width = (area.cols - (columns - 1)) / columns;
    size_t from = 0;
    for (int c = 0; c < columns && from < n; c++) {
        const size_t left = n - from;
        const size_t share = (left + (size_t)(columns - c) - 1) / (size_t)(columns - c);
        size_t take = fit_column(in, from, n, area.rows, width);
        if (take == 0)
            break;
        if (take > share)
            take = share;
        const int col = area.col + c * (width + 1);
        const int cols = c + 1 == columns ? area.col + area.cols - col : width;
        place_column(in, out, from, take, (struct rect){area.row, col, area.rows, cols});
        from += take;
    }
    out->n_shown = from;
}

static int widest_need(const struct layout_in *in)
{
    int w = 0;
    for (size_t i = 0; i < in->n_panes; i++)
        if (in->panes[i].min_cols > w)
            w = in->panes[i].min_cols;
    return w;
}

/* Panes to the right of the chat; false when the window is too narrow for that. */
static bool place_right(const struct layout_in *in, struct layout *out, struct rect *body)
{
    const int least = widest_need(in);
    if (body->cols - 1 - least < CHAT_MIN_COLS)
        return false;
    int width = clamp(body->cols * 36 / 100, least, 48);
    if (body->cols >= 160)
        width = clamp(body->cols - 100, 48, 110);
    if (body->cols - 1 - width < CHAT_MIN_COLS)
        width = body->cols - 1 - CHAT_MIN_COLS;
    const struct rect area = {body->row, body->col + body->cols - width, body->rows, width};
    place_panes(in, out, in->n_panes, area, width >= 2 * least + 17 ? 2 : 1);
    if (out->n_shown == 0)
        return false;
    out->rule = (struct rect){body->row, area.col - 1, body->rows, 1};
    body->cols -= width + 1;
    return true;
}

/* Panes side by side above the chat. */
static void place_above(const struct layout_in *in, struct layout *out, struct rect *body,
                        int chat_rows)
{
    const int least = widest_need(in);
    const int columns = least > 0 ? clamp((body->cols + 1) / (least + 1), 1, (int)in->n_panes) : 0;
    const int room = body->rows - chat_rows;
    if (columns == 0 || room < 3)
        return;
    const struct rect area = {body->row, body->col, room, body->cols};
    place_panes(in, out, in->n_panes, area, columns);
    int used = 0;
    for (size_t i = 0; i < out->n_shown; i++) {
        const int end = out->panes[i].row + out->panes[i].rows - body->row;
        used = end > used ? end : used;
    }
    body->row += used;
    body->rows -= used;
}

void layout_compute(const struct layout_in *in, struct layout *out)
{
    *out = (struct layout){0};
    if (in->rows < LAYOUT_MIN_ROWS || in->cols < LAYOUT_MIN_COLS) {
        out->too_small = true;
        return;
    }
    out->title = (struct rect){0, 0, 1, in->cols};
    out->status = (struct rect){in->rows - 1, 0, 1, in->cols};
    struct rect body = {1, 0, in->rows - 2, in->cols};
    if (in->n_panes > 0 && in->preset == LAYOUT_BOTH && !place_right(in, out, &body))
        place_above(in, out, &body, clamp(body.rows * 6 / 10, CHAT_MIN_ROWS + 3, body.rows));
    if (in->n_panes > 0 && in->preset == LAYOUT_MONITOR)
        place_above(in, out, &body, CHAT_MIN_ROWS + 3);
    const int most = clamp(body.rows / 3, 1, 12);
    const int editor = clamp(in->editor_rows, 1, most);
    const int chat = body.rows - editor - 1;
    out->transcript = (struct rect){body.row, body.col, chat, body.cols};
    out->editor_title = (struct rect){body.row + chat, body.col, 1, body.cols};
    out->editor = (struct rect){body.row + chat + 1, body.col, editor, body.cols};
}
