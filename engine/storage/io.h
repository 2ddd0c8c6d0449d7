/* io.h - one queue per disk, two classes: expert demand reads first, tape reads fill every gap.
 *
 * A request names a byte range of a shard and a buffer with room for its aligned window; the reader
 * threads fill it and mark it done. A request and its buffer belong to the reader from submit until
 * done. Large direct reads want buffers on 2 MiB pages: k3_io_alloc() makes them. */
#ifndef K3_IO_H
#define K3_IO_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

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
    int error;               /* errno; 0 = intact; ENODATA = the file ended early */
    uint64_t error_offset;   /* where in the file */
    /* the queue's own */
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
};

struct k3_io_counters {
    uint64_t bytes[K3_IO_CLASSES]; /* payload bytes of finished requests */
    uint64_t reads[K3_IO_CLASSES];
    double busy_s;                 /* at least one request in flight, summed over devices */
    uint32_t devices;
};

/* The checkpoint outlives it. Starts the reader threads, with all signals blocked. */
struct k3_io *k3_io_open(const struct k3_checkpoint *c, const struct k3_io_options *opt,
                         struct k3_error *err);
void k3_io_close(struct k3_io *io);      /* waits for what is in flight, drops what is queued */
const char *k3_io_name(const struct k3_io *io); /* "direct x16", "buffered x16 (O_DIRECT: ...)" */

void k3_io_submit(struct k3_io *io, struct k3_io_req *const *reqs, size_t n);
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
