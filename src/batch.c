/* batch.c - one run without a screen; see batch.h. */
#include <config.h>

#include "batch.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../engine/model/host.h"
#include "report.h"

bool batch_is_chat(const struct batch *b)
{
    return b->req->todo.kind == PROMPT_CHAT || b->req->todo.kind == PROMPT_CONTINUE;
}

bool batch_is_ids(const struct batch *b)
{
    return b->req->todo.kind == PROMPT_IDS || b->req->todo.kind == PROMPT_IDS_FILE;
}

bool batch_json_to_stdout(const struct batch *b)
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
    if (todo->json_path != NULL && !batch_json_to_stdout(b) &&
        outfile_open(&b->json, todo->json_path, err) != K3_OK)
        return k3_fail_in(err, "--json");
    if (todo->logits_path != NULL && outfile_open(&b->logits, todo->logits_path, err) != K3_OK)
        return k3_fail_in(err, "--logits");
    const char *trace = b->req->run.engine.trace_path;
    if (trace != NULL && outfile_reserve(&b->trace, trace, err) != K3_OK)
        return k3_fail_in(err, "--trace");
    return K3_OK;
}

/* ---- the end ----------------------------------------------------------------------------- */

static void print_ids(const struct k3_ids *ids)
{
    for (size_t i = 0; i < ids->n; i++)
        printf("%s%d", i == 0 ? "" : ",", (int)ids->v[i]);
    putchar('\n');
}

/* What was not streamed: ids, and the line break behind a text. */
static void finish_stdout(struct batch *b)
{
    if (batch_json_to_stdout(b))
        return;
    if (b->req->todo.teacher_force)
        print_ids(&b->argmax);
    else if (batch_is_ids(b))
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
    if (batch_json_to_stdout(b) && result_json_write(b, stdout, err) != K3_OK)
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
    batch_routing_free(&b->routing);
}

static enum k3_status prepare(struct batch *b, struct k3_error *err)
{
    if (check_request(b->req, err) != K3_OK || batch_prompt_read(b, err) != K3_OK ||
        open_files(b, err) != K3_OK)
        return err->status;
    b->watch = watcher_start(isatty(STDERR_FILENO) != 0, err);
    if (b->watch == NULL || batch_open_session(b, err) != K3_OK)
        return err->status;
    watcher_set_recorder(b->watch, b->rec);
    if (batch_load(b, err) != K3_OK)
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
        status = batch_answer(&b, &err);
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
