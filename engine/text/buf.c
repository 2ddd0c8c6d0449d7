/* buf.c - see buf.h. */
#include "buf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool buf_reserve(struct k3_buf *b, size_t more)
{
    if (b->failed)
        return false;
    if (more < b->cap - b->n)
        return true;
    if (more > SIZE_MAX / 4 || b->n > SIZE_MAX / 4) {
        b->failed = true;
        return false;
    }
    size_t cap = b->cap ? b->cap * 2 : 64;
    while (cap <= b->n + more)
        cap *= 2;
    char *v = realloc(b->v, cap);
    if (!v) {
        b->failed = true;
        return false;
    }
    b->v = v;
    b->cap = cap;
    return true;
}

void k3_buf_put(struct k3_buf *b, const char *bytes, size_t len)
{
    if (!buf_reserve(b, len))
        return;
    if (len)
        memcpy(b->v + b->n, bytes, len);
    b->n += len;
    b->v[b->n] = '\0';
}

void k3_buf_puts(struct k3_buf *b, const char *s)
{
    k3_buf_put(b, s, strlen(s));
}

void k3_buf_putc(struct k3_buf *b, char c)
{
    k3_buf_put(b, &c, 1);
}

void k3_buf_clear(struct k3_buf *b)
{
    b->n = 0;
}

void k3_buf_free(struct k3_buf *b)
{
    free(b->v);
    *b = (struct k3_buf){0};
}

char *k3_buf_take(struct k3_buf *b, size_t *len)
{
    k3_buf_put(b, "", 0);
    if (b->failed) {
        k3_buf_free(b);
        *len = 0;
        return NULL;
    }
    char *v = b->v;
    *len = b->n;
    *b = (struct k3_buf){0};
    return v;
}
