/* json_write.c - writing JSON values as the chat format wants them. See json.h. */
#include <config.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

void k3_json_write_escaped(struct k3_buf *b, const char *text, size_t len)
{
    static const char names[] = "btn?fr"; /* U+0008 .. U+000D; U+000B has no short form */
    size_t from = 0;
    if (len == 0) /* text may be NULL then */
        return;
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        k3_buf_put(b, text + from, i - from);
        from = i + 1;
        char esc[8];
        if (c == '"' || c == '\\')
            snprintf(esc, sizeof esc, "\\%c", c);
        else if (c >= 8 && c <= 13 && c != 11)
            snprintf(esc, sizeof esc, "\\%c", names[c - 8]);
        else
            snprintf(esc, sizeof esc, "\\u%04x", c);
        k3_buf_puts(b, esc);
    }
    k3_buf_put(b, text + from, len - from);
}

static void write_string(struct k3_buf *b, const struct k3_json *j)
{
    k3_buf_putc(b, '"');
    k3_json_write_escaped(b, j->text, j->len);
    k3_buf_putc(b, '"');
}

/* Adds one to the last digit of a "d.ddde+xx" form. False when it would get longer. */
static bool next_up(char *form)
{
    for (char *q = strchr(form, 'e') - 1; q >= form; q--) {
        if (*q == '.')
            continue;
        if (*q < '9') {
            ++*q;
            return true;
        }
        *q = '0';
    }
    return false;
}

/* The fewest digits that read back to v, as "d.ddde[+-]xx". The locale must be "C". At a power of
 * two the gap below is half the gap above, so the nearest number of n digits may fail to read back
 * where the next one up does; every other v is served by the nearest. */
static void shortest(double v, char *out, size_t size)
{
    int e;
    const bool power_of_two = frexp(v, &e) == 0.5;
    for (int digits = 0; digits < 17; digits++) {
        snprintf(out, size, "%.*e", digits, v);
        if (strtod(out, NULL) == v)
            return;
        if (power_of_two && next_up(out) && strtod(out, NULL) == v)
            return;
    }
}

/* v > 0 and finite, from its "d.ddde+xx" form. */
static void write_positive(struct k3_buf *b, double v)
{
    char form[40], digits[24];
    shortest(v, form, sizeof form);
    const char *e = strchr(form, 'e');
    const int exponent = (int)strtol(e + 1, NULL, 10);
    size_t n = 0;
    for (const char *q = form; q < e && n < sizeof digits - 1; q++)
        if (*q != '.')
            digits[n++] = *q;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    if (exponent < -4 || exponent > 15) {
        char tail[16];
        k3_buf_put(b, digits, 1);
        if (n > 1) {
            k3_buf_putc(b, '.');
            k3_buf_put(b, digits + 1, n - 1);
        }
        snprintf(tail, sizeof tail, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        k3_buf_puts(b, tail);
        return;
    }
    if (exponent < 0) {
        k3_buf_puts(b, "0.");
        for (int i = -1; i > exponent; i--)
            k3_buf_putc(b, '0');
        k3_buf_put(b, digits, n);
        return;
    }
    const size_t whole = (size_t)exponent + 1;
    for (size_t i = 0; i < whole; i++)
        k3_buf_putc(b, i < n ? digits[i] : '0');
    k3_buf_putc(b, '.');
    if (n > whole)
        k3_buf_put(b, digits + whole, n - whole);
    else
        k3_buf_putc(b, '0');
}

static void write_double(struct k3_buf *b, const char *text)
{
    /* The point must be a point whatever the user's locale is, on this thread only. */
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) {
        b->failed = true;
        return;
    }
    const locale_t old = uselocale(c);
    const double v = strtod(text, NULL);
    if (signbit(v))
        k3_buf_putc(b, '-');
    if (isinf(v))
        k3_buf_puts(b, "Infinity");
    else if (v == 0)
        k3_buf_puts(b, "0.0");
    else
        write_positive(b, fabs(v));
    uselocale(old);
    freelocale(c);
}

static void write_number(struct k3_buf *b, const struct k3_json *j)
{
    if (strpbrk(j->text, ".eE"))
        write_double(b, j->text);
    else if (strcmp(j->text, "-0") == 0)
        k3_buf_putc(b, '0');
    else
        k3_buf_put(b, j->text, j->len);
}

struct member {
    const struct k3_json *key;
    size_t first, last; /* where it stands, and where its value stands */
};

static int compare_keys(const struct k3_json *a, const struct k3_json *b)
{
    const size_t n = a->len < b->len ? a->len : b->len;
    const int c = memcmp(a->text, b->text, n);
    return c ? c : (a->len > b->len) - (a->len < b->len);
}

static int by_key(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    const int c = compare_keys(x->key, y->key);
    return c ? c : (x->first > y->first) - (x->first < y->first);
}

static int by_place(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

size_t k3_json_members(const struct k3_json *object, bool sorted, size_t *order, bool *ok)
{
    const size_t n = object->n;
    *ok = true;
    if (n == 0)
        return 0;
    struct member *m = malloc(n * sizeof *m);
    if (!m) {
        *ok = false;
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        m[i] = (struct member){&object->keys[i], i, i};
    qsort(m, n, sizeof *m, by_key);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && compare_keys(m[kept - 1].key, m[i].key) == 0)
            m[kept - 1].last = m[i].last;
        else
            m[kept++] = m[i];
    }
    if (!sorted)
        qsort(m, kept, sizeof *m, by_place);
    for (size_t i = 0; i < kept; i++)
        order[i] = m[i].last;
    free(m);
    return kept;
}

static void write_object(struct k3_buf *b, const struct k3_json *j, enum k3_json_style style)
{
    const bool compact = style == K3_JSON_COMPACT_SORTED;
    size_t *order = malloc((j->n ? j->n : 1) * sizeof *order);
    bool ok = false;
    const size_t n = order ? k3_json_members(j, compact, order, &ok) : 0;
    if (!ok)
        b->failed = true;
    k3_buf_putc(b, '{');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            k3_buf_puts(b, compact ? "," : ", ");
        write_string(b, &j->keys[order[i]]);
        k3_buf_puts(b, compact ? ":" : ": ");
        k3_json_write(b, &j->items[order[i]], style);
    }
    k3_buf_putc(b, '}');
    free(order);
}

static void write_array(struct k3_buf *b, const struct k3_json *j, enum k3_json_style style)
{
    k3_buf_putc(b, '[');
    for (size_t i = 0; i < j->n; i++) {
        if (i > 0)
            k3_buf_puts(b, style == K3_JSON_COMPACT_SORTED ? "," : ", ");
        k3_json_write(b, &j->items[i], style);
    }
    k3_buf_putc(b, ']');
}

void k3_json_write(struct k3_buf *b, const struct k3_json *j, enum k3_json_style style)
{
    switch (j->type) {
    case K3_JSON_NULL:
        k3_buf_puts(b, "null");
        break;
    case K3_JSON_TRUE:
        k3_buf_puts(b, "true");
        break;
    case K3_JSON_FALSE:
        k3_buf_puts(b, "false");
        break;
    case K3_JSON_NUMBER:
        write_number(b, j);
        break;
    case K3_JSON_STRING:
        write_string(b, j);
        break;
    case K3_JSON_ARRAY:
        write_array(b, j, style);
        break;
    case K3_JSON_OBJECT:
        write_object(b, j, style);
        break;
    }
}
