/* text.h - text as the terminal will show it: grapheme clusters, their columns, and what is safe.
 *
 * Text in memory stays as it came. These functions decide how it looks: control characters become
 * ^X, what is not UTF-8 and what would turn the reading direction becomes U+FFFD, and characters
 * that make terminals disagree about widths (joiners between emoji, emoji variation selectors, skin
 * tones) are left out of the picture. So nothing from a model, a file or a paste reaches the
 * terminal as a command, and the columns counted here are the columns that it will use. */
#ifndef K3CHAT_UI_TEXT_H
#define K3CHAT_UI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_TAB 4          /* columns between tab stops */
#define TEXT_MAX_COLS 8     /* of one glyph; longer joined sequences are cut into several */
#define TEXT_BAD 0xFFFDu

enum glyph_kind { GLYPH_TEXT, GLYPH_SPACE, GLYPH_TAB, GLYPH_NEWLINE, GLYPH_CONTROL };

/* One step of a cursor: a grapheme cluster, a tab, a line break (LF or CR LF) or a control byte. */
struct glyph {
    size_t bytes;
    unsigned cols;          /* 0 for a line break and a tab, see glyph_cols() */
    enum glyph_kind kind;
    uint32_t first;         /* its first code point */
};

/* Without UTF-8 in the locale only ASCII can be shown: other characters appear as '?'. */
void text_set_ascii(bool on);
bool text_is_ascii(void);

/* Decodes one code point; what is not valid UTF-8 gives TEXT_BAD for one byte. Returns the bytes
 * taken, 0 only when len is 0. */
size_t text_decode(const char *s, size_t len, uint32_t *cp);
size_t text_encode(uint32_t cp, char out[4]); /* bytes put; TEXT_BAD for what is no code point */

/* The glyph at s; false when len is 0. */
bool glyph_next(const char *s, size_t len, struct glyph *g);
/* Columns of g when it stands in column col of its line. */
unsigned glyph_cols(const struct glyph *g, unsigned col);

/* How one code point of a cluster is shown: the columns it takes and, in *shown, what is written:
 * 0 = nothing. A zero-width *shown belongs on the character before it. `first` = it opens its
 * cluster. Not for control characters. */
unsigned text_shown(uint32_t cp, bool first, uint32_t *shown);

/* Columns of a one-line text. */
unsigned text_width(const char *s, size_t len);
/* The most bytes of s, in whole glyphs, that fit in cols columns. */
size_t text_fit(const char *s, size_t len, unsigned cols);

/* Byte offsets of the cluster boundary after / before `at`. */
size_t text_next(const char *s, size_t len, size_t at);
size_t text_prev(const char *s, size_t len, size_t at);

#endif
