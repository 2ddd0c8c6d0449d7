/* io.h - one queue per disk, two classes: expert demand reads first, tape reads fill every gap.
 *
 * A request names a byte range of a shard and a buffer with room for its aligned window; the reader
 * threads fill it and mark it done. A request and its buffer belong to the reader from submit until
 * done. Large direct reads want buffers on 2 MiB pages: k3_io_alloc() makes them. */
#ifndef K3_IO_H
#define K3_IO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blocks.h"
#include "checkpoint.h"

#define K3_IO_ALIGN 4096u

enum k3_io_class { K3_IO_DEMAND, K3_IO_TAPE, K3_IO_CLASSES };

struct k3_io_req {
    /* in */
    uint32_t shard;
    enum k3_io_class class;
    uint64_t offset, bytes;  /* the payload */
    uint8_t *buf;            /* K3_IO_ALIGN-aligned, at least k3_io_window(offset, bytes) */
    /* out, valid once done */
    atomic_int done;         /* 0 = under way, 1 = done */
    int error;               /* errno; 0 = intact; ENODATA = the file ended early; EBADMSG = other
                              * bytes than the list of blocks says */
    uint64_t error_offset;   /* where in the file */
    /* the queue's own; no need to set them */
    uint8_t state;
    bool cancel;
    struct k3_io_req *next;
};

/* Where the payload begins once read. */
static inline const uint8_t *k3_io_data(const struct k3_io_req *r)
{
    return r->buf + r->offset % K3_IO_ALIGN;
}

/* Bytes of buffer that a direct read of this range needs: whole aligned blocks around it. */
static inline uint64_t k3_io_window(uint64_t offset, uint64_t bytes)
{
    uint64_t begin = offset - offset % K3_IO_ALIGN;
    uint64_t end = offset + bytes;
    end += (K3_IO_ALIGN - end % K3_IO_ALIGN) % K3_IO_ALIGN;
    return end - begin;
}

/* What one reader thread adds to the process: the pages of its stack and its descriptors that it
 * really touches, from above. There are `depth` of them per device, or one with io_uring. */
#define K3_IO_THREAD_BYTES 32768u
#define K3_IO_DEPTH_MAX 256u
#define K3_IO_DEPTH_DEFAULT 16u

struct k3_io;

/* One blocking read; the seam where tests inject faults. Like pread(): bytes read, 0 at the end
 * of the file, -1 and errno. */
typedef int64_t (*k3_io_read_fn)(void *ud, int fd, void *buf, uint64_t n, uint64_t offset);

struct k3_io_options {
    enum k3_io_kind kind;
    uint32_t depth;           /* requests in flight per device */
    uint64_t simulate_rate;   /* bytes/s per device; 0 = off */
    k3_io_read_fn read;       /* NULL = pread; only with the thread backends */
    void *read_ud;
    struct k3_blocks *blocks; /* NULL, or what every read is checked against; outlives the queue */
};

struct k3_io_counters {
    uint64_t bytes[K3_IO_CLASSES]; /* payload bytes of requests that came in intact */
    uint64_t reads[K3_IO_CLASSES]; /* their number */
    double busy_s;                 /* at least one request in flight, summed over devices */
    uint32_t devices;
};

/* AUTO and DIRECT are the thread pool with O_DIRECT, BUFFERED the same through the page cache;
 * URING is one thread per device that keeps `depth` reads in the kernel, and an error where the
 * kernel or the build has no io_uring. Where O_DIRECT is refused, on opening or on the first read
 * (EINVAL), that shard is read buffered and k3_io_name() says why. depth 0 means the default.
 * The checkpoint outlives it. Starts the reader threads, with all signals blocked. */
struct k3_io *k3_io_open(const struct k3_checkpoint *c, const struct k3_io_options *opt,
                         struct k3_error *err);
void k3_io_close(struct k3_io *io);      /* waits for what is in flight, drops what is queued */
/* "direct x16", "buffered x16 (O_DIRECT: ...)"; at most 95 bytes. Lives as long as io, but may be
 * another string later: a file system can refuse O_DIRECT at the first read. Any thread. */
const char *k3_io_name(const struct k3_io *io);

/* Within a class and device, reads start in the order of submission. Each request is set to "not
 * done"; EINTR, EAGAIN and short reads are retried, all else ends it with its errno. */
void k3_io_submit(struct k3_io *io, struct k3_io_req *const *reqs, size_t n);
/* Takes back those that no reader has begun: they are done at once, with ECANCELED. The others go
 * on; wait for them. Requests that are done already, or were never submitted, stay as they are. */
void k3_io_cancel(struct k3_io *io, struct k3_io_req *const *reqs, size_t n);
/* Blocks until done; returns the seconds it blocked (0.0 when it was done already). */
double k3_io_wait(struct k3_io *io, struct k3_io_req *r);
/* Blocks until any of the n is done; returns the seconds it blocked. */
double k3_io_wait_any(struct k3_io *io, struct k3_io_req *const *reqs, size_t n);
/* Blocks until nothing is queued or in flight. */
void k3_io_drain(struct k3_io *io);
void k3_io_get_counters(const struct k3_io *io, struct k3_io_counters *out);

/* The message for a request that failed: shard, offset, errno and what to do. Returns
 * K3_FAILED. */
enum k3_status k3_io_fail(const struct k3_io *io, const struct k3_io_req *r, struct k3_error *err);

/* Zero-filled memory on 2 MiB pages where the system has them (bytes are rounded up to 2 MiB when
 * it is 2 MiB or more, else to 4096). NULL when there is none. Pages are touched on first use. */
void *k3_io_alloc(uint64_t bytes);
void k3_io_free(void *p, uint64_t bytes);
uint64_t k3_io_round(uint64_t bytes); /* what k3_io_alloc really takes */

#endif
