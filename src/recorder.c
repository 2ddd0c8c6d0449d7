/* recorder.c - see recorder.h. */
#include <config.h>

#include "recorder.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "buffer.h"
#include "clock.h"

struct recorder {
    pthread_mutex_t mutex;
    struct transcript *t;
    recorder_fault_fn fault;
    void *ud;
    bool failing;
    int64_t tip;          /* the last message: the parent of the next */
    int64_t put_off;      /* a message to withdraw before the next record, 0 = none */
    /* the running answer */
    int64_t answer;       /* its id, 0 = none is running */
    json_t *settings;
    enum run_sync sync;
    bool held;
    bool begun;           /* a partial record of it has been written */
    uint32_t saved;       /* tokens in partial records */
    struct k3_ids fresh;  /* tokens since then */
    struct buffer reasoning, content;
    uint32_t reasoning_tokens;
    double oldest;        /* when the first of `fresh` came */
};

struct recorder *recorder_new(struct transcript *t, int64_t tip, recorder_fault_fn fault, void *ud,
                              struct k3_error *err)
{
    struct recorder *r = calloc(1, sizeof *r);
    if (r == NULL || pthread_mutex_init(&r->mutex, NULL) != 0) {
        free(r);
        transcript_close(t);
        k3_fail_memory(err, "the recorder", sizeof *r);
        return NULL;
    }
    r->t = t;
    r->tip = tip;
    r->fault = fault;
    r->ud = ud;
    return r;
}

void recorder_free(struct recorder *r)
{
    if (r == NULL)
        return;
    transcript_close(r->t);
    json_decref(r->settings);
    k3_ids_free(&r->fresh);
    buffer_free(&r->reasoning);
    buffer_free(&r->content);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}

const char *recorder_name(const struct recorder *r)
{
    return r->t == NULL ? "" : transcript_name(r->t);
}


const char *recorder_path(const struct recorder *r)
{
    return r->t == NULL ? NULL : transcript_path(r->t);
}

/* ---- records ----------------------------------------------------------------------------- */

static void tell(struct recorder *r, enum k3_status status, const struct k3_error *err)
{
    const bool failing = status != K3_OK;
    if (failing == r->failing)
        return;
    r->failing = failing;
    if (r->fault != NULL)
        r->fault(r->ud, failing ? err->message : NULL);
}

bool recorder_failing(struct recorder *r)
{
    struct k3_error err = {0};
    pthread_mutex_lock(&r->mutex);
    if (r->failing && r->t != NULL)
        tell(r, transcript_flush(r->t, &err), &err);
    const bool failing = r->failing;
    pthread_mutex_unlock(&r->mutex);
    return failing;
}

enum k3_status recorder_save(struct recorder *r, struct k3_error *err)
{
    pthread_mutex_lock(&r->mutex);
    const enum k3_status status = r->t == NULL ? K3_OK : transcript_save(r->t, err);
    pthread_mutex_unlock(&r->mutex);
    return status;
}

/* Takes over the record; NULL = there was no memory for it. */
static bool put(struct recorder *r, json_t *record, bool sync)
{
    struct k3_error err = {0};
    enum k3_status status = record == NULL ? k3_fail_memory(&err, "a record of the transcript", 0)
                                           : transcript_append(r->t, record,
                                                               sync && r->sync != RUN_SYNC_NEVER,
                                                               &err);
    json_decref(record);
    tell(r, status, &err);
    return record != NULL;
}

static json_t *new_record(const char *type, int64_t id, int64_t parent, int64_t now)
{
    json_t *rec = json_pack("{s:s, s:I}", "type", type, "id", (json_int_t)id);
    json_t *p = parent == 0 ? json_null() : json_integer(parent);
    if (rec == NULL || json_object_set_new(rec, "parent", p) != 0 ||
        json_object_set_new(rec, "time", json_integer(now)) != 0) {
        json_decref(rec);
        return NULL;
    }
    return rec;
}

static json_t *ids_array(const struct k3_ids *ids)
{
    json_t *a = json_array();
    for (size_t i = 0; a != NULL && i < ids->n; i++) {
        if (json_array_append_new(a, json_integer(ids->v[i])) != 0) {
            json_decref(a);
            return NULL;
        }
    }
    return a;
}

/* The message's own fields behind those of the record. A message from elsewhere may have fields of
 * the same names: those are left out, they would be read as ours. */
static json_t *message_record(const struct message *m)
{
    json_t *rec = new_record("message", m->id, m->parent, m->time);
    const char *key;
    json_t *value;
    bool ok = rec != NULL;
    json_object_foreach(m->body, key, value)
        if (ok && !transcript_is_meta(key))
            ok = json_object_set(rec, key, value) == 0;
    if (ok)
        return rec;
    json_decref(rec);
    return NULL;
}

static void put_cancel(struct recorder *r, int64_t id)
{
    put(r, json_pack("{s:s, s:I, s:I}", "type", "cancel", "id", (json_int_t)id, "time",
                     (json_int_t)time(NULL)),
        true);
}

static void settle_put_off(struct recorder *r)
{
    if (r->put_off != 0)
        put_cancel(r, r->put_off);
    r->put_off = 0;
}

void recorder_add(struct recorder *r, struct message *m)
{
    m->time = (int64_t)time(NULL);
    if (r->t == NULL)
        return;
    pthread_mutex_lock(&r->mutex);
    settle_put_off(r);
    m->id = transcript_next_id(r->t);
    m->parent = r->tip;
    if (put(r, message_record(m), true))
        r->tip = m->id;
    pthread_mutex_unlock(&r->mutex);
}

/* ---- the transcript changes -------------------------------------------------------------- */

enum k3_status recorder_rename(struct recorder *r, const char *name, struct k3_error *err)
{
    if (r->t == NULL)
        return k3_fail(err, K3_USAGE, "a session that is temporary or only shown cannot be renamed");
    pthread_mutex_lock(&r->mutex);
    const enum k3_status status = transcript_rename(r->t, name, err);
    pthread_mutex_unlock(&r->mutex);
    return status;
}

enum k3_status recorder_remove(struct recorder *r, struct k3_error *err)
{
    if (r->t == NULL)
        return k3_fail(err, K3_USAGE, "a session that is temporary or only shown cannot be deleted");
    pthread_mutex_lock(&r->mutex);
    const enum k3_status status = transcript_remove(r->t, err);
    pthread_mutex_unlock(&r->mutex);
    return status;
}

/* ---- messages ---------------------------------------------------------------------------- */

void recorder_withdraw(struct recorder *r, const struct message *m)
{
    if (r->t == NULL)
        return;
    pthread_mutex_lock(&r->mutex);
    put_cancel(r, m->id);
    r->tip = m->parent;
    pthread_mutex_unlock(&r->mutex);
}

void recorder_withdraw_later(struct recorder *r, const struct message *m)
{
    if (r->t == NULL)
        return;
    pthread_mutex_lock(&r->mutex);
    r->put_off = m->id;
    r->tip = m->parent;
    pthread_mutex_unlock(&r->mutex);
}

/* ---- an answer --------------------------------------------------------------------------- */

static void forget_answer(struct recorder *r)
{
    json_decref(r->settings);
    r->settings = NULL;
    r->answer = 0;
    r->begun = false;
    r->saved = r->reasoning_tokens = 0;
    r->fresh.n = 0;
    buffer_clear(&r->reasoning);
    buffer_clear(&r->content);
}

void recorder_begin(struct recorder *r, const json_t *settings)
{
    if (r->t == NULL)
        return;
    pthread_mutex_lock(&r->mutex);
    forget_answer(r);
    settle_put_off(r);
    r->answer = transcript_next_id(r->t);
    r->settings = json_deep_copy(settings);
    pthread_mutex_unlock(&r->mutex);
}

static json_t *partial_record(const struct recorder *r)
{
    json_t *rec = new_record("partial", r->answer, r->tip, (int64_t)time(NULL));
    json_t *text = json_stringn(r->reasoning.n == 0 ? "" : r->reasoning.v, r->reasoning.n);
    json_t *content = json_stringn(r->content.n == 0 ? "" : r->content.v, r->content.n);
    bool ok = rec != NULL && text != NULL && content != NULL;
    ok = ok && json_object_set_new(rec, "from", json_integer(r->saved)) == 0;
    ok = ok && json_object_set_new(rec, "ids", ids_array(&r->fresh)) == 0;
    ok = ok && json_object_set(rec, "reasoning_content", text) == 0;
    ok = ok && json_object_set(rec, "content", content) == 0;
    ok = ok && json_object_set_new(rec, "reasoning_tokens", json_integer(r->reasoning_tokens)) == 0;
    if (ok && !r->begun && r->settings != NULL)
        ok = json_object_set(rec, "settings", r->settings) == 0;
    json_decref(text);
    json_decref(content);
    if (!ok) {
        json_decref(rec);
        return NULL;
    }
    return rec;
}

/* Not synced by default: a partial record guards against the death of the program, the message record that
 * follows against that of the machine. */
static void flush(struct recorder *r)
{
    if (r->fresh.n == 0 || !put(r, partial_record(r), r->sync == RUN_SYNC_PARTIALS))
        return;
    r->begun = true;
    r->saved += (uint32_t)r->fresh.n;
    r->fresh.n = 0;
    buffer_clear(&r->reasoning);
    buffer_clear(&r->content);
}

void recorder_use(struct recorder *r, struct transcript *t, int64_t tip)
{
    pthread_mutex_lock(&r->mutex);
    transcript_close(r->t);
    r->t = t;
    r->tip = tip;
    r->put_off = 0;
    r->failing = false;
    forget_answer(r);
    pthread_mutex_unlock(&r->mutex);
}

void recorder_reasoning(struct recorder *r, const char *text, size_t n)
{
    pthread_mutex_lock(&r->mutex);
    if (r->answer != 0)
        buffer_add(&r->reasoning, text, n);
    pthread_mutex_unlock(&r->mutex);
}

void recorder_content(struct recorder *r, const char *text, size_t n)
{
    pthread_mutex_lock(&r->mutex);
    if (r->answer != 0)
        buffer_add(&r->content, text, n);
    pthread_mutex_unlock(&r->mutex);
}

void recorder_token(struct recorder *r, int32_t id, bool reasoning)
{
    pthread_mutex_lock(&r->mutex);
    if (r->answer != 0) {
        struct k3_error err = {0};
        if (r->fresh.n == 0)
            r->oldest = clock_now();
        if (k3_ids_push(&r->fresh, id, &err) != K3_OK)
            tell(r, err.status, &err);
        r->reasoning_tokens += reasoning;
        if (r->held)
            r->oldest = clock_now();
        else if (r->fresh.n >= RECORDER_TOKENS || clock_now() - r->oldest >= RECORDER_SECONDS)
            flush(r);
    }
    pthread_mutex_unlock(&r->mutex);
}

void recorder_hold(struct recorder *r, bool held)
{
    pthread_mutex_lock(&r->mutex);
    r->held = held;
    if (!held && r->answer != 0)
        flush(r);
    pthread_mutex_unlock(&r->mutex);
}

void recorder_flush(struct recorder *r)
{
    pthread_mutex_lock(&r->mutex);
    if (r->answer != 0)
        flush(r);
    pthread_mutex_unlock(&r->mutex);
}

void recorder_set_sync(struct recorder *r, enum run_sync sync)
{
    pthread_mutex_lock(&r->mutex);
    r->sync = sync;
    pthread_mutex_unlock(&r->mutex);
}

void recorder_set_tip(struct recorder *r, int64_t tip)
{
    pthread_mutex_lock(&r->mutex);
    r->tip = tip;
    pthread_mutex_unlock(&r->mutex);
}

int64_t recorder_tip(struct recorder *r)
{
    pthread_mutex_lock(&r->mutex);
    const int64_t tip = r->tip;
    pthread_mutex_unlock(&r->mutex);
    return tip;
}

void recorder_branch(struct recorder *r, int64_t tip)
{
    pthread_mutex_lock(&r->mutex);
    if (r->t != NULL)
        put(r, json_pack("{s:s, s:I, s:I}", "type", "branch", "tip", (json_int_t)tip, "time",
                         (json_int_t)time(NULL)),
            true);
    r->tip = tip;
    pthread_mutex_unlock(&r->mutex);
}

void recorder_tick(struct recorder *r)
{
    pthread_mutex_lock(&r->mutex);
    /* a little early, because the next tick may come late */
    if (r->answer != 0 && !r->held && r->fresh.n > 0 && clock_now() - r->oldest >= RECORDER_SECONDS - 2)
        flush(r);
    pthread_mutex_unlock(&r->mutex);
}

static json_t *answer_record(const struct recorder *r, const struct message *m,
                             const json_t *figures)
{
    json_t *rec = message_record(m);
    bool ok = rec != NULL;
    ok = ok && json_object_set_new(rec, "ids", ids_array(&m->ids)) == 0;
    ok = ok && json_object_set_new(rec, "finish", json_string(session_finish_name(m->finish))) == 0;
    ok = ok && json_object_set_new(rec, "tokens", json_integer(m->tokens)) == 0;
    ok = ok && json_object_set_new(rec, "reasoning_tokens", json_integer(m->reasoning_tokens)) == 0;
    ok = ok && json_object_set_new(rec, "seconds", json_real(m->seconds)) == 0;
    if (ok && r->settings != NULL)
        ok = json_object_set(rec, "settings", r->settings) == 0;
    if (ok && figures != NULL)
        ok = json_object_set(rec, "figures", (json_t *)figures) == 0;
    if (!ok) {
        json_decref(rec);
        return NULL;
    }
    return rec;
}

void recorder_end(struct recorder *r, struct message *m, const json_t *figures)
{
    if (r->t == NULL)
        return;
    pthread_mutex_lock(&r->mutex);
    m->id = r->answer;
    m->parent = r->tip;
    if (put(r, answer_record(r, m, figures), true))
        r->tip = m->id;
    forget_answer(r);
    pthread_mutex_unlock(&r->mutex);
}
