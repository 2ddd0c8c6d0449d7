/* session_queue.c - what the engine thread is asked to do, one piece after the other; see session.h. */
#include <config.h>

#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "session_internal.h"
#include "transcript.h"

void session_free_work(struct queued_message *q)
{
    free(q->text);
    free(q);
}

static enum k3_status enqueue(struct session *s, const struct queued_message *work,
                              struct k3_error *err)
{
    struct queued_message *q = malloc(sizeof *q);
    char *copy = work->text == NULL ? NULL : text_copy(work->text, work->len);
    if (q == NULL || (work->text != NULL && copy == NULL)) {
        free(q);
        free(copy);
        return k3_fail_memory(err, "the message", work->len);
    }
    *q = *work;
    q->text = copy;
    pthread_mutex_lock(&s->lock);
    const enum session_phase phase = s->state.phase;
    const bool refused = work->kind < WORK_SWITCH &&
                         (phase == PHASE_FAILED || phase == PHASE_VIEWING);
    if (!refused) {
        struct queued_message **end = &s->queue;
        while (*end != NULL)
            end = &(*end)->next;
        *end = q;
        if (work->kind == WORK_SWITCH)
            session_decide_locked(s, false);
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    if (!refused)
        return K3_OK;
    session_free_work(q);
    if (phase == PHASE_VIEWING)
        return k3_fail(err, K3_FAILED, "this session is open in another k3chat: here it is only "
                                       "shown, and cannot be gone on with");
    return k3_fail(err, K3_FAILED, "there is no model to answer: loading it has failed");
}

enum k3_status session_send(struct session *s, const char *text, size_t len, struct k3_error *err)
{
    if (len == 0)
        return k3_fail(err, K3_USAGE, "the message is empty");
    const struct queued_message work = {.kind = WORK_SEND, .text = (char *)text, .len = len};
    return enqueue(s, &work, err);
}

enum k3_status session_continue(struct session *s, struct k3_error *err)
{
    return enqueue(s, &(struct queued_message){.kind = WORK_CONTINUE}, err);
}

enum k3_status session_regenerate(struct session *s, struct k3_error *err)
{
    return enqueue(s, &(struct queued_message){.kind = WORK_REGENERATE}, err);
}

enum k3_status session_edit(struct session *s, uint32_t index, const char *text, size_t len,
                            struct k3_error *err)
{
    if (len == 0)
        return k3_fail(err, K3_USAGE, "the message is empty");
    const struct queued_message work = {
        .kind = WORK_EDIT, .index = index, .text = (char *)text, .len = len};
    return enqueue(s, &work, err);
}

enum k3_status session_discard(struct session *s, struct k3_error *err)
{
    return enqueue(s, &(struct queued_message){.kind = WORK_DISCARD}, err);
}

enum k3_status session_branch(struct session *s, int64_t tip, struct k3_error *err)
{
    return enqueue(s, &(struct queued_message){.kind = WORK_BRANCH, .tip = tip}, err);
}

enum k3_status session_system(struct session *s, const char *text, size_t len,
                              struct k3_error *err)
{
    const struct queued_message work = {.kind = WORK_SYSTEM, .text = (char *)text, .len = len};
    return enqueue(s, &work, err);
}

enum k3_status session_switch(struct session *s, const char *name, bool forget,
                              struct k3_error *err)
{
    if (name != NULL && *name != '\0' && transcript_check_name(name, err) != K3_OK)
        return err->status;
    const struct queued_message work = {
        .kind = WORK_SWITCH, .forget = forget, .text = (char *)name,
        .len = name == NULL ? 0 : strlen(name)};
    return enqueue(s, &work, err);
}

enum k3_status session_rename(struct session *s, const char *name, struct k3_error *err)
{
    if (transcript_check_name(name, err) != K3_OK)
        return err->status;
    const struct queued_message work = {
        .kind = WORK_RENAME, .text = (char *)name, .len = strlen(name)};
    return enqueue(s, &work, err);
}

size_t session_queued(struct session *s)
{
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    for (const struct queued_message *q = s->queue; q != NULL; q = q->next)
        n += q->kind == WORK_SEND;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* The lock is held. Where the message with this text hangs; NULL = it is not queued. */
static struct queued_message **find_queued(struct session *s, const char *text, size_t len)
{
    for (struct queued_message **at = &s->queue; *at != NULL; at = &(*at)->next)
        if ((*at)->kind == WORK_SEND && (*at)->len == len && memcmp((*at)->text, text, len) == 0)
            return at;
    return NULL;
}

/* The lock is held. */
static struct queued_message *unlink_queued(struct queued_message **at)
{
    struct queued_message *q = *at;
    *at = q->next;
    return q;
}

bool session_queue_drop(struct session *s, const char *text, size_t len)
{
    pthread_mutex_lock(&s->lock);
    struct queued_message **at = find_queued(s, text, len);
    struct queued_message *q = at == NULL ? NULL : unlink_queued(at);
    pthread_mutex_unlock(&s->lock);
    if (q != NULL)
        session_free_work(q);
    return q != NULL;
}

/* Work of another kind keeps its place. */
bool session_queue_first(struct session *s, const char *text, size_t len)
{
    pthread_mutex_lock(&s->lock);
    struct queued_message **at = find_queued(s, text, len);
    if (at != NULL) {
        struct queued_message *q = unlink_queued(at);
        struct queued_message **to = &s->queue;
        while (*to != NULL && (*to)->kind != WORK_SEND)
            to = &(*to)->next;
        q->next = *to;
        *to = q;
    }
    pthread_mutex_unlock(&s->lock);
    return at != NULL;
}

char *session_unqueue(struct session *s, size_t *len)
{
    char *text = NULL;
    *len = 0;
    pthread_mutex_lock(&s->lock);
    struct queued_message **newest = NULL;
    for (struct queued_message **at = &s->queue; *at != NULL; at = &(*at)->next)
        if ((*at)->kind == WORK_SEND)
            newest = at;
    if (newest != NULL) {
        struct queued_message *q = unlink_queued(newest);
        text = q->text;
        *len = q->len;
        free(q);
    }
    pthread_mutex_unlock(&s->lock);
    return text;
}
