/* buffer.h - a growing string of bytes. */
#ifndef K3CHAT_BUFFER_H
#define K3CHAT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer { /* zero-initialise; free with buffer_free() */
    char *v;    /* zero-terminated beyond n once something was added */
    size_t n, cap;
    bool failed; /* memory ran out: what came after is missing */
};
void buffer_add(struct buffer *b, const char *text, size_t n);
void buffer_clear(struct buffer *b); /* keeps the memory */
void buffer_free(struct buffer *b);
void buffer_add_fn(void *buffer, const char *text, size_t n); /* buffer_add() as a k3_text_fn */

#endif
