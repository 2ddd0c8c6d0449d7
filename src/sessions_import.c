/* sessions_import.c - messages of other programs; see sessions.h. */
#include <config.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "paths.h"
#include "recorder.h"
#include "sessions.h"

#define IMPORT_MAX_BYTES (256u << 20)

/* Role names in lower case; a developer is the system to K3. */
static enum k3_status settle_role(json_t *body, size_t number, struct k3_error *err)
{
    const json_t *role = json_object_get(body, "role");
    char name[32] = "";
    if (!json_is_string(role))
        return k3_fail(err, K3_USAGE, "message %zu has no \"role\"", number);
    snprintf(name, sizeof name, "%s", json_string_value(role));
    for (char *p = name; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    json_t *settled = json_string(strcmp(name, "developer") == 0 ? "system" : name);
    return json_object_set_new(body, "role", settled) == 0 ? K3_OK
                                                           : k3_fail_memory(err, "a message", 0);
}

/* A tool's result may name its call by "id", which is a record's own field here. */
static enum k3_status settle_id(json_t *body, struct k3_error *err)
{
    json_t *id = json_object_get(body, "id");
    if (id != NULL && json_object_get(body, "tool_call_id") == NULL &&
        json_object_set(body, "tool_call_id", id) != 0)
        return k3_fail_memory(err, "a message", 0);
    json_object_del(body, "id");
    return K3_OK;
}

static enum k3_status add(struct conversation *c, const json_t *from, struct k3_error *err)
{
    if (!json_is_object(from))
        return k3_fail(err, K3_USAGE, "message %zu is no object", c->n + 1);
    struct message m = {.body = json_copy((json_t *)from)};
    if (m.body == NULL)
        return k3_fail_memory(err, "a message", 0);
    if (settle_role(m.body, c->n + 1, err) != K3_OK || settle_id(m.body, err) != K3_OK) {
        message_free(&m);
        return err->status;
    }
    return conversation_push(c, &m, err);
}

static enum k3_status add_all(struct conversation *c, const json_t *list, struct k3_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (add(c, json_array_get(list, i), err) != K3_OK)
            return err->status;
    return K3_OK;
}

/* A message, or an object that holds a conversation. */
static enum k3_status add_object(struct conversation *c, const json_t *j, struct k3_error *err)
{
    const json_t *list = json_object_get(j, "messages"), *format = json_object_get(j, "format");
    if (json_is_string(format) && strcmp(json_string_value(format), "k3chat-transcript") == 0)
        return k3_fail(err, K3_USAGE, "this is a transcript already: put it into the folder of "
                                      "sessions as NAME.jsonl");
    if (!json_is_array(list))
        return add(c, j, err);
    if (c->n > 0)
        return k3_fail(err, K3_USAGE, "there is more than one conversation in the file");
    return add_all(c, list, err);
}

static enum k3_status add_lines(struct conversation *c, const char *text, size_t len,
                                struct k3_error *err)
{
    size_t line = 0;
    enum k3_status status = K3_OK;
    for (size_t at = 0; status == K3_OK && at < len;) {
        const char *nl = memchr(text + at, '\n', len - at);
        const size_t n = nl == NULL ? len - at : (size_t)(nl - (text + at));
        line++;
        if (n > strspn(text + at, " \t\r")) {
            json_error_t why;
            json_t *j = json_loadb(text + at, n, JSON_ALLOW_NUL, &why);
            status = j == NULL ? k3_fail(err, K3_USAGE, "no valid JSON: %s", why.text)
                               : add_object(c, j, err);
            json_decref(j);
            if (status != K3_OK)
                k3_fail_in(err, "line %zu", line);
        }
        at += n + 1;
    }
    return status;
}

/* One JSON value, or else lines of them. */
static enum k3_status read_file(struct conversation *c, const char *path, struct k3_error *err)
{
    size_t len = 0;
    char *text = path_read_file(path, IMPORT_MAX_BYTES, &len, err);
    if (text == NULL)
        return err->status;
    json_error_t why;
    json_t *j = json_loadb(text, len, JSON_ALLOW_NUL, &why);
    enum k3_status status;
    if (json_is_array(j))
        status = add_all(c, j, err);
    else if (j != NULL)
        status = add_object(c, j, err);
    else if (text[strspn(text, " \t\r\n")] == '[')
        status = k3_fail(err, K3_USAGE, "line %d: no valid JSON: %s", why.line, why.text);
    else
        status = add_lines(c, text, len, err);
    json_decref(j);
    free(text);
    if (status == K3_OK && c->n == 0)
        status = k3_fail(err, K3_USAGE, "there is no message in it");
    return status == K3_OK ? K3_OK : k3_fail_in(err, "%s", path);
}

static enum k3_status store(const struct conversation *c, const char *name, struct k3_error *err)
{
    struct conversation old = {0};
    char *note = NULL;
    struct transcript *t = transcript_open(name, &old, &note, err);
    free(note);
    if (t == NULL)
        return err->status;
    printf("%s\n", transcript_name(t));
    struct recorder *r = recorder_new(t, 0, NULL, NULL, err);
    for (size_t i = 0; r != NULL && i < c->n; i++) {
        /* The last one takes the others to the disk with it. */
        recorder_set_sync(r, i + 1 < c->n ? RUN_SYNC_NEVER : RUN_SYNC_MESSAGES);
        recorder_add(r, &c->v[i]);
    }
    const bool failed = r == NULL || recorder_failing(r);
    recorder_free(r);
    conversation_free(&old);
    return failed ? k3_fail(err, K3_FAILED, "the session could not be written whole") : K3_OK;
}

enum k3_status sessions_import(const char *path, const char *name, struct k3_error *err)
{
    struct conversation c = {0};
    enum k3_status status = K3_OK;
    if (name != NULL) {
        char *file = transcript_file(name, err);
        if (file == NULL)
            return err->status;
        if (access(file, F_OK) == 0)
            status = k3_fail(err, K3_USAGE, "%s: there is a session of that name already", file);
        free(file);
    }
    if (status == K3_OK)
        status = read_file(&c, path, err);
    if (status == K3_OK && conversation_check(&c, err) != K3_OK)
        status = k3_fail_in(err, "%s", path);
    if (status == K3_OK)
        status = store(&c, name, err);
    conversation_free(&c);
    return status;
}
