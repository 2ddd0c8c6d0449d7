/* session.c - the front end's side of a session: events, queue, figures; see session.h. */
#include <config.h>

#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../engine/model/host.h"
#include "buffer.h"
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

static enum session_role role_of(const struct message *m)
{
    const char *role = message_role(m);
    return strcmp(role, "assistant") == 0 ? ROLE_ASSISTANT
           : strcmp(role, "user") == 0    ? ROLE_USER
                                          : ROLE_SYSTEM;
}

void session_emit_message(struct session *s, const struct message *m, size_t index)
{
    size_t len = 0, reasoning_len = 0;
    const char *text = message_text(m, "content", &len);
    const char *reasoning = message_text(m, "reasoning_content", &reasoning_len);
    struct session_event ev = {.kind = EVENT_MESSAGE,
                               .role = role_of(m),
                               .index = (uint32_t)index,
                               .text = text_copy(text, len),
                               .len = len,
                               .time = m->time,
                               .tokens = m->tokens,
                               .reasoning_tokens = m->reasoning_tokens,
                               .seconds = m->seconds,
                               .finish = m->finish};
    if (reasoning_len > 0)
        ev.reasoning = text_copy(reasoning, reasoning_len);
    ev.reasoning_len = ev.reasoning == NULL ? 0 : reasoning_len;
    if (ev.text == NULL)
        session_event_free(&ev);
    else
        session_emit(s, ev);
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

void session_cancel(struct session *s)
{
    pthread_mutex_lock(&s->lock);
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
    s->thinking = t;
    pthread_mutex_unlock(&s->lock);
}

/* ---- the queue --------------------------------------------------------------------------- */

static void free_work(struct queued_message *q)
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
    const bool failed = s->state.phase == PHASE_FAILED;
    if (!failed) {
        struct queued_message **end = &s->queue;
        while (*end != NULL)
            end = &(*end)->next;
        *end = q;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    if (!failed)
        return K3_OK;
    free_work(q);
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

size_t session_queued(struct session *s)
{
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    for (const struct queued_message *q = s->queue; q != NULL; q = q->next)
        n += q->kind == WORK_SEND;
    pthread_mutex_unlock(&s->lock);
    return n;
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
        struct queued_message *q = *newest;
        *newest = q->next;
        text = q->text;
        *len = q->len;
        free(q);
    }
    pthread_mutex_unlock(&s->lock);
    return text;
}

/* ---- figures ----------------------------------------------------------------------------- */

/* Tokens of the prompt read so far, the share of layers in the running chunk counted in. */
static void put_prompt(const struct session_state *st, const struct k3_metrics *m, double now,
                       struct session_status *out)
{
    out->prompt_total = st->prompt_total;
    out->prompt_eta_s = -1;
    if (st->phase != PHASE_READING || st->prompt_total == 0)
        return;
    double done = (double)(m->tokens - st->prompt_base);
    if (m->running && m->layers > 0)
        done += (double)m->chunk_tokens * m->layer / m->layers;
    if (done > (double)st->prompt_total)
        done = (double)st->prompt_total;
    out->prompt_done = (uint64_t)done;
    if (done > 0)
        out->prompt_eta_s = (now - st->phase_since) * ((double)st->prompt_total - done) / done;
}

static void put_state(const struct session *s, double now, struct session_status *out)
{
    const struct session_state *st = &s->state;
    out->phase = st->phase;
    memcpy(out->detail, st->detail, sizeof out->detail);
    out->load_done = st->load_done;
    out->load_total = st->load_total;
    out->phase_seconds = now - st->phase_since;
    out->answer_tokens = st->answer_tokens;
    out->reasoning_tokens = st->reasoning_tokens;
    out->step_seconds = st->step_since > 0 ? now - st->step_since : 0;
    out->last_step_seconds = s->pace.last;
    out->mean_step_seconds = s->pace.mean;
    out->p95_step_seconds = s->pace.p95;
    out->position = st->position;
    out->context = st->context;
    out->reread_tokens = st->reread_tokens;
    out->reread_seconds = st->reread_tokens > 0 ? st->reread_seconds : 0;
    out->demo = st->demo;
    memcpy(out->model_name, st->model_name, sizeof out->model_name);
}

void session_get_status(struct session *s, struct session_status *out)
{
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&s->lock);
    const double now = clock_now();
    put_state(s, now, out);
    out->totals = s->totals;
    out->plan = s->plan;
    if (s->engine != NULL)
        k3_get_metrics(s->engine, &out->metrics);
    put_prompt(&s->state, &out->metrics, now, out);
    snprintf(out->thinking, sizeof out->thinking, "%s", k3_thinking_name(s->thinking));
    pthread_mutex_unlock(&s->lock);
    snprintf(out->session_name, sizeof out->session_name, "%s", recorder_name(s->rec));
    snprintf(out->profile_name, sizeof out->profile_name, "%s", s->cfg->profile_name);
    out->rss = k3_host_rss();
    out->peak_rss = k3_host_peak_rss();
}

bool session_get_layer(struct session *s, uint32_t layer, struct k3_layer_counts *out)
{
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&s->lock);
    const bool found = s->engine != NULL && k3_get_layer_counts(s->engine, layer, out);
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* ---- the ticker -------------------------------------------------------------------------- */

/* Once a second while there is work: lets the front end redraw its figures and the recorder write
 * what a slow step would hold back. Sleeps without a timeout while there is none. */
static void *ticker_main(void *session)
{
    struct session *s = session;
    pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        if (s->state.phase == PHASE_IDLE || s->state.phase == PHASE_FAILED) {
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

static void on_fault(void *ud, const char *message)
{
    struct session *s = ud;
    if (message != NULL)
        session_emit_text(s, EVENT_ERROR, message, strlen(message));
    else
        session_emit_text(s, EVENT_NOTICE, "the transcript is written again", 31);
}

/* A last message that never got its answer goes back to the editor. */
static void give_back_unanswered(struct session *s)
{
    struct conversation *c = &s->conversation;
    if (c->n == 0 || strcmp(message_role(&c->v[c->n - 1]), "user") != 0)
        return;
    struct message m = conversation_pop(c);
    size_t len = 0;
    const char *text = message_text(&m, "content", &len);
    static const char note[] = "the last message had no answer yet; it is back in the editor";
    session_emit_text(s, EVENT_NOTICE, note, sizeof note - 1);
    session_emit_text(s, EVENT_WITHDRAWN, text, len);
    recorder_withdraw_later(s->rec, &m);
    message_free(&m);
}

static void show_history(struct session *s)
{
    const struct conversation *c = &s->conversation;
    for (size_t i = 0; i < c->n; i++)
        if (i + 1 < c->n || strcmp(message_role(&c->v[i]), "user") != 0)
            session_emit_message(s, &c->v[i], i);
    if (c->n > 0 && c->v[c->n - 1].unfinished) {
        char note[128];
        const int n = snprintf(note, sizeof note,
                               "the last answer was interrupted after %u tokens; they are kept, "
                               "and /continue goes on with it",
                               (unsigned)c->v[c->n - 1].tokens);
        session_emit_text(s, EVENT_NOTICE, note, (size_t)n);
    }
    give_back_unanswered(s);
}

static enum k3_status open_transcript(struct session *s, struct k3_error *err)
{
    char *notice = NULL;
    struct transcript *t =
        transcript_open(s->cfg->session_name, &s->conversation, &notice, err);
    if (t == NULL)
        return err->status;
    const struct conversation *c = &s->conversation;
    s->rec = recorder_new(t, c->n == 0 ? 0 : c->v[c->n - 1].id, on_fault, s, err);
    if (s->rec != NULL && notice != NULL)
        session_emit_text(s, EVENT_NOTICE, notice, strlen(notice));
    free(notice);
    if (s->rec == NULL)
        return err->status;
    recorder_set_sync(s->rec, s->cfg->sync);
    show_history(s);
    return K3_OK;
}

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
    struct session_event ev;
    while (session_next_event(s, &ev))
        session_event_free(&ev);
    while (s->queue != NULL) {
        struct queued_message *next = s->queue->next;
        free_work(s->queue);
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
    if (open_transcript(s, err) != K3_OK || start_threads(s, err) != K3_OK) {
        free_session(s);
        return NULL;
    }
    return s;
}

/* What was typed and not yet sent on is kept: the next start puts it into the editor. */
static void save_queue(struct session *s)
{
    struct buffer all = {0};
    for (const struct queued_message *q = s->queue; q != NULL; q = q->next) {
        if (q->text == NULL)
            continue;
        if (all.n > 0)
            buffer_add(&all, "\n\n", 2);
        buffer_add(&all, q->text, q->len);
    }
    struct k3_error unused;
    struct message m = {0};
    if (all.n > 0 && !all.failed)
        m.body = body_new("user", all.v, all.n, &unused);
    if (m.body != NULL)
        recorder_add(s->rec, &m);
    message_free(&m);
    buffer_free(&all);
}

void session_close(struct session *s)
{
    if (s == NULL)
        return;
    stop_threads(s, true);
    save_queue(s);
    free_session(s);
}
