/* chat_tools.c - tool calls of the assistant, and their results put in the order of the calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "chat_render.h"

static const char *type_name(const char *first_byte)
{
    switch (*first_byte) {
    case '"':
        return "string";
    case '{':
        return "object";
    case '[':
        return "array";
    case 't':
    case 'f':
        return "boolean";
    case 'n':
        return "null";
    default:
        return "number"; /* NaN and Infinity as well */
    }
}

/* ---- arguments ----------------------------------------------------------------------------- */

static void open_argument(struct k3_render *r, const char *key, size_t len, const char *type)
{
    const struct k3_attr attrs[] = {{"key", key, len}, {"type", type, strlen(type)}};
    k3_render_open(r, "argument", attrs, 2);
}

/* One member of arguments that came as an object. */
static void put_member(struct k3_render *r, const struct k3_json *key, const struct k3_json *value)
{
    struct k3_buf b = {0};
    k3_json_write(&b, value, K3_JSON_SPACED);
    if (b.failed) {
        k3_render_memory(r);
    } else {
        open_argument(r, key->text, key->len, type_name(b.v));
        if (value->type == K3_JSON_STRING)
            k3_render_text(r, value->text, value->len);
        else
            k3_render_text(r, b.v, b.n);
        k3_render_close(r, "argument");
    }
    k3_buf_free(&b);
}

static void put_members(struct k3_render *r, const struct k3_json *object)
{
    bool ok = false;
    size_t *order = malloc((object->n ? object->n : 1) * sizeof *order);
    const size_t n = order ? k3_json_members(object, false, order, &ok) : 0;
    if (!ok)
        k3_render_memory(r);
    for (size_t i = 0; i < n; i++)
        put_member(r, &object->keys[order[i]], &object->items[order[i]]);
    free(order);
}

/* One pair of arguments that came as a string: key and value are pieces of its text. */
static void put_pair(struct k3_render *r, const char *key, size_t key_len, const char *value,
                     size_t len)
{
    struct k3_buf k = {0}, v = {0};
    k3_json_decode_string(&k, key, key_len);
    if (*value == '"')
        k3_json_decode_string(&v, value, len);
    else
        k3_buf_put(&v, value, len);
    k3_buf_put(&k, "", 0);
    k3_buf_put(&v, "", 0);
    if (k.failed || v.failed) {
        k3_render_memory(r);
    } else {
        open_argument(r, k.v, k.n, type_name(value));
        k3_render_text(r, v.v, v.n);
        k3_render_close(r, "argument");
    }
    k3_buf_free(&k);
    k3_buf_free(&v);
}

/* Reads a JSON object one level deep; what follows its end is not looked at. False when it is not
 * one. Renders the pairs when r is not NULL. */
static bool read_pairs(struct k3_render *r, const char *p, const char *end)
{
    p = k3_json_skip_space(p, end);
    if (p == end || *p != '{')
        return false;
    p = k3_json_skip_space(p + 1, end);
    if (p < end && *p == '}')
        return true;
    for (;;) {
        const char *key = p;
        const char *key_end = k3_json_skip_string(key, end, K3_JSON_LAX);
        if (!key_end)
            return false;
        p = k3_json_skip_space(key_end, end);
        if (p == end || *p != ':')
            return false;
        const char *value = k3_json_skip_space(p + 1, end);
        p = k3_json_skip(value, end, K3_JSON_LAX, K3_JSON_DEPTH);
        if (!p)
            return false;
        if (r)
            put_pair(r, key, (size_t)(key_end - key), value, (size_t)(p - value));
        p = k3_json_skip_space(p, end);
        if (p == end || (*p != ',' && *p != '}'))
            return false;
        if (*p == '}')
            return true;
        p = k3_json_skip_space(p + 1, end);
    }
}

static void put_arguments(struct k3_render *r, const struct k3_json *arguments)
{
    if (!k3_json_present(arguments))
        return;
    if (arguments->type == K3_JSON_OBJECT) {
        put_members(r, arguments);
    } else if (arguments->type != K3_JSON_STRING) {
        k3_render_fail(r, "bad_arguments", "arguments of a tool call must be an object or a text");
    } else if (arguments->len > 0) {
        const char *text = arguments->text, *end = text + arguments->len;
        if (read_pairs(NULL, text, end)) {
            read_pairs(r, text, end);
            return;
        }
        const struct k3_attr type = {"type", "object", 6};
        k3_render_open(r, "json", &type, 1);
        k3_render_text(r, text, arguments->len);
        k3_render_close(r, "json");
    }
}

/* ---- calls --------------------------------------------------------------------------------- */

/* Where name and arguments of a call stand: in its "function", or in itself. */
static const struct k3_json *call_body(const struct k3_json *call)
{
    const struct k3_json *function = k3_json_get(call, "function");
    return k3_json_present(function) ? function : call;
}

static const struct k3_json *call_name(const struct k3_json *call)
{
    const struct k3_json *name = k3_json_get(call_body(call), "name");
    return name && name->type == K3_JSON_STRING ? name : NULL;
}

static void put_call(struct k3_render *r, const struct k3_json *call, size_t number)
{
    const struct k3_json *name = call_name(call);
    if (!name) {
        k3_render_fail(r, "bad_tool_call", "a tool call needs the name of a function");
        return;
    }
    char index[24];
    const int n = snprintf(index, sizeof index, "%zu", number);
    const struct k3_attr attrs[] = {{"tool", name->text, name->len}, {"index", index, (size_t)n}};
    k3_render_open(r, "call", attrs, 2);
    put_arguments(r, k3_json_get(call_body(call), "arguments"));
    k3_render_close(r, "call");
}

void k3_render_calls(struct k3_render *r, const struct k3_json *calls)
{
    if (!k3_json_present(calls))
        return;
    if (calls->type != K3_JSON_ARRAY) {
        k3_render_fail(r, "bad_tool_call", "tool_calls must be an array");
        return;
    }
    if (calls->n == 0)
        return;
    k3_render_open(r, "tools", NULL, 0);
    for (size_t i = 0; r->st == K3_OK && i < calls->n; i++)
        put_call(r, &calls->items[i], i + 1);
    k3_render_close(r, "tools");
}

/* ---- results ------------------------------------------------------------------------------- */

struct result {
    const struct k3_json *message;
    size_t place, call; /* where it stood; the call it answers */
};

static int by_call(const void *a, const void *b)
{
    const struct result *x = a, *y = b;
    if (x->call != y->call)
        return x->call < y->call ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Ids are compared as texts, a number by its digits; anything else is no id. */
static bool same_id(const struct k3_json *a, const struct k3_json *b)
{
    return a && b && (a->type == K3_JSON_STRING || a->type == K3_JSON_NUMBER) &&
           (b->type == K3_JSON_STRING || b->type == K3_JSON_NUMBER) && a->len == b->len &&
           memcmp(a->text, b->text, a->len) == 0;
}

/* The first call that the message answers by its id. */
static bool find_call(const struct k3_json *calls, const struct k3_json *message, size_t *call)
{
    const struct k3_json *id = k3_json_get(message, "tool_call_id");
    if (!id)
        id = k3_json_get(message, "id");
    for (*call = 0; calls && *call < calls->n; ++*call)
        if (same_id(id, k3_json_get(&calls->items[*call], "id")))
            return true;
    return false;
}

/* The name of the tool of a result that is not matched by id: its own, or that of the call with the
 * same number. NULL when there is none. */
static const struct k3_json *own_name(struct k3_render *r, const struct k3_json *message)
{
    const struct k3_json *name = k3_json_get(message, "tool");
    if (!name)
        name = k3_json_get(message, "name");
    if (k3_json_present(name)) {
        if (name->type != K3_JSON_STRING)
            k3_render_fail(r, "bad_message", "the name of the tool must be a text");
        return name;
    }
    if (!r->calls || r->results > r->calls->n)
        return NULL;
    return call_name(&r->calls->items[r->results - 1]);
}

static void put_result(struct k3_render *r, const struct k3_json *message,
                       const struct k3_json *name)
{
    r->results++;
    if (!name)
        name = own_name(r, message);
    if (!name) {
        k3_render_fail(r, "no_tool_name", "does not say which tool it is from: it has no \"tool\", "
                       "and the last assistant message has no such call");
        return;
    }
    if (r->st != K3_OK)
        return;
    char index[24];
    const int n = snprintf(index, sizeof index, "%zu", r->results);
    const struct k3_attr attrs[] = {
        {"role", "tool", 4}, {"tool", name->text, name->len}, {"index", index, (size_t)n}};
    k3_render_open(r, "message", attrs, 3);
    k3_render_content(r, k3_json_get(message, "content"));
    k3_render_end_message(r);
}

void k3_render_results(struct k3_render *r, const struct k3_json *messages, size_t first,
                       size_t end)
{
    const size_t n = end - first;
    struct result *v = calloc(n, sizeof *v);
    if (!v) {
        k3_render_memory(r);
        return;
    }
    bool matched = true;
    for (size_t i = 0; i < n; i++) {
        v[i] = (struct result){&messages->items[first + i], i, 0};
        matched = find_call(r->calls, v[i].message, &v[i].call) && matched;
    }
    if (matched)
        qsort(v, n, sizeof *v, by_call);
    for (size_t i = 0; r->st == K3_OK && i < n; i++) {
        r->message = first + v[i].place;
        put_result(r, v[i].message, matched ? call_name(&r->calls->items[v[i].call]) : NULL);
    }
    free(v);
}
