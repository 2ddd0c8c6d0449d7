/* answer.h - one generated turn in the chat format: parsed, shown and recorded as it comes. */
#ifndef K3CHAT_ANSWER_H
#define K3CHAT_ANSWER_H

#include "recorder.h"
#include "run_config.h"
#include "stats.h"

struct answer {
    const k3_tokenizer *tok;  /* borrowed, like the recorder */
    struct recorder *rec;
    k3_chat_parser *parser;
    struct k3_ids ids;        /* all that were generated, the stop id included */
    uint32_t reasoning_tokens;
    json_t *settings;
    int64_t time;
    struct k3_error error;    /* the first failure inside answer_token() */
    /* text as it becomes certain, whole characters; either may be NULL */
    k3_text_fn reasoning, content;
    void *ud;
};

/* Zero-initialise, set reasoning, content and ud, then begin. settings: see answer_settings(). Free with answer_free(), also after a failure. */
enum k3_status answer_begin(struct answer *a, const k3_tokenizer *tok, struct recorder *rec,
                            enum k3_thinking thinking, json_t *settings,
                            struct k3_error *err);
void answer_token(struct answer *a, int32_t id);
/* Tokens that were generated before, when an answer goes on: shown and recorded again. */
void answer_replay(struct answer *a, const struct k3_ids *ids);
bool answer_thinks(const struct answer *a); /* the text that comes next is reasoning */
/* Ends the parse, makes the message and records it. calls: tool calls of the model are kept in
 * the message as the chat format wants them. The message is the caller's. */
enum k3_status answer_end(struct answer *a, enum session_finish finish, double seconds,
                          const json_t *figures, struct message *out, struct k3_error *err);
void answer_free(struct answer *a);

/* What decides an answer, beside the conversation. */
struct answer_maker {
    const char *model, *profile;
    struct k3_fingerprint fingerprint;
    enum k3_thinking thinking;
    struct k3_sampling sampling;
    uint32_t max_tokens;
};
/* {"model", "fingerprint", "contract", "profile", "thinking", "max_tokens", "greedy" or
 * "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed"}; what is off is left out.
 * NULL when memory is short. */
json_t *answer_settings(const struct answer_maker *m);
/* The other way: takes over what the record holds, and leaves what it does not. True when the model
 * and the contract are the ones of *m. */
bool answer_settings_read(const json_t *settings, struct answer_maker *m);
/* How many tokens an answer that goes on may still have; what it was begun with counts, and one that
 * has used that up gets as much again (with->max_tokens grows). */
uint32_t answer_room(const struct message *m, struct answer_maker *with);
/* What it took: {"prompt_tokens", "reused_tokens", "prefill_s", "disk_wait_fraction",
 * "true_resident_hit_rate", "bytes_read", "peak_rss"}. The rates are those of the decode steps. */
json_t *answer_figures(uint32_t prompt_tokens, uint32_t reused, const struct step_stats *prefill,
                       const struct step_stats *steps);

#endif
