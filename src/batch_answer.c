/* batch_answer.c - the run itself: the prompt, then the answer as it comes. */
#include <config.h>

#include "batch.h"

#include <unistd.h>

#include "answer.h"
#include "shown.h"

/* A run in progress: the collected results and what only the callbacks need. */
struct run {
    struct batch *b;
    struct answer answer;   /* --chat */
    struct k3_utf8 utf8;    /* --prompt */
    uint32_t max_tokens;
};

/* ---- output ------------------------------------------------------------------------------ */

/* One row of logits, little endian as the file promises (the engine runs nowhere else). */
static void write_logits(struct batch *b, const float *row)
{
    if (b->logits.f != NULL)
        fwrite(row, sizeof *row, b->rt.line.vocab, b->logits.f);
}

/* The answer as it comes, at once. */
static void show(void *ud, const char *text, size_t len)
{
    struct batch *b = ((struct run *)ud)->b;
    buffer_add(&b->text, text, len);
    if (batch_json_to_stdout(b))
        return;
    shown_put(stdout, text, len);
    fflush(stdout);
}

static void keep_reasoning(void *ud, const char *text, size_t len)
{
    buffer_add(&((struct run *)ud)->b->reasoning, text, len);
}

static void show_content(void *ud, const char *text, size_t len)
{
    buffer_add(&((struct run *)ud)->b->content, text, len);
    show(ud, text, len);
}

/* The text of a raw continuation: stop ids and other stripped tokens are no part of it. */
static void show_token(struct run *r, int32_t id, bool stop)
{
    const k3_tokenizer *tok = r->b->rt.tok;
    if (tok == NULL || stop || k3_token_is_stripped(tok, id))
        return;
    size_t len = 0;
    const char *bytes = k3_token_bytes(tok, id, &len);
    if (bytes != NULL)
        k3_utf8_feed(&r->utf8, bytes, len, show, r);
}

/* ---- running ----------------------------------------------------------------------------- */

static bool add_step(struct batch *b, int32_t id, const struct step_stats *stats)
{
    const size_t n = b->generated.n;
    if (n == b->steps_cap) {
        const size_t cap = n == 0 ? 64 : 2 * n;
        struct step_stats *steps = realloc(b->steps, cap * sizeof *steps);
        if (steps == NULL) {
            k3_fail_memory(&b->error, "the figures", cap * sizeof *steps);
            return false;
        }
        b->steps = steps;
        b->steps_cap = cap;
    }
    if (k3_ids_push(&b->generated, id, &b->error) != K3_OK)
        return false;
    b->steps[n] = *stats;
    return true;
}

static void on_token(void *ud, int32_t id, bool stop, const struct step_stats *stats,
                     const float *logits)
{
    struct run *r = ud;
    struct batch *b = r->b;
    if (!add_step(b, id, stats))
        return;
    stats_add(&b->steps_sum, stats);
    if (stats->tokens > 0)
        pace_add(&b->pace, stats->seconds);
    write_logits(b, logits);
    if (batch_is_chat(b))
        answer_token(&r->answer, id);
    else
        show_token(r, id, stop);
    if (timeline_save_due(&b->rt.line)) {
        recorder_flush(b->rec);
        timeline_save_now(&b->rt.line);
    }
    /* progress would be drawn over the text when both go to the same screen */
    if (batch_is_ids(b) || batch_json_to_stdout(b) || isatty(STDOUT_FILENO) == 0)
        watcher_generating(b->watch, (uint32_t)b->generated.n, r->max_tokens, b->pace.mean);
    else
        watcher_quiet(b->watch);
}

static int on_position(void *ud, uint32_t position, const float *logits)
{
    (void)position;
    struct batch *b = ud;
    const struct k3_sampling greedy = {.greedy = true};
    write_logits(b, logits);
    const int32_t id = k3_sample(&greedy, logits, b->rt.line.vocab, position, b->rt.line.scratch);
    return k3_ids_push(&b->argmax, id, &b->error) != K3_OK;
}

static enum k3_status begin_answer(struct run *r, struct k3_error *err)
{
    struct batch *b = r->b;
    r->answer.reasoning = keep_reasoning;
    r->answer.content = show_content;
    r->answer.ud = r;
    json_t *made_with = answer_settings(&b->with);
    const enum k3_status status =
        answer_begin(&r->answer, b->rt.tok, b->rec, b->with.thinking, made_with, err);
    json_decref(made_with);
    if (status == K3_OK && b->base.body != NULL)
        answer_replay(&r->answer, &b->base.ids);
    return status;
}

/* Flushes what the parser holds back and records the message. */
static enum k3_status end_answer(struct run *r, enum session_finish finish, struct k3_error *err)
{
    struct batch *b = r->b;
    struct message m;
    json_t *figures =
        answer_figures((uint32_t)b->prompt.n, b->reused, &b->prefill, &b->steps_sum);
    const enum k3_status status =
        answer_end(&r->answer, finish, b->base.seconds + b->steps_sum.seconds, figures, &m, err);
    json_decref(figures);
    message_free(&m);
    timeline_keep(&b->rt.line);
    return status;
}

/* A step failed. When output had come out before it, that is no longer to be trusted: it stood on the
 * same disk. It is handed over all the same, marked. */
static enum k3_status judge(struct batch *b, enum k3_status status, struct k3_error *err)
{
    if (status != K3_FAILED && status != K3_UNSOUND)
        return status;
    b->finish = FINISH_ERROR;
    if (b->generated.n > 0 || b->argmax.n > 0)
        err->status = K3_UNSOUND;
    return err->status;
}

static enum k3_status generate(struct run *r, struct k3_error *err)
{
    struct batch *b = r->b;
    struct generation g = {.max_tokens = r->max_tokens,
                           .ignore_stop = b->req->run.ignore_stop,
                           .cancel = watcher_cancelled(b->watch),
                           .token = on_token,
                           .ud = r};
    if (batch_is_chat(b) && begin_answer(r, err) != K3_OK)
        return err->status;
    enum k3_status status = timeline_generate(&b->rt.line, &g, err);
    b->finish = g.finish;
    status = judge(b, status, err);
    struct k3_error end_err = {0};
    if (!batch_is_chat(b))
        k3_utf8_end(&r->utf8, show, r);
    else if (g.tokens > 0 && end_answer(r, g.finish, &end_err) != K3_OK && status == K3_OK) {
        *err = end_err;
        return err->status;
    }
    watcher_quiet(b->watch);
    if (batch_is_chat(b) && g.tokens > 0 && b->content.n == 0)
        fputs("k3chat: the answer is empty: the model was still thinking when it ended\n", stderr);
    if (g.context_full)
        fprintf(stderr, "k3chat: the context of %u positions is full; --context N makes more\n",
                (unsigned)b->rt.line.context);
    return status;
}

static enum k3_status run_prompt(struct run *r, struct k3_error *err)
{
    struct batch *b = r->b;
    const bool teacher = b->req->todo.teacher_force;
    watcher_reading(b->watch, b->prompt.n);
    enum k3_status status =
        timeline_read(&b->rt.line, b->prompt.v, b->prompt.n, teacher ? on_position : NULL, b,
                      &b->prefill, &b->reused, err);
    watcher_quiet(b->watch);
    if (status == K3_OK && b->rt.states != NULL)
        timeline_keep(&b->rt.line);
    b->finish = status == K3_CANCELLED ? FINISH_CANCELLED : FINISH_LENGTH;
    status = judge(b, status, err);
    if (status == K3_OK && !teacher)
        status = generate(r, err);
    if (status == K3_OK && b->error.status != K3_OK) {
        *err = b->error;
        status = err->status;
    }
    return status;
}

enum k3_status batch_answer(struct batch *b, struct k3_error *err)
{
    const struct request *req = b->req;
    struct run r = {.b = b};
    r.max_tokens = b->base.body != NULL ? answer_room(&b->base, &b->with) : b->with.max_tokens;
    enum k3_status status = batch_prompt_encode(b, err);
    if (status == K3_OK && req->todo.dump_routing) {
        const uint64_t positions = (uint64_t)b->prompt.n + r.max_tokens;
        status = batch_routing_open(b, positions > UINT32_MAX ? UINT32_MAX : (uint32_t)positions, err);
    }
    if (status == K3_OK)
        status = run_prompt(&r, err);
    answer_free(&r.answer);
    return status;
}
