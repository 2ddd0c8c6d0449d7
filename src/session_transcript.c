/* session_transcript.c - a session and its transcript: opening one, showing what is in it, following
 * one that another program writes, going from one to another. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buffer.h"
#include "paths.h"
#include "reread.h"
#include "session_internal.h"
#include "sessions.h"

/* What was opened, before it takes the place of what there was. */
struct opened {
    struct transcript *t;          /* NULL: only to be shown, or temporary */
    bool temporary;
    char name[128];
    struct conversation conversation;
    char *notice;
    struct watched watched;
};

static void say(struct session *s, const char *text)
{
    session_emit_text(s, EVENT_NOTICE, text, strlen(text));
}

/* ---- showing ----------------------------------------------------------------------------- */

static enum session_role role_of(const struct message *m)
{
    const char *role = message_role(m);
    return strcmp(role, "assistant") == 0 ? ROLE_ASSISTANT
           : strcmp(role, "user") == 0    ? ROLE_USER
                                          : ROLE_SYSTEM;
}

static void emit_message(struct session *s, const struct message *m, size_t index, bool sent)
{
    size_t len = 0, reasoning_len = 0;
    const char *text = message_text(m, "content", &len);
    const char *reasoning = message_text(m, "reasoning_content", &reasoning_len);
    struct session_event ev = {.kind = EVENT_MESSAGE,
                               .role = role_of(m),
                               .index = (uint32_t)index,
                               .sent = sent,
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

void session_emit_message(struct session *s, const struct message *m, size_t index)
{
    emit_message(s, m, index, false);
}

void session_emit_sent(struct session *s, const struct message *m, size_t index)
{
    emit_message(s, m, index, true);
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
    say(s, "the last message had no answer yet; it is back in the editor");
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
        snprintf(note, sizeof note,
                 "the last answer was interrupted after %u tokens; they are kept, and /continue "
                 "goes on with it",
                 (unsigned)c->v[c->n - 1].tokens);
        say(s, note);
    }
    give_back_unanswered(s);
}

/* An answer that another program is still writing. */
static void emit_running(struct session *s, const struct message *m, size_t index)
{
    size_t len = 0;
    session_emit(s, (struct session_event){.kind = EVENT_ANSWER, .index = (uint32_t)index,
                                           .time = m->time});
    const char *text = message_text(m, "reasoning_content", &len);
    if (len > 0)
        session_emit_text(s, EVENT_REASONING, text, len);
    text = message_text(m, "content", &len);
    if (len > 0)
        session_emit_text(s, EVENT_CONTENT, text, len);
}

/* The messages from number `from` on, for the eye only. */
static void show_from(struct session *s, size_t from)
{
    const struct conversation *c = &s->conversation;
    /* where it may be going on */
    const bool elsewhere = recorder_path(s->rec) == NULL && !s->state.temporary;
    for (size_t i = from; i < c->n; i++) {
        if (c->v[i].unfinished && elsewhere)
            emit_running(s, &c->v[i], i);
        else
            session_emit_message(s, &c->v[i], i);
    }
}

/* ---- opening ----------------------------------------------------------------------------- */

static struct watched watch(const char *name)
{
    struct k3_error unused;
    struct stat st;
    char *path = transcript_file(name, &unused);
    struct watched w = {.size = -1};
    if (path != NULL && stat(path, &st) == 0)
        w = (struct watched){st.st_size,
                             (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec};
    free(path);
    return w;
}

static enum k3_status open_shown(const char *name, struct opened *o, struct k3_error *err)
{
    struct transcript_contents in;
    o->watched = watch(name); /* before: what comes in between is seen the next time */
    if (sessions_load(name, &in, err) != K3_OK)
        return err->status;
    o->conversation = in.conversation;
    snprintf(o->name, sizeof o->name, "%s", name);
    return K3_OK;
}

static enum k3_status open_one(const char *name, bool temporary, struct opened *o,
                               struct k3_error *err)
{
    *o = (struct opened){.temporary = temporary};
    if (temporary)
        return K3_OK;
    o->t = transcript_open(name, &o->conversation, &o->notice, err);
    if (o->t != NULL) {
        snprintf(o->name, sizeof o->name, "%s", transcript_name(o->t));
        return K3_OK;
    }
    if (name == NULL || !transcript_in_use(name))
        return err->status;
    return open_shown(name, o, err);
}

/* From here on this is the session; `switched`: the front end knows another one. */
static void put_in_place(struct session *s, struct opened *o, bool switched)
{
    conversation_free(&s->conversation);
    s->conversation = o->conversation;
    s->watched = o->watched;
    pthread_mutex_lock(&s->lock);
    memcpy(s->state.session_name, o->name, sizeof s->state.session_name);
    s->state.temporary = o->temporary;
    s->state.position = s->state.reread_tokens = 0;
    s->state.answer_tokens = s->state.reasoning_tokens = 0;
    pthread_mutex_unlock(&s->lock);
    if (switched)
        session_emit(s, (struct session_event){.kind = EVENT_OPENED});
    if (o->notice != NULL)
        say(s, o->notice);
    free(o->notice);
}

static void show_opened(struct session *s, bool shown_only)
{
    if (s->state.temporary)
        say(s, "TEMPORARY: this chat is written to no file; when it is left, it is gone");
    if (!shown_only) {
        show_history(s);
        return;
    }
    char note[384];
    show_from(s, 0);
    snprintf(note, sizeof note,
             "READ ONLY: session '%s' is open in another k3chat. It is shown here and followed, but "
             "cannot be gone on with; when it is closed there, /resume opens it",
             s->state.session_name);
    say(s, note);
    session_set_phase(s, PHASE_VIEWING);
}

static int64_t tip_of(const struct conversation *c)
{
    return c->n == 0 ? 0 : c->v[c->n - 1].id;
}

static void on_fault(void *ud, const char *message)
{
    struct session *s = ud;
    if (message != NULL)
        session_emit_text(s, EVENT_ERROR, message, strlen(message));
    else
        say(s, "the transcript is written again");
}

enum k3_status session_open_first(struct session *s, struct k3_error *err)
{
    struct opened o;
    if (open_one(s->cfg->session_name, s->cfg->temporary, &o, err) != K3_OK)
        return err->status;
    const bool shown_only = o.t == NULL && !o.temporary;
    s->rec = recorder_new(o.t, tip_of(&o.conversation), on_fault, s, err);
    if (s->rec == NULL) {
        conversation_free(&o.conversation);
        free(o.notice);
        return err->status;
    }
    recorder_set_sync(s->rec, s->cfg->sync);
    put_in_place(s, &o, false);
    show_opened(s, shown_only);
    return K3_OK;
}

/* ---- following --------------------------------------------------------------------------- */

static bool same_message(const struct message *a, const struct message *b)
{
    return a->id == b->id && a->unfinished == b->unfinished && a->ids.n == b->ids.n;
}

/* What differs is shown anew; the conversation is then this one. */
static void change_to(struct session *s, struct conversation *c)
{
    size_t same = 0;
    while (same < c->n && same < s->conversation.n &&
           same_message(&c->v[same], &s->conversation.v[same]))
        same++;
    if (same < s->conversation.n)
        session_emit(s, (struct session_event){.kind = EVENT_DROPPED, .index = (uint32_t)same});
    conversation_free(&s->conversation);
    s->conversation = *c;
    show_from(s, same);
}

void session_follow(struct session *s)
{
    struct opened o;
    struct k3_error err = {0};
    const struct watched now = watch(s->state.session_name);
    if (now.size == s->watched.size && now.changed == s->watched.changed)
        return;
    if (open_shown(s->state.session_name, &o, &err) != K3_OK) {
        s->watched = now; /* told once for each state that it is in */
        say(s, err.message);
        return;
    }
    s->watched = o.watched;
    change_to(s, &o.conversation);
}

/* ---- leaving ----------------------------------------------------------------------------- */

/* Adds what was written and waits to what is there. */
static void gather_queue(struct session *s, struct buffer *all)
{
    pthread_mutex_lock(&s->lock);
    for (const struct queued_message *q = s->queue; q != NULL; q = q->next) {
        if (q->kind != WORK_SEND && q->kind != WORK_EDIT)
            continue;
        if (all->n > 0)
            buffer_add(all, "\n\n", 2);
        buffer_add(all, q->text, q->len);
    }
    pthread_mutex_unlock(&s->lock);
}

/* A message that was being read makes way for one that holds it and what is queued: of two in a row only
 * the last would be given back, and the first would stay in the conversation without an answer. */
void session_save_queue(struct session *s)
{
    struct buffer all = {0};
    size_t len = 0;
    const char *text = message_text(&s->unanswered, "content", &len);
    buffer_add(&all, text, len);
    gather_queue(s, &all);
    struct k3_error unused;
    struct message m = {0};
    if (all.n > len && !all.failed)
        m.body = body_new("user", all.v, all.n, &unused);
    if (m.body != NULL && len > 0)
        recorder_withdraw_later(s->rec, &s->unanswered);
    if (m.body != NULL)
        recorder_add(s->rec, &m);
    message_free(&m);
    buffer_free(&all);
}

/* What needs a conversation that can be gone on with. */
static void drop_queue(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    for (struct queued_message **at = &s->queue; *at != NULL;) {
        struct queued_message *q = *at;
        if (q->kind >= WORK_SWITCH) {
            at = &q->next;
            continue;
        }
        *at = q->next;
        session_free_work(q);
    }
    pthread_mutex_unlock(&s->lock);
}

/* What was written for the session that is left is recorded there. */
static void leave_queue(struct session *s)
{
    session_save_queue(s);
    drop_queue(s);
}

/* What was written for a session that is only shown cannot be recorded there: it goes back to the editor. */
static void give_back_queue(struct session *s)
{
    struct buffer all = {0};
    gather_queue(s, &all);
    drop_queue(s);
    if (all.n > 0 && !all.failed) {
        say(s, "what was written for this session is back in the editor");
        session_emit_text(s, EVENT_WITHDRAWN, all.v, all.n);
    }
    buffer_free(&all);
}

static bool is_viewing(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    const bool viewing = s->state.phase == PHASE_VIEWING;
    pthread_mutex_unlock(&s->lock);
    return viewing;
}

static void forget_old(struct session *s)
{
    struct k3_error err = {0};
    if (recorder_remove(s->rec, &err) != K3_OK)
        session_emit_text(s, EVENT_ERROR, err.message, strlen(err.message));
}

/* A session that is only shown may have been renamed or deleted meanwhile by the program that has it: by
 * its old name a new, empty one would be begun. */
static bool is_gone(struct session *s, const char *name)
{
    struct k3_error unused;
    if (name == NULL || strcmp(name, s->state.session_name) != 0 || !is_viewing(s))
        return false;
    char *path = transcript_file(name, &unused);
    const bool gone = path != NULL && access(path, F_OK) != 0;
    free(path);
    return gone;
}

void session_do_switch(struct session *s, const struct queued_message *work)
{
    struct opened o;
    struct k3_error err = {0};
    const char *name = work->len > 0 ? work->text : NULL;
    if (name != NULL && strcmp(name, s->state.session_name) == 0 && !is_viewing(s)) {
        say(s, "this session is open already");
        return;
    }
    if (is_gone(s, name)) {
        say(s, "the other k3chat has renamed or deleted this session; /sessions lists what there is");
        return;
    }
    if (!work->forget && recorder_failing(s->rec)) {
        say(s, "what was said last is not on the disk yet: make room, or leave to have it written "
               "elsewhere; until then this session stays open");
        return;
    }
    if (open_one(name, work->text == NULL, &o, &err) != K3_OK) {
        say(s, err.message);
        return;
    }
    if (!s->loaded || is_viewing(s)) /* else all that was queued before has been carried out */
        leave_queue(s);
    if (work->forget)
        forget_old(s);
    const bool shown_only = o.t == NULL && !o.temporary;
    session_set_phase(s, PHASE_LOADING);
    session_set_detail(s, "opening the session");
    recorder_use(s->rec, o.t, tip_of(&o.conversation));
    put_in_place(s, &o, true);
    show_opened(s, shown_only);
    if (shown_only) {
        give_back_queue(s);
        return;
    }
    if (!s->loaded)
        session_load_model(s);
    else
        session_use_transcript(s);
}

void session_do_discard(struct session *s)
{
    struct conversation *c = &s->conversation;
    if (c->n < 2 || strcmp(message_role(&c->v[c->n - 1]), "assistant") != 0 ||
        strcmp(message_role(&c->v[c->n - 2]), "user") != 0) {
        say(s, "there is no question with its answer that could be taken back");
        return;
    }
    struct message answer = conversation_pop(c), question = conversation_pop(c);
    size_t len = 0;
    const char *text = message_text(&question, "content", &len);
    recorder_branch(s->rec, question.parent);
    session_emit(s, (struct session_event){.kind = EVENT_DROPPED, .index = (uint32_t)c->n});
    session_emit_text(s, EVENT_WITHDRAWN, text, len);
    message_free(&question);
    message_free(&answer);
}

/* The file holds every branch; what an answer cost is in it too. */
enum k3_status session_do_branch(struct session *s, int64_t tip, struct k3_error *err)
{
    struct transcript_contents in;
    size_t len = 0;
    const char *path = recorder_path(s->rec);
    char *text = path == NULL ? NULL : path_read_file(path, SIZE_MAX / 4, &len, err);
    if (path == NULL)
        return k3_fail(err, K3_USAGE, "a session that is temporary or only shown has one branch");
    if (text == NULL || transcript_parse_at(text, len, path, tip, &in, err) != K3_OK) {
        free(text);
        return err->status;
    }
    free(text);
    recorder_branch(s->rec, tip);
    change_to(s, &in.conversation);
    give_back_unanswered(s); /* a branch can end as a session does */
    reread_tell(s);
    return K3_OK;
}

enum k3_status session_do_system(struct session *s, const struct queued_message *work,
                                 struct k3_error *err)
{
    struct message m = {.body = body_new("system", work->text, work->len, err)};
    if (m.body == NULL)
        return err->status;
    recorder_add(s->rec, &m);
    session_emit_message(s, &m, s->conversation.n);
    return conversation_push(&s->conversation, &m, err);
}

void session_do_rename(struct session *s, const struct queued_message *work)
{
    struct k3_error err = {0};
    if (recorder_rename(s->rec, work->text, &err) != K3_OK) {
        say(s, err.message);
        if (recorder_name(s->rec)[0] == '\0' || strcmp(recorder_name(s->rec), work->text) != 0)
            return; /* else it has its new name, but something else went wrong */
    }
    pthread_mutex_lock(&s->lock);
    snprintf(s->state.session_name, sizeof s->state.session_name, "%s", work->text);
    pthread_mutex_unlock(&s->lock);
    session_poke(s);
    if (s->loaded)
        session_use_transcript(s);
}
