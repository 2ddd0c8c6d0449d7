/* turn.c - one answer on the engine thread: to a new message, to an edited one, a second one, or the
 * rest of one that was cut off. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "clock.h"
#include "reread.h"
#include "session_internal.h"

struct turn {
    struct session *s;
    struct answer_maker with;
    struct k3_ids prompt;
    struct step_stats prefill, steps;
    uint32_t reused;
    struct answer answer;
    double began;             /* the answer, on the monotonic clock */
    uint32_t most;            /* tokens to generate */
    const struct message *base; /* the answer that goes on, among those put aside; or NULL */
    bool again;               /* it is the last message that is answered again, or went on with */
    struct conversation aside; /* taken out of the conversation for this turn, the last one first */
    bool shown_aside;         /* the front end has been told */
    int64_t old_tip;
};

static void notice(struct session *s, const char *text)
{
    session_emit_text(s, EVENT_NOTICE, text, strlen(text));
}

/* ---- events ------------------------------------------------------------------------------ */

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

/* Recorded first: a state that is ahead of the transcript would be of no use. */
static void save_on_the_way(struct turn *t)
{
    if (!timeline_save_due(&t->s->rt.line))
        return;
    recorder_flush(t->s->rec);
    timeline_save_now(&t->s->rt.line);
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
    save_on_the_way(t);
}

static void on_step(void *ud)
{
    struct session *s = ((struct turn *)ud)->s;
    pthread_mutex_lock(&s->lock);
    s->state.step_since = clock_now();
    pthread_mutex_unlock(&s->lock);
}

/* ---- reading ----------------------------------------------------------------------------- */

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

/* `reused` tokens of the prompt are in the state, the others are to be read. */
static void note_prompt(struct session *s, uint64_t reused, uint64_t tokens)
{
    struct k3_metrics m;
    k3_get_metrics(s->rt.engine, &m);
    pthread_mutex_lock(&s->lock);
    s->state.position = (uint32_t)reused;
    s->state.prompt_total = tokens;
    s->state.prompt_base = m.tokens;
    s->state.phase_since = clock_now();
    pthread_mutex_unlock(&s->lock);
}

/* What this turn has put aside leaves the screen as well; the conversation ends before it. */
static void show_aside(struct turn *t)
{
    if (t->aside.n == 0 || t->shown_aside)
        return;
    t->shown_aside = true;
    session_emit(t->s, (struct session_event){.kind = EVENT_DROPPED,
                                              .index = (uint32_t)t->s->conversation.n});
}

/* The conversation, and what there is already of an answer that goes on. */
static enum k3_status make_prompt(struct turn *t, struct k3_error *err)
{
    struct session *s = t->s;
    enum k3_status status =
        conversation_encode(&s->conversation, t->with.thinking, s->rt.tok, &t->prompt, err);
    for (size_t i = 0; status == K3_OK && t->base != NULL && i < t->base->ids.n; i++)
        status = k3_ids_push(&t->prompt, t->base->ids.v[i], err);
    return status;
}

static void note_read(struct turn *t, enum k3_status status)
{
    struct session *s = t->s;
    pthread_mutex_lock(&s->lock);
    s->state.position = (uint32_t)s->rt.line.fed.n;
    if (status == K3_OK)
        s->state.reread_tokens = 0;
    pthread_mutex_unlock(&s->lock);
    reread_measured(s, &t->prefill);
}

/* What was read before and has to be read again is told, and a long one asked about. */
static enum k3_status allow_reading(struct turn *t, size_t reusable, struct k3_error *err)
{
    size_t known = t->prompt.n;
    if (!t->again && reread_known(t->s, t->with.thinking, &known, err) != K3_OK)
        return err->status;
    if (reread_allowed(t->s, known > reusable ? known - reusable : 0))
        return K3_OK;
    return k3_fail(err, K3_CANCELLED, "not read again");
}

static enum k3_status read_prompt(struct turn *t, struct k3_error *err)
{
    struct session *s = t->s;
    struct timeline *line = &s->rt.line;
    if (make_prompt(t, err) != K3_OK)
        return err->status;
    const size_t best = timeline_reusable(line, t->prompt.v, t->prompt.n);
    if (allow_reading(t, best, err) != K3_OK)
        return err->status;
    show_aside(t);
    turn_phase(s, PHASE_READING);
    note_prompt(s, best, t->prompt.n - best);
    const enum k3_status status =
        timeline_read(line, t->prompt.v, t->prompt.n, NULL, NULL, &t->prefill, &t->reused, err);
    note_read(t, status);
    if (status != K3_OK)
        return status;
    timeline_keep(line);
    session_emit(s, (struct session_event){.kind = EVENT_PREFILL, .step = t->prefill});
    return K3_OK;
}

/* ---- answering --------------------------------------------------------------------------- */

static enum k3_status begin_answer(struct turn *t, struct k3_error *err)
{
    struct session *s = t->s;
    t->answer.reasoning = on_reasoning;
    t->answer.content = on_content;
    t->answer.ud = t;
    t->began = clock_now();
    json_t *settings = answer_settings(&t->with);
    const enum k3_status status =
        answer_begin(&t->answer, s->rt.tok, s->rec, t->with.thinking, settings, err);
    json_decref(settings);
    if (status != K3_OK)
        return status;
    session_emit(s, (struct session_event){.kind = EVENT_ANSWER,
                                           .index = (uint32_t)s->conversation.n,
                                           .time = t->answer.time});
    if (t->base != NULL) {
        answer_replay(&t->answer, &t->base->ids);
        t->began -= t->base->seconds;
    }
    return K3_OK;
}

/* The message is made, recorded and put into the conversation; then the state is saved. */
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
    timeline_keep(&s->rt.line);
    return conversation_push(&s->conversation, &m, err);
}

/* Reads and answers. *output: something was generated. */
static enum k3_status run_turn(struct turn *t, bool *output, struct k3_error *err)
{
    struct session *s = t->s;
    *output = false;
    if (read_prompt(t, err) != K3_OK || begin_answer(t, err) != K3_OK)
        return err->status;
    struct generation g = {.max_tokens = t->most,
                           .ignore_stop = s->cfg->ignore_stop,
                           .cancel = &s->cancel,
                           .token = on_token,
                           .step = on_step,
                           .ud = t};
    s->rt.line.sampling = t->with.sampling;
    turn_phase(s, answer_thinks(&t->answer) ? PHASE_THINKING : PHASE_ANSWERING);
    const enum k3_status status = timeline_generate(&s->rt.line, &g, err);
    if (g.tokens == 0)
        return status == K3_OK ? k3_fail(err, K3_CANCELLED, "cancelled") : status;
    *output = true;
    struct k3_error end_err = {0};
    if (end_answer(t, g.finish, &end_err) != K3_OK && status == K3_OK) {
        *err = end_err;
        return err->status;
    }
    if (g.context_full)
        notice(s, "the context is full: this conversation has no room for more (--context N makes "
                  "more, /new begins another)");
    return status;
}

/* ---- the conversation around it ---------------------------------------------------------- */

/* No output: the user's message leaves the conversation and goes back to the editor. When the
 * session is being closed it stays in the transcript, and the next start gives it back, together with
 * what is queued. */
static bool withdraw(struct session *s, bool edited)
{
    struct message m = conversation_pop(&s->conversation);
    size_t len = 0;
    const char *text = message_text(&m, "content", &len);
    pthread_mutex_lock(&s->lock);
    const bool quit = s->quit;
    pthread_mutex_unlock(&s->lock);
    if (!quit)
        recorder_withdraw(s->rec, &m);
    session_emit(s, (struct session_event){.kind = EVENT_WITHDRAWN, .text = text_copy(text, len),
                                           .len = len, .index = (uint32_t)s->conversation.n,
                                           .edited = edited});
    if (quit)
        s->unanswered = m;
    else
        message_free(&m);
    return !quit;
}

/* The user's message goes into the conversation, the transcript and onto the screen. */
static enum k3_status take_message(struct session *s, const struct queued_message *w,
                                   struct k3_error *err)
{
    struct message m = {.body = body_new("user", w->text, w->len, err)};
    if (m.body == NULL)
        return err->status;
    recorder_add(s->rec, &m);
    if (w->kind == WORK_SEND)
        session_emit_sent(s, &m, s->conversation.n);
    else
        session_emit_message(s, &m, s->conversation.n);
    return conversation_push(&s->conversation, &m, err);
}

/* The messages from `index` on make way; on the screen they stay until show_aside(). */
static enum k3_status put_aside(struct turn *t, size_t index, struct k3_error *err)
{
    struct session *s = t->s;
    struct conversation *c = &s->conversation;
    t->old_tip = recorder_tip(s->rec);
    while (c->n > index) {
        struct message m = conversation_pop(c);
        if (conversation_push(&t->aside, &m, err) != K3_OK)
            return err->status;
    }
    recorder_set_tip(s->rec, index == 0 ? 0 : c->v[index - 1].id);
    return K3_OK;
}

/* Nothing came of it: everything is as before, in the transcript too. */
static void put_back(struct turn *t)
{
    struct session *s = t->s;
    struct k3_error err = {0};
    if (t->aside.n == 0)
        return;
    while (t->aside.n > 0) {
        struct message m = conversation_pop(&t->aside);
        if (t->shown_aside)
            session_emit_message(s, &m, s->conversation.n);
        if (conversation_push(&s->conversation, &m, &err) != K3_OK)
            session_emit_text(s, EVENT_ERROR, err.message, strlen(err.message));
    }
    recorder_branch(s->rec, t->old_tip);
}

/* ---- the four kinds of work -------------------------------------------------------------- */

static enum k3_status send_message(struct turn *t, const struct queued_message *w,
                                   struct k3_error *err)
{
    bool output = false;
    if (take_message(t->s, w, err) != K3_OK)
        return err->status;
    const enum k3_status status = run_turn(t, &output, err);
    if (!output && withdraw(t->s, w->kind == WORK_EDIT))
        put_back(t);
    return status;
}

static enum k3_status edit_message(struct turn *t, const struct queued_message *w,
                                   struct k3_error *err)
{
    const struct conversation *c = &t->s->conversation;
    if (w->index >= c->n || strcmp(message_role(&c->v[w->index]), "user") != 0) {
        notice(t->s, "there is no such message of yours to edit");
        session_emit_text(t->s, EVENT_WITHDRAWN, w->text, w->len);
        return K3_OK;
    }
    if (put_aside(t, w->index, err) != K3_OK)
        return err->status;
    show_aside(t);
    return send_message(t, w, err);
}

/* The last message, when it is an answer; else NULL. */
static const struct message *last_answer(const struct session *s)
{
    const struct conversation *c = &s->conversation;
    const struct message *m = c->n == 0 ? NULL : &c->v[c->n - 1];
    return m != NULL && strcmp(message_role(m), "assistant") == 0 ? m : NULL;
}

static enum k3_status answer_again(struct turn *t, struct k3_error *err)
{
    bool output = false;
    if (put_aside(t, t->s->conversation.n - 1, err) != K3_OK)
        return err->status;
    t->again = true;
    if (t->base != NULL)
        t->base = &t->aside.v[0];
    const enum k3_status status = run_turn(t, &output, err);
    if (!output)
        put_back(t);
    return status;
}

/* The same seed would give the same answer. */
static enum k3_status regenerate(struct turn *t, struct k3_error *err)
{
    const struct message *m = last_answer(t->s);
    if (m == NULL) {
        notice(t->s, "there is no answer that could be given again");
        return K3_OK;
    }
    struct answer_maker old = t->with;
    answer_settings_read(m->settings, &old);
    if (t->with.sampling.greedy && old.sampling.greedy && old.thinking == t->with.thinking)
        notice(t->s, "without a temperature the same answer comes again");
    t->with.sampling.seed = (old.sampling.seed + 1) & INT64_MAX;
    return answer_again(t, err);
}

/* Ended by itself, also when the record that says so was lost. */
static bool is_complete(const struct session *s, const struct message *m)
{
    return m->finish == FINISH_STOP || m->ids.n == 0 ||
           (!s->cfg->ignore_stop && timeline_is_stop(&s->rt.line, m->ids.v[m->ids.n - 1]));
}

static enum k3_status go_on(struct turn *t, struct k3_error *err)
{
    const struct message *m = last_answer(t->s);
    if (m == NULL || is_complete(t->s, m)) {
        notice(t->s, m == NULL ? "there is no answer to go on with"
                               : "the last answer is complete; there is nothing to go on with");
        return K3_OK;
    }
    if (!answer_settings_read(m->settings, &t->with))
        notice(t->s, "the answer was begun by another model or version; it goes on with this one");
    t->most = answer_room(m, &t->with);
    t->base = m;
    return answer_again(t, err);
}

static enum k3_status do_work(struct turn *t, const struct queued_message *w, struct k3_error *err)
{
    switch (w->kind) {
    case WORK_SEND: return send_message(t, w, err);
    case WORK_EDIT: return edit_message(t, w, err);
    case WORK_REGENERATE: return regenerate(t, err);
    case WORK_CONTINUE: return go_on(t, err);
    case WORK_BRANCH: return session_do_branch(t->s, w->tip, err);
    case WORK_SYSTEM: return session_do_system(t->s, w, err);
    default: session_do_discard(t->s); return K3_OK;
    }
    return K3_OK;
}

void turn_run(struct session *s, const struct queued_message *work, enum k3_thinking thinking)
{
    struct k3_error err = {0};
    const uint32_t most = s->cfg->max_tokens != 0 ? s->cfg->max_tokens : CHAT_MAX_TOKENS;
    struct turn t = {.s = s,
                     .most = most,
                     .with = {.model = s->rt.name,
                              .profile = s->cfg->profile_name,
                              .fingerprint = k3_get_fingerprint(s->rt.engine),
                              .thinking = thinking,
                              .sampling = s->cfg->sampling,
                              .max_tokens = most}};
    begin_turn(s);
    const enum k3_status status = do_work(&t, work, &err);
    if (status != K3_OK && status != K3_CANCELLED)
        session_emit_text(s, EVENT_ERROR, err.message, strlen(err.message));
    answer_free(&t.answer);
    conversation_free(&t.aside);
    k3_ids_free(&t.prompt);
    session_set_phase(s, PHASE_IDLE);
}
