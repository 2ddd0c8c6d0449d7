/* rich.c - styled text and its wrapping (see rich.h). */
#include <config.h>

#include "rich.h"

#include <string.h>

#include "grow.h"
#include "text.h"

void rich_clear(struct rich *r)
{
    r->len = r->n_spans = r->n_lines = r->line_start = 0;
    r->short_of_memory = false;
}

void rich_free(struct rich *r)
{
    free(r->text);
    free(r->spans);
    free(r->lines);
    *r = (struct rich){0};
}

void rich_add(struct rich *r, enum ink ink, const char *s, size_t len)
{
    if (len == 0)
        return;
    if (!GROW(r->text, r->cap, r->len + len) || !GROW(r->spans, r->cap_spans, r->n_spans + 1)) {
        r->short_of_memory = true;
        return;
    }
    if (r->n_spans == 0 || r->spans[r->n_spans - 1].ink != ink)
        r->spans[r->n_spans++] = (struct rich_span){r->len, ink};
    memcpy(r->text + r->len, s, len);
    r->len += len;
}

void rich_puts(struct rich *r, enum ink ink, const char *s)
{
    rich_add(r, ink, s, strlen(s));
}

void rich_end_line(struct rich *r, struct rich_style style)
{
    if (!GROW(r->lines, r->cap_lines, r->n_lines + 1)) {
        r->short_of_memory = true;
        return;
    }
    r->lines[r->n_lines++] = (struct rich_line){r->line_start, r->len, style};
    rich_add(r, INK_TEXT, "\n", 1); /* so that no two rows start at the same offset */
    r->line_start = r->len;
}

void rich_add_lines(struct rich *r, enum ink ink, struct rich_style style, const char *s,
                    size_t len)
{
    while (len > 0) {
        const char *nl = memchr(s, '\n', len);
        const size_t n = nl ? (size_t)(nl - s) : len;
        const size_t shown = n > 0 && nl && s[n - 1] == '\r' ? n - 1 : n;
        rich_add(r, ink, s, shown);
        rich_end_line(r, style);
        s += nl ? n + 1 : n;
        len -= nl ? n + 1 : n;
    }
}

/* ---- wrapping ---------------------------------------------------------------------------- */

/* Closing marks that may not open a row of Chinese or Japanese text. */
static bool stays_with_previous(uint32_t cp)
{
    static const uint32_t marks[] = {
        0x3001, 0x3002, 0x3009, 0x300B, 0x300D, 0x300F, 0x3011, 0x3015, 0x30FC,
        0xFF01, 0xFF09, 0xFF0C, 0xFF0E, 0xFF1A, 0xFF1B, 0xFF1F,
    };
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i] == cp)
            return true;
    return false;
}

struct wrapper {
    const char *s;
    size_t end;
    unsigned first_width, rest_width;
    bool verbatim;   /* break anywhere */
    bool keep_blanks; /* blanks at the break belong to the row they follow */
};

/* Where a row under construction could be broken. */
struct breaks {
    bool any;
    size_t end, next; /* the row's end, the next one's start */
};

/* Letters and signs of ASCII, the most of most texts, without the machinery of clusters: moves p
 * over those that fit and returns the column after them. */
static unsigned skip_plain(const struct wrapper *w, size_t *p, unsigned col, unsigned width)
{
    const char *s = w->s;
    while (col < width && *p + 1 < w->end && s[*p] > ' ' && s[*p] < 0x7F &&
           (unsigned char)s[*p + 1] < 0x80) {
        col++;
        ++*p;
    }
    return col;
}

/* Is this a word that a row of its own would not hold either? A path, an address: it is broken where the
 * row ends. Not so where blanks are kept, in the editor: there a word would jump while it is typed. */
static bool too_long_word(const struct wrapper *w, size_t at)
{
    unsigned col = 0;
    struct glyph g;
    while (!w->keep_blanks && col <= w->rest_width && glyph_next(w->s + at, w->end - at, &g) &&
           g.kind != GLYPH_SPACE && g.kind != GLYPH_TAB && g.cols < 2) {
        col += glyph_cols(&g, col);
        at += g.bytes;
    }
    return col > w->rest_width;
}

/* Finds the end of the row that starts at `at` with `width` columns; *next is where the one after
 * it starts. */
static size_t row_end(const struct wrapper *w, size_t at, unsigned width, size_t *next)
{
    unsigned col = 0;
    size_t p = at;
    struct breaks b = {false, 0, 0};
    bool after_wide = false, in_blank = false;
    struct glyph g;
    while (glyph_next(w->s + p, w->end - p, &g)) {
        const bool blank = g.kind == GLYPH_SPACE || g.kind == GLYPH_TAB;
        const unsigned cols = glyph_cols(&g, col);
        const bool wide = g.cols >= 2 && g.kind == GLYPH_TEXT;
        if (!blank && p > at && !in_blank && (after_wide || wide) && !stays_with_previous(g.first))
            b = (struct breaks){true, p, p};
        const bool hangs = blank && !w->verbatim && (!w->keep_blanks || col + cols <= width + 1);
        if (col + cols > width && p > at && !hangs) {
            if (!b.any || w->verbatim || too_long_word(w, b.next))
                b.end = b.next = p;
            *next = b.next;
            return b.end;
        }
        if (blank && p > at && !in_blank)
            b.end = p;
        col += cols;
        p += g.bytes;
        if (blank) {
            b.any = true;
            b.next = p;
            if (p == at + g.bytes || w->keep_blanks)
                b.end = p;
        }
        in_blank = blank;
        after_wide = wide;
        if (!blank && !wide)
            col = skip_plain(w, &p, col, width);
    }
    *next = w->end;
    return w->end;
}

static bool wrap_line(const struct wrapper *w, size_t start, size_t line, struct wrapped *out)
{
    size_t at = start;
    bool first = true;
    do {
        if (!GROW(out->rows, out->cap, out->n + 1))
            return false;
        size_t next = at;
        const size_t end = row_end(w, at, first ? w->first_width : w->rest_width, &next);
        out->rows[out->n++] = (struct row){at, end, line, first};
        at = next;
        first = false;
    } while (at < w->end);
    return true;
}

static unsigned room(unsigned width, unsigned indent)
{
    return width > indent + 1 ? width - indent : 1;
}

bool wrap_rich(const struct rich *r, unsigned width, struct wrapped *out)
{
    out->n = 0;
    out->width = width;
    for (size_t i = 0; i < r->n_lines; i++) {
        const struct rich_line *l = &r->lines[i];
        const struct wrapper w = {r->text, l->end, room(width, l->style.indent),
                                  room(width, l->style.hang), l->style.verbatim, false};
        if (!wrap_line(&w, l->start, i, out))
            return false;
    }
    return true;
}

bool wrap_plain(const char *s, size_t len, unsigned width, struct wrapped *out)
{
    out->n = 0;
    out->width = width;
    if (!s)
        s = "";
    size_t at = 0, line = 0;
    for (;;) {
        const char *nl = at < len ? memchr(s + at, '\n', len - at) : NULL;
        const struct wrapper w = {s, nl ? (size_t)(nl - s) : len, room(width, 0), room(width, 0),
                                  false, true};
        if (!wrap_line(&w, at, line++, out))
            return false;
        if (!nl)
            return true;
        at = w.end + 1;
    }
}

void wrapped_free(struct wrapped *w)
{
    free(w->rows);
    *w = (struct wrapped){0};
}

size_t wrapped_find(const struct wrapped *w, size_t at)
{
    size_t lo = 0, hi = w->n;
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;
        if (w->rows[mid].start <= at)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* The span that holds offset `at`. */
static size_t find_span(const struct rich *r, size_t at)
{
    size_t lo = 0, hi = r->n_spans;
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;
        if (r->spans[mid].start <= at)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

void rich_draw_row(const struct rich *r, const struct wrapped *w, size_t i, struct grid *g,
                   const struct rect *rect, int y)
{
    const struct row *row = &w->rows[i];
    const struct rich_style *st = &r->lines[row->line].style;
    const int indent = row->first ? st->indent : st->hang;
    for (int b = 0; b < 16; b++)
        if (st->bars >> b & 1)
            grid_set(g, rect, y, 2 * b, INK_RULE, symbol(SYM_BAR));
    if (row->start == row->end || r->n_spans == 0)
        return;
    const struct rect inner = {rect->row, rect->col + indent, rect->rows,
                               rect->cols > indent ? rect->cols - indent : 0};
    int col = 0;
    size_t at = row->start;
    for (size_t s = find_span(r, at); at < row->end; s++) {
        size_t end = s + 1 < r->n_spans ? r->spans[s + 1].start : row->end;
        if (end > row->end)
            end = row->end;
        col = grid_put(g, &inner, y, col, r->spans[s].ink, r->text + at, end - at);
        at = end;
    }
}
