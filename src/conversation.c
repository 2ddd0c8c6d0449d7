/* conversation.c - see conversation.h. */
#include <config.h>

#include "conversation.h"

#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "paths.h"

#define MESSAGES_MAX_BYTES (256u << 20)

void message_free(struct message *m)
{
    json_decref(m->body);
    json_decref(m->settings);
    json_decref(m->figures);
    k3_ids_free(&m->ids);
    memset(m, 0, sizeof *m);
}

const char *message_text(const struct message *m, const char *field, size_t *len)
{
    const json_t *j = json_object_get(m->body, field);
    *len = json_string_length(j);
    return json_is_string(j) ? json_string_value(j) : "";
}

const char *message_role(const struct message *m)
{
    size_t n = 0;
    return message_text(m, "role", &n);
}

void conversation_free(struct conversation *c)
{
    for (size_t i = 0; i < c->n; i++)
        message_free(&c->v[i]);
    free(c->v);
    *c = (struct conversation){0};
}

enum k3_status conversation_push(struct conversation *c, struct message *m, struct k3_error *err)
{
    if (c->n == c->cap) {
        const size_t cap = c->cap == 0 ? 16 : 2 * c->cap;
        struct message *v = realloc(c->v, cap * sizeof *v);
        if (v == NULL) {
            message_free(m);
            return k3_fail_memory(err, "the conversation", cap * sizeof *v);
        }
        c->v = v;
        c->cap = cap;
    }
    c->v[c->n++] = *m;
    memset(m, 0, sizeof *m);
    return K3_OK;
}

struct message conversation_pop(struct conversation *c)
{
    return c->v[--c->n];
}

/* ---- bodies ------------------------------------------------------------------------------ */

static json_t *repaired_string(const char *text, size_t len)
{
    struct buffer b = {0};
    struct k3_utf8 u = {.n = 0};
    buffer_add(&b, "", 0);
    k3_utf8_feed(&u, text, len, buffer_add_fn, &b);
    k3_utf8_end(&u, buffer_add_fn, &b);
    json_t *j = b.failed ? NULL : json_stringn(b.v, b.n);
    buffer_free(&b);
    return j;
}

enum k3_status body_set(json_t *body, const char *field, const char *text, size_t len,
                        struct k3_error *err)
{
    json_t *j = repaired_string(text, len);
    if (j == NULL || json_object_set_new(body, field, j) != 0)
        return k3_fail_memory(err, "a message", len);
    return K3_OK;
}

json_t *body_new(const char *role, const char *text, size_t len, struct k3_error *err)
{
    json_t *body = json_object();
    if (body != NULL && json_object_set_new(body, "role", json_string(role)) == 0 &&
        body_set(body, "content", text, len, err) == K3_OK)
        return body;
    json_decref(body);
    k3_fail_memory(err, "a message", len);
    return NULL;
}

/* ---- files ------------------------------------------------------------------------------- */

#define LOAD_FLAGS (JSON_ALLOW_NUL)

static enum k3_status push_body(struct conversation *c, json_t *body, struct k3_error *err)
{
    struct message m = {.body = body};
    return conversation_push(c, &m, err);
}

static enum k3_status read_array(struct conversation *c, const json_t *list, struct k3_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (push_body(c, json_incref(json_array_get(list, i)), err) != K3_OK)
            return err->status;
    return K3_OK;
}

static bool is_blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strchr(" \t\r", text[i]) == NULL || text[i] == '\0')
            return false;
    return true;
}

static enum k3_status read_lines(struct conversation *c, const char *path, const char *text,
                                 size_t len, struct k3_error *err)
{
    size_t line = 1;
    for (size_t at = 0; at < len; line++) {
        const char *nl = memchr(text + at, '\n', len - at);
        const size_t n = nl == NULL ? len - at : (size_t)(nl - (text + at));
        if (!is_blank(text + at, n)) {
            json_error_t why;
            json_t *body = json_loadb(text + at, n, LOAD_FLAGS, &why);
            if (body == NULL)
                return k3_fail(err, K3_USAGE, "%s:%zu:%d: no valid JSON: %s", path, line,
                               why.column, why.text);
            if (push_body(c, body, err) != K3_OK)
                return err->status;
        }
        at += n + 1;
    }
    return K3_OK;
}

enum k3_status conversation_read(struct conversation *c, const char *path, struct k3_error *err)
{
    size_t len = 0;
    char *text = path_read_file(path, MESSAGES_MAX_BYTES, &len, err);
    if (text == NULL)
        return err->status;
    const size_t start = strspn(text, " \t\r\n");
    enum k3_status status;
    if (text[start] == '[') {
        json_error_t why;
        json_t *list = json_loadb(text, len, LOAD_FLAGS, &why);
        if (list == NULL)
            status = k3_fail(err, K3_USAGE, "%s:%d:%d: no valid JSON: %s", path, why.line,
                             why.column, why.text);
        else
            status = read_array(c, list, err);
        json_decref(list);
    } else {
        status = read_lines(c, path, text, len, err);
    }
    free(text);
    return status;
}
