/* workspace.h - every activation buffer of a pass, carved from one block sized by the chunk. */
#ifndef K3_WORKSPACE_H
#define K3_WORKSPACE_H

#include "model_config.h"

#define K3_HEAD_GROUP 16u /* MLA heads that share one walk over the latents */

/* T = chunk in tokens. Buffers of attention and MLP share memory: they never live together. */
struct k3_workspace {
    float *sources;   /* [snapshots + 1][T][E]: the block snapshots, then the running prefix */
    float *inv_rms;   /* [snapshots + 1][T]: 1/sqrt(mean square + eps) of each snapshot */
    float *h;         /* [T][E]: input of the half-layer, normalised */
    float *out;       /* [T][E]: output of the half-layer */
    float *scores;    /* [threads][K3_HEAD_GROUP][context rounded up to 16]: attention scores */
    float *scratch;   /* [threads][k3_scratch_floats()]: vectors of the head at hand */
    /* KDA */
    float *q, *k, *v, *g, *z; /* [T][P] */
    float *fa;                /* [T][D] */
    float *beta;              /* [T][heads] */
    /* MLA */
    float *mg, *mo;           /* [T][H v] */
    float *kva;               /* [T][kv_lora + rope] */
    float *qa;                /* [T][q_lora] */
    float *mq;                /* [T][H (nope + rope)] */
    /* dense MLP and shared experts */
    float *gate, *up;         /* [T][max(dense_inter, shared x inter)] */
    /* MoE */
    float *router;            /* [T][experts] */
    float *latent, *routed;   /* [T][L] */
    float *gathered;          /* [T top_k][L]: inputs, later outputs of the experts */
    float *inner, *inner_up;  /* [T top_k][I] */
    float *weights;           /* [T][top_k] */
    float *shared_out;        /* [T][E] */
    int32_t *selected;        /* [T][top_k] */
    uint32_t *pair_at;        /* [T][top_k]: row of `gathered` for this choice */
    uint32_t *pair_token;     /* [T top_k]: token of a row of `gathered` */
    float *logits;            /* [logit_rows][vocab] */
};

/* Of one thread: queries and sums in the latent space, or decay and output of a KDA head; a cache
 * line to keep threads apart. */
static inline size_t k3_scratch_floats(const struct k3_config *c)
{
    return K3_HEAD_GROUP * 2 * k3_latent_width(c) + 2ull * c->kda_dim + 16;
}

/* Assigns the buffers inside `base` (NULL: only measures). Returns the bytes needed. */
uint64_t k3_workspace_carve(struct k3_workspace *w, void *base, const struct k3_config *c,
                            uint32_t chunk, uint32_t threads, uint32_t context,
                            uint32_t logit_rows);

#endif
