/* engine.c - the public functions of k3.h: life, timeline, figures. */
#include "engine.h"
#include "state.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

void k3_options_init(struct k3_options *opt)
{
    memset(opt, 0, sizeof *opt);
    opt->experts = UINT64_MAX;
}

/* ---- life -------------------------------------------------------------------------------- */

static enum k3_status choose_kernels(struct k3_engine *e, struct k3_error *err)
{
    static const char *const names[] = {"auto", "scalar", "avx2", "avx512", "neon"};
    e->k = k3_kernels_get(e->opt.isa);
    if (!e->k)
        return k3_fail(err, K3_USAGE,
                       "the kernel set %s does not run on this CPU; use --isa auto",
                       names[e->opt.isa]);
    return K3_OK;
}

static enum k3_status open_checkpoint(struct k3_engine *e, k3_progress_fn progress, void *ud,
                                      struct k3_error *err)
{
    e->ckpt = k3_checkpoint_open(e->model_dir, progress, ud, err);
    if (!e->ckpt)
        return err->status;
    if (k3_bind_make(&e->cfg, e->ckpt, &e->bind, err) != K3_OK ||
        k3_fingerprint_make(e, err) != K3_OK)
        return err->status;
    k3_checkpoint_drop_tensors(e->ckpt);
    malloc_trim(0); /* the JSON of the headers is gone; its memory belongs to the plan now */
    return K3_OK;
}

/* A budget that is hopeless by the config alone is refused before a large index is read: reading it
 * takes memory too. What the shards say may differ a little, so the last word is theirs. */
static enum k3_status check_budget(struct k3_engine *e, struct k3_error *err)
{
    if (k3_config_read(e->model_dir, &e->cfg, err) != K3_OK ||
        k3_bind_make(&e->cfg, NULL, &e->bind, err) != K3_OK)
        return err->status;
    struct k3_error no;
    const enum k3_status st = k3_plan_compute(e, 0, &no);
    const bool hopeless = st != K3_OK && e->plan.budget < e->plan.floor / 10 * 9;
    k3_tape_plan_free(&e->tape_plan);
    k3_bind_free(&e->bind);
    if (hopeless)
        *err = no;
    return hopeless ? st : K3_OK;
}

k3_engine *k3_open(const struct k3_options *opt, k3_progress_fn progress, void *ud,
                   struct k3_error *err)
{
    struct k3_engine *e = calloc(1, sizeof *e);
    if (!e) {
        k3_fail_memory(err, "the engine", sizeof *e);
        return NULL;
    }
    e->opt = *opt;
    e->model_dir = strdup(opt->model_dir);
    if (!e->model_dir) {
        k3_fail_memory(err, "the engine", 0);
        goto fail;
    }
    e->opt.model_dir = e->model_dir;
    if (choose_kernels(e, err) != K3_OK || check_budget(e, err) != K3_OK ||
        open_checkpoint(e, progress, ud, err) != K3_OK ||
        k3_plan_compute(e, k3_host_peak_rss(), err) != K3_OK)
        goto fail;
    return e;
fail:
    k3_close(e);
    return NULL;
}

static enum k3_status open_experts(struct k3_engine *e, struct k3_error *err)
{
    if (e->bind.n_moe == 0)
        return K3_OK;
    const struct k3_experts_config c = {.io = e->io,
                                        .checkpoint = e->ckpt,
                                        .shape = e->bind.expert_shape,
                                        .places = e->bind.places,
                                        .layer_numbers = e->bind.layer_numbers,
                                        .layers = e->bind.n_moe,
                                        .n_experts = e->cfg.experts,
                                        .top_k = e->cfg.top_k,
                                        .slots = e->plan.expert_slots,
                                        .staging = e->cfg.top_k,
                                        .policy = e->opt.policy};
    e->experts = k3_experts_open(&c, err);
    return e->experts ? K3_OK : err->status;
}

enum k3_status k3_start(k3_engine *e, k3_progress_fn progress, void *ud, struct k3_error *err)
{
    if (k3_load_vectors(e, progress, ud, err) != K3_OK || k3_allocate(e, err) != K3_OK ||
        k3_keep_allocate(e, err) != K3_OK)
        return err->status;
    if (e->opt.check_reads && !(e->blocks = k3_blocks_open(e->ckpt, err)))
        return err->status;
    const struct k3_io_options io = {.kind = e->opt.io,
                                     .depth = e->plan.io_depth,
                                     .simulate_rate = e->opt.simulate_rate,
                                     .read = e->read,
                                     .read_ud = e->read_ud,
                                     .blocks = e->blocks};
    e->io = k3_io_open(e->ckpt, &io, err);
    if (!e->io)
        return err->status;
    e->tape = k3_tape_open(e->io, e->bind.tape, e->bind.n_matrices, &e->tape_plan, e->plan.ring,
                           err);
    if (!e->tape)
        return err->status;
    e->first_read_s = k3_host_process_seconds();
    snprintf(e->plan.io, sizeof e->plan.io, "%s", k3_io_name(e->io));
    if (e->opt.trace_path) {
        e->trace = k3_trace_create(e->opt.trace_path, err);
        if (!e->trace)
            return err->status;
    }
    return open_experts(e, err);
}

void k3_close(k3_engine *e)
{
    if (!e)
        return;
    struct k3_error ignored; /* what the trace holds was flushed after every step */
    k3_trace_close(e->trace, &ignored);
    k3_experts_close(e->experts);
    k3_tape_close(e->tape);
    k3_io_close(e->io);
    k3_blocks_close(e->blocks);
    k3_io_free(e->vectors, e->vectors_bytes);
    k3_io_free(e->state, e->state_bytes);
    k3_io_free(e->work, e->work_bytes);
    k3_keep_free(e);
    free(e->chunk_ids);
    free(e->uses);
    free(e->use_of);
    free(e->use_first);
    free(e->layers);
    k3_tape_plan_free(&e->tape_plan);
    k3_bind_free(&e->bind);
    k3_checkpoint_close(e->ckpt);
    free(e->model_dir);
    free(e);
}

const struct k3_plan *k3_get_plan(const k3_engine *e)
{
    return &e->plan;
}

const char *k3_io_in_use(const k3_engine *e)
{
    return e->tape ? k3_io_name(e->io) : "";
}

enum k3_status k3_plan_config(const struct k3_options *opt, struct k3_plan *plan,
                              struct k3_error *err)
{
    struct k3_engine *e = calloc(1, sizeof *e);
    if (!e)
        return k3_fail_memory(err, "a plan", sizeof *e);
    e->opt = *opt;
    enum k3_status st = choose_kernels(e, err);
    if (st == K3_OK && opt->model_dir)
        st = k3_config_read(opt->model_dir, &e->cfg, err);
    else if (st == K3_OK)
        k3_config_released(&e->cfg);
    if (st == K3_OK)
        st = k3_bind_make(&e->cfg, NULL, &e->bind, err);
    if (st == K3_OK)
        st = k3_plan_compute(e, 0, err);
    *plan = e->plan; /* also of a refused one: its floor is what the caller wants to say */
    k3_tape_plan_free(&e->tape_plan);
    k3_bind_free(&e->bind);
    free(e);
    return st;
}

size_t k3_stop_ids(const k3_engine *e, int32_t *ids, size_t max)
{
    return k3_config_stop_ids(e->model_dir, &e->cfg, ids, max);
}

/* ---- the timeline ------------------------------------------------------------------------ */

/* Everything that can be wrong with a request, before anything is done. */
static enum k3_status check_feed(const k3_engine *e, const int32_t *ids, size_t n, bool all,
                                 struct k3_error *err)
{
    if (e->broken)
        return k3_fail(err, K3_FAILED, "an earlier step failed; the timeline must be reset first");
    if (n == 0)
        return k3_fail(err, K3_USAGE, "no tokens to process");
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= e->cfg.vocab)
            return k3_fail(err, K3_USAGE, "token id %d (number %zu) is out of range: the model has "
                           "ids 0 to %u", ids[i], i, e->cfg.vocab - 1);
    if (n > e->plan.context - e->position)
        return k3_fail(err, K3_USAGE,
                       "%zu tokens do not fit: %u of %u positions of context are taken; raise "
                       "--context", n, e->position, e->plan.context);
    if (n < e->chunk_n || memcmp(ids, e->chunk_ids, e->chunk_n * sizeof *ids) != 0)
        return k3_fail(err, K3_USAGE, "the suspended tokens must be continued first, or the "
                       "timeline reset");
    if (all && !e->opt.full_logits && e->chunk_n > 1)
        return k3_fail(err, K3_USAGE, "the suspended chunk has room for the logits of its last "
                       "token only; reset the timeline to get those of every position");
    return K3_OK;
}

/* Starts the next chunk; ids that a suspended one holds already are not touched. */
static void begin_chunk(k3_engine *e, const int32_t *ids, size_t left, bool want_all)
{
    size_t n = left < e->plan.chunk ? left : e->plan.chunk;
    if (want_all && !e->opt.full_logits)
        n = 1;
    memcpy(e->chunk_ids, ids, n * sizeof *ids);
    e->chunk_n = (uint32_t)n;
    e->chunk_layer = 0;
    e->chunk_head = want_all || n == left;
    k3_tape_begin(e->tape, e->chunk_head);
}

/* A suspended chunk turned out to be the last one, but its pass leaves lm_head out: the next pass is
 * read through for its head alone. Rare (a prompt cancelled, then resent cut exactly there), and as
 * long as a pass: cancelled, it begins anew with the next feed. */
static enum k3_status run_late_head(k3_engine *e, bool want_all, struct k3_error *err)
{
    k3_tape_begin(e->tape, true);
    for (uint32_t m = 0; m < e->bind.lm_head; m++)
        for (size_t n = 1; n > 0;) {
            struct k3_rows rows[16];
            if (atomic_load(&e->cancel))
                return k3_fail(err, K3_CANCELLED, "cancelled");
            if (k3_tape_next(e->tape, m, rows, 16, &n, err) != K3_OK)
                return err->status;
            k3_tape_release(e->tape);
        }
    e->chunk_head = true;
    return k3_pass(e, want_all, err);
}

/* Gives every row of the chunk to fn; true when it wants no more. */
static bool hand_out(const k3_engine *e, k3_logits_fn fn, void *ud)
{
    for (uint32_t t = 0; fn && t < e->chunk_n; t++)
        if (fn(ud, e->position + t, e->ws.logits + (size_t)t * e->cfg.vocab) != 0)
            return true;
    return false;
}

enum k3_status k3_feed(k3_engine *e, const int32_t *ids, size_t n, enum k3_want want,
                       k3_logits_fn fn, void *ud, struct k3_error *err)
{
    const bool all = want == K3_WANT_ALL;
    if (check_feed(e, ids, n, all, err) != K3_OK)
        return err->status;
    bool stop = false;
    enum k3_status st = K3_OK;
    atomic_store(&e->progress.running, true);
    for (size_t at = 0; at < n && !stop && st == K3_OK;) {
        if (e->chunk_n == 0)
            begin_chunk(e, ids + at, n - at, all);
        atomic_store(&e->progress.chunk_tokens, e->chunk_n);
        atomic_store(&e->progress.layer, e->chunk_layer);
        st = k3_pass(e, all, err);
        if (st == K3_OK && !e->chunk_head && (all || at + e->chunk_n == n))
            st = run_late_head(e, all, err);
        if (st == K3_OK && e->trace)
            st = k3_trace_flush(e->trace, err);
        if (st == K3_CANCELLED)
            break;
        if (st != K3_OK) {
            e->broken = true;
            break;
        }
        if (all)
            stop = hand_out(e, fn, ud);
        at += e->chunk_n;
        e->position += e->chunk_n;
        if (e->chunk_head)
            e->logits_at = e->position;
        atomic_fetch_add(&e->progress.tokens, e->chunk_n);
        e->chunk_n = 0;
    }
    atomic_store(&e->progress.running, false);
    return st;
}

const float *k3_logits(const k3_engine *e)
{
    return e->ws.logits + (size_t)e->logits_row * e->cfg.vocab;
}

uint32_t k3_position(const k3_engine *e)
{
    return e->position;
}

size_t k3_pending(const k3_engine *e, const int32_t **ids)
{
    *ids = e->chunk_ids;
    return e->chunk_n;
}

bool k3_has_logits(const k3_engine *e)
{
    return e->position > 0 && e->logits_at == e->position;
}

void k3_abandon_chunk(struct k3_engine *e)
{
    if (e->chunk_n || e->broken)
        k3_tape_rewind(e->tape);
    e->chunk_n = 0;
    e->broken = false;
}

void k3_reset(k3_engine *e)
{
    k3_abandon_chunk(e);
    e->position = 0;
    e->logits_at = 0;
    e->n_kept = 0;
    /* Latents are written before they are read; what accumulates must start from zero. */
    const size_t p = k3_kda_width(&e->cfg);
    for (uint32_t l = 0; l < e->cfg.layers; l++)
        if (!e->cfg.is_mla[l])
            memset(e->layers[l].kda, 0,
                   p * (e->cfg.kda_dim + 3ull * (e->cfg.conv_taps - 1)) * sizeof(float));
}

void k3_cancel(k3_engine *e)
{
    atomic_store(&e->cancel, true);
}

void k3_clear_cancel(k3_engine *e)
{
    atomic_store(&e->cancel, false);
}

void k3_set_routing(k3_engine *e, k3_routing_fn fn, void *ud)
{
    e->routing = fn;
    e->routing_ud = ud;
}

/* ---- figures ----------------------------------------------------------------------------- */

void k3_get_metrics(const k3_engine *e, struct k3_metrics *out)
{
    memset(out, 0, sizeof *out);
    out->layers = e->cfg.layers;
    out->tokens = atomic_load(&e->progress.tokens);
    out->running = atomic_load(&e->progress.running);
    out->layer = atomic_load(&e->progress.layer);
    out->chunk_tokens = atomic_load(&e->progress.chunk_tokens);
    out->first_read_s = e->first_read_s;
    if (!e->tape)
        return;
    struct k3_io_counters io;
    k3_io_get_counters(e->io, &io);
    out->bytes_trunk = io.bytes[K3_IO_TAPE] + atomic_load(&e->progress.embed_bytes);
    out->bytes_experts = io.bytes[K3_IO_DEMAND];
    out->device_busy_s = io.busy_s;
    out->bytes_checked = e->blocks ? k3_blocks_checked(e->blocks) : 0;
    out->devices = io.devices;
    out->wait_trunk_s = k3_tape_wait_seconds(e->tape);
    out->resident_bytes = k3_tape_resident_bytes(e->tape);
    if (!e->experts)
        return;
    struct k3_experts_counters x;
    k3_experts_get_counters(e->experts, &x);
    out->wait_experts_s = x.wait_s;
    out->requests = x.requests;
    out->resident = x.resident;
    out->prefetched = x.prefetched;
    out->waited = x.waited;
    out->expert_bytes_resident = x.resident_bytes;
}

bool k3_get_layer_counts(const k3_engine *e, uint32_t layer, struct k3_layer_counts *out)
{
    memset(out, 0, sizeof *out);
    if (!e->experts || layer >= e->cfg.layers || !k3_is_moe(&e->cfg, layer))
        return false;
    k3_experts_get_layer(e->experts, layer - e->cfg.dense_layers, out);
    return true;
}
