/* trace.h - recorded expert requests: writing, reading, and replaying them for any capacity.
 *
 * The file is a row of little-endian int32 pairs (layer, expert) in the order in which the run
 * asked: layer by layer, within a layer token by token, within a token best first. Layers are the
 * model's zero-based numbers. There is no header; what the file does not say is found out from it:
 *   top-k     a token's experts are distinct, and every run of pairs of one layer is a whole number
 *             of tokens
 *   passes    a new one begins when the layer number does not rise
 *   steps     one pass through the layers: the tokens of a chunk are one step, a decoded token is
 *             one step. (In a trace of a single layer chunks cannot be told apart: each token is a
 *             step.)
 *
 * Counting. A step of a layer asks for its distinct experts at once; a request (token, expert) is a
 * hit when the expert was in memory before that step of that layer began. Experts read during the
 * step are never hits. After the step the policy decides what stays. The decode part are the steps
 * of one token (in the last-pass view: all steps after the prompt). */
#ifndef K3_TRACE_H
#define K3_TRACE_H

#include "policy.h"

/* ---- writing ----------------------------------------------------------------------------- */

struct k3_trace_writer;

/* Creates the file or empties it. */
struct k3_trace_writer *k3_trace_create(const char *path, struct k3_error *err);
/* The experts of `tokens` tokens of a layer: [tokens][top_k], best first. */
enum k3_status k3_trace_put(struct k3_trace_writer *w, uint32_t layer, const int32_t *experts,
                            size_t tokens, size_t top_k, struct k3_error *err);
/* Writes out what is buffered: after every step, so that a killed run leaves a readable trace. */
enum k3_status k3_trace_flush(struct k3_trace_writer *w, struct k3_error *err);
/* Flushes, closes and frees; NULL is fine. */
enum k3_status k3_trace_close(struct k3_trace_writer *w, struct k3_error *err);

/* ---- reading ----------------------------------------------------------------------------- */

struct k3_trace_pair {
    uint32_t layer, expert;
};
struct k3_trace {
    struct k3_trace_pair *pairs;
    size_t n;
};

/* Refuses an empty file, a size that is no multiple of 8, numbers outside 0 .. 65535. */
enum k3_status k3_trace_read(const char *path, struct k3_trace *t, struct k3_error *err);
void k3_trace_free(struct k3_trace *t);

/* ---- steps ------------------------------------------------------------------------------- */

enum k3_trace_view {
    K3_TRACE_AUTO,      /* LAST_PASS when every pass repeats the one before and adds to it */
    K3_TRACE_FILE,      /* as it stands */
    K3_TRACE_LAST_PASS, /* a run that computed everything anew for each token: its last pass, taken
                         * apart into the prompt (one step) and a step for each later token */
};
struct k3_trace_options {
    enum k3_trace_view view;
    uint32_t prompt;    /* LAST_PASS: tokens of the prompt; 0 = those of the first pass */
    uint32_t top_k;     /* 0 = find out */
};

struct k3_trace_group { /* one step of one layer */
    uint32_t layer;     /* index into layer_numbers */
    uint32_t tokens;
    size_t first, n;    /* of uses */
    bool decode;
};
struct k3_trace_steps {
    enum k3_trace_view view;       /* FILE or LAST_PASS */
    uint32_t top_k, n_experts;     /* n_experts: one more than the highest in the trace */
    uint32_t layers;
    uint32_t *layer_numbers;       /* rising */
    uint32_t passes;               /* of the file */
    uint32_t prompt;               /* LAST_PASS: tokens of its first step */
    uint64_t decode_steps;
    uint64_t requests, decode_requests;
    struct k3_trace_group *groups; /* in time order */
    size_t n_groups;
    struct k3_expert_use *uses;    /* in the order of first use within a group */
};
enum k3_status k3_trace_steps_make(const struct k3_trace *t, const struct k3_trace_options *opt,
                                   struct k3_trace_steps *s, struct k3_error *err);
void k3_trace_steps_free(struct k3_trace_steps *s);

/* ---- replay ------------------------------------------------------------------------------ */

enum k3_replay { K3_REPLAY_LRU, K3_REPLAY_QUOTA, K3_REPLAY_BELADY, K3_REPLAYS };
const char *k3_replay_name(enum k3_replay r); /* "lru", "quota", "belady" */

struct k3_replay_counts {
    uint64_t requests, hits;
    uint64_t decode_requests, decode_hits;
    uint64_t uses, reads;          /* experts that steps asked for, once per step; read for them */
};
/* BELADY: the fewest reads over the whole trace that any policy with `slots` slots over all layers
 * can do, if it knows the future; it reads what a step misses at once and may refuse newcomers. In
 * steps of one token, reads saved are hits. */
enum k3_status k3_trace_replay(const struct k3_trace_steps *s, enum k3_replay r, uint32_t slots,
                               struct k3_replay_counts *out, struct k3_error *err);

#endif
