/* k3.h - the engine's public interface: one loaded checkpoint, one timeline of tokens.
 *
 * The engine knows files, tensors, memory and numbers. It knows no profile, no terminal and no
 * transcript; it prints nothing and never exits. Text (tokenizer, chat format, sampling) stands
 * beside it in text/ and meets it only in token ids.
 *
 * Threads: one thread at a time may call the functions that take a non-const engine, except
 * k3_cancel(), k3_get_metrics() and k3_get_layer_counts(), which any thread may call at any time. */
#ifndef K3_H
#define K3_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k3_error.h"

typedef struct k3_engine k3_engine;

/* ---- what is asked for ------------------------------------------------------------------- */

enum k3_isa { K3_ISA_AUTO, K3_ISA_SCALAR, K3_ISA_AVX2, K3_ISA_AVX512, K3_ISA_NEON };
enum k3_io_kind { K3_IO_AUTO, K3_IO_URING, K3_IO_DIRECT, K3_IO_BUFFERED };
enum k3_policy { K3_POLICY_QUOTA, K3_POLICY_LRU };

#define K3_CONTEXT_DEFAULT 4096u

struct k3_options {
    const char *model_dir;   /* folder of the checkpoint */
    uint64_t budget;         /* bytes the whole process may use; 0 = what is available now */
    uint64_t program_bytes;  /* of the budget, what the caller needs outside the engine */
    uint64_t program_per_id; /* and for each id of the vocabulary */
    uint64_t ring;           /* bytes of the trunk ring; 0 = the planner's choice */
    uint64_t experts;        /* bytes of resident experts; UINT64_MAX = the planner's choice */
    uint32_t context;        /* positions to have room for; 0 = K3_CONTEXT_DEFAULT */
    uint32_t chunk;          /* prefill chunk in tokens; 0 = the planner's choice */
    uint32_t threads;        /* compute threads; 0 = physical cores */
    uint32_t io_depth;       /* requests in flight per device; 0 = 16 */
    bool check_reads;        /* check what is read against the checkpoint's list of blocks */
    uint64_t simulate_rate;  /* bytes per second a simulated slower disk gives; 0 = off */
    bool no_checkpoints;     /* keep no positions in memory */
    bool full_logits;        /* room for the logits of every position of a chunk */
    enum k3_isa isa;
    enum k3_io_kind io;
    enum k3_policy policy;
    const char *trace_path;  /* expert requests are written here (emptied first); NULL = none */
};

/* Every field zero but the ones whose "planner's choice" is another value. */
void k3_options_init(struct k3_options *opt);

/* ---- the plan ---------------------------------------------------------------------------- */

/* All in bytes unless said otherwise. total is the sum of the parts and never above budget. */
struct k3_plan {
    uint64_t budget;      /* the ceiling planned for */
    uint64_t floor;       /* the least budget that works for this model, context and chunk 1 */
    uint64_t program;     /* libraries, code, screen, tokenizer, thread stacks */
    uint64_t index;       /* tensor index and tables kept while running */
    uint64_t vectors;     /* norms, convolution taps, biases: always resident, fp32 */
    uint64_t state;       /* KDA matrices and convolution taps */
    uint64_t latent;      /* MLA latents for `context` positions */
    uint64_t activations; /* for `chunk` tokens */
    uint64_t ring;        /* trunk blocks on their way through */
    uint64_t staging;     /* experts on their way through */
    uint64_t residents;   /* trunk blocks that stay */
    uint64_t experts;     /* experts that stay */
    uint64_t checkpoints; /* positions of the conversation kept to go back to */
    uint64_t total;
    uint64_t trunk_bytes;        /* the whole tape: trunk and lm_head as stored */
    uint64_t trunk_per_token;    /* of these, read for each decode step */
    uint64_t bytes_per_token;    /* read for it besides experts: that, and a row of the embedding */
    uint64_t expert_bytes;       /* one expert as stored */
    uint64_t experts_per_token;  /* expert bytes of a decode step when nothing is resident */
    uint32_t context, chunk, threads, io_depth;
    uint32_t expert_slots;       /* resident experts over all layers */
    uint32_t checkpoint_slots;   /* positions that can be kept */
    uint32_t moe_layers, n_experts, top_k, layers, vocab;
    const char *isa;             /* kernel set in use */
    char io[96];                 /* backend as opened and, when it is not the first choice, why */
};

/* ---- life -------------------------------------------------------------------------------- */

/* Called while a long piece of work goes on: what ("indexing shards"), done of total. */
typedef void (*k3_progress_fn)(void *ud, const char *what, uint64_t done, uint64_t total);

/* Reads config and headers, checks them, computes the plan. Allocates no weights, no state and no
 * caches. NULL on failure: a config that is not understood (K3_USAGE), a checkpoint that is not
 * whole (K3_FAILED), or a budget that is too small (K3_FAILED; the message has both numbers). */
k3_engine *k3_open(const struct k3_options *opt, k3_progress_fn progress, void *ud,
                   struct k3_error *err);

/* Allocates what the plan says, loads the small vectors and starts the readers. Once. */
enum k3_status k3_start(k3_engine *e, k3_progress_fn progress, void *ud, struct k3_error *err);

void k3_close(k3_engine *e); /* NULL is fine; from any state */

const struct k3_plan *k3_get_plan(const k3_engine *e); /* lives as long as the engine */
/* The way of reading in use now, as in k3_plan.io: a file system can refuse O_DIRECT as late as at
 * the first read. Any thread; lives as long as the engine; "" before k3_start(). */
const char *k3_io_in_use(const k3_engine *e);

/* The plan for a config.json alone, without weights: that in opt->model_dir, or when it is NULL that
 * of the released checkpoint. */
enum k3_status k3_plan_config(const struct k3_options *opt, struct k3_plan *plan,
                              struct k3_error *err);

/* End-of-turn ids that config.json and generation_config.json name. Returns how many were put. */
size_t k3_stop_ids(const k3_engine *e, int32_t *ids, size_t max);

/* ---- the timeline ------------------------------------------------------------------------ */

enum k3_want { K3_WANT_LAST, K3_WANT_ALL };

/* Receives the logits [vocab] of `position`; valid during the call only. Non-zero = stop there. */
typedef int (*k3_logits_fn)(void *ud, uint32_t position, const float *logits);

/* Runs ids[0..n) through the model at positions k3_position() onwards, in chunks; prefill and
 * decode are this one function. The logits after the last id are left in k3_logits(); with
 * K3_WANT_ALL `fn` also gets those of every position, in order.
 *
 * After K3_CANCELLED the interrupted chunk is suspended between two layers, not lost: its ids stand
 * in k3_pending(), and the next call must begin with the same ids and goes on from that layer.
 * Ids out of range or more than the context holds: K3_USAGE, nothing done. Any other failure
 * leaves the engine good for k3_reset() or k3_close() only. */
enum k3_status k3_feed(k3_engine *e, const int32_t *ids, size_t n, enum k3_want want,
                       k3_logits_fn fn, void *ud, struct k3_error *err);

const float *k3_logits(const k3_engine *e); /* [vocab] of the last position, until the next feed */
uint32_t k3_position(const k3_engine *e);   /* ids wholly processed */
size_t k3_pending(const k3_engine *e, const int32_t **ids); /* ids of a suspended chunk */
/* Back to position 0; kept positions are forgotten, residents and experts stay in memory. */
void k3_reset(k3_engine *e);
bool k3_has_logits(const k3_engine *e); /* k3_logits() belongs to the last id processed */
void k3_cancel(k3_engine *e);      /* the running k3_feed stops within one layer */
void k3_clear_cancel(k3_engine *e); /* call before the feed that a later cancel shall stop */

/* Tells which experts each position selects: [top_k], best first. NULL switches it off. */
typedef void (*k3_routing_fn)(void *ud, uint32_t layer, uint32_t position, const int32_t *experts,
                              uint32_t top_k);
void k3_set_routing(k3_engine *e, k3_routing_fn fn, void *ud);

/* ---- states ------------------------------------------------------------------------------ */

/* Of the order of operations (docs/numbers-contract.md). It rises when a change gives other bits; a
 * state that was made under another version would go on with other tokens. */
#define K3_CONTRACT_VERSION 1u
#define K3_STATE_FORMAT 1u /* of the file */

/* Tells one checkpoint from another: a hash over config.json, and over name, size, header and a few
 * of the weights of every shard. */
struct k3_fingerprint {
    uint64_t high, low;
};
#define K3_FINGERPRINT_TEXT 33
struct k3_fingerprint k3_get_fingerprint(const k3_engine *e); /* from k3_open() on */
void k3_fingerprint_text(struct k3_fingerprint f, char text[K3_FINGERPRINT_TEXT]); /* hex digits */

/* Writes all that the timeline carries at k3_position(), which must be n, with the ids that led
 * there: KDA matrices, convolution histories, latents, and the logits when k3_has_logits(). Written
 * beside `path` (+ ".tmp"), synced, and renamed; mode 0600. K3_USAGE while a chunk is suspended. The
 * engine is as before in every case. */
enum k3_status k3_state_save(k3_engine *e, const char *path, const int32_t *ids, size_t n,
                             struct k3_error *err);
uint64_t k3_state_file_bytes(const k3_engine *e); /* what that would take now */

struct k3_state_info {
    uint32_t contract;             /* K3_CONTRACT_VERSION of the program that wrote it */
    struct k3_fingerprint model;
    uint32_t position;
    bool has_logits;
    uint64_t bytes;                /* of the file */
    int32_t *ids;                  /* [position], malloc'ed */
};
/* Reads header and ids, checked. K3_FAILED names what is wrong; info is then empty. */
enum k3_status k3_state_read_info(const char *path, struct k3_state_info *info,
                                  struct k3_error *err);
void k3_state_info_free(struct k3_state_info *info);
/* Contract, model and context: K3_FAILED says why this engine cannot use it. */
enum k3_status k3_state_fits(const k3_engine *e, const char *path,
                             const struct k3_state_info *info, struct k3_error *err);
/* Makes the timeline that of the file, which must cover exactly ids[0..n). The whole file is checked
 * before anything is touched; should it fail nevertheless, the timeline is at position 0. Kept
 * positions are forgotten. */
enum k3_status k3_state_load(k3_engine *e, const char *path, const int32_t *ids, size_t n,
                             struct k3_error *err);

/* Keeps the present position in memory, as the plan has room: the oldest one makes way. False when
 * there is no room at all, at position 0, or while a chunk is suspended. */
bool k3_keep(k3_engine *e);
struct k3_kept_position {
    uint32_t position;
    bool has_logits;
};
/* The kept positions, latest first; returns how many were put. */
size_t k3_kept(const k3_engine *e, struct k3_kept_position *out, size_t max);
/* Back to a kept position; those behind it are forgotten. A suspended chunk is given up. */
enum k3_status k3_go_back(k3_engine *e, uint32_t position, struct k3_error *err);

/* ---- figures ----------------------------------------------------------------------------- */

/* Counted since k3_start(); subtract two snapshots for a step. The words are defined in
 * docs/architecture.md ("What is measured"). */
struct k3_metrics {
    uint64_t tokens;          /* positions processed */
    double wait_trunk_s;      /* compute blocked on trunk bytes */
    double wait_experts_s;    /* compute blocked on expert bytes */
    double device_busy_s;     /* at least one request in flight, summed over devices */
    uint64_t bytes_trunk;     /* read for the tape, embedding rows and vectors */
    uint64_t bytes_experts;
    uint64_t bytes_checked;   /* of those read, compared with the list of blocks */
    uint64_t requests;        /* (token, layer, selected expert) */
    uint64_t resident;        /* in RAM before the step asked: the TRUE hits */
    uint64_t prefetched;      /* read during the step, and there when compute came for it */
    uint64_t waited;          /* compute had to block for it */
    uint32_t devices;
    double first_read_s;      /* age of the process when the tape began to be read; 0 = not yet */
    /* where the running chunk is */
    bool running;
    uint32_t layer, layers;   /* layers finished of layers */
    uint32_t chunk_tokens;    /* tokens of the running chunk */
    uint64_t resident_bytes;  /* trunk blocks resident so far (they fill as they stream past) */
    uint64_t expert_bytes_resident;
};
void k3_get_metrics(const k3_engine *e, struct k3_metrics *out);

struct k3_layer_counts {
    uint64_t requests, resident; /* since start */
    uint32_t slots, used;        /* quota of this layer, and how much of it is filled */
};
/* False when `layer` has no experts. */
bool k3_get_layer_counts(const k3_engine *e, uint32_t layer, struct k3_layer_counts *out);

#endif
