/* utf8.c - checking and repairing UTF-8, whole or streamed. See utf8.h and tokenizer.h. */
#include "utf8.h"

#include <string.h>

#include "tokenizer.h"

static const char REPLACEMENT[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Length of the character that `lead` begins, and the range of its second byte; 0 = no lead. */
static size_t lead_length(unsigned char lead, unsigned char *lo, unsigned char *hi)
{
    *lo = 0x80;
    *hi = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF)
        return 2;
    if (lead >= 0xE0 && lead <= 0xEF) {
        if (lead == 0xE0)
            *lo = 0xA0; /* shorter forms */
        if (lead == 0xED)
            *hi = 0x9F; /* surrogates */
        return 3;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        if (lead == 0xF0)
            *lo = 0x90;
        if (lead == 0xF4)
            *hi = 0x8F; /* above U+10FFFF */
        return 4;
    }
    return 0;
}

enum k3_utf8_kind k3_utf8_step(const char *p, size_t n, size_t *used)
{
    const unsigned char *s = (const unsigned char *)p;
    *used = 1;
    if (s[0] < 0x80)
        return K3_UTF8_GOOD;
    unsigned char lo, hi;
    const size_t want = lead_length(s[0], &lo, &hi);
    if (want == 0)
        return K3_UTF8_BAD;
    size_t i = 1;
    for (; i < want && i < n; i++) {
        if (s[i] < lo || s[i] > hi)
            break;
        lo = 0x80;
        hi = 0xBF;
    }
    *used = i;
    if (i == want)
        return K3_UTF8_GOOD;
    return i == n ? K3_UTF8_PART : K3_UTF8_BAD;
}

uint32_t k3_utf8_get(const char *p, size_t *used)
{
    const unsigned char *s = (const unsigned char *)p;
    if (s[0] < 0x80) {
        *used = 1;
        return s[0];
    }
    if (s[0] < 0xE0) {
        *used = 2;
        return (uint32_t)(s[0] & 0x1F) << 6 | (s[1] & 0x3F);
    }
    if (s[0] < 0xF0) {
        *used = 3;
        return (uint32_t)(s[0] & 0x0F) << 12 | (uint32_t)(s[1] & 0x3F) << 6 | (s[2] & 0x3F);
    }
    *used = 4;
    return (uint32_t)(s[0] & 0x07) << 18 | (uint32_t)(s[1] & 0x3F) << 12 |
           (uint32_t)(s[2] & 0x3F) << 6 | (s[3] & 0x3F);
}

bool k3_utf8_valid(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint64_t w;
        if (n - i >= sizeof w) { /* eight ASCII bytes at once */
            memcpy(&w, p + i, sizeof w);
            if (!(w & UINT64_C(0x8080808080808080))) {
                i += sizeof w;
                continue;
            }
        }
        size_t used;
        if (k3_utf8_step(p + i, n - i, &used) != K3_UTF8_GOOD)
            return false;
        i += used;
    }
    return true;
}

void k3_utf8_put(struct k3_buf *b, uint32_t cp)
{
    char c[4];
    size_t n = 1;
    if (cp < 0x80) {
        c[0] = (char)cp;
    } else if (cp < 0x800) {
        c[0] = (char)(0xC0 | cp >> 6);
        n = 2;
    } else if (cp < 0x10000) {
        c[0] = (char)(0xE0 | cp >> 12);
        n = 3;
    } else {
        c[0] = (char)(0xF0 | cp >> 18);
        n = 4;
    }
    for (size_t i = 1; i < n; i++)
        c[i] = (char)(0x80 | (cp >> 6 * (n - 1 - i) & 0x3F));
    k3_buf_put(b, c, n);
}

static void put_text(void *ud, const char *text, size_t len)
{
    k3_buf_put(ud, text, len);
}

void k3_utf8_repair(struct k3_buf *b, const char *p, size_t n)
{
    struct k3_utf8 u = {{0}, 0};
    k3_utf8_feed(&u, p, n, put_text, b);
    k3_utf8_end(&u, put_text, b);
}

/* Completes the character in the tail with bytes from p. Returns how many of them it took. */
static size_t feed_tail(struct k3_utf8 *u, const char *p, size_t n, k3_text_fn fn, void *ud)
{
    size_t i = 0;
    while (u->n > 0 && i < n) {
        char c[4];
        memcpy(c, u->tail, u->n);
        c[u->n] = p[i];
        size_t used;
        const enum k3_utf8_kind kind = k3_utf8_step(c, u->n + 1, &used);
        if (kind == K3_UTF8_BAD) { /* the new byte is not part of it: it is looked at afresh */
            fn(ud, REPLACEMENT, 3);
            u->n = 0;
            break;
        }
        u->tail[u->n++] = (unsigned char)p[i++];
        if (kind == K3_UTF8_GOOD) {
            fn(ud, c, used);
            u->n = 0;
        }
    }
    return i;
}

void k3_utf8_feed(struct k3_utf8 *u, const char *bytes, size_t len, k3_text_fn fn, void *ud)
{
    size_t i = feed_tail(u, bytes, len, fn, ud);
    size_t from = i; /* bytes[from..i) are good and not yet handed on */
    while (i < len) {
        size_t used;
        const enum k3_utf8_kind kind = k3_utf8_step(bytes + i, len - i, &used);
        if (kind != K3_UTF8_GOOD && i > from)
            fn(ud, bytes + from, i - from);
        if (kind == K3_UTF8_PART) {
            memcpy(u->tail, bytes + i, used);
            u->n = used;
            return;
        }
        if (kind == K3_UTF8_BAD)
            fn(ud, REPLACEMENT, 3);
        i += used;
        if (kind == K3_UTF8_BAD)
            from = i;
    }
    if (i > from)
        fn(ud, bytes + from, i - from);
}

void k3_utf8_end(struct k3_utf8 *u, k3_text_fn fn, void *ud)
{
    if (u->n > 0)
        fn(ud, REPLACEMENT, 3);
    u->n = 0;
}
