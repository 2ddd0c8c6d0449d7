/* fuzz_tokenizer.c - fuzz target: the tokenizer's two files, then a text encoded and decoded.
 *
 * Input: a byte of flags, then the parts model, config, text with a byte 0xFE between them. Flag 1
 * puts the 256 single bytes before the model, without which hardly any input is a vocabulary; flag
 * 2 allows special names. With libFuzzer, in a configured build folder:
 *
 *   clang -std=c11 -g -O1 -fsanitize=fuzzer,address,undefined -I. SRC/tests/fuzz_tokenizer.c \
 *       SRC/tests/text_fixture.c SRC/engine/text/[a-z]*.c SRC/engine/k3_error.c -lm -o fuzz
 *   ./fuzz -max_total_time=30 SRC/tests/data/corpus/tokenizer
 */
#include <stdlib.h>
#include <string.h>

#include "../engine/text/utf8.h"
#include "../engine/text/vocab.h"
#include "fuzz.h"
#include "text_fixture.h"

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* Decoding gives the text back, ill-formed parts repaired, whatever was special. */
static void round_trip(const k3_tokenizer *t, const char *text, size_t len, bool special)
{
    struct k3_ids ids = {0};
    struct k3_buf want = {0};
    struct k3_error err;
    char *got;
    size_t got_len;
    must(k3_encode(t, text, len, special, &ids, &err) == K3_OK);
    for (size_t i = 0; i < ids.n; i++)
        must(special || !k3_token_is_special(t, ids.v[i]));
    must(k3_decode(t, ids.v, ids.n, false, &got, &got_len, &err) == K3_OK);
    k3_utf8_repair(&want, text, len);
    must(got_len == want.n && (want.n == 0 || memcmp(got, want.v, want.n) == 0));
    free(got);
    k3_ids_free(&ids);
    k3_buf_free(&want);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const char *p = (const char *)data + 1, *const end = (const char *)data + size;
    const char *config = memchr(p, 0xFE, (size_t)(end - p));
    const char *text = config ? memchr(config + 1, 0xFE, (size_t)(end - config) - 1) : NULL;
    if (!text)
        return 0;
    struct k3_buf model = {0};
    struct k3_error err = {0};
    if (data[0] & 1)
        fixture_bytes_model(&model);
    k3_buf_put(&model, p, (size_t)(config - p));
    k3_tokenizer *t = calloc(1, sizeof *t);
    must(t && !model.failed);
    enum k3_status st = k3_vocab_parse(t, "model", model.v, model.n, &err);
    if (st == K3_OK)
        st = k3_specials_parse(t, "config", config + 1, (size_t)(text - config) - 1, &err);
    if (st == K3_OK)
        round_trip(t, text + 1, (size_t)(end - text) - 1, data[0] & 2);
    else
        must(st == K3_USAGE && err.message[0] != '\0');
    k3_tokenizer_close(t);
    k3_buf_free(&model);
    return 0;
}
