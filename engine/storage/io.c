/* io.c - the queues and what stands around them. See io.h. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io_internal.h"

double k3_io_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the queue; io->lock is held --------------------------------------------------------- */

static void push(struct k3_io_queue *q, struct k3_io_req *r)
{
    r->next = NULL;
    if (q->last)
        q->last->next = r;
    else
        q->first = r;
    q->last = r;
}

struct k3_io_req *k3_io_take(struct k3_io_device *d)
{
    for (int k = 0; k < K3_IO_CLASSES; k++) {
        struct k3_io_req *r = d->queue[k].first;
        if (!r)
            continue;
        d->queue[k].first = r->next;
        if (!r->next)
            d->queue[k].last = NULL;
        r->state = K3_IO_IN_FLIGHT;
        if (d->in_flight++ == 0)
            d->busy_since = k3_io_now();
        return r;
    }
    return NULL;
}

/* Ends a request that is in no queue any more. */
static void settle(struct k3_io *io, struct k3_io_req *r)
{
    if (r->error == 0) {
        io->counters.bytes[r->class] += r->bytes;
        io->counters.reads[r->class]++;
    }
    io->pending--;
    r->state = K3_IO_IDLE;
    atomic_store_explicit(&r->done, 1, memory_order_release);
    pthread_cond_broadcast(&io->done);
}

void k3_io_finish(struct k3_io_device *d, struct k3_io_req *r)
{
    if (--d->in_flight == 0)
        d->busy_s += k3_io_now() - d->busy_since;
    settle(d->io, r);
}

double k3_io_reserve(struct k3_io_device *d, uint64_t bytes)
{
    if (d->io->opt.simulate_rate == 0)
        return 0;
    double now = k3_io_now();
    d->free_at = (d->free_at > now ? d->free_at : now) +
                 (double)bytes / (double)d->io->opt.simulate_rate;
    return d->free_at;
}

static void wake(struct k3_io_device *d, size_t n)
{
    if (d->io->uring)
        k3_io_uring_wake(d);
    else
        k3_io_threads_wake(d, n);
}

void k3_io_submit(struct k3_io *io, struct k3_io_req *const *reqs, size_t n)
{
    pthread_mutex_lock(&io->lock);
    for (size_t i = 0; i < n; i++) {
        struct k3_io_req *r = reqs[i];
        r->error = 0;
        r->error_offset = 0;
        r->cancel = false;
        r->state = K3_IO_QUEUED;
        atomic_store_explicit(&r->done, 0, memory_order_relaxed);
        push(&io->devices[io->device_of[r->shard]].queue[r->class], r);
    }
    io->pending += n;
    for (uint32_t i = 0; i < io->n_devices; i++) {
        struct k3_io_device *d = &io->devices[i];
        if (d->queue[K3_IO_DEMAND].first || d->queue[K3_IO_TAPE].first)
            wake(d, n);
    }
    pthread_mutex_unlock(&io->lock);
}

/* Drops the requests of one queue that are marked (or all). */
static void sweep(struct k3_io *io, struct k3_io_queue *q, bool all)
{
    struct k3_io_req *r = q->first, *next;
    *q = (struct k3_io_queue){0};
    for (; r; r = next) {
        next = r->next;
        if (all || r->cancel) {
            r->error = ECANCELED;
            r->error_offset = r->offset;
            settle(io, r);
        } else {
            push(q, r);
        }
    }
}

static void sweep_all(struct k3_io *io, bool all)
{
    for (uint32_t i = 0; i < io->n_devices; i++)
        for (int k = 0; k < K3_IO_CLASSES; k++)
            sweep(io, &io->devices[i].queue[k], all);
}

void k3_io_cancel(struct k3_io *io, struct k3_io_req *const *reqs, size_t n)
{
    pthread_mutex_lock(&io->lock);
    size_t marked = 0;
    for (size_t i = 0; i < n; i++)
        if (reqs[i]->state == K3_IO_QUEUED) {
            reqs[i]->cancel = true;
            marked++;
        }
    if (marked)
        sweep_all(io, false);
    pthread_mutex_unlock(&io->lock);
}

/* ---- waiting ----------------------------------------------------------------------------- */

static bool any_done(struct k3_io_req *const *reqs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (atomic_load_explicit(&reqs[i]->done, memory_order_acquire))
            return true;
    return false;
}

double k3_io_wait_any(struct k3_io *io, struct k3_io_req *const *reqs, size_t n)
{
    if (n == 0 || any_done(reqs, n))
        return 0.0;
    double begin = k3_io_now();
    pthread_mutex_lock(&io->lock);
    while (!any_done(reqs, n))
        pthread_cond_wait(&io->done, &io->lock);
    pthread_mutex_unlock(&io->lock);
    return k3_io_now() - begin;
}

double k3_io_wait(struct k3_io *io, struct k3_io_req *r)
{
    return k3_io_wait_any(io, &r, 1);
}

void k3_io_drain(struct k3_io *io)
{
    pthread_mutex_lock(&io->lock);
    while (io->pending > 0)
        pthread_cond_wait(&io->done, &io->lock);
    pthread_mutex_unlock(&io->lock);
}

/* ---- life -------------------------------------------------------------------------------- */

/* One device per st_dev, in the order in which the shards name them. */
static enum k3_status find_devices(struct k3_io *io, struct k3_error *err)
{
    size_t n = io->c->n_shards;
    io->device_of = calloc(n + 1, sizeof *io->device_of);
    io->devices = calloc(n + 1, sizeof *io->devices);
    io->direct = calloc(n + 1, sizeof *io->direct);
    if (!io->device_of || !io->devices || !io->direct)
        return k3_fail_memory(err, "the read queues", n * sizeof *io->devices);
    for (size_t i = 0; i < n; i++) {
        uint64_t id = io->c->shards[i].device;
        uint32_t d = 0;
        while (d < io->n_devices && io->devices[d].id != id)
            d++;
        if (d == io->n_devices) {
            io->devices[d] = (struct k3_io_device){.io = io, .id = id, .wake_fd = -1};
            pthread_cond_init(&io->devices[d].work, NULL);
            io->n_devices++;
        }
        io->device_of[i] = d;
        atomic_init(&io->direct[i],
                    io->opt.kind != K3_IO_BUFFERED && io->c->shards[i].fd_direct >= 0);
    }
    io->counters.devices = io->n_devices;
    return K3_OK;
}

static void make_name(struct k3_io *io)
{
    size_t refused = 0;
    int error = 0;
    for (size_t i = 0; i < io->c->n_shards; i++)
        if (io->c->shards[i].fd_direct < 0 && refused++ == 0)
            error = io->c->shards[i].direct_errno;
    bool wanted = io->opt.kind != K3_IO_BUFFERED;
    bool all = refused == io->c->n_shards;
    const char *api = io->uring ? "uring" : wanted && !all ? "direct" : "buffered";
    int at = snprintf(io->names[0], sizeof io->names[0], "%s x%u", api, io->opt.depth);
    char *rest = io->names[0] + at;
    size_t room = sizeof io->names[0] - (size_t)at;
    if (wanted && all && refused)
        snprintf(rest, room, " (%sO_DIRECT: %.40s)", io->uring ? "buffered, " : "",
                 strerror(error));
    else if (wanted && refused)
        snprintf(rest, room, " (%zu of %zu shards buffered, O_DIRECT: %.30s)", refused,
                 io->c->n_shards, strerror(error));
    atomic_store(&io->name, io->names[0]);
}

static enum k3_status start(struct k3_io_device *d, struct k3_error *err)
{
    return d->io->uring ? k3_io_uring_start(d, err) : k3_io_threads_start(d, err);
}

struct k3_io *k3_io_open(const struct k3_checkpoint *c, const struct k3_io_options *opt,
                         struct k3_error *err)
{
    struct k3_io *io = calloc(1, sizeof *io);
    if (!io) {
        k3_fail_memory(err, "the readers", sizeof *io);
        return NULL;
    }
    io->c = c;
    io->opt = *opt;
    io->uring = opt->kind == K3_IO_URING;
    if (io->opt.depth == 0)
        io->opt.depth = K3_IO_DEPTH_DEFAULT;
    pthread_mutex_init(&io->lock, NULL);
    pthread_cond_init(&io->done, NULL);
    atomic_flag_clear(&io->renamed);
    if (io->opt.depth > K3_IO_DEPTH_MAX)
        k3_fail(err, K3_USAGE, "I/O depth %u is over %u", io->opt.depth, K3_IO_DEPTH_MAX);
    else if (io->uring && opt->read)
        k3_fail(err, K3_USAGE, "a read function of one's own works with the thread backends only");
    else if (find_devices(io, err) == K3_OK) {
        make_name(io);
        uint32_t d = 0;
        while (d < io->n_devices && start(&io->devices[d], err) == K3_OK)
            d++;
        if (d == io->n_devices)
            return io;
    }
    k3_io_close(io);
    return NULL;
}

void k3_io_close(struct k3_io *io)
{
    if (!io)
        return;
    pthread_mutex_lock(&io->lock);
    io->stop = true;
    sweep_all(io, true);
    for (uint32_t i = 0; i < io->n_devices; i++)
        wake(&io->devices[i], SIZE_MAX);
    pthread_mutex_unlock(&io->lock);
    for (uint32_t i = 0; i < io->n_devices; i++) {
        struct k3_io_device *d = &io->devices[i];
        for (uint32_t t = 0; t < d->n_threads; t++)
            pthread_join(d->threads[t], NULL);
        free(d->threads);
        if (d->wake_fd >= 0)
            close(d->wake_fd);
        pthread_cond_destroy(&d->work);
    }
    pthread_cond_destroy(&io->done);
    pthread_mutex_destroy(&io->lock);
    free(io->devices);
    free(io->device_of);
    free(io->direct);
    free(io);
}

/* ---- reports ----------------------------------------------------------------------------- */

const char *k3_io_name(const struct k3_io *io)
{
    return atomic_load(&io->name);
}

void k3_io_get_counters(const struct k3_io *io, struct k3_io_counters *out)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&io->lock;
    pthread_mutex_lock(lock);
    *out = io->counters;
    double now = k3_io_now();
    for (uint32_t i = 0; i < io->n_devices; i++) {
        const struct k3_io_device *d = &io->devices[i];
        out->busy_s += d->busy_s + (d->in_flight ? now - d->busy_since : 0);
    }
    pthread_mutex_unlock(lock);
}

enum k3_status k3_io_fail(const struct k3_io *io, const struct k3_io_req *r, struct k3_error *err)
{
    const char *path = io->c->shards[r->shard].path;
    if (r->error == ENODATA)
        return k3_fail(err, K3_FAILED,
                       "%s: the file ends at byte %" PRIu64 ", but %" PRIu64 " bytes at %" PRIu64
                       " belong to the model: it was cut off or replaced since the program "
                       "started; fetch it again", path, r->error_offset, r->bytes, r->offset);
    if (r->error == EBADMSG)
        return k3_fail(err, K3_FAILED,
                       "%s: the %u bytes from byte %" PRIu64 " are not those of %s: the file was "
                       "changed, or the disk errs; k3chat verify --sha256 tells which file to fetch "
                       "again", path, K3_BLOCKS_BYTES, r->error_offset, K3_BLOCKS_FILE);
    return k3_fail(err, K3_FAILED,
                   "%s: reading at byte %" PRIu64 " failed: %s (errno %d); check the disk and its "
                   "cable or mount, then start again", path, r->error_offset, strerror(r->error),
                   r->error);
}
