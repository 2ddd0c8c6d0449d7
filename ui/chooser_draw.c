/* chooser_draw.c - the picture of the list of sessions (see chooser.h). */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "chooser.h"
#include "format.h"
#include "talk_find.h"
#include "text.h"

#define NAME_COLS 22
#define WHEN_COLS 18
#define COUNT_COLS 6

static int name_cols(const struct rect *r)
{
    return r->cols < 60 ? r->cols - COUNT_COLS - 2 : NAME_COLS;
}

static int draw_name(const struct chooser_row *row, struct grid *g, const struct rect *r, int y,
                     bool current)
{
    grid_put_cut(g, r, y, 2, name_cols(r), current ? INK_STRONG : INK_TEXT, row->saved.name,
                 strlen(row->saved.name));
    if (current)
        grid_set(g, r, y, 0, INK_GOOD, symbol(SYM_BULLET));
    return 2 + name_cols(r) + 1;
}

static void draw_row(struct chooser_row *row, struct grid *g, const struct rect *r, int y,
                     bool current, int64_t now)
{
    char b[64];
    int col = draw_name(row, g, r, y, current);
    if (r->cols >= 60) {
        grid_puts(g, r, y, col, INK_DIM, fmt_when(b, sizeof b, row->saved.used, now));
        col += WHEN_COLS;
    }
    if (!row->damaged) {
        snprintf(b, sizeof b, "%zu", row->messages);
        grid_puts_right(g, r, y, col + COUNT_COLS - 2, INK_TEXT, b);
    }
    col += COUNT_COLS;
    if (r->cols > col + 8)
        grid_put_cut(g, r, y, col, r->cols - col, row->damaged ? INK_BAD : INK_TEXT, row->title,
                     strlen(row->title));
}

/* The excerpt, moved so that what was found is in sight, and marked. */
static void draw_hit(const struct chooser *c, const struct chooser_hit *h, struct grid *g,
                     const struct rect *r, int y, bool current)
{
    char b[64];
    int col = draw_name(&c->rows[h->row], g, r, y, current);
    if (r->cols < 60)
        col = r->cols * 4 / 10;
    snprintf(b, sizeof b, "%zu ", h->message);
    if (r->cols >= 60)
        col = grid_puts(g, r, y, col, INK_DIM, b);
    if (r->cols >= 80)
        col = grid_puts(g, r, y, col, INK_LABEL,
                        strcmp(h->role, "assistant") == 0 ? "k3  " : "you ");
    const char *s = h->excerpt;
    size_t len = strlen(s), at = find_first(s, len, c->filter, 0);
    while (at != FIND_NONE && at > 0 &&
           (int)text_width(s, at + strlen(c->filter)) > r->cols - col - 4) {
        const size_t skip = strcspn(s, " ") + 1 < at ? strcspn(s, " ") + 1 : at;
        s += skip;
        len -= skip;
        at -= skip;
    }
    grid_put_cut(g, r, y, col, r->cols - col, INK_TEXT, s, len);
    if (at != FIND_NONE)
        grid_ink(g, r, y, col + (int)text_width(s, at),
                 (int)text_width(s + at, strlen(c->filter)), INK_KEY);
}

static void draw_head(const struct chooser *c, struct grid *g, const struct rect *r)
{
    char b[SAVED_NAME_CAP * 2 + 128];
    enum ink ink = INK_LABEL;
    const char *name = chooser_name(c);
    if (c->mode == CHOOSER_DELETE) {
        snprintf(b, sizeof b, "delete \"%s\", %zu messages, for ever? y: yes, other keys: no", name,
                 c->rows[c->shown[c->at]].messages);
        ink = INK_WARN;
    } else if (c->mode == CHOOSER_RENAME) {
        snprintf(b, sizeof b, "new name of \"%s\": %s", name, c->input);
        ink = INK_VALUE;
    } else if (c->mode == CHOOSER_HITS) {
        snprintf(b, sizeof b, "\"%s\": %zu message%s; searched %zu of %zu sessions", c->filter,
                 c->n_hits, c->n_hits == 1 ? "" : "s", c->searched, c->n);
    } else if (c->filter[0]) {
        snprintf(b, sizeof b, "%zu of %zu with \"%s\"", c->n_shown, c->n, c->filter);
    } else {
        snprintf(b, sizeof b, "%zu session%s; type to filter", c->n, c->n == 1 ? "" : "s");
    }
    const int end = grid_put_cut(g, r, 0, 2, r->cols - 3, ink, b, strlen(b));
    const int count = 2 + name_cols(r) + 1 + (r->cols >= 60 ? WHEN_COLS : 0) + COUNT_COLS - 2;
    if (c->mode == CHOOSER_LIST && end + 6 < count)
        grid_puts_right(g, r, 0, count, INK_DIM, "msgs");
    if (c->mode == CHOOSER_RENAME) {
        g->cursor_row = r->row;
        g->cursor_col = r->col + end;
    }
}

void chooser_draw(struct chooser *c, struct grid *g, const struct rect *r, const char *current,
                  int64_t now)
{
    const bool hits = c->mode == CHOOSER_HITS;
    const size_t n = hits ? c->n_hits : c->n_shown;
    c->height = r->rows > 1 ? (size_t)r->rows - 1 : 1;
    if (c->at < c->top)
        c->top = c->at;
    if (c->at >= c->top + c->height)
        c->top = c->at - c->height + 1;
    g->cursor_row = -1;
    for (size_t y = 0; y < c->height && c->top + y < n; y++) {
        const size_t i = hits ? c->hits[c->top + y].row : c->shown[c->top + y];
        const bool here = strcmp(c->rows[i].saved.name, current) == 0;
        if (!hits)
            chooser_read_row(&c->rows[i]);
        if (hits)
            draw_hit(c, &c->hits[c->top + y], g, r, (int)y + 1, here);
        else
            draw_row(&c->rows[i], g, r, (int)y + 1, here, now);
        if (c->top + y == c->at)
            grid_ink(g, r, (int)y + 1, 0, r->cols, INK_MATCH);
    }
    draw_head(c, g, r);
}

const char *chooser_keys(const struct chooser *c, char *buf, size_t size)
{
    if (c->mode == CHOOSER_DELETE)
        snprintf(buf, size, "  y deletes");
    else if (c->mode == CHOOSER_RENAME)
        snprintf(buf, size, "  %s renames, %s leaves it", keymap_key(ACT_SEND),
                 keymap_key(ACT_CANCEL));
    else if (c->mode == CHOOSER_HITS)
        snprintf(buf, size, "  %s opens, %s goes back", keymap_key(ACT_SEND),
                 keymap_key(ACT_CANCEL));
    else
        snprintf(buf, size, "  %s opens, %s closes, %s searches, %s deletes, %s renames",
                 keymap_key(ACT_SEND), keymap_key(ACT_CANCEL), keymap_key(ACT_COMPLETE),
                 keymap_key(ACT_DELETE), keymap_key(ACT_PRESET));
    return buf;
}
