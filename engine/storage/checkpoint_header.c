/* checkpoint_header.c - safetensors headers: JSON in, checked tensors out. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint_internal.h"

#define HEADER_MAX 100000000u /* the limit of the safetensors library */
#define NAME_SHOWN 200        /* of a name in a message, when it is too long to be true */
#define AGAIN "the file is damaged or incomplete: fetch it again"

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

/* What comes out of a damaged file goes to a terminal: no control characters. */
static void clean(char *out, size_t cap, const char *text)
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
    char shown[NAME_SHOWN];
    clean(shown, sizeof shown, name);
    return k3_fail(err, K3_FAILED,
                   "%s: the name '%s' is empty, over 1000 bytes long or holds control characters; "
                   "%s", file, shown, AGAIN);
}

/* ---- reading JSON ------------------------------------------------------------------------ */

struct source {
    int fd, error;
    uint64_t at, left;
};

/* json_load_callback_t */
static size_t source_read(void *buf, size_t cap, void *ud)
{
    struct source *s = ud;
    size_t want = s->left < cap ? (size_t)s->left : cap;
    ssize_t got;
    do
        got = pread(s->fd, buf, want, (off_t)s->at);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        s->error = errno;
        return (size_t)-1;
    }
    s->at += (uint64_t)got;
    s->left -= (uint64_t)got;
    return (size_t)got;
}

json_t *k3_ckpt_json(int fd, uint64_t offset, uint64_t bytes, const char *file, const char *what,
                     struct k3_error *err)
{
    struct source s = {.fd = fd, .at = offset, .left = bytes};
    json_error_t e;
    json_t *j = json_load_callback(source_read, &s, JSON_REJECT_DUPLICATES, &e);
    if (j && s.error == 0 && json_is_object(j))
        return j;
    if (s.error) {
        k3_fail(err, K3_FAILED, "%s: reading the %s failed: %s", file, what, strerror(s.error));
    } else if (j) {
        k3_fail(err, K3_FAILED, "%s: the %s is not a JSON object; %s", file, what, AGAIN);
    } else {
        char text[sizeof e.text];
        clean(text, sizeof text, e.text);
        k3_fail(err, K3_FAILED, "%s: the %s is not valid JSON (line %d, column %d: %s); %s", file,
                what, e.line, e.column, text, AGAIN);
    }
    json_decref(j);
    return NULL;
}

static enum k3_status header_length(const struct k3_shard *s, uint64_t *length,
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

json_t *k3_ckpt_header(const struct k3_shard *s, uint64_t *data, struct k3_error *err)
{
    uint64_t length = 0;
    if (header_length(s, &length, err) != K3_OK)
        return NULL;
    *data = 8 + length;
    return k3_ckpt_json(s->fd, 8, length, s->path, "header", err);
}

/* ---- one tensor -------------------------------------------------------------------------- */

static enum k3_status bad(struct k3_error *err, const struct k3_shard *s, const char *name,
                          const char *what)
{
    return k3_fail(err, K3_FAILED, "%s: tensor %s: %s; %s", s->path, name, what, AGAIN);
}

static enum k3_status parse_dtype(const struct k3_shard *s, struct k3_tensor *t, const json_t *v,
                                  uint32_t *bits, struct k3_error *err)
{
    const char *text = json_string_value(json_object_get(v, "dtype"));
    if (!text)
        return bad(err, s, t->name, "dtype is missing or not a string");
    const struct dtype *d = dtype_find(text);
    if (!d) {
        char shown[NAME_SHOWN];
        clean(shown, sizeof shown, text);
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
static enum k3_status parse_shape(const struct k3_shard *s, struct k3_tensor *t, const json_t *v,
                                  uint32_t bits, uint64_t *bytes, struct k3_error *err)
{
    const json_t *shape = json_object_get(v, "shape");
    if (!json_is_array(shape))
        return bad(err, s, t->name, "shape is missing or not a list");
    size_t n = json_array_size(shape);
    if (n > K3_MAX_DIMS)
        return k3_fail(err, K3_FAILED, "%s: tensor %s: %zu dimensions, at most %d are supported",
                       s->path, t->name, n, K3_MAX_DIMS);
    t->ndim = (uint8_t)n;
    uint64_t total = bits;
    bool overflow = false, zero = false;
    for (size_t i = 0; i < n; i++) {
        const json_t *dim = json_array_get(shape, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return bad(err, s, t->name, "a dimension is not a whole number of at least 0");
        t->shape[i] = (uint64_t)json_integer_value(dim);
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

static enum k3_status parse_offsets(const struct k3_shard *s, struct k3_tensor *t, const json_t *v,
                                    uint64_t data, struct k3_error *err)
{
    const json_t *a = json_object_get(v, "data_offsets");
    const json_t *b = json_array_get(a, 0), *e = json_array_get(a, 1);
    if (json_array_size(a) != 2 || !json_is_integer(b) || !json_is_integer(e) ||
        json_integer_value(b) < 0 || json_integer_value(e) < 0)
        return bad(err, s, t->name, "data_offsets is not a pair of whole numbers of at least 0");
    uint64_t begin = (uint64_t)json_integer_value(b), end = (uint64_t)json_integer_value(e);
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

static enum k3_status parse_tensor(const struct k3_shard *s, struct k3_tensor *t, const json_t *v,
                                   uint64_t data, struct k3_error *err)
{
    if (!json_is_object(v))
        return bad(err, s, t->name, "its entry is not an object");
    uint32_t bits = 0;
    uint64_t bytes = 0;
    if (parse_dtype(s, t, v, &bits, err) != K3_OK ||
        parse_shape(s, t, v, bits, &bytes, err) != K3_OK ||
        parse_offsets(s, t, v, data, err) != K3_OK)
        return err->status;
    if (bytes != t->bytes)
        return k3_fail(err, K3_FAILED,
                       "%s: tensor %s: data_offsets span %" PRIu64 " bytes, but its shape and "
                       "dtype %s take %" PRIu64 "; %s", s->path, t->name, t->bytes,
                       t->dtype_name, bytes, AGAIN);
    return K3_OK;
}

/* ---- one shard --------------------------------------------------------------------------- */

static int by_offset(const void *a, const void *b)
{
    const struct k3_tensor *x = *(const struct k3_tensor *const *)a;
    const struct k3_tensor *y = *(const struct k3_tensor *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Sorts v and refuses two tensors that share a byte. */
static enum k3_status check_overlaps(const struct k3_shard *s, const struct k3_tensor **v, size_t n,
                                     struct k3_error *err)
{
    qsort(v, n, sizeof *v, by_offset);
    for (size_t i = 1; i < n; i++)
        if (v[i]->offset < v[i - 1]->offset + v[i - 1]->bytes)
            return k3_fail(err, K3_FAILED,
                           "%s: tensor %s at byte %" PRIu64 " overlaps tensor %s, which ends at %"
                           PRIu64 "; %s", s->path, v[i]->name, v[i]->offset, v[i - 1]->name,
                           v[i - 1]->offset + v[i - 1]->bytes, AGAIN);
    return K3_OK;
}

/* The table's place for this name of the header. */
static struct k3_tensor *place(struct k3_checkpoint *c, uint32_t shard, const char *name,
                               size_t *hint, struct k3_error *err)
{
    const struct k3_shard *s = &c->shards[shard];
    if (k3_ckpt_check_name(s->path, name, err) != K3_OK)
        return NULL;
    size_t i = k3_ckpt_search(c, name, *hint);
    if (i == SIZE_MAX) {
        k3_fail(err, K3_FAILED,
                "%s: tensor %s is not in the index: index and shard do not belong together; fetch "
                "both again", s->path, name);
        return NULL;
    }
    if (c->tensors[i].shard != shard) {
        k3_fail(err, K3_FAILED, "%s: tensor %s is here too, but the index places it in %s: %s",
                s->path, name, c->shards[c->tensors[i].shard].name,
                "a name twice; fetch index and shards again");
        return NULL;
    }
    *hint = i + 1;
    return &c->tensors[i];
}

enum k3_status k3_ckpt_enter(struct k3_checkpoint *c, uint32_t shard, struct k3_error *err)
{
    const struct k3_shard *s = &c->shards[shard];
    uint64_t data = 0;
    json_t *header = k3_ckpt_header(s, &data, err);
    if (!header)
        return err->status;
    const struct k3_tensor **filled = calloc(json_object_size(header) + 1, sizeof *filled);
    if (!filled) {
        json_decref(header);
        return k3_fail_memory(err, "a shard's header", json_object_size(header) * sizeof *filled);
    }
    enum k3_status st = K3_OK;
    size_t n = 0, hint = 0;
    const char *name;
    json_t *v;
    json_object_foreach (header, name, v) {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        struct k3_tensor *t = place(c, shard, name, &hint, err);
        st = t ? parse_tensor(s, t, v, data, err) : err->status;
        if (st != K3_OK)
            break;
        if (t->bytes > 0)
            filled[n++] = t;
    }
    if (st == K3_OK)
        st = check_overlaps(s, filled, n, err);
    /* What jansson took is about eight times the text. */
    uint64_t held = 10 * (data - 8) + n * sizeof *filled;
    held = c->table_bytes + (data - 8 <= K3_CKPT_SIDE_BY_SIDE ? K3_CKPT_TEAM * held : held);
#pragma omp critical(k3_peak_bytes)
    if (held > c->peak_bytes)
        c->peak_bytes = held;
    free(filled);
    json_decref(header);
    return st;
}
