/* test_checkpoint.c - folders of shards, whole and damaged: what is accepted, and what each refusal
 * says. */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../engine/storage/checkpoint.h"

#define INDEX "model.safetensors.index.json"
#define SINGLE "model.safetensors"
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- scratch folder ---------------------------------------------------------------------- */

static char dir[160];
static char paths[32][320]; /* to be removed afterwards */
static size_t n_paths;

static int setup(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/k3ck-XXXXXX", tmp && strlen(tmp) < 140 ? tmp : "/tmp");
    n_paths = 0;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    while (n_paths > 0)
        remove(paths[--n_paths]);
    return rmdir(dir);
}

static const char *in_dir(const char *name)
{
    for (size_t i = 0; i < n_paths; i++)
        if (strcmp(strrchr(paths[i], '/') + 1, name) == 0)
            return paths[i];
    assert_true(n_paths < COUNT(paths));
    snprintf(paths[n_paths], sizeof paths[n_paths], "%s/%s", dir, name);
    return paths[n_paths++];
}

static void put_raw(const char *name, const void *data, size_t n)
{
    FILE *f = fopen(in_dir(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void put_text(const char *name, const char *text)
{
    put_raw(name, text, strlen(text));
}

/* A shard of this header and `data` bytes counting up from 0. */
static void put_shard(const char *name, const char *header, size_t data)
{
    size_t n = strlen(header);
    uint8_t *b = malloc(8 + n + data);
    assert_non_null(b);
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)((uint64_t)n >> 8 * i);
    memcpy(b + 8, header, n);
    for (size_t i = 0; i < data; i++)
        b[8 + n + i] = (uint8_t)i;
    put_raw(name, b, 8 + n + data);
    free(b);
}

/* The index {"a": s1, "b": s2}. */
static void put_index(const char *a, const char *b)
{
    char text[1000];
    snprintf(text, sizeof text,
             "{\"metadata\":{},\"weight_map\":{\"a\":\"%s\",\"b\":\"%s\"}}", a, b);
    put_text(INDEX, text);
}

#define A_HEADER "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}"
#define B_HEADER "{\"b\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[0,4]}}"

static void put_good_pair(void)
{
    put_index("s1", "s2");
    put_shard("s1", A_HEADER, 4);
    put_shard("s2", B_HEADER, 4);
}

static struct k3_checkpoint *open_good(void)
{
    struct k3_error err = {0};
    struct k3_checkpoint *c = k3_checkpoint_open(dir, NULL, NULL, &err);
    if (!c)
        fail_msg("%s", err.message);
    return c;
}

/* Opening fails, and the message holds every one of the words, separated by '|'. */
static void check_refused(const char *folder, const char *words)
{
    struct k3_error err = {0};
    struct k3_checkpoint *c = k3_checkpoint_open(folder, NULL, NULL, &err);
    assert_null(c);
    assert_int_equal(err.status, K3_FAILED);
    char copy[1000];
    snprintf(copy, sizeof copy, "%s", words);
    char *save = NULL;
    for (char *w = strtok_r(copy, "|", &save); w; w = strtok_r(NULL, "|", &save))
        if (!strstr(err.message, w))
            fail_msg("'%s' is not in: %s", w, err.message);
}

/* ---- whole checkpoints ------------------------------------------------------------------- */

static void count_progress(void *ud, const char *what, uint64_t done, uint64_t total)
{
    assert_string_equal(what, "indexing shards");
    assert_true(done <= total && total == 2);
    ++*(int *)ud;
}

static void test_two_shards(void **state)
{
    (void)state;
    put_text(INDEX, "{\"metadata\":{\"total_size\":99},\"weight_map\":{\"w.z\":\"s2\","
                    "\"w.a\":\"s1\",\"w.empty\":\"s1\",\"w.f\":\"s2\"}}");
    put_shard("s1",
              "{\"__metadata__\":{\"format\":\"pt\"},"
              "\"w.a\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
              "\"w.empty\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[0,0]}}     ", 16);
    put_shard("s2",
              "{\"w.z\":{\"dtype\":\"F8_E4M3\",\"shape\":[],\"data_offsets\":[8,9]},"
              "\"w.f\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"note\":1}}", 20);
    int calls = 0;
    struct k3_error err = {0};
    struct k3_checkpoint *c = k3_checkpoint_open(dir, count_progress, &calls, &err);
    assert_non_null(c);
    assert_true(calls >= 2);
    assert_int_equal(c->n_shards, 2);
    assert_int_equal(c->n_tensors, 4);
    for (size_t i = 1; i < c->n_tensors; i++)
        assert_true(strcmp(c->tensors[i - 1].name, c->tensors[i].name) < 0);
    const struct k3_tensor *t = k3_checkpoint_find(c, "w.a");
    assert_non_null(t);
    assert_int_equal(t->dtype, K3_DT_BF16);
    assert_int_equal(t->ndim, 2);
    assert_int_equal(t->shape[1], 3);
    assert_int_equal(t->bytes, 12);
    assert_int_equal(t->offset, c->shards[t->shard].size - 12);
    assert_string_equal(c->shards[t->shard].name, "s1");
    t = k3_checkpoint_find(c, "w.z");
    assert_int_equal(t->dtype, K3_DT_OTHER);
    assert_string_equal(t->dtype_name, "F8_E4M3");
    assert_int_equal(k3_checkpoint_find(c, "w.empty")->bytes, 0);
    assert_null(k3_checkpoint_find(c, "w"));
    assert_null(k3_checkpoint_find(c, "zzz"));
    assert_true(c->table_bytes > 0 && c->peak_bytes >= c->table_bytes);
    k3_checkpoint_drop_tensors(c);
    assert_int_equal(c->n_tensors, 0);
    assert_null(k3_checkpoint_find(c, "w.a"));
    k3_checkpoint_close(c);
}

static void test_read(void **state)
{
    (void)state;
    put_shard(SINGLE,
              "{\"b\":{\"dtype\":\"BF16\",\"shape\":[6],\"data_offsets\":[0,12]},"
              "\"u\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[20,24]},"
              "\"f\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[12,20]}}", 24);
    struct k3_checkpoint *c = open_good();
    struct k3_error err = {0};
    float out[6];
    uint32_t bits;
    const struct k3_tensor *b = k3_checkpoint_find(c, "b"), *f = k3_checkpoint_find(c, "f");
    assert_int_equal(k3_checkpoint_read_f32(c, b, out, 6, &err), K3_OK);
    memcpy(&bits, &out[5], sizeof bits);
    assert_int_equal(bits, 0x0B0A0000u);
    assert_int_equal(k3_checkpoint_read_f32(c, f, out, 2, &err), K3_OK);
    memcpy(&bits, &out[1], sizeof bits);
    assert_int_equal(bits, 0x13121110u);
    /* Not what was asked for. */
    assert_int_equal(k3_checkpoint_read_f32(c, f, out, 3, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "tensor f: 2 elements of F32, wanted are 3"));
    const struct k3_tensor *u = k3_checkpoint_find(c, "u");
    assert_int_equal(k3_checkpoint_read_f32(c, u, out, 4, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "4 elements of U8"));
    /* Cut off under us. */
    assert_int_equal(truncate(in_dir(SINGLE), (off_t)(f->offset + 4)), 0);
    assert_int_equal(k3_checkpoint_read_f32(c, f, out, 2, &err), K3_FAILED);
    char want[40];
    snprintf(want, sizeof want, "ends at byte %d, 4 bytes early", (int)f->offset + 4);
    assert_non_null(strstr(err.message, want));
    assert_non_null(strstr(err.message, SINGLE));
    k3_checkpoint_close(c);
}

static void test_read_many(void **state)
{
    (void)state;
    enum { N = 10001 };
    put_shard(SINGLE, "{\"b\":{\"dtype\":\"BF16\",\"shape\":[10001],\"data_offsets\":[0,20002]}}",
              2 * N);
    struct k3_checkpoint *c = open_good();
    struct k3_error err = {0};
    float *out = calloc(N, sizeof *out);
    assert_int_equal(k3_checkpoint_read_f32(c, k3_checkpoint_find(c, "b"), out, N, &err), K3_OK);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t bits, lo = 2 * i & 0xFF, hi = (2 * i + 1) & 0xFF;
        memcpy(&bits, &out[i], sizeof bits);
        assert_int_equal(bits, hi << 24 | lo << 16);
    }
    free(out);
    k3_checkpoint_close(c);
}

static void test_symlinked_shards(void **state)
{
    (void)state;
    put_good_pair();
    assert_int_equal(rename(in_dir("s2"), in_dir("elsewhere")), 0);
    assert_int_equal(symlink("elsewhere", in_dir("s2")), 0);
    k3_checkpoint_close(open_good());
}

static void test_many_tensors(void **state)
{
    (void)state;
    enum { N = 20000 };
    char *index = malloc(N * 80), *header = malloc(N * 120);
    size_t a = (size_t)sprintf(index, "{\"weight_map\":{");
    size_t b = (size_t)sprintf(header, "{");
    for (int i = 0; i < N; i++) { /* not in the order of the names */
        int k = i * 7919 % N;
        a += (size_t)sprintf(index + a, "%s\"layers.%d.weight\":\"s1\"", i ? "," : "", k);
        b += (size_t)sprintf(header + b,
                             "%s\"layers.%d.weight\":{\"dtype\":\"U8\",\"shape\":[1],"
                             "\"data_offsets\":[%d,%d]}", i ? "," : "", N - 1 - k, i, i + 1);
    }
    strcpy(index + a, "}}");
    strcpy(header + b, "}");
    put_text(INDEX, index);
    put_shard("s1", header, N);
    free(index);
    free(header);
    struct k3_checkpoint *c = open_good();
    assert_int_equal(c->n_tensors, N);
    for (int i = 0; i < N; i++) {
        char name[40];
        snprintf(name, sizeof name, "layers.%d.weight", N - 1 - i * 7919 % N);
        const struct k3_tensor *t = k3_checkpoint_find(c, name);
        assert_non_null(t);
        assert_int_equal(t->offset, c->shards[0].size - N + (size_t)i);
    }
    k3_checkpoint_close(c);
}

static void test_oracle(void **state)
{
    (void)state;
    const char *shared = getenv("K3_SHARED");
    char path[1000];
    snprintf(path, sizeof path, "%s/oracle/case-a", shared ? shared : "");
    if (!shared || access(path, R_OK) != 0)
        skip();
    struct k3_error err = {0};
    struct k3_checkpoint *c = k3_checkpoint_open(path, NULL, NULL, &err);
    assert_non_null(c);
    assert_int_equal(c->n_shards, 15);
    assert_non_null(k3_checkpoint_find(c, "language_model.lm_head.weight"));
    k3_checkpoint_close(c);
}

/* ---- damaged headers --------------------------------------------------------------------- */

#define T(dtype, shape, offsets) \
    "\"t\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct {
    const char *header;
    const char *words; /* the file's name is expected in every message */
} bad_headers[] = {
    {"{" T("\"U8\"", "[4]", "[0,4]"), "the header is not valid JSON (line 1|fetch it again"},
    {"[1]", "the header is not a JSON object"},
    {"", "the header is not valid JSON"},
    {"{" T("\"U8\"", "[4]", "[0,4]") "," T("\"U8\"", "[4]", "[4,8]") "}",
     "not valid JSON|duplicate object key|\"t\""},
    {"{\"t\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
     "duplicate object key"},
    {"{" T("\"U8\"", "[4]", "[0,4]") "}x", "end of file expected"},
    /* nothing that moves the cursor of the terminal */
    {"{" T("\"U8\"", "[4]", "[0,4]") "}\x1b[2J", "expected near '?'"},
    {"{\"t\":7}", "tensor t: its entry is not an object"},
    {"{\"t\":{\"shape\":[4],\"data_offsets\":[0,4]}}", "tensor t: dtype is missing"},
    {"{" T("8", "[4]", "[0,4]") "}", "tensor t: dtype is missing or not a string"},
    {"{" T("\"Q4_K\"", "[4]", "[0,4]") "}", "tensor t: unknown dtype 'Q4_K'|BF16"},
    {"{\"t\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}}", "tensor t: shape is missing"},
    {"{" T("\"U8\"", "{}", "[0,4]") "}", "tensor t: shape is missing or not a list"},
    {"{" T("\"U8\"", "[-4]", "[0,4]") "}", "tensor t: a dimension is not a whole number"},
    {"{" T("\"U8\"", "[4.0]", "[0,4]") "}", "tensor t: a dimension is not a whole number"},
    {"{" T("\"U8\"", "[1,1,1,1,1,1,1,1,4]", "[0,4]") "}", "tensor t: 9 dimensions, at most 8"},
    {"{" T("\"F32\"", "[4294967296,4294967296]", "[0,4]") "}", "tensor t: the shape is no whole"},
    {"{" T("\"F4\"", "[3]", "[0,1]") "}", "tensor t: the shape is no whole number of bytes"},
    {"{\"t\":{\"dtype\":\"U8\",\"shape\":[4]}}", "tensor t: data_offsets is not a pair"},
    {"{" T("\"U8\"", "[4]", "[0,4,8]") "}", "tensor t: data_offsets is not a pair"},
    {"{" T("\"U8\"", "[4]", "[0,\"4\"]") "}", "tensor t: data_offsets is not a pair"},
    {"{" T("\"U8\"", "[4]", "[-4,0]") "}", "tensor t: data_offsets is not a pair"},
    {"{" T("\"U8\"", "[4]", "[0,99999999999999999999]") "}", "not valid JSON|too big integer"},
    {"{" T("\"U8\"", "[4]", "[4,0]") "}", "tensor t: data_offsets [4, 0] are reversed"},
    {"{" T("\"U8\"", "[4]", "[60,64]") "}", "tensor t ends at byte 127, but the file has only 95"},
    {"{" T("\"U8\"", "[4]", "[0,9223372036854775807]") "}", "the file has only"},
    {"{" T("\"U8\"", "[5]", "[0,4]") "}", "tensor t: data_offsets span 4 bytes|dtype U8 take 5"},
    {"{" T("\"BF16\"", "[4]", "[0,4]") "}", "span 4 bytes|dtype BF16 take 8"},
    {"{" T("\"U8\"", "[0]", "[0,4]") "}", "span 4 bytes|take 0"},
    {"{" T("\"U8\"", "[8]", "[4,12]")
     ",\"s\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}",
     "tensor t at byte|overlaps tensor s, which ends at"},
    {"{" T("\"U8\"", "[8]", "[0,8]")
     ",\"s\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}", "overlaps tensor"},
    {"{\"\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "the name '' is empty"},
    {"{\"a\\u001b[0m\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
     "the name 'a?[0m'|control characters"},
    {"{\"a\\u0000b\":1}", "not valid JSON"},
};

static void test_bad_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad_headers); i++) {
        put_shard(SINGLE, bad_headers[i].header, 32);
        check_refused(dir, bad_headers[i].words);
        check_refused(dir, in_dir(SINGLE));
    }
}

static void test_long_name(void **state)
{
    (void)state;
    char header[1200];
    memset(header, 'n', sizeof header);
    memcpy(header, "{\"", 2);
    strcpy(header + 1100, "\":1}");
    put_shard(SINGLE, header, 0);
    check_refused(dir, "over 1000 bytes");
}

static void test_bad_lengths(void **state)
{
    (void)state;
    put_raw(SINGLE, "", 0);
    check_refused(dir, SINGLE "|0 bytes are too few for a safetensors header|fetch it again");
    put_raw(SINGLE, "12345", 5);
    check_refused(dir, SINGLE "|5 bytes are too few");
    put_raw(SINGLE, "\x40\0\0\0\0\0\0\0{}", 10);
    check_refused(dir, SINGLE "|header length 64, but the file has only 10 bytes");
    put_raw(SINGLE, "\0\xe1\xf5\x05\x01\0\0\0{}", 10);
    check_refused(dir, SINGLE "|header length 4394967296 is over 100000000");
    put_raw(SINGLE, "\x01\xe1\xf5\x05\0\0\0\0{}", 10);
    check_refused(dir, "header length 100000001 is over 100000000");
    put_raw(SINGLE, "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    check_refused(dir, "header length 18446744073709551615 is over");
}

/* Any damage to a header is refused or harmless; a tensor never leaves its file. */
static void test_damaged_anywhere(void **state)
{
    (void)state;
    static const char good[] =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]}}";
    static const char bytes[] = "\"{}[],:019-.eU\\ \x80\0";
    char header[sizeof good];
    for (size_t at = 0; at + 1 < sizeof good; at++)
        for (size_t k = at % 3; k < sizeof bytes - 1; k += 3) {
            memcpy(header, good, sizeof good);
            header[at] = bytes[k];
            put_shard(SINGLE, header, 16);
            struct k3_error err = {0};
            struct k3_checkpoint *c = k3_checkpoint_open(dir, NULL, NULL, &err);
            assert_true(c || err.message[0]);
            for (size_t i = 0; c && i < c->n_tensors; i++)
                assert_true(c->tensors[i].offset + c->tensors[i].bytes <= c->shards[0].size);
            k3_checkpoint_close(c);
        }
}

/* ---- damaged indexes --------------------------------------------------------------------- */

static const struct {
    const char *text, *words;
} bad_indexes[] = {
    {"{\"weight_map\":{\"a\":\"s1\",\"b\":\"s2\"}", "the index is not valid JSON"},
    {"[]", "the index is not a JSON object"},
    {"", "the index is not valid JSON"},
    {"{\"metadata\":{}}", "weight_map is missing, empty or not an object"},
    {"{\"weight_map\":{}}", "weight_map is missing, empty or not an object"},
    {"{\"weight_map\":[\"a\"]}", "weight_map is missing, empty or not an object"},
    {"{\"weight_map\":{\"a\":1}}", "weight_map: tensor a: its shard is not a file name"},
    {"{\"weight_map\":{\"a\":\"s1\",\"a\":\"s2\"}}", "duplicate object key|\"a\""},
    {"{\"weight_map\":{\"a\":\"\"}}", "the name '' is empty"},
    {"{\"weight_map\":{\"a\":\"s1\\n\"}}", "the name 's1?'"},
    {"{\"weight_map\":{\"a\":\"../s1\"}}", "tensor a: the shard '../s1' is not a plain file name"},
    {"{\"weight_map\":{\"a\":\"/etc/hosts\"}}", "the shard '/etc/hosts' is not a plain file name"},
    {"{\"weight_map\":{\"a\":\"sub/s1\"}}", "the shard 'sub/s1' is not a plain file name"},
    {"{\"weight_map\":{\"a\":\"..\"}}", "the shard '..' is not a plain file name"},
    {"{\"weight_map\":{\"a\":\".\"}}", "the shard '.' is not a plain file name"},
};

static void test_bad_indexes(void **state)
{
    (void)state;
    put_good_pair();
    for (size_t i = 0; i < COUNT(bad_indexes); i++) {
        put_text(INDEX, bad_indexes[i].text);
        check_refused(dir, bad_indexes[i].words);
        check_refused(dir, in_dir(INDEX));
    }
}

static void test_index_and_shards_disagree(void **state)
{
    (void)state;
    put_good_pair();
    put_shard("s2", "{}", 4);
    check_refused(dir, "/s2|tensor b is promised by the index and missing");
    put_shard("s2",
              "{\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
              "\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}", 8);
    check_refused(dir, "/s2|tensor x is not in the index");
    put_shard("s2",
              "{\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
              "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}", 8);
    check_refused(dir, "/s2|tensor a is here too, but the index places it in s1|a name twice");
}

static void test_missing_shards(void **state)
{
    (void)state;
    put_index("s1", "s2");
    put_shard("s2", B_HEADER, 4);
    check_refused(dir, "/s1|missing (1 of 2 shards are)|complete the download");
    assert_int_equal(unlink(in_dir("s2")), 0);
    check_refused(dir, "/s1|missing (2 of 2 shards are)");
}

static void test_odd_files(void **state)
{
    (void)state;
    put_good_pair();
    assert_int_equal(unlink(in_dir("s1")), 0);
    assert_int_equal(mkfifo(in_dir("s1"), 0600), 0); /* must not hang */
    check_refused(dir, "/s1|cannot be opened|not a regular file");
    assert_int_equal(unlink(in_dir("s1")), 0);
    assert_int_equal(mkdir(in_dir("s1"), 0700), 0);
    check_refused(dir, "/s1|cannot be opened|Is a directory");
    assert_int_equal(unlink(in_dir(INDEX)), 0);
    assert_int_equal(mkdir(in_dir(INDEX), 0700), 0);
    check_refused(dir, INDEX "|cannot be opened|Is a directory");
}

static void test_no_checkpoint(void **state)
{
    (void)state;
    char path[300];
    check_refused(dir, "neither " INDEX " nor " SINGLE "|name the folder that holds the check");
    snprintf(path, sizeof path, "%s/none", dir);
    check_refused(path, "/none|No such file or directory");
    put_text("plain", "x");
    check_refused(in_dir("plain"), "/plain: not a folder");
}

static void test_truncated_shard(void **state)
{
    (void)state;
    put_good_pair();
    put_shard("s2", B_HEADER, 3);
    char words[200];
    size_t size = 8 + strlen(B_HEADER) + 3;
    snprintf(words, sizeof words, "/s2|tensor b ends at byte %zu, but the file has only %zu bytes",
             size + 1, size);
    check_refused(dir, words);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_two_shards),        TEST(test_read),
        TEST(test_read_many),         TEST(test_symlinked_shards),
        TEST(test_many_tensors),      TEST(test_oracle),
        TEST(test_bad_headers),       TEST(test_long_name),
        TEST(test_bad_lengths),       TEST(test_damaged_anywhere),
        TEST(test_bad_indexes),       TEST(test_index_and_shards_disagree),
        TEST(test_missing_shards),    TEST(test_odd_files),
        TEST(test_no_checkpoint),     TEST(test_truncated_shard),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
