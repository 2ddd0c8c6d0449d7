/* jsonout.h - writes JSON as it goes, for results that are too large to be built in memory first.
 * Strings go through jansson. Write errors stay in the stream's error flag. */
#ifndef K3CHAT_JSONOUT_H
#define K3CHAT_JSONOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSONOUT_DEPTH 16

struct jsonout {
    FILE *f;
    unsigned depth;
    bool filled[JSONOUT_DEPTH]; /* something stands in the container of that depth */
    bool failed;                /* no memory for a string */
};

/* key NULL: an element of an array, or the whole value. */
void jsonout_open(struct jsonout *j, const char *key, char bracket); /* '{' or '[' */
void jsonout_close(struct jsonout *j, char bracket);                 /* '}' or ']' */
void jsonout_int(struct jsonout *j, const char *key, int64_t v);
void jsonout_u64(struct jsonout *j, const char *key, uint64_t v);
void jsonout_real(struct jsonout *j, const char *key, double v);     /* not finite: null */
void jsonout_string(struct jsonout *j, const char *key, const char *text, size_t n); /* UTF-8 */
void jsonout_null(struct jsonout *j, const char *key);
void jsonout_ids(struct jsonout *j, const char *key, const int32_t *ids, size_t n);
void jsonout_line(struct jsonout *j); /* a line break, for people who look */

#endif
