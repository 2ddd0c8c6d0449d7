/* tokenizer.h - K3's byte-pair tokenizer: tiktoken.model + tokenizer_config.json.
 *
 * Texts are bytes with a length; U+0000 is an ordinary character; ill-formed UTF-8 is read as one
 * U+FFFD per maximal ill-formed subpart. Ids 0..ranks-1 are tokens, ranks..ranks+255 are
 * special. */
#ifndef K3_TOKENIZER_H
#define K3_TOKENIZER_H

#include "../k3.h"

typedef struct k3_tokenizer k3_tokenizer;

/* A growing list of ids. Zero-initialise; free with k3_ids_free(). */
struct k3_ids {
    int32_t *v;
    size_t n, cap;
};
enum k3_status k3_ids_push(struct k3_ids *ids, int32_t id, struct k3_error *err);
void k3_ids_free(struct k3_ids *ids);

/* Reads model_dir/tiktoken.model and model_dir/tokenizer_config.json; any number of ranks. Refuses
 * (K3_FAILED: cannot be read; K3_USAGE: not understood) bad base64, an empty token, one longer than
 * K3_TOKEN_MAX bytes, a token or rank given twice, a gap in the ranks, a missing single byte,
 * special names that are empty or equal, and ids outside the 256 special ones; the message names
 * file and line. NULL on failure. The result is read-only: any number of threads may use it. */
enum { K3_TOKEN_MAX = 1024, K3_SPECIALS = 256 };
k3_tokenizer *k3_tokenizer_open(const char *model_dir, struct k3_error *err);
void k3_tokenizer_close(k3_tokenizer *t);

size_t k3_tokenizer_ranks(const k3_tokenizer *t);
size_t k3_tokenizer_vocab(const k3_tokenizer *t); /* ranks + 256 */
uint64_t k3_tokenizer_bytes(const k3_tokenizer *t); /* memory it holds */

/* Appends the ids of text. allow_special: the 256 names become their ids (of names that begin at
 * one place the longest); otherwise they are ordinary text. Needs memory for itself only while it
 * runs: at most about 30 bytes per byte of the longest piece, 200 KB. */
enum k3_status k3_encode(const k3_tokenizer *t, const char *text, size_t len, bool allow_special,
                         struct k3_ids *out, struct k3_error *err);

/* The bytes of one id (a special one: its name), not zero-terminated; they live as long as the
 * tokenizer. NULL when out of range. */
const char *k3_token_bytes(const k3_tokenizer *t, int32_t id, size_t *len);
bool k3_token_is_special(const k3_tokenizer *t, int32_t id);
bool k3_token_is_stripped(const k3_tokenizer *t, int32_t id); /* dropped by "skip special" */
int32_t k3_token_special(const k3_tokenizer *t, const char *name); /* -1 = no such name */

/* The ids as text: well-formed UTF-8, U+FFFD for what is ill-formed. *text is malloc'ed, with a
 * zero byte behind its len bytes. An id out of range: K3_USAGE. */
enum k3_status k3_decode(const k3_tokenizer *t, const int32_t *ids, size_t n, bool skip_special,
                         char **text, size_t *len, struct k3_error *err);

/* Streaming UTF-8 repair: keeps an incomplete character until it completes or proves ill-formed. */
struct k3_utf8 {
    unsigned char tail[4];
    size_t n;
};
typedef void (*k3_text_fn)(void *ud, const char *text, size_t len); /* whole characters */
void k3_utf8_feed(struct k3_utf8 *u, const char *bytes, size_t len, k3_text_fn fn, void *ud);
void k3_utf8_end(struct k3_utf8 *u, k3_text_fn fn, void *ud); /* U+FFFD for what is left */

#endif
