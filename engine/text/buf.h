/* buf.h - a growing byte buffer with a sticky failure, so that code that builds text checks
 * once. */
#ifndef K3_BUF_H
#define K3_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct k3_buf { /* zero-initialise; free with k3_buf_free() */
    char *v;    /* n bytes, and a zero byte behind them once anything was put */
    size_t n, cap;
    bool failed; /* memory ran out; what is in v is then incomplete */
};

void k3_buf_put(struct k3_buf *b, const char *bytes, size_t len);
void k3_buf_puts(struct k3_buf *b, const char *s);
void k3_buf_putc(struct k3_buf *b, char c);
void k3_buf_clear(struct k3_buf *b); /* empty; keeps the memory and the failure */
void k3_buf_free(struct k3_buf *b);

/* The bytes as a malloc'ed, zero-terminated string that the caller frees; the buffer is empty
 * afterwards. NULL when memory ran out at any time. */
char *k3_buf_take(struct k3_buf *b, size_t *len);

#endif
