/* engine_thread.c - the thread that owns the model: loads it, then answers. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answer.h"
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

/* What the screen, the transcript and the editor are going to take; the rest of the program is
 * there already when the engine plans. */
#define SCREEN_BYTES (16u << 20)

static bool load(struct session *s)
{
    const struct runtime_listener listen = {on_notice, on_progress, on_plan, s};
    const struct runtime_needs needs = {.tokenizer = true, .extra_bytes = SCREEN_BYTES};
    struct k3_error err = {0};
    if (runtime_load(&s->rt, s->cfg, &needs, &listen, &err) == K3_OK) {
        publish(s);
        session_set_phase(s, PHASE_IDLE);
        return true;
    }
    session_set_detail(s, err.message);
    session_emit_text(s, EVENT_ERROR, err.message, strlen(err.message));
    session_set_phase(s, PHASE_FAILED);
    return false;
}

/* ---- one answer -------------------------------------------------------------------------- */

struct turn {
    struct session *s;
    enum k3_thinking thinking;
    struct k3_ids prompt;
    struct step_stats prefill, steps;
    uint32_t reused;
    struct answer answer;
    double began;             /* the answer, on the monotonic clock */
};

/* A phase of the running turn; a cancel that has been asked for stays on show. */
static void turn_phase(struct session *s, enum session_phase phase)
{
    if (!atomic_load(&s->cancel))
        session_set_phase(s, phase);
}

static void on_reasoning(void *ud, const char *text, size_t len)
{
    session_emit_text(((struct turn *)ud)->s, EVENT_REASONING, text, len);
}

static void on_content(void *ud, const char *text, size_t len)
{
    session_emit_text(((struct turn *)ud)->s, EVENT_CONTENT, text, len);
}

static void note_step(struct turn *t, const struct step_stats *stats)
{
    struct session *s = t->s;
    pthread_mutex_lock(&s->lock);
    s->state.answer_tokens = (uint32_t)t->answer.ids.n;
    s->state.reasoning_tokens = t->answer.reasoning_tokens;
    s->state.position = (uint32_t)s->rt.line.fed.n;
    s->state.step_since = 0;
    stats_add(&s->totals, stats);
    if (stats->tokens > 0) /* the first token's forward pass was the prompt's */
        pace_add(&s->pace, stats->seconds);
    pthread_mutex_unlock(&s->lock);
}

static void on_token(void *ud, int32_t id, bool stop, const struct step_stats *stats,
                     const float *logits)
{
    (void)stop;
    (void)logits;
    struct turn *t = ud;
    answer_token(&t->answer, id);
    stats_add(&t->steps, stats);
    note_step(t, stats);
    session_emit(t->s, (struct session_event){.kind = EVENT_STEP, .token = id, .step = *stats});
    turn_phase(t->s, answer_thinks(&t->answer) ? PHASE_THINKING : PHASE_ANSWERING);
}

static void on_step(void *ud)
{
    struct session *s = ((struct turn *)ud)->s;
    pthread_mutex_lock(&s->lock);
    s->state.step_since = clock_now();
    pthread_mutex_unlock(&s->lock);
}

/* From here on a cancel is meant for this turn. */
static void begin_turn(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    if (!s->quit) {
        atomic_store(&s->cancel, false);
        k3_clear_cancel(s->rt.engine);
    }
    s->state.answer_tokens = s->state.reasoning_tokens = 0;
    s->state.prompt_total = 0;
    pthread_mutex_unlock(&s->lock);
    turn_phase(s, PHASE_READING);
}

static void note_prompt(struct session *s, uint64_t tokens)
{
    struct k3_metrics m;
    k3_get_metrics(s->rt.engine, &m);
    pthread_mutex_lock(&s->lock);
    s->state.prompt_total = tokens;
    s->state.prompt_base = m.tokens;
    s->state.phase_since = clock_now();
    pthread_mutex_unlock(&s->lock);
}

static enum k3_status read_prompt(struct turn *t, struct k3_error *err)
{
    struct session *s = t->s;
    if (conversation_encode(&s->conversation, t->thinking, s->rt.tok, &t->prompt, err) != K3_OK)
        return err->status;
    note_prompt(s, t->prompt.n - timeline_reusable(&s->rt.line, t->prompt.v, t->prompt.n));
    const enum k3_status status = timeline_read(&s->rt.line, t->prompt.v, t->prompt.n, NULL, NULL,
                                                &t->prefill, &t->reused, err);
    pthread_mutex_lock(&s->lock);
    s->state.position = (uint32_t)s->rt.line.fed.n;
    pthread_mutex_unlock(&s->lock);
    if (status == K3_OK)
        session_emit(s, (struct session_event){.kind = EVENT_PREFILL, .step = t->prefill});
    return status;
}

static enum k3_status begin_answer(struct turn *t, struct k3_error *err)
{
    struct session *s = t->s;
    t->answer.reasoning = on_reasoning;
    t->answer.content = on_content;
    t->answer.ud = t;
    t->began = clock_now();
    json_t *settings = answer_settings(s->cfg, s->rt.name, t->thinking);
    const enum k3_status status =
        answer_begin(&t->answer, s->rt.tok, s->rec, t->thinking, settings, err);
    json_decref(settings);
    if (status == K3_OK)
        session_emit(s, (struct session_event){.kind = EVENT_ANSWER, .time = t->answer.time});
    return status;
}

/* The message is made, recorded and put into the conversation. */
static enum k3_status end_answer(struct turn *t, enum session_finish finish, struct k3_error *err)
{
    struct session *s = t->s;
    struct message m;
    session_set_phase(s, PHASE_SAVING);
    json_t *figures =
        answer_figures((uint32_t)t->prompt.n, t->reused, &t->prefill, &t->steps);
    const enum k3_status status =
        answer_end(&t->answer, finish, clock_now() - t->began, figures, &m, err);
    json_decref(figures);
    if (status != K3_OK)
        return status;
    session_emit(s, (struct session_event){.kind = EVENT_ANSWER_END,
                                           .role = ROLE_ASSISTANT,
                                           .tokens = m.tokens,
                                           .reasoning_tokens = m.reasoning_tokens,
                                           .seconds = m.seconds,
                                           .finish = finish});
    return conversation_push(&s->conversation, &m, err);
}

/* Reads and answers. *output: something was generated. */
static enum k3_status run_turn(struct turn *t, bool *output, struct k3_error *err)
{
    struct session *s = t->s;
    *output = false;
    if (read_prompt(t, err) != K3_OK || begin_answer(t, err) != K3_OK)
        return err->status;
    struct generation g = {.max_tokens = s->cfg->max_tokens != 0 ? s->cfg->max_tokens
                                                                 : CHAT_MAX_TOKENS,
                           .ignore_stop = s->cfg->ignore_stop,
                           .cancel = &s->cancel,
                           .token = on_token,
                           .step = on_step,
                           .ud = t};
    turn_phase(s, t->thinking == K3_THINK_OFF ? PHASE_ANSWERING : PHASE_THINKING);
    const enum k3_status status = timeline_generate(&s->rt.line, &g, err);
    if (g.tokens == 0)
        return status == K3_OK ? k3_fail(err, K3_CANCELLED, "cancelled") : status;
    *output = true;
    struct k3_error end_err = {0};
    if (end_answer(t, g.finish, &end_err) != K3_OK && status == K3_OK) {
        *err = end_err;
        return err->status;
    }
    static const char full[] = "the context is full: this conversation has no room for more "
                               "(--context N makes more, /new begins another)";
    if (g.context_full)
        session_emit_text(s, EVENT_NOTICE, full, sizeof full - 1);
    return status;
}

/* No output: the user's message leaves the conversation and goes back to the editor. When the
 * session is being closed it stays in the transcript, and the next start gives it back. */
static void withdraw(struct session *s)
{
    struct message m = conversation_pop(&s->conversation);
    size_t len = 0;
    const char *text = message_text(&m, "content", &len);
    pthread_mutex_lock(&s->lock);
    const bool quit = s->quit;
    pthread_mutex_unlock(&s->lock);
    if (!quit)
        recorder_withdraw(s->rec, &m);
    session_emit_text(s, EVENT_WITHDRAWN, text, len);
    message_free(&m);
}

/* The user's message goes into the conversation, the transcript and onto the screen. */
static enum k3_status take_message(struct session *s, const char *text, size_t len,
                                   struct k3_error *err)
{
    struct message m = {.body = body_new("user", text, len, err)};
    if (m.body == NULL)
        return err->status;
    recorder_add(s->rec, &m);
    session_emit_message(s, &m);
    return conversation_push(&s->conversation, &m, err);
}

static void answer_message(struct session *s, const char *text, size_t len,
                           enum k3_thinking thinking)
{
    struct k3_error err = {0};
    struct turn t = {.s = s, .thinking = thinking};
    bool output = false;
    begin_turn(s);
    enum k3_status status = take_message(s, text, len, &err);
    if (status == K3_OK) {
        status = run_turn(&t, &output, &err);
        if (!output)
            withdraw(s);
    }
    if (status != K3_OK && status != K3_CANCELLED)
        session_emit_text(s, EVENT_ERROR, err.message, strlen(err.message));
    answer_free(&t.answer);
    k3_ids_free(&t.prompt);
    session_set_phase(s, PHASE_IDLE);
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
            answer_message(s, q->text, q->len, thinking);
            free(q->text);
            free(q);
        }
    }
    unpublish(s);
    runtime_close(&s->rt);
    return NULL;
}
