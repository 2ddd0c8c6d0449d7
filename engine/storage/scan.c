/* scan.c - see scan.h. */
#include <config.h>

#include "scan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../text/json.h"
#include "../text/utf8.h"
#include "checkpoint_internal.h"

#define DEPTH_MAX 2048
#define FEW_KEYS 16 /* compared each with each; more are sorted */
#define NEAR_MAX 40

void k3_scan_begin(struct k3_scan *s, char *text, size_t n, const char *file, const char *what,
                   struct k3_error *err)
{
    *s = (struct k3_scan){.p = text, .end = text + n, .line_at = text, .line = 1,
                          .file = file, .what = what, .err = err};
}

void k3_scan_end(struct k3_scan *s)
{
    free(s->keys);
    s->keys = NULL;
}

/* ---- refusals ------------------------------------------------------------------------------ */

/* Bytes of the token at s->p that a message shows: a word, a string, or one character. */
static size_t near_length(const struct k3_scan *s)
{
    static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-.";
    size_t n = strspn(s->p, word);
    if (n == 0 && *s->p == '"')
        n = 1 + strcspn(s->p + 1, "\"\n");
    if (n == 0)
        return 1;
    return n < NEAR_MAX ? n : NEAR_MAX;
}

static bool fail(struct k3_scan *s, const char *why)
{
    char near[NEAR_MAX + 1];
    const size_t column = (size_t)(s->p - s->line_at) + 1;
    if (s->p == s->end) {
        k3_fail(s->err, K3_FAILED,
                "%s: the %s is not valid JSON (line %zu, column %zu: %s near end of file); "
                K3_CKPT_AGAIN, s->file, s->what, s->line, column, why);
        return false;
    }
    const size_t n = near_length(s);
    for (size_t i = 0; i < n; i++) { /* it goes to a terminal */
        const unsigned char b = (unsigned char)s->p[i];
        near[i] = (char)(b < 0x20 || b >= 0x7F ? '?' : b);
    }
    near[n] = '\0';
    k3_fail(s->err, K3_FAILED,
            "%s: the %s is not valid JSON (line %zu, column %zu: %s near '%s'); " K3_CKPT_AGAIN,
            s->file, s->what, s->line, column, why, near);
    return false;
}

bool k3_scan_twice(struct k3_scan *s, const char *key)
{
    char shown[K3_CKPT_NAME_SHOWN];
    k3_ckpt_clean(shown, sizeof shown, key);
    k3_fail(s->err, K3_FAILED, "%s: the %s is not valid JSON (duplicate object key \"%s\"); "
            K3_CKPT_AGAIN, s->file, s->what, shown);
    return false;
}

/* ---- characters ---------------------------------------------------------------------------- */

static void skip_space(struct k3_scan *s)
{
    for (;; s->p++) {
        if (*s->p == '\n') { /* nowhere else may a line end */
            s->line++;
            s->line_at = s->p + 1;
        } else if (*s->p != ' ' && *s->p != '\t' && *s->p != '\r') {
            return;
        }
    }
}

/* Takes the character if it is next, white space before it or not. */
static bool take(struct k3_scan *s, char c)
{
    skip_space(s);
    if (*s->p != c)
        return false;
    s->p++;
    return true;
}

char k3_scan_next(struct k3_scan *s)
{
    skip_space(s);
    const char c = *s->p;
    if (c == '-' || (c >= '0' && c <= '9'))
        return '0';
    return c == '{' || c == '[' || c == '"' ? c : '\0';
}

/* ---- strings ------------------------------------------------------------------------------- */

static bool read_hex(const char *p, uint32_t *v)
{
    *v = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int d = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (d < 0)
            return false; /* the zero byte at the end of the text too */
        *v = *v << 4 | (uint32_t)d;
    }
    return true;
}

/* Writes the character in UTF-8, no longer than the escape that it replaces. */
static char *put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
        return out;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
    *out++ = (char)(first[more] | c >> 6 * more);
    while (more-- > 0)
        *out++ = (char)(0x80 | (c >> 6 * more & 0x3F));
    return out;
}

/* The \u escape at s->p, a second one of a pair included. */
static bool take_unicode(struct k3_scan *s, char **out)
{
    uint32_t c, low;
    if (!read_hex(s->p + 2, &c))
        return fail(s, "invalid escape");
    if (c == 0)
        return fail(s, "\\u0000 is not allowed");
    if (c >= 0xDC00 && c < 0xE000)
        return fail(s, "a lone surrogate");
    size_t used = 6;
    if (c >= 0xD800 && c < 0xDC00) {
        if (s->p[6] != '\\' || s->p[7] != 'u' || !read_hex(s->p + 8, &low) || low < 0xDC00 ||
            low >= 0xE000)
            return fail(s, "a lone surrogate");
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        used = 12;
    }
    *out = put_utf8(*out, c);
    s->p += used;
    return true;
}

static bool take_escape(struct k3_scan *s, char **out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char c = s->p[1];
    if (c == 'u')
        return take_unicode(s, out);
    const char *at = c != '\0' ? strchr(names, c) : NULL;
    if (!at)
        return fail(s, "invalid escape");
    *(*out)++ = values[at - names];
    s->p += 2;
    return true;
}

static bool take_character(struct k3_scan *s, char **out)
{
    size_t used = 0;
    if (s->p == s->end)
        return fail(s, "premature end of input");
    if ((unsigned char)*s->p < 0x20)
        return fail(s, "control character");
    if (k3_utf8_step(s->p, (size_t)(s->end - s->p), &used) != K3_UTF8_GOOD)
        return fail(s, "unable to decode a byte as UTF-8");
    memmove(*out, s->p, used);
    *out += used;
    s->p += used;
    return true;
}

/* The rest of a string that has something to decode; *out follows behind. */
static bool decode_rest(struct k3_scan *s, char **out)
{
    while (*s->p != '"')
        if (!(*s->p == '\\' ? take_escape(s, out) : take_character(s, out)))
            return false;
    return true;
}

char *k3_scan_string(struct k3_scan *s, size_t *len)
{
    if (!take(s, '"'))
        return fail(s, "string expected"), NULL;
    char *const from = s->p, *out;
    /* Names are plain ASCII, and there are many. */
    while ((unsigned char)*s->p >= 0x20 && (unsigned char)*s->p < 0x80 && *s->p != '"' &&
           *s->p != '\\')
        s->p++;
    out = s->p;
    if (*s->p != '"' && !decode_rest(s, &out))
        return NULL;
    *out = '\0';
    s->p++;
    *len = (size_t)(out - from);
    return from;
}

/* ---- numbers and words --------------------------------------------------------------------- */

static bool take_whole(struct k3_scan *s, const char *end, int64_t *v)
{
    const bool minus = *s->p == '-';
    bool over = false;
    *v = 0;
    for (const char *p = s->p + minus; p < end; p++)
        over |= __builtin_mul_overflow(*v, 10, v) ||
                __builtin_add_overflow(*v, minus ? '0' - *p : *p - '0', v);
    if (over)
        return fail(s, minus ? "too big negative integer" : "too big integer");
    return true;
}

bool k3_scan_number(struct k3_scan *s, bool *whole, int64_t *v)
{
    skip_space(s);
    const char *end = k3_json_skip_number(s->p, s->end);
    if (!end)
        return fail(s, "invalid token");
    *whole = true;
    for (const char *p = s->p; p < end && *whole; p++)
        *whole = *p != '.' && *p != 'e' && *p != 'E';
    if (*whole) {
        if (!take_whole(s, end, v))
            return false;
    } else {
        errno = 0;
        const double d = strtod(s->p, NULL); /* what follows is no part of a number */
        if (errno == ERANGE && fabs(d) == HUGE_VAL)
            return fail(s, "real number overflow");
    }
    s->p += end - s->p;
    return true;
}

static bool skip_word(struct k3_scan *s)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);
        if (strncmp(s->p, words[i], n) == 0) {
            s->p += n;
            return true;
        }
    }
    return fail(s, "invalid token");
}

/* ---- objects and lists --------------------------------------------------------------------- */

static bool watch_key(struct k3_scan *s, const char *text, size_t len)
{
    if (s->n_keys == s->cap_keys) {
        const size_t cap = s->cap_keys ? 2 * s->cap_keys : 64;
        struct k3_scan_key *v = realloc(s->keys, cap * sizeof *v);
        if (!v) {
            k3_fail_memory(s->err, s->file, cap * sizeof *v);
            return false;
        }
        s->keys = v;
        s->cap_keys = cap;
    }
    s->keys[s->n_keys++] = (struct k3_scan_key){text, len};
    return true;
}

static int by_key(const void *a, const void *b)
{
    const struct k3_scan_key *x = a, *y = b;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return memcmp(x->text, y->text, x->len);
}

/* Refuses a key that stands twice among those from `first` on, and forgets them. */
static bool check_keys(struct k3_scan *s, size_t first)
{
    const size_t n = s->n_keys - first;
    struct k3_scan_key *k = n > 0 ? s->keys + first : NULL;
    if (n > FEW_KEYS)
        qsort(k, n, sizeof *k, by_key);
    for (size_t i = 1; i < n; i++)
        for (size_t j = n > FEW_KEYS ? i - 1 : 0; j < i; j++)
            if (by_key(&k[i], &k[j]) == 0)
                return k3_scan_twice(s, k[i].text);
    s->n_keys = first;
    return true;
}

static bool take_member(struct k3_scan *s, enum k3_scan_keys keys, k3_scan_member_fn fn, void *ud)
{
    size_t len;
    if (k3_scan_next(s) != '"')
        return fail(s, "string or '}' expected");
    char *key = k3_scan_string(s, &len);
    if (!key || (keys == K3_SCAN_WATCHED && !watch_key(s, key, len)))
        return false;
    if (!take(s, ':'))
        return fail(s, "':' expected");
    return fn(ud, s, key, len);
}

/* Enters a container. False: it is too deep for a value inside. */
static bool descend(struct k3_scan *s)
{
    return s->depth < DEPTH_MAX || fail(s, "maximum parsing depth reached");
}

bool k3_scan_object(struct k3_scan *s, enum k3_scan_keys keys, k3_scan_member_fn fn, void *ud)
{
    const size_t first = s->n_keys;
    if (!take(s, '{'))
        return fail(s, "'{' expected");
    s->depth++;
    if (!take(s, '}')) {
        if (!descend(s))
            return false;
        do
            if (!take_member(s, keys, fn, ud))
                return false;
        while (take(s, ','));
        if (!take(s, '}'))
            return fail(s, "'}' expected");
    }
    s->depth--;
    return check_keys(s, first);
}

bool k3_scan_list(struct k3_scan *s, k3_scan_element_fn fn, void *ud)
{
    if (!take(s, '['))
        return fail(s, "'[' expected");
    s->depth++;
    if (!take(s, ']')) {
        if (!descend(s))
            return false;
        do
            if (!fn(ud, s))
                return false;
        while (take(s, ','));
        if (!take(s, ']'))
            return fail(s, "']' expected");
    }
    s->depth--;
    return true;
}

static bool skip_member(void *ud, struct k3_scan *s, char *key, size_t len)
{
    (void)ud;
    (void)key;
    (void)len;
    return k3_scan_skip(s);
}

static bool skip_element(void *ud, struct k3_scan *s)
{
    (void)ud;
    return k3_scan_skip(s);
}

bool k3_scan_skip(struct k3_scan *s)
{
    size_t len;
    bool whole;
    int64_t v;
    switch (k3_scan_next(s)) {
    case '{':
        return k3_scan_object(s, K3_SCAN_WATCHED, skip_member, NULL);
    case '[':
        return k3_scan_list(s, skip_element, NULL);
    case '"':
        return k3_scan_string(s, &len) != NULL;
    case '0':
        return k3_scan_number(s, &whole, &v);
    default:
        return skip_word(s);
    }
}

bool k3_scan_document(struct k3_scan *s, enum k3_scan_keys keys, k3_scan_member_fn fn, void *ud)
{
    const char kind = k3_scan_next(s);
    if (kind != '{' && kind != '[')
        return fail(s, "'[' or '{' expected");
    if (!(kind == '{' ? k3_scan_object(s, keys, fn, ud) : k3_scan_skip(s)))
        return false;
    skip_space(s);
    if (s->p != s->end)
        return fail(s, "end of file expected");
    if (kind == '[')
        k3_fail(s->err, K3_FAILED, "%s: the %s is not a JSON object; " K3_CKPT_AGAIN, s->file,
                s->what);
    return kind == '{';
}
