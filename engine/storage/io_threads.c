/* io_threads.c - the thread backend: `depth` threads per disk, each with one blocking read. */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io_internal.h"

#define STACK_BYTES (256u << 10) /* of address space; K3_IO_THREAD_BYTES are touched */

int k3_io_spawn(pthread_t *thread, void *(*run)(void *), void *arg)
{
    pthread_attr_t attr;
    sigset_t all, old;
    int rc = pthread_attr_init(&attr);
    if (rc != 0)
        return rc;
    rc = pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (rc == 0)
        rc = pthread_create(thread, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}

static void sleep_until(double when)
{
    struct timespec t = {.tv_sec = (time_t)when};
    t.tv_nsec = (long)((when - (double)t.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        continue;
}

static int64_t read_once(const struct k3_io *io, const struct k3_io_cursor *u)
{
    errno = 0;
    int64_t got = io->opt.read
                      ? io->opt.read(io->opt.read_ud, u->fd, u->to, u->want, u->pos)
                      : pread(u->fd, u->to, (size_t)u->want, (off_t)u->pos);
    return got < 0 ? -(int64_t)(errno ? errno : EIO) : got;
}

static void read_whole(struct k3_io *io, struct k3_io_req *r)
{
    struct k3_io_cursor u;
    enum k3_io_step step = k3_io_cursor_begin(io, &u, r);
    while (step != K3_IO_DONE) {
        if (step == K3_IO_LATER)
            sleep_until(k3_io_now() + u.delay);
        step = k3_io_cursor_step(io, &u, read_once(io, &u));
    }
}

static void *run(void *arg)
{
    struct k3_io_device *d = arg;
    struct k3_io *io = d->io;
    pthread_mutex_lock(&io->lock);
    for (;;) {
        struct k3_io_req *r = k3_io_take(d);
        if (r) {
            double due = k3_io_reserve(d, r->bytes);
            pthread_mutex_unlock(&io->lock);
            if (due > 0)
                sleep_until(due);
            read_whole(io, r);
            pthread_mutex_lock(&io->lock);
            k3_io_finish(d, r);
        } else if (io->stop) {
            break;
        } else {
            pthread_cond_wait(&d->work, &io->lock);
        }
    }
    pthread_mutex_unlock(&io->lock);
    return NULL;
}

enum k3_status k3_io_threads_start(struct k3_io_device *d, struct k3_error *err)
{
    d->threads = calloc(d->io->opt.depth, sizeof *d->threads);
    if (!d->threads)
        return k3_fail_memory(err, "the reader threads", d->io->opt.depth * sizeof *d->threads);
    for (uint32_t i = 0; i < d->io->opt.depth; i++) {
        int rc = k3_io_spawn(&d->threads[i], run, d);
        if (rc != 0)
            return k3_fail(err, K3_FAILED,
                           "reader thread %u of %u cannot be started: %s; lower the I/O depth",
                           i + 1, d->io->opt.depth, strerror(rc));
        d->n_threads++;
    }
    return K3_OK;
}

void k3_io_threads_wake(struct k3_io_device *d, size_t n)
{
    if (n >= d->n_threads)
        pthread_cond_broadcast(&d->work);
    else
        for (size_t i = 0; i < n; i++)
            pthread_cond_signal(&d->work);
}
