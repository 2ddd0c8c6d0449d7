/* experts.c - the store of whole experts; see experts.h.
 *
 * Every slot is, at any time, exactly one of: free (on the stack), a resident's (slot_of), or a
 * miss's of the running step (use.slot). A miss is in flight from its submission until its out job
 * is done; at most `staging` are. Counting: residents that have not been given up and misses that
 * stay are never more than `slots` once the residents that leave are done with, so as long as the
 * caller calls done() there is a slot for every miss in flight. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "experts_internal.h"

/* ---- life -------------------------------------------------------------------------------- */

static void clamp_config(struct k3_experts_config *cfg)
{
    const uint64_t keys = (uint64_t)cfg->layers * cfg->n_experts;
    if (cfg->slots > keys)
        cfg->slots = (uint32_t)keys;
    if (cfg->staging > cfg->n_experts)
        cfg->staging = cfg->n_experts;
}

uint64_t k3_experts_table_bytes(const struct k3_experts_config *config)
{
    struct k3_experts_config cfg = *config;
    clamp_config(&cfg);
    const uint64_t keys = (uint64_t)cfg.layers * cfg.n_experts;
    const uint64_t reads = (uint64_t)cfg.staging * k3_expert_reads_max(&cfg.shape);
    const struct k3_experts *s = NULL;
    return sizeof *s + k3_keeper_bytes(cfg.policy, cfg.layers, cfg.n_experts, cfg.slots) +
           keys * sizeof *s->slot_of + ((uint64_t)cfg.slots + cfg.staging) * sizeof *s->free_slots +
           cfg.staging * sizeof *s->flights + reads * (sizeof *s->reqs + sizeof *s->batch) +
           cfg.n_experts * (sizeof *s->asked + sizeof *s->uses + 3 * sizeof *s->use_of +
                            2 * sizeof *s->leaving) +
           cfg.layers * sizeof *s->layers;
}

static enum k3_status check_config(const struct k3_experts_config *cfg, struct k3_error *err)
{
    if (cfg->layers == 0 || cfg->n_experts == 0 || cfg->staging == 0)
        return k3_fail(err, K3_FAILED, "expert store: %u layers, %u experts, staging for %u: all "
                                       "must be at least 1",
                       cfg->layers, cfg->n_experts, cfg->staging);
    for (uint32_t m = 0; m < K3_EXPERT_MATRICES; m++) {
        const uint64_t *const bytes = cfg->shape.bytes[m];
        const bool mxfp4 = cfg->shape.format == K3_EXPERT_MXFP4;
        if (bytes[0] == 0 || bytes[0] > UINT32_MAX || (mxfp4 && bytes[0] != 16 * bytes[1]) ||
            (!mxfp4 && bytes[1] != 0))
            return k3_fail(err, K3_FAILED,
                           "expert store: %s has %" PRIu64 " bytes of weights and %" PRIu64
                           " of scales: no expert matrix is like that",
                           k3_expert_matrix_names[m], bytes[0], bytes[1]);
    }
    return K3_OK;
}

static bool allocate(struct k3_experts *s)
{
    const struct k3_experts_config *cfg = &s->cfg;
    const size_t keys = (size_t)cfg->layers * cfg->n_experts, n = cfg->n_experts;
    const uint32_t reads = k3_expert_reads_max(&cfg->shape);
    const bool fits = s->slot_bytes <= UINT64_MAX / s->n_slots;
    s->arena = fits ? k3_io_alloc(s->n_slots * s->slot_bytes) : NULL;
    s->slot_of = malloc(keys * sizeof *s->slot_of);
    s->free_slots = calloc(s->n_slots, sizeof *s->free_slots);
    s->flights = calloc(cfg->staging, sizeof *s->flights);
    s->reqs = calloc((size_t)cfg->staging * reads, sizeof *s->reqs);
    s->batch = calloc((size_t)cfg->staging * reads, sizeof *s->batch);
    s->asked = calloc(n, sizeof *s->asked);
    s->uses = calloc(n, sizeof *s->uses);
    s->use_of = calloc(n, sizeof *s->use_of);
    s->residents = calloc(n, sizeof *s->residents);
    s->misses = calloc(n, sizeof *s->misses);
    s->leaving = calloc(n, 2 * sizeof *s->leaving);
    s->layers = calloc(cfg->layers, sizeof *s->layers);
    return s->arena && s->slot_of && s->free_slots && s->flights && s->reqs && s->batch &&
           s->asked && s->uses && s->use_of && s->residents && s->misses && s->leaving && s->layers;
}

static void make_empty(struct k3_experts *s)
{
    const uint32_t reads = k3_expert_reads_max(&s->cfg.shape);
    for (size_t i = 0; i < (size_t)s->cfg.layers * s->cfg.n_experts; i++)
        s->slot_of[i] = K3_NO_SLOT;
    for (uint32_t i = 0; i < s->n_slots; i++) /* slot 0 is taken first */
        s->free_slots[i] = s->n_slots - 1 - i;
    s->n_free = s->n_slots;
    for (uint32_t i = 0; i < s->cfg.staging; i++)
        s->flights[i].reqs = s->reqs + (size_t)i * reads;
    for (uint32_t i = 0; i < s->cfg.layers; i++)
        s->layers[i].slots = k3_keeper_quota(s->keeper, i);
}

struct k3_experts *k3_experts_open(const struct k3_experts_config *cfg, struct k3_error *err)
{
    if (check_config(cfg, err))
        return NULL;
    struct k3_experts *s = calloc(1, sizeof *s);
    if (!s) {
        k3_fail_memory(err, "the expert store", sizeof *s);
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    s->cfg = *cfg;
    clamp_config(&s->cfg);
    s->slot_bytes = k3_experts_slot_bytes(&cfg->shape);
    s->n_slots = s->cfg.slots + s->cfg.staging;
    s->keeper = k3_keeper_open(cfg->policy, cfg->layers, cfg->n_experts, s->cfg.slots, err);
    if (!s->keeper)
        goto fail;
    if (!allocate(s)) {
        k3_fail_memory(err, "the expert store",
                       s->n_slots * s->slot_bytes + k3_experts_table_bytes(cfg));
        goto fail;
    }
    make_empty(s);
    return s;
fail:
    k3_experts_close(s);
    return NULL;
}

void k3_experts_close(struct k3_experts *s)
{
    if (!s)
        return;
    k3_experts_abort(s);
    k3_keeper_close(s->keeper);
    k3_io_free(s->arena, s->n_slots * s->slot_bytes);
    free(s->slot_of);
    free(s->free_slots);
    free(s->flights);
    free(s->reqs);
    free(s->batch);
    free(s->asked);
    free(s->uses);
    free(s->use_of);
    free(s->residents);
    free(s->misses);
    free(s->leaving);
    free(s->layers);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- begin ------------------------------------------------------------------------------- */

static enum k3_status check_uses(struct k3_experts *s, uint32_t layer,
                                 const struct k3_expert_use *uses, size_t n, struct k3_error *err)
{
    if (s->running || layer >= s->cfg.layers || n > s->cfg.n_experts)
        return k3_fail(err, K3_FAILED, "expert store: step with %zu experts of layer %u begun%s", n,
                       layer, s->running ? " inside another" : ": there are fewer");
    size_t i = 0;
    for (; i < n; i++) {
        if (uses[i].expert >= s->cfg.n_experts || s->use_of[uses[i].expert] != 0)
            break;
        s->use_of[uses[i].expert] = (uint32_t)i + 1;
    }
    if (i == n)
        return K3_OK;
    for (size_t j = 0; j < i; j++)
        s->use_of[uses[j].expert] = 0;
    return k3_fail(err, K3_FAILED, "expert store: layer %u: expert %u of %u is asked for%s",
                   s->cfg.layer_numbers[layer], uses[i].expert, s->cfg.n_experts,
                   uses[i].expert < s->cfg.n_experts ? " twice" : "");
}

enum k3_status k3_experts_begin(struct k3_experts *s, uint32_t layer,
                                const struct k3_expert_use *uses, size_t n, struct k3_error *err)
{
    if (check_uses(s, layer, uses, n, err))
        return err->status;
    struct k3_keep_plan plan;
    k3_keeper_plan(s->keeper, layer, uses, n, &plan);
    if (plan.n_dropped > 0)
        memcpy(s->leaving, plan.dropped, plan.n_dropped * sizeof *plan.dropped);
    s->n_leaving = plan.n_dropped;
    s->running = true;
    s->layer = layer;
    s->n_uses = n;
    s->n_gone = s->n_done = s->n_residents = s->n_misses = 0;
    s->res_in = s->res_out = s->submitted = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t slot = s->slot_of[k3_experts_key(s, layer, uses[i].expert)];
        s->asked[i] = uses[i];
        const bool resident = slot != K3_NO_SLOT;
        s->uses[i] = (struct k3_use_state){
            .slot = slot, .resident = resident, .stays = plan.stays[i]};
        if (resident)
            s->residents[s->n_residents++] = (uint32_t)i;
        else
            s->misses[s->n_misses++] = (uint32_t)i;
    }
    k3_experts_submit_misses(s);
    return K3_OK;
}

/* ---- done, end, abort -------------------------------------------------------------------- */

static void release_slot(struct k3_experts *s, uint32_t slot)
{
    s->free_slots[s->n_free++] = slot;
}

static void land(struct k3_experts *s, uint32_t use)
{
    for (uint32_t i = 0; i < s->cfg.staging; i++)
        if (s->flights[i].busy && s->flights[i].use == use)
            s->flights[i].busy = false;
    if (!s->uses[use].stays) {
        release_slot(s, s->uses[use].slot);
        s->uses[use].slot = K3_NO_SLOT;
    }
}

void k3_experts_done(struct k3_experts *s, uint32_t use)
{
    if (!s->running || use >= s->n_uses || s->uses[use].given != K3_GIVEN_OUT)
        return;
    s->uses[use].given = K3_GIVEN_DONE;
    s->n_done++;
    if (!s->uses[use].resident)
        land(s, use);
    if (s->submitted < s->n_misses)
        k3_experts_submit_misses(s);
}

static void finish_step(struct k3_experts *s)
{
    for (size_t i = 0; i < s->n_uses; i++)
        s->use_of[s->asked[i].expert] = 0;
    s->running = false;
}

static void count_step(struct k3_experts *s)
{
    struct k3_layer_counts *const layer = &s->layers[s->layer];
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_uses; i++) {
        const uint64_t requests = s->asked[i].requests;
        const struct k3_use_state *const u = &s->uses[i];
        s->counters.requests += requests;
        layer->requests += requests;
        if (u->resident) {
            s->counters.resident += requests;
            layer->resident += requests;
        } else if (u->waited) {
            s->counters.waited += requests;
        } else {
            s->counters.prefetched += requests;
        }
    }
    pthread_mutex_unlock(&s->lock);
}

enum k3_status k3_experts_end(struct k3_experts *s, struct k3_error *err)
{
    if (!s->running || s->n_done != s->n_uses)
        return k3_fail(err, K3_FAILED, "expert store: end() %s",
                       s->running ? "before all jobs are done" : "outside a step");
    count_step(s);
    for (size_t i = s->n_gone; i < s->n_leaving; i++) {
        const struct k3_kept *k = &s->leaving[i];
        release_slot(s, s->slot_of[k3_experts_key(s, k->layer, k->expert)]);
        k3_experts_set_resident(s, k->layer, k->expert, K3_NO_SLOT);
    }
    for (size_t i = 0; i < s->n_misses; i++) {
        const struct k3_use_state *u = &s->uses[s->misses[i]];
        if (u->stays)
            k3_experts_set_resident(s, s->layer, s->asked[s->misses[i]].expert, u->slot);
    }
    k3_keeper_commit(s->keeper, s->layer, s->asked, s->n_uses);
    finish_step(s);
    return K3_OK;
}

/* Takes back what no reader has begun, and waits for the rest. */
static void stop_reads(struct k3_experts *s)
{
    size_t n = 0;
    for (uint32_t i = 0; i < s->cfg.staging; i++) {
        const struct k3_expert_flight *f = &s->flights[i];
        for (uint32_t j = 0; f->busy && j < f->end[K3_STAGE_OUT]; j++)
            s->batch[n++] = &f->reqs[j];
    }
    if (n == 0)
        return;
    k3_io_cancel(s->cfg.io, s->batch, n);
    for (size_t i = 0; i < n; i++)
        k3_io_wait(s->cfg.io, s->batch[i]);
}

void k3_experts_abort(struct k3_experts *s)
{
    if (!s->running)
        return;
    stop_reads(s);
    for (uint32_t i = 0; i < s->cfg.staging; i++)
        s->flights[i].busy = false;
    for (size_t i = 0; i < s->n_misses; i++)
        if (s->uses[s->misses[i]].slot != K3_NO_SLOT)
            release_slot(s, s->uses[s->misses[i]].slot);
    for (size_t i = 0; i < s->n_gone; i++)
        k3_keeper_forget(s->keeper, s->leaving[i].layer, s->leaving[i].expert);
    finish_step(s);
}

/* ---- figures ----------------------------------------------------------------------------- */

void k3_experts_get_counters(const struct k3_experts *s, struct k3_experts_counters *out)
{
    pthread_mutex_t *const lock = (pthread_mutex_t *)&s->lock;
    pthread_mutex_lock(lock);
    *out = s->counters;
    pthread_mutex_unlock(lock);
}

void k3_experts_get_layer(const struct k3_experts *s, uint32_t layer, struct k3_layer_counts *out)
{
    pthread_mutex_t *const lock = (pthread_mutex_t *)&s->lock;
    pthread_mutex_lock(lock);
    *out = layer < s->cfg.layers ? s->layers[layer] : (struct k3_layer_counts){0};
    pthread_mutex_unlock(lock);
}
