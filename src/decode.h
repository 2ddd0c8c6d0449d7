/* decode.h - reading a prompt and generating tokens; the one loop that chat and batch share. */
#ifndef K3CHAT_DECODE_H
#define K3CHAT_DECODE_H

#include <stdatomic.h>

#include "../engine/text/sampler.h"
#include "../engine/text/tokenizer.h"
#include "session.h"
#include "states.h"

#define STOP_IDS_MAX 16

/* An engine and the ids it has been through. */
struct timeline {
    k3_engine *engine;        /* borrowed */
    struct k3_sampling sampling;
    int32_t stops[STOP_IDS_MAX];
    size_t n_stops;
    uint32_t vocab, context;
    struct k3_ids fed;        /* wholly processed, in order */
    bool has_logits;          /* k3_logits() belongs to the last id of `fed` */
    struct states *states;    /* borrowed; NULL = nothing is saved or looked for */
    double save_every;        /* seconds; 0 = only when timeline_keep() is called */
    double saved_at;          /* on the monotonic clock */
    void *scratch;
};

/* Stop ids: those of the checkpoint's config, and [EOS] and <|end_of_msg|> when there is a
 * tokenizer. Free with timeline_close(), also after a failure. */
enum k3_status timeline_open(struct timeline *t, k3_engine *engine, const k3_tokenizer *tok,
                             const struct k3_sampling *sampling, struct k3_error *err);
void timeline_close(struct timeline *t);

/* How many of these ids need not be read again: those of the longest usable point, which is the
 * timeline as it stands, a position kept in memory, or a saved state. */
size_t timeline_reusable(const struct timeline *t, const int32_t *ids, size_t n);

/* Back to the beginning; what is kept in memory is forgotten. */
void timeline_reset(struct timeline *t);

/* Keeps the timeline as it stands, in memory and on disk as far as both are allowed. Nothing happens
 * while a chunk is suspended: there is no state then that could be kept. */
void timeline_keep(struct timeline *t);

/* Saves the state when the last time is long enough ago: for use between two steps of a long piece
 * of work. timeline_save_due() tells beforehand, so that the ids can be recorded first. */
bool timeline_save_due(const struct timeline *t);
void timeline_save_now(struct timeline *t);

/* Makes the timeline equal to ids[0..n), from the longest usable point on. `fn` gets the logits of every position that is computed (NULL: none are
 * wanted but the last). *stats: what it took; *reused: ids that were not read again. Ids out of
 * range, no ids, or more than the context holds: K3_USAGE, nothing done. */
enum k3_status timeline_read(struct timeline *t, const int32_t *ids, size_t n, k3_logits_fn fn,
                             void *ud, struct step_stats *stats, uint32_t *reused,
                             struct k3_error *err);

/* Does this id end an answer? */
bool timeline_is_stop(const struct timeline *t, int32_t id);

/* The token that the logits give here: a function of them, the settings, and all ids before. -1 when
 * none can be chosen. */
int32_t timeline_draw(struct timeline *t);

struct generation {
    /* in */
    uint32_t max_tokens;
    bool ignore_stop;
    const atomic_bool *cancel;   /* NULL = cannot be cancelled from here */
    /* A token has been drawn. stop: it ends the answer and is no part of the text. */
    void (*token)(void *ud, int32_t id, bool stop, const struct step_stats *stats,
                  const float *logits);
    /* A step begins (the forward pass of the token before); may be NULL. */
    void (*step)(void *ud);
    void *ud;
    /* out */
    uint32_t tokens;             /* drawn, the stop token included */
    enum session_finish finish;
    bool context_full;           /* LENGTH because there is no more room */
};

/* Generates from the logits that timeline_read() left. A step is the forward pass that a token
 * needed and its drawing; the first token's forward pass was the prompt's, so its step has no
 * position. The last token drawn is not fed. K3_OK also when it was cancelled. */
enum k3_status timeline_generate(struct timeline *t, struct generation *g, struct k3_error *err);

#endif
