/* talk.c - the conversation as the screen keeps it (see talk.h). */
#include <config.h>

#include "talk.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"

bool text_buf_add(struct text_buf *b, const char *s, size_t len)
{
    if (!GROW(b->s, b->cap, b->len + len + 1))
        return false;
    if (len > 0)
        memcpy(b->s + b->len, s, len);
    b->len += len;
    b->s[b->len] = '\0';
    return true;
}

static void entry_free(struct entry *e)
{
    if (!e)
        return;
    free(e->text.s);
    free(e->reasoning.s);
    rich_free(&e->rich);
    wrapped_free(&e->rows);
    free(e);
}

void talk_init(struct talk *t)
{
    *t = (struct talk){.markdown = true};
}

void talk_free(struct talk *t)
{
    for (size_t i = 0; i < t->n; i++)
        entry_free(t->entries[i]);
    free(t->entries);
    *t = (struct talk){0};
}

void talk_clear(struct talk *t)
{
    const size_t said = t->n - t->n_queued;
    for (size_t i = 0; i < said; i++)
        entry_free(t->entries[i]);
    if (said > 0)
        memmove(t->entries, t->entries + said, t->n_queued * sizeof *t->entries);
    t->n = t->n_queued;
    t->running = NULL;
}

/* Puts a new entry before the queued ones; NULL = memory. */
static struct entry *add_entry(struct talk *t, enum entry_kind kind, bool queued)
{
    struct entry *e = calloc(1, sizeof *e);
    if (!e || !GROW(t->entries, t->cap, t->n + 1)) {
        free(e);
        t->short_of_memory = true;
        return NULL;
    }
    const size_t at = queued ? t->n : t->n - t->n_queued;
    memmove(&t->entries[at + 1], &t->entries[at], (t->n - at) * sizeof *t->entries);
    t->entries[at] = e;
    t->n++;
    t->n_queued += queued;
    e->kind = kind;
    e->index = -1;
    e->queued = queued;
    e->stale = true;
    return e;
}

static void remove_entry(struct talk *t, size_t i)
{
    if (t->running == t->entries[i])
        t->running = NULL;
    t->n_queued -= t->entries[i]->queued;
    entry_free(t->entries[i]);
    memmove(&t->entries[i], &t->entries[i + 1], (t->n - i - 1) * sizeof *t->entries);
    t->n--;
}

/* The places of the queued messages, after a change. */
static void number_queue(struct talk *t)
{
    for (size_t i = 0; i < t->n_queued; i++) {
        struct entry *e = t->entries[t->n - t->n_queued + i];
        e->stale = e->stale || e->place != i + 1;
        e->place = i + 1;
    }
}

static void append(struct talk *t, struct entry *e, struct text_buf *b, const char *s,
                   size_t len)
{
    if (s && !text_buf_add(b, s, len))
        t->short_of_memory = true;
    e->stale = true;
}

void talk_notice(struct talk *t, enum entry_kind kind, const char *text)
{
    struct entry *e = add_entry(t, kind, false);
    if (e)
        append(t, e, &e->text, text, strlen(text));
}

bool talk_queue(struct talk *t, const char *s, size_t len)
{
    struct entry *e = add_entry(t, ENTRY_USER, true);
    if (e)
        append(t, e, &e->text, s, len);
    number_queue(t);
    return e != NULL;
}

void talk_unqueue(struct talk *t)
{
    if (t->n_queued > 0)
        remove_entry(t, t->n - 1);
}

const struct entry *talk_queued(const struct talk *t, size_t n)
{
    return n >= 1 && n <= t->n_queued ? t->entries[t->n - t->n_queued + n - 1] : NULL;
}

void talk_queue_drop(struct talk *t, size_t n)
{
    if (!talk_queued(t, n))
        return;
    remove_entry(t, t->n - t->n_queued + n - 1);
    number_queue(t);
}

void talk_queue_keep(struct talk *t, size_t n)
{
    while (t->n_queued > n)
        talk_queue_drop(t, 1);
}

void talk_queue_first(struct talk *t, size_t n)
{
    if (!talk_queued(t, n))
        return;
    struct entry **first = &t->entries[t->n - t->n_queued], *e = first[n - 1];
    memmove(first + 1, first, (n - 1) * sizeof *first);
    *first = e;
    number_queue(t);
}

/* The session has taken up a queued message: from now on it is said. Mostly the first; not when the order
 * was changed at that moment. */
static void take_up(struct talk *t, const struct session_event *ev)
{
    for (size_t n = 1; n <= t->n_queued; n++) {
        const struct entry *q = talk_queued(t, n);
        if (q->text.len == ev->len && (ev->len == 0 || memcmp(q->text.s, ev->text, ev->len) == 0)) {
            talk_queue_drop(t, n);
            return;
        }
    }
}

static void add_message(struct talk *t, const struct session_event *ev)
{
    static const enum entry_kind kinds[] = {
        [ROLE_SYSTEM] = ENTRY_SYSTEM, [ROLE_USER] = ENTRY_USER, [ROLE_ASSISTANT] = ENTRY_ASSISTANT,
    };
    if (ev->sent)
        take_up(t, ev);
    struct entry *e = add_entry(t, kinds[ev->role], false);
    if (!e)
        return;
    e->index = ev->index;
    append(t, e, &e->text, ev->text, ev->len);
    append(t, e, &e->reasoning, ev->reasoning, ev->reasoning_len);
    e->time = ev->time;
    e->tokens = ev->tokens;
    e->reasoning_tokens = ev->reasoning_tokens;
    e->seconds = ev->seconds;
    e->finish = ev->finish;
}

/* The running answer; text that comes without a beginning opens one. */
static struct entry *running_entry(struct talk *t)
{
    if (!t->running) {
        t->running = add_entry(t, ENTRY_ASSISTANT, false);
        if (t->running)
            t->running->running = true;
    }
    return t->running;
}

static void begin_answer(struct talk *t, const struct session_event *ev)
{
    if (t->running)
        t->running->running = false;
    t->running = NULL;
    struct entry *e = running_entry(t);
    if (!e)
        return;
    e->time = ev->time;
    e->index = ev->index;
}

/* Messages make way for a new branch. */
static void drop(struct talk *t, uint32_t index)
{
    for (size_t i = t->n; i-- > 0;)
        if (t->entries[i]->index >= (int64_t)index)
            remove_entry(t, i);
}

static void end_answer(struct talk *t, const struct session_event *ev)
{
    struct entry *e = t->running;
    if (!e)
        return;
    e->running = false;
    e->finish = ev->finish;
    e->stale = true;
    if (ev->seconds > 0)
        e->seconds = ev->seconds;
    if (ev->tokens > 0)
        e->tokens = ev->tokens;
    if (ev->reasoning_tokens > 0)
        e->reasoning_tokens = ev->reasoning_tokens;
    t->running = NULL;
}

static void remove_this(struct talk *t, const struct entry *e)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->entries[i] == e) {
            remove_entry(t, i);
            return;
        }
    }
}

/* Cancelled before any output: the question goes back to the editor and leaves the screen. */
static void withdraw(struct talk *t, const struct session_event *ev)
{
    if (t->running && t->running->text.len == 0 && t->running->reasoning.len == 0)
        remove_this(t, t->running);
    for (size_t i = t->n - t->n_queued; i-- > 0;) {
        const struct entry *e = t->entries[i];
        if (e->kind == ENTRY_NOTICE || e->kind == ENTRY_ERROR)
            continue;
        if (e->kind == ENTRY_USER && e->text.len == ev->len &&
            (ev->len == 0 || memcmp(e->text.s, ev->text, ev->len) == 0))
            remove_entry(t, i);
        return;
    }
}

bool talk_apply(struct talk *t, const struct session_event *ev)
{
    struct entry *e;
    switch (ev->kind) {
    case EVENT_MESSAGE: add_message(t, ev); return true;
    case EVENT_ANSWER: begin_answer(t, ev); return true;
    case EVENT_REASONING:
        if ((e = running_entry(t)))
            append(t, e, &e->reasoning, ev->text, ev->len);
        return true;
    case EVENT_CONTENT:
        if ((e = running_entry(t)))
            append(t, e, &e->text, ev->text, ev->len);
        return true;
    case EVENT_STEP:
        if (t->running && t->running->text.len == 0) {
            t->running->reasoning_seconds += ev->step.seconds;
            t->running->reasoning_steps++;
        }
        return true;
    case EVENT_ANSWER_END: end_answer(t, ev); return true;
    case EVENT_DROPPED: drop(t, ev->index); return true;
    case EVENT_OPENED: talk_clear(t); return true;
    case EVENT_WITHDRAWN: withdraw(t, ev); return true;
    case EVENT_NOTICE: talk_notice(t, ENTRY_NOTICE, ev->text ? ev->text : ""); return true;
    case EVENT_ERROR: talk_notice(t, ENTRY_ERROR, ev->text ? ev->text : ""); return true;
    default: return true;
    }
}

const struct entry *talk_own_message(const struct talk *t, size_t n)
{
    for (size_t i = t->n - t->n_queued; i-- > 0 && n > 0;)
        if (t->entries[i]->kind == ENTRY_USER && t->entries[i]->index >= 0 && --n == 0)
            return t->entries[i];
    return NULL;
}

void talk_progress(struct talk *t, const struct session_status *st)
{
    struct entry *e = t->running;
    if (!e || (st->phase != PHASE_THINKING && st->phase != PHASE_ANSWERING &&
               st->phase != PHASE_CANCELLING))
        return;
    if (e->tokens != st->answer_tokens || e->reasoning_tokens != st->reasoning_tokens)
        e->stale = true;
    e->tokens = st->answer_tokens;
    e->reasoning_tokens = st->reasoning_tokens;
}

void talk_mark_all(struct talk *t)
{
    for (size_t i = 0; i < t->n; i++)
        t->entries[i]->stale = true;
}
