/* batch.c - one run without a screen; see batch.h. */
#include <config.h>

#include "batch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../engine/model/host.h"
#include "answer.h"
#include "paths.h"
#include "report.h"

/* A run in progress: the collected results and what only the callbacks need. */
struct run {
    struct batch *b;
    struct answer answer;   /* --chat */
    struct k3_utf8 utf8;    /* --prompt */
    uint32_t max_tokens;
};

static bool is_chat(const struct batch *b)
{
    return b->req->todo.kind == PROMPT_CHAT || b->req->todo.kind == PROMPT_CONTINUE;
}

static bool is_ids(const struct batch *b)
{
    return b->req->todo.kind == PROMPT_IDS || b->req->todo.kind == PROMPT_IDS_FILE;
}

static bool json_to_stdout(const struct batch *b)
{
    const char *path = b->req->todo.json_path;
    return path != NULL && strcmp(path, "-") == 0;
}

/* ---- checks and files -------------------------------------------------------------------- */

static enum k3_status check_request(const struct request *req, struct k3_error *err)
{
    const struct batch_request *todo = &req->todo;
    if (todo->dump_routing && todo->json_path == NULL)
        return k3_fail(err, K3_USAGE, "--dump-routing adds to the JSON: it needs --json FILE");
    if (req->run.session_name != NULL && todo->kind != PROMPT_CHAT && todo->kind != PROMPT_CONTINUE)
        return k3_fail(err, K3_USAGE, "--session in a batch run needs --chat or --continue: a "
                                      "transcript holds messages, not raw text");
    if (req->run.session_name == NULL && todo->kind == PROMPT_CONTINUE)
        return k3_fail(err, K3_USAGE, "--continue needs --session: it goes on where that ended");
    if (req->run.session_name != NULL && todo->teacher_force)
        return k3_fail(err, K3_USAGE, "--teacher-force generates nothing that --session could "
                                      "record; leave one of them out");
    return K3_OK;
}

static enum k3_status open_files(struct batch *b, struct k3_error *err)
{
    const struct batch_request *todo = &b->req->todo;
    if (todo->json_path != NULL && !json_to_stdout(b) &&
        outfile_open(&b->json, todo->json_path, err) != K3_OK)
        return k3_fail_in(err, "--json");
    if (todo->logits_path != NULL && outfile_open(&b->logits, todo->logits_path, err) != K3_OK)
        return k3_fail_in(err, "--logits");
    const char *trace = b->req->run.engine.trace_path;
    if (trace != NULL && outfile_reserve(&b->trace, trace, err) != K3_OK)
        return k3_fail_in(err, "--trace");
    return K3_OK;
}

/* ---- loading ----------------------------------------------------------------------------- */

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

/* The transcript's conversation, and behind it the messages of the file. */
static enum k3_status open_session(struct batch *b, struct k3_error *err)
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

static enum k3_status load(struct batch *b, struct k3_error *err)
{
    const struct runtime_listener listen = {on_notice, on_progress, on_plan, b};
    const struct batch_request *todo = &b->req->todo;
    struct run_config cfg = b->req->run;
    if (cfg.engine.trace_path != NULL)
        cfg.engine.trace_path = outfile_name(&b->trace);
    const uint64_t context =
        cfg.engine.context != 0 ? cfg.engine.context : K3_CONTEXT_DEFAULT;
    const struct runtime_needs needs = {
        .tokenizer = !is_ids(b),
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

/* ---- routing ----------------------------------------------------------------------------- */

static enum k3_status open_routing(struct batch *b, uint32_t positions, struct k3_error *err)
{
    const struct k3_plan *plan = k3_get_plan(b->rt.engine);
    struct routing *r = &b->routing;
    r->positions = positions < plan->context ? positions : plan->context;
    r->top_k = plan->top_k;
    r->n_layers = plan->layers;
    r->layers = calloc((size_t)plan->layers + 1, sizeof *r->layers);
    return r->layers == NULL ? k3_fail_memory(err, "the routing", plan->layers) : K3_OK;
}

static void on_routing(void *ud, uint32_t layer, uint32_t position, const int32_t *experts,
                       uint32_t top_k)
{
    struct batch *b = ud;
    struct routing *r = &b->routing;
    if (layer >= r->n_layers || position >= r->positions || top_k != r->top_k)
        return;
    const size_t bytes = (size_t)r->positions * top_k * sizeof **r->layers;
    if (r->layers[layer] == NULL && (r->layers[layer] = calloc(1, bytes)) == NULL) {
        k3_fail_memory(&b->error, "the routing", bytes);
        return;
    }
    memcpy(r->layers[layer] + (size_t)position * top_k, experts, top_k * sizeof *experts);
    if (position + 1 > r->filled)
        r->filled = position + 1;
}

static void free_routing(struct routing *r)
{
    for (uint32_t i = 0; r->layers != NULL && i < r->n_layers; i++)
        free(r->layers[i]);
    free(r->layers);
}

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
    if (json_to_stdout(b))
        return;
    fwrite(text, 1, len, stdout);
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

static void print_ids(const struct k3_ids *ids)
{
    for (size_t i = 0; i < ids->n; i++)
        printf("%s%d", i == 0 ? "" : ",", (int)ids->v[i]);
    putchar('\n');
}

/* What was not streamed: ids, and the line break behind a text. */
static void finish_stdout(struct batch *b)
{
    if (json_to_stdout(b))
        return;
    if (b->req->todo.teacher_force)
        print_ids(&b->argmax);
    else if (is_ids(b))
        print_ids(&b->generated);
    else if (b->text.n > 0 && b->text.v[b->text.n - 1] != '\n')
        putchar('\n');
}

static enum k3_status check_stdout(struct k3_error *err)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return K3_OK;
    return k3_fail(err, K3_FAILED, "stdout cannot be written: %s", strerror(errno));
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
    if (is_chat(b))
        answer_token(&r->answer, id);
    else
        show_token(r, id, stop);
    if (timeline_save_due(&b->rt.line)) {
        recorder_flush(b->rec);
        timeline_save_now(&b->rt.line);
    }
    /* progress would be drawn over the text when both go to the same screen */
    if (is_ids(b) || json_to_stdout(b) || isatty(STDOUT_FILENO) == 0)
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
    if (is_chat(b) && begin_answer(r, err) != K3_OK)
        return err->status;
    enum k3_status status = timeline_generate(&b->rt.line, &g, err);
    b->finish = g.finish;
    status = judge(b, status, err);
    struct k3_error end_err = {0};
    if (!is_chat(b))
        k3_utf8_end(&r->utf8, show, r);
    else if (g.tokens > 0 && end_answer(r, g.finish, &end_err) != K3_OK && status == K3_OK) {
        *err = end_err;
        return err->status;
    }
    watcher_quiet(b->watch);
    if (is_chat(b) && g.tokens > 0 && b->content.n == 0)
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

static enum k3_status run(struct batch *b, struct k3_error *err)
{
    const struct request *req = b->req;
    struct run r = {.b = b};
    r.max_tokens = b->base.body != NULL ? answer_room(&b->base, &b->with) : b->with.max_tokens;
    enum k3_status status = batch_prompt_encode(b, err);
    if (status == K3_OK && req->todo.dump_routing) {
        const uint64_t positions = (uint64_t)b->prompt.n + r.max_tokens;
        status = open_routing(b, positions > UINT32_MAX ? UINT32_MAX : (uint32_t)positions, err);
        k3_set_routing(b->rt.engine, on_routing, b);
    }
    if (status == K3_OK)
        status = run_prompt(&r, err);
    answer_free(&r.answer);
    return status;
}

/* ---- the end ----------------------------------------------------------------------------- */

static void report(const struct batch *b)
{
    struct k3_metrics m;
    k3_get_metrics(b->rt.engine, &m);
    const struct k3_plan *plan = k3_get_plan(b->rt.engine);
    const struct run_figures f = {.prefill = b->prefill,
                                  .steps = b->steps_sum,
                                  .prompt_tokens = (uint32_t)b->prompt.n,
                                  .reused = b->reused,
                                  .generated = (uint32_t)b->generated.n,
                                  .pace = &b->pace,
                                  .finish = b->finish,
                                  .devices = m.devices,
                                  .io = k3_io_in_use(b->rt.engine),
                                  .budget = plan->budget,
                                  .planned = plan->total,
                                  .peak_rss = k3_host_peak_rss(),
                                  .plan_bytes_per_token = plan->bytes_per_token,
                                  .first_read_s = m.first_read_s};
    report_run(stderr, &f);
}

/* A run that was interrupted hands over what there is: files and JSON agree with each other. */
static enum k3_status deliver(struct batch *b, struct k3_error *err)
{
    finish_stdout(b);
    if (json_to_stdout(b) && result_json_write(b, stdout, err) != K3_OK)
        return err->status;
    if (b->json.f != NULL && result_json_write(b, b->json.f, err) != K3_OK)
        return err->status;
    report(b);
    watcher_set_engine(b->watch, NULL);
    runtime_close(&b->rt); /* the engine writes the trace */
    if (check_stdout(err) != K3_OK || outfile_commit(&b->logits, err) != K3_OK ||
        outfile_commit(&b->trace, err) != K3_OK)
        return err->status;
    return outfile_commit(&b->json, err);
}

static void close_batch(struct batch *b)
{
    if (b->watch != NULL) {
        watcher_set_engine(b->watch, NULL);
        watcher_set_recorder(b->watch, NULL);
    }
    runtime_close(&b->rt);
    recorder_free(b->rec);
    watcher_stop(b->watch);
    conversation_free(&b->conversation);
    message_free(&b->base);
    outfile_abort(&b->json);
    outfile_abort(&b->logits);
    outfile_abort(&b->trace);
    k3_ids_free(&b->prompt);
    k3_ids_free(&b->generated);
    k3_ids_free(&b->argmax);
    free(b->steps);
    buffer_free(&b->text);
    buffer_free(&b->reasoning);
    buffer_free(&b->content);
    free_routing(&b->routing);
}

static enum k3_status prepare(struct batch *b, struct k3_error *err)
{
    if (check_request(b->req, err) != K3_OK || batch_prompt_read(b, err) != K3_OK ||
        open_files(b, err) != K3_OK)
        return err->status;
    b->watch = watcher_start(isatty(STDERR_FILENO) != 0, err);
    if (b->watch == NULL || open_session(b, err) != K3_OK)
        return err->status;
    watcher_set_recorder(b->watch, b->rec);
    if (load(b, err) != K3_OK)
        return err->status;
    watcher_set_engine(b->watch, b->rt.engine);
    return K3_OK;
}

int batch_run(const struct request *req)
{
    struct batch b = {.req = req};
    struct k3_error err = {0};
    signal(SIGPIPE, SIG_IGN); /* a closed stdout is a write error like any other */
    enum k3_status status = prepare(&b, &err);
    if (status == K3_OK)
        status = run(&b, &err);
    const bool cancelled = status == K3_CANCELLED || b.finish == FINISH_CANCELLED;
    if (b.watch != NULL)
        watcher_quiet(b.watch);
    if (status == K3_OK || status == K3_CANCELLED) {
        status = deliver(&b, &err);
        if (status == K3_OK && cancelled)
            status = k3_fail(&err, K3_CANCELLED, "interrupted");
    } else if (status == K3_UNSOUND && b.generated.n + b.argmax.n > 0) {
        struct k3_error late = {0};
        if (deliver(&b, &late) != K3_OK)
            fprintf(stderr, "k3chat: %s\n", late.message);
    }
    close_batch(&b);
    if (status != K3_OK)
        fprintf(stderr, "k3chat: %s\n", err.message);
    return (int)status;
}
