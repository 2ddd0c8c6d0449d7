/* batch_load.c - the session and the model of a batch run. */
#include <config.h>

#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"

static void on_fault(void *ud, const char *message)
{
    struct batch *b = ud;
    (void)b;
    fprintf(stderr, "k3chat: %s\n", message != NULL ? message : "the transcript is written again");
}

/* A question at the end that never got its answer is not asked again. */
static void drop_unanswered(struct batch *b)
{
    struct conversation *c = &b->conversation;
    if (c->n == 0 || strcmp(message_role(&c->v[c->n - 1]), "user") != 0)
        return;
    struct message m = conversation_pop(c);
    fprintf(stderr, "k3chat: the last message of the session had no answer; it is left out\n");
    recorder_withdraw_later(b->rec, &m);
    message_free(&m);
}

/* The last answer, when it was cut off, leaves the conversation to go on; a last message without an
 * answer gets one. */
static enum k3_status take_base(struct batch *b, struct k3_error *err)
{
    struct conversation *c = &b->conversation;
    const struct message *last = c->n == 0 ? NULL : &c->v[c->n - 1];
    if (last == NULL)
        return k3_fail(err, K3_USAGE, "--continue: session '%s' has no message",
                       b->req->run.session_name);
    if (strcmp(message_role(last), "assistant") != 0)
        return K3_OK;
    if (last->finish == FINISH_STOP || last->ids.n == 0)
        return k3_fail(err, K3_USAGE, "--continue: the last answer of session '%s' is complete",
                       b->req->run.session_name);
    b->base = conversation_pop(c);
    recorder_set_tip(b->rec, c->n == 0 ? 0 : c->v[c->n - 1].id);
    return K3_OK;
}

enum k3_status batch_open_session(struct batch *b, struct k3_error *err)
{
    struct conversation added = b->conversation;
    struct transcript *t = NULL;
    char *notice = NULL;
    b->conversation = (struct conversation){0};
    if (b->req->run.session_name != NULL) {
        t = transcript_open(b->req->run.session_name, &b->conversation, &notice, err);
        if (t == NULL) {
            conversation_free(&added);
            return err->status;
        }
    }
    if (notice != NULL)
        fprintf(stderr, "k3chat: %s\n", notice);
    free(notice);
    struct conversation *c = &b->conversation;
    b->rec = recorder_new(t, c->n == 0 ? 0 : c->v[c->n - 1].id, on_fault, b, err);
    enum k3_status status = b->rec == NULL ? err->status : K3_OK;
    if (b->rec != NULL)
        recorder_set_sync(b->rec, b->req->run.sync);
    if (status == K3_OK && added.n > 0)
        drop_unanswered(b);
    if (status == K3_OK && b->req->todo.kind == PROMPT_CONTINUE)
        status = take_base(b, err);
    for (size_t i = 0; status == K3_OK && i < added.n; i++) {
        recorder_add(b->rec, &added.v[i]);
        status = conversation_push(c, &added.v[i], err);
    }
    conversation_free(&added);
    return status;
}

static void on_notice(void *ud, const char *text)
{
    (void)ud;
    fprintf(stderr, "k3chat: %s\n", text);
}

static void on_progress(void *ud, const char *what, uint64_t done, uint64_t total)
{
    watcher_loading(((struct batch *)ud)->watch, what, done, total);
}

static void on_plan(void *ud, const struct k3_plan *plan)
{
    watcher_quiet(((struct batch *)ud)->watch);
    report_plan(stderr, plan);
}

/* What decides the answer: the request; of one that goes on, what it was begun with. */
static void settle_maker(struct batch *b)
{
    const struct run_config *cfg = &b->req->run;
    b->with = (struct answer_maker){
        .model = b->rt.name,
        .profile = cfg->profile_name,
        .fingerprint = k3_get_fingerprint(b->rt.engine),
        .thinking = cfg->thinking,
        .sampling = cfg->sampling,
        .max_tokens = cfg->max_tokens != 0 ? cfg->max_tokens : BATCH_MAX_TOKENS};
    if (b->base.body != NULL && !answer_settings_read(b->base.settings, &b->with))
        on_notice(b, "the answer was begun by another model or version; it goes on with this one");
    b->rt.line.sampling = b->with.sampling;
}

/* A generous guess of what the routing dump takes, before the model is known. */
#define ROUTING_PER_POSITION 8192

enum k3_status batch_load(struct batch *b, struct k3_error *err)
{
    const struct runtime_listener listen = {on_notice, on_progress, on_plan, b};
    const struct batch_request *todo = &b->req->todo;
    struct run_config cfg = b->req->run;
    if (cfg.engine.trace_path != NULL)
        cfg.engine.trace_path = outfile_name(&b->trace);
    const uint64_t context =
        cfg.engine.context != 0 ? cfg.engine.context : K3_CONTEXT_DEFAULT;
    const struct runtime_needs needs = {
        .tokenizer = !batch_is_ids(b),
        .all_logits = todo->teacher_force,
        .extra_bytes = todo->dump_routing ? context * ROUTING_PER_POSITION : 0};
    if (runtime_load(&b->rt, &cfg, &needs, &listen, err) != K3_OK)
        return err->status;
    settle_maker(b);
    if (b->base.body != NULL && !cfg.ignore_stop &&
        timeline_is_stop(&b->rt.line, b->base.ids.v[b->base.ids.n - 1]))
        return k3_fail(err, K3_USAGE, "--continue: the last answer of session '%s' is complete",
                       cfg.session_name);
    return runtime_use_states(&b->rt, &cfg, recorder_path(b->rec), on_notice, b, err);
}
