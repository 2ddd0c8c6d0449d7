/* io_uring.c - the io_uring backend: one thread per disk keeps `depth` reads in the kernel. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io_internal.h"

#ifdef HAVE_LIBURING

#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>

#define WAKE 0              /* user_data of the poll on the eventfd; slots count from 1 */
#define SUBMIT_TRIES 1000u  /* that the kernel may refuse in a row, 1 ms apart */

enum slot_state { SLOT_FREE, SLOT_DUE /* to be read at `due` */, SLOT_READING };

struct slot {
    enum slot_state state;
    uint64_t number;       /* of its entry, while SLOT_READING */
    double due;
    struct k3_io_cursor u;
};

/* Belongs to the device's thread alone. */
struct ring {
    struct k3_io_device *d;
    struct io_uring uring;
    struct slot *slots;
    uint32_t depth, used, reading;
    uint64_t prepared; /* entries ever; the last sq_ready() of them wait to be handed over */
    bool wake_armed;
    int broken;       /* errno: the ring takes no more reads */
    uint32_t refused; /* submissions in a row */
};

static void finish(struct ring *x, struct slot *s)
{
    struct k3_io *io = x->d->io;
    s->state = SLOT_FREE;
    x->used--;
    pthread_mutex_lock(&io->lock);
    k3_io_finish(x->d, s->u.req);
    pthread_mutex_unlock(&io->lock);
}

static void proceed(struct ring *x, struct slot *s, enum k3_io_step step)
{
    if (step == K3_IO_DONE) {
        finish(x, s);
        return;
    }
    s->state = SLOT_DUE;
    s->due = step == K3_IO_LATER ? k3_io_now() + s->u.delay : 0;
}

static struct slot *free_slot(struct ring *x)
{
    for (uint32_t i = 0; i < x->depth; i++)
        if (x->slots[i].state == SLOT_FREE)
            return &x->slots[i];
    return NULL;
}

/* Takes what the queue has while slots are free. False when there is nothing more to do, ever. */
static bool take(struct ring *x)
{
    struct k3_io *io = x->d->io;
    for (;;) {
        struct slot *s = free_slot(x);
        pthread_mutex_lock(&io->lock);
        struct k3_io_req *r = s ? k3_io_take(x->d) : NULL;
        double due = r ? k3_io_reserve(x->d, r->bytes) : 0;
        bool stop = io->stop;
        pthread_mutex_unlock(&io->lock);
        if (!r)
            return !stop || x->used > 0;
        x->used++;
        proceed(x, s, k3_io_cursor_begin(io, &s->u, r));
        if (s->state == SLOT_DUE)
            s->due = due;
    }
}

static struct io_uring_sqe *entry(struct ring *x)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&x->uring);
    if (sqe)
        x->prepared++;
    return sqe;
}

/* Prepares the reads that are due. Returns when the next one will be, 0 = none. */
static double prepare(struct ring *x)
{
    double now = k3_io_now(), next = 0;
    for (uint32_t i = 0; i < x->depth; i++) {
        struct slot *s = &x->slots[i];
        if (s->state != SLOT_DUE)
            continue;
        struct io_uring_sqe *sqe = s->due <= now ? entry(x) : NULL;
        if (sqe) {
            io_uring_prep_read(sqe, s->u.fd, s->u.to, (unsigned)s->u.want, s->u.pos);
            io_uring_sqe_set_data64(sqe, i + 1);
            s->state = SLOT_READING;
            s->number = x->prepared;
            x->reading++;
        } else if (next == 0 || s->due < next) {
            next = s->due > now ? s->due : now + 1e-3;
        }
    }
    struct io_uring_sqe *sqe = x->wake_armed ? NULL : entry(x);
    if (sqe) {
        io_uring_prep_poll_add(sqe, x->d->wake_fd, POLLIN);
        io_uring_sqe_set_data64(sqe, WAKE);
        x->wake_armed = true;
    }
    return next;
}

static void complete(struct ring *x, uint64_t data, int result)
{
    if (data == WAKE) {
        uint64_t count;
        ssize_t got = read(x->d->wake_fd, &count, sizeof count);
        (void)got; /* not blocking; the count does not matter */
        x->wake_armed = false;
        return;
    }
    struct slot *s = &x->slots[data - 1];
    x->reading--;
    proceed(x, s, k3_io_cursor_step(x->d->io, &s->u, result));
}

/* Waits for one completion, until `next` at the latest (0 = for ever), and takes all there are. */
static void wait_some(struct ring *x, double next)
{
    struct io_uring_cqe *cqe = NULL;
    double left = next - k3_io_now();
    if (left < 1e-6)
        left = 1e-6;
    struct __kernel_timespec t = {.tv_sec = (int64_t)left};
    t.tv_nsec = (long long)((left - (double)t.tv_sec) * 1e9);
    io_uring_wait_cqe_timeout(&x->uring, &cqe, next > 0 ? &t : NULL);
    while (io_uring_peek_cqe(&x->uring, &cqe) == 0) {
        uint64_t data = io_uring_cqe_get_data64(cqe);
        int result = cqe->res;
        io_uring_cqe_seen(&x->uring, cqe);
        complete(x, data, result);
    }
}

/* Hands the prepared reads to the kernel. It may be short of memory for a while; when that does not
 * end, the ring is given up. Returns true when all of them are on their way. */
static bool submit(struct ring *x)
{
    int rc = io_uring_submit(&x->uring);
    bool all = rc >= 0 && io_uring_sq_ready(&x->uring) == 0;
    if (all || rc > 0)
        x->refused = 0;
    else if (++x->refused > SUBMIT_TRIES)
        x->broken = rc < 0 ? -rc : EAGAIN;
    return all;
}

/* The ring was given up: what was never handed over fails; what the kernel has comes back. */
static void fail_all(struct ring *x)
{
    uint64_t handed_over = x->prepared - io_uring_sq_ready(&x->uring);
    uint32_t lost = 0;
    for (uint32_t i = 0; i < x->depth; i++)
        lost += x->slots[i].state == SLOT_READING && x->slots[i].number > handed_over;
    while (x->reading > lost)
        wait_some(x, k3_io_now() + 1e-3);
    for (uint32_t i = 0; i < x->depth; i++) {
        struct slot *s = &x->slots[i];
        if (s->state == SLOT_FREE)
            continue;
        s->u.req->error = x->broken;
        s->u.req->error_offset = s->u.pos;
        finish(x, s);
    }
    x->reading = 0;
}

/* A ring that is broken still answers every request, with the error: as many at once as there are
 * slots, and only when the queue has no more is there something to wait for. */
static void wait_broken(struct ring *x)
{
    if (x->used > 0) {
        fail_all(x);
        return;
    }
    struct pollfd p = {.fd = x->d->wake_fd, .events = POLLIN};
    poll(&p, 1, -1);
    uint64_t count;
    ssize_t got = read(x->d->wake_fd, &count, sizeof count);
    (void)got;
}

static void *run(void *arg)
{
    struct ring *x = arg;
    while (take(x)) {
        if (x->broken) {
            wait_broken(x);
            continue;
        }
        double next = prepare(x);
        if (!submit(x) && !x->broken)
            next = k3_io_now() + 1e-3;
        if (!x->broken)
            wait_some(x, next);
    }
    io_uring_queue_exit(&x->uring);
    free(x->slots);
    free(x);
    return NULL;
}

static bool can_read(struct io_uring *u)
{
    struct io_uring_probe *p = io_uring_get_probe_ring(u);
    bool yes = p && io_uring_opcode_supported(p, IORING_OP_READ) &&
               io_uring_opcode_supported(p, IORING_OP_POLL_ADD);
    io_uring_free_probe(p);
    return yes;
}

static enum k3_status refuse(struct k3_error *err, int error)
{
    return k3_fail(err, K3_FAILED,
                   "io_uring cannot be used here: %s; choose the I/O backend auto, direct or "
                   "buffered", strerror(error));
}

enum k3_status k3_io_uring_start(struct k3_io_device *d, struct k3_error *err)
{
    uint32_t depth = d->io->opt.depth;
    struct ring *x = calloc(1, sizeof *x);
    struct slot *slots = calloc(depth, sizeof *slots);
    d->threads = calloc(1, sizeof *d->threads);
    d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = 0;
    if (!x || !slots || !d->threads)
        rc = ENOMEM;
    else if (d->wake_fd < 0)
        rc = errno;
    else
        rc = -io_uring_queue_init(depth + 1, &x->uring, 0);
    if (rc != 0) {
        free(x);
        free(slots);
        return refuse(err, rc);
    }
    x->d = d;
    x->slots = slots;
    x->depth = depth;
    rc = can_read(&x->uring) ? k3_io_spawn(&d->threads[0], run, x) : ENOSYS;
    if (rc != 0) {
        io_uring_queue_exit(&x->uring);
        free(x);
        free(slots);
        return refuse(err, rc);
    }
    d->n_threads = 1;
    return K3_OK;
}

void k3_io_uring_wake(struct k3_io_device *d)
{
    uint64_t one = 1;
    ssize_t put = d->wake_fd < 0 ? 0 : write(d->wake_fd, &one, sizeof one);
    (void)put; /* fails only when it is full, and then the thread is awake */
}

#else

enum k3_status k3_io_uring_start(struct k3_io_device *d, struct k3_error *err)
{
    (void)d;
    return k3_fail(err, K3_FAILED,
                   "this program was built without io_uring; choose the I/O backend auto, direct "
                   "or buffered");
}

void k3_io_uring_wake(struct k3_io_device *d)
{
    (void)d;
}

#endif
