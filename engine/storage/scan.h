/* scan.h - strict JSON in one pass over a text in memory: how index and headers of a checkpoint are
 * read, some hundred thousand members at once. Strings are decoded where they stand, and nothing is
 * allocated but a list of the keys of the objects that are open.
 *
 * Taken is what RFC 8259 allows, and of that, as jansson has it: well-formed UTF-8, no \u0000, no
 * lone surrogate, whole numbers of 64 bits, other numbers within a double, no key twice in one
 * object, values nested 2048 deep. tests/test_scan.c compares the two.
 *
 * Every function returns false (NULL) with the error set when the text is not taken; the scan is
 * over then. One thread at a time per scan. */
#ifndef K3_SCAN_H
#define K3_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../k3_error.h"

struct k3_scan_key {
    const char *text;
    size_t len;
};

struct k3_scan {
    char *p, *end;          /* what is left; *end is a zero byte */
    const char *line_at;    /* where the present line begins */
    size_t line;            /* from 1 */
    unsigned depth;         /* values open around p */
    const char *file, *what; /* "model.safetensors", "header" */
    struct k3_error *err;
    struct k3_scan_key *keys; /* of the open objects whose keys are watched */
    size_t n_keys, cap_keys;
};

/* text[n] must be a zero byte; the text is written to. file, what and err outlive the scan. */
void k3_scan_begin(struct k3_scan *s, char *text, size_t n, const char *file, const char *what,
                   struct k3_error *err);
void k3_scan_end(struct k3_scan *s);

/* A member of an object: key[len] is a zero byte, the value comes next and must be taken. The key
 * stays where it is as long as the text does. */
typedef bool (*k3_scan_member_fn)(void *ud, struct k3_scan *s, char *key, size_t len);
/* An element of a list, which must be taken. */
typedef bool (*k3_scan_element_fn)(void *ud, struct k3_scan *s);

enum k3_scan_keys {
    K3_SCAN_WATCHED, /* a key that stands twice in this object is refused here */
    K3_SCAN_UNIQUE   /* the caller sees to it: the keys are many */
};

/* The whole text: one object and white space. */
bool k3_scan_document(struct k3_scan *s, enum k3_scan_keys keys, k3_scan_member_fn fn, void *ud);

/* The values; the one that is next must be of this kind, see k3_scan_next(). */
bool k3_scan_object(struct k3_scan *s, enum k3_scan_keys keys, k3_scan_member_fn fn, void *ud);
bool k3_scan_list(struct k3_scan *s, k3_scan_element_fn fn, void *ud);
char *k3_scan_string(struct k3_scan *s, size_t *len); /* zero-terminated, without zero bytes */
/* *whole: it is a whole number, and that is *v. */
bool k3_scan_number(struct k3_scan *s, bool *whole, int64_t *v);
bool k3_scan_skip(struct k3_scan *s); /* of any kind */

/* What the next value begins with: '{', '[', '"', '0' for a number, 0 for all else. */
char k3_scan_next(struct k3_scan *s);

/* The refusal of a key that stands twice. Returns false. */
bool k3_scan_twice(struct k3_scan *s, const char *key);

#endif
