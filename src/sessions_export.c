/* sessions_export.c - a conversation for other programs and for people; see sessions.h. */
#include <config.h>

#include <string.h>
#include <time.h>

#include "sessions.h"

static enum k3_status put_jsonl(const struct conversation *c, FILE *out, struct k3_error *err)
{
    for (size_t i = 0; i < c->n; i++) {
        if (json_dumpf(c->v[i].body, out, JSON_COMPACT) != 0)
            return k3_fail(err, K3_FAILED, "message %zu cannot be written as JSON", i + 1);
        putc('\n', out);
    }
    return K3_OK;
}

/* Content may also be an array of parts: their texts. */
static void put_content(const struct message *m, FILE *out)
{
    const json_t *content = json_object_get(m->body, "content"), *part;
    size_t i, n = 0;
    const char *text = message_text(m, "content", &n);
    fwrite(text, 1, n, out);
    json_array_foreach(content, i, part) {
        const json_t *t = json_object_get(part, "text");
        if (json_is_string(t))
            fwrite(json_string_value(t), 1, json_string_length(t), out);
    }
}

static void put_calls(const struct message *m, const char *before, FILE *out)
{
    const json_t *call;
    size_t i;
    json_array_foreach(json_object_get(m->body, "tool_calls"), i, call) {
        const json_t *f = json_object_get(call, "function");
        f = f == NULL ? call : f;
        const char *name = json_string_value(json_object_get(f, "name"));
        fprintf(out, "%stool call: %s ", before, name == NULL ? "?" : name);
        json_dumpf(json_object_get(f, "arguments"), out, JSON_COMPACT | JSON_ENCODE_ANY);
        putc('\n', out);
    }
}

static void put_head(const struct message *m, const char *before, const char *after, FILE *out)
{
    char stamp[64] = "";
    const time_t when = (time_t)m->time;
    struct tm tm;
    if (m->time > 0 && localtime_r(&when, &tm) != NULL)
        strftime(stamp, sizeof stamp, ", %Y-%m-%d %H:%M", &tm);
    fprintf(out, "%s%s%s", before, message_role(m), stamp);
    if (m->unfinished)
        fputs(", cut off", out);
    else if (m->tokens > 0 && m->finish != FINISH_STOP)
        fprintf(out, ", %s", session_finish_name(m->finish));
    fputs(after, out);
}

static void put_quoted(const char *text, size_t n, FILE *out)
{
    fputs("> ", out);
    for (size_t i = 0; i < n; i++) {
        putc(text[i], out);
        if (text[i] == '\n')
            fputs("> ", out);
    }
    fputs("\n\n", out);
}

static enum k3_status put_md(const struct conversation *c, FILE *out, struct k3_error *err)
{
    (void)err;
    for (size_t i = 0; i < c->n; i++) {
        const struct message *m = &c->v[i];
        size_t n = 0;
        const char *reasoning = message_text(m, "reasoning_content", &n);
        put_head(m, i == 0 ? "## " : "\n## ", "\n\n", out);
        if (n > 0)
            put_quoted(reasoning, n, out);
        put_content(m, out);
        putc('\n', out);
        put_calls(m, "\n", out);
    }
    return K3_OK;
}

static enum k3_status put_txt(const struct conversation *c, FILE *out, struct k3_error *err)
{
    (void)err;
    for (size_t i = 0; i < c->n; i++) {
        const struct message *m = &c->v[i];
        size_t n = 0;
        const char *reasoning = message_text(m, "reasoning_content", &n);
        put_head(m, i == 0 ? "--- " : "\n--- ", " ---\n", out);
        if (n > 0) {
            fputs("(thinking)\n", out);
            fwrite(reasoning, 1, n, out);
            fputs("\n(answer)\n", out);
        }
        put_content(m, out);
        putc('\n', out);
        put_calls(m, "", out);
    }
    return K3_OK;
}

enum k3_status sessions_export(const struct conversation *c, const char *name, const char *format,
                               FILE *out, struct k3_error *err)
{
    static const struct {
        const char *format;
        enum k3_status (*put)(const struct conversation *, FILE *, struct k3_error *);
    } formats[] = {{"md", put_md}, {"jsonl", put_jsonl}, {"txt", put_txt}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(format, formats[i].format) != 0)
            continue;
        if (strcmp(format, "md") == 0)
            fprintf(out, "# %s\n\n", name);
        return formats[i].put(c, out, err);
    }
    return k3_fail(err, K3_USAGE, "'%s' is no format: say md, jsonl or txt", format);
}
