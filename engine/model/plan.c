/* plan.c - how the memory ceiling is divided.
 *
 * Fixed first: the program, tables, vectors, state, latents; then one token's activations, the
 * smallest ring and one layer's experts in flight. Their sum is the floor. What is left buys, in
 * this order: a prefill chunk, a deeper ring, positions kept to go back to, resident trunk blocks,
 * resident experts. The ring comes before residents because a disk that stands still costs more than
 * a block that is read again; trunk before experts because a resident trunk byte saves a byte of
 * every token, a resident expert byte only when its expert is chosen again. */
#include <config.h>

#include "engine.h"
#include "host.h"
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
/* Blocks are as large as makes a ring of RING_BLOCKS of them. */
#define BLOCK_MOST (8 * MIB)
#define BLOCK_FLOOR (2 * MIB)
#define BLOCK_LEAST (64 * KIB)
#define RING_BLOCKS 16u
#define RING_FLOOR_BLOCKS 8u
#define RING_FIRST (64 * MIB) /* goes to the ring before anything is kept */
#define RING_MOST (256 * MIB)
#define CHUNK_MOST 512u
#define KEEP_MOST 4u
#define HEADROOM (6 * MIB)         /* growth of heap and libraries that nobody plans in detail */
/* What a compute thread touches: the kernels' part of its stack, and a little around it. */
#define THREAD_BYTES (K3_KERNEL_STACK_BYTES + 32 * KIB)
/* Where the system makes 2 MiB pages of heaps and stacks unasked. */
#define HUGE_HEAP_BYTES (8 * MIB)
#define HUGE_PAGE (2 * MIB)

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

/* Sizes that follow from the model alone, once its tape is cut. */
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
    p->vectors = k3_io_round(e->bind.vector_floats * sizeof(float));
    p->state = k3_state_bytes(c, p->context, &p->latent);
    /* State and latents share one mapping; its rounding goes to the latents. */
    p->latent = k3_io_round(p->state + p->latent) - p->state;
}

/* Tables of the binding: there already when the plan is made. */
static uint64_t bind_bytes(const struct k3_engine *e)
{
    const struct k3_bind *b = &e->bind;
    return b->n_moe * (uint64_t)e->cfg.experts * sizeof *b->places +
           b->n_matrices * (sizeof *b->matrices + sizeof *b->tape) +
           e->cfg.layers * sizeof *b->layers;
}

static uint64_t index_bytes(const struct k3_engine *e)
{
    return bind_bytes(e) + k3_tape_table_bytes(&e->tape_plan) +
           e->cfg.layers * sizeof(struct k3_layer) + experts_tables(e);
}

static uint64_t count_devices(const struct k3_checkpoint *c)
{
    uint64_t n = 0;
    for (size_t i = 0; c && i < c->n_shards; i++) {
        size_t k = 0;
        while (c->shards[k].device != c->shards[i].device)
            k++;
        n += k == i;
    }
    return n ? n : 1;
}

/* What the process needs besides the model: what it takes now, what the caller says, threads. */
static uint64_t program_bytes(const struct k3_engine *e)
{
    const struct k3_options *o = &e->opt;
    const uint64_t rss = k3_host_rss(), bound = bind_bytes(e);
    const uint64_t now = (rss > bound ? rss - bound : 0) + HEADROOM;
    return (o->program_bytes > now ? o->program_bytes : now) +
           o->program_per_id * e->cfg.vocab + e->plan.threads * THREAD_BYTES +
           count_devices(e->ckpt) * e->plan.io_depth * K3_IO_THREAD_BYTES +
           (k3_host_always_huge() ? HUGE_HEAP_BYTES + e->plan.threads * HUGE_PAGE : 0);
}

/* ---- the tape and its ring ----------------------------------------------------------------- */

static uint64_t tape_bytes(const struct k3_engine *e)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < e->bind.n_matrices; i++)
        sum += e->bind.tape[i].rows * e->bind.tape[i].row_bytes;
    return sum;
}

/* Cuts the tape for a ring of this size; a small tape into smaller blocks, so that a part of it can
 * be resident. */
static enum k3_status cut_tape(struct k3_engine *e, uint64_t ring, struct k3_error *err)
{
    uint64_t block = ring / RING_BLOCKS, most = tape_bytes(e) / 32;
    most = most > BLOCK_MOST ? BLOCK_MOST : most < BLOCK_LEAST ? BLOCK_LEAST : most;
    block = block < BLOCK_FLOOR ? BLOCK_FLOOR : block;
    block = block > most ? most : block;
    k3_tape_plan_free(&e->tape_plan);
    return k3_tape_plan_make(&e->tape_plan, e->bind.tape, e->bind.n_matrices, block, err);
}

/* With fewer blocks than this in the ring, the disk stands still while one is being multiplied. */
static uint64_t least_ring(const struct k3_engine *e)
{
    const struct k3_tape_plan *t = &e->tape_plan;
    const uint64_t blocks = t->n_blocks < RING_FLOOR_BLOCKS ? t->n_blocks : RING_FLOOR_BLOCKS;
    return k3_io_round(blocks * t->largest_window);
}

/* ---- the floor ------------------------------------------------------------------------------- */

static enum k3_status too_small(const struct k3_engine *e, struct k3_error *err)
{
    const struct k3_plan *p = &e->plan;
    const uint64_t mb = 1000 * 1000;
    /* Rounded up, and a little over it: what the program takes is not the same to the byte each
     * time, and the figure must work. */
    const uint64_t least = (p->floor + mb - 1) / mb + 1;
    return k3_fail(err, K3_FAILED,
                   "the budget of %.3f GB is too small: this model (%u layers, width %u) with %u "
                   "positions of context needs at least %.3f GB (state %.3f, latents %.3f, one "
                   "token's activations %.3f, ring %.3f, experts in flight %.3f, norms and index "
                   "%.3f, program %.3f). Raise --budget, or lower --context",
                   (double)p->budget / 1e9, e->cfg.layers, e->cfg.hidden, p->context,
                   (double)least / 1e3, (double)p->state / 1e9, (double)p->latent / 1e9,
                   (double)p->activations / 1e9, (double)p->ring / 1e9, (double)p->staging / 1e9,
                   (double)(p->vectors + p->index) / 1e9, (double)p->program / 1e9);
}

/* What the expert store's one mapping takes with so many residents. */
static uint64_t store_bytes(const struct k3_engine *e, uint64_t residents)
{
    const uint64_t slot = k3_experts_slot_bytes(&e->bind.expert_shape);
    return e->plan.moe_layers ? k3_io_round((residents + e->cfg.top_k) * slot) : 0;
}

/* Everything at its least. Leaves the parts set so. */
static void set_floor(struct k3_engine *e, uint64_t transient)
{
    struct k3_plan *p = &e->plan;
    p->chunk = 1;
    p->index = index_bytes(e);
    p->activations = activations(e, 1);
    p->ring = least_ring(e);
    p->staging = store_bytes(e, 0);
    p->floor = sum_parts(p);
    if (p->floor < transient)
        p->floor = transient;
}

/* ---- what is left ---------------------------------------------------------------------------- */

static enum k3_status spend_on_chunk(struct k3_engine *e, uint64_t *left, struct k3_error *err)
{
    struct k3_plan *p = &e->plan;
    p->chunk = e->opt.chunk ? e->opt.chunk : choose_chunk(e, *left);
    if (p->chunk > p->context)
        p->chunk = p->context;
    const uint64_t act = activations(e, p->chunk);
    if (act - p->activations > *left)
        return k3_fail(err, K3_FAILED,
                       "a prefill chunk of %u tokens needs %.3f GB of activations, but the budget "
                       "of %.3f GB leaves %.3f GB; lower --chunk or raise --budget",
                       p->chunk, (double)act / 1e9, (double)p->budget / 1e9,
                       (double)(*left + p->activations) / 1e9);
    *left -= act - p->activations;
    p->activations = act;
    return K3_OK;
}

/* The planner's own choice: RING_FIRST, later an eighth; of a small tape a quarter is enough. */
static uint64_t choose_ring(const struct k3_engine *e, uint64_t left)
{
    uint64_t more = left / 2;
    if (more > RING_FIRST)
        more = left / 8 > RING_FIRST ? left / 8 : RING_FIRST;
    uint64_t ring = e->plan.ring + more;
    ring = ring > RING_MOST ? RING_MOST : ring;
    return ring > e->tape_plan.bytes / 4 ? e->tape_plan.bytes / 4 : ring;
}

static enum k3_status spend_on_ring(struct k3_engine *e, uint64_t *left, struct k3_error *err)
{
    struct k3_plan *p = &e->plan;
    const uint64_t least = p->ring, index = p->index;
    uint64_t ring = k3_io_round(e->opt.ring ? e->opt.ring : choose_ring(e, *left));
    ring = ring < least ? least : ring;
    if (ring - least > *left) {
        if (e->opt.ring)
            return k3_fail(err, K3_FAILED,
                           "a ring of %.3f GB does not fit: %.3f GB of the budget are left for it; "
                           "lower --ring or raise --budget",
                           (double)ring / 1e9, (double)(*left + least) / 1e9);
        ring = least;
    }
    *left -= ring - least;
    p->ring = ring;
    if (cut_tape(e, ring, err) != K3_OK)
        return err->status;
    p->index = index_bytes(e); /* the blocks are as large as before or larger: no more of them */
    *left += index > p->index ? index - p->index : 0;
    return K3_OK;
}

/* Kept positions: only what is hardly missed elsewhere, a sixteenth of what is left. A conversation
 * can go back without them, from a file or by reading again. */
static void spend_on_checkpoints(struct k3_engine *e, uint64_t *left)
{
    const uint64_t one = k3_keep_bytes(&e->cfg);
    uint64_t n = e->opt.no_checkpoints ? 0 : *left / 16 / one;
    n = n < KEEP_MOST ? n : KEEP_MOST;
    while (n > 0 && k3_io_round(n * one) > *left / 16)
        n--;
    e->plan.checkpoint_slots = (uint32_t)n;
    e->plan.checkpoints = n ? k3_io_round(n * one) : 0;
    *left -= e->plan.checkpoints;
}

static void spend_on_trunk(struct k3_engine *e, uint64_t *left)
{
    struct k3_plan *p = &e->plan;
    p->residents = k3_tape_plan_residents(&e->tape_plan, *left);
    *left -= p->residents;
    bool all = true;
    for (size_t i = 0; i < e->tape_plan.n_blocks; i++) {
        const struct k3_tape_block *b = &e->tape_plan.blocks[i];
        all = all && b->resident;
        p->trunk_per_token -= b->resident ? b->bytes : 0;
    }
    if (all && !e->opt.ring) { /* nothing streams: the ring's memory is free */
        *left += p->ring;
        p->ring = 0;
    }
}

/* As many residents as fit, up to `most`; --experts asks for a number of bytes that must fit. */
static enum k3_status spend_on_experts(struct k3_engine *e, uint64_t *left, struct k3_error *err)
{
    struct k3_plan *p = &e->plan;
    const struct k3_options *o = &e->opt;
    if (p->moe_layers == 0)
        return K3_OK;
    const uint64_t slot = k3_experts_slot_bytes(&e->bind.expert_shape);
    const uint64_t all = (uint64_t)p->moe_layers * e->cfg.experts;
    uint64_t n = (o->experts == UINT64_MAX ? *left : o->experts) / slot;
    n = n < all ? n : all;
    while (o->experts == UINT64_MAX && n > 0 && store_bytes(e, n) - p->staging > *left)
        n--;
    const uint64_t bytes = store_bytes(e, n) - p->staging;
    if (bytes > *left)
        return k3_fail(err, K3_FAILED,
                       "resident experts of %.3f GB do not fit: %.3f GB of the budget are left for "
                       "them; lower --experts or raise --budget",
                       (double)o->experts / 1e9, (double)*left / 1e9);
    p->expert_slots = (uint32_t)n;
    p->experts = bytes;
    *left -= bytes;
    return K3_OK;
}

static enum k3_status spend(struct k3_engine *e, struct k3_error *err)
{
    uint64_t left = e->plan.budget - e->plan.floor;
    const bool fixed = e->opt.experts != UINT64_MAX;
    if (spend_on_chunk(e, &left, err) != K3_OK || spend_on_ring(e, &left, err) != K3_OK ||
        (fixed && spend_on_experts(e, &left, err) != K3_OK))
        return err->status;
    spend_on_checkpoints(e, &left);
    spend_on_trunk(e, &left);
    return fixed ? K3_OK : spend_on_experts(e, &left, err);
}

enum k3_status k3_plan_compute(struct k3_engine *e, uint64_t transient, struct k3_error *err)
{
    struct k3_plan *p = &e->plan;
    const struct k3_options *o = &e->opt;
    memset(p, 0, sizeof *p);
    p->context = o->context ? o->context : K3_CONTEXT_DEFAULT;
    p->threads = o->threads ? o->threads : k3_host_cores();
    p->io_depth = o->io_depth ? o->io_depth : K3_IO_DEPTH_DEFAULT;
    p->isa = e->k->name;
    p->budget = o->budget ? o->budget : k3_host_available() / 10 * 9;
    p->program = program_bytes(e);
    if (cut_tape(e, 0, err) != K3_OK)
        return err->status;
    measure_model(e);
    set_floor(e, transient);
    if (p->budget < p->floor)
        return too_small(e, err);
    if (spend(e, err) != K3_OK)
        return err->status;
    p->bytes_per_token = p->trunk_per_token + e->bind.embed_row_bytes;
    p->total = sum_parts(p);
    return K3_OK;
}
