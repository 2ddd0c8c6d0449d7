/* experts_read.c - how one expert lies in a slot and is read into it.
 *
 * A slot has a segment for each of w1, w3 and w2. A direct read fills whole blocks of K3_IO_ALIGN
 * bytes around its payload, so a segment has room for two windows, the weights' and the scales'.
 * Where the scales follow the weights on disk one read brings both, and they follow each other in
 * the segment too. Reads over K3_EXPERTS_READ_MAX are cut at block borders of the file: the windows
 * of the pieces then touch, and so do their payloads. */
#include "experts_internal.h"

#include <string.h>

#define ALIGN ((uint64_t)K3_IO_ALIGN)

const char *const k3_expert_matrix_names[K3_EXPERT_MATRICES] = {"w1", "w2", "w3"};

static const struct {
    uint32_t matrix;
    enum k3_expert_stage stage;
} order[K3_EXPERT_MATRICES] = {{K3_W1, K3_STAGE_IN}, {K3_W3, K3_STAGE_IN}, {K3_W2, K3_STAGE_OUT}};

/* The largest window of a part, wherever it begins. */
static uint64_t room(uint64_t bytes)
{
    return bytes ? bytes + (ALIGN - bytes % ALIGN) % ALIGN + ALIGN : 0;
}

static uint64_t segment_bytes(const struct k3_expert_shape *shape, uint32_t m)
{
    return room(shape->bytes[m][0]) + room(shape->bytes[m][1]);
}

uint64_t k3_experts_slot_bytes(const struct k3_expert_shape *shape)
{
    uint64_t sum = 0;
    for (uint32_t m = 0; m < K3_EXPERT_MATRICES; m++)
        sum += segment_bytes(shape, m);
    return sum;
}

static bool joined(const struct k3_expert_shape *shape, const struct k3_expert_place *p, uint32_t m)
{
    return shape->bytes[m][1] != 0 && p->offset[m][1] == p->offset[m][0] + shape->bytes[m][0];
}

static uint64_t weights_at(const struct k3_expert_place *p, uint32_t m)
{
    return p->offset[m][0] % ALIGN;
}

static uint64_t scales_at(const struct k3_expert_shape *shape, const struct k3_expert_place *p,
                          uint32_t m)
{
    if (joined(shape, p, m))
        return weights_at(p, m) + shape->bytes[m][0];
    return room(shape->bytes[m][0]) + p->offset[m][1] % ALIGN;
}

struct k3_expert_data k3_expert_layout(const struct k3_expert_shape *shape,
                                       const struct k3_expert_place *place, uint8_t *base,
                                       bool out)
{
    struct k3_expert_data data = {0};
    for (uint32_t i = 0; i < K3_EXPERT_MATRICES; i++) {
        const uint32_t m = order[i].matrix;
        if (order[i].stage == K3_STAGE_OUT && !out)
            break;
        data.weights[m] = base + weights_at(place, m);
        if (shape->bytes[m][1] != 0)
            data.scales[m] = base + scales_at(shape, place, m);
        base += segment_bytes(shape, m);
    }
    return data;
}

/* ---- requests ---------------------------------------------------------------------------- */

static uint32_t reads_max(uint64_t bytes)
{
    const uint64_t window = bytes + ALIGN - 1;
    return bytes ? (uint32_t)((window + K3_EXPERTS_READ_MAX - 1) / K3_EXPERTS_READ_MAX) : 0;
}

uint32_t k3_expert_reads_max(const struct k3_expert_shape *shape)
{
    uint32_t n = 0;
    for (uint32_t m = 0; m < K3_EXPERT_MATRICES; m++)
        n += reads_max(shape->bytes[m][0]) + reads_max(shape->bytes[m][1]);
    return n;
}

static uint32_t add_reads(struct k3_io_req *reqs, uint32_t n, uint32_t shard, uint64_t offset,
                          uint64_t bytes, uint8_t *buf)
{
    while (bytes > 0) {
        const uint64_t most = K3_EXPERTS_READ_MAX - offset % ALIGN;
        const uint64_t take = bytes < most ? bytes : most;
        reqs[n++] = (struct k3_io_req){
            .shard = shard, .class = K3_IO_DEMAND, .offset = offset, .bytes = take, .buf = buf};
        buf += k3_io_window(offset, take);
        offset += take;
        bytes -= take;
    }
    return n;
}

void k3_expert_requests(const struct k3_expert_shape *shape, const struct k3_expert_place *place,
                        uint8_t *base, struct k3_expert_flight *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < K3_EXPERT_MATRICES; i++) {
        const uint32_t m = order[i].matrix;
        const uint64_t *const offset = place->offset[m], *const bytes = shape->bytes[m];
        if (joined(shape, place, m)) {
            n = add_reads(f->reqs, n, place->shard, offset[0], bytes[0] + bytes[1], base);
        } else {
            n = add_reads(f->reqs, n, place->shard, offset[0], bytes[0], base);
            n = add_reads(f->reqs, n, place->shard, offset[1], bytes[1], base + room(bytes[0]));
        }
        f->end[order[i].stage] = n;
        base += segment_bytes(shape, m);
    }
}

struct k3_io_req *k3_expert_stage_reqs(const struct k3_expert_flight *f, enum k3_expert_stage stage,
                                       uint32_t *n)
{
    const uint32_t first = stage == K3_STAGE_IN ? 0 : f->end[K3_STAGE_IN];
    *n = f->end[stage] - first;
    return f->reqs + first;
}

/* ---- contents ---------------------------------------------------------------------------- */

bool k3_expert_scales_fine(const struct k3_expert_shape *shape, const struct k3_expert_data *data,
                           enum k3_expert_stage stage, struct k3_expert_nan *nan)
{
    for (uint32_t i = 0; i < K3_EXPERT_MATRICES; i++) {
        const uint32_t m = order[i].matrix;
        if (order[i].stage != stage || shape->bytes[m][1] == 0)
            continue;
        const uint8_t *const bad = memchr(data->scales[m], 255, shape->bytes[m][1]);
        if (bad) {
            *nan = (struct k3_expert_nan){m, (uint64_t)(bad - data->scales[m])};
            return false;
        }
    }
    return true;
}
