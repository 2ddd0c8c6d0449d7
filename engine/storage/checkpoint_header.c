/* checkpoint_header.c - safetensors headers: JSON in, checked tensors out. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint_internal.h"

#define HEADER_MAX 100000000u /* the limit of the safetensors library */
#define AGAIN K3_CKPT_AGAIN

/* Bits per element of every dtype the format knows. */
static const struct dtype {
    const char *name;
    uint8_t bits, id;
} dtypes[] = {
    {"BF16", 16, K3_DT_BF16},        {"F32", 32, K3_DT_F32},
    {"U8", 8, K3_DT_U8},             {"BOOL", 8, K3_DT_OTHER},
    {"I8", 8, K3_DT_OTHER},          {"F8_E4M3", 8, K3_DT_OTHER},
    {"F8_E5M2", 8, K3_DT_OTHER},     {"F8_E8M0", 8, K3_DT_OTHER},
    {"F8_E4M3FNUZ", 8, K3_DT_OTHER}, {"F8_E5M2FNUZ", 8, K3_DT_OTHER},
    {"F4", 4, K3_DT_OTHER},          {"F6_E2M3", 6, K3_DT_OTHER},
    {"F6_E3M2", 6, K3_DT_OTHER},     {"I16", 16, K3_DT_OTHER},
    {"U16", 16, K3_DT_OTHER},        {"F16", 16, K3_DT_OTHER},
    {"I32", 32, K3_DT_OTHER},        {"U32", 32, K3_DT_OTHER},
    {"I64", 64, K3_DT_OTHER},        {"U64", 64, K3_DT_OTHER},
    {"F64", 64, K3_DT_OTHER},        {"C64", 64, K3_DT_OTHER},
};

static const struct dtype *dtype_find(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

/* What comes out of a damaged file goes to a terminal. */
void k3_ckpt_clean(char *out, size_t cap, const char *text)
{
    size_t n = 0;
    for (; text[n] != '\0' && n + 1 < cap; n++) {
        unsigned char b = (unsigned char)text[n];
        out[n] = (char)(b < 0x20 || b == 0x7F ? '?' : b);
    }
    out[n] = '\0';
}

enum k3_status k3_ckpt_check_name(const char *file, const char *name, struct k3_error *err)
{
    size_t n = strlen(name);
    bool good = n > 0 && n <= 1000;
    for (size_t i = 0; i < n && good; i++)
        good = (unsigned char)name[i] >= 0x20 && name[i] != 0x7F;
    if (good)
        return K3_OK;
    char shown[K3_CKPT_NAME_SHOWN];
    k3_ckpt_clean(shown, sizeof shown, name);
    return k3_fail(err, K3_FAILED,
                   "%s: the name '%s' is empty, over 1000 bytes long or holds control characters; "
                   "%s", file, shown, AGAIN);
}

/* ---- reading ----------------------------------------------------------------------------- */

enum k3_status k3_ckpt_read_text(int fd, uint64_t offset, char *text, size_t n, const char *file,
                                 const char *what, struct k3_error *err)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = pread(fd, text + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return k3_fail(err, K3_FAILED, "%s: reading the %s failed: %s", file, what,
                           strerror(errno));
        if (got == 0)
            return k3_fail(err, K3_FAILED, "%s: the %s ends %zu bytes early: the file was cut off "
                           "just now; fetch it again", file, what, n - done);
        done += (size_t)got;
    }
    return K3_OK;
}

enum k3_status k3_ckpt_header_length(const struct k3_shard *s, uint64_t *length,
                                     struct k3_error *err)
{
    uint8_t b[8];
    ssize_t got;
    do
        got = pread(s->fd, b, sizeof b, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return k3_fail(err, K3_FAILED, "%s: reading the header failed: %s", s->path,
                       strerror(errno));
    if (got < (ssize_t)sizeof b || s->size < sizeof b)
        return k3_fail(err, K3_FAILED,
                       "%s: %" PRIu64 " bytes are too few for a safetensors header; %s", s->path,
                       s->size, AGAIN);
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | b[i];
    if (n > HEADER_MAX)
        return k3_fail(err, K3_FAILED,
                       "%s: header length %" PRIu64 " is over %u: no safetensors file, or damaged; "
                       "fetch it again", s->path, n, HEADER_MAX);
    if (n > s->size - sizeof b)
        return k3_fail(err, K3_FAILED,
                       "%s: header length %" PRIu64 ", but the file has only %" PRIu64 " bytes; %s",
                       s->path, n, s->size, AGAIN);
    *length = n;
    return K3_OK;
}

/* ---- one tensor -------------------------------------------------------------------------- */

/* What stands in a tensor's entry, before it is judged. */
struct entry {
    const char *dtype;                  /* NULL: missing or no string */
    bool has_shape;                     /* and it is a list */
    bool bad_dim;                       /* one is not a whole number of at least 0 */
    size_t ndim, n_offsets;             /* n_offsets: 0 when they are missing or no list */
    bool bad_offset;
    uint64_t shape[K3_MAX_DIMS], offsets[2];
};

/* A list of numbers, of which the first `most` are kept. */
struct numbers {
    uint64_t *v;
    size_t n, most;
    bool bad; /* something else, or below 0 */
};

static bool take_count(void *ud, struct k3_scan *s)
{
    struct numbers *l = ud;
    bool whole = false;
    int64_t v = 0;
    if (!(k3_scan_next(s) == '0' ? k3_scan_number(s, &whole, &v) : k3_scan_skip(s)))
        return false;
    l->bad |= !whole || v < 0;
    if (l->n < l->most)
        l->v[l->n] = (uint64_t)v;
    l->n++;
    return true;
}

static bool take_entry_member(void *ud, struct k3_scan *s, char *key, size_t len)
{
    struct entry *e = ud;
    const char kind = k3_scan_next(s);
    if (kind == '"' && strcmp(key, "dtype") == 0)
        return (e->dtype = k3_scan_string(s, &len)) != NULL;
    if (kind == '[' && strcmp(key, "shape") == 0) {
        struct numbers l = {.v = e->shape, .most = K3_MAX_DIMS};
        const bool good = k3_scan_list(s, take_count, &l);
        e->has_shape = true;
        e->bad_dim = l.bad;
        e->ndim = l.n;
        return good;
    }
    if (kind == '[' && strcmp(key, "data_offsets") == 0) {
        struct numbers l = {.v = e->offsets, .most = 2};
        const bool good = k3_scan_list(s, take_count, &l);
        e->bad_offset = l.bad;
        e->n_offsets = l.n;
        return good;
    }
    return k3_scan_skip(s);
}

static enum k3_status bad(struct k3_error *err, const struct k3_shard *s, const char *name,
                          const char *what)
{
    return k3_fail(err, K3_FAILED, "%s: tensor %s: %s; %s", s->path, name, what, AGAIN);
}

static enum k3_status judge_dtype(const struct k3_shard *s, struct k3_tensor *t,
                                  const struct entry *e, uint32_t *bits, struct k3_error *err)
{
    if (!e->dtype)
        return bad(err, s, t->name, "dtype is missing or not a string");
    const struct dtype *d = dtype_find(e->dtype);
    if (!d) {
        char shown[K3_CKPT_NAME_SHOWN];
        k3_ckpt_clean(shown, sizeof shown, e->dtype);
        return k3_fail(err, K3_FAILED,
                       "%s: tensor %s: unknown dtype '%s'; only the released layout and its BF16 "
                       "and F32 exports can be used", s->path, t->name, shown);
    }
    t->dtype = d->id;
    t->dtype_name = d->name;
    *bits = d->bits;
    return K3_OK;
}

/* *bytes is what the shape takes at `bits` per element. */
static enum k3_status judge_shape(const struct k3_shard *s, struct k3_tensor *t,
                                  const struct entry *e, uint32_t bits, uint64_t *bytes,
                                  struct k3_error *err)
{
    if (!e->has_shape)
        return bad(err, s, t->name, "shape is missing or not a list");
    if (e->ndim > K3_MAX_DIMS)
        return k3_fail(err, K3_FAILED, "%s: tensor %s: %zu dimensions, at most %d are supported",
                       s->path, t->name, e->ndim, K3_MAX_DIMS);
    if (e->bad_dim)
        return bad(err, s, t->name, "a dimension is not a whole number of at least 0");
    t->ndim = (uint8_t)e->ndim;
    uint64_t total = bits;
    bool overflow = false, zero = false;
    for (size_t i = 0; i < e->ndim; i++) {
        t->shape[i] = e->shape[i];
        zero |= t->shape[i] == 0;
        overflow |= __builtin_mul_overflow(total, t->shape[i], &total);
    }
    if (zero)
        total = 0;
    else if (overflow || total % 8 != 0)
        return bad(err, s, t->name, "the shape is no whole number of bytes that 64 bits can count");
    *bytes = total / 8;
    return K3_OK;
}

static enum k3_status judge_offsets(const struct k3_shard *s, struct k3_tensor *t,
                                    const struct entry *e, uint64_t data, struct k3_error *err)
{
    if (e->n_offsets != 2 || e->bad_offset)
        return bad(err, s, t->name, "data_offsets is not a pair of whole numbers of at least 0");
    const uint64_t begin = e->offsets[0], end = e->offsets[1];
    if (begin > end)
        return k3_fail(err, K3_FAILED,
                       "%s: tensor %s: data_offsets [%" PRIu64 ", %" PRIu64 "] are reversed; %s",
                       s->path, t->name, begin, end, AGAIN);
    if (end > s->size - data)
        return k3_fail(err, K3_FAILED,
                       "%s: tensor %s ends at byte %" PRIu64 ", but the file has only %" PRIu64
                       " bytes; %s", s->path, t->name, data + end, s->size, AGAIN);
    t->offset = data + begin;
    t->bytes = end - begin;
    return K3_OK;
}

static enum k3_status judge_entry(const struct k3_shard *s, struct k3_tensor *t,
                                  const struct entry *e, uint64_t data, struct k3_error *err)
{
    uint32_t bits = 0;
    uint64_t bytes = 0;
    if (judge_dtype(s, t, e, &bits, err) != K3_OK ||
        judge_shape(s, t, e, bits, &bytes, err) != K3_OK ||
        judge_offsets(s, t, e, data, err) != K3_OK)
        return err->status;
    if (bytes != t->bytes)
        return k3_fail(err, K3_FAILED,
                       "%s: tensor %s: data_offsets span %" PRIu64 " bytes, but its shape and "
                       "dtype %s take %" PRIu64 "; %s", s->path, t->name, t->bytes,
                       t->dtype_name, bytes, AGAIN);
    return K3_OK;
}

/* ---- one shard --------------------------------------------------------------------------- */

/* A shard's header while it is entered. */
struct header {
    struct k3_checkpoint *c;
    const struct k3_shard *s;
    uint32_t shard;
    uint64_t data;                    /* where the tensors begin */
    size_t hint;                      /* place of the next tensor in the table, likely */
    const struct k3_tensor **filled;  /* those with bytes */
    size_t n, cap;
    bool sorted;                      /* by offset */
    bool has_metadata;
    struct k3_error *err;
};

static int by_offset(const void *a, const void *b)
{
    const struct k3_tensor *x = *(const struct k3_tensor *const *)a;
    const struct k3_tensor *y = *(const struct k3_tensor *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Refuses two tensors that share a byte. */
static enum k3_status check_overlaps(const struct header *h)
{
    const struct k3_tensor **v = h->filled;
    if (!h->sorted)
        qsort(v, h->n, sizeof *v, by_offset);
    for (size_t i = 1; i < h->n; i++)
        if (v[i]->offset < v[i - 1]->offset + v[i - 1]->bytes)
            return k3_fail(h->err, K3_FAILED,
                           "%s: tensor %s at byte %" PRIu64 " overlaps tensor %s, which ends at %"
                           PRIu64 "; %s", h->s->path, v[i]->name, v[i]->offset, v[i - 1]->name,
                           v[i - 1]->offset + v[i - 1]->bytes, AGAIN);
    return K3_OK;
}

static bool add_filled(struct header *h, const struct k3_tensor *t)
{
    if (h->n == h->cap) {
        const size_t cap = h->cap ? 2 * h->cap : 256;
        const struct k3_tensor **v = realloc(h->filled, cap * sizeof *v);
        if (!v) {
            k3_fail_memory(h->err, "a shard's header", cap * sizeof *v);
            return false;
        }
        h->filled = v;
        h->cap = cap;
    }
    h->sorted &= h->n == 0 || h->filled[h->n - 1]->offset <= t->offset;
    h->filled[h->n++] = t;
    return true;
}

/* The table's place for this name of the header. */
static struct k3_tensor *place(struct header *h, struct k3_scan *scan, const char *name)
{
    const struct k3_checkpoint *c = h->c;
    size_t i = k3_ckpt_search(c, name, h->hint);
    if (i == SIZE_MAX) {
        if (k3_ckpt_check_name(h->s->path, name, h->err) == K3_OK) /* those of the table are good */
            k3_fail(h->err, K3_FAILED,
                    "%s: tensor %s is not in the index: index and shard do not belong together; "
                    "fetch both again", h->s->path, name);
        return NULL;
    }
    if (c->tensors[i].shard != h->shard) {
        k3_fail(h->err, K3_FAILED, "%s: tensor %s is here too, but the index places it in %s: %s",
                h->s->path, name, c->shards[c->tensors[i].shard].name,
                "a name twice; fetch index and shards again");
        return NULL;
    }
    if (c->tensors[i].dtype_name) {
        k3_scan_twice(scan, name);
        return NULL;
    }
    h->hint = i + 1;
    return &c->tensors[i];
}

/* A member of the header: a tensor, or what the file says of itself. */
static bool take_tensor(void *ud, struct k3_scan *s, char *name, size_t len)
{
    struct header *h = ud;
    (void)len;
    if (strcmp(name, "__metadata__") == 0) {
        if (h->has_metadata)
            return k3_scan_twice(s, name);
        h->has_metadata = true;
        return k3_scan_skip(s);
    }
    struct k3_tensor *t = place(h, s, name);
    if (!t)
        return false;
    struct entry e = {.dtype = NULL};
    if (k3_scan_next(s) != '{') {
        if (k3_scan_skip(s))
            bad(h->err, h->s, t->name, "its entry is not an object");
        return false;
    }
    return k3_scan_object(s, K3_SCAN_WATCHED, take_entry_member, &e) &&
           judge_entry(h->s, t, &e, h->data, h->err) == K3_OK && (t->bytes == 0 || add_filled(h, t));
}

static void note_peak(struct k3_checkpoint *c, uint64_t length, const struct header *h)
{
    uint64_t held = length + h->cap * sizeof *h->filled;
    held = c->table_bytes + (length <= K3_CKPT_SIDE_BY_SIDE ? K3_CKPT_TEAM * held : held);
#pragma omp critical(k3_peak_bytes)
    if (held > c->peak_bytes)
        c->peak_bytes = held;
}

enum k3_status k3_ckpt_enter(struct k3_checkpoint *c, uint32_t shard, struct k3_error *err)
{
    const struct k3_shard *s = &c->shards[shard];
    struct header h = {.c = c, .s = s, .shard = shard, .sorted = true, .err = err};
    uint64_t length = 0;
    if (k3_ckpt_header_length(s, &length, err) != K3_OK)
        return err->status;
    char *text = malloc(length + 1);
    if (!text)
        return k3_fail_memory(err, "a shard's header", length + 1);
    text[length] = '\0';
    h.data = 8 + length;
    struct k3_scan scan;
    k3_scan_begin(&scan, text, length, s->path, "header", err);
    enum k3_status st = k3_ckpt_read_text(s->fd, 8, text, length, s->path, "header", err);
    if (st == K3_OK && !k3_scan_document(&scan, K3_SCAN_UNIQUE, take_tensor, &h))
        st = err->status;
    if (st == K3_OK)
        st = check_overlaps(&h);
    note_peak(c, length, &h);
    k3_scan_end(&scan);
    free(h.filled);
    free(text);
    return st;
}
