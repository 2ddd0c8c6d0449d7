/* transcript_read.c - the records of a transcript; see transcript.h for what they mean. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "transcript_reading.h"

#define FAIL_LINE(rd, ...) (k3_fail((rd)->err, K3_FAILED, __VA_ARGS__), reading_fail_line(rd))

enum k3_status reading_fail_line(struct reading *rd)
{
    return k3_fail_in(rd->err, "%s: line %zu", rd->path, rd->line);
}

struct entry *reading_find(struct reading *rd, int64_t id)
{
    size_t lo = 0, hi = rd->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (rd->v[mid].m.id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < rd->n && rd->v[lo].m.id == id ? &rd->v[lo] : NULL;
}

/* ---- fields ------------------------------------------------------------------------------ */

static enum k3_status get_int(struct reading *rd, const json_t *rec, const char *field, int64_t min,
                              int64_t max, int64_t *out)
{
    const json_t *j = json_object_get(rec, field);
    if (!json_is_integer(j))
        return FAIL_LINE(rd, "'%s' is %s", field, j == NULL ? "missing" : "no whole number");
    const int64_t v = json_integer_value(j);
    if (v < min || v > max)
        return FAIL_LINE(rd, "'%s' is out of range: %lld", field, (long long)v);
    *out = v;
    return K3_OK;
}

static enum k3_status get_count(struct reading *rd, const json_t *rec, const char *field,
                                uint32_t *out)
{
    int64_t v = 0;
    if (json_object_get(rec, field) == NULL)
        return K3_OK;
    if (get_int(rd, rec, field, 0, UINT32_MAX, &v) != K3_OK)
        return rd->err->status;
    *out = (uint32_t)v;
    return K3_OK;
}

static enum k3_status add_ids(struct reading *rd, const json_t *rec, struct k3_ids *ids)
{
    const json_t *list = json_object_get(rec, "ids");
    if (list == NULL)
        return K3_OK;
    if (!json_is_array(list))
        return FAIL_LINE(rd, "'ids' is no array");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *j = json_array_get(list, i);
        if (!json_is_integer(j) || json_integer_value(j) < 0 || json_integer_value(j) > INT32_MAX)
            return FAIL_LINE(rd, "'ids' holds something that is no token id");
        if (k3_ids_push(ids, (int32_t)json_integer_value(j), rd->err) != K3_OK)
            return reading_fail_line(rd);
    }
    return K3_OK;
}

static enum k3_status get_finish(struct reading *rd, const json_t *rec, enum session_finish *out)
{
    const json_t *j = json_object_get(rec, "finish");
    *out = FINISH_STOP;
    if (j == NULL)
        return K3_OK;
    for (int f = FINISH_STOP; f <= FINISH_ERROR; f++) {
        if (json_is_string(j) &&
            strcmp(json_string_value(j), session_finish_name((enum session_finish)f)) == 0) {
            *out = (enum session_finish)f;
            return K3_OK;
        }
    }
    return FAIL_LINE(rd, "'finish' is none of stop, length, cancelled and error");
}

/* ---- records ----------------------------------------------------------------------------- */

/* id, parent and time; the parent must be there and not taken back. */
static enum k3_status get_place(struct reading *rd, const json_t *rec, struct message *m)
{
    if (get_int(rd, rec, "id", 1, INT64_MAX, &m->id) != K3_OK ||
        get_int(rd, rec, "time", 0, INT64_MAX, &m->time) != K3_OK)
        return rd->err->status;
    const json_t *parent = json_object_get(rec, "parent");
    if (parent == NULL)
        return FAIL_LINE(rd, "'parent' is missing");
    if (json_is_null(parent))
        return K3_OK;
    if (get_int(rd, rec, "parent", 1, INT64_MAX, &m->parent) != K3_OK)
        return rd->err->status;
    if (m->parent >= m->id || reading_find(rd, m->parent) == NULL)
        return FAIL_LINE(rd, "'parent' %lld is no earlier message", (long long)m->parent);
    return K3_OK;
}

/* A new entry behind the others; takes over what m holds. */
static enum k3_status add_entry(struct reading *rd, struct message *m)
{
    if (rd->n > 0 && m->id <= rd->v[rd->n - 1].m.id) {
        const long long id = (long long)m->id;
        message_free(m);
        return FAIL_LINE(rd, "'id' %lld is not above the ids before it", id);
    }
    if (rd->n == rd->cap) {
        const size_t cap = rd->cap == 0 ? 64 : 2 * rd->cap;
        struct entry *v = realloc(rd->v, cap * sizeof *v);
        if (v == NULL) {
            message_free(m);
            return k3_fail_memory(rd->err, rd->path, cap * sizeof *v);
        }
        rd->v = v;
        rd->cap = cap;
    }
    rd->tip = m->id;
    rd->v[rd->n++] = (struct entry){.m = *m};
    return K3_OK;
}

/* Fields of a record that are about the message and do not belong to it. */
static const char *const meta_fields[] = {
    "type",   "id",     "parent",           "time",    "ids",     "finish",
    "tokens", "seconds", "reasoning_tokens", "settings", "figures"};

bool transcript_is_meta(const char *field)
{
    for (size_t i = 0; i < sizeof meta_fields / sizeof meta_fields[0]; i++)
        if (strcmp(field, meta_fields[i]) == 0)
            return true;
    return false;
}

static json_t *strip_meta(const json_t *rec)
{
    json_t *body = json_copy((json_t *)rec);
    for (size_t i = 0; body != NULL && i < sizeof meta_fields / sizeof meta_fields[0]; i++)
        json_object_del(body, meta_fields[i]);
    return body;
}

/* A reference to what stands under `field`; NULL when there is nothing. */
static enum k3_status get_object(struct reading *rd, const json_t *rec, const char *field,
                                 json_t **out)
{
    json_t *j = json_object_get(rec, field);
    if (j != NULL && !json_is_object(j))
        return FAIL_LINE(rd, "'%s' is no object", field);
    *out = json_incref(j);
    return K3_OK;
}

static enum k3_status fill_message(struct reading *rd, const json_t *rec, struct message *m)
{
    if (!json_is_string(json_object_get(rec, "role")))
        return FAIL_LINE(rd, "'role' is missing or no string");
    const json_t *seconds = json_object_get(rec, "seconds");
    if (seconds != NULL && !json_is_number(seconds))
        return FAIL_LINE(rd, "'seconds' is no number");
    m->seconds = json_number_value(seconds);
    if (add_ids(rd, rec, &m->ids) != K3_OK || get_count(rd, rec, "tokens", &m->tokens) != K3_OK ||
        get_count(rd, rec, "reasoning_tokens", &m->reasoning_tokens) != K3_OK ||
        get_finish(rd, rec, &m->finish) != K3_OK ||
        get_object(rd, rec, "settings", &m->settings) != K3_OK ||
        get_object(rd, rec, "figures", &m->figures) != K3_OK)
        return rd->err->status;
    m->body = strip_meta(rec);
    return m->body == NULL ? k3_fail_memory(rd->err, rd->path, 0) : K3_OK;
}

static enum k3_status take_message(struct reading *rd, const json_t *rec)
{
    struct message m = {0};
    if (get_place(rd, rec, &m) != K3_OK || fill_message(rd, rec, &m) != K3_OK) {
        message_free(&m);
        return rd->err->status;
    }
    struct entry *e = reading_find(rd, m.id);
    if (e == NULL)
        return add_entry(rd, &m);
    if (!e->m.unfinished || e->m.parent != m.parent) {
        const long long id = (long long)m.id;
        message_free(&m);
        return FAIL_LINE(rd, "'id' %lld is there already", id);
    }
    message_free(&e->m);
    e->m = m;
    rd->tip = m.id;
    return K3_OK;
}

/* Adds a partial record's text to a field of the body. */
static enum k3_status add_text(struct reading *rd, const json_t *rec, const char *field,
                               struct message *m)
{
    const json_t *more = json_object_get(rec, field);
    if (more == NULL)
        return K3_OK;
    if (!json_is_string(more))
        return FAIL_LINE(rd, "'%s' is no string", field);
    size_t n = 0;
    const char *old = message_text(m, field, &n);
    const size_t k = json_string_length(more);
    char *joined = malloc(n + k + 1);
    if (joined == NULL)
        return k3_fail_memory(rd->err, rd->path, n + k);
    memcpy(joined, old, n);
    memcpy(joined + n, json_string_value(more), k);
    json_t *j = json_stringn(joined, n + k);
    free(joined);
    if (j == NULL || json_object_set_new(m->body, field, j) != 0)
        return k3_fail_memory(rd->err, rd->path, n + k);
    return K3_OK;
}

/* The first partial record of an answer makes its entry. */
static enum k3_status begin_partial(struct reading *rd, const json_t *rec, struct message *m)
{
    m->unfinished = true;
    m->finish = FINISH_CANCELLED;
    if (get_object(rd, rec, "settings", &m->settings) != K3_OK)
        return rd->err->status;
    m->body = body_new("assistant", "", 0, rd->err);
    if (m->body != NULL)
        return add_entry(rd, m);
    message_free(m);
    return rd->err->status;
}

static enum k3_status take_partial(struct reading *rd, const json_t *rec)
{
    struct message place = {0};
    int64_t from = 0;
    if (get_place(rd, rec, &place) != K3_OK ||
        get_int(rd, rec, "from", 0, UINT32_MAX, &from) != K3_OK)
        return rd->err->status;
    const struct message at = place;
    if (reading_find(rd, at.id) == NULL && begin_partial(rd, rec, &place) != K3_OK)
        return rd->err->status;
    struct message *m = &reading_find(rd, at.id)->m;
    if (!m->unfinished || m->parent != at.parent)
        return FAIL_LINE(rd, "'id' %lld is there already", (long long)at.id);
    if ((size_t)from != m->ids.n)
        return FAIL_LINE(rd, "'from' is %lld, but %zu tokens came before", (long long)from,
                         m->ids.n);
    if (add_ids(rd, rec, &m->ids) != K3_OK ||
        get_count(rd, rec, "reasoning_tokens", &m->reasoning_tokens) != K3_OK ||
        add_text(rd, rec, "reasoning_content", m) != K3_OK ||
        add_text(rd, rec, "content", m) != K3_OK)
        return rd->err->status;
    m->tokens = (uint32_t)m->ids.n;
    m->seconds = at.time > m->time ? (double)(at.time - m->time) : 0;
    return K3_OK;
}

static enum k3_status take_cancel(struct reading *rd, const json_t *rec)
{
    int64_t id = 0;
    if (get_int(rd, rec, "id", 1, INT64_MAX, &id) != K3_OK)
        return rd->err->status;
    struct entry *e = reading_find(rd, id);
    if (e == NULL)
        return FAIL_LINE(rd, "'id' %lld is no earlier message", (long long)id);
    e->withdrawn = true;
    if (rd->tip == id)
        rd->tip = e->m.parent;
    return K3_OK;
}

/* Another message is the conversation's last from here on; 0 = none. */
static enum k3_status take_branch(struct reading *rd, const json_t *rec)
{
    int64_t tip = 0;
    if (get_int(rd, rec, "tip", 0, INT64_MAX, &tip) != K3_OK)
        return rd->err->status;
    if (tip != 0 && reading_find(rd, tip) == NULL)
        return FAIL_LINE(rd, "'tip' %lld is no earlier message", (long long)tip);
    rd->tip = tip;
    return K3_OK;
}

/* For the person who reads the file: the name is the file's. */
static enum k3_status take_rename(struct reading *rd, const json_t *rec)
{
    if (!json_is_string(json_object_get(rec, "from")) || !json_is_string(json_object_get(rec, "to")))
        return FAIL_LINE(rd, "'from' or 'to' is missing or no string");
    return K3_OK;
}

static const struct record_kind {
    const char *type;
    enum k3_status (*take)(struct reading *, const json_t *);
} record_kinds[] = {
    {"message", take_message},
    {"partial", take_partial},
    {"cancel", take_cancel},
    {"branch", take_branch},
    {"rename", take_rename},
};

enum k3_status reading_take_record(struct reading *rd, const json_t *rec)
{
    const json_t *type = json_object_get(rec, "type");
    if (!json_is_string(type))
        return FAIL_LINE(rd, "'type' is missing or no string");
    for (size_t i = 0; i < sizeof record_kinds / sizeof record_kinds[0]; i++)
        if (strcmp(json_string_value(type), record_kinds[i].type) == 0)
            return record_kinds[i].take(rd, rec);
    return FAIL_LINE(rd, "a record of type '%.40s' is not known to this version of the program",
                     json_string_value(type));
}

enum k3_status reading_take_header(struct reading *rd, const json_t *rec)
{
    const json_t *format = json_object_get(rec, "format");
    if (!json_is_string(format) || strcmp(json_string_value(format), "k3chat-transcript") != 0)
        return FAIL_LINE(rd, "this is no transcript: 'format' is not \"k3chat-transcript\"");
    int64_t version = 0;
    if (get_int(rd, rec, "version", 1, INT64_MAX, &version) != K3_OK)
        return rd->err->status;
    if (version > TRANSCRIPT_VERSION)
        return FAIL_LINE(rd, "format version %lld is newer than this program, which reads %d",
                         (long long)version, TRANSCRIPT_VERSION);
    return K3_OK;
}
