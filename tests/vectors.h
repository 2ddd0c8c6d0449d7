/* vectors.h - checks of single test vectors, for run_vectors.c. The kinds are told apart by their
 * keys, so that a file may have any name. */
#ifndef K3_TEST_VECTORS_H
#define K3_TEST_VECTORS_H

#include "../engine/text/chat.h"
#include "../engine/text/json.h"
#include "../engine/text/tokenizer.h"

enum vec_result { VEC_PASS, VEC_FAIL, VEC_SKIP };

struct vec_env {
    const k3_tokenizer *tok; /* the one the file is about; NULL when there is none */
    char why[600];           /* filled on failure and skip */
};

/* Fills why; returns VEC_FAIL. */
enum vec_result vec_fail(struct vec_env *env, const char *fmt, ...) K3_PRINTF(2, 3);

enum vec_result vec_tok(struct vec_env *env, const struct k3_json *v);     /* text -> ids, pieces */
enum vec_result vec_long(struct vec_env *env, const struct k3_json *v);    /* generated texts */
enum vec_result vec_badutf8(struct vec_env *env, const struct k3_json *v); /* bytes -> ids */
enum vec_result vec_decode(struct vec_env *env, const struct k3_json *v);  /* ids -> text */
enum vec_result vec_render(struct vec_env *env, const struct k3_json *v);  /* to segments */
enum vec_result vec_parse(struct vec_env *env, const struct k3_json *v);   /* tokens -> answer */

/* ---- shared by the checks ------------------------------------------------------------------ */

const struct k3_json *vec_get(const struct k3_json *v, const char *key, enum k3_json_type type);
long long vec_int(const struct k3_json *j); /* -1 when it is no number */
bool vec_true(const struct k3_json *v, const char *key);
/* The bytes of base64 text, malloc'ed; NULL when it is none. */
char *vec_base64(const struct k3_json *j, size_t *len);
enum vec_result vec_same_ids(struct vec_env *env, const struct k3_ids *got,
                             const struct k3_json *want);
bool vec_same_text(struct vec_env *env, const char *what, const char *got, size_t len,
                   const struct k3_json *want);

void vec_sha256(const unsigned char *data, size_t len, char hex[65]);

#endif
