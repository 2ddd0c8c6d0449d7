/* grid.c - a picture of the screen in memory (see grid.h). */
#include <config.h>

#include "grid.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

_Static_assert(sizeof(struct cell) == 24, "cells must have no padding");

static const struct cell blank = {.cp = ' ', .cols = 1, .ink = INK_TEXT};

uint32_t symbol(enum symbol s)
{
    static const uint32_t unicode[N_SYMBOLS] = {
        [SYM_HLINE] = 0x2500,     [SYM_VLINE] = 0x2502,  [SYM_TEE_DOWN] = 0x252C,
        [SYM_TEE_UP] = 0x2534,    [SYM_TEE_RIGHT] = 0x251C, [SYM_TEE_LEFT] = 0x2524,
        [SYM_ELLIPSIS] = 0x2026,
        [SYM_CLOSED] = 0x25B8,    [SYM_OPEN] = 0x25BE,   [SYM_BULLET] = 0x2022,
        [SYM_BAR] = 0x2502,       [SYM_FULL] = 0x2588,   [SYM_HALF] = 0x2592,
        [SYM_EMPTY] = 0x2591,     [SYM_CROSS] = 0x253C,
    };
    static const char ascii[N_SYMBOLS] = {
        [SYM_HLINE] = '-',  [SYM_VLINE] = '|', [SYM_TEE_DOWN] = '+', [SYM_TEE_UP] = '+',
        [SYM_TEE_RIGHT] = '+', [SYM_TEE_LEFT] = '+', [SYM_ELLIPSIS] = '~',
        [SYM_CLOSED] = '>', [SYM_OPEN] = 'v',
        [SYM_BULLET] = '*', [SYM_BAR] = '|',   [SYM_FULL] = '#',     [SYM_HALF] = '=',
        [SYM_EMPTY] = '.',  [SYM_CROSS] = '+',
    };
    return text_is_ascii() ? (uint32_t)ascii[s] : unicode[s];
}

bool grid_resize(struct grid *g, int rows, int cols)
{
    if (rows < 0 || cols < 0 || rows > 10000 || cols > 10000)
        return false;
    if (rows != g->rows || cols != g->cols) {
        const size_t n = (size_t)rows * (size_t)cols;
        struct cell *cells = malloc((n ? n : 1) * sizeof *cells);
        free(g->cells);
        *g = (struct grid){.cells = cells};
        if (!cells)
            return false;
        g->rows = rows;
        g->cols = cols;
    }
    grid_clear(g);
    return true;
}

void grid_clear(struct grid *g)
{
    const size_t n = (size_t)g->rows * (size_t)g->cols;
    for (size_t i = 0; i < n; i++)
        g->cells[i] = blank;
    g->cursor_row = -1;
    g->cursor_col = 0;
}

void grid_free(struct grid *g)
{
    free(g->cells);
    *g = (struct grid){.cursor_row = -1};
}

bool grid_equal(const struct grid *a, const struct grid *b)
{
    if (a->rows != b->rows || a->cols != b->cols || a->cursor_row != b->cursor_row ||
        (a->cursor_row >= 0 && a->cursor_col != b->cursor_col))
        return false;
    const size_t n = (size_t)a->rows * (size_t)a->cols;
    return n == 0 || memcmp(a->cells, b->cells, n * sizeof *a->cells) == 0;
}

bool grid_copy(struct grid *to, const struct grid *from)
{
    if (!grid_resize(to, from->rows, from->cols))
        return false;
    const size_t n = (size_t)from->rows * (size_t)from->cols;
    if (n > 0)
        memcpy(to->cells, from->cells, n * sizeof *to->cells);
    to->cursor_row = from->cursor_row;
    to->cursor_col = from->cursor_col;
    return true;
}

struct cell *grid_at(struct grid *g, int row, int col)
{
    if (row < 0 || row >= g->rows || col < 0 || col >= g->cols)
        return NULL;
    return &g->cells[(size_t)row * (size_t)g->cols + (size_t)col];
}

const struct cell *grid_row(const struct grid *g, int row)
{
    return &g->cells[(size_t)row * (size_t)g->cols];
}

struct rect grid_all(const struct grid *g)
{
    return (struct rect){0, 0, g->rows, g->cols};
}

/* A wide character of which one half is drawn over loses the other half too. */
static void release(struct grid *g, int row, int col)
{
    struct cell *c = grid_at(g, row, col);
    if (!c)
        return;
    struct cell *left = c->cols == 0 ? grid_at(g, row, col - 1) : NULL;
    struct cell *right = c->cols == 2 ? grid_at(g, row, col + 1) : NULL;
    if (left)
        *left = (struct cell){.cp = ' ', .cols = 1, .ink = left->ink};
    if (right)
        *right = (struct cell){.cp = ' ', .cols = 1, .ink = right->ink};
}

/* cols is 1 or 2; false when it does not fit in r. */
static bool set_cell(struct grid *g, const struct rect *r, int row, int col, enum ink ink,
                     uint32_t cp, int cols)
{
    if (row < 0 || row >= r->rows || col < 0 || col + cols > r->cols)
        return false;
    struct cell *c = grid_at(g, r->row + row, r->col + col);
    if (!c || !grid_at(g, r->row + row, r->col + col + cols - 1))
        return false;
    for (int i = 0; i < cols; i++)
        release(g, r->row + row, r->col + col + i);
    *c = (struct cell){.cp = cp, .cols = (uint16_t)cols, .ink = (uint16_t)ink};
    if (cols == 2)
        c[1] = (struct cell){.ink = (uint16_t)ink};
    return true;
}

static void add_mark(struct grid *g, const struct rect *r, int row, int col, uint32_t mark)
{
    if (row < 0 || row >= r->rows || col < 1 || col > r->cols)
        return;
    struct cell *c = grid_at(g, r->row + row, r->col + col - 1);
    if (c && c->cols == 0)
        c = grid_at(g, r->row + row, r->col + col - 2);
    for (int i = 0; c && i < GRID_MARKS; i++) {
        if (c->marks[i] == 0) {
            c->marks[i] = mark;
            return;
        }
    }
}

void grid_set(struct grid *g, const struct rect *r, int row, int col, enum ink ink, uint32_t cp)
{
    set_cell(g, r, row, col, ink, cp, 1);
}

/* Draws the code points of one glyph; returns the column after it. */
static int put_glyph(struct grid *g, const struct rect *r, int row, int col, enum ink ink,
                     const char *s, const struct glyph *gl)
{
    if (gl->kind == GLYPH_CONTROL) {
        set_cell(g, r, row, col, INK_CONTROL, '^', 1);
        set_cell(g, r, row, col + 1, INK_CONTROL, gl->first ^ 0x40, 1);
        return col + 2;
    }
    for (size_t at = 0; at < gl->bytes;) {
        uint32_t cp = 0, shown = 0;
        const bool first = at == 0;
        at += text_decode(s + at, gl->bytes - at, &cp);
        const int cols = (int)text_shown(cp, first, &shown);
        if (shown == TEXT_BAD)
            set_cell(g, r, row, col, INK_CONTROL, shown, 1);
        else if (cols > 0 && shown == '?' && cp != '?') {
            for (int i = 0; i < cols; i++)
                set_cell(g, r, row, col + i, ink, i == 0 ? '?' : ' ', 1);
        } else if (cols > 0)
            set_cell(g, r, row, col, ink, shown, cols);
        else if (shown != 0)
            add_mark(g, r, row, col, shown);
        col += cols;
    }
    return col;
}

int grid_put(struct grid *g, const struct rect *r, int row, int col, enum ink ink, const char *s,
             size_t len)
{
    struct glyph gl;
    for (size_t at = 0; glyph_next(s + at, len - at, &gl); at += gl.bytes) {
        if (gl.kind == GLYPH_NEWLINE)
            gl.cols = 1;
        const int cols = (int)glyph_cols(&gl, col > 0 ? (unsigned)col : 0);
        if (col + cols > r->cols) {
            for (; col < r->cols; col++)
                set_cell(g, r, row, col, ink, ' ', 1);
            break;
        }
        if (gl.kind == GLYPH_TAB || gl.kind == GLYPH_NEWLINE) {
            for (int i = 0; i < cols; i++)
                set_cell(g, r, row, col + i, ink, ' ', 1);
            col += cols;
        } else
            col = put_glyph(g, r, row, col, ink, s + at, &gl);
    }
    return col;
}

int grid_puts(struct grid *g, const struct rect *r, int row, int col, enum ink ink, const char *s)
{
    return grid_put(g, r, row, col, ink, s, strlen(s));
}

int grid_printf(struct grid *g, const struct rect *r, int row, int col, enum ink ink,
                const char *fmt, ...)
{
    char buf[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    return grid_puts(g, r, row, col, ink, buf);
}

void grid_puts_right(struct grid *g, const struct rect *r, int row, int end, enum ink ink,
                     const char *s)
{
    const int width = (int)text_width(s, strlen(s));
    if (width <= end)
        grid_puts(g, r, row, end - width, ink, s);
}

int grid_put_cut(struct grid *g, const struct rect *r, int row, int col, int cols, enum ink ink,
                 const char *s, size_t len)
{
    if (cols <= 0)
        return col;
    if (col + cols > r->cols)
        cols = r->cols - col;
    if ((int)text_width(s, len) <= cols)
        return grid_put(g, r, row, col, ink, s, len);
    if (cols <= 0)
        return col;
    col = grid_put(g, r, row, col, ink, s, text_fit(s, len, (unsigned)cols - 1));
    grid_set(g, r, row, col, ink, symbol(SYM_ELLIPSIS));
    return col + 1;
}

void grid_fill(struct grid *g, const struct rect *r, enum ink ink, uint32_t cp)
{
    for (int y = 0; y < r->rows; y++)
        for (int x = 0; x < r->cols; x++)
            set_cell(g, r, y, x, ink, cp, 1);
}

void grid_hline(struct grid *g, const struct rect *r, int row, int col, int n, enum ink ink)
{
    for (int i = 0; i < n; i++)
        set_cell(g, r, row, col + i, ink, symbol(SYM_HLINE), 1);
}

void grid_ink(struct grid *g, const struct rect *r, int row, int col, int n, enum ink ink)
{
    for (int i = 0; i < n && col + i < r->cols; i++) {
        struct cell *c = row < r->rows ? grid_at(g, r->row + row, r->col + col + i) : NULL;
        if (c)
            c->ink = (uint16_t)ink;
    }
}

static size_t put_bytes(uint32_t cp, char *out, size_t at, size_t size)
{
    char b[4];
    const size_t n = text_encode(cp, b);
    if (at + n + 1 > size)
        return at;
    memcpy(out + at, b, n);
    return at + n;
}

size_t grid_row_text(const struct grid *g, int row, char *out, size_t size)
{
    size_t at = 0, end = 0;
    if (size == 0)
        return 0;
    const struct cell *c = grid_row(g, row);
    for (int i = 0; i < g->cols; i++) {
        if (c[i].cols == 0)
            continue;
        at = put_bytes(c[i].cp, out, at, size);
        for (int m = 0; m < GRID_MARKS && c[i].marks[m]; m++)
            at = put_bytes(c[i].marks[m], out, at, size);
        if (c[i].cp != ' ')
            end = at;
    }
    out[end] = '\0';
    return end;
}
