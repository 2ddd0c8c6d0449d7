/* json.c - building JSON values. See json.h. */
#include "json.h"

#include <stdlib.h>
#include <string.h>

#include "utf8.h"

struct parser {
    const char *begin, *p, *end;
    const char *what; /* the fault found at p; NULL = none yet */
    bool no_memory;
    size_t depth;
};

static bool parse_value(struct parser *s, struct k3_json *out);

static bool fault(struct parser *s, const char *what)
{
    if (!s->what)
        s->what = what;
    return false;
}

static bool memory_fault(struct parser *s)
{
    s->no_memory = true;
    return false;
}

static void free_members(struct k3_json *j)
{
    free(j->text);
    for (size_t i = 0; i < j->n; i++) {
        free_members(&j->items[i]); /* no deeper than K3_JSON_DEPTH */
        if (j->keys)
            free(j->keys[i].text);
    }
    free(j->items);
    free(j->keys);
}

static bool parse_string(struct parser *s, struct k3_json *out)
{
    if (s->p == s->end || *s->p != '"')
        return fault(s, "a string is expected here");
    const char *q = k3_json_skip_string(s->p, s->end, K3_JSON_STRICT);
    if (!q)
        return fault(s, "this string has no end, a bad escape or a bare control character");
    struct k3_buf b = {0};
    k3_json_decode_string(&b, s->p, (size_t)(q - s->p));
    out->type = K3_JSON_STRING;
    out->text = k3_buf_take(&b, &out->len);
    s->p = q;
    return out->text ? true : memory_fault(s);
}

static bool parse_number(struct parser *s, struct k3_json *out)
{
    const char *q = k3_json_skip_number(s->p, s->end);
    if (!q)
        return fault(s, "a value is expected here");
    out->type = K3_JSON_NUMBER;
    out->len = (size_t)(q - s->p);
    out->text = malloc(out->len + 1);
    if (!out->text)
        return memory_fault(s);
    memcpy(out->text, s->p, out->len);
    out->text[out->len] = '\0';
    s->p = q;
    return true;
}

static bool parse_word(struct parser *s, struct k3_json *out)
{
    static const struct {
        const char *word;
        enum k3_json_type type;
    } words[] = {{"null", K3_JSON_NULL}, {"true", K3_JSON_TRUE}, {"false", K3_JSON_FALSE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i].word);
        if ((size_t)(s->end - s->p) >= n && memcmp(s->p, words[i].word, n) == 0) {
            out->type = words[i].type;
            s->p += n;
            return true;
        }
    }
    return parse_number(s, out);
}

/* Room for one more member; it is zero. */
static bool grow(struct parser *s, struct k3_json *out, size_t *cap, bool keys)
{
    if (out->n == *cap) {
        const size_t more = *cap ? *cap * 2 : 4;
        if (more > SIZE_MAX / sizeof *out->items)
            return memory_fault(s);
        struct k3_json *v = realloc(out->items, more * sizeof *v);
        if (!v)
            return memory_fault(s);
        out->items = v;
        if (keys) {
            v = realloc(out->keys, more * sizeof *v);
            if (!v)
                return memory_fault(s);
            out->keys = v;
        }
        *cap = more;
    }
    memset(&out->items[out->n], 0, sizeof *out->items);
    if (keys)
        memset(&out->keys[out->n], 0, sizeof *out->keys);
    return true;
}

static void skip_space(struct parser *s)
{
    s->p = k3_json_skip_space(s->p, s->end);
}

static bool parse_member(struct parser *s, struct k3_json *out)
{
    const size_t i = out->n++; /* counted first, so that it is freed whatever happens */
    if (out->type == K3_JSON_OBJECT) {
        if (!parse_string(s, &out->keys[i]))
            return false;
        skip_space(s);
        if (s->p == s->end || *s->p != ':')
            return fault(s, "':' is expected here");
        s->p++;
        skip_space(s);
    }
    return parse_value(s, &out->items[i]);
}

static bool parse_container(struct parser *s, struct k3_json *out)
{
    const bool object = *s->p++ == '{';
    const char close = object ? '}' : ']';
    size_t cap = 0;
    out->type = object ? K3_JSON_OBJECT : K3_JSON_ARRAY;
    skip_space(s);
    if (s->p < s->end && *s->p == close) {
        s->p++;
        return true;
    }
    for (;;) {
        if (!grow(s, out, &cap, object) || !parse_member(s, out))
            return false;
        skip_space(s);
        if (s->p < s->end && *s->p == close) {
            s->p++;
            return true;
        }
        if (s->p == s->end || *s->p != ',')
            return fault(s, object ? "',' or '}' is expected here" : "',' or ']' is expected here");
        s->p++;
        skip_space(s);
    }
}

static bool parse_value(struct parser *s, struct k3_json *out)
{
    if (s->p == s->end)
        return fault(s, "a value is expected here");
    if (*s->p == '"')
        return parse_string(s, out);
    if (*s->p != '{' && *s->p != '[')
        return parse_word(s, out);
    if (s->depth == K3_JSON_DEPTH)
        return fault(s, "values are nested more than 512 deep");
    s->depth++;
    const bool ok = parse_container(s, out);
    s->depth--;
    return ok;
}

static void report(const struct parser *s, struct k3_error *err)
{
    size_t line = 1, column = 1;
    for (const char *q = s->begin; q < s->p; q++) {
        if (*q == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*q & 0xC0) != 0x80) {
            column++;
        }
    }
    k3_fail(err, K3_USAGE, "line %zu, column %zu: not valid JSON: %s", line, column,
            s->p == s->end ? "the text ends too early" : s->what);
}

struct k3_json *k3_json_parse(const char *text, size_t len, struct k3_error *err)
{
    struct parser s = {.begin = text, .p = text, .end = text + len};
    struct k3_json *j = calloc(1, sizeof *j);
    if (!j) {
        k3_fail_memory(err, "JSON", sizeof *j);
        return NULL;
    }
    skip_space(&s);
    bool ok = parse_value(&s, j);
    if (ok) {
        skip_space(&s);
        if (s.p < s.end)
            ok = fault(&s, "nothing may follow the value");
    }
    if (ok)
        return j;
    if (s.no_memory)
        k3_fail_memory(err, "JSON", len);
    else
        report(&s, err);
    k3_json_free(j);
    return NULL;
}

void k3_json_free(struct k3_json *j)
{
    if (!j)
        return;
    free_members(j);
    free(j);
}

const struct k3_json *k3_json_get(const struct k3_json *object, const char *key)
{
    if (!object || object->type != K3_JSON_OBJECT)
        return NULL;
    const size_t len = strlen(key);
    for (size_t i = object->n; i-- > 0;)
        if (object->keys[i].len == len && memcmp(object->keys[i].text, key, len) == 0)
            return &object->items[i];
    return NULL;
}
