/* sumlist.h - lists of SHA-256 sums as sha256sum writes and reads them. */
#ifndef K3CHAT_SUMLIST_H
#define K3CHAT_SUMLIST_H

#include "digest.h"

#define SUMLIST_NAME "SHA256SUMS" /* the list of a checkpoint, in its folder */
#define SUMLIST_MAX (16u << 20)   /* bytes of a list */

struct sum {
    char *name;
    char hex[DIGEST_HEX];
    size_t line; /* where it stood; 0 = it was put */
};

struct sumlist { /* zero-initialise */
    char *path;  /* for messages */
    struct sum *v;
    size_t n;
};

/* Takes the lines "DIGEST  NAME" or "DIGEST *NAME" and "SHA256 (NAME) = DIGEST"; a leading "./" of a
 * name is dropped; empty lines and lines that begin with # are passed over. Any other line, and a
 * name with two digests, is refused with its number (K3_USAGE). `path` is for messages. */
enum k3_status sumlist_parse(struct sumlist *l, const char *path, const char *text, size_t len,
                             struct k3_error *err);
enum k3_status sumlist_read(struct sumlist *l, const char *path, struct k3_error *err);

/* NULL when the name is not in the list. */
const struct sum *sumlist_find(const struct sumlist *l, const char *name);
/* Adds, or replaces the digest of that name. */
enum k3_status sumlist_put(struct sumlist *l, const char *name, const char *hex,
                           struct k3_error *err);

/* Writes the list, sorted by name; the file appears whole or not at all. */
enum k3_status sumlist_write(struct sumlist *l, const char *path, struct k3_error *err);
void sumlist_free(struct sumlist *l);

#endif
