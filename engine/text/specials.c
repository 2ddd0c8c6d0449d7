/* specials.c - the 256 special ids: their names from tokenizer_config.json, and finding them. */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "vocab.h"

struct names {
    struct k3_tokenizer *t;
    const char *path;
    const struct k3_json *given[K3_SPECIALS]; /* STRING, or NULL: the reserved name */
    struct k3_error *err;
};

/* A name is a string, or an object that holds it as "content". NULL when it is neither. */
static const struct k3_json *name_of(const struct k3_json *j)
{
    if (j && j->type == K3_JSON_OBJECT)
        j = k3_json_get(j, "content");
    return j && j->type == K3_JSON_STRING ? j : NULL;
}

/* Decimal id to its offset among the specials, or -1. */
static int offset_of(const struct k3_tokenizer *t, const struct k3_json *key)
{
    uint64_t id = 0;
    for (size_t i = 0; i < key->len; i++) {
        if (key->text[i] < '0' || key->text[i] > '9' || id > UINT32_MAX)
            return -1;
        id = id * 10 + (uint64_t)(key->text[i] - '0');
    }
    if (key->len == 0 || id < t->n || id - t->n >= K3_SPECIALS)
        return -1;
    return (int)(id - t->n);
}

static enum k3_status read_names(struct names *s, const struct k3_json *config)
{
    const struct k3_json *added = k3_json_get(config, "added_tokens_decoder");
    if (!added)
        return K3_OK;
    if (added->type != K3_JSON_OBJECT)
        return k3_fail(s->err, K3_USAGE, "%s: added_tokens_decoder must be an object", s->path);
    for (size_t i = 0; i < added->n; i++) {
        const struct k3_json *key = &added->keys[i], *name = name_of(&added->items[i]);
        const int at = offset_of(s->t, key);
        if (at < 0)
            return k3_fail(s->err, K3_USAGE, "%s: added_tokens_decoder has the id \"%.32s\"; "
                           "special ids here are %" PRIu32 " to %" PRIu32, s->path, key->text,
                           s->t->n, s->t->n + K3_SPECIALS - 1);
        if (s->given[at])
            return k3_fail(s->err, K3_USAGE, "%s: added_tokens_decoder has the id %.32s twice",
                           s->path, key->text);
        if (!name || name->len == 0 || name->len > K3_TOKEN_MAX)
            return k3_fail(s->err, K3_USAGE, "%s: added_tokens_decoder.%.32s.content must be a "
                           "text of 1 to %d bytes", s->path, key->text, K3_TOKEN_MAX);
        s->given[at] = name;
    }
    return K3_OK;
}

/* Moves the names behind the ranks' bytes. */
static enum k3_status store_names(struct names *s)
{
    struct k3_tokenizer *t = s->t;
    size_t total = t->arena_bytes + K3_SPECIALS * 40;
    for (int i = 0; i < K3_SPECIALS; i++)
        total += s->given[i] ? s->given[i]->len : 0;
    unsigned char *arena = realloc(t->arena, total);
    if (!arena)
        return k3_fail_memory(s->err, "the tokenizer", total);
    t->arena = arena;
    size_t used = t->arena_bytes;
    for (uint32_t i = 0; i < K3_SPECIALS; i++) {
        char reserved[40];
        const int n = snprintf(reserved, sizeof reserved, "<|reserved_token_%" PRIu32 "|>",
                               t->n + i);
        const char *name = s->given[i] ? s->given[i]->text : reserved;
        const size_t len = s->given[i] ? s->given[i]->len : (size_t)n;
        memcpy(arena + used, name, len);
        t->at[t->n + i] = (uint32_t)used;
        t->len[t->n + i] = (uint16_t)len;
        used += len;
    }
    t->arena_bytes = used;
    arena = realloc(t->arena, used); /* smaller: if it fails, the old one is still good */
    if (arena)
        t->arena = arena;
    return K3_OK;
}

static int compare_names(const struct k3_tokenizer *t, int a, int b)
{
    const uint32_t x = t->n + (uint32_t)a, y = t->n + (uint32_t)b;
    const size_t n = t->len[x] < t->len[y] ? t->len[x] : t->len[y];
    const int c = memcmp(t->arena + t->at[x], t->arena + t->at[y], n);
    return c ? c : (int)t->len[x] - (int)t->len[y];
}

/* Sorts the names (an insertion sort does for 256) and refuses equal ones. */
static enum k3_status index_names(struct names *s)
{
    struct k3_tokenizer *t = s->t;
    for (int i = 0; i < K3_SPECIALS; i++) {
        int k = i;
        for (; k > 0 && compare_names(t, t->by_name[k - 1], i) > 0; k--)
            t->by_name[k] = t->by_name[k - 1];
        t->by_name[k] = (uint8_t)i;
        t->name_start[t->arena[t->at[t->n + (uint32_t)i]]] = true;
    }
    for (int k = 1; k < K3_SPECIALS; k++) {
        const int a = t->by_name[k - 1], b = t->by_name[k];
        if (compare_names(t, a, b) == 0)
            return k3_fail(s->err, K3_USAGE, "%s: the ids %" PRIu32 " and %" PRIu32 " have the "
                           "same name \"%.*s\"", s->path, t->n + (uint32_t)a, t->n + (uint32_t)b,
                           (int)t->len[t->n + (uint32_t)a],
                           (const char *)t->arena + t->at[t->n + (uint32_t)a]);
    }
    return K3_OK;
}

static void strip(struct k3_tokenizer *t, const struct k3_json *name)
{
    if (!name)
        return;
    const int i = k3_vocab_special_at(t, name->text, name->len);
    if (i >= 0 && t->len[t->n + (uint32_t)i] == name->len)
        t->stripped[i] = true;
}

/* Which ids "skip special" drops: those that these fields name. A field may name what is no special
 * token here; nothing can then produce it. */
static enum k3_status read_stripped(struct names *s, const struct k3_json *config)
{
    static const char *const fields[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const struct k3_json *j = k3_json_get(config, fields[i]);
        if (j && j->type != K3_JSON_NULL && !name_of(j))
            return k3_fail(s->err, K3_USAGE, "%s: %s must be a text", s->path, fields[i]);
        strip(s->t, name_of(j));
    }
    const struct k3_json *more = k3_json_get(config, "additional_special_tokens");
    if (!more || more->type == K3_JSON_NULL)
        return K3_OK;
    if (more->type != K3_JSON_ARRAY)
        return k3_fail(s->err, K3_USAGE, "%s: additional_special_tokens must be an array", s->path);
    for (size_t i = 0; i < more->n; i++) {
        if (!name_of(&more->items[i]))
            return k3_fail(s->err, K3_USAGE, "%s: additional_special_tokens[%zu] must be a text",
                           s->path, i);
        strip(s->t, name_of(&more->items[i]));
    }
    return K3_OK;
}

enum k3_status k3_specials_parse(struct k3_tokenizer *t, const char *path, const char *text,
                                 size_t size, struct k3_error *err)
{
    struct names s = {.t = t, .path = path, .err = err};
    struct k3_json *config = k3_json_parse(text, size, err);
    if (!config)
        return k3_fail_in(err, "%s", path);
    enum k3_status st = K3_OK;
    if (config->type != K3_JSON_OBJECT)
        st = k3_fail(err, K3_USAGE, "%s: must hold a JSON object", path);
    if (st == K3_OK)
        st = read_names(&s, config);
    if (st == K3_OK)
        st = store_names(&s);
    if (st == K3_OK)
        st = index_names(&s);
    if (st == K3_OK)
        st = read_stripped(&s, config);
    k3_json_free(config);
    return st;
}

/* In by_name[from..to), whose names are equal in their first k bytes: the first whose byte k is not
 * below c. A name that has no byte k stands before all. */
static int name_bound(const struct k3_tokenizer *t, int from, int to, size_t k, int c)
{
    while (from < to) {
        const int mid = from + (to - from) / 2;
        const uint32_t id = t->n + t->by_name[mid];
        if (t->len[id] <= k || t->arena[t->at[id] + k] < c)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

int k3_vocab_special_at(const struct k3_tokenizer *t, const char *p, size_t len)
{
    int lo = 0, hi = K3_SPECIALS, found = -1;
    for (size_t k = 0; k < len && lo < hi; k++) {
        const int c = (unsigned char)p[k];
        lo = name_bound(t, lo, hi, k, c);
        hi = name_bound(t, lo, hi, k, c + 1);
        if (lo < hi && t->len[t->n + t->by_name[lo]] == k + 1)
            found = t->by_name[lo]; /* the shortest of the range stands first */
    }
    return found;
}
