/* experts.h - the library: whole experts in fixed slots, a quota of residents per layer.
 *
 * Per layer and chunk: begin() with the distinct experts the router chose (all misses go to the
 * readers at once), next() for those whose bytes are there, done() for each, end(). What the layer
 * keeps of the residents and the just-read ones (policy.h) follows from the requests alone, never
 * from the order of arrival, and takes effect in end(): slots change hands, bytes are not copied.
 * Only where a chunk misses more experts than staging holds are slots used again before end():
 * first those of experts that will not stay and whose job is done, then those of residents that
 * will not stay and that this chunk does not use, or no longer. So nothing that has been handed out
 * and is not done is ever torn or aliased.
 *
 * One thread calls begin, next, done, end and abort. */
#ifndef K3_EXPERTS_H
#define K3_EXPERTS_H

#include "io.h"
#include "policy.h"

enum { K3_W1, K3_W2, K3_W3, K3_EXPERT_MATRICES };
enum k3_expert_format { K3_EXPERT_MXFP4, K3_EXPERT_BF16, K3_EXPERT_F32 };

/* Where one expert lies. All experts of a checkpoint have the same format and sizes. For BF16/F32
 * only offset[m][0] counts. */
struct k3_expert_place {
    uint32_t shard;
    uint64_t offset[K3_EXPERT_MATRICES][2]; /* [matrix][0 weights, 1 scales], in the shard */
};
struct k3_expert_shape {
    enum k3_expert_format format;
    uint64_t bytes[K3_EXPERT_MATRICES][2];  /* of each part; [1] is 0 unless MXFP4 */
    uint32_t rows[K3_EXPERT_MATRICES];      /* to name a scale's row; 0 = not known */
};

struct k3_experts_config {
    struct k3_io *io;
    const struct k3_checkpoint *checkpoint; /* for messages; NULL = without file names; kept */
    struct k3_expert_shape shape;
    const struct k3_expert_place *places;   /* [layers][n_experts], kept by the caller */
    const uint32_t *layer_numbers;          /* [layers], for messages and the trace; kept */
    uint32_t layers, n_experts, top_k;
    uint32_t slots;                         /* residents over all layers */
    uint32_t staging;                       /* experts in flight at once, >= 1 */
    enum k3_policy policy;
};

struct k3_expert_data {     /* pointers stay valid until k3_experts_done() for that use */
    const uint8_t *weights[K3_EXPERT_MATRICES];
    const uint8_t *scales[K3_EXPERT_MATRICES];
};

struct k3_expert_job {
    uint32_t use;           /* index into the uses given to begin() */
    bool out;               /* false: w1 and w3 are there; true: w2 is there too */
    struct k3_expert_data data;
};

/* requests = resident + prefetched + waited. A use counts when its layer ends, with all requests:
 *   resident    in memory before begin()
 *   prefetched  read in this step, and there each time that next() looked for it
 *   waited      next() had nothing to give, and the arrival of w1 and w3 or of w2 ended the wait
 * wait_s is the time next() was blocked; it counts at once. */
struct k3_experts_counters {
    uint64_t requests, resident, prefetched, waited;
    double wait_s;
    uint64_t resident_bytes;   /* of slots that hold a resident */
};

struct k3_experts;

/* Bytes one slot takes, alignment windows included: the planner's unit. The store's arena is
 * k3_io_round((slots + staging) * this). */
uint64_t k3_experts_slot_bytes(const struct k3_expert_shape *shape);
/* What else open allocates (tables, requests); needs all numbers of the config, no pointers. */
uint64_t k3_experts_table_bytes(const struct k3_experts_config *cfg);

struct k3_experts *k3_experts_open(const struct k3_experts_config *cfg, struct k3_error *err);
void k3_experts_close(struct k3_experts *s); /* NULL is fine; between begin and end: aborts */

/* `layer` counts MoE layers from 0. uses[] is copied; distinct experts, any number. */
enum k3_status k3_experts_begin(struct k3_experts *s, uint32_t layer,
                                const struct k3_expert_use *uses, size_t n, struct k3_error *err);
/* Gives up to max jobs, all of the same kind: out jobs when there are any (they free slots), else
 * w1 and w3 jobs, residents first, arrivals as they come. Each use comes first with out = false
 * and in a later call with out = true. Blocks until there is at least one job; *n = 0 when all have
 * been given. Before the next call the caller has computed and k3_experts_done() the out jobs of
 * this one. A read that failed is reported here, and so is a scale byte of 255 (NaN), with expert,
 * matrix and place, before anything of that matrix is handed out. After an error: abort. */
enum k3_status k3_experts_next(struct k3_experts *s, struct k3_expert_job *jobs, size_t max,
                               size_t *n, struct k3_error *err);
void k3_experts_done(struct k3_experts *s, uint32_t use); /* its out job has been computed */
/* All uses are done: the layer keeps what the policy says. Fails only when they are not. */
enum k3_status k3_experts_end(struct k3_experts *s, struct k3_error *err);
/* After an error or a cancel between begin and end (elsewhere it does nothing): waits for its reads
 * and forgets the step; it counts nowhere. Residents stay, but for those whose slot was used. */
void k3_experts_abort(struct k3_experts *s);

void k3_experts_get_counters(const struct k3_experts *s, struct k3_experts_counters *out);
void k3_experts_get_layer(const struct k3_experts *s, uint32_t layer, struct k3_layer_counts *out);
/* Both may be called from any thread. */

#endif
