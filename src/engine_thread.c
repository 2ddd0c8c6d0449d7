/* engine_thread.c - the thread that owns the model: loads it, then answers. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
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
    pthread_mutex_lock(&s->lock);
    s->engine = s->cancellable = s->rt.engine;
    s->plan = *k3_get_plan(s->rt.engine);
    s->state.demo = s->rt.demo;
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

static bool load(struct session *s)
{
    const struct runtime_listener listen = {on_notice, on_progress, on_plan, s};
    const struct runtime_needs needs = {.tokenizer = true, .extra_bytes = RUNTIME_CHAT_BYTES};
    struct k3_error err = {0};
    if (runtime_load(&s->rt, s->cfg, &needs, &listen, &err) == K3_OK) {
        publish(s);
        open_states(s);
        turn_tell_reread(s);
        session_set_phase(s, PHASE_IDLE);
        return true;
    }
    session_set_detail(s, err.message);
    session_emit_text(s, EVENT_ERROR, err.message, strlen(err.message));
    session_set_phase(s, PHASE_FAILED);
    return false;
}

/* ---- the thread -------------------------------------------------------------------------- */

/* Waits for the next message; false = the session is being closed. */
static bool next_message(struct session *s, struct queued_message **out, enum k3_thinking *thinking)
{
    pthread_mutex_lock(&s->lock);
    while (!s->quit && s->queue == NULL)
        pthread_cond_wait(&s->changed, &s->lock);
    const bool go_on = !s->quit;
    if (go_on) {
        *out = s->queue;
        s->queue = (*out)->next;
        *thinking = s->thinking;
    }
    pthread_mutex_unlock(&s->lock);
    return go_on;
}

void *engine_thread_main(void *session)
{
    struct session *s = session;
    struct queued_message *q = NULL;
    enum k3_thinking thinking = K3_THINK_MAX;
    if (load(s)) {
        while (next_message(s, &q, &thinking)) {
            turn_run(s, q, thinking);
            free(q->text);
            free(q);
        }
    }
    unpublish(s);
    runtime_close(&s->rt);
    return NULL;
}
