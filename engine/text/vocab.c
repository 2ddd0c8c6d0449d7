/* vocab.c - the table from bytes to ranks, and reading tiktoken.model into it. */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vocab.h"

/* ---- the table ----------------------------------------------------------------------------- */

static uint64_t load_le(const unsigned char *p, size_t n)
{
    uint64_t w = 0;
    for (size_t i = 0; i < n; i++)
        w |= (uint64_t)p[i] << 8 * i;
    return w;
}

static uint64_t mix(uint64_t h, uint64_t w)
{
    h = (h ^ w) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 32;
}

static uint64_t hash_bytes(const unsigned char *p, size_t n)
{
    uint64_t h = n * UINT64_C(0xD6E8FEB86659FD93);
    for (; n >= 8; p += 8, n -= 8)
        h = mix(h, load_le(p, 8));
    if (n > 0)
        h = mix(h, load_le(p, n));
    return mix(h, h >> 29);
}

static bool same(const struct k3_tokenizer *t, uint32_t rank, const unsigned char *p, size_t len)
{
    return t->len[rank] == len && memcmp(t->arena + t->at[rank], p, len) == 0;
}

/* The slot that holds these bytes, or the free one where they belong. */
static struct k3_slot *find_slot(const struct k3_tokenizer *t, const unsigned char *p, size_t len,
                                 uint32_t *tag)
{
    const uint64_t h = hash_bytes(p, len);
    *tag = (uint32_t)(h >> 32);
    for (uint32_t i = (uint32_t)h & t->mask;; i = (i + 1) & t->mask) {
        struct k3_slot *s = &t->slots[i];
        if (s->rank == K3_NO_RANK || (s->tag == *tag && same(t, s->rank, p, len)))
            return s;
    }
}

uint32_t k3_vocab_find(const struct k3_tokenizer *t, const char *p, size_t len)
{
    uint32_t tag;
    if (len > t->longest)
        return K3_NO_RANK;
    return find_slot(t, (const unsigned char *)p, len, &tag)->rank;
}

uint32_t k3_vocab_insert(struct k3_tokenizer *t, uint32_t rank)
{
    uint32_t tag;
    struct k3_slot *s = find_slot(t, t->arena + t->at[rank], t->len[rank], &tag);
    const uint32_t old = s->rank;
    if (old == K3_NO_RANK)
        *s = (struct k3_slot){tag, rank};
    return old;
}

/* ---- tiktoken.model ------------------------------------------------------------------------ */

struct reader {
    struct k3_tokenizer *t;
    const char *path;
    const char *p, *end;   /* what is left of the file */
    size_t line;           /* of the line last taken */
    uint32_t *line_of;     /* [n] which line gave a rank; 0 = none yet */
    uint64_t above;        /* a rank >= n, and its line; line 0 = none */
    size_t above_line;
    uint32_t used;         /* of the arena */
    struct k3_error *err;
};

/* The next line that is not empty, without its end. False at the end of the file. */
static bool next_line(struct reader *r, const char **line, size_t *len)
{
    while (r->p < r->end) {
        const char *q = r->p;
        while (q < r->end && *q != '\n' && *q != '\r')
            q++;
        *line = r->p;
        *len = (size_t)(q - r->p);
        r->p = q;
        if (q < r->end)
            r->p += *q == '\r' && q + 1 < r->end && q[1] == '\n' ? 2 : 1;
        r->line++;
        if (*len > 0)
            return true;
    }
    return false;
}

static enum k3_status fail_line(const struct reader *r, const char *what, const char *text,
                                size_t len)
{
    char shown[48];
    size_t n = 0;
    for (; n < len && n < sizeof shown - 1; n++)
        shown[n] = (char)(text[n] >= ' ' && text[n] < 127 ? text[n] : '?');
    shown[n] = '\0';
    return k3_fail(r->err, K3_USAGE, "%s line %zu: %s: \"%s\"; get the file again", r->path,
                   r->line, what, shown);
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* The bytes of p[0..len), at most K3_TOKEN_MAX of them, to out. Returns how many; -1 = not base64,
 * -2 = too long. */
static int decode_base64(const char *p, size_t len, unsigned char *out)
{
    if (len % 4 != 0)
        return -1;
    if (len > (K3_TOKEN_MAX + 2) / 3 * 4)
        return -2;
    int n = 0;
    for (size_t i = 0; i < len; i += 4) {
        int pad = 0;
        if (i + 4 == len && p[i + 3] == '=')
            pad = p[i + 2] == '=' ? 2 : 1;
        uint32_t w = 0;
        for (int k = 0; k < 4 - pad; k++) {
            const int d = base64_digit(p[i + (size_t)k]);
            if (d < 0)
                return -1;
            w |= (uint32_t)d << (18 - 6 * k);
        }
        if (w & ((pad == 2 ? 0xFFFFu : pad == 1 ? 0xFFu : 0)))
            return -1; /* bits that belong to no byte */
        for (int k = 0; k < 3 - pad; k++)
            out[n++] = (unsigned char)(w >> (16 - 8 * k));
    }
    return n > K3_TOKEN_MAX ? -2 : n;
}

/* Decimal digits and nothing else, to UINT32_MAX. */
static bool parse_rank(const char *p, size_t len, uint64_t *rank)
{
    *rank = 0;
    for (size_t i = 0; i < len; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        *rank = *rank * 10 + (uint64_t)(p[i] - '0');
        if (*rank > UINT32_MAX)
            return false;
    }
    return len > 0;
}

static enum k3_status take_rank(struct reader *r, uint64_t rank, const char *line, size_t len,
                                size_t bytes)
{
    struct k3_tokenizer *t = r->t;
    if (rank >= t->n) { /* then some rank below is missing, or one stands twice: told at the end */
        if (!r->above_line) {
            r->above = rank;
            r->above_line = r->line;
        }
        return K3_OK;
    }
    if (r->line_of[rank])
        return k3_fail(r->err, K3_USAGE, "%s line %zu: rank %" PRIu64 " was given before, in line "
                       "%" PRIu32 "; get the file again", r->path, r->line, rank, r->line_of[rank]);
    r->line_of[rank] = (uint32_t)r->line;
    t->at[rank] = r->used;
    t->len[rank] = (uint16_t)bytes;
    r->used += (uint32_t)bytes;
    if (bytes > t->longest)
        t->longest = (uint32_t)bytes;
    const uint32_t old = k3_vocab_insert(t, (uint32_t)rank);
    if (old != K3_NO_RANK) {
        char what[80];
        snprintf(what, sizeof what, "this token was given before, in line %" PRIu32,
                 r->line_of[old]);
        return fail_line(r, what, line, len);
    }
    if (bytes == 1)
        t->byte_rank[t->arena[t->at[rank]]] = (uint32_t)rank;
    return K3_OK;
}

static enum k3_status take_line(struct reader *r, const char *line, size_t len)
{
    const char *space = memchr(line, ' ', len);
    if (!space)
        return fail_line(r, "not \"<base64> <rank>\"", line, len);
    const size_t digits = (size_t)(space - line);
    uint64_t rank;
    if (!parse_rank(space + 1, len - digits - 1, &rank))
        return fail_line(r, "the rank is not a number", line, len);
    const int n = decode_base64(line, digits, r->t->arena + r->used);
    if (n == -1)
        return fail_line(r, "not base64", line, len);
    if (n == -2)
        return fail_line(r, "a token of more than 1024 bytes", line, len);
    if (n == 0)
        return fail_line(r, "an empty token", line, len);
    return take_rank(r, rank, line, len, (size_t)n);
}

static enum k3_status check_whole(const struct reader *r)
{
    const struct k3_tokenizer *t = r->t;
    for (uint32_t i = 0; r->above_line && i < t->n; i++)
        if (!r->line_of[i])
            return k3_fail(r->err, K3_USAGE, "%s line %zu: rank %" PRIu64 " follows a gap: rank "
                           "%" PRIu32 " is missing; get the file again", r->path, r->above_line,
                           r->above, i);
    for (int c = 0; c < 256; c++)
        if (t->byte_rank[c] == K3_NO_RANK)
            return k3_fail(r->err, K3_USAGE, "%s: no token for the single byte 0x%02X among %"
                           PRIu32 " tokens in %zu lines; get the file again", r->path,
                           (unsigned)c, t->n, r->line);
    return K3_OK;
}

/* Counts tokens and the bytes that their base64 can hold, and takes memory for both. */
static enum k3_status prepare(struct reader *r)
{
    struct k3_tokenizer *t = r->t;
    const char *const begin = r->p;
    const char *line;
    size_t len;
    uint64_t n = 0, bytes = 0;
    while (next_line(r, &line, &len)) {
        n++;
        bytes += len / 4 * 3;
    }
    r->p = begin;
    r->line = 0;
    t->n = (uint32_t)n; /* k3_slurp() reads no file that has more */
    uint32_t slots = 1024;
    while (slots < n + n / 2)
        slots *= 2;
    t->mask = slots - 1;
    t->arena_bytes = bytes + K3_TOKEN_MAX + 3; /* room to decode a line that is refused then */
    t->arena = malloc(t->arena_bytes);
    t->at = malloc((n + K3_SPECIALS) * sizeof *t->at);
    t->len = malloc((n + K3_SPECIALS) * sizeof *t->len);
    t->slots = malloc(slots * sizeof *t->slots);
    r->line_of = calloc(n + 1, sizeof *r->line_of);
    if (!t->arena || !t->at || !t->len || !t->slots || !r->line_of)
        return k3_fail_memory(r->err, r->path, bytes + n * 22);
    memset(t->slots, 0xFF, slots * sizeof *t->slots); /* K3_NO_RANK */
    memset(t->byte_rank, 0xFF, sizeof t->byte_rank);
    return K3_OK;
}

enum k3_status k3_vocab_parse(struct k3_tokenizer *t, const char *path, const char *text,
                              size_t size, struct k3_error *err)
{
    struct reader r = {.t = t, .path = path, .p = text, .end = text + size, .err = err};
    enum k3_status st = prepare(&r);
    const char *line;
    size_t len;
    while (st == K3_OK && next_line(&r, &line, &len))
        st = take_line(&r, line, len);
    if (st == K3_OK)
        st = check_whole(&r);
    if (st == K3_OK)
        t->arena_bytes = r.used;
    free(r.line_of);
    return st;
}
