/* experts_internal.h - between the store's bookkeeping (experts.c), the misses of the running step
 * (experts_flight.c), and how one expert lies in a slot and is read into it (experts_read.c). */
#ifndef K3_EXPERTS_INTERNAL_H
#define K3_EXPERTS_INTERNAL_H

#include <pthread.h>

#include "experts.h"

#define K3_EXPERTS_READ_MAX (UINT64_C(8) << 20) /* bytes of one request, window included */

/* What is waited for together: w1 and w3, then w2. */
enum k3_expert_stage { K3_STAGE_IN, K3_STAGE_OUT, K3_STAGES };

/* One expert on its way through staging. */
struct k3_expert_flight {
    struct k3_io_req *reqs;      /* those of w1 and w3, then those of w2 */
    uint32_t end[K3_STAGES];     /* where the requests of a stage end */
    uint32_t use, slot;
    bool busy, submitted;
    bool ready[K3_STAGES];       /* arrived and found intact */
};

/* The most requests one expert needs. */
uint32_t k3_expert_reads_max(const struct k3_expert_shape *shape);
/* The weights and scales of an expert in the slot at `base`; w2's only with out. */
struct k3_expert_data k3_expert_layout(const struct k3_expert_shape *shape,
                                       const struct k3_expert_place *place, uint8_t *base,
                                       bool out);
/* Fills in f->reqs and f->end for reading the expert into the slot at `base`. */
void k3_expert_requests(const struct k3_expert_shape *shape, const struct k3_expert_place *place,
                        uint8_t *base, struct k3_expert_flight *f);
/* The requests of a stage. */
struct k3_io_req *k3_expert_stage_reqs(const struct k3_expert_flight *f, enum k3_expert_stage stage,
                                       uint32_t *n);
/* Looks for a NaN among the scales of a stage; false and its place when there is one. */
struct k3_expert_nan {
    uint32_t matrix;
    uint64_t at; /* index of the scale byte */
};
bool k3_expert_scales_fine(const struct k3_expert_shape *shape, const struct k3_expert_data *data,
                           enum k3_expert_stage stage, struct k3_expert_nan *nan);

#define K3_NO_SLOT UINT32_MAX

/* What has been handed out of a use. */
enum k3_given { K3_GIVEN_NOTHING, K3_GIVEN_IN, K3_GIVEN_OUT, K3_GIVEN_DONE };

struct k3_use_state {
    uint32_t slot;
    enum k3_given given;
    bool resident, stays, waited;
};

struct k3_experts {
    struct k3_experts_config cfg;
    struct k3_keeper *keeper;
    uint8_t *arena;
    uint64_t slot_bytes;
    uint32_t n_slots;              /* residents' and staging's */
    uint32_t *slot_of;             /* [layers x n_experts] a resident's slot, or K3_NO_SLOT */
    uint32_t *free_slots;          /* [n_slots] stack */
    uint32_t n_free;
    struct k3_expert_flight *flights; /* [staging] */
    struct k3_io_req *reqs;        /* [staging x reads per expert] */
    struct k3_io_req **batch;      /* as many */

    /* the running step */
    bool running;
    uint32_t layer;
    struct k3_expert_use *asked;   /* [n_experts] */
    struct k3_use_state *uses;              /* [n_experts] */
    uint32_t *use_of;              /* [n_experts] 1 + index into uses; 0 between steps */
    size_t n_uses, n_done;
    uint32_t *residents, *misses;  /* [n_experts] uses of either kind, in the order asked */
    size_t n_residents, n_misses;
    size_t res_in, res_out;        /* residents given so far */
    size_t submitted;              /* misses */
    struct k3_kept *leaving;       /* [2 n_experts] residents that will not stay; */
    size_t n_leaving, n_gone;      /* the first n_gone have given up their slots */

    pthread_mutex_t lock;          /* of what follows: read by any thread */
    struct k3_experts_counters counters;
    struct k3_layer_counts *layers; /* [layers] */
};

static inline size_t k3_experts_key(const struct k3_experts *s, uint32_t layer, uint32_t expert)
{
    return (size_t)layer * s->cfg.n_experts + expert;
}

/* Publishes (slot) or withdraws (K3_NO_SLOT) a resident. */
void k3_experts_set_resident(struct k3_experts *s, uint32_t layer, uint32_t expert, uint32_t slot);
/* Submits as many misses as staging takes. */
void k3_experts_submit_misses(struct k3_experts *s);

extern const char *const k3_expert_matrix_names[K3_EXPERT_MATRICES];

#endif
