/* vectors_tok.c - tokenizer vectors: ids, pieces, cuts, decoding. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/text/buf.h"
#include "../engine/text/pretoken.h"
#include "../engine/text/utf8.h"
#include "vectors.h"

enum vec_result vec_fail(struct vec_env *env, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(env->why, sizeof env->why, fmt, ap);
    va_end(ap);
    for (char *c = env->why; *c; c++)
        if (*c == '\n' || *c == '\r') /* the report is a line */
            *c = ' ';
    return VEC_FAIL;
}

const struct k3_json *vec_get(const struct k3_json *v, const char *key, enum k3_json_type type)
{
    const struct k3_json *j = k3_json_get(v, key);
    return j && j->type == type ? j : NULL;
}

long long vec_int(const struct k3_json *j)
{
    return j && j->type == K3_JSON_NUMBER ? strtoll(j->text, NULL, 10) : -1;
}

bool vec_true(const struct k3_json *v, const char *key)
{
    return vec_get(v, key, K3_JSON_TRUE) != NULL;
}

char *vec_base64(const struct k3_json *j, size_t *len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (!j || j->type != K3_JSON_STRING)
        return NULL;
    char *out = malloc(j->len / 4 * 3 + 3);
    uint32_t bits = 0;
    int n_bits = 0;
    *len = 0;
    for (size_t i = 0; out && i < j->len && j->text[i] != '='; i++) {
        const char *d = j->text[i] ? strchr(digits, j->text[i]) : NULL;
        if (!d) {
            free(out);
            return NULL;
        }
        bits = bits << 6 | (uint32_t)(d - digits);
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[(*len)++] = (char)(bits >> n_bits);
        }
    }
    return out;
}

enum vec_result vec_same_ids(struct vec_env *env, const struct k3_ids *got,
                             const struct k3_json *want)
{
    for (size_t i = 0; i < got->n && i < want->n; i++)
        if (got->v[i] != vec_int(&want->items[i]))
            return vec_fail(env, "id %zu is %d, expected %lld", i, (int)got->v[i],
                            vec_int(&want->items[i]));
    if (got->n != want->n)
        return vec_fail(env, "%zu ids, expected %zu", got->n, want->n);
    return VEC_PASS;
}

bool vec_same_text(struct vec_env *env, const char *what, const char *got, size_t len,
                   const struct k3_json *want)
{
    if (want && want->type == K3_JSON_STRING && want->len == len &&
        (len == 0 || memcmp(got, want->text, len) == 0))
        return true;
    vec_fail(env, "%s is \"%.*s\", expected \"%.200s\"", what, (int)(len < 200 ? len : 200),
             len ? got : "", want && want->type == K3_JSON_STRING ? want->text : "(no text)");
    return false;
}

/* ---- text to ids --------------------------------------------------------------------------- */

static enum vec_result same_pieces(struct vec_env *env, const struct k3_json *text,
                                   const struct k3_json *want)
{
    size_t chunk = 0, n = 0;
    for (size_t at = 0; at < text->len;) {
        const size_t end = at + k3_next_hard_piece(text->text + at, text->len - at, &chunk);
        for (; at < end; n++) {
            const size_t len = k3_next_piece(text->text + at, end - at);
            if (n >= want->n || vec_int(&want->items[n]) != (long long)len)
                return vec_fail(env, "piece %zu has %zu bytes, expected %lld", n, len,
                                n < want->n ? vec_int(&want->items[n]) : 0LL);
            at += len;
        }
    }
    return n == want->n ? VEC_PASS : vec_fail(env, "%zu pieces, expected %zu", n, want->n);
}

/* What was encoded decodes to itself. */
static enum vec_result decodes_to(struct vec_env *env, const struct k3_ids *ids,
                                  const struct k3_json *text)
{
    struct k3_error err;
    char *got;
    size_t len;
    if (k3_decode(env->tok, ids->v, ids->n, false, &got, &len, &err) != K3_OK)
        return vec_fail(env, "decoding: %s", err.message);
    const bool same = vec_same_text(env, "the text decoded again", got, len, text);
    free(got);
    return same ? VEC_PASS : VEC_FAIL;
}

enum vec_result vec_tok(struct vec_env *env, const struct k3_json *v)
{
    const struct k3_json *text = vec_get(v, "text", K3_JSON_STRING);
    const struct k3_json *ids = vec_get(v, "ids", K3_JSON_ARRAY);
    const struct k3_json *pieces = vec_get(v, "pieces", K3_JSON_ARRAY);
    struct k3_ids got = {0};
    struct k3_error err;
    if (!text || !ids)
        return vec_fail(env, "has no text or no ids");
    enum vec_result r = VEC_PASS;
    const bool allow = vec_true(v, "allow_special");
    if (k3_encode(env->tok, text->text, text->len, allow, &got, &err) != K3_OK)
        r = vec_fail(env, "%s", err.message);
    if (r == VEC_PASS)
        r = vec_same_ids(env, &got, ids);
    if (r == VEC_PASS && pieces)
        r = same_pieces(env, text, pieces);
    if (r == VEC_PASS)
        r = decodes_to(env, &got, text);
    k3_ids_free(&got);
    return r;
}

/* ---- generated texts ----------------------------------------------------------------------- */

static bool generate(const struct k3_json *gen, struct k3_buf *out)
{
    for (size_t i = 0; i < gen->n; i++) {
        const struct k3_json *g = &gen->items[i];
        if (g->type != K3_JSON_ARRAY || g->n != 2 || g->items[0].type != K3_JSON_STRING)
            return false;
        for (long long k = vec_int(&g->items[1]); k > 0; k--)
            k3_buf_put(out, g->items[0].text, g->items[0].len);
    }
    k3_buf_put(out, "", 0);
    return !out->failed;
}

static size_t count_chars(const char *p, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)p[i] & 0xC0) != 0x80;
    return n;
}

static enum vec_result same_cuts(struct vec_env *env, const struct k3_buf *text,
                                 const struct k3_json *want)
{
    size_t chunk = 0, n = 0;
    for (size_t at = 0; at < text->n; n++) {
        const size_t len = k3_next_hard_piece(text->v + at, text->n - at, &chunk);
        const size_t chars = count_chars(text->v + at, len);
        if (n >= want->n || vec_int(&want->items[n]) != (long long)chars)
            return vec_fail(env, "hard piece %zu has %zu code points", n, chars);
        at += len;
    }
    return n == want->n ? VEC_PASS : vec_fail(env, "%zu hard pieces, expected %zu", n, want->n);
}

static enum vec_result same_digest(struct vec_env *env, const struct k3_ids *got,
                                   const struct k3_json *v)
{
    const struct k3_json *head = vec_get(v, "head", K3_JSON_ARRAY);
    const struct k3_json *sha = vec_get(v, "sha256", K3_JSON_STRING);
    if (vec_int(k3_json_get(v, "n_ids")) != (long long)got->n)
        return vec_fail(env, "%zu ids, expected %lld", got->n, vec_int(k3_json_get(v, "n_ids")));
    for (size_t i = 0; head && i < head->n && i < got->n; i++)
        if (got->v[i] != vec_int(&head->items[i]))
            return vec_fail(env, "id %zu is %d", i, (int)got->v[i]);
    unsigned char *bytes = malloc(got->n * 4 + 1);
    if (!bytes || !sha) {
        free(bytes);
        return vec_fail(env, "no memory or no sha256");
    }
    for (size_t i = 0; i < got->n * 4; i++)
        bytes[i] = (unsigned char)((uint32_t)got->v[i / 4] >> i % 4 * 8);
    char hex[65];
    vec_sha256(bytes, got->n * 4, hex);
    free(bytes);
    return vec_same_text(env, "sha256", hex, 64, sha) ? VEC_PASS : VEC_FAIL;
}

enum vec_result vec_long(struct vec_env *env, const struct k3_json *v)
{
    const struct k3_json *gen = vec_get(v, "gen", K3_JSON_ARRAY);
    const struct k3_json *cuts = vec_get(v, "cuts", K3_JSON_ARRAY);
    struct k3_buf text = {0};
    struct k3_ids got = {0};
    struct k3_error err;
    enum vec_result r = VEC_PASS;
    if (!gen || !generate(gen, &text))
        r = vec_fail(env, "gen is not understood");
    else if (vec_int(k3_json_get(v, "chars")) != (long long)count_chars(text.v, text.n))
        r = vec_fail(env, "the text has %zu code points", count_chars(text.v, text.n));
    else if (k3_encode(env->tok, text.v, text.n, vec_true(v, "allow_special"), &got, &err) != K3_OK)
        r = vec_fail(env, "%s", err.message);
    if (r == VEC_PASS && cuts)
        r = same_cuts(env, &text, cuts);
    if (r == VEC_PASS)
        r = same_digest(env, &got, v);
    k3_buf_free(&text);
    k3_ids_free(&got);
    return r;
}

/* ---- bytes that are not UTF-8, and decoding ------------------------------------------------ */

enum vec_result vec_badutf8(struct vec_env *env, const struct k3_json *v)
{
    const struct k3_json *ids = vec_get(v, "ids", K3_JSON_ARRAY);
    size_t len;
    char *bytes = vec_base64(k3_json_get(v, "bytes_b64"), &len);
    struct k3_ids got = {0};
    struct k3_error err;
    struct k3_buf repaired = {0};
    if (!bytes || !ids) {
        free(bytes);
        return vec_fail(env, "has no bytes or no ids");
    }
    enum vec_result r = VEC_PASS;
    if (k3_encode(env->tok, bytes, len, false, &got, &err) != K3_OK)
        r = vec_fail(env, "%s", err.message);
    if (r == VEC_PASS)
        r = vec_same_ids(env, &got, ids);
    k3_utf8_repair(&repaired, bytes, len);
    if (r == VEC_PASS && !vec_same_text(env, "the text", repaired.v, repaired.n,
                                        k3_json_get(v, "as_text")))
        r = VEC_FAIL;
    free(bytes);
    k3_buf_free(&repaired);
    k3_ids_free(&got);
    return r;
}

static enum vec_result same_decoded(struct vec_env *env, const struct k3_ids *ids, bool skip,
                                    const struct k3_json *want)
{
    struct k3_error err;
    char *text;
    size_t len;
    if (k3_decode(env->tok, ids->v, ids->n, skip, &text, &len, &err) != K3_OK)
        return vec_fail(env, "%s", err.message);
    const bool same = vec_same_text(env, skip ? "text_skip_special" : "text", text, len, want);
    free(text);
    return same ? VEC_PASS : VEC_FAIL;
}

static enum vec_result same_bytes(struct vec_env *env, const struct k3_ids *ids,
                                  const struct k3_json *want)
{
    struct k3_buf got = {0};
    size_t len, want_len;
    for (size_t i = 0; i < ids->n; i++) {
        const char *p = k3_token_bytes(env->tok, ids->v[i], &len);
        if (p)
            k3_buf_put(&got, p, len);
    }
    char *bytes = vec_base64(want, &want_len);
    const bool same = bytes && !got.failed && got.n == want_len &&
                      (got.n == 0 || memcmp(got.v, bytes, got.n) == 0);
    free(bytes);
    k3_buf_free(&got);
    return same ? VEC_PASS : vec_fail(env, "the bytes differ");
}

enum vec_result vec_decode(struct vec_env *env, const struct k3_json *v)
{
    const struct k3_json *ids = vec_get(v, "ids", K3_JSON_ARRAY);
    struct k3_ids list = {0};
    struct k3_error err;
    enum vec_result r = ids ? VEC_PASS : vec_fail(env, "has no ids");
    for (size_t i = 0; r == VEC_PASS && i < ids->n; i++)
        if (k3_ids_push(&list, (int32_t)vec_int(&ids->items[i]), &err) != K3_OK)
            r = vec_fail(env, "%s", err.message);
    if (r == VEC_PASS)
        r = same_bytes(env, &list, k3_json_get(v, "bytes_b64"));
    if (r == VEC_PASS)
        r = same_decoded(env, &list, false, k3_json_get(v, "text"));
    if (r == VEC_PASS)
        r = same_decoded(env, &list, true, k3_json_get(v, "text_skip_special"));
    k3_ids_free(&list);
    return r;
}
