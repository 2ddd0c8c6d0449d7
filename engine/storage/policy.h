/* policy.h - which experts a layer keeps in memory. Pure bookkeeping: no bytes, no files, no
 * threads; the store (experts.c) and the replay of a trace (trace.c) are driven by the same code.
 *
 * A token walks through all layers before it comes back to the first, so for a recency cache over
 * all layers the experts are one long cyclic scan: below a whole round it hits nothing.
 * K3_POLICY_QUOTA therefore divides the slots among the layers, and each layer keeps the best of
 * those it has and those just read:
 *   1. the one whose last token is later (within a prefill chunk too),
 *   2. then the one with the higher frequency: each use adds requests x 1024 / (4 + best rank), and
 *      an eighth is lost per token in between,
 *   3. then the lower expert number.
 * A layer whose quota is smaller than its top-k thus keeps the first choices of the last token
 * and refuses the rest. K3_POLICY_LRU is one classic recency list over all layers, of the same
 * capacity, kept for comparison. */
#ifndef K3_POLICY_H
#define K3_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../k3.h"

struct k3_expert_use {      /* one distinct expert of one layer and chunk */
    uint32_t expert;
    uint32_t requests;      /* tokens of the chunk that chose it, >= 1 */
    uint32_t best_rank;     /* 0 = first choice */
    uint32_t last;          /* the last token that chose it, counted from 0 in the chunk */
};

struct k3_kept {            /* an expert of a layer */
    uint32_t layer, expert;
};

struct k3_keeper;

/* slots is the capacity over all layers; more than layers x n_experts counts as that. NULL: out of
 * memory or more than 2^26 experts. */
struct k3_keeper *k3_keeper_open(enum k3_policy policy, uint32_t layers, uint32_t n_experts,
                                 uint32_t slots, struct k3_error *err);
void k3_keeper_close(struct k3_keeper *k);
/* Memory that open takes. */
uint64_t k3_keeper_bytes(enum k3_policy policy, uint32_t layers, uint32_t n_experts,
                         uint32_t slots);

/* Slots of a layer: slots / layers, the remainder spread evenly. LRU has no quota: all slots. */
uint32_t k3_keeper_quota(const struct k3_keeper *k, uint32_t layer);
uint32_t k3_keeper_used(const struct k3_keeper *k, uint32_t layer); /* experts kept of the layer */
bool k3_keeper_has(const struct k3_keeper *k, uint32_t layer, uint32_t expert);

/* The decision about one step of one layer, before anything changes. It depends on the requests
 * alone, never on the order in which reads arrive. */
struct k3_keep_plan {
    const bool *stays;              /* [n uses] will be kept: residents and newcomers alike */
    const struct k3_kept *dropped;  /* residents that go (LRU: of any layer) */
    size_t n_dropped;
};
/* uses[] are distinct experts below n_experts; for LRU their order is the order of use. The plan
 * belongs to the keeper and holds until its next call. */
void k3_keeper_plan(struct k3_keeper *k, uint32_t layer, const struct k3_expert_use *uses,
                    size_t n, struct k3_keep_plan *plan);
/* Makes the last plan (same layer and uses) true. */
void k3_keeper_commit(struct k3_keeper *k, uint32_t layer, const struct k3_expert_use *uses,
                      size_t n);
/* An expert whose bytes have been given up outside a commit. */
void k3_keeper_forget(struct k3_keeper *k, uint32_t layer, uint32_t expert);

#endif
