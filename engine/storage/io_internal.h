/* io_internal.h - between the queue (io.c), the way one request is read (io_cursor.c) and the
 * backends (io_threads.c, io_uring.c). */
#ifndef K3_IO_INTERNAL_H
#define K3_IO_INTERNAL_H

#include <pthread.h>

#include "io.h"

#define K3_IO_NAME_MAX 96

enum k3_io_state { K3_IO_IDLE, K3_IO_QUEUED, K3_IO_IN_FLIGHT };

struct k3_io_queue {
    struct k3_io_req *first, *last;
};

/* One disk. Everything but the constants is guarded by io->lock. */
struct k3_io_device {
    struct k3_io *io;
    uint64_t id;                /* st_dev */
    struct k3_io_queue queue[K3_IO_CLASSES];
    uint32_t in_flight;
    double busy_s, busy_since;  /* ended spells, start of the running one */
    double free_at;             /* simulated disk: when it has delivered what it has begun */
    pthread_cond_t work;        /* thread backend: something is queued, or stop */
    int wake_fd;                /* io_uring backend: the same by eventfd */
    pthread_t *threads;
    uint32_t n_threads;
};

struct k3_io {
    const struct k3_checkpoint *c;
    struct k3_io_options opt;
    bool uring;                 /* constant after opening, like all above */
    struct k3_io_device *devices;
    uint32_t n_devices;
    uint32_t *device_of;        /* [n_shards] */
    atomic_bool *direct;        /* [n_shards] read this one with O_DIRECT */
    pthread_mutex_t lock;
    pthread_cond_t done;
    uint64_t pending;           /* queued or in flight */
    bool stop;
    struct k3_io_counters counters; /* bytes and reads */
    char names[2][K3_IO_NAME_MAX];  /* as opened; after O_DIRECT was refused by a read */
    atomic_flag renamed;
    _Atomic(const char *) name;
};

double k3_io_now(void); /* seconds, monotonic */

/* ---- the queue, for backends; io->lock is held ------------------------------------------- */

/* The next request to begin, counted as in flight; NULL when there is none. */
struct k3_io_req *k3_io_take(struct k3_io_device *d);
/* The request is over; wakes who waits. It must not be touched afterwards. */
void k3_io_finish(struct k3_io_device *d, struct k3_io_req *r);
/* Simulated disk: the moment when these bytes would have come; 0 when nothing is simulated. */
double k3_io_reserve(struct k3_io_device *d, uint64_t bytes);

/* ---- one request ------------------------------------------------------------------------- */

/* What to read next: `want` bytes at `pos` of fd into `to`. */
struct k3_io_cursor {
    struct k3_io_req *req;
    int fd;
    bool direct;
    uint64_t pos, want;
    uint8_t *to;
    uint32_t tries;   /* EAGAIN in a row */
    double delay;     /* K3_IO_LATER: seconds to leave the device alone */
};
enum k3_io_step { K3_IO_DONE, K3_IO_MORE, K3_IO_LATER };

/* DONE for an empty request, else MORE. */
enum k3_io_step k3_io_cursor_begin(struct k3_io *io, struct k3_io_cursor *u, struct k3_io_req *r);
/* Takes the result of that read, bytes or -errno. On DONE req->error says how it ended. */
enum k3_io_step k3_io_cursor_step(struct k3_io *io, struct k3_io_cursor *u, int64_t result);

/* ---- backends ---------------------------------------------------------------------------- */

/* Start the threads of one device; on failure those that run are left in d->threads. */
enum k3_status k3_io_threads_start(struct k3_io_device *d, struct k3_error *err);
enum k3_status k3_io_uring_start(struct k3_io_device *d, struct k3_error *err);
/* Makes the threads of a device look at the queue; lock held, n = new requests. */
void k3_io_threads_wake(struct k3_io_device *d, size_t n);
void k3_io_uring_wake(struct k3_io_device *d);

/* pthread_create with a small stack and all signals blocked. Returns an errno. */
int k3_io_spawn(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
