/* checkpoint.c - the folder: index, shards, the table of tensors. See checkpoint.h. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_internal.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors data are little-endian");

/* ---- shards ------------------------------------------------------------------------------ */

char *k3_ckpt_join(const char *dir, const char *name)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = malloc(n);
    if (path)
        snprintf(path, n, "%s/%s", dir, name);
    return path;
}

int k3_ckpt_open_regular(const char *path, struct stat *sb)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return -1;
    int error = 0;
    if (fstat(fd, sb) != 0)
        error = errno;
    else if (!S_ISREG(sb->st_mode))
        error = S_ISDIR(sb->st_mode) ? EISDIR : EINVAL;
    /* io_uring would answer EAGAIN for a file that still has the flag. */
    else if (fcntl(fd, F_SETFL, 0) != 0)
        error = errno;
    if (error) {
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

bool k3_shard_open(struct k3_shard *s)
{
    struct stat sb;
    s->fd_direct = -1;
    s->fd = k3_ckpt_open_regular(s->path, &sb);
    if (s->fd < 0)
        return false;
    s->size = (uint64_t)sb.st_size;
    s->device = (uint64_t)sb.st_dev;
#ifdef O_DIRECT
    s->fd_direct = open(s->path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    s->direct_errno = s->fd_direct < 0 ? errno : 0;
#else
    s->direct_errno = ENOTSUP;
#endif
    return true;
}

void k3_shard_close(struct k3_shard *s)
{
    if (s->fd >= 0)
        close(s->fd);
    if (s->fd_direct >= 0)
        close(s->fd_direct);
    s->fd = s->fd_direct = -1;
}

static enum k3_status shards_open(struct k3_checkpoint *c, struct k3_error *err)
{
    size_t missing = 0, first = 0;
    for (size_t i = 0; i < c->n_shards; i++) {
        struct k3_shard *s = &c->shards[i];
        s->path = k3_ckpt_join(c->dir, s->name);
        if (!s->path)
            return k3_fail_memory(err, "a path", strlen(c->dir) + strlen(s->name));
        if (k3_shard_open(s))
            continue;
        if (errno != ENOENT)
            return k3_fail(err, K3_FAILED, "%s: the shard cannot be opened: %s", s->path,
                           errno == EINVAL ? "not a regular file" : strerror(errno));
        if (missing++ == 0)
            first = i;
    }
    if (missing)
        return k3_fail(err, K3_FAILED,
                       "%s: this shard is named by the index and missing (%zu of %zu shards are); "
                       "complete the download", c->shards[first].path, missing, c->n_shards);
    return K3_OK;
}

/* ---- life --------------------------------------------------------------------------------- */

/* The headers leave the allocator with pages that the budget counts on. */
static void give_back(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* Headers are in memory as a whole; only threads whose headers are small go side by side. */
static enum k3_status enter_one(struct k3_checkpoint *c, uint32_t shard, struct k3_error *err)
{
    uint64_t length = 0;
    enum k3_status st;
    if (pread(c->shards[shard].fd, &length, sizeof length, 0) == sizeof length &&
        length <= K3_CKPT_SIDE_BY_SIDE)
        return k3_ckpt_enter(c, shard, err);
#pragma omp critical(k3_large_header)
    st = k3_ckpt_enter(c, shard, err);
    return st;
}

/* Shards hold different tensors, so that their headers can be entered side by side. What is told of
 * is the first faulty one in order: those behind it that have not begun are left out. The progress
 * is told by the calling thread alone. */
static enum k3_status enter_shards(struct k3_checkpoint *c, k3_progress_fn progress, void *ud,
                                   struct k3_error *err)
{
    atomic_size_t faulty = c->n_shards, done = 0;
    const int most = omp_get_max_threads(), team = most < K3_CKPT_TEAM ? most : K3_CKPT_TEAM;
    /* Other threads may take every shard, and the calling one then has nothing to tell. */
    if (progress)
        progress(ud, "indexing shards", 0, c->n_shards);
#pragma omp parallel for schedule(dynamic) num_threads(team) if (c->n_shards > 1)
    for (size_t i = 0; i < c->n_shards; i++) {
        struct k3_error mine = {.status = K3_OK};
        if (progress && omp_get_thread_num() == 0)
            progress(ud, "indexing shards", atomic_load(&done), c->n_shards);
        if (i < atomic_load(&faulty) && enter_one(c, (uint32_t)i, &mine) != K3_OK)
#pragma omp critical(k3_first_fault)
            if (i < atomic_load(&faulty)) {
                atomic_store(&faulty, i);
                *err = mine;
            }
        atomic_fetch_add(&done, 1);
    }
    return atomic_load(&faulty) < c->n_shards ? err->status : K3_OK;
}

static enum k3_status enter_all(struct k3_checkpoint *c, k3_progress_fn progress, void *ud,
                                struct k3_error *err)
{
    if (enter_shards(c, progress, ud, err) != K3_OK)
        return err->status;
    if (progress)
        progress(ud, "indexing shards", c->n_shards, c->n_shards);
    for (size_t i = 0; i < c->n_tensors; i++)
        if (!c->tensors[i].dtype_name)
            return k3_fail(err, K3_FAILED,
                           "%s: tensor %s is promised by the index and missing; fetch index and "
                           "shard again", c->shards[c->tensors[i].shard].path, c->tensors[i].name);
    return K3_OK;
}

struct k3_checkpoint *k3_checkpoint_open(const char *dir, k3_progress_fn progress, void *ud,
                                         struct k3_error *err)
{
    struct k3_checkpoint *c = calloc(1, sizeof *c);
    if (!c || !(c->dir = strdup(dir))) {
        k3_fail_memory(err, "the checkpoint", sizeof *c);
        goto fail;
    }
    if (k3_ckpt_index(c, err) != K3_OK || shards_open(c, err) != K3_OK ||
        enter_all(c, progress, ud, err) != K3_OK)
        goto fail;
    give_back();
    return c;
fail:
    k3_checkpoint_close(c);
    return NULL;
}

void k3_checkpoint_close(struct k3_checkpoint *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_shards; i++) {
        struct k3_shard *s = &c->shards[i];
        k3_shard_close(s);
        free(s->name);
        free(s->path);
    }
    k3_checkpoint_drop_tensors(c);
    free(c->shards);
    free(c->dir);
    free(c);
}

void k3_checkpoint_drop_tensors(struct k3_checkpoint *c)
{
    if (c->names)
        munmap(c->names, c->names_bytes);
    if (c->tensors)
        munmap(c->tensors, c->tensors_bytes);
    c->names = NULL;
    c->tensors = NULL;
    c->n_tensors = 0;
    c->table_bytes = 0;
}

const struct k3_tensor *k3_checkpoint_find(const struct k3_checkpoint *c, const char *name)
{
    size_t i = k3_ckpt_search(c, name, SIZE_MAX);
    return i == SIZE_MAX ? NULL : &c->tensors[i];
}

const struct k3_tensor *k3_checkpoint_find_next(const struct k3_checkpoint *c, const char *name,
                                                size_t *place)
{
    const size_t i = k3_ckpt_search(c, name, *place + 1);
    if (i == SIZE_MAX)
        return NULL;
    *place = i;
    return &c->tensors[i];
}

/* ---- small reads ------------------------------------------------------------------------- */

enum k3_status k3_checkpoint_read(const struct k3_checkpoint *c, uint32_t shard, uint64_t offset,
                                  void *buf, size_t n, struct k3_error *err)
{
    const struct k3_shard *s = &c->shards[shard];
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(s->fd, (char *)buf + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return k3_fail(err, K3_FAILED,
                           "%s: reading at byte %" PRIu64 " failed: %s (errno %d); check the disk "
                           "and its cable or mount, then start again", s->path, offset + done,
                           strerror(errno), errno);
        if (got == 0)
            return k3_fail(err, K3_FAILED,
                           "%s: the file ends at byte %" PRIu64 ", %zu bytes early: it was cut off "
                           "since the program started; fetch it again", s->path, offset + done,
                           n - done);
        done += (size_t)got;
    }
    return K3_OK;
}

static uint64_t elements(const struct k3_tensor *t)
{
    uint64_t n = 1;
    for (unsigned i = 0; i < t->ndim; i++)
        n *= t->shape[i];
    return n;
}

enum k3_status k3_checkpoint_read_f32(const struct k3_checkpoint *c, const struct k3_tensor *t,
                                      float *out, size_t n, struct k3_error *err)
{
    if ((t->dtype != K3_DT_F32 && t->dtype != K3_DT_BF16) || elements(t) != n)
        return k3_fail(err, K3_FAILED,
                       "%s: tensor %s: %" PRIu64 " elements of %s, wanted are %zu of BF16 or F32",
                       c->shards[t->shard].path, t->name, elements(t), t->dtype_name, n);
    if (t->dtype == K3_DT_F32)
        return k3_checkpoint_read(c, t->shard, t->offset, out, n * sizeof *out, err);
    uint16_t part[4096];
    const size_t most = sizeof part / sizeof *part;
    for (size_t done = 0; done < n;) {
        size_t m = n - done < most ? n - done : most;
        if (k3_checkpoint_read(c, t->shard, t->offset + done * sizeof *part, part, m * sizeof *part,
                               err) != K3_OK)
            return err->status;
        for (size_t i = 0; i < m; i++) {
            uint32_t bits = (uint32_t)part[i] << 16;
            memcpy(&out[done + i], &bits, sizeof bits);
        }
        done += m;
    }
    return K3_OK;
}
