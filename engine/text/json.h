/* json.h - JSON values with their source text kept.
 *
 * The chat format needs what jansson cannot give: numbers as written, keys given twice, integers of
 * any size, lone surrogates read as U+FFFD. Files of the program itself are read with jansson. */
#ifndef K3_JSON_H
#define K3_JSON_H

#include "../k3.h"

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

/* One whole JSON text. Errors: K3_USAGE with line and column. Depth limit 512. Free with
 * k3_json_free(). */
struct k3_json *k3_json_parse(const char *text, size_t len, struct k3_error *err);
void k3_json_free(struct k3_json *j);
/* The value of the last such key, or NULL. */
const struct k3_json *k3_json_get(const struct k3_json *object, const char *key);

#endif
