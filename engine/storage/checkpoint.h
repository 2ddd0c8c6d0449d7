/* checkpoint.h - a folder of safetensors shards, every header read and checked.
 *
 * Opening reads model.safetensors.index.json (or, when there is none, a single model.safetensors)
 * and the header of each shard it names. Refused with file, tensor and value: a shard that is
 * missing or lies outside the folder, a header that is cut off or no JSON, offsets that are out of
 * order, outside the file, overlapping, or not shape x dtype long, a name twice, a tensor the index
 * promises and the shard lacks (or the other way round), an unknown dtype. Shards are named by
 * plain file names; the files themselves may be symbolic links, for instance to other disks. */
#ifndef K3_CHECKPOINT_H
#define K3_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "../k3.h"

enum k3_dtype { K3_DT_F32, K3_DT_BF16, K3_DT_U8, K3_DT_OTHER /* known size, not used */ };

#define K3_MAX_DIMS 8

struct k3_tensor {
    const char *name;             /* in the checkpoint's names */
    uint64_t shape[K3_MAX_DIMS];
    uint64_t offset;              /* of the first byte, from the start of the file */
    uint64_t bytes;
    uint32_t shard;               /* index into shards */
    uint8_t ndim;
    uint8_t dtype;                /* enum k3_dtype */
    const char *dtype_name;       /* as written in the header, for messages; static storage */
};

struct k3_shard {
    char *name;     /* file name as in the index */
    char *path;
    int fd;         /* O_RDONLY | O_CLOEXEC */
    int fd_direct;  /* also O_DIRECT, or -1 where the file system refuses it */
    int direct_errno; /* why fd_direct is -1 */
    uint64_t size;
    uint64_t device; /* st_dev: shards of one device share a queue */
};

struct k3_checkpoint {
    char *dir;
    struct k3_shard *shards;
    size_t n_shards;
    struct k3_tensor *tensors;    /* sorted by name */
    size_t n_tensors;
    uint64_t table_bytes;         /* memory held by tensors and names */
    uint64_t peak_bytes;          /* most memory that opening held at once (estimate, from above) */
    char *names;                  /* mappings of their own, so that dropping them really gives the */
    size_t names_bytes;           /* memory back */
    size_t tensors_bytes;
};

struct k3_checkpoint *k3_checkpoint_open(const char *dir, k3_progress_fn progress, void *ud,
                                         struct k3_error *err);
void k3_checkpoint_close(struct k3_checkpoint *c);

/* NULL when there is none of that name. */
const struct k3_tensor *k3_checkpoint_find(const struct k3_checkpoint *c, const char *name);
/* The same for many names in nearly the table's order: the one behind *place is tried first, and
 * *place is where the tensor stands. Begin with 0. */
const struct k3_tensor *k3_checkpoint_find_next(const struct k3_checkpoint *c, const char *name,
                                                size_t *place);

/* Frees tensors and names and gives the memory back to the system; shards stay open. */
void k3_checkpoint_drop_tensors(struct k3_checkpoint *c);

/* Opens the regular file at s->path for both ways of reading and fills fd, fd_direct, direct_errno,
 * size and device. False with errno, EINVAL meaning "not a regular file". Close both descriptors
 * with k3_shard_close(), which leaves the names alone. */
bool k3_shard_open(struct k3_shard *s);
void k3_shard_close(struct k3_shard *s);

/* Reads n bytes at `offset` of a shard, blocking, without the readers of io.h: small things only.
 * Retries EINTR and short reads. May be called by any thread, also after tensors are dropped. */
enum k3_status k3_checkpoint_read(const struct k3_checkpoint *c, uint32_t shard, uint64_t offset,
                                  void *buf, size_t n, struct k3_error *err);

/* Reads a whole (small) tensor, widened to fp32, n = its element count. Retries EINTR and short
 * reads; a file that ends early is an error naming shard and offset. */
enum k3_status k3_checkpoint_read_f32(const struct k3_checkpoint *c, const struct k3_tensor *t,
                                      float *out, size_t n, struct k3_error *err);

#endif
