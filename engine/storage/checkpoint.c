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

#define INDEX_NAME "model.safetensors.index.json"
#define SINGLE_NAME "model.safetensors"
#define INDEX_MAX (512u << 20) /* the released one has about 60 MB */
#define JSON_ENTRY 240         /* bytes jansson takes per entry of the index besides the text */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors data are little-endian");

/* Tensors and names in one mapping, so that dropping them really gives the memory back. */
struct arena {
    size_t bytes;
    char *names;
    struct k3_tensor tensors[];
};

/* ---- shards ------------------------------------------------------------------------------ */

static char *join(const char *dir, const char *name)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = malloc(n);
    if (path)
        snprintf(path, n, "%s/%s", dir, name);
    return path;
}

/* Opens without ever blocking (a FIFO would), and takes regular files only. */
static int open_regular(const char *path, struct stat *sb)
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
    s->fd = open_regular(s->path, &sb);
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
        s->path = join(c->dir, s->name);
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

/* A plain file name: nothing that could lead out of the folder. */
static enum k3_status check_shard_name(const char *index, const char *tensor, const char *name,
                                       struct k3_error *err)
{
    if (k3_ckpt_check_name(index, name, err) != K3_OK)
        return err->status;
    if (strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return k3_fail(err, K3_FAILED,
                       "%s: tensor %s: the shard '%s' is not a plain file name; shards must lie in "
                       "the checkpoint's own folder", index, tensor, name);
    return K3_OK;
}

/* ---- the index --------------------------------------------------------------------------- */

struct names {
    json_t *json;             /* owns the strings */
    struct k3_ckpt_ref *refs;
    size_t n;
    uint64_t name_bytes;      /* with their terminators */
};

static int by_name(const void *a, const void *b)
{
    const struct k3_ckpt_ref *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static enum k3_status add_shard(struct k3_checkpoint *c, const char *name, struct k3_error *err)
{
    if ((c->n_shards & (c->n_shards - 1)) == 0) { /* full at powers of two */
        size_t cap = c->n_shards ? 2 * c->n_shards : 1;
        struct k3_shard *s = realloc(c->shards, cap * sizeof *s);
        if (!s)
            return k3_fail_memory(err, "the list of shards", cap * sizeof *s);
        c->shards = s;
    }
    struct k3_shard *s = &c->shards[c->n_shards];
    *s = (struct k3_shard){.name = strdup(name), .fd = -1, .fd_direct = -1};
    if (!s->name)
        return k3_fail_memory(err, "a shard's name", strlen(name) + 1);
    c->n_shards++;
    return K3_OK;
}

/* Number of the shard called `name`; `seen` maps the names met so far. -1 on failure. */
static long long shard_number(struct k3_checkpoint *c, json_t *seen, const char *name,
                              struct k3_error *err)
{
    const json_t *known = json_object_get(seen, name);
    if (known)
        return json_integer_value(known);
    long long i = (long long)c->n_shards;
    if (add_shard(c, name, err) != K3_OK)
        return -1;
    if (json_object_set_new(seen, name, json_integer(i)) != 0) {
        k3_fail_memory(err, "the list of shards", strlen(name));
        return -1;
    }
    return i;
}

static enum k3_status refs_reserve(struct names *w, size_t n, struct k3_error *err)
{
    w->refs = calloc(n + 1, sizeof *w->refs);
    return w->refs ? K3_OK : k3_fail_memory(err, "the tensor names", n * sizeof *w->refs);
}

static void add_ref(struct names *w, const char *name, uint32_t shard)
{
    w->refs[w->n++] = (struct k3_ckpt_ref){.name = name, .shard = shard};
    w->name_bytes += strlen(name) + 1;
}

static enum k3_status map_entries(struct k3_checkpoint *c, const char *path, const json_t *map,
                                  json_t *seen, struct names *w, struct k3_error *err)
{
    const char *name;
    json_t *v;
    json_object_foreach ((json_t *)map, name, v) {
        const char *file = json_string_value(v);
        if (k3_ckpt_check_name(path, name, err) != K3_OK)
            return err->status;
        if (!file)
            return k3_fail(err, K3_FAILED,
                           "%s: weight_map: tensor %s: its shard is not a file name; fetch the "
                           "index again", path, name);
        if (check_shard_name(path, name, file, err) != K3_OK)
            return err->status;
        long long shard = shard_number(c, seen, file, err);
        if (shard < 0)
            return err->status;
        add_ref(w, name, (uint32_t)shard);
    }
    return K3_OK;
}

static enum k3_status read_index(struct k3_checkpoint *c, int fd, const char *path, uint64_t size,
                                 struct names *w, struct k3_error *err)
{
    if (size > INDEX_MAX)
        return k3_fail(err, K3_FAILED, "%s: %" PRIu64 " bytes are more than an index can have (%u)",
                       path, size, INDEX_MAX);
    w->json = k3_ckpt_json(fd, 0, size, path, "index", err);
    if (!w->json)
        return err->status;
    const json_t *map = json_object_get(w->json, "weight_map");
    size_t n = json_object_size(map);
    if (n == 0)
        return k3_fail(err, K3_FAILED,
                       "%s: weight_map is missing, empty or not an object; fetch the index again",
                       path);
    json_t *seen = json_object();
    if (!seen)
        return k3_fail_memory(err, "the list of shards", 1);
    enum k3_status st = refs_reserve(w, n, err);
    if (st == K3_OK)
        st = map_entries(c, path, map, seen, w, err);
    json_decref(seen);
    c->peak_bytes = size + n * (JSON_ENTRY + sizeof *w->refs);
    return st;
}

/* A checkpoint of one file needs no index: its header names the tensors. */
static enum k3_status read_single(struct k3_checkpoint *c, struct names *w, struct k3_error *err)
{
    if (add_shard(c, SINGLE_NAME, err) != K3_OK)
        return err->status;
    struct k3_shard *s = &c->shards[0];
    s->path = join(c->dir, SINGLE_NAME);
    if (!s->path)
        return k3_fail_memory(err, "a path", strlen(c->dir));
    struct stat sb;
    int fd = open_regular(s->path, &sb);
    if (fd < 0 && errno == ENOENT)
        return k3_fail(err, K3_FAILED,
                       "%s: neither " INDEX_NAME " nor " SINGLE_NAME " is there; name the folder "
                       "that holds the checkpoint", c->dir);
    if (fd < 0)
        return k3_fail(err, K3_FAILED, "%s: cannot be opened: %s", s->path,
                       errno == EINVAL ? "not a regular file" : strerror(errno));
    const struct k3_shard probe = {.path = s->path, .fd = fd, .size = (uint64_t)sb.st_size};
    uint64_t data = 0;
    w->json = k3_ckpt_header(&probe, &data, err);
    close(fd);
    free(s->path);
    s->path = NULL;
    if (!w->json || refs_reserve(w, json_object_size(w->json), err) != K3_OK)
        return err->status;
    const char *name;
    json_t *v;
    json_object_foreach (w->json, name, v)
        if (strcmp(name, "__metadata__") != 0)
            add_ref(w, name, 0);
    c->peak_bytes = 10 * data;
    return K3_OK;
}

static enum k3_status read_names(struct k3_checkpoint *c, struct names *w, struct k3_error *err)
{
    struct stat sb;
    if (stat(c->dir, &sb) != 0)
        return k3_fail(err, K3_FAILED, "%s: the checkpoint's folder cannot be opened: %s", c->dir,
                       strerror(errno));
    if (!S_ISDIR(sb.st_mode))
        return k3_fail(err, K3_FAILED,
                       "%s: not a folder; name the folder that holds the checkpoint", c->dir);
    char *path = join(c->dir, INDEX_NAME);
    if (!path)
        return k3_fail_memory(err, "a path", strlen(c->dir));
    enum k3_status st;
    int fd = open_regular(path, &sb);
    if (fd >= 0) {
        st = read_index(c, fd, path, (uint64_t)sb.st_size, w, err);
        close(fd);
    } else if (errno == ENOENT) {
        st = read_single(c, w, err);
    } else {
        st = k3_fail(err, K3_FAILED, "%s: the index cannot be opened: %s", path,
                     errno == EINVAL ? "not a regular file" : strerror(errno));
    }
    free(path);
    return st;
}

/* ---- the table --------------------------------------------------------------------------- */

/* Makes the table from the names: everything but the shard is still to be entered. */
static enum k3_status make_table(struct k3_checkpoint *c, struct names *w, struct k3_error *err)
{
    qsort(w->refs, w->n, sizeof *w->refs, by_name);
    size_t bytes = sizeof(struct arena) + w->n * sizeof(struct k3_tensor) + w->name_bytes;
    struct arena *a = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a == MAP_FAILED)
        return k3_fail_memory(err, "the table of tensors", bytes);
    a->bytes = bytes;
    a->names = (char *)(a->tensors + w->n);
    char *at = a->names;
    for (size_t i = 0; i < w->n; i++) {
        size_t len = strlen(w->refs[i].name) + 1;
        memcpy(at, w->refs[i].name, len);
        a->tensors[i].name = at;
        a->tensors[i].shard = w->refs[i].shard;
        at += len;
    }
    c->arena = a;
    c->tensors = a->tensors;
    c->n_tensors = w->n;
    c->table_bytes = bytes;
    c->peak_bytes += bytes;
    return K3_OK;
}

/* Big JSON trees leave the allocator with pages that the budget counts on. */
static void give_back(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static void names_free(struct names *w)
{
    free(w->refs);
    json_decref(w->json);
    give_back();
}

/* A header as JSON takes ten times its bytes; only threads whose headers are small go side by side. */
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
    struct names w = {0};
    struct k3_checkpoint *c = calloc(1, sizeof *c);
    if (!c || !(c->dir = strdup(dir))) {
        k3_fail_memory(err, "the checkpoint", sizeof *c);
        goto fail;
    }
    if (read_names(c, &w, err) != K3_OK || make_table(c, &w, err) != K3_OK)
        goto fail;
    names_free(&w);
    w = (struct names){0};
    if (shards_open(c, err) != K3_OK || enter_all(c, progress, ud, err) != K3_OK)
        goto fail;
    give_back();
    return c;
fail:
    names_free(&w);
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
    struct arena *a = c->arena;
    if (a)
        munmap(a, a->bytes);
    c->arena = NULL;
    c->tensors = NULL;
    c->n_tensors = 0;
    c->table_bytes = 0;
}

size_t k3_ckpt_search(const struct k3_checkpoint *c, const char *name, size_t hint)
{
    if (hint < c->n_tensors && strcmp(c->tensors[hint].name, name) == 0)
        return hint;
    size_t lo = 0, hi = c->n_tensors;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = strcmp(c->tensors[mid].name, name);
        if (order == 0)
            return mid;
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return SIZE_MAX;
}

const struct k3_tensor *k3_checkpoint_find(const struct k3_checkpoint *c, const char *name)
{
    size_t i = k3_ckpt_search(c, name, SIZE_MAX);
    return i == SIZE_MAX ? NULL : &c->tensors[i];
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
