/* engine_thread.c - the thread that owns the model: loads it, then answers. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "disk_rate.h"
#include "reread.h"
#include "session_internal.h"

/* ---- loading ----------------------------------------------------------------------------- */

static void on_notice(void *ud, const char *text)
{
    session_emit_text(ud, EVENT_NOTICE, text, strlen(text));
}

static void on_progress(void *ud, const char *what, uint64_t done, uint64_t total)
{
    struct session *s = ud;
    pthread_mutex_lock(&s->lock);
    snprintf(s->state.detail, sizeof s->state.detail, "%s", what);
    s->state.load_done = done;
    s->state.load_total = total;
    pthread_mutex_unlock(&s->lock);
}

static void on_plan(void *ud, const struct k3_plan *plan)
{
    struct session *s = ud;
    pthread_mutex_lock(&s->lock);
    s->plan = *plan;
    s->state.context = plan->context;
    pthread_mutex_unlock(&s->lock);
    session_poke(s);
}

/* From here on the front end may read figures and cancel. */
static void publish(struct session *s)
{
    const double roof = disk_rate_kept(s->rt.dir);
    pthread_mutex_lock(&s->lock);
    s->engine = s->cancellable = s->rt.engine;
    s->plan = *k3_get_plan(s->rt.engine);
    s->state.demo = s->rt.demo;
    s->state.disk_roof = roof;
    memcpy(s->state.model_name, s->rt.name, sizeof s->state.model_name);
    pthread_mutex_unlock(&s->lock);
}

static void unpublish(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    s->engine = NULL;
    s->cancellable = NULL;
    pthread_mutex_unlock(&s->lock);
}

/* Without them a later start has to read again; no reason not to chat. */
static void open_states(struct session *s)
{
    struct k3_error err = {0};
    if (runtime_use_states(&s->rt, s->cfg, recorder_path(s->rec), on_notice, s, &err) != K3_OK)
        on_notice(s, err.message);
}

void session_use_transcript(struct session *s)
{
    open_states(s);
    reread_tell(s);
    session_set_phase(s, PHASE_IDLE);
}

void session_load_model(struct session *s)
{
    const struct runtime_listener listen = {on_notice, on_progress, on_plan, s};
    const struct runtime_needs needs = {.tokenizer = true, .extra_bytes = RUNTIME_CHAT_BYTES};
    struct k3_error err = {0};
    if (runtime_load(&s->rt, s->cfg, &needs, &listen, &err) == K3_OK) {
        s->loaded = true;
        publish(s);
        session_use_transcript(s);
        return;
    }
    runtime_close(&s->rt);
    session_set_detail(s, err.message);
    session_emit_text(s, EVENT_ERROR, err.message, strlen(err.message));
    session_set_phase(s, PHASE_FAILED);
}

/* ---- the thread -------------------------------------------------------------------------- */

/* The lock is held. The next work that is possible now: without a model, or in a session that is only
 * shown, messages wait. */
static struct queued_message *take_work(struct session *s)
{
    const bool answers = s->loaded && s->state.phase != PHASE_VIEWING;
    struct queued_message **at = &s->queue;
    while (*at != NULL && !answers && (*at)->kind < WORK_SWITCH)
        at = &(*at)->next;
    struct queued_message *q = *at;
    if (q != NULL)
        *at = q->next;
    return q;
}

/* The lock is held. While a session is only shown, the file is looked at every second. */
static void wait_for_work(struct session *s)
{
    if (s->state.phase != PHASE_VIEWING) {
        pthread_cond_wait(&s->changed, &s->lock);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    if (pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
        return;
    pthread_mutex_unlock(&s->lock);
    session_follow(s);
    pthread_mutex_lock(&s->lock);
}

/* The lock is held. */
static void tell_cost_again(struct session *s)
{
    pthread_mutex_unlock(&s->lock);
    reread_tell(s);
    session_poke(s);
    pthread_mutex_lock(&s->lock);
}

/* Waits for the next piece of work; NULL = the session is being closed. */
static struct queued_message *next_work(struct session *s, enum k3_thinking *thinking)
{
    struct queued_message *q = NULL;
    pthread_mutex_lock(&s->lock);
    while (!s->quit && (q = take_work(s)) == NULL) {
        if (s->recount && s->loaded && s->state.phase == PHASE_IDLE)
            tell_cost_again(s);
        else
            wait_for_work(s);
    }
    *thinking = s->thinking;
    pthread_mutex_unlock(&s->lock);
    return q;
}

void *engine_thread_main(void *session)
{
    struct session *s = session;
    struct queued_message *q;
    enum k3_thinking thinking = K3_THINK_MAX;
    if (s->state.phase != PHASE_VIEWING)
        session_load_model(s);
    while ((q = next_work(s, &thinking)) != NULL) {
        if (q->kind == WORK_SWITCH)
            session_do_switch(s, q);
        else if (q->kind == WORK_RENAME)
            session_do_rename(s, q);
        else
            turn_run(s, q, thinking);
        session_free_work(q);
    }
    unpublish(s);
    runtime_close(&s->rt);
    return NULL;
}
