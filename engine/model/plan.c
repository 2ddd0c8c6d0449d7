/* plan.c - how the memory ceiling is divided.
 *
 * Fixed first: the program, tables, vectors, state, latents; then one token's activations, the
 * smallest ring and one layer's experts in flight. Their sum is the floor. What is left buys, in
 * this order: a prefill chunk, a deeper ring, positions kept to go back to, resident trunk blocks,
 * resident experts. Trunk before
 * experts because a resident trunk byte saves a byte of every token, a resident expert byte only
 * when its expert is chosen again. */
#include <config.h>

#include "engine.h"
#include "host.h"
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024ull * 1024)
#define BLOCK_MOST (8 * MIB)
#define BLOCK_LEAST (64 * 1024ull)
#define RING_MOST (256 * MIB)
#define CHUNK_MOST 512u
#define KEEP_MOST 4u
#define HEADROOM (8 * MIB) /* heap growth and stacks that nobody plans in detail */

uint64_t k3_state_bytes(const struct k3_config *c, uint32_t context, uint64_t *latent_bytes)
{
    const uint64_t p = k3_kda_width(c), mla = k3_count_mla(c);
    const uint64_t kda = p * c->kda_dim + 3 * p * (c->conv_taps - 1);
    *latent_bytes = mla * context * k3_latent_width(c) * sizeof(float);
    return (c->layers - mla) * kda * sizeof(float);
}

static uint64_t activations(const struct k3_engine *e, uint32_t chunk)
{
    struct k3_workspace w;
    const struct k3_plan *p = &e->plan;
    const uint32_t rows = e->opt.full_logits ? chunk : 1;
    return k3_io_round(k3_workspace_carve(&w, NULL, &e->cfg, chunk, p->threads, p->context, rows));
}

/* Largest power of two whose activations take no more than a sixteenth of what is left. */
static uint32_t choose_chunk(const struct k3_engine *e, uint64_t left)
{
    uint32_t chunk = CHUNK_MOST;
    while (chunk > 1 && (chunk > e->plan.context || activations(e, chunk) > left / 16))
        chunk /= 2;
    return chunk;
}

static uint64_t sum_parts(const struct k3_plan *p)
{
    return p->program + p->index + p->vectors + p->state + p->latent + p->activations + p->ring +
           p->staging + p->residents + p->experts + p->checkpoints;
}

/* The store's tables, as if every expert could stay: a few bytes each. */
static uint64_t experts_tables(const struct k3_engine *e)
{
    if (e->bind.n_moe == 0)
        return 0;
    const struct k3_experts_config all = {.shape = e->bind.expert_shape,
                                          .layers = e->bind.n_moe,
                                          .n_experts = e->cfg.experts,
                                          .top_k = e->cfg.top_k,
                                          .slots = e->bind.n_moe * e->cfg.experts,
                                          .staging = e->cfg.top_k,
                                          .policy = e->opt.policy};
    return k3_experts_table_bytes(&all);
}

/* Sizes that follow from the model alone. */
static void measure_model(struct k3_engine *e)
{
    const struct k3_config *c = &e->cfg;
    struct k3_plan *p = &e->plan;
    p->layers = c->layers;
    p->vocab = c->vocab;
    p->n_experts = c->experts;
    p->top_k = c->top_k;
    p->moe_layers = e->bind.n_moe;
    p->trunk_bytes = e->tape_plan.bytes;
    p->trunk_per_token = e->tape_plan.bytes;
    for (int m = 0; m < K3_EXPERT_MATRICES; m++)
        p->expert_bytes += e->bind.expert_shape.bytes[m][0] + e->bind.expert_shape.bytes[m][1];
    if (p->moe_layers == 0)
        p->expert_bytes = 0;
    p->experts_per_token = p->expert_bytes * p->moe_layers * c->top_k;
    p->index = e->bind.n_moe * (uint64_t)c->experts * sizeof(struct k3_expert_place) +
               e->bind.n_matrices * (sizeof(struct k3_matrix) + sizeof(struct k3_tape_matrix)) +
               k3_tape_table_bytes(&e->tape_plan) +
               c->layers * (sizeof(struct k3_layer) + sizeof(struct k3_layer_bind)) +
               experts_tables(e);
    p->vectors = k3_io_round(e->bind.vector_floats * sizeof(float));
    p->state = k3_state_bytes(c, p->context, &p->latent);
    /* State and latents share one mapping; its rounding goes to the latents. */
    p->latent = k3_io_round(p->state + p->latent) - p->state;
}

static uint64_t least_ring(const struct k3_engine *e)
{
    return k3_io_round(e->tape_plan.largest_window);
}

static enum k3_status too_small(const struct k3_engine *e, const char *what, struct k3_error *err)
{
    const struct k3_plan *p = &e->plan;
    return k3_fail(err, K3_FAILED,
                   "the budget of %.3f GB is too small: %s with %u positions of context %s at "
                   "least %.3f GB (state %.3f, latents %.3f, one token's activations %.3f, ring "
                   "%.3f, experts in flight %.3f, norms %.3f, program %.3f). Raise --budget, or "
                   "lower --context",
                   (double)p->budget / 1e9, what, p->context, "needs", (double)p->floor / 1e9,
                   (double)p->state / 1e9, (double)p->latent / 1e9, (double)p->activations / 1e9,
                   (double)p->ring / 1e9, (double)p->staging / 1e9,
                   (double)(p->vectors + p->index) / 1e9, (double)p->program / 1e9);
}

/* The floor: everything at its least. Leaves the parts set so. */
static void set_floor(struct k3_engine *e, uint64_t slot, uint64_t transient)
{
    struct k3_plan *p = &e->plan;
    p->chunk = 1;
    p->activations = activations(e, 1);
    p->ring = least_ring(e);
    p->staging = p->moe_layers ? k3_io_round(slot * e->cfg.top_k) : 0;
    p->floor = sum_parts(p);
    if (p->floor < transient)
        p->floor = transient;
}

/* Kept positions: only what is hardly missed elsewhere, a sixteenth of what is left. A conversation
 * can go back without them, from a file or by reading again. Returns the bytes. */
static uint64_t plan_checkpoints(struct k3_engine *e, uint64_t left)
{
    const uint64_t one = k3_keep_bytes(&e->cfg);
    uint64_t n = left / 16 / one;
    n = n < KEEP_MOST ? n : KEEP_MOST;
    while (n > 0 && k3_io_round(n * one) > left / 16)
        n--;
    e->plan.checkpoint_slots = (uint32_t)n;
    e->plan.checkpoints = n ? k3_io_round(n * one) : 0;
    return e->plan.checkpoints;
}

/* Spends what is left above the floor. `left` never goes below 0. */
static enum k3_status spend(struct k3_engine *e, uint64_t slot, struct k3_error *err)
{
    struct k3_plan *p = &e->plan;
    const struct k3_options *o = &e->opt;
    uint64_t left = p->budget - p->floor;
    p->chunk = o->chunk ? o->chunk : choose_chunk(e, left);
    if (p->chunk > p->context)
        p->chunk = p->context;
    const uint64_t act = activations(e, p->chunk);
    if (act - p->activations > left)
        return k3_fail(err, K3_FAILED,
                       "a prefill chunk of %u tokens needs %.3f GB of activations, but the budget "
                       "of %.3f GB leaves %.3f GB; lower --chunk or raise --budget",
                       p->chunk, (double)act / 1e9, (double)p->budget / 1e9,
                       (double)(left + p->activations) / 1e9);
    left -= act - p->activations;
    p->activations = act;

    const uint64_t least = p->ring;
    uint64_t ring = o->ring ? k3_io_round(o->ring) : left / 8 + least;
    if (!o->ring && ring > RING_MOST)
        ring = RING_MOST;
    if (ring < least)
        ring = least;
    if (o->ring && ring - least > left)
        return k3_fail(err, K3_FAILED,
                       "a ring of %.3f GB does not fit: %.3f GB of the budget are left for it",
                       (double)ring / 1e9, (double)(left + least) / 1e9);
    if (ring - least > left)
        ring = least + left;
    ring = k3_io_round(ring) > least + left ? least : k3_io_round(ring);
    left -= ring - least;
    p->ring = ring;
    left -= plan_checkpoints(e, left);

    const uint64_t slots_all = (uint64_t)p->moe_layers * e->cfg.experts;
    uint64_t want = 0;
    if (p->moe_layers && o->experts != UINT64_MAX) {
        want = o->experts / slot;
        if (want > slots_all)
            want = slots_all;
        if (k3_io_round(want * slot) > left)
            return k3_fail(err, K3_FAILED,
                           "resident experts of %.3f GB do not fit: %.3f GB of the budget are left "
                           "for them; lower --experts or raise --budget",
                           (double)o->experts / 1e9, (double)left / 1e9);
        left -= k3_io_round(want * slot);
    }
    p->residents = k3_tape_plan_residents(&e->tape_plan, left);
    left -= p->residents;
    bool all = true;
    for (size_t i = 0; i < e->tape_plan.n_blocks; i++)
        all = all && e->tape_plan.blocks[i].resident;
    if (all && !o->ring) { /* nothing streams: the ring's memory is free */
        left += p->ring;
        p->ring = 0;
    }
    if (p->moe_layers && o->experts == UINT64_MAX) {
        want = left / slot < slots_all ? left / slot : slots_all;
        while (want > 0 && k3_io_round(want * slot) > left)
            want--;
        left -= k3_io_round(want * slot);
    }
    p->expert_slots = (uint32_t)want;
    p->experts = want ? k3_io_round((want + e->cfg.top_k) * slot) - p->staging : 0;
    return K3_OK;
}

enum k3_status k3_plan_compute(struct k3_engine *e, uint64_t transient, struct k3_error *err)
{
    struct k3_plan *p = &e->plan;
    const struct k3_options *o = &e->opt;
    memset(p, 0, sizeof *p);
    p->context = o->context ? o->context : 4096;
    p->threads = o->threads ? o->threads : k3_host_cores();
    p->io_depth = o->io_depth ? o->io_depth : 16;
    p->isa = e->k->name;
    p->budget = o->budget ? o->budget : k3_host_available() / 10 * 9;
    const uint64_t now = k3_host_rss() + HEADROOM;
    p->program = o->program_bytes > now ? o->program_bytes : now;

    const struct k3_config *c = &e->cfg;
    uint64_t tape_bytes = 0;
    for (uint32_t i = 0; i < e->bind.n_matrices; i++)
        tape_bytes += e->bind.tape[i].rows * e->bind.tape[i].row_bytes;
    uint64_t block = tape_bytes / 32;
    block = block > BLOCK_MOST ? BLOCK_MOST : block < BLOCK_LEAST ? BLOCK_LEAST : block;
    k3_tape_plan_free(&e->tape_plan);
    if (k3_tape_plan_make(&e->tape_plan, e->bind.tape, e->bind.n_matrices, block, err) != K3_OK)
        return err->status;
    measure_model(e);
    const uint64_t slot = p->moe_layers ? k3_experts_slot_bytes(&e->bind.expert_shape) : 0;
    set_floor(e, slot, transient);
    if (p->budget < p->floor) {
        char what[128];
        snprintf(what, sizeof what, "this model (%u layers, width %u)", c->layers, c->hidden);
        return too_small(e, what, err);
    }
    if (spend(e, slot, err) != K3_OK)
        return err->status;
    p->total = sum_parts(p);
    for (size_t i = 0; i < e->tape_plan.n_blocks; i++)
        if (e->tape_plan.blocks[i].resident)
            p->trunk_per_token -= e->tape_plan.blocks[i].bytes;
    return K3_OK;
}
