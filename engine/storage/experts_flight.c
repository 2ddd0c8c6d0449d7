/* experts_flight.c - the misses of the running step: their slots, their reads, their arrival. */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>

#include "experts_internal.h"

/* ---- slots ------------------------------------------------------------------------------- */

static const struct k3_expert_place *place_of(const struct k3_experts *s, uint32_t expert)
{
    return &s->cfg.places[k3_experts_key(s, s->layer, expert)];
}

static uint8_t *slot_base(const struct k3_experts *s, uint32_t slot)
{
    return s->arena + slot * s->slot_bytes;
}

void k3_experts_set_resident(struct k3_experts *s, uint32_t layer, uint32_t expert, uint32_t slot)
{
    s->slot_of[k3_experts_key(s, layer, expert)] = slot;
    pthread_mutex_lock(&s->lock);
    if (slot == K3_NO_SLOT) {
        s->layers[layer].used--;
        s->counters.resident_bytes -= s->slot_bytes;
    } else {
        s->layers[layer].used++;
        s->counters.resident_bytes += s->slot_bytes;
    }
    pthread_mutex_unlock(&s->lock);
}

/* The leaving resident number i gives up its slot now. */
static uint32_t withdraw(struct k3_experts *s, size_t i)
{
    const struct k3_kept out = s->leaving[i];
    s->leaving[i] = s->leaving[s->n_gone];
    s->leaving[s->n_gone++] = out;
    const uint32_t slot = s->slot_of[k3_experts_key(s, out.layer, out.expert)];
    k3_experts_set_resident(s, out.layer, out.expert, K3_NO_SLOT);
    return slot;
}

/* A slot for a miss: a free one, else that of a leaving resident nobody computes with, else
 * K3_NO_SLOT. */
static uint32_t take_slot(struct k3_experts *s)
{
    if (s->n_free > 0)
        return s->free_slots[--s->n_free];
    for (size_t i = s->n_gone; i < s->n_leaving; i++) {
        const struct k3_kept *k = &s->leaving[i];
        const uint32_t use = k->layer == s->layer ? s->use_of[k->expert] : 0;
        if (use == 0 || s->uses[use - 1].given == K3_GIVEN_DONE)
            return withdraw(s, i);
    }
    return K3_NO_SLOT;
}

/* ---- reading ----------------------------------------------------------------------------- */

static size_t add_stage(struct k3_experts *s, const struct k3_expert_flight *f,
                        enum k3_expert_stage stage, size_t n)
{
    uint32_t count;
    struct k3_io_req *r = k3_expert_stage_reqs(f, stage, &count);
    for (uint32_t i = 0; i < count; i++)
        s->batch[n++] = &r[i];
    return n;
}

static bool take_off(struct k3_experts *s, struct k3_expert_flight *f)
{
    const uint32_t slot = take_slot(s);
    if (slot == K3_NO_SLOT)
        return false;
    const uint32_t use = s->misses[s->submitted++];
    f->busy = true;
    f->submitted = false;
    f->use = use;
    f->slot = s->uses[use].slot = slot;
    f->ready[K3_STAGE_IN] = f->ready[K3_STAGE_OUT] = false;
    k3_expert_requests(&s->cfg.shape, place_of(s, s->asked[use].expert), slot_base(s, slot), f);
    return true;
}

/* Submits as many misses as staging takes: first w1 and w3 of all of them, then w2. */
void k3_experts_submit_misses(struct k3_experts *s)
{
    for (uint32_t i = 0; i < s->cfg.staging && s->submitted < s->n_misses; i++)
        if (!s->flights[i].busy && !take_off(s, &s->flights[i]))
            break;
    size_t n = 0;
    for (uint32_t i = 0; i < s->cfg.staging; i++)
        if (s->flights[i].busy && !s->flights[i].submitted)
            n = add_stage(s, &s->flights[i], K3_STAGE_IN, n);
    for (uint32_t i = 0; i < s->cfg.staging; i++)
        if (s->flights[i].busy && !s->flights[i].submitted) {
            n = add_stage(s, &s->flights[i], K3_STAGE_OUT, n);
            s->flights[i].submitted = true;
        }
    if (n > 0)
        k3_io_submit(s->cfg.io, s->batch, n);
}

/* ---- next -------------------------------------------------------------------------------- */

static struct k3_expert_job make_job(struct k3_experts *s, uint32_t use, bool out)
{
    struct k3_use_state *const u = &s->uses[use];
    u->given = out ? K3_GIVEN_OUT : K3_GIVEN_IN;
    return (struct k3_expert_job){
        .use = use,
        .out = out,
        .data = k3_expert_layout(&s->cfg.shape, place_of(s, s->asked[use].expert),
                                 slot_base(s, u->slot), out)};
}

static size_t collect(struct k3_experts *s, struct k3_expert_job *jobs, size_t max, bool out)
{
    size_t n = 0;
    size_t *const at = out ? &s->res_out : &s->res_in;
    const size_t end = out ? s->res_in : s->n_residents;
    while (n < max && *at < end)
        jobs[n++] = make_job(s, s->residents[(*at)++], out);
    for (uint32_t i = 0; n < max && i < s->cfg.staging; i++) {
        const struct k3_expert_flight *f = &s->flights[i];
        if (f->busy && f->ready[out ? K3_STAGE_OUT : K3_STAGE_IN] &&
            s->uses[f->use].given == (out ? K3_GIVEN_IN : K3_GIVEN_NOTHING))
            jobs[n++] = make_job(s, f->use, out);
    }
    return n;
}

/* The stage that is needed next of a miss. */
static enum k3_expert_stage needed_stage(const struct k3_expert_flight *f)
{
    return f->ready[K3_STAGE_IN] ? K3_STAGE_OUT : K3_STAGE_IN;
}

static enum k3_status read_failed(const struct k3_experts *s, const struct k3_expert_flight *f,
                                  const struct k3_io_req *r, struct k3_error *err)
{
    k3_io_fail(s->cfg.io, r, err);
    return k3_fail_in(err, "layer %u expert %u", s->cfg.layer_numbers[s->layer],
                      s->asked[f->use].expert);
}

static enum k3_status scale_failed(const struct k3_experts *s, const struct k3_expert_flight *f,
                                   const struct k3_expert_nan *nan, struct k3_error *err)
{
    const struct k3_expert_shape *const shape = &s->cfg.shape;
    const struct k3_expert_place *const place = place_of(s, s->asked[f->use].expert);
    const uint32_t rows = shape->rows[nan->matrix];
    const uint64_t columns = rows ? shape->bytes[nan->matrix][1] / rows : 0;
    char at[64];
    if (columns)
        snprintf(at, sizeof at, "row %" PRIu64 " column %" PRIu64, nan->at / columns,
                 nan->at % columns);
    else
        snprintf(at, sizeof at, "number %" PRIu64, nan->at);
    return k3_fail(err, K3_FAILED,
                   "%s%slayer %u expert %u: %s.weight_scale %s (byte %" PRIu64
                   " of the file) is 255, which is no number: the tensor is corrupt; fetch the "
                   "file again",
                   s->cfg.checkpoint ? s->cfg.checkpoint->shards[place->shard].path : "",
                   s->cfg.checkpoint ? ": " : "", s->cfg.layer_numbers[s->layer],
                   s->asked[f->use].expert, k3_expert_matrix_names[nan->matrix], at,
                   place->offset[nan->matrix][1] + nan->at);
}

/* Sees whether the needed stage of a miss has come; blocked: next() has been waiting. */
static enum k3_status look_at(struct k3_experts *s, struct k3_expert_flight *f, bool blocked,
                              struct k3_error *err)
{
    const enum k3_expert_stage stage = needed_stage(f);
    uint32_t n;
    const struct k3_io_req *r = k3_expert_stage_reqs(f, stage, &n);
    bool all = true;
    for (uint32_t i = 0; i < n; i++) {
        if (!atomic_load_explicit(&r[i].done, memory_order_acquire))
            all = false;
        else if (r[i].error != 0)
            return read_failed(s, f, &r[i], err);
    }
    if (!all)
        return K3_OK;
    struct k3_expert_nan nan;
    const struct k3_expert_data data = k3_expert_layout(
        &s->cfg.shape, place_of(s, s->asked[f->use].expert), slot_base(s, f->slot), true);
    if (!k3_expert_scales_fine(&s->cfg.shape, &data, stage, &nan))
        return scale_failed(s, f, &nan, err);
    f->ready[stage] = true;
    s->uses[f->use].waited |= blocked;
    return K3_OK;
}

static bool awaited(const struct k3_expert_flight *f)
{
    return f->busy && !f->ready[K3_STAGE_OUT];
}

static enum k3_status look_at_all(struct k3_experts *s, bool blocked, struct k3_error *err)
{
    for (uint32_t i = 0; i < s->cfg.staging; i++)
        if (awaited(&s->flights[i]) && look_at(s, &s->flights[i], blocked, err))
            return err->status;
    return K3_OK;
}

/* Waits until a request of a stage that is needed next has ended. Does not wait when such a stage
 * has come in whole since it was looked at. */
static enum k3_status wait_needed(struct k3_experts *s, bool *blocked, struct k3_error *err)
{
    size_t n = 0;
    bool any = false;
    for (uint32_t i = 0; i < s->cfg.staging; i++) {
        const struct k3_expert_flight *f = &s->flights[i];
        if (!awaited(f))
            continue;
        any = true;
        uint32_t count;
        struct k3_io_req *r = k3_expert_stage_reqs(f, needed_stage(f), &count);
        const size_t before = n;
        for (uint32_t j = 0; j < count; j++)
            if (!atomic_load_explicit(&r[j].done, memory_order_acquire))
                s->batch[n++] = &r[j];
        if (n == before)
            return K3_OK;
    }
    if (!any)
        return k3_fail(err, K3_FAILED, "expert store: layer %u: next() before done(): every slot "
                                       "holds an expert whose job is not done",
                       s->cfg.layer_numbers[s->layer]);
    const double seconds = k3_io_wait_any(s->cfg.io, s->batch, n);
    *blocked |= seconds > 0;
    pthread_mutex_lock(&s->lock);
    s->counters.wait_s += seconds;
    pthread_mutex_unlock(&s->lock);
    return K3_OK;
}

static bool all_given(const struct k3_experts *s)
{
    for (size_t i = 0; i < s->n_uses; i++)
        if (s->uses[i].given < K3_GIVEN_OUT)
            return false;
    return true;
}

enum k3_status k3_experts_next(struct k3_experts *s, struct k3_expert_job *jobs, size_t max,
                               size_t *n, struct k3_error *err)
{
    *n = 0;
    if (!s->running || max == 0)
        return k3_fail(err, K3_FAILED, "expert store: next() %s",
                       max ? "outside a step" : "with no room for a job");
    for (bool blocked = false;;) {
        if (look_at_all(s, blocked, err))
            return err->status;
        *n = collect(s, jobs, max, true);
        if (*n == 0)
            *n = collect(s, jobs, max, false);
        if (*n > 0 || all_given(s))
            return K3_OK;
        if (wait_needed(s, &blocked, err))
            return err->status;
    }
}
