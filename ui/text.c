/* text.c - grapheme clusters and columns (see text.h). */
#include <config.h>

#include "text.h"

#include <utf8proc.h>
#include <wchar.h>

static bool ascii_only;

void text_set_ascii(bool on)
{
    ascii_only = on;
}

bool text_is_ascii(void)
{
    return ascii_only;
}

size_t text_decode(const char *s, size_t len, uint32_t *cp)
{
    if (len == 0)
        return 0;
    const unsigned char c = (unsigned char)s[0];
    if (c < 0x80) {
        *cp = c;
        return 1;
    }
    utf8proc_int32_t got = -1;
    const utf8proc_ssize_t n =
        utf8proc_iterate((const utf8proc_uint8_t *)s, len < 4 ? (utf8proc_ssize_t)len : 4, &got);
    if (n <= 0 || got < 0) {
        *cp = TEXT_BAD;
        return 1;
    }
    *cp = (uint32_t)got;
    return (size_t)n;
}

size_t text_encode(uint32_t cp, char out[4])
{
    if (!utf8proc_codepoint_valid((utf8proc_int32_t)cp))
        cp = TEXT_BAD;
    const utf8proc_ssize_t n =
        utf8proc_encode_char((utf8proc_int32_t)cp, (utf8proc_uint8_t *)out);
    return n > 0 ? (size_t)n : 0;
}

/* Marks that change the reading direction or the layout: shown, so that no text can look like
 * another. */
static bool is_deceptive(uint32_t cp)
{
    return (cp >= 0x202A && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069) || cp == 0x2028 ||
           cp == 0x2029;
}

/* Characters on whose effect terminals disagree: joiner, emoji style selector, skin tones. */
static bool is_left_out(uint32_t cp, bool first)
{
    return cp == 0x200D || cp == 0xFE0F || cp == 0xFEFF || cp == 0x200E || cp == 0x200F ||
           (!first && cp >= 0x1F3FB && cp <= 0x1F3FF);
}

static int system_width(uint32_t cp)
{
    if (ascii_only)
        return utf8proc_charwidth((utf8proc_int32_t)cp);
    /* The library that writes the screen asks wcwidth() too: one truth about columns. */
    return wcwidth((wchar_t)cp);
}

unsigned text_shown(uint32_t cp, bool first, uint32_t *shown)
{
    *shown = cp;
    if (cp >= 0x20 && cp < 0x7F)
        return 1;
    if (is_left_out(cp, first)) {
        *shown = 0;
        return 0;
    }
    if (is_deceptive(cp) || (cp >= 0x7F && cp < 0xA0)) {
        *shown = ascii_only ? '?' : TEXT_BAD;
        return 1;
    }
    const int w = system_width(cp);
    const bool mark = w == 0;
    if (ascii_only)
        *shown = mark ? 0 : '?';
    else if (w < 0)
        *shown = TEXT_BAD;
    if (mark && utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_CF)
        *shown = 0;
    return w < 0 ? 1 : (unsigned)w;
}

/* Extends g over the code points of its cluster. */
static void take_cluster(const char *s, size_t len, uint32_t cp, struct glyph *g)
{
    utf8proc_int32_t state = 0;
    uint32_t shown = 0;
    g->cols = text_shown(cp, true, &shown);
    while (g->bytes < len) {
        uint32_t next = 0;
        const size_t n = text_decode(s + g->bytes, len - g->bytes, &next);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)cp, (utf8proc_int32_t)next, &state))
            break;
        const unsigned cols = text_shown(next, false, &shown);
        if (g->cols + cols > TEXT_MAX_COLS || g->bytes + n > 128)
            break;
        g->cols += cols;
        g->bytes += n;
        cp = next;
    }
}

bool glyph_next(const char *s, size_t len, struct glyph *g)
{
    if (len == 0)
        return false;
    const unsigned char c = (unsigned char)s[0];
    *g = (struct glyph){.bytes = 1, .cols = 1, .kind = GLYPH_TEXT, .first = c};
    if (c == '\n' || (c == '\r' && len > 1 && s[1] == '\n')) {
        g->kind = GLYPH_NEWLINE;
        g->bytes = c == '\n' ? 1 : 2;
        g->cols = 0;
        g->first = '\n';
        return true;
    }
    if (c == '\t') {
        g->kind = GLYPH_TAB;
        g->cols = 0;
        return true;
    }
    if (c < 0x20 || c == 0x7F) {
        g->kind = GLYPH_CONTROL;
        g->cols = 2;
        return true;
    }
    if (c == ' ')
        g->kind = GLYPH_SPACE;
    if (c < 0x80 && (len == 1 || (unsigned char)s[1] < 0x80))
        return true;
    g->bytes = text_decode(s, len, &g->first);
    take_cluster(s, len, g->first, g);
    if (g->bytes > 1)
        g->kind = GLYPH_TEXT;
    return true;
}

unsigned glyph_cols(const struct glyph *g, unsigned col)
{
    return g->kind == GLYPH_TAB ? TEXT_TAB - col % TEXT_TAB : g->cols;
}

unsigned text_width(const char *s, size_t len)
{
    unsigned col = 0;
    struct glyph g;
    for (size_t at = 0; glyph_next(s + at, len - at, &g); at += g.bytes)
        col += glyph_cols(&g, col);
    return col;
}

size_t text_fit(const char *s, size_t len, unsigned cols)
{
    unsigned col = 0;
    size_t at = 0;
    struct glyph g;
    while (glyph_next(s + at, len - at, &g) && col + glyph_cols(&g, col) <= cols) {
        col += glyph_cols(&g, col);
        at += g.bytes;
    }
    return at;
}

size_t text_next(const char *s, size_t len, size_t at)
{
    struct glyph g;
    if (at >= len || !glyph_next(s + at, len - at, &g))
        return len;
    return at + g.bytes;
}

/* Clusters can only be read forwards: start at a line break or a run of ASCII well before. */
size_t text_prev(const char *s, size_t len, size_t at)
{
    if (at > len)
        at = len;
    if (at == 0)
        return 0;
    size_t from = at - 1;
    const size_t least = at > 256 ? at - 256 : 0;
    while (from > least && !((unsigned char)s[from] < 0x80 && (unsigned char)s[from - 1] < 0x80 &&
                             s[from] != '\n'))
        from--;
    while (from > 0 && ((unsigned char)s[from] & 0xC0) == 0x80)
        from--;
    for (;;) {
        const size_t next = text_next(s, len, from);
        if (next >= at)
            return from;
        from = next;
    }
}
