/* rich.h - styled text, kept unwrapped, and its wrapping to a width.
 *
 * A rich text is a list of lines over one UTF-8 buffer; spans say which ink a stretch has. Wrapping
 * makes rows of it and can be done again for another width; the text itself never changes for that,
 * so offsets into it stay good as anchors. */
#ifndef K3CHAT_UI_RICH_H
#define K3CHAT_UI_RICH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grid.h"

struct rich_span {
    size_t start; /* up to the start of the next span */
    enum ink ink;
};

struct rich_style {
    uint8_t indent; /* columns before the first row of the line */
    uint8_t hang;   /* columns before its other rows */
    uint16_t bars;  /* bit i: an upright bar in column 2 i of the indent */
    bool verbatim;  /* break anywhere, not between words */
};

struct rich_line {
    size_t start, end;
    struct rich_style style;
};

struct rich {
    char *text; /* a line break after each line */
    size_t len, cap;
    struct rich_span *spans;
    size_t n_spans, cap_spans;
    struct rich_line *lines;
    size_t n_lines, cap_lines;
    size_t line_start; /* of the line under construction */
    bool short_of_memory; /* something was left out */
};

void rich_clear(struct rich *r);
void rich_free(struct rich *r);
/* Adds text to the line under construction; line breaks in it are not treated. */
void rich_add(struct rich *r, enum ink ink, const char *s, size_t len);
void rich_puts(struct rich *r, enum ink ink, const char *s);
void rich_end_line(struct rich *r, struct rich_style style);
/* Adds whole text: each line of it becomes a line. Ends the last one also without a line break. */
void rich_add_lines(struct rich *r, enum ink ink, struct rich_style style, const char *s,
                    size_t len);

struct row {
    size_t start, end; /* of the text, hanging blanks left out */
    size_t line;
    bool first;        /* of its line */
};

struct wrapped {
    struct row *rows;
    size_t n, cap;
    unsigned width;
};

/* Wraps all of r to width columns (at least 1). False when memory is short. */
bool wrap_rich(const struct rich *r, unsigned width, struct wrapped *out);
/* Wraps plain text [from, len) line by line and appends the rows, line numbers counted from 0;
 * blanks stay with their row, so that every offset has a place. */
bool wrap_plain(const char *s, size_t len, unsigned width, struct wrapped *out);
void wrapped_free(struct wrapped *w);
/* The row that holds offset `at`. */
size_t wrapped_find(const struct wrapped *w, size_t at);

/* Draws row `i` of w into line y of rect. */
void rich_draw_row(const struct rich *r, const struct wrapped *w, size_t i, struct grid *g,
                   const struct rect *rect, int y);

#endif
