/* keep.c - positions of the timeline that can be gone back to, in memory.
 *
 * Only what accumulates is copied: the KDA matrices and convolution histories, and the logits. The
 * latents of earlier positions still stand where they were, because a timeline that goes on does not
 * touch them; going back forgets the kept positions behind, whose latents are about to change. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "../storage/io.h"

size_t k3_kda_floats(const struct k3_config *c)
{
    const size_t p = k3_kda_width(c);
    return p * c->kda_dim + 3 * p * (c->conv_taps - 1);
}

uint64_t k3_keep_bytes(const struct k3_config *c)
{
    const uint64_t kda = (c->layers - k3_count_mla(c)) * (uint64_t)k3_kda_floats(c);
    return (kda + c->vocab + 15) / 16 * 64;
}

enum k3_status k3_keep_allocate(struct k3_engine *e, struct k3_error *err)
{
    if (e->plan.checkpoint_slots == 0)
        return K3_OK;
    e->kept = calloc(e->plan.checkpoint_slots, sizeof *e->kept);
    e->kept_memory = k3_io_alloc(e->plan.checkpoints);
    if (!e->kept || !e->kept_memory)
        return k3_fail_memory(err, "checkpoints of the conversation", e->plan.checkpoints);
    for (uint32_t i = 0; i < e->plan.checkpoint_slots; i++)
        e->kept[i].memory = (float *)(void *)(e->kept_memory + i * k3_keep_bytes(&e->cfg));
    return K3_OK;
}

void k3_keep_free(struct k3_engine *e)
{
    k3_io_free(e->kept_memory, e->kept_memory ? e->plan.checkpoints : 0);
    free(e->kept);
}

/* Between the layers and a kept copy, in the order of the layers. */
static void copy_state(struct k3_engine *e, float *copy, bool back)
{
    const size_t n = k3_kda_floats(&e->cfg);
    for (uint32_t l = 0; l < e->cfg.layers; l++) {
        if (e->cfg.is_mla[l])
            continue;
        if (back)
            memcpy(e->layers[l].kda, copy, n * sizeof *copy);
        else
            memcpy(copy, e->layers[l].kda, n * sizeof *copy);
        copy += n;
    }
    if (back) {
        e->logits_row = 0;
        memcpy(e->ws.logits, copy, e->cfg.vocab * sizeof *copy);
    } else {
        memcpy(copy, k3_logits(e), e->cfg.vocab * sizeof *copy);
    }
}

/* A slot for a new position: a free one, else that of the oldest. Kept ones are in rising order. */
static struct k3_kept_state *make_room(struct k3_engine *e)
{
    if (e->n_kept == e->plan.checkpoint_slots) {
        const struct k3_kept_state oldest = e->kept[0];
        memmove(e->kept, e->kept + 1, (e->n_kept - 1) * sizeof *e->kept);
        e->kept[--e->n_kept] = oldest;
    }
    return &e->kept[e->n_kept++];
}

bool k3_keep(k3_engine *e)
{
    if (e->plan.checkpoint_slots == 0 || !k3_at_rest(e) || e->position == 0)
        return false;
    if (e->n_kept > 0 && e->kept[e->n_kept - 1].position == e->position)
        return true;
    struct k3_kept_state *k = make_room(e);
    k->position = e->position;
    k->has_logits = k3_has_logits(e);
    copy_state(e, k->memory, false);
    return true;
}

size_t k3_kept(const k3_engine *e, struct k3_kept_position *out, size_t max)
{
    size_t n = 0;
    for (uint32_t i = e->n_kept; i-- > 0 && n < max; n++)
        out[n] = (struct k3_kept_position){e->kept[i].position, e->kept[i].has_logits};
    return n;
}

enum k3_status k3_go_back(k3_engine *e, uint32_t position, struct k3_error *err)
{
    uint32_t i = 0;
    while (i < e->n_kept && e->kept[i].position != position)
        i++;
    if (i == e->n_kept)
        return k3_fail(err, K3_USAGE, "position %u is not kept", position);
    k3_abandon_chunk(e);
    copy_state(e, e->kept[i].memory, true);
    e->position = position;
    e->logits_at = e->kept[i].has_logits ? position : 0;
    e->n_kept = i + 1;
    return K3_OK;
}
