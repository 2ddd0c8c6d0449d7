/* transcript_parse.c - from lines to a conversation, and to its branches; see transcript.h. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transcript_reading.h"

#define FAIL_LINE(rd, ...) (k3_fail((rd)->err, K3_FAILED, __VA_ARGS__), reading_fail_line(rd))

/* An answer that had come to its length when the program was killed or the disk was full lacks only
 * the record of its end. */
static void settle(struct message *m)
{
    const json_int_t most = json_integer_value(json_object_get(m->settings, "max_tokens"));
    if (m->unfinished && most > 0 && m->ids.n >= (size_t)most) {
        m->unfinished = false;
        m->finish = FINISH_LENGTH;
    }
}

/* The chain from the tip to the first message becomes the conversation. */
static enum k3_status build(struct reading *rd, struct conversation *c)
{
    size_t depth = 0;
    for (int64_t id = rd->tip; id != 0; id = reading_find(rd, id)->m.parent)
        depth++;
    struct entry **chain = calloc(depth + 1, sizeof *chain);
    if (chain == NULL)
        return k3_fail_memory(rd->err, rd->path, depth * sizeof *chain);
    size_t i = depth;
    for (int64_t id = rd->tip; id != 0; id = chain[i]->m.parent)
        chain[--i] = reading_find(rd, id);
    enum k3_status status = K3_OK;
    for (i = 0; status == K3_OK && i < depth; i++)
        if (!chain[i]->withdrawn) {
            struct message copy = chain[i]->m; /* the entry's parts move into the conversation */
            chain[i]->m.body = NULL;
            chain[i]->m.ids = (struct k3_ids){0};
            chain[i]->m.settings = chain[i]->m.figures = NULL;
            settle(&copy);
            status = conversation_push(c, &copy, rd->err);
        }
    free(chain);
    return status;
}

/* One line; *torn when it is the last one and no JSON. */
static enum k3_status take_line(struct reading *rd, const char *text, size_t n, bool last,
                                bool *torn)
{
    json_error_t why;
    json_t *rec = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (rec == NULL) {
        *torn = last;
        if (last)
            return K3_OK;
        return FAIL_LINE(rd, "no valid JSON in the middle of the file: %s", why.text);
    }
    enum k3_status status;
    if (!json_is_object(rec))
        status = FAIL_LINE(rd, "a record is a JSON object, this is none");
    else
        status = rd->line == 1 ? reading_take_header(rd, rec) : reading_take_record(rd, rec);
    json_decref(rec);
    return status;
}

static enum k3_status take_lines(struct reading *rd, const char *text, size_t len,
                                 struct transcript_contents *out)
{
    while (out->whole < len) {
        const char *at = text + out->whole;
        const char *nl = memchr(at, '\n', len - out->whole);
        if (nl == NULL) {
            out->torn = true;
            return K3_OK;
        }
        rd->line++;
        const size_t n = (size_t)(nl - at);
        if (take_line(rd, at, n, out->whole + n + 1 == len, &out->torn) != K3_OK)
            return rd->err->status;
        if (out->torn)
            return K3_OK;
        out->whole += n + 1;
        out->records += rd->line > 1;
        out->has_header = true;
    }
    return K3_OK;
}

static void free_reading(struct reading *rd)
{
    for (size_t i = 0; i < rd->n; i++)
        message_free(&rd->v[i].m);
    free(rd->v);
}

static enum k3_status parse(struct reading *rd, const char *text, size_t len, int64_t tip,
                            struct transcript_contents *out)
{
    memset(out, 0, sizeof *out);
    enum k3_status status = take_lines(rd, text, len, out);
    if (status == K3_OK && tip != 0 && (reading_find(rd, tip) == NULL || reading_find(rd, tip)->withdrawn))
        status = k3_fail(rd->err, K3_USAGE, "%s: there is no message %lld", rd->path,
                         (long long)tip);
    if (status == K3_OK && tip != 0)
        rd->tip = tip;
    if (status == K3_OK)
        status = build(rd, &out->conversation);
    if (rd->n > 0)
        out->last_id = rd->v[rd->n - 1].m.id;
    free_reading(rd);
    if (status != K3_OK)
        conversation_free(&out->conversation);
    return status;
}

enum k3_status transcript_parse(const char *text, size_t len, const char *path,
                                struct transcript_contents *out, struct k3_error *err)
{
    struct reading rd = {.path = path, .err = err};
    return parse(&rd, text, len, 0, out);
}

enum k3_status transcript_parse_at(const char *text, size_t len, const char *path, int64_t tip,
                                   struct transcript_contents *out, struct k3_error *err)
{
    struct reading rd = {.path = path, .err = err};
    return parse(&rd, text, len, tip, out);
}

/* ---- branches ---------------------------------------------------------------------------- */

static void take_words(const struct message *m, char *out, size_t cap)
{
    size_t n = 0;
    const char *text = message_text(m, "content", &n);
    if (out[0] == '\0')
        snprintf(out, cap, "%.*s", (int)(n < cap ? n : cap), text);
}

static void fill_branch(struct reading *rd, const struct entry *e, struct transcript_branch *b)
{
    *b = (struct transcript_branch){.tip = e->m.id, .time = e->m.time,
                                    .current = e->m.id == rd->tip};
    for (int64_t id = e->m.id; id != 0; id = reading_find(rd, id)->m.parent) {
        const struct message *m = &reading_find(rd, id)->m;
        if (reading_find(rd, id)->withdrawn)
            continue;
        b->messages++;
        if (strcmp(message_role(m), "user") == 0)
            take_words(m, b->question, sizeof b->question);
        else if (strcmp(message_role(m), "assistant") == 0 && b->question[0] == '\0')
            take_words(m, b->answer, sizeof b->answer);
    }
}

enum k3_status transcript_branches(const char *text, size_t len, const char *path,
                                   struct transcript_branch **list, size_t *n,
                                   struct k3_error *err)
{
    struct reading rd = {.path = path, .err = err};
    struct transcript_contents out = {0};
    enum k3_status status = take_lines(&rd, text, len, &out);
    *list = status == K3_OK ? calloc(rd.n + 1, sizeof **list) : NULL;
    *n = 0;
    if (status == K3_OK && *list == NULL)
        status = k3_fail_memory(err, "the branches", rd.n * sizeof **list);
    for (size_t i = 0; status == K3_OK && i < rd.n; i++)
        if (!rd.v[i].withdrawn && rd.v[i].m.parent != 0)
            reading_find(&rd, rd.v[i].m.parent)->followed = true;
    for (size_t i = 0; status == K3_OK && i < rd.n; i++)
        if (!rd.v[i].withdrawn && (!rd.v[i].followed || rd.v[i].m.id == rd.tip))
            fill_branch(&rd, &rd.v[i], &(*list)[(*n)++]);
    free_reading(&rd);
    return status;
}
