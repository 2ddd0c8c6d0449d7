/* bind.h - which tensor is which part of the graph: names, shapes and dtypes checked once, then
 * only places on disk are kept.
 *
 * Three kinds: vectors (small, always resident, fp32), matrices (the tape, in execution order) and
 * routed experts. Names and shapes: docs/model.md. */
#ifndef K3_BIND_H
#define K3_BIND_H

#include "../storage/checkpoint.h"
#include "../storage/experts.h"
#include "../storage/tape.h"
#include "model_config.h"

/* Matrices of one layer, in the order the graph uses them; also their order on the tape. */
enum k3_kda_matrix { KDA_B, KDA_FA, KDA_G, KDA_K, KDA_Q, KDA_V, KDA_FB, KDA_O, KDA_MATRICES };
enum k3_mla_matrix { MLA_G, MLA_KVA, MLA_QA, MLA_QB, MLA_KVB, MLA_O, MLA_MATRICES };
enum k3_dense_matrix { DENSE_GATE, DENSE_UP, DENSE_DOWN, DENSE_MATRICES };
enum k3_moe_matrix { MOE_ROUTER, MOE_DOWN, MOE_SHARED_GATE, MOE_SHARED_UP, MOE_SHARED_DOWN, MOE_UP,
                     MOE_MATRICES };

struct k3_matrix {
    uint32_t rows, cols;
    uint8_t dtype;          /* K3_DT_F32 or K3_DT_BF16 */
};

/* A vector on disk; an fp32 copy is made at start. */
struct k3_vector {
    struct k3_tensor tensor; /* name is not kept */
    uint32_t n;              /* elements to use (A_log may have more) */
};

enum k3_layer_vector {
    VEC_INPUT_NORM, VEC_POST_NORM, VEC_ATTN_RES_NORM, VEC_ATTN_RES_PROJ, VEC_MLP_RES_NORM,
    VEC_MLP_RES_PROJ,
    VEC_CONV_Q, VEC_CONV_K, VEC_CONV_V, VEC_A_LOG, VEC_DT_BIAS, VEC_O_NORM, /* KDA */
    VEC_QA_NORM, VEC_KVA_NORM,                                              /* MLA */
    VEC_ROUTER_BIAS, VEC_EXPERT_NORM,                                       /* MoE */
    LAYER_VECTORS
};
enum k3_top_vector { TOP_NORM, TOP_RES_NORM, TOP_RES_PROJ, TOP_VECTORS };

struct k3_layer_bind {
    uint32_t attn0, mlp0;                    /* first tape matrix of each half */
    struct k3_vector vec[LAYER_VECTORS];     /* n = 0: not in this kind of layer */
};

struct k3_bind {
    struct k3_layer_bind *layers;
    struct k3_vector top[TOP_VECTORS];
    struct k3_matrix *matrices;              /* [n_matrices], parallel to tape */
    struct k3_tape_matrix *tape;
    uint32_t n_matrices, lm_head;
    uint32_t embed_shard;
    uint8_t embed_dtype;
    uint64_t embed_offset, embed_row_bytes;
    struct k3_expert_shape expert_shape;
    struct k3_expert_place *places;          /* [moe layers][experts] */
    uint32_t *layer_numbers;                 /* [moe layers] -> layer */
    uint32_t n_moe;
    uint64_t vector_floats;                  /* fp32 elements of all vectors, as kept */
};

/* c = NULL: no checkpoint at hand; places are made up in the released order, so that a plan can be
 * computed from the config alone. Every missing or misshapen tensor counts; the message names the
 * first ones. */
enum k3_status k3_bind_make(const struct k3_config *cfg, const struct k3_checkpoint *c,
                            struct k3_bind *b, struct k3_error *err);
void k3_bind_free(struct k3_bind *b);

#endif
