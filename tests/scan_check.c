/* scan_check.c - see scan_check.h. */
#include <config.h>

#include "scan_check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/storage/scan.h"

static json_t *read_value(struct k3_scan *s);

static bool read_member(void *ud, struct k3_scan *s, char *key, size_t len)
{
    json_t *object = ud;
    if (key[len] != '\0' || strlen(key) != len)
        abort();
    char *copy = strdup(key); /* what is read must not depend on the key staying */
    json_t *v = read_value(s);
    const bool good = v && json_object_set_new(object, copy, v) == 0;
    free(copy);
    return good;
}

static bool read_element(void *ud, struct k3_scan *s)
{
    json_t *v = read_value(s);
    return v && json_array_append_new(ud, v) == 0;
}

/* All numbers that are not whole are alike: nobody reads them. */
static json_t *read_number(struct k3_scan *s)
{
    bool whole = false;
    int64_t v = 0;
    if (!k3_scan_number(s, &whole, &v))
        return NULL;
    return whole ? json_integer(v) : json_real(0);
}

static json_t *keep_if(bool good, json_t *v)
{
    if (good)
        return v;
    json_decref(v);
    return NULL;
}

static json_t *read_value(struct k3_scan *s)
{
    size_t len;
    json_t *v;
    switch (k3_scan_next(s)) {
    case '{':
        v = json_object();
        return keep_if(k3_scan_object(s, K3_SCAN_WATCHED, read_member, v), v);
    case '[':
        v = json_array();
        return keep_if(k3_scan_list(s, read_element, v), v);
    case '"': {
        const char *text = k3_scan_string(s, &len);
        return text ? json_stringn(text, len) : NULL;
    }
    case '0':
        return read_number(s);
    default: {
        const char c = *s->p;
        if (!k3_scan_skip(s))
            return NULL;
        return c == 't' ? json_true() : c == 'f' ? json_false() : json_null();
    }
    }
}

static void flatten_reals(json_t *j)
{
    const char *key;
    size_t i;
    json_t *v;
    if (json_is_real(j))
        json_real_set(j, 0);
    json_object_foreach (j, key, v)
        flatten_reals(v);
    json_array_foreach (j, i, v)
        flatten_reals(v);
}

/* A copy of its own, so that reading behind the end is seen. */
static char *copy_text(const char *text, size_t n)
{
    char *copy = malloc(n + 1);
    if (!copy)
        abort();
    if (n > 0)
        memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

bool scan_check(const char *text, size_t n, bool *taken, const char **why)
{
    static char said[400];
    struct k3_error err = {0};
    struct k3_scan s;
    json_error_t je = {0};
    json_t *want = json_loadb(n > 0 ? text : "", n, JSON_REJECT_DUPLICATES, &je);
    json_t *got = json_object();
    char *copy = copy_text(text, n);
    k3_scan_begin(&s, copy, n, "file", "text", &err);
    const bool good = k3_scan_document(&s, K3_SCAN_WATCHED, read_member, got);
    k3_scan_end(&s);
    free(copy);
    flatten_reals(want);
    *taken = good && want;
    bool same = good == json_is_object(want) && (!good || json_equal(got, want));
    if (n > 0 && memchr(text, '\0', n)) /* jansson overlooks one behind a number */
        same = !good;
    if (!good && !err.message[0])
        same = false;
    if (!good && want && !json_is_object(want) && !memchr(text, '\0', n)) /* valid, but not what a checkpoint has */
        same = same && strstr(err.message, "is not a JSON object");
    snprintf(said, sizeof said, "jansson: %.100s, scan: %.250s",
             want ? "takes it" : je.text, good ? "takes it" : err.message);
    *why = said;
    json_decref(want);
    json_decref(got);
    return same;
}
