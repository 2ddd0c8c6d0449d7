/* disk_meter.c - see disk_meter.h. */
#include <config.h>

#include "disk_meter.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"

#define ODD 1001 /* a tensor begins anywhere */

uint64_t disk_bytes(const struct k3_checkpoint *files)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < files->n_shards; i++)
        sum += files->shards[i].size;
    return sum;
}

uint64_t disk_places(const struct k3_checkpoint *files, uint64_t bytes)
{
    uint64_t n = 0;
    for (size_t i = 0; i < files->n_shards; i++)
        n += files->shards[i].size / bytes;
    return n;
}

uint64_t disk_buffers(uint64_t bytes, uint32_t depth)
{
    return k3_io_window(ODD, bytes) * depth;
}

static uint64_t next_random(struct disk_meter *m)
{
    uint64_t z = m->seed += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* Aims r at the next place; at an odd offset where there is room. */
static void aim(struct disk_meter *m, const struct disk_reads *p, struct k3_io_req *r)
{
    const struct k3_shard *shards = m->files->shards;
    uint64_t n = disk_places(m->files, p->bytes);
    uint64_t k = p->scattered ? next_random(m) % n : m->at++ % n;
    uint32_t shard = 0;
    while (k >= shards[shard].size / p->bytes)
        k -= shards[shard++].size / p->bytes;
    r->shard = shard;
    r->bytes = p->bytes;
    r->class = p->scattered ? K3_IO_DEMAND : K3_IO_TAPE;
    r->offset = k * p->bytes;
    if (r->offset + p->bytes + ODD <= shards[shard].size)
        r->offset += ODD;
}

static void note_name(struct disk_meter *m, const struct k3_io *io)
{
    /* "direct x16 (why)": the depth is the caller's, the rest is told once. */
    const char *name = k3_io_name(io), *x = strstr(name, " x");
    size_t head = x ? (size_t)(x - name) : strlen(name);
    const char *rest = x ? x + 2 + strspn(x + 2, "0123456789") : "";
    snprintf(m->name, sizeof m->name, "%.*s%s", (int)head, name, rest);
}

static enum k3_status run(struct disk_meter *m, struct k3_io *io, const struct disk_reads *p,
                          uint32_t depth, double seconds, double *rate, struct k3_error *err)
{
    struct k3_io_req reqs[DISK_DEPTH_MAX] = {{0}};
    struct k3_io_req *list[DISK_DEPTH_MAX];
    uint64_t bytes = 0;
    m->at = next_random(m);
    for (uint32_t i = 0; i < depth; i++) {
        list[i] = &reqs[i];
        reqs[i].buf = m->buffers + disk_buffers(p->bytes, i);
        aim(m, p, &reqs[i]);
    }
    double begin = clock_now(), now = begin;
    k3_io_submit(io, list, depth);
    for (uint32_t n = depth; n > 0;) {
        k3_io_wait_any(io, list, n);
        now = clock_now();
        for (uint32_t i = 0; i < n;) {
            struct k3_io_req *r = list[i];
            if (!atomic_load_explicit(&r->done, memory_order_acquire)) {
                i++;
                continue;
            }
            if (r->error) {
                k3_io_fail(io, r, err);
                k3_io_drain(io);
                return err->status;
            }
            bytes += r->bytes;
            if (now - begin < seconds) {
                aim(m, p, r);
                k3_io_submit(io, &r, 1);
                i++;
            } else {
                list[i] = list[--n];
            }
        }
    }
    *rate = (double)bytes / (now - begin);
    return K3_OK;
}

static void drop_cache(const struct k3_checkpoint *c)
{
    for (size_t i = 0; i < c->n_shards; i++)
        (void)posix_fadvise(c->shards[i].fd, 0, 0, POSIX_FADV_DONTNEED);
}

enum k3_status disk_measure(struct disk_meter *m, const struct disk_reads *reads, uint32_t depth,
                            double seconds, double *rate, struct k3_error *err)
{
    struct k3_io_options opt = {.kind = m->kind, .depth = depth};
    struct k3_io *io = k3_io_open(m->files, &opt, err);
    if (!io)
        return err->status;
    drop_cache(m->files);
    enum k3_status st = run(m, io, reads, depth, seconds, rate, err);
    note_name(m, io);
    k3_io_close(io);
    return st;
}
