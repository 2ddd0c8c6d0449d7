/* experts.h - the library: whole experts in fixed slots, a quota of residents per layer.
 *
 * Per layer and chunk: begin() with the distinct experts the router chose (all misses go to the
 * readers at once), next() for those whose bytes are there, done() for each, end(). end() decides
 * which of the residents and the just-read ones the layer keeps. A slot changes its owner only in
 * end(), so a published expert is never torn or aliased. */
#ifndef K3_EXPERTS_H
#define K3_EXPERTS_H

#include "io.h"

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
};

struct k3_experts_config {
    struct k3_io *io;
    struct k3_expert_shape shape;
    const struct k3_expert_place *places;   /* [layers][n_experts], kept by the caller */
    const uint32_t *layer_numbers;          /* [layers], for messages and the trace; kept */
    uint32_t layers, n_experts, top_k;
    uint32_t slots;                         /* residents over all layers */
    uint32_t staging;                       /* experts in flight at once, >= 1 */
    enum k3_policy policy;
};

struct k3_expert_use {      /* one distinct expert of this layer and chunk */
    uint32_t expert;
    uint32_t requests;      /* tokens of the chunk that chose it */
    uint32_t best_rank;     /* 0 = first choice */
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

struct k3_experts_counters {
    uint64_t requests, resident, prefetched, waited;
    double wait_s;
    uint64_t resident_bytes;
};

struct k3_experts;

/* Bytes one slot takes, alignment windows included: the planner's unit. */
uint64_t k3_experts_slot_bytes(const struct k3_expert_shape *shape);

struct k3_experts *k3_experts_open(const struct k3_experts_config *cfg, struct k3_error *err);
void k3_experts_close(struct k3_experts *s);

/* `layer` counts MoE layers from 0. uses[] is copied; distinct experts, any number. */
enum k3_status k3_experts_begin(struct k3_experts *s, uint32_t layer,
                                const struct k3_expert_use *uses, size_t n, struct k3_error *err);
/* Gives up to max jobs, each use first with out = false, later with out = true; residents first,
 * arrivals as they come; blocks until there is at least one. *n = 0 when all have been given.
 * A scale byte of 255 (NaN) in what was read is refused here, with tensor and value. */
enum k3_status k3_experts_next(struct k3_experts *s, struct k3_expert_job *jobs, size_t max,
                               size_t *n, struct k3_error *err);
void k3_experts_done(struct k3_experts *s, uint32_t use); /* its out job has been computed */
enum k3_status k3_experts_end(struct k3_experts *s, struct k3_error *err);
/* After an error or a cancel between begin and end: waits for its reads and forgets the layer. */
void k3_experts_abort(struct k3_experts *s);

void k3_experts_get_counters(const struct k3_experts *s, struct k3_experts_counters *out);
void k3_experts_get_layer(const struct k3_experts *s, uint32_t layer, struct k3_layer_counts *out);
/* Both may be called from any thread. */

#endif
