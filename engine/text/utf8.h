/* utf8.h - one step through bytes that should be UTF-8 (Unicode 16, table 3-7). */
#ifndef K3_UTF8_H
#define K3_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

enum k3_utf8_kind {
    K3_UTF8_GOOD, /* *used bytes are one well-formed character */
    K3_UTF8_BAD,  /* *used bytes are a maximal ill-formed subpart: one U+FFFD */
    K3_UTF8_PART  /* all n bytes are the beginning of a character */
};

/* Looks at p[0..n), n >= 1. */
enum k3_utf8_kind k3_utf8_step(const char *p, size_t n, size_t *used);

/* The character at p, which must be well-formed; *used its bytes. */
uint32_t k3_utf8_get(const char *p, size_t *used);

bool k3_utf8_valid(const char *p, size_t n);
void k3_utf8_put(struct k3_buf *b, uint32_t cp); /* a scalar value */

/* Puts p[0..n) with U+FFFD for each maximal ill-formed subpart, an incomplete end included. */
void k3_utf8_repair(struct k3_buf *b, const char *p, size_t n);

#endif
