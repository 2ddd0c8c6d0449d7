/* chooser.c - the list of saved sessions (see chooser.h). */
#include <config.h>

#include "chooser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "keys.h"
#include "talk_find.h"
#include "text.h"

#define FILTER_READS 200 /* transcripts that a filter reads for their first words */

/* A transcript is read when its row is looked at, not before. */
static void read_row(struct chooser_row *r)
{
    struct k3_error err = {0};
    if (r->read)
        return;
    r->read = true;
    r->damaged = saved_read(r->saved.name, &r->messages, r->title, sizeof r->title, &err) != K3_OK;
    if (r->damaged)
        snprintf(r->title, sizeof r->title, "%.*s", (int)sizeof r->title - 1, err.message);
}

static bool fits(struct chooser *c, size_t i)
{
    struct chooser_row *r = &c->rows[i];
    if (c->filter[0] == '\0' ||
        find_first(r->saved.name, strlen(r->saved.name), c->filter, 0) != FIND_NONE)
        return true;
    if (i < FILTER_READS)
        read_row(r);
    return r->read && find_first(r->title, strlen(r->title), c->filter, 0) != FIND_NONE;
}

static void apply_filter(struct chooser *c)
{
    c->n_shown = c->at = c->top = 0;
    for (size_t i = 0; i < c->n; i++)
        if (fits(c, i))
            c->shown[c->n_shown++] = i;
}

bool chooser_open(struct chooser *c, struct k3_error *err)
{
    struct saved_session *list;
    size_t n;
    chooser_close(c);
    if (saved_list(&list, &n, err) != K3_OK)
        return false;
    c->rows = calloc(n + 1, sizeof *c->rows);
    c->shown = calloc(n + 1, sizeof *c->shown);
    if (!c->rows || !c->shown) {
        free(list);
        chooser_close(c);
        k3_fail_memory(err, "the list of sessions", n * sizeof *c->rows);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        c->rows[i].saved = list[i];
    free(list);
    c->n = n;
    c->open = true;
    c->height = 10;
    apply_filter(c);
    return true;
}

void chooser_close(struct chooser *c)
{
    free(c->rows);
    free(c->shown);
    *c = (struct chooser){0};
}

const char *chooser_name(const struct chooser *c)
{
    return c->at < c->n_shown ? c->rows[c->shown[c->at]].saved.name : NULL;
}

/* ---- keys -------------------------------------------------------------------------------- */

static void move(struct chooser *c, long rows)
{
    const long last = c->n_shown > 0 ? (long)c->n_shown - 1 : 0;
    const long to = (long)c->at + rows;
    c->at = (size_t)(to < 0 ? 0 : to > last ? last : to);
}

static void type(struct chooser *c, uint32_t key)
{
    char b[4];
    const size_t len = strlen(c->filter), n = text_encode(key, b);
    if (len + n + 1 > sizeof c->filter)
        return;
    memcpy(c->filter + len, b, n);
    c->filter[len + n] = '\0';
    apply_filter(c);
}

static void rub_out(struct chooser *c)
{
    const size_t len = strlen(c->filter);
    c->filter[text_prev(c->filter, len, len)] = '\0';
    apply_filter(c);
}

bool chooser_key(struct chooser *c, enum action action, uint32_t key)
{
    const long page = c->height > 1 ? (long)c->height - 1 : 1;
    switch (action) {
    case ACT_SEND: return chooser_name(c) != NULL;
    case ACT_UP: case ACT_ROW_UP: case ACT_OLDER: move(c, -1); return false;
    case ACT_DOWN: case ACT_ROW_DOWN: case ACT_NEWER: move(c, 1); return false;
    case ACT_PAGE_UP: move(c, -page); return false;
    case ACT_PAGE_DOWN: move(c, page); return false;
    case ACT_HOME: case ACT_TOP: move(c, -(long)c->n); return false;
    case ACT_END: case ACT_BOTTOM: move(c, (long)c->n); return false;
    case ACT_BACKSPACE: rub_out(c); return false;
    case ACT_NONE: break;
    default: c->open = false; return false;
    }
    if ((key & MOD_MASK) == 0 && key < 0x110000 && key >= 0x20)
        type(c, key);
    return false;
}

/* ---- picture ----------------------------------------------------------------------------- */

#define NAME_COLS 22
#define WHEN_COLS 18
#define COUNT_COLS 6

static void draw_row(struct chooser_row *row, struct grid *g, const struct rect *r, int y,
                     bool chosen, bool current, int64_t now)
{
    char b[64];
    read_row(row);
    int col = 0;
    const int name_cols = r->cols < 60 ? r->cols - COUNT_COLS - 2 : NAME_COLS;
    grid_put_cut(g, r, y, 2, name_cols, current ? INK_STRONG : INK_TEXT, row->saved.name,
                 strlen(row->saved.name));
    if (current)
        grid_set(g, r, y, 0, INK_GOOD, symbol(SYM_BULLET));
    col = 2 + name_cols + 1;
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
    if (chosen)
        grid_ink(g, r, y, 0, r->cols, INK_MATCH);
}

void chooser_draw(struct chooser *c, struct grid *g, const struct rect *r, const char *current,
                  int64_t now)
{
    char b[128];
    c->height = r->rows > 1 ? (size_t)r->rows - 1 : 1;
    if (c->at < c->top)
        c->top = c->at;
    if (c->at >= c->top + c->height)
        c->top = c->at - c->height + 1;
    if (c->filter[0])
        snprintf(b, sizeof b, "%zu of %zu with \"%s\"", c->n_shown, c->n, c->filter);
    else
        snprintf(b, sizeof b, "%zu session%s; type to filter", c->n, c->n == 1 ? "" : "s");
    grid_put_cut(g, r, 0, 2, r->cols - 2, INK_LABEL, b, strlen(b));
    for (size_t y = 0; y < c->height && c->top + y < c->n_shown; y++) {
        struct chooser_row *row = &c->rows[c->shown[c->top + y]];
        draw_row(row, g, r, (int)y + 1, c->top + y == c->at,
                 strcmp(row->saved.name, current) == 0, now);
    }
}
