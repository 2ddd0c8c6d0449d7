/* test_experts_shard.c - see test_experts_shard.h. */
#include <config.h>

#include "test_experts_shard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

uint8_t shard_byte(uint32_t layer, uint32_t expert, uint32_t matrix, uint32_t part, uint64_t i)
{
    uint64_t h = layer * UINT64_C(0x9E3779B97F4A7C15) ^ expert * UINT64_C(0xC2B2AE3D27D4EB4F);
    h ^= (matrix * 2 + part + 1) * UINT64_C(0x165667B19E3779F9);
    h ^= h >> 29;
    const uint8_t b = (uint8_t)(h * 31 + (h >> 8) + i * 7 + (i >> 8) * 13);
    return part == 1 && b == 255 ? 254 : b;
}

uint64_t shard_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void set_shape(struct shard *s, enum shard_layout layout, uint32_t rows, uint32_t columns)
{
    for (uint32_t m = 0; m < K3_EXPERT_MATRICES; m++) {
        const uint64_t count = (uint64_t)rows * columns;
        s->shape.rows[m] = m == K3_W2 ? columns : rows;
        s->shape.bytes[m][0] = layout == SHARD_BF16 ? count * 2 : count / 2;
        s->shape.bytes[m][1] = layout == SHARD_BF16 ? 0 : count / 32;
    }
    s->shape.format = layout == SHARD_BF16 ? K3_EXPERT_BF16 : K3_EXPERT_MXFP4;
}

static uint64_t place_packed(const struct shard *s, struct k3_expert_place *p, uint64_t at)
{
    for (uint32_t m = 0; m < K3_EXPERT_MATRICES; m++)
        for (uint32_t part = 0; part < 2; part++) {
            p->offset[m][part] = at;
            at += s->shape.bytes[m][part];
        }
    return at;
}

static uint64_t place_part(const struct shard *s, uint64_t at, uint32_t part)
{
    const uint32_t count = s->layers * s->n_experts;
    for (uint32_t i = 0; i < count; i++) {
        struct k3_expert_place *p = &s->places[(i * UINT64_C(7919) + 3) % count];
        for (uint32_t j = 0; j < K3_EXPERT_MATRICES; j++) {
            const uint32_t m = (i + j * 2) % K3_EXPERT_MATRICES;
            p->offset[m][part] = at;
            at += s->shape.bytes[m][part] + (i + j) % 3;
        }
    }
    return at;
}

static void write_part(struct shard *s, uint32_t layer, uint32_t expert, uint32_t m, uint32_t part)
{
    const size_t n = s->shape.bytes[m][part];
    if (n == 0)
        return;
    uint8_t *bytes = malloc(n);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = shard_byte(layer, expert, m, part, i);
    shard_poke(s, s->places[layer * s->n_experts + expert].offset[m][part], bytes, n);
    free(bytes);
}

static void write_all(struct shard *s)
{
    for (uint32_t l = 0; l < s->layers; l++)
        for (uint32_t e = 0; e < s->n_experts; e++)
            for (uint32_t m = 0; m < K3_EXPERT_MATRICES; m++)
                for (uint32_t part = 0; part < 2; part++)
                    write_part(s, l, e, m, part);
}

void shard_make(struct shard *s, enum shard_layout layout, uint32_t layers, uint32_t n_experts,
                uint32_t rows, uint32_t columns)
{
    const char *tmp = getenv("TMPDIR");
    *s = (struct shard){.layers = layers, .n_experts = n_experts};
    snprintf(s->dir, sizeof s->dir, "%s/k3-experts-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->path, sizeof s->path, "%s/shard", s->dir);
    s->fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(s->fd >= 0);
    set_shape(s, layout, rows, columns);
    s->places = calloc((size_t)layers * n_experts, sizeof *s->places);
    s->layer_numbers = calloc(layers, sizeof *s->layer_numbers);
    assert_non_null(s->places);
    assert_non_null(s->layer_numbers);
    for (uint32_t l = 0; l < layers; l++)
        s->layer_numbers[l] = l + 1;
    uint64_t end = 77; /* nothing is aligned */
    if (layout == SHARD_APART)
        end = place_part(s, place_part(s, end, 1), 0);
    else
        for (uint32_t i = 0; i < layers * n_experts; i++)
            end = place_packed(s, &s->places[i], end);
    assert_int_equal(ftruncate(s->fd, (off_t)end), 0);
    write_all(s);
    s->file = (struct k3_shard){
        .name = s->path,
        .path = s->path,
        .fd = s->fd,
        .fd_direct = open(s->path, O_RDONLY | O_CLOEXEC | O_DIRECT), /* -1 if refused */
        .direct_errno = EINVAL,
        .size = end};
    s->c = (struct k3_checkpoint){.dir = s->dir, .shards = &s->file, .n_shards = 1};
}

void shard_remove(struct shard *s)
{
    close(s->fd);
    if (s->file.fd_direct >= 0)
        close(s->file.fd_direct);
    unlink(s->path);
    rmdir(s->dir);
    free(s->places);
    free(s->layer_numbers);
}

void shard_poke(struct shard *s, uint64_t at, const void *bytes, size_t n)
{
    assert_int_equal(pwrite(s->fd, bytes, n, (off_t)at), n);
}

static void check_part(const uint8_t *p, uint64_t n, uint32_t layer, uint32_t expert, uint32_t m,
                       uint32_t part)
{
    for (uint64_t i = 0; i < n; i++)
        if (p[i] != shard_byte(layer, expert, m, part, i))
            fail_msg("layer %u expert %u matrix %u part %u byte %llu is wrong", layer, expert, m,
                     part, (unsigned long long)i);
}

void shard_check_job(const struct shard *s, uint32_t layer, uint32_t expert,
                     const struct k3_expert_job *job)
{
    for (uint32_t m = 0; m < K3_EXPERT_MATRICES; m++) {
        if (m == K3_W2 && !job->out) {
            assert_null(job->data.weights[m]);
            assert_null(job->data.scales[m]);
            continue;
        }
        assert_non_null(job->data.weights[m]);
        check_part(job->data.weights[m], s->shape.bytes[m][0], layer, expert, m, 0);
        if (s->shape.bytes[m][1] == 0) {
            assert_null(job->data.scales[m]);
            continue;
        }
        assert_non_null(job->data.scales[m]);
        check_part(job->data.scales[m], s->shape.bytes[m][1], layer, expert, m, 1);
    }
}

struct k3_experts *shard_store(const struct shard *s, struct k3_io *io, uint32_t slots,
                               uint32_t staging, enum k3_policy policy)
{
    const struct k3_experts_config cfg = {
        .io = io,
        .checkpoint = &s->c,
        .shape = s->shape,
        .places = s->places,
        .layer_numbers = s->layer_numbers,
        .layers = s->layers,
        .n_experts = s->n_experts,
        .slots = slots,
        .staging = staging,
        .policy = policy,
    };
    struct k3_error err = {0};
    struct k3_experts *store = k3_experts_open(&cfg, &err);
    if (!store)
        fail_msg("%s", err.message);
    return store;
}

void shard_step(const struct shard *s, struct k3_experts *store, uint32_t layer,
                const struct k3_expert_use *uses, size_t n, size_t max)
{
    struct k3_error err = {0};
    struct k3_expert_job jobs[64];
    uint8_t *seen = calloc(n + 1, 1); /* 1 in, 2 out */
    assert_non_null(seen);
    assert_true(max >= 1 && max <= 64);
    if (k3_experts_begin(store, layer, uses, n, &err))
        fail_msg("%s", err.message);
    for (size_t count = 1; count > 0;) {
        if (k3_experts_next(store, jobs, max, &count, &err))
            fail_msg("%s", err.message);
        assert_true(count <= max);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(jobs[i].out, jobs[0].out);
            assert_int_equal(seen[jobs[i].use]++, jobs[i].out ? 1 : 0);
        }
        /* all at once, as a parallel team has them: none may be overwritten by another's arrival */
        for (size_t i = 0; i < count; i++)
            shard_check_job(s, layer, uses[jobs[i].use].expert, &jobs[i]);
        for (size_t i = 0; i < count && jobs[0].out; i++)
            k3_experts_done(store, jobs[i].use);
    }
    for (size_t i = 0; i < n; i++)
        assert_int_equal(seen[i], 2);
    free(seen);
    if (k3_experts_end(store, &err))
        fail_msg("%s", err.message);
}

void shard_check_counters(const struct shard *s, const struct k3_experts *store)
{
    struct k3_experts_counters c;
    k3_experts_get_counters(store, &c);
    assert_int_equal(c.requests, c.resident + c.prefetched + c.waited);
    uint64_t requests = 0, resident = 0, used = 0;
    for (uint32_t l = 0; l < s->layers; l++) {
        struct k3_layer_counts lc;
        k3_experts_get_layer(store, l, &lc);
        requests += lc.requests;
        resident += lc.resident;
        used += lc.used;
        assert_true(lc.used <= lc.slots);
    }
    assert_int_equal(requests, c.requests);
    assert_int_equal(resident, c.resident);
    assert_int_equal(used * k3_experts_slot_bytes(&s->shape), c.resident_bytes);
}
