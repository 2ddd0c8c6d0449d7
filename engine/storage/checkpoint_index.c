/* checkpoint_index.c - which tensors there are: the names out of the index, sorted, and the table.
 *
 * The text of the index (60 MB for the released model) is read into one mapping. While it is scanned,
 * the names move to its front and what stood behind them is given back, so that the mapping is all
 * the memory that names ever take. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_internal.h"

#define INDEX_MAX (512u << 20) /* the released one has about 60 MB; a name's place fits 32 bits */
#define FEW_NAMES 24           /* sorted by inserting */
#define LARGE (4u << 20)       /* a mapping worth large pages */

/* What the index says: this tensor stands in that shard. */
struct ref {
    uint32_t name; /* where it begins in the text */
    uint32_t shard;
};

struct names {
    struct k3_checkpoint *c;
    const char *path;
    struct k3_error *err;
    struct k3_scan scan;
    char *text;        /* mapped */
    size_t size;       /* of the mapping, whole pages */
    size_t at;         /* where the next name goes */
    struct ref *refs;
    size_t n, cap;
    bool sorted;
    json_t *shards;    /* name -> number */
    uint32_t shard;    /* of the last tensor */
    bool has_metadata; /* of a single file */
};

/* ---- memory ------------------------------------------------------------------------------ */

static size_t whole_pages(size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (n + page - 1) / page * page;
}

/* On large pages where the system has them: tens of MB are filled at once. */
static void *map(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (n >= LARGE)
        (void)madvise(p, n, MADV_HUGEPAGE);
#endif
    return p;
}

/* Reads n bytes at `offset` of the file into a new mapping with a zero byte behind them, and begins
 * the scan. */
static enum k3_status map_text(struct names *w, int fd, uint64_t offset, size_t n, const char *what)
{
    w->size = whole_pages(n + 1);
    w->text = map(w->size);
    if (!w->text)
        return k3_fail_memory(w->err, w->path, w->size);
    k3_scan_begin(&w->scan, w->text, n, w->path, what, w->err);
    return k3_ckpt_read_text(fd, offset, w->text, n, w->path, what, w->err);
}

static void names_free(struct names *w)
{
    if (w->text)
        munmap(w->text, w->size);
    k3_scan_end(&w->scan);
    free(w->refs);
    json_decref(w->shards);
}

/* ---- shards ------------------------------------------------------------------------------ */

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

/* Makes the shard called `name` that of the tensors to come. Mostly it is so already. */
static bool settle_shard(struct names *w, const char *tensor, const char *name)
{
    struct k3_checkpoint *c = w->c;
    if (w->shard < c->n_shards && strcmp(c->shards[w->shard].name, name) == 0)
        return true;
    const json_t *known = json_object_get(w->shards, name);
    if (known) {
        w->shard = (uint32_t)json_integer_value(known);
        return true;
    }
    if (check_shard_name(w->path, tensor, name, w->err) != K3_OK)
        return false;
    w->shard = (uint32_t)c->n_shards;
    if (add_shard(c, name, w->err) != K3_OK)
        return false;
    if (json_object_set_new(w->shards, name, json_integer(w->shard)) != 0) {
        k3_fail_memory(w->err, "the list of shards", strlen(name));
        return false;
    }
    return true;
}

/* ---- names ------------------------------------------------------------------------------- */

static const char *name_of(const struct names *w, size_t i)
{
    return w->text + w->refs[i].name;
}

static bool grow_refs(struct names *w)
{
    const size_t cap = w->cap ? 2 * w->cap : 1024;
    struct ref *refs = realloc(w->refs, cap * sizeof *refs);
    if (!refs) {
        k3_fail_memory(w->err, "the tensor names", cap * sizeof *refs);
        return false;
    }
    w->refs = refs;
    w->cap = cap;
    return true;
}

/* Moves the name, which stands further behind, to the others. */
static bool add_name(struct names *w, const char *name, size_t len)
{
    if (w->n == w->cap && !grow_refs(w))
        return false;
    memmove(w->text + w->at, name, len + 1);
    w->refs[w->n++] = (struct ref){.name = (uint32_t)w->at, .shard = w->shard};
    w->at += len + 1;
    const int order = w->n > 1 ? strcmp(name_of(w, w->n - 2), name_of(w, w->n - 1)) : -1;
    w->sorted &= order < 0;
    return order != 0 || k3_scan_twice(&w->scan, name_of(w, w->n - 1));
}

/* A member of weight_map. */
static bool take_tensor(void *ud, struct k3_scan *s, char *name, size_t len)
{
    struct names *w = ud;
    size_t shard_len;
    if (k3_ckpt_check_name(w->path, name, w->err) != K3_OK)
        return false;
    if (k3_scan_next(s) != '"') {
        if (k3_scan_skip(s))
            k3_fail(w->err, K3_FAILED, "%s: weight_map: tensor %s: its shard is not a file name; "
                    "fetch the index again", w->path, name);
        return false;
    }
    const char *shard = k3_scan_string(s, &shard_len);
    return shard && settle_shard(w, name, shard) && add_name(w, name, len);
}

/* Names are moved to where weight_map begins: keys before it are still watched. */
static bool take_index_member(void *ud, struct k3_scan *s, char *key, size_t len)
{
    struct names *w = ud;
    (void)len;
    if (strcmp(key, "weight_map") != 0 || k3_scan_next(s) != '{')
        return k3_scan_skip(s);
    w->at = (size_t)(s->p - w->text);
    return k3_scan_object(s, K3_SCAN_UNIQUE, take_tensor, w);
}

/* A member of the header of a single file: now only its name. */
static bool take_header_member(void *ud, struct k3_scan *s, char *key, size_t len)
{
    struct names *w = ud;
    if (strcmp(key, "__metadata__") == 0) {
        if (w->has_metadata)
            return k3_scan_twice(s, key);
        w->has_metadata = true;
        return k3_scan_skip(s);
    }
    return k3_ckpt_check_name(w->path, key, w->err) == K3_OK && k3_scan_skip(s) &&
           add_name(w, key, len);
}

/* ---- order ------------------------------------------------------------------------------- */

/* Length of what all names begin with, from `depth` on. */
static size_t common_prefix(const char *text, const struct ref *r, size_t n, size_t depth)
{
    const char *first = text + r[0].name + depth;
    size_t common = strlen(first);
    for (size_t i = 1; i < n; i++) {
        const char *x = text + r[i].name + depth;
        size_t k = 0;
        while (k < common && x[k] == first[k])
            k++;
        common = k;
    }
    return common;
}

static void insert_sort(const char *text, struct ref *r, size_t n, size_t depth)
{
    for (size_t i = 1; i < n; i++) {
        const struct ref x = r[i];
        size_t j = i;
        for (; j > 0 && strcmp(text + r[j - 1].name + depth, text + x.name + depth) > 0; j--)
            r[j] = r[j - 1];
        r[j] = x;
    }
}

/* Radix sort from the front. The names are equal as far as `depth`; tmp has room for n. It goes no
 * deeper than a name is long: 1000. */
static void sort_refs(const char *text, struct ref *r, struct ref *tmp, size_t n, size_t depth)
{
    if (n <= FEW_NAMES) {
        insert_sort(text, r, n, depth);
        return;
    }
    depth += common_prefix(text, r, n, depth);
    uint32_t at[257] = {0}; /* where the names with this byte begin; when they are dealt out, end */
    for (size_t i = 0; i < n; i++)
        at[(unsigned char)text[r[i].name + depth] + 1]++;
    for (size_t b = 0; b < 256; b++)
        at[b + 1] += at[b];
    memcpy(tmp, r, n * sizeof *r);
    for (size_t i = 0; i < n; i++)
        r[at[(unsigned char)text[tmp[i].name + depth]]++] = tmp[i];
    for (size_t b = 1; b < 256; b++) /* those of byte 0 end here: they are the same */
        sort_refs(text, r + at[b - 1], tmp, at[b] - at[b - 1], depth + 1);
}

/* Sorts the names and refuses one that stands twice. */
static enum k3_status settle_order(struct names *w)
{
    if (w->sorted)
        return K3_OK;
    struct ref *tmp = malloc(w->n * sizeof *tmp);
    if (!tmp)
        return k3_fail_memory(w->err, "the tensor names", w->n * sizeof *tmp);
    sort_refs(w->text, w->refs, tmp, w->n, 0);
    free(tmp);
    for (size_t i = 1; i < w->n; i++)
        if (strcmp(name_of(w, i - 1), name_of(w, i)) == 0) {
            k3_scan_twice(&w->scan, name_of(w, i));
            return w->err->status;
        }
    return K3_OK;
}

/* ---- the files --------------------------------------------------------------------------- */

static enum k3_status read_index(struct names *w, int fd, uint64_t size)
{
    if (size > INDEX_MAX)
        return k3_fail(w->err, K3_FAILED,
                       "%s: %" PRIu64 " bytes are more than an index can have (%u)", w->path, size,
                       INDEX_MAX);
    if (map_text(w, fd, 0, (size_t)size, "index") != K3_OK)
        return w->err->status;
    w->shards = json_object();
    if (!w->shards)
        return k3_fail_memory(w->err, "the list of shards", 1);
    if (!k3_scan_document(&w->scan, K3_SCAN_WATCHED, take_index_member, w))
        return w->err->status;
    if (w->n == 0)
        return k3_fail(w->err, K3_FAILED,
                       "%s: weight_map is missing, empty or not an object; fetch the index again",
                       w->path);
    return settle_order(w);
}

/* A checkpoint of one file needs no index: its header names the tensors. */
static enum k3_status read_single(struct names *w, int fd, uint64_t size)
{
    const struct k3_shard probe = {.path = (char *)w->path, .fd = fd, .size = size};
    uint64_t length = 0;
    if (add_shard(w->c, K3_CKPT_SINGLE, w->err) != K3_OK ||
        k3_ckpt_header_length(&probe, &length, w->err) != K3_OK ||
        map_text(w, fd, 8, (size_t)length, "header") != K3_OK ||
        !k3_scan_document(&w->scan, K3_SCAN_UNIQUE, take_header_member, w))
        return w->err->status;
    return settle_order(w);
}

static enum k3_status read_file(struct names *w, const char *name,
                                enum k3_status (*read)(struct names *, int, uint64_t), bool *found)
{
    struct stat sb;
    char *path = k3_ckpt_join(w->c->dir, name);
    if (!path)
        return k3_fail_memory(w->err, "a path", strlen(w->c->dir));
    enum k3_status st = K3_OK;
    const int fd = k3_ckpt_open_regular(path, &sb);
    *found = fd >= 0 || errno != ENOENT;
    w->path = path;
    if (fd >= 0)
        st = read(w, fd, (uint64_t)sb.st_size);
    else if (*found)
        st = k3_fail(w->err, K3_FAILED, "%s: cannot be opened: %s", path,
                     errno == EINVAL ? "not a regular file" : strerror(errno));
    if (fd >= 0)
        close(fd);
    w->path = NULL;
    free(path);
    return st;
}

static enum k3_status read_names(struct names *w)
{
    const char *dir = w->c->dir;
    struct stat sb;
    bool found;
    if (stat(dir, &sb) != 0)
        return k3_fail(w->err, K3_FAILED, "%s: the checkpoint's folder cannot be opened: %s", dir,
                       strerror(errno));
    if (!S_ISDIR(sb.st_mode))
        return k3_fail(w->err, K3_FAILED,
                       "%s: not a folder; name the folder that holds the checkpoint", dir);
    enum k3_status st = read_file(w, K3_CKPT_INDEX, read_index, &found);
    if (!found)
        st = read_file(w, K3_CKPT_SINGLE, read_single, &found);
    if (!found)
        st = k3_fail(w->err, K3_FAILED,
                     "%s: neither " K3_CKPT_INDEX " nor " K3_CKPT_SINGLE " is there; name the folder "
                     "that holds the checkpoint", dir);
    return st;
}

/* ---- the table --------------------------------------------------------------------------- */

/* The checkpoint takes over the names, and what stood behind them is given back. */
static void keep_names(struct names *w)
{
    struct k3_checkpoint *c = w->c;
    const size_t keep = whole_pages(w->at);
    if (keep < w->size && munmap(w->text + keep, w->size - keep) == 0)
        w->size = keep;
    c->names = w->text;
    c->names_bytes = w->size;
    w->text = NULL;
}

/* Makes the table from the names: everything but the shard is still to be entered. */
static enum k3_status make_table(struct names *w)
{
    struct k3_checkpoint *c = w->c;
    const size_t bytes = w->n * sizeof(struct k3_tensor);
    const uint64_t scanning = w->size + w->cap * sizeof *w->refs * (w->sorted ? 1 : 2);
    keep_names(w);
    if (w->n > 0) {
        c->tensors = map(bytes);
        if (!c->tensors)
            return k3_fail_memory(w->err, "the table of tensors", bytes);
    }
    for (size_t i = 0; i < w->n; i++) {
        c->tensors[i].name = c->names + w->refs[i].name;
        c->tensors[i].shard = w->refs[i].shard;
    }
    c->n_tensors = w->n;
    c->tensors_bytes = bytes;
    c->table_bytes = bytes + c->names_bytes;
    const uint64_t both = c->table_bytes + w->cap * sizeof *w->refs;
    c->peak_bytes = scanning > both ? scanning : both;
    return K3_OK;
}

enum k3_status k3_ckpt_index(struct k3_checkpoint *c, struct k3_error *err)
{
    struct names w = {.c = c, .err = err, .sorted = true};
    enum k3_status st = read_names(&w);
    if (st == K3_OK)
        st = make_table(&w);
    names_free(&w);
    return st;
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
