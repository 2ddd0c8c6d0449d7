/* json.h - JSON values with their source text kept.
 *
 * The chat format needs what jansson cannot give: numbers as written, keys given twice, integers of
 * any size, lone surrogates read as U+FFFD. Files of the program itself are read with jansson. */
#ifndef K3_JSON_H
#define K3_JSON_H

#include "../k3.h"
#include "buf.h"

enum { K3_JSON_DEPTH = 512 }; /* deepest nesting that k3_json_parse() takes */

enum k3_json_type { K3_JSON_NULL, K3_JSON_TRUE, K3_JSON_FALSE, K3_JSON_NUMBER, K3_JSON_STRING,
                    K3_JSON_ARRAY, K3_JSON_OBJECT };

struct k3_json {
    enum k3_json_type type;
    char *text;              /* STRING: decoded bytes; NUMBER: as written; zero-terminated */
    size_t len;
    struct k3_json *items;   /* ARRAY, OBJECT: values in order */
    struct k3_json *keys;    /* OBJECT: STRING keys, parallel to items, duplicates kept */
    size_t n;
};

/* One whole JSON text, as RFC 8259 has it. Errors: K3_USAGE with line and column (in characters).
 * Free with k3_json_free(); NULL is fine there. */
struct k3_json *k3_json_parse(const char *text, size_t len, struct k3_error *err);
void k3_json_free(struct k3_json *j);
/* The value of the last such key, or NULL; NULL as well when `object` is NULL or no object. */
const struct k3_json *k3_json_get(const struct k3_json *object, const char *key);

/* ---- writing ----------------------------------------------------------------------------- */

enum k3_json_style {
    K3_JSON_COMPACT_SORTED, /* separators "," and ":", keys of all objects in byte order */
    K3_JSON_SPACED          /* separators ", " and ": ", keys in their order */
};
/* Appends the value. A key given twice keeps its first position and its last value. Integers keep
 * their digits; a number with a point or an exponent is written as the shortest form of its double
 * (100.0, 1e-05, Infinity). */
void k3_json_write(struct k3_buf *b, const struct k3_json *j, enum k3_json_style style);
/* Appends text[0..len) with what must be escaped escaped, without quotes. */
void k3_json_write_escaped(struct k3_buf *b, const char *text, size_t len);
/* The positions of an object's members to look at when a key given twice keeps its first position
 * and its last value: order[i] is where the i-th value stands. order has room for object->n.
 * Returns how many; false in *ok when memory ran out. */
size_t k3_json_members(const struct k3_json *object, bool sorted, size_t *order, bool *ok);

/* ---- scanning without building values ---------------------------------------------------- */

enum k3_json_dialect {
    K3_JSON_STRICT, /* RFC 8259 */
    K3_JSON_LAX     /* also control characters inside strings, NaN, Infinity, -Infinity */
};
/* The end of the one value that begins at p, or NULL when none does, memory runs out or it nests
 * deeper than max_depth. Does not recurse. */
const char *k3_json_skip(const char *p, const char *end, enum k3_json_dialect dialect,
                         size_t max_depth);
const char *k3_json_skip_space(const char *p, const char *end);
const char *k3_json_skip_string(const char *p, const char *end, enum k3_json_dialect dialect);
const char *k3_json_skip_number(const char *p, const char *end);
/* Appends the characters of the string whose text, quotes included, is p[0..len) (as
 * k3_json_skip_string found it). Lone surrogates and ill-formed bytes become U+FFFD. */
void k3_json_decode_string(struct k3_buf *b, const char *p, size_t len);

#endif
