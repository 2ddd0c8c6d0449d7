/* grid.h - a picture of the screen in memory: cells with characters and inks.
 *
 * Everything is drawn here and shown by screen.c afterwards; so drawing needs no terminal, a frame
 * that equals the last one costs nothing, and tests read the picture. Positions are relative to a
 * rectangle and nothing is drawn outside of it. */
#ifndef K3CHAT_UI_GRID_H
#define K3CHAT_UI_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a piece of the picture means; theme.c says how that looks. */
enum ink {
    INK_TEXT,
    INK_DIM,        /* what may be overlooked: times, units, hints */
    INK_RULE,       /* lines between panes */
    INK_TITLE,      /* names of panes */
    INK_USER,       /* who speaks */
    INK_MODEL,
    INK_THINK,      /* reasoning */
    INK_STRONG,
    INK_EMPH,
    INK_HEADING,
    INK_CODE,
    INK_LINK,
    INK_LABEL,
    INK_VALUE,      /* the number that one looks for */
    INK_GOOD,
    INK_WARN,
    INK_BAD,
    INK_GRAPH,
    INK_GRAPH2,     /* the second part of a split bar */
    INK_STATUS,
    INK_KEY,
    INK_CONTROL,    /* ^X and U+FFFD inside text */
    INK_MATCH,      /* found by a search, or chosen */
    N_INKS
};

#define GRID_MARKS 4 /* combining marks kept on a character */

struct cell {
    uint32_t cp;                /* 0 = right half of a wide character */
    uint32_t marks[GRID_MARKS]; /* 0 = none */
    uint16_t cols;              /* 1 or 2; 0 = right half */
    uint16_t ink;
};                              /* no padding: cells are compared as bytes */

struct rect {
    int row, col, rows, cols;
};

struct grid {
    int rows, cols;
    struct cell *cells;
    int cursor_row, cursor_col; /* where the terminal's cursor stands; row < 0 = hidden */
};

/* Sets the size and clears; false when memory is short (the grid is then 0 x 0). */
bool grid_resize(struct grid *g, int rows, int cols);
void grid_clear(struct grid *g);
void grid_free(struct grid *g);
bool grid_equal(const struct grid *a, const struct grid *b);
bool grid_copy(struct grid *to, const struct grid *from); /* false = memory */
struct cell *grid_at(struct grid *g, int row, int col);   /* NULL outside */
const struct cell *grid_row(const struct grid *g, int row);
struct rect grid_all(const struct grid *g);

/* Draws text in one line of r from (row, col); line breaks show as spaces. Returns the column
 * after it, which is never more than r->cols. */
int grid_put(struct grid *g, const struct rect *r, int row, int col, enum ink ink, const char *s,
             size_t len);
int grid_puts(struct grid *g, const struct rect *r, int row, int col, enum ink ink, const char *s);
int grid_printf(struct grid *g, const struct rect *r, int row, int col, enum ink ink,
                const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* Like grid_puts, but ends in column `end` (exclusive). */
void grid_puts_right(struct grid *g, const struct rect *r, int row, int end, enum ink ink,
                     const char *s);
/* Like grid_put; text that does not fit in cols columns ends in an ellipsis. */
int grid_put_cut(struct grid *g, const struct rect *r, int row, int col, int cols, enum ink ink,
                 const char *s, size_t len);
void grid_set(struct grid *g, const struct rect *r, int row, int col, enum ink ink, uint32_t cp);
void grid_fill(struct grid *g, const struct rect *r, enum ink ink, uint32_t cp);
void grid_hline(struct grid *g, const struct rect *r, int row, int col, int n, enum ink ink);
/* Changes the ink of n columns that are drawn already. */
void grid_ink(struct grid *g, const struct rect *r, int row, int col, int n, enum ink ink);

/* The text of a row, without trailing blanks, as UTF-8; returns its bytes (cut to fit size). */
size_t grid_row_text(const struct grid *g, int row, char *out, size_t size);

/* Characters that depend on what the terminal can show. */
enum symbol {
    SYM_HLINE, SYM_VLINE, SYM_TEE_DOWN, SYM_TEE_UP, SYM_TEE_RIGHT, SYM_TEE_LEFT, SYM_ELLIPSIS,
    SYM_CLOSED, SYM_OPEN, SYM_BULLET, SYM_BAR, SYM_FULL, SYM_HALF, SYM_EMPTY, SYM_CROSS, N_SYMBOLS
};
uint32_t symbol(enum symbol s);

#endif
