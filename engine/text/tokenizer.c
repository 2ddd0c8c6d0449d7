/* tokenizer.c - encoding and decoding over a loaded vocabulary. See tokenizer.h. */
#include <config.h>

#include "tokenizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pretoken.h"
#include "slurp.h"
#include "utf8.h"
#include "vocab.h"

/* ---- ids ----------------------------------------------------------------------------------- */

enum k3_status k3_ids_push(struct k3_ids *ids, int32_t id, struct k3_error *err)
{
    if (ids->n == ids->cap) {
        const size_t cap = ids->cap ? ids->cap * 2 : 64;
        int32_t *v = cap < SIZE_MAX / sizeof *v ? realloc(ids->v, cap * sizeof *v) : NULL;
        if (!v)
            return k3_fail_memory(err, "a list of token ids", cap * sizeof *v);
        ids->v = v;
        ids->cap = cap;
    }
    ids->v[ids->n++] = id;
    return K3_OK;
}

void k3_ids_free(struct k3_ids *ids)
{
    free(ids->v);
    *ids = (struct k3_ids){0};
}

/* ---- life ---------------------------------------------------------------------------------- */

typedef enum k3_status (*parse_fn)(struct k3_tokenizer *, const char *, const char *, size_t,
                                   struct k3_error *);

static enum k3_status load(k3_tokenizer *t, const char *dir, const char *name, parse_fn parse,
                           struct k3_error *err)
{
    struct k3_buf path = {0};
    size_t size;
    k3_buf_puts(&path, dir);
    k3_buf_puts(&path, "/");
    k3_buf_puts(&path, name);
    if (path.failed) {
        k3_buf_free(&path);
        return k3_fail_memory(err, "the tokenizer", strlen(dir));
    }
    enum k3_status st = K3_FAILED;
    char *text = k3_slurp(path.v, &size, err);
    if (text)
        st = parse(t, path.v, text, size, err);
    free(text);
    k3_buf_free(&path);
    return st;
}

k3_tokenizer *k3_tokenizer_open(const char *model_dir, struct k3_error *err)
{
    k3_tokenizer *t = calloc(1, sizeof *t);
    if (!t) {
        k3_fail_memory(err, "the tokenizer", sizeof *t);
        return NULL;
    }
    if (load(t, model_dir, "tiktoken.model", k3_vocab_parse, err) != K3_OK ||
        load(t, model_dir, "tokenizer_config.json", k3_specials_parse, err) != K3_OK) {
        k3_tokenizer_close(t);
        return NULL;
    }
    return t;
}

void k3_tokenizer_close(k3_tokenizer *t)
{
    if (!t)
        return;
    free(t->arena);
    free(t->at);
    free(t->len);
    free(t->slots);
    free(t);
}

size_t k3_tokenizer_ranks(const k3_tokenizer *t)
{
    return t->n;
}

size_t k3_tokenizer_vocab(const k3_tokenizer *t)
{
    return (size_t)t->n + K3_SPECIALS;
}

uint64_t k3_tokenizer_bytes(const k3_tokenizer *t)
{
    return sizeof *t + t->arena_bytes + k3_tokenizer_vocab(t) * (sizeof *t->at + sizeof *t->len) +
           ((uint64_t)t->mask + 1) * sizeof *t->slots;
}

/* ---- one id -------------------------------------------------------------------------------- */

static bool in_range(const k3_tokenizer *t, int32_t id)
{
    return id >= 0 && (size_t)id < k3_tokenizer_vocab(t);
}

const char *k3_token_bytes(const k3_tokenizer *t, int32_t id, size_t *len)
{
    *len = 0;
    if (!in_range(t, id))
        return NULL;
    *len = t->len[id];
    return (const char *)t->arena + t->at[id];
}

bool k3_token_is_special(const k3_tokenizer *t, int32_t id)
{
    return in_range(t, id) && (uint32_t)id >= t->n;
}

bool k3_token_is_stripped(const k3_tokenizer *t, int32_t id)
{
    return k3_token_is_special(t, id) && t->stripped[(uint32_t)id - t->n];
}

int32_t k3_token_special(const k3_tokenizer *t, const char *name)
{
    const size_t len = strlen(name);
    const int i = k3_vocab_special_at(t, name, len);
    if (i < 0 || t->len[t->n + (uint32_t)i] != len)
        return -1;
    return (int32_t)(t->n + (uint32_t)i);
}

/* ---- encoding ------------------------------------------------------------------------------ */

struct encoder {
    const k3_tokenizer *t;
    struct k3_bpe bpe;
    struct k3_ids *out;
    struct k3_error *err;
};

/* A span of ordinary text. */
static enum k3_status encode_span(struct encoder *e, const char *text, size_t len)
{
    enum k3_status st = K3_OK;
    for (size_t at = 0; st == K3_OK && at < len;) {
        const size_t n = k3_next_piece(text + at, len - at);
        st = k3_bpe_encode(e->t, &e->bpe, text + at, n, e->out, e->err);
        at += n;
    }
    return st;
}

/* A hard piece whose special names become their ids. */
static enum k3_status encode_with_names(struct encoder *e, const char *text, size_t len)
{
    enum k3_status st = K3_OK;
    size_t from = 0, at = 0;
    while (st == K3_OK && at < len) {
        const int special = e->t->name_start[(unsigned char)text[at]]
                                ? k3_vocab_special_at(e->t, text + at, len - at) : -1;
        if (special < 0) {
            at++;
            continue;
        }
        const uint32_t id = e->t->n + (uint32_t)special;
        st = encode_span(e, text + from, at - from);
        if (st == K3_OK)
            st = k3_ids_push(e->out, (int32_t)id, e->err);
        at += e->t->len[id];
        from = at;
    }
    return st == K3_OK ? encode_span(e, text + from, len - from) : st;
}

static enum k3_status encode_valid(struct encoder *e, const char *text, size_t len, bool allow)
{
    enum k3_status st = K3_OK;
    size_t chunk_used = 0;
    for (size_t at = 0; st == K3_OK && at < len;) {
        const size_t n = k3_next_hard_piece(text + at, len - at, &chunk_used);
        st = allow ? encode_with_names(e, text + at, n) : encode_span(e, text + at, n);
        at += n;
    }
    return st;
}

enum k3_status k3_encode(const k3_tokenizer *t, const char *text, size_t len, bool allow_special,
                         struct k3_ids *out, struct k3_error *err)
{
    struct encoder e = {.t = t, .out = out, .err = err};
    struct k3_buf repaired = {0};
    if (!k3_utf8_valid(text, len)) {
        k3_utf8_repair(&repaired, text, len);
        if (repaired.failed) {
            k3_buf_free(&repaired);
            return k3_fail_memory(err, "encoding a text", len);
        }
        text = repaired.v;
        len = repaired.n;
    }
    const enum k3_status st = encode_valid(&e, text, len, allow_special);
    k3_bpe_free(&e.bpe);
    k3_buf_free(&repaired);
    return st;
}

/* ---- decoding ------------------------------------------------------------------------------ */

static void put_text(void *ud, const char *text, size_t len)
{
    k3_buf_put(ud, text, len);
}

enum k3_status k3_decode(const k3_tokenizer *t, const int32_t *ids, size_t n, bool skip_special,
                         char **text, size_t *len, struct k3_error *err)
{
    struct k3_buf b = {0};
    struct k3_utf8 u = {{0}, 0};
    *text = NULL;
    *len = 0;
    for (size_t i = 0; i < n; i++) {
        size_t bytes;
        const char *p = k3_token_bytes(t, ids[i], &bytes);
        if (!p) {
            k3_buf_free(&b);
            return k3_fail(err, K3_USAGE, "token id %" PRId32 " at place %zu is not in the "
                           "vocabulary: ids are 0 to %zu", ids[i], i, k3_tokenizer_vocab(t) - 1);
        }
        if (!(skip_special && k3_token_is_stripped(t, ids[i])))
            k3_utf8_feed(&u, p, bytes, put_text, &b);
    }
    k3_utf8_end(&u, put_text, &b);
    *text = k3_buf_take(&b, len);
    return *text ? K3_OK : k3_fail_memory(err, "decoding token ids", n);
}
