/* batch.h - one run without a screen: k3chat --batch. */
#ifndef K3CHAT_BATCH_H
#define K3CHAT_BATCH_H

#include "answer.h"
#include "buffer.h"
#include "outfile.h"
#include "recorder.h"
#include "runtime.h"
#include "settings.h"
#include "stats.h"
#include "watcher.h"

#define BATCH_MAX_TOKENS 64 /* unless the configuration says otherwise */

/* The experts each position chose: [layer][position][top_k]; NULL for layers without experts. */
struct routing {
    int32_t **layers;
    uint32_t n_layers, top_k, positions; /* room for so many */
    uint32_t filled;                     /* positions seen */
};

/* Everything a run collects; result_json.c and report.c read it. */
struct batch {
    const struct request *req;
    struct runtime rt;
    struct watcher *watch;
    struct recorder *rec;
    struct conversation conversation;  /* --chat */
    struct outfile json, logits, trace;

    struct k3_ids prompt, generated;
    struct k3_ids argmax;              /* --teacher-force: after each prompt position */
    struct step_stats prefill, steps_sum;
    uint32_t reused;
    struct step_stats *steps;          /* one per generated token */
    size_t steps_cap;
    struct pace pace;
    enum session_finish finish;
    struct buffer text;                /* what goes to stdout, ids apart */
    struct buffer reasoning, content;  /* --chat */
    struct message base;               /* --continue: the answer that goes on; no body = none */
    struct answer_maker with;          /* --chat, --continue */
    struct routing routing;
    struct k3_error error;             /* the first failure inside a callback */
};

/* Runs the request and returns the exit status; messages go to stderr. */
int batch_run(const struct request *req);

/* How the prompt came, and whether the JSON takes the place of the text. */
bool batch_is_chat(const struct batch *b);
bool batch_is_ids(const struct batch *b);
bool batch_json_to_stdout(const struct batch *b);

/* ---- batch_load.c ------------------------------------------------------------------------ */

/* The transcript's conversation, and behind it the messages of the file. */
enum k3_status batch_open_session(struct batch *b, struct k3_error *err);
enum k3_status batch_load(struct batch *b, struct k3_error *err);

/* ---- batch_routing.c --------------------------------------------------------------------- */

/* Has the experts of the first `positions` positions recorded. */
enum k3_status batch_routing_open(struct batch *b, uint32_t positions, struct k3_error *err);
void batch_routing_free(struct routing *r);

/* ---- batch_answer.c ---------------------------------------------------------------------- */

/* Reads the prompt and generates; what came out before a failure stays in b, and b->finish says how it
 * ended. */
enum k3_status batch_answer(struct batch *b, struct k3_error *err);

/* ---- batch_prompt.c ---------------------------------------------------------------------- */

/* What can be read without a model: ids, files, messages. */
enum k3_status batch_prompt_read(struct batch *b, struct k3_error *err);
/* The prompt's ids, with the tokenizer of the model. */
enum k3_status batch_prompt_encode(struct batch *b, struct k3_error *err);

/* ---- result_json.c ----------------------------------------------------------------------- */

enum k3_status result_json_write(const struct batch *b, FILE *f, struct k3_error *err);

#endif
