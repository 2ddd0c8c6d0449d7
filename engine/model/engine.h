/* engine.h - the engine's inside: what the parts of the graph share. */
#ifndef K3_ENGINE_H
#define K3_ENGINE_H

#include <stdatomic.h>

#include "../kernels/kernels.h"
#include "../storage/trace.h"
#include "bind.h"
#include "workspace.h"

#define K3_MLA_EPS 1e-6f     /* the two latent norms; not rms_norm_eps (docs/model.md) */
#define K3_L2_EPS 1e-6f

struct k3_layer {
    const float *vec[LAYER_VECTORS]; /* fp32; NULL = not in this kind of layer. The two RES_NORM
                                      * hold norm x projection, conv is [head][tap][dim], A_LOG
                                      * holds exp(A_log) */
    float *kda;      /* [heads][dim][dim] */
    float *conv[3];  /* q, k, v: [heads][taps - 1][dim] */
    float *latents;  /* [context][kv_lora + rope] */
    uint32_t moe;    /* index among the MoE layers */
};

/* A position that can be gone back to. */
struct k3_kept_state {
    uint32_t position;
    bool has_logits;
    float *memory;   /* KDA layers in order, then the logits */
};

/* What other threads may read while a pass runs. */
struct k3_progress {
    atomic_bool running;
    atomic_uint layer, chunk_tokens;
    atomic_ullong tokens, embed_bytes;
};

struct k3_engine {
    struct k3_options opt;
    char *model_dir;
    struct k3_config cfg;
    struct k3_checkpoint *ckpt;
    struct k3_bind bind;
    struct k3_tape_plan tape_plan;
    struct k3_plan plan;
    const struct k3_kernels *k;
    k3_io_read_fn read;            /* set before k3_start(): a test's way to make reads fail */
    void *read_ud;
    struct k3_io *io;
    struct k3_blocks *blocks;  /* NULL: reads are not checked */
    struct k3_tape *tape;
    struct k3_experts *experts;
    struct k3_trace_writer *trace; /* NULL = no trace */
    double first_read_s;           /* as in k3_metrics; set before the engine is shared */

    struct k3_layer *layers;
    const float *top[TOP_VECTORS]; /* RES_NORM holds norm x projection */
    float *vectors;                /* memory of all of them */
    uint64_t vectors_bytes;
    uint8_t *state;                /* KDA, convolution, latents */
    uint64_t state_bytes;
    uint8_t *work;
    uint64_t work_bytes;
    struct k3_workspace ws;
    struct k3_expert_use *uses;    /* [experts] */
    uint32_t *use_of;              /* [experts]: index into uses, or UINT32_MAX */
    uint32_t *use_first;           /* [experts + 1]: first row of a use in ws.gathered */

    /* the timeline */
    uint32_t position;
    int32_t *chunk_ids;            /* [chunk]: ids of the running or suspended chunk */
    uint32_t chunk_n;              /* 0 = no chunk under way */
    uint32_t chunk_layer;          /* next layer to run */
    uint32_t snapshots;            /* block snapshots taken so far in this pass */
    bool chunk_head;               /* the pass was begun with lm_head */
    bool broken;                   /* a step failed; only reset or close will do */
    uint32_t logits_row;           /* row of ws.logits that k3_logits() shows */
    uint32_t logits_at;            /* position that they are of; 0 = none */
    struct k3_fingerprint fingerprint;
    struct k3_kept_state *kept;          /* [plan.checkpoint_slots], in rising order of position */
    uint32_t n_kept;
    uint8_t *kept_memory;
    atomic_bool cancel;
    struct k3_progress progress;
    k3_routing_fn routing;
    void *routing_ud;
};

/* plan.c: fills e->plan from options, config, tape plan and expert shape; marks resident blocks.
 * `transient` is the peak that opening the checkpoint has caused. */
enum k3_status k3_plan_compute(struct k3_engine *e, uint64_t transient, struct k3_error *err);
uint64_t k3_state_bytes(const struct k3_config *c, uint32_t context, uint64_t *latent_bytes);

/* load.c: vectors, state and workspace as planned. */
enum k3_status k3_load_vectors(struct k3_engine *e, k3_progress_fn progress, void *ud,
                               struct k3_error *err);
enum k3_status k3_allocate(struct k3_engine *e, struct k3_error *err);

/* pass.c: runs the chunk in e->chunk_ids from e->chunk_layer on. */
enum k3_status k3_pass(struct k3_engine *e, bool want_all, struct k3_error *err);

/* The parts of a layer. Input e->ws.h, output e->ws.out, T = e->chunk_n tokens. */
enum k3_status k3_kda_layer(struct k3_engine *e, uint32_t layer, struct k3_error *err);
enum k3_status k3_mla_layer(struct k3_engine *e, uint32_t layer, struct k3_error *err);
enum k3_status k3_dense_layer(struct k3_engine *e, uint32_t layer, struct k3_error *err);
enum k3_status k3_moe_layer(struct k3_engine *e, uint32_t layer, struct k3_error *err);

/* matmul.c: y[i] [tokens][rows] = x [tokens][cols] times tape matrix first + i, i < n; these must be
 * the next ones and have the same cols. One parallel region for all that is there. */
enum k3_status k3_matmuls(struct k3_engine *e, uint32_t first, float *const *y, uint32_t n,
                          const float *x, size_t tokens, struct k3_error *err);
/* The same for one matrix. */
enum k3_status k3_matmul(struct k3_engine *e, uint32_t m, float *y, const float *x, size_t tokens,
                         struct k3_error *err);
/* Rows [row0, row0 + rows) of a matrix of this dtype, on the calling thread. */
void k3_gemm(const struct k3_kernels *k, uint8_t dtype, float *y, size_t ldy, const void *w,
             size_t rows, size_t cols, const float *x, size_t ldx, size_t tokens);
void k3_gemm_t(const struct k3_kernels *k, uint8_t dtype, float *y, size_t ldy, const void *w,
               size_t ldw, size_t rows, size_t cols, const float *x, size_t ldx, size_t tokens);

/* router.c: top-k of logistic(logit) + bias, best first, ties to the lower index; weights of the
 * chosen, renormalised and scaled. scores [experts] holds the logistic values. Returns the number of
 * experts, or the first expert whose score is NaN: then nothing is chosen. */
uint32_t k3_route(const struct k3_config *c, const float *scores, const float *bias,
                  int32_t *selected, float *weights);

#endif
