/* session.c - the front end's side of a session: events and phases, opening and closing; see session.h. */
#include <config.h>

#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "session_internal.h"

char *text_copy(const char *text, size_t len)
{
    char *copy = malloc(len + 1);
    if (copy != NULL) {
        if (len > 0)
            memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

/* ---- events ------------------------------------------------------------------------------ */

void session_event_free(struct session_event *ev)
{
    free(ev->text);
    free(ev->reasoning);
    ev->text = ev->reasoning = NULL;
}

/* The lock is held. A pipe that is full has woken the front end already. */
static void poke_locked(struct session *s)
{
    if (s->poked)
        return;
    s->poked = true;
    const ssize_t n = write(s->pipe[1], "", 1);
    (void)n;
}

void session_poke(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    poke_locked(s);
    pthread_mutex_unlock(&s->lock);
}

static void emit_locked(struct session *s, struct session_event ev)
{
    struct event_node *node = malloc(sizeof *node);
    if (node == NULL) { /* the screen misses it; the transcript does not */
        session_event_free(&ev);
        return;
    }
    node->next = NULL;
    node->ev = ev;
    if (s->last == NULL)
        s->first = node;
    else
        s->last->next = node;
    s->last = node;
    poke_locked(s);
}

void session_emit(struct session *s, struct session_event ev)
{
    pthread_mutex_lock(&s->lock);
    emit_locked(s, ev);
    pthread_mutex_unlock(&s->lock);
}

void session_emit_text(struct session *s, enum session_event_kind kind, const char *text,
                       size_t len)
{
    char *copy = text_copy(text, len);
    if (copy != NULL)
        session_emit(s, (struct session_event){.kind = kind, .text = copy, .len = len});
}

static void drain_locked(struct session *s)
{
    char bytes[64];
    while (read(s->pipe[0], bytes, sizeof bytes) > 0)
        continue;
    s->poked = false;
}

bool session_next_event(struct session *s, struct session_event *ev)
{
    pthread_mutex_lock(&s->lock);
    struct event_node *node = s->first;
    if (node != NULL) {
        s->first = node->next;
        if (s->first == NULL)
            s->last = NULL;
        *ev = node->ev;
        free(node);
    }
    if (s->first == NULL)
        drain_locked(s);
    pthread_mutex_unlock(&s->lock);
    return node != NULL;
}

int session_fd(const struct session *s)
{
    return s->pipe[0];
}

/* ---- phases ------------------------------------------------------------------------------ */

static void set_phase_locked(struct session *s, enum session_phase phase)
{
    if (s->state.phase == phase)
        return;
    s->state.phase = phase;
    s->state.phase_since = clock_now();
    if (phase != PHASE_FAILED)
        s->state.detail[0] = '\0';
    if (phase != PHASE_THINKING && phase != PHASE_ANSWERING && phase != PHASE_CANCELLING)
        s->state.step_since = 0;
    emit_locked(s, (struct session_event){.kind = EVENT_PHASE, .phase = phase});
    pthread_cond_broadcast(&s->changed);
}

void session_set_phase(struct session *s, enum session_phase phase)
{
    pthread_mutex_lock(&s->lock);
    set_phase_locked(s, phase);
    pthread_mutex_unlock(&s->lock);
}

void session_set_detail(struct session *s, const char *detail)
{
    pthread_mutex_lock(&s->lock);
    snprintf(s->state.detail, sizeof s->state.detail, "%s", detail);
    pthread_mutex_unlock(&s->lock);
}

static bool is_running(enum session_phase p)
{
    return p == PHASE_READING || p == PHASE_THINKING || p == PHASE_ANSWERING;
}

void session_decide_locked(struct session *s, bool read)
{
    if (s->state.phase != PHASE_ASKING || s->decision != DECISION_NONE)
        return;
    s->decision = read ? DECISION_READ : DECISION_VIEW;
    pthread_cond_broadcast(&s->changed);
}

void session_decide(struct session *s, bool read)
{
    pthread_mutex_lock(&s->lock);
    session_decide_locked(s, read);
    pthread_mutex_unlock(&s->lock);
}

void session_cancel(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    session_decide_locked(s, false);
    if (is_running(s->state.phase)) {
        atomic_store(&s->cancel, true);
        if (s->cancellable != NULL)
            k3_cancel(s->cancellable);
        set_phase_locked(s, PHASE_CANCELLING);
    }
    pthread_mutex_unlock(&s->lock);
}

void session_set_thinking(struct session *s, const char *effort)
{
    enum k3_thinking t;
    if (!k3_thinking_parse(effort, &t))
        return;
    pthread_mutex_lock(&s->lock);
    s->recount |= s->thinking != t; /* the effort stands at the very beginning of a prompt */
    s->thinking = t;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- the ticker -------------------------------------------------------------------------- */

/* Once a second while there is work: lets the front end redraw its figures and the recorder write
 * what a slow step would hold back. Sleeps without a timeout while there is none. */
static void *ticker_main(void *session)
{
    struct session *s = session;
    pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        if (s->state.phase >= PHASE_IDLE) { /* nothing goes on from there on */
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        while (!s->quit && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
            continue;
        poke_locked(s);
        pthread_mutex_unlock(&s->lock);
        recorder_tick(s->rec);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- opening and closing ----------------------------------------------------------------- */

static bool open_sync(struct session *s)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0)
        return false;
    const bool ok = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
                    pthread_cond_init(&s->changed, &attr) == 0;
    pthread_condattr_destroy(&attr);
    if (!ok)
        return false;
    if (pthread_mutex_init(&s->lock, NULL) != 0) {
        pthread_cond_destroy(&s->changed);
        return false;
    }
    return true;
}

static void free_session(struct session *s)
{
    recorder_free(s->rec);
    conversation_free(&s->conversation);
    message_free(&s->unanswered);
    struct session_event ev;
    while (session_next_event(s, &ev))
        session_event_free(&ev);
    while (s->queue != NULL) {
        struct queued_message *next = s->queue->next;
        session_free_work(s->queue);
        s->queue = next;
    }
    close(s->pipe[0]);
    close(s->pipe[1]);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
}

static void stop_threads(struct session *s, bool engine)
{
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    atomic_store(&s->cancel, true);
    if (s->cancellable != NULL)
        k3_cancel(s->cancellable);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->ticker_thread, NULL);
    if (engine)
        pthread_join(s->engine_thread, NULL);
}

/* Both threads start with every signal blocked, and so do the OpenMP team and the readers, which
 * the engine thread starts: signals go to the front end. */
static enum k3_status start_threads(struct session *s, struct k3_error *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int why = pthread_create(&s->ticker_thread, NULL, ticker_main, s);
    const bool ticking = why == 0;
    if (ticking)
        why = pthread_create(&s->engine_thread, NULL, engine_thread_main, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (why == 0)
        return K3_OK;
    if (ticking)
        stop_threads(s, false);
    return k3_fail(err, K3_FAILED, "the engine thread cannot be started: %s", strerror(why));
}

static bool open_pipe(struct session *s)
{
    if (pipe(s->pipe) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        fcntl(s->pipe[i], F_SETFD, FD_CLOEXEC);
        fcntl(s->pipe[i], F_SETFL, O_NONBLOCK);
    }
    return true;
}

struct session *session_open(const struct run_config *cfg, struct k3_error *err)
{
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL || !open_pipe(s)) {
        free(s);
        k3_fail(err, K3_FAILED, "no session can be opened: %s", strerror(errno));
        return NULL;
    }
    if (!open_sync(s)) {
        close(s->pipe[0]);
        close(s->pipe[1]);
        free(s);
        k3_fail(err, K3_FAILED, "no session can be opened: no lock");
        return NULL;
    }
    s->cfg = cfg;
    s->thinking = cfg->thinking;
    s->state.phase = PHASE_LOADING;
    s->state.phase_since = clock_now();
    if (session_open_first(s, err) != K3_OK || start_threads(s, err) != K3_OK) {
        free_session(s);
        return NULL;
    }
    return s;
}

bool session_unsaved(struct session *s)
{
    return recorder_failing(s->rec);
}

enum k3_status session_stop(struct session *s, struct k3_error *err)
{
    if (s->quit)
        return K3_OK;
    stop_threads(s, true);
    session_save_queue(s);
    return recorder_save(s->rec, err);
}

void session_close(struct session *s)
{
    struct k3_error unused;
    if (s == NULL)
        return;
    session_stop(s, &unused);
    free_session(s);
}
