/* test_text.c - the tokenizer: loader faults, pieces, merging, names, UTF-8 streams. */
#include <config.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "../engine/text/pretoken.h"
#include "../engine/text/utf8.h"
#include "../engine/text/vocab.h"
#include "text_fixture.h"

/* A small generator, so that the texts are the same everywhere. */
static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* ---- loader -------------------------------------------------------------------------------- */

/* Opens a model that must be refused, and looks for two texts in the message. */
static void refused(const struct k3_buf *model, const char *config, enum k3_status status,
                    const char *one, const char *two)
{
    struct k3_error err = {0};
    char *dir = fixture_folder(model, config);
    k3_tokenizer *t = k3_tokenizer_open(dir, &err);
    fixture_remove(dir);
    assert_null(t);
    if (!strstr(err.message, one) || !strstr(err.message, two))
        fail_msg("message \"%s\" lacks \"%s\" or \"%s\"", err.message, one, two);
    assert_int_equal(err.status, status);
}

static void test_model_faults(void **state)
{
    static const struct {
        const char *line, *one, *two;
    } cases[] = {
        {"YWI= 257\n", "tiktoken.model line 257: rank 257 follows a gap", "rank 256 is missing"},
        {"YWI= 4000000000\n", "line 257: rank 4000000000 follows a gap", "rank 256 is missing"},
        {"YWI= 255\n", "line 257: rank 255 was given before", "in line 256"},
        {"YQ== 256\n", "line 257: this token was given before, in line 98", "YQ== 256"},
        {"YWI= 256\nYWI= 257\n", "line 258: this token was given before, in line 257", "YWI="},
        {"Y!I= 256\n", "line 257: not base64", "Y!I= 256"},
        {"YWI 256\n", "line 257: not base64", "tiktoken.model"},
        {"YWJ= 256\n", "line 257: not base64", "tiktoken.model"},
        {"Y=== 256\n", "line 257: not base64", "tiktoken.model"},
        {"YQ==YQ== 256\n", "line 257: not base64", "tiktoken.model"},
        {" 256\n", "line 257: an empty token", "tiktoken.model"},
        {"YWI=\n", "line 257: not \"<base64> <rank>\"", "tiktoken.model"},
        {"YWI= \n", "line 257: the rank is not a number", "tiktoken.model"},
        {"YWI= -1\n", "line 257: the rank is not a number", "tiktoken.model"},
        {"YWI= 0x100\n", "line 257: the rank is not a number", "tiktoken.model"},
        {"YWI=  256\n", "line 257: the rank is not a number", "tiktoken.model"},
        {"YWI= 99999999999999999999\n", "line 257: the rank is not a number", "tiktoken.model"},
        {"\r\n\nYWI= x\n", "line 259: the rank is not a number", "tiktoken.model"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k3_buf model = {0};
        fixture_bytes_model(&model);
        k3_buf_puts(&model, cases[i].line);
        refused(&model, "{}", K3_USAGE, cases[i].one, cases[i].two);
        k3_buf_free(&model);
    }
}

static void test_model_lengths(void **state)
{
    char token[K3_TOKEN_MAX + 1];
    struct k3_buf model = {0};
    (void)state;
    memset(token, 'a', sizeof token);
    fixture_bytes_model(&model);
    const size_t base = model.n;
    fixture_add_token(&model, token, K3_TOKEN_MAX + 1, 256);
    refused(&model, "{}", K3_USAGE, "line 257", "more than 1024 bytes");
    model.n = base;
    fixture_add_token(&model, token, K3_TOKEN_MAX, 256);
    k3_tokenizer *t = fixture_open(&model, "{}");
    assert_int_equal(k3_tokenizer_ranks(t), 257);
    k3_tokenizer_close(t);
    k3_buf_free(&model);
}

static void test_missing_byte(void **state)
{
    struct k3_buf model = {0};
    (void)state;
    refused(&model, "{}", K3_USAGE, "single byte 0x00", "0 tokens");
    for (unsigned i = 0; i < 256; i++) {
        const char two[] = {(char)i, 'b'};
        fixture_add_token(&model, two, i == 'a' ? 2 : 1, i);
    }
    refused(&model, "{}", K3_USAGE, "tiktoken.model", "single byte 0x61");
    k3_buf_free(&model);
}

static void test_config_faults(void **state)
{
    static const struct {
        const char *config, *text;
    } cases[] = {
        {"", "line 1, column 1"},
        {"{\n \"a\": tru}", "line 2, column 7"},
        {"[]", "must hold a JSON object"},
        {"{\"added_tokens_decoder\": []}", "added_tokens_decoder must be an object"},
        {"{\"added_tokens_decoder\": {\"255\": {\"content\": \"x\"}}}",
          "id \"255\"; special ids here are 256 to 511"},
        {"{\"added_tokens_decoder\": {\"512\": {\"content\": \"x\"}}}", "id \"512\""},
        {"{\"added_tokens_decoder\": {\"\": {\"content\": \"x\"}}}", "id \"\""},
        {"{\"added_tokens_decoder\": {\"2x\": {\"content\": \"x\"}}}", "id \"2x\""},
        {"{\"added_tokens_decoder\": {\"99999999999999999999999\": {\"content\": \"x\"}}}",
          "id \"9999"},
        {"{\"added_tokens_decoder\": {\"300\": {\"content\": \"x\"}, \"300\": {"
          "\"content\": \"y\"}}}", "id 300 twice"},
        {"{\"added_tokens_decoder\": {\"300\": {\"content\": \"\"}}}",
          "added_tokens_decoder.300.content"},
        {"{\"added_tokens_decoder\": {\"300\": {\"content\": 7}}}",
          "added_tokens_decoder.300.content"},
        {"{\"added_tokens_decoder\": {\"300\": 7}}", "added_tokens_decoder.300.content"},
        {"{\"added_tokens_decoder\": {\"300\": {\"content\": \"x\"}, \"301\": {"
          "\"content\": \"x\"}}}",
         "300 and 301 have the same name \"x\""},
        {"{\"added_tokens_decoder\": {\"300\": {\"content\": \"<|reserved_token_301|>\"}}}",
          "same name"},
        {"{\"bos_token\": 7}", "bos_token must be a text"},
        {"{\"additional_special_tokens\": \"x\"}", "additional_special_tokens must be an array"},
        {"{\"additional_special_tokens\": [\"x\", 7]}",
          "additional_special_tokens[1] must be a text"},
    };
    struct k3_buf model = {0};
    (void)state;
    fixture_bytes_model(&model);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(&model, cases[i].config, K3_USAGE, "tokenizer_config.json", cases[i].text);
    refused(&model, NULL, K3_FAILED, "tokenizer_config.json", "cannot be opened");
    refused(NULL, "{}", K3_FAILED, "tiktoken.model", "cannot be opened");
    k3_buf_free(&model);
}

static void test_not_a_file(void **state)
{
    struct k3_error err;
    char path[4096];
    char *dir = fixture_folder(NULL, "{}");
    (void)state;
    snprintf(path, sizeof path, "%s/tiktoken.model", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(k3_tokenizer_open(dir, &err)); /* and does not wait for a writer */
    assert_non_null(strstr(err.message, "is not a regular file"));
    fixture_remove(dir);
    assert_null(k3_tokenizer_open("/no/such/folder", &err));
    assert_non_null(strstr(err.message, "/no/such/folder/tiktoken.model"));
}

/* Other line ends, empty lines and another order of the lines change nothing. */
static void test_line_ends(void **state)
{
    struct k3_buf plain = {0}, other = {0};
    (void)state;
    fixture_bytes_model(&plain);
    k3_buf_puts(&other, "\n\r\rYWI= 256\r\n\r\n");
    for (size_t i = 0; i < plain.n; i++)
        k3_buf_puts(&other, plain.v[i] == '\n' ? "\r" : (char[]){plain.v[i], 0});
    k3_tokenizer *t = fixture_open(&other, "{}");
    size_t len;
    const char *p = k3_token_bytes(t, 256, &len);
    assert_int_equal(len, 2);
    assert_memory_equal(p, "ab", 2);
    p = k3_token_bytes(t, 98, &len);
    assert_int_equal(len, 1);
    assert_int_equal(*p, 'b');
    k3_tokenizer_close(t);
    k3_buf_free(&plain);
    k3_buf_free(&other);
}

static void test_specials(void **state)
{
    struct k3_buf model = {0};
    size_t len;
    (void)state;
    fixture_bytes_model(&model);
    k3_tokenizer *t = fixture_open(&model,
        "{\"added_tokens_decoder\": {\"256\": {\"content\": \"<a>\", \"special\": false},"
        " \"300\": {\"content\": \"<ab\", \"special\": true}},"
        " \"bos_token\": {\"content\": \"<a>\"}, \"pad_token\": null, \"eos_token\": \"nobody\"}");
    assert_int_equal(k3_tokenizer_vocab(t), 512);
    assert_int_equal(k3_token_special(t, "<a>"), 256);
    assert_int_equal(k3_token_special(t, "<ab"), 300);
    assert_int_equal(k3_token_special(t, "<|reserved_token_301|>"), 301);
    assert_int_equal(k3_token_special(t, "<|reserved_token_300|>"), -1);
    assert_int_equal(k3_token_special(t, "<|reserved_token_301|>x"), -1);
    assert_int_equal(k3_token_special(t, ""), -1);
    assert_true(k3_token_is_stripped(t, 256));
    assert_false(k3_token_is_stripped(t, 300)); /* the flag in the file decides nothing */
    assert_false(k3_token_is_special(t, 255));
    assert_true(k3_token_is_special(t, 511));
    assert_false(k3_token_is_special(t, 512));
    assert_null(k3_token_bytes(t, 512, &len));
    assert_null(k3_token_bytes(t, -1, &len));
    k3_tokenizer_close(t);
    k3_buf_free(&model);
}

static void test_memory(void **state)
{
    k3_tokenizer *t = fixture_mini();
    (void)state;
    /* Bytes, table and lengths; no allocation for each token. */
    assert_true(k3_tokenizer_bytes(t) < 64 * 1024);
    k3_tokenizer_close(t);
    k3_tokenizer_close(NULL);
}

/* ---- pieces -------------------------------------------------------------------------------- */

static void pieces_are(const char *text, const char *const *want)
{
    size_t at = 0, len = strlen(text);
    for (; *want; want++) {
        assert_true(at < len);
        const size_t n = k3_next_piece(text + at, len - at);
        if (n != strlen(*want) || memcmp(text + at, *want, n) != 0)
            fail_msg("a piece of \"%s\" is \"%.*s\", expected \"%s\"", text, (int)n, text + at,
                *want);
        at += n;
    }
    assert_int_equal(at, len);
}
#define PIECES(text, ...) pieces_are(text, (const char *const[]){__VA_ARGS__, NULL})

static void test_pieces(void **state)
{
    (void)state;
    PIECES(" 中文", " ", "中文");
    PIECES("A中B", "A", "中", "B");
    PIECES("x々y", "x", "々", "y");
    PIECES("!⺀", "!⺀");
    PIECES("1〇〇〇", "1〇〇", "〇");
    PIECES("!\n/x", "!\n", "/x");
    PIECES("\u0301A!", "\u0301", "A", "!");
    PIECES("!!\u0301", "!!\u0301");
    PIECES("'llama", "'llama");
    PIECES("1's", "1", "'s");
    PIECES("don't", "don't");
    PIECES("DON'T've", "DON'T", "'ve");
    PIECES("x'\u017f", "x'\u017f");
    PIECES("x’s", "x", "’s");
    PIECES("camelCase", "camel", "Case");
    PIECES("ABCDef", "ABCDef");
    PIECES("\x1c\x1c a", "\x1c\x1c", " a");
    PIECES("12345", "123", "45");
    PIECES("a   b", "a", "  ", " b");
    PIECES("a   ", "a", "   ");
    PIECES(" \n \n  b", " \n \n", " ", " b");
    PIECES("\r\nx", "\r\n", "x");
    PIECES(" !?\r\n\nx", " !?\r\n\n", "x");
    PIECES("  !", " ", " !");
    PIECES("\xe3\x80\x80x", "\xe3\x80\x80x"); /* any white space may be the prefix of a word */
}

/* ---- encoding ------------------------------------------------------------------------------ */

static struct k3_ids encode(const k3_tokenizer *t, const char *text, size_t len, bool special)
{
    struct k3_ids ids = {0};
    struct k3_error err;
    assert_int_equal(k3_encode(t, text, len, special, &ids, &err), K3_OK);
    return ids;
}

static void test_empty_and_zero(void **state)
{
    k3_tokenizer *t = fixture_mini();
    (void)state;
    struct k3_ids ids = encode(t, "", 0, true);
    assert_int_equal(ids.n, 0);
    k3_ids_free(&ids);
    ids = encode(t, "a\0b", 3, false);
    assert_int_equal(ids.n, 3);
    k3_ids_free(&ids);
    k3_tokenizer_close(t);
}

/* No text whatever gives a special id when names are not allowed. */
static void test_no_forgery(void **state)
{
    static const char *const parts[] = {"<|", "|>", "open", "<|open|>", "[EOS]", "[", "]", "EOS",
        " ",
                                        "<|end_of_msg|>", "<|sep|>", "<", "|", ">", "\n", "[PAD]"};
    k3_tokenizer *t = fixture_mini();
    uint64_t seed = 1;
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct k3_buf text = {0};
        k3_buf_puts(&text, "x");
        for (int i = 0; i < 20; i++)
            k3_buf_puts(&text, parts[next_random(&seed) % (sizeof parts / sizeof *parts)]);
        struct k3_ids ids = encode(t, text.v, text.n, false);
        for (size_t i = 0; i < ids.n; i++)
            assert_false(k3_token_is_special(t, ids.v[i]));
        k3_ids_free(&ids);
        k3_buf_free(&text);
    }
    for (int32_t id = (int32_t)k3_tokenizer_ranks(t); k3_token_is_special(t, id); id++) {
        size_t len;
        const char *name = k3_token_bytes(t, id, &len);
        struct k3_ids plain = encode(t, name, len, false), named = encode(t, name, len, true);
        assert_int_equal(named.n, 1);
        assert_int_equal(named.v[0], id);
        for (size_t i = 0; i < plain.n; i++)
            assert_false(k3_token_is_special(t, plain.v[i]));
        k3_ids_free(&plain);
        k3_ids_free(&named);
    }
    k3_tokenizer_close(t);
}

/* Merging as it is defined: search all pairs for the lowest rank, merge it, again. */
static size_t merge_plainly(const k3_tokenizer *t, const char *p, size_t len, int32_t *out)
{
    size_t end[512], n = len;
    for (size_t i = 0; i < len; i++)
        end[i] = i + 1;
    for (;;) {
        uint32_t best = K3_NO_RANK;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const size_t from = i ? end[i - 1] : 0;
            const uint32_t rank = k3_vocab_find(t, p + from, end[i + 1] - from);
            if (rank < best) {
                best = rank;
                at = i;
            }
        }
        if (best == K3_NO_RANK)
            break;
        memmove(end + at, end + at + 1, (n - at - 1) * sizeof *end);
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t from = i ? end[i - 1] : 0;
        out[i] = (int32_t)k3_vocab_find(t, p + from, end[i] - from);
    }
    return n;
}

/* A vocabulary where merges compete: random strings of a and b, each made of two shorter tokens. */
static k3_tokenizer *rivals(void)
{
    struct k3_buf model = {0};
    char tokens[400][24];
    size_t n = 2, rank = 256;
    uint64_t seed = 7;
    fixture_bytes_model(&model);
    strcpy(tokens[0], "a");
    strcpy(tokens[1], "b");
    while (n < 120) {
        const char *x = tokens[next_random(&seed) % n], *y = tokens[next_random(&seed) % n];
        char both[64];
        snprintf(both, sizeof both, "%s%s", x, y);
        bool known = strlen(both) > 20;
        if (!known)
            memcpy(tokens[n], both, sizeof tokens[n]);
        for (size_t i = 0; i < n && !known; i++)
            known = strcmp(tokens[i], tokens[n]) == 0;
        if (!known)
            n++;
    }
    /* Longer ones first, so that the lowest rank is often a late one. */
    for (size_t i = n; i-- > 2;)
        fixture_add_token(&model, tokens[i], strlen(tokens[i]), (unsigned)rank++);
    k3_tokenizer *t = fixture_open(&model, "{}");
    k3_buf_free(&model);
    return t;
}

static void test_merging(void **state)
{
    k3_tokenizer *const tokenizers[] = {fixture_mini(), rivals()};
    static const char *const alphabets[] = {"the ansoir", "ab"};
    struct k3_bpe bpe = {0};
    uint64_t seed = 3;
    (void)state;
    for (int round = 0; round < 600; round++) {
        const k3_tokenizer *t = tokenizers[round % 2];
        const char *alphabet = alphabets[round % 2];
        char text[300];
        int32_t want[300];
        const size_t len = 1 + next_random(&seed) % sizeof text;
        struct k3_ids got = {0};
        struct k3_error err;
        for (size_t i = 0; i < len; i++)
            text[i] = alphabet[next_random(&seed) % strlen(alphabet)];
        assert_int_equal(k3_bpe_encode(t, &bpe, text, len, &got, &err), K3_OK);
        if (k3_vocab_find(t, text, len) == K3_NO_RANK) {
            assert_int_equal(got.n, merge_plainly(t, text, len, want));
            assert_memory_equal(got.v, want, got.n * sizeof *want);
        } else {
            assert_int_equal(got.n, 1);
        }
        k3_ids_free(&got);
    }
    k3_bpe_free(&bpe);
    k3_tokenizer_close(tokenizers[0]);
    k3_tokenizer_close(tokenizers[1]);
}

/* Work grows with n log n, counted in lookups and heap steps rather than timed. */
static void test_linear(void **state)
{
    struct k3_buf model = {0};
    char run[64];
    (void)state;
    memset(run, 'a', sizeof run);
    fixture_bytes_model(&model);
    for (unsigned k = 0; k < 6; k++)
        fixture_add_token(&model, run, (size_t)2 << k, 256 + k);
    k3_tokenizer *t = fixture_open(&model, "{}");
    for (size_t n = 1000; n <= 1000000; n *= 10) {
        char *text = malloc(n);
        struct k3_bpe bpe = {0};
        struct k3_ids ids = {0};
        struct k3_error err;
        assert_non_null(text);
        memset(text, 'a', n);
        assert_int_equal(k3_bpe_encode(t, &bpe, text, n, &ids, &err), K3_OK);
        assert_true(bpe.lookups <= 3 * n + 1);
        assert_true((double)bpe.moves <= 6 * (double)n * log2((double)n));
        assert_true(ids.n >= n / 64 && ids.n <= n / 64 + 6);
        k3_ids_free(&ids);
        k3_bpe_free(&bpe);
        free(text);
    }
    k3_tokenizer_close(t);
    k3_buf_free(&model);
}

static void test_decode_range(void **state)
{
    k3_tokenizer *t = fixture_mini();
    struct k3_error err;
    char *text = (char *)1;
    size_t len;
    const int32_t ids[] = {0, (int32_t)k3_tokenizer_vocab(t)};
    (void)state;
    assert_int_equal(k3_decode(t, ids, 2, false, &text, &len, &err), K3_USAGE);
    assert_non_null(strstr(err.message, "at place 1"));
    assert_null(text);
    assert_int_equal(k3_decode(t, ids, 0, false, &text, &len, &err), K3_OK);
    assert_int_equal(len, 0);
    assert_string_equal(text, "");
    free(text);
    k3_tokenizer_close(t);
}

/* ---- UTF-8 --------------------------------------------------------------------------------- */

static void put_text(void *ud, const char *text, size_t len)
{
    assert_true(k3_utf8_valid(text, len)); /* whole characters only */
    k3_buf_put(ud, text, len);
}

#define R "\xEF\xBF\xBD"

static void test_utf8_streams(void **state)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        {"plain", "plain"}, {"\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x99\x82", "é中\xF0\x9F\x99\x82"},
        {"\xFF", R}, {"a\x80" "b", "a" R "b"}, {"\xC3(", R "("}, {"\xE4\xB8", R}, {"\xC0\xAF", R R},
        {"\xED\xA0\x80", R R R}, {"\xF4\x90\x80\x80", R R R R}, {"\xF0\x9F\x98", R},
        /* Unicode 16, tables 3-8 to 3-11 */
        {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82" "A", R R R R R R R R "A"},
        {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF" "A", R R R R R R R R "A"},
        {"\xF4\x91\x92\x93\xFF" "A\x80\xBF" "B", R R R R R "A" R R "B"},
        {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF" "A", R R R R "A"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *p = cases[i].bytes;
        const size_t len = strlen(p);
        for (size_t a = 0; a <= len; a++) {
            for (size_t b = a; b <= len; b++) {
                struct k3_utf8 u = {{0}, 0};
                struct k3_buf out = {0};
                k3_utf8_feed(&u, p, a, put_text, &out);
                k3_utf8_feed(&u, p + a, b - a, put_text, &out);
                k3_utf8_feed(&u, p + b, len - b, put_text, &out);
                k3_utf8_end(&u, put_text, &out);
                assert_string_equal(out.v, cases[i].text);
                k3_buf_free(&out);
            }
        }
    }
}

/* Every well-formed sequence and no other passes, as the encoding of some scalar value. */
static void test_utf8_all(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        if (cp == 0xD800)
            cp = 0xE000;
        struct k3_buf b = {0};
        size_t used, again;
        k3_utf8_put(&b, cp);
        assert_int_equal(k3_utf8_step(b.v, b.n, &used), K3_UTF8_GOOD);
        assert_int_equal(used, b.n);
        assert_int_equal(k3_utf8_get(b.v, &again), cp);
        assert_int_equal(again, b.n);
        k3_buf_free(&b);
        if (cp > 0x3000 && cp % 16 == 0)
            cp += 13; /* enough of the long ranges */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_faults), cmocka_unit_test(test_model_lengths),
        cmocka_unit_test(test_missing_byte), cmocka_unit_test(test_config_faults),
        cmocka_unit_test(test_not_a_file),   cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_specials),     cmocka_unit_test(test_memory),
        cmocka_unit_test(test_pieces),       cmocka_unit_test(test_empty_and_zero),
        cmocka_unit_test(test_no_forgery),   cmocka_unit_test(test_merging),
        cmocka_unit_test(test_linear),       cmocka_unit_test(test_decode_range),
        cmocka_unit_test(test_utf8_streams), cmocka_unit_test(test_utf8_all),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
