/* digest.h - SHA-256: of bytes as they come, of whole files, and as text. */
#ifndef K3CHAT_DIGEST_H
#define K3CHAT_DIGEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../engine/k3_error.h"

#define DIGEST_HEX 65 /* 64 lower-case digits and the end */

struct digest {
    void *ctx; /* NULL when not begun */
};

/* Begins, or begins anew. A zero struct is fine. */
enum k3_status digest_begin(struct digest *d, struct k3_error *err);
enum k3_status digest_add(struct digest *d, const void *bytes, size_t n, struct k3_error *err);
/* The digest of what was added; digest_begin() comes before the next use. */
enum k3_status digest_end(struct digest *d, char hex[DIGEST_HEX], struct k3_error *err);
void digest_free(struct digest *d);

/* Copies 64 hexadecimal digits in lower case; false when text[0..n) is anything else. */
bool digest_parse(const char *text, size_t n, char hex[DIGEST_HEX]);

/* What a file is read for. */
struct digest_watch {
    atomic_uint_fast64_t *done; /* bytes read are added as they come; or NULL */
    const atomic_bool *stop;    /* ends the reading with K3_CANCELLED; or NULL */
};

/* Reads the regular file past the page cache where the file system lets it, else through it without
 * leaving the file's pages there. `size` gets the bytes read. A read error is K3_FAILED with file,
 * offset and errno. */
enum k3_status digest_file(const char *path, const struct digest_watch *watch, char hex[DIGEST_HEX],
                           uint64_t *size, struct k3_error *err);

/* Adds bytes 0 to n of an open file, through the page cache; a file that ends before is an error. */
enum k3_status digest_add_file(struct digest *d, int fd, const char *path, uint64_t n,
                               const struct digest_watch *watch, struct k3_error *err);

#endif
