/* pretoken.c - see pretoken.h.
 *
 * The split pattern is coded by hand because it needs the classes of one Unicode version, whatever
 * the system has. As a regular expression, leftmost alternative first:
 *
 *   [\p{Han}]+
 *   [^\r\n\p{L}\p{N}]?[UP]*[LO]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
 *   [^\r\n\p{L}\p{N}]?[UP]+[LO]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
 *   \p{N}{1,3}
 *    ?[^\s\p{L}\p{N}]+[\r\n]*
 *   \s*[\r\n]+
 *   \s+(?!\S)
 *   \s+
 */
#include "pretoken.h"

#include <stdbool.h>

#include "unicode_table.h"
#include "utf8.h"

enum { CHUNK_CHARS = 400000, RUN_CHARS = 25000 };

unsigned k3_char_class(uint32_t cp)
{
    return char_blocks[char_index[cp >> 7]][cp & 127];
}

struct span {
    const char *s;
    size_t len;
};

/* The class of the character at `at` (0 at the end of the span); *next is the place behind it. */
static unsigned class_at(const struct span *t, size_t at, size_t *next)
{
    if (at >= t->len) {
        *next = at;
        return 0;
    }
    const unsigned char c = (unsigned char)t->s[at];
    if (c < 0x80) {
        *next = at + 1;
        return char_blocks[char_index[0]][c];
    }
    size_t used;
    const uint32_t cp = k3_utf8_get(t->s + at, &used);
    *next = at + used;
    return k3_char_class(cp);
}

/* The end of the run of characters from `at` that have one of the bits. */
static size_t run_of(const struct span *t, size_t at, unsigned bits)
{
    size_t next;
    while (class_at(t, at, &next) & bits)
        at = next;
    return at;
}

static bool is_line_end(const struct span *t, size_t at)
{
    return at < t->len && (t->s[at] == '\r' || t->s[at] == '\n');
}

static size_t run_of_line_ends(const struct span *t, size_t at)
{
    while (is_line_end(t, at))
        at++;
    return at;
}

/* [UP]*[LO]+ at j: the end, or 0. Greedy with backtracking: when no LO follows the UP run, the
 * match ends behind the last character of the run that is in LO as well. */
static size_t match_lower(const struct span *t, size_t j)
{
    const size_t u = run_of(t, j, K3_CH_UP);
    const size_t end = run_of(t, u, K3_CH_LO);
    if (end > u)
        return end;
    size_t k = u;
    while (k > j) {
        size_t start = k - 1;
        while (((unsigned char)t->s[start] & 0xC0) == 0x80)
            start--;
        size_t next;
        if (class_at(t, start, &next) & K3_CH_LO)
            return k;
        k = start;
    }
    return 0;
}

/* [UP]+[LO]* at j: the end, or 0. */
static size_t match_upper(const struct span *t, size_t j)
{
    const size_t u = run_of(t, j, K3_CH_UP);
    return u > j ? run_of(t, u, K3_CH_LO) : 0;
}

/* ASCII letters in lower case, U+017F (long s) as s; 0 for everything else. */
static char folded_at(const struct span *t, size_t at, size_t *next)
{
    *next = at + 1;
    if (at >= t->len)
        return 0;
    const char c = t->s[at];
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    if (c >= 'a' && c <= 'z')
        return c;
    if (t->len - at >= 2 && c == '\xC5' && t->s[at + 1] == '\xBF') {
        *next = at + 2;
        return 's';
    }
    return 0;
}

/* Takes a contraction that begins at `at`, if one does. */
static size_t skip_contraction(const struct span *t, size_t at)
{
    if (at >= t->len || t->s[at] != '\'')
        return at;
    size_t one, two;
    const char a = folded_at(t, at + 1, &one);
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return one;
    const char b = folded_at(t, one, &two);
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
        return two;
    return at;
}

/* The two letter rules, each first with the first character as a prefix. Returns the end, or 0. */
static size_t match_letters(const struct span *t, unsigned first, size_t second)
{
    const bool prefix = !(first & (K3_CH_L | K3_CH_N)) && !is_line_end(t, 0);
    size_t end = prefix ? match_lower(t, second) : 0;
    if (!end)
        end = match_lower(t, 0);
    if (!end && prefix)
        end = match_upper(t, second);
    if (!end)
        end = match_upper(t, 0);
    return end ? skip_contraction(t, end) : 0;
}

static size_t match_digits(const struct span *t)
{
    size_t at = 0, next;
    for (int i = 0; i < 3 && (class_at(t, at, &next) & K3_CH_N); i++)
        at = next;
    return at;
}

static size_t match_punctuation(const struct span *t)
{
    const size_t from = t->s[0] == ' ' ? 1 : 0;
    size_t at = from, next;
    while (at < t->len && !(class_at(t, at, &next) & (K3_CH_L | K3_CH_N | K3_CH_S)))
        at = next;
    return at > from ? run_of_line_ends(t, at) : 0;
}

static size_t match_space(const struct span *t)
{
    size_t at = 0, last = 0, line = 0, next;
    while (class_at(t, at, &next) & K3_CH_S) {
        if (is_line_end(t, at))
            line = next;
        last = at; /* where the last character of the run begins */
        at = next;
    }
    if (line)
        return line;
    return at < t->len && last > 0 ? last : at;
}

size_t k3_next_piece(const char *text, size_t len)
{
    const struct span t = {text, len};
    size_t second;
    const unsigned first = class_at(&t, 0, &second);
    if (first & K3_CH_HAN)
        return run_of(&t, 0, K3_CH_HAN);
    size_t end = match_letters(&t, first, second);
    if (!end && (first & K3_CH_N))
        end = match_digits(&t);
    if (!end)
        end = match_punctuation(&t);
    return end ? end : match_space(&t);
}

static bool is_cut_space(uint32_t cp)
{
    return (cp >= 0x1C && cp <= 0x1F) || (k3_char_class(cp) & K3_CH_S);
}

size_t k3_next_hard_piece(const char *text, size_t len, size_t *chunk_used)
{
    size_t at = 0, count = *chunk_used, run = 0;
    bool kind = false;
    while (at < len && count < CHUNK_CHARS) {
        size_t used;
        const bool space = is_cut_space(k3_utf8_get(text + at, &used));
        run = run > 0 && space == kind ? run + 1 : 1;
        kind = space;
        if (run > RUN_CHARS) {
            *chunk_used = count;
            return at;
        }
        count++;
        at += used;
    }
    *chunk_used = count < CHUNK_CHARS ? count : 0;
    return at;
}
