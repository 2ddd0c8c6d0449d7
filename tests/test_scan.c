/* test_scan.c - the scanner of index and headers: the same texts taken as by jansson, the same values
 * read; and whole checkpoints whose index is spelled and ordered in every way, read beside jansson. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "../engine/storage/checkpoint.h"
#include "../engine/storage/scan.h"
#include "scan_check.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static uint64_t seed;

static uint32_t next_random(uint32_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

/* ---- texts ------------------------------------------------------------------------------- */

static void check_same(const char *text, size_t n, bool want_taken, bool any)
{
    bool taken;
    const char *why;
    if (!scan_check(text, n, &taken, &why) || (!any && taken != want_taken))
        fail_msg("%s: %.*s", why, (int)n, text);
}

static const char *const taken[] = {
    "{}", " \t\r\n{ } \n", "{\"\":\"\"}", "{\"a\":1,\"b\":-0,\"c\":0}",
    "{\"a\":9223372036854775807,\"b\":-9223372036854775808}",
    "{\"a\":1.5,\"b\":-1e5,\"c\":1E+5,\"d\":1.25e-400,\"e\":1e308}",
    "{\"a\":true,\"b\":false,\"c\":null,\"d\":[],\"e\":[1,[2,{}],\"x\"]}",
    "{\"\\u0061\\n\\/\\\\\\\"\\b\\f\\r\\t\":\"\\u00e9\\u20AC\\ud83d\\ude00\"}",
    "{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":1}}", "{\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F\":1}",
    ("{\"k0\":0,\"k1\":0,\"k2\":0,\"k3\":0,\"k4\":0,\"k5\":0,\"k6\":0,\"k7\":0,\"k8\":0,\"k9\":0,"
    "\"k10\":0,\"k11\":0,\"k12\":0,\"k13\":0,\"k14\":0,\"k15\":0,\"k16\":0,\"k17\":0}"),
};

static const char *const refused[] = {
    "", " ", "{", "}", "{]", "7", "\"a\"", "true", "nul", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
    "{,}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{a:1}", "{'a':1}", "{\"a\":1}}", "{\"a\":1} x",
    "{\"a\":[1,]}", "{\"a\":[,1]}", "{\"a\":[1 2]}", "{\"a\":[1}", "{\"a\":tru}", "{\"a\":truex}",
    "{\"a\":nan}", "{\"a\":NaN}", "{\"a\":Infinity}", "{\"a\":01}", "{\"a\":-}", "{\"a\":+1}",
    "{\"a\":.5}", "{\"a\":1.}", "{\"a\":1.e5}", "{\"a\":1e}", "{\"a\":1e+}", "{\"a\":0x10}",
    "{\"a\":--1}", "{\"a\":9223372036854775808}", "{\"a\":-9223372036854775809}",
    "{\"a\":99999999999999999999999}", "{\"a\":1e400}", "{\"a\":-1e400}", "{\"a\":1.0e999999999}",
    "{\"a\":\"\n\"}", "{\"a\":\"\x01\"}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}",
    "{\"a\":\"\\u12g4\"}", "{\"a\":\"\\", "{\"a\":\"\\u", "{\"a\":\"\\ud83d", "{\"a\":\"\\u0000\"}",
    "{\"\\u0000\":1}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\\ud800x\"}", "{\"a\":\"\\ud800\\n\"}",
    "{\"a\":\"\\ud800\\u0041\"}", "{\"a\":\"\\udc00\"}", "{\"a\":\"\\ud800\\ud800\"}",
    "{\"a\":\"\x80\"}", "{\"a\":\"\xC0\x80\"}", "{\"a\":\"\xC3\"}", "{\"a\":\"\xED\xA0\x80\"}",
    "{\"a\":\"\xF4\x90\x80\x80\"}", "{\"a\":\"\xF0\x8F\xBF\xBF\"}", "\xEF\xBB\xBF{}", "{}\xC2\xA0",
    "{\"a\":1,\"a\":1}", "{\"a\":1,\"\\u0061\":1}", "{\"x\":{\"b\":{\"a\":1,\"a\":2}}}",
    "{\"x\":[{\"a\":1,\"c\":2,\"a\":2}]}", "{\"a\":1}\x1b[2J", "{\"a\":/**/1}",
    ("{\"k0\":0,\"k1\":0,\"k2\":0,\"k3\":0,\"k4\":0,\"k5\":0,\"k6\":0,\"k7\":0,\"k8\":0,\"k9\":0,"
    "\"k10\":0,\"k11\":0,\"k12\":0,\"k13\":0,\"k14\":0,\"k15\":0,\"k16\":0,\"k3\":0}"),
};

static void test_taken_and_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(taken); i++)
        check_same(taken[i], strlen(taken[i]), true, false);
    for (size_t i = 0; i < COUNT(refused); i++)
        check_same(refused[i], strlen(refused[i]), false, false);
    check_same("{}\0", 3, false, false);
    check_same("{\"a\0\":1}", 8, false, false);
    check_same("{\0\"a\":1}", 8, false, false);
    check_same("[1,{\"a\":2}]", 11, false, true); /* valid, but no object */
}

/* Every text cut off anywhere, with every byte left out, doubled or changed. */
static void test_damaged(void **state)
{
    (void)state;
    static const char bytes[] = "\"\\{}[]:, 019-.eEtu\n\x01\x1f\x7f\x80\xC3\xED\xF4";
    char text[400];
    for (size_t i = 0; i < COUNT(taken); i++) {
        const size_t n = strlen(taken[i]);
        for (size_t at = 0; at < n; at++) {
            check_same(taken[i], at, false, true);
            memcpy(text, taken[i], at);
            memcpy(text + at, taken[i] + at + 1, n - at - 1);
            check_same(text, n - 1, false, true);
            memcpy(text + at + 1, taken[i] + at, n - at);
            text[at] = taken[i][at];
            check_same(text, n + 1, false, true);
            for (size_t k = 0; k < sizeof bytes; k++) { /* the zero byte too */
                memcpy(text, taken[i], n);
                text[at] = bytes[k];
                check_same(text, n, false, true);
            }
        }
    }
}

/* Several changes at once, with bytes of other texts. */
static void test_shuffled(void **state)
{
    (void)state;
    char text[400];
    seed = 1;
    for (int i = 0; i < 60000; i++) {
        const char *from = taken[next_random(COUNT(taken))];
        const size_t n = strlen(from);
        memcpy(text, from, n);
        for (uint32_t k = 1 + next_random(3); k > 0; k--) {
            const char *other = taken[next_random(COUNT(taken))];
            text[next_random((uint32_t)n)] = other[next_random((uint32_t)strlen(other))];
        }
        check_same(text, n, false, true);
    }
}

static void test_depth(void **state)
{
    (void)state;
    enum { MOST = 2100 };
    static char text[4 * MOST];
    for (size_t depth = 2040; depth < 2056; depth++)
        for (int inner = 0; inner < 2; inner++) {
            size_t n = (size_t)sprintf(text, "{\"a\":");
            memset(text + n, '[', depth);
            n += depth;
            n += (size_t)sprintf(text + n, "%s", inner ? "1" : "");
            memset(text + n, ']', depth);
            n += depth;
            text[n++] = '}';
            /* the object, the lists, and what is in the last */
            check_same(text, n, 1 + depth + (size_t)inner <= 2048, false);
        }
}

static void test_where(void **state)
{
    (void)state;
    char text[] = "{\"a\": \"x\\ny\",\n  \"b\": [1,\n   2 oops]}";
    struct k3_error err = {0};
    struct k3_scan s;
    k3_scan_begin(&s, text, strlen(text), "some.json", "index", &err);
    assert_true(k3_scan_next(&s) == '{');
    assert_false(k3_scan_skip(&s));
    k3_scan_end(&s);
    assert_int_equal(err.status, K3_FAILED);
    assert_non_null(strstr(err.message, "some.json: the index is not valid JSON (line 3, column 6: "
                                        "']' expected near 'oops')"));
}

/* ---- whole checkpoints ------------------------------------------------------------------- */

enum { TENSORS = 1200, SHARDS = 5 };
#define INDEX "model.safetensors.index.json"

static char dir[160];

static int setup(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/k3sc-XXXXXX", tmp && strlen(tmp) < 140 ? tmp : "/tmp");
    return mkdtemp(dir) ? 0 : -1;
}

static char *path_of(const char *name)
{
    static char path[320];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < SHARDS; i++) {
        char name[8];
        snprintf(name, sizeof name, "s%d", i);
        unlink(path_of(name));
    }
    unlink(path_of(INDEX));
    return rmdir(dir);
}

/* Names that begin alike, end within each other, and need escapes. */
static json_t *make_names(void)
{
    static const char *const parts[] = {"layers.", "1", "10", "2", ".w", "experts.", "\xC3\xA9",
                                        "\"", "\\", "x\xF0\x9F\x98\x80", "a", "."};
    json_t *names = json_object();
    while (json_object_size(names) < TENSORS) {
        char name[200] = "";
        for (uint32_t k = 1 + next_random(9); k > 0; k--)
            strcat(name, parts[next_random(COUNT(parts))]);
        char shard[8];
        snprintf(shard, sizeof shard, "s%u", next_random(SHARDS));
        json_object_set_new(names, name, json_string(shard));
    }
    return names;
}

static void put_file(const char *name, const void *head, size_t n_head, const char *text, size_t n,
                     size_t data)
{
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    if (n_head > 0)
        assert_int_equal(fwrite(head, 1, n_head, f), n_head);
    assert_int_equal(fwrite(text, 1, n, f), n);
    for (size_t i = 0; i < data; i++)
        fputc((int)i, f);
    assert_int_equal(fclose(f), 0);
}

static void put_json(const char *name, const json_t *j, size_t flags)
{
    char *text = json_dumps(j, flags);
    assert_non_null(text);
    put_file(name, NULL, 0, text, strlen(text), 0);
    free(text);
}

/* The header of a shard: its tensors in any order, each with 1 to 24 bytes behind the last. */
static json_t *make_header(const json_t *names, const char *shard, size_t *data)
{
    static const char *const dtypes[] = {"U8", "BF16", "F32"};
    static const size_t sizes[] = {1, 2, 4};
    json_t *header = json_object();
    const char *name;
    json_t *v;
    *data = 0;
    json_object_foreach ((json_t *)names, name, v) {
        if (strcmp(json_string_value(v), shard) != 0)
            continue;
        const size_t k = next_random(COUNT(dtypes)), a = next_random(3), b = 1 + next_random(2);
        const size_t end = *data + a * b * sizes[k];
        json_object_set_new(header, name, json_pack("{s[ii]s:s s[ii]}", "shape", (int)a, (int)b,
                                                    "dtype", dtypes[k], "data_offsets", (int)*data,
                                                    (int)end));
        *data = end;
    }
    json_object_set_new(header, "__metadata__", json_pack("{s:s}", "format", "pt"));
    return header;
}

static void put_shard(const char *name, const json_t *header, size_t data, size_t flags)
{
    char *text = json_dumps(header, flags);
    assert_non_null(text);
    uint8_t head[8];
    for (int i = 0; i < 8; i++)
        head[i] = (uint8_t)((uint64_t)strlen(text) >> 8 * i);
    put_file(name, head, sizeof head, text, strlen(text), data);
    free(text);
}

static void check_tensor(const struct k3_checkpoint *c, const struct k3_tensor *t, const json_t *e)
{
    const json_t *shape = json_object_get(e, "shape"), *at = json_object_get(e, "data_offsets");
    const uint64_t begin = (uint64_t)json_integer_value(json_array_get(at, 0));
    const uint64_t end = (uint64_t)json_integer_value(json_array_get(at, 1));
    assert_string_equal(t->dtype_name, json_string_value(json_object_get(e, "dtype")));
    assert_int_equal(t->ndim, json_array_size(shape));
    for (size_t i = 0; i < t->ndim; i++)
        assert_int_equal(t->shape[i], json_integer_value(json_array_get(shape, i)));
    assert_int_equal(t->bytes, end - begin);
    /* every shard of this test ends with its last tensor, and its data begin behind the header */
    assert_true(t->offset >= begin && t->offset + t->bytes <= c->shards[t->shard].size);
}

/* Writes the checkpoint with these spellings, opens it, and compares every tensor. */
static void check_written(size_t index_flags, size_t header_flags)
{
    json_t *names = make_names(), *headers = json_object();
    json_t *index = json_pack("{s:{s:i}s:O s:[{}]}", "metadata", "total_size", 7, "weight_map",
                              names, "more");
    put_json(INDEX, index, index_flags);
    for (int i = 0; i < SHARDS; i++) {
        char shard[8];
        size_t data;
        snprintf(shard, sizeof shard, "s%d", i);
        json_t *header = make_header(names, shard, &data);
        put_shard(shard, header, data, header_flags);
        json_object_set_new(headers, shard, header);
    }
    struct k3_error err = {0};
    struct k3_checkpoint *c = k3_checkpoint_open(dir, NULL, NULL, &err);
    if (!c)
        fail_msg("%s", err.message);
    assert_int_equal(c->n_tensors, json_object_size(names));
    size_t place = 0;
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct k3_tensor *t = &c->tensors[i];
        const char *shard = c->shards[t->shard].name;
        assert_true(i == 0 || strcmp(c->tensors[i - 1].name, t->name) < 0);
        assert_string_equal(shard, json_string_value(json_object_get(names, t->name)));
        check_tensor(c, t, json_object_get(json_object_get(headers, shard), t->name));
        assert_ptr_equal(k3_checkpoint_find(c, t->name), t);
        assert_ptr_equal(k3_checkpoint_find_next(c, t->name, &place), t);
        assert_int_equal(place, i);
    }
    assert_null(k3_checkpoint_find_next(c, "not there", &place));
    k3_checkpoint_close(c);
    json_decref(names);
    json_decref(index);
    json_decref(headers);
}

static void test_orders_and_spellings(void **state)
{
    (void)state;
    seed = 2;
    check_written(JSON_COMPACT, JSON_COMPACT);
    check_written(JSON_INDENT(2) | JSON_SORT_KEYS, JSON_COMPACT | JSON_SORT_KEYS);
    check_written(JSON_INDENT(4) | JSON_ENSURE_ASCII, JSON_INDENT(1) | JSON_ENSURE_ASCII);
    check_written(JSON_ESCAPE_SLASH, JSON_ENSURE_ASCII | JSON_SORT_KEYS);
}

/* A name twice, next to each other or not, in an index that is in order or not, long or short. */
static void test_twice(void **state)
{
    (void)state;
    static const int lengths[] = {2, 3, 20, 500};
    for (size_t k = 0; k < COUNT(lengths); k++)
        for (int twice = 0; twice < lengths[k]; twice += 1 + twice) {
            char *text = malloc(40000), name[40];
            assert_non_null(text);
            size_t n = (size_t)sprintf(text, "{\"weight_map\":{");
            for (int i = 0; i < lengths[k]; i++)
                n += (size_t)sprintf(text + n, "\"layer.%d\":\"s0\",", i * 7919 % 1000);
            sprintf(name, "layer.%d", twice * 7919 % 1000);
            n += (size_t)sprintf(text + n, "\"%s\":\"s1\"}}", name);
            put_file(INDEX, NULL, 0, text, n, 0);
            free(text);
            struct k3_error err = {0};
            assert_null(k3_checkpoint_open(dir, NULL, NULL, &err));
            assert_non_null(strstr(err.message, "duplicate object key"));
            assert_non_null(strstr(err.message, name));
        }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_and_refused), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_shuffled),          cmocka_unit_test(test_depth),
        cmocka_unit_test(test_where),             TEST(test_orders_and_spellings),
        TEST(test_twice),
    };
    return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
