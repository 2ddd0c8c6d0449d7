/* buffer.c - see buffer.h. */
#include <config.h>

#include "buffer.h"

#include <stdlib.h>
#include <string.h>

static bool reserve(struct buffer *b, size_t more)
{
    if (b->failed || more > (size_t)-1 / 4 - b->n)
        return false;
    if (b->n + more + 1 <= b->cap)
        return true;
    size_t cap = b->cap == 0 ? 64 : b->cap;
    while (cap < b->n + more + 1)
        cap *= 2;
    char *v = realloc(b->v, cap);
    if (v == NULL)
        return false;
    b->v = v;
    b->cap = cap;
    return true;
}

void buffer_add(struct buffer *b, const char *text, size_t n)
{
    if (!reserve(b, n)) {
        b->failed = true;
        return;
    }
    if (n > 0)
        memcpy(b->v + b->n, text, n);
    b->n += n;
    b->v[b->n] = '\0';
}

void buffer_clear(struct buffer *b)
{
    b->n = 0;
    b->failed = false;
    if (b->v != NULL)
        b->v[0] = '\0';
}

void buffer_free(struct buffer *b)
{
    free(b->v);
    *b = (struct buffer){0};
}

void buffer_add_fn(void *buffer, const char *text, size_t n)
{
    buffer_add(buffer, text, n);
}
