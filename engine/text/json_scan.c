/* json_scan.c - finding the ends of JSON tokens and values. See json.h. */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "utf8.h"

const char *k3_json_skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool four_hex(const char *p, const char *end)
{
    if (end - p < 4)
        return false;
    for (int i = 0; i < 4; i++)
        if (hex_digit(p[i]) < 0)
            return false;
    return true;
}

const char *k3_json_skip_string(const char *p, const char *end, enum k3_json_dialect dialect)
{
    if (p == end || *p != '"')
        return NULL;
    for (p++; p < end; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c == '"')
            return p + 1;
        if (c < 0x20 && dialect == K3_JSON_STRICT)
            return NULL;
        if (c != '\\')
            continue;
        if (++p == end || *p == '\0' || !strchr("\"\\/bfnrtu", *p))
            return NULL;
        if (*p == 'u') {
            if (!four_hex(p + 1, end))
                return NULL;
            p += 4;
        }
    }
    return NULL;
}

static const char *skip_digits(const char *p, const char *end)
{
    const char *from = p;
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p > from ? p : NULL;
}

const char *k3_json_skip_number(const char *p, const char *end)
{
    if (p < end && *p == '-')
        p++;
    if (p < end && *p == '0')
        p++;
    else if (!(p = skip_digits(p, end)))
        return NULL;
    /* A fraction or an exponent that is not whole is not part of the number. */
    if (p < end && *p == '.') {
        const char *q = skip_digits(p + 1, end);
        p = q ? q : p;
        if (!q)
            return p;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        if (q < end && (*q == '+' || *q == '-'))
            q++;
        q = skip_digits(q, end);
        p = q ? q : p;
    }
    return p;
}

static const char *skip_word(const char *p, const char *end, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(end - p) >= n && memcmp(p, word, n) == 0 ? p + n : NULL;
}

static const char *skip_scalar(const char *p, const char *end, enum k3_json_dialect dialect)
{
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
    const size_t n_words = dialect == K3_JSON_LAX ? 6 : 3;
    if (p == end)
        return NULL;
    if (*p == '"')
        return k3_json_skip_string(p, end, dialect);
    for (size_t i = 0; i < n_words; i++) {
        const char *q = skip_word(p, end, words[i]);
        if (q)
            return q;
    }
    return k3_json_skip_number(p, end);
}

/* The open containers of a scan: a bit each, 1 = object. */
struct nest {
    unsigned char *bits;
    size_t depth, cap; /* cap in bits */
};

static bool nest_push(struct nest *s, bool object)
{
    if (s->depth == s->cap) {
        const size_t cap = s->cap ? s->cap * 2 : 512;
        unsigned char *bits = realloc(s->bits, cap / 8);
        if (!bits)
            return false;
        s->bits = bits;
        s->cap = cap;
    }
    const unsigned char bit = (unsigned char)(1u << (s->depth & 7));
    if (object)
        s->bits[s->depth >> 3] |= bit;
    else
        s->bits[s->depth >> 3] &= (unsigned char)~bit;
    s->depth++;
    return true;
}

static bool nest_is_object(const struct nest *s)
{
    return s->bits[(s->depth - 1) >> 3] >> ((s->depth - 1) & 7) & 1;
}

/* `"key" :` and the space around it; the place of the value, or NULL. */
static const char *skip_key(const char *p, const char *end, enum k3_json_dialect dialect)
{
    p = k3_json_skip_string(k3_json_skip_space(p, end), end, dialect);
    if (!p)
        return NULL;
    p = k3_json_skip_space(p, end);
    return p < end && *p == ':' ? k3_json_skip_space(p + 1, end) : NULL;
}

/* Behind a value: closes containers and stops in front of the next value. *done = the outermost
 * value is complete. */
static const char *after_value(struct nest *s, const char *p, const char *end,
                               enum k3_json_dialect dialect, bool *done)
{
    while (s->depth > 0) {
        const bool object = nest_is_object(s);
        p = k3_json_skip_space(p, end);
        if (p == end)
            return NULL;
        if (*p == ',')
            return object ? skip_key(p + 1, end, dialect) : k3_json_skip_space(p + 1, end);
        if (*p != (object ? '}' : ']'))
            return NULL;
        p++;
        s->depth--;
    }
    *done = true;
    return p;
}

const char *k3_json_skip(const char *p, const char *end, enum k3_json_dialect dialect,
                         size_t max_depth)
{
    struct nest s = {NULL, 0, 0};
    bool done = false;
    while (p && !done) {
        if (p < end && (*p == '{' || *p == '[')) {
            const bool object = *p == '{';
            if (s.depth == max_depth || !nest_push(&s, object)) {
                p = NULL;
                break;
            }
            const char *q = k3_json_skip_space(p + 1, end);
            if (q < end && *q == (object ? '}' : ']'))
                p = after_value(&s, q, end, dialect, &done);
            else
                p = object ? skip_key(q, end, dialect) : q;
        } else {
            p = skip_scalar(p, end, dialect);
            if (p)
                p = after_value(&s, p, end, dialect, &done);
        }
    }
    free(s.bits);
    return p;
}

static uint32_t read_hex(const char *p)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++)
        v = v << 4 | (uint32_t)hex_digit(p[i]);
    return v;
}

/* The \u escape at p (behind the u), a second one of a surrogate pair included. */
static const char *decode_unicode(struct k3_buf *b, const char *p, const char *end)
{
    uint32_t cp = read_hex(p);
    p += 4;
    if (cp >= 0xD800 && cp < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        const uint32_t low = read_hex(p + 2);
        if (low >= 0xDC00 && low < 0xE000) {
            cp = 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
            p += 6;
        }
    }
    k3_utf8_put(b, cp >= 0xD800 && cp < 0xE000 ? 0xFFFD : cp);
    return p;
}

void k3_json_decode_string(struct k3_buf *b, const char *p, size_t len)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *const end = p + len - 1; /* the closing quote */
    p++;
    while (p < end) {
        const char *from = p;
        while (p < end && *p != '\\')
            p++;
        k3_utf8_repair(b, from, (size_t)(p - from));
        if (p == end)
            break;
        p++;
        if (*p == 'u')
            p = decode_unicode(b, p + 1, end);
        else
            k3_buf_putc(b, values[strchr(names, *p++) - names]);
    }
}
