/* test_text_json.c - JSON values: what is kept, what is refused, how they are written. */
#include <config.h>

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../engine/text/json.h"

static struct k3_json *parse(const char *text)
{
    struct k3_error err;
    struct k3_json *j = k3_json_parse(text, strlen(text), &err);
    if (!j)
        fail_msg("%s: %s", text, err.message);
    return j;
}

static void written(const char *text, enum k3_json_style style, const char *want)
{
    struct k3_json *j = parse(text);
    struct k3_buf b = {0};
    k3_json_write(&b, j, style);
    assert_false(b.failed);
    assert_string_equal(b.v, want);
    k3_buf_free(&b);
    k3_json_free(j);
}

static void test_values(void **state)
{
    struct k3_json *j = parse(" {\"a\" : [1.50, -0, true,false , null, \"x\\u0000y\"], \"b\":{},"
        " \"a\":7}\n");
    (void)state;
    assert_int_equal(j->type, K3_JSON_OBJECT);
    assert_int_equal(j->n, 3);
    assert_string_equal(j->keys[2].text, "a");
    assert_string_equal(k3_json_get(j, "a")->text, "7"); /* the last of a key */
    const struct k3_json *a = &j->items[0];
    assert_int_equal(a->n, 6);
    assert_string_equal(a->items[0].text, "1.50");
    assert_int_equal(a->items[5].len, 3);
    assert_memory_equal(a->items[5].text, "x\0y", 4);
    assert_null(k3_json_get(j, "c"));
    assert_null(k3_json_get(a, "a"));
    assert_null(k3_json_get(NULL, "a"));
    k3_json_free(j);
    k3_json_free(NULL);
}

static void test_strings(void **state)
{
    static const struct {
        const char *json, *text;
    } cases[] = {
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u00e9\\u4E2D\"", "é中"},
        {"\"\\ud83d\\ude42\"", "\xF0\x9F\x99\x82"},
        {"\"\\ud800\"", "\xEF\xBF\xBD"},
        {"\"\\udc00x\"", "\xEF\xBF\xBDx"},
        {"\"\\ud83d\\ud83d\\ude42\"", "\xEF\xBF\xBD\xF0\x9F\x99\x82"},
        {"\"\\ud83d\\u0041\"", "\xEF\xBF\xBD" "A"},
        {"\"\\ud83d\\n\"", "\xEF\xBF\xBD\n"},
        {"\"a\xFF" "b\xE4\xB8\"", "a\xEF\xBF\xBD" "b\xEF\xBF\xBD"},
        {"\"\"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k3_json *j = parse(cases[i].json);
        assert_string_equal(j->text, cases[i].text);
        assert_int_equal(j->len, strlen(cases[i].text));
        k3_json_free(j);
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"", "line 1, column 1: not valid JSON: the text ends too early"},
        {"{", "line 1, column 2: not valid JSON: the text ends too early"},
        {"[1,]", "line 1, column 4: not valid JSON: a value is expected"},
        {"[1 2]", "line 1, column 4: not valid JSON: ',' or ']'"},
        {"[01]", "line 1, column 3: not valid JSON: ',' or ']'"},
        {"[1.]", "line 1, column 3: not valid JSON: ',' or ']'"},
        {"[.5]", "line 1, column 2: not valid JSON: a value"},
        {"[+1]", "line 1, column 2: not valid JSON: a value"},
        {"[-]", "line 1, column 2: not valid JSON: a value"},
        {"NaN", "line 1, column 1: not valid JSON: a value"},
        {"-Infinity", "line 1, column 1: not valid JSON: a value"},
        {"{\"a\" 1}", "line 1, column 6: not valid JSON: ':'"},
        {"{\"a\":1,}", "line 1, column 8: not valid JSON: a string"},
        {"{a:1}", "line 1, column 2: not valid JSON: a string"},
        {"{\"a\":1;}", "line 1, column 7: not valid JSON: ',' or '}'"},
        {"\n\n  \"é\t\"", "line 3, column 3: not valid JSON: this string"},
        {"\"\\x\"", "line 1, column 1: not valid JSON: this string"},
        {"\"\\u12g4\"", "line 1, column 1: not valid JSON: this string"},
        {"\"\\u12", "line 1, column 1: not valid JSON: this string"},
        {"\"\\", "line 1, column 1: not valid JSON: this string"},
        {"\"é\" x", "line 1, column 5: not valid JSON: nothing may follow"},
        {"truex", "line 1, column 5: not valid JSON: nothing may follow"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k3_error err = {0};
        assert_null(k3_json_parse(cases[i].json, strlen(cases[i].json), &err));
        assert_int_equal(err.status, K3_USAGE);
        if (strncmp(err.message, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("%s: %s", cases[i].json, err.message);
    }
}

/* n times open, a value, n times close. */
static char *nested(const char *open, const char *close, size_t n, size_t *len)
{
    const size_t a = strlen(open), b = strlen(close);
    char *text = malloc(n * (a + b) + 2);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) {
        memcpy(text + i * a, open, a);
        memcpy(text + n * a + 1 + i * b, close, b);
    }
    text[n * a] = '7';
    *len = n * (a + b) + 1;
    text[*len] = '\0';
    return text;
}

static void test_depth(void **state)
{
    static const char *const open[] = {"[", "{\"k\":"}, *const close[] = {"]", "}"};
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct k3_error err;
        size_t len;
        char *text = nested(open[kind], close[kind], K3_JSON_DEPTH, &len);
        struct k3_json *j = k3_json_parse(text, len, &err);
        assert_non_null(j);
        k3_json_free(j);
        free(text);
        text = nested(open[kind], close[kind], K3_JSON_DEPTH + 1, &len);
        assert_null(k3_json_parse(text, len, &err));
        assert_non_null(strstr(err.message, "more than 512 deep"));
        assert_null(k3_json_skip(text, text + len, K3_JSON_STRICT, K3_JSON_DEPTH));
        assert_ptr_equal(k3_json_skip(text, text + len, K3_JSON_STRICT, SIZE_MAX), text + len);
        free(text);
        text = nested(open[kind], close[kind], 1000000, &len);
        assert_null(k3_json_parse(text, len, &err));
        assert_ptr_equal(k3_json_skip(text, text + len, K3_JSON_STRICT, SIZE_MAX), text + len);
        assert_null(k3_json_skip(text, text + len - 1, K3_JSON_STRICT, SIZE_MAX));
        free(text);
    }
}

static void test_skip(void **state)
{
    static const struct {
        const char *text;
        int strict, lax; /* bytes of the value; -1 = none */
    } cases[] = {
        {"1", 1, 1}, {"01", 1, 1}, {"1.5e+3x", 6, 6}, {"1.e3", 1, 1}, {"1e", 1, 1}, {"-", -1, -1},
        {"-0.0,", 4, 4}, {"NaN", -1, 3}, {"-Infinity]", -1, 9}, {"Infinity", -1, 8},
        {"nul", -1, -1},
        {"[1, 2 ] ", 7, 7}, {"[]", 2, 2}, {"[ ]", 3, 3}, {"{ }", 3, 3}, {"{\"a\":[{}]}1", 10, 10},
        {"[1,]", -1, -1}, {"{\"a\":}", -1, -1}, {"{\"a\"}", -1, -1}, {"[}", -1, -1}, {"{]", -1, -1},
        {"[\"\t\"]", -1, 5}, {"\"a", -1, -1}, {"", -1, -1}, {" 1", -1, -1},
        {"[[1],{\"b\":2}]", 13, 13},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *p = cases[i].text, *end = p + strlen(p);
        const char *strict = k3_json_skip(p, end, K3_JSON_STRICT, 9);
        const char *lax = k3_json_skip(p, end, K3_JSON_LAX, 9);
        if ((strict ? (int)(strict - p) : -1) != cases[i].strict ||
            (lax ? (int)(lax - p) : -1) != cases[i].lax)
            fail_msg("\"%s\" is skipped wrongly", p);
    }
}

static void test_writing(void **state)
{
    (void)state;
    written("{\"b\":[1,{}],\"a\" : \"x\"}", K3_JSON_SPACED, "{\"b\": [1, {}], \"a\": \"x\"}");
    written("{\"b\":[1,{\"d\":1,\"c\":2}],\"a\":[],\"B\":null}", K3_JSON_COMPACT_SORTED,
            "{\"B\":null,\"a\":[],\"b\":[1,{\"c\":2,\"d\":1}]}");
    written("{\"k\":1,\"l\":2,\"k\":3}", K3_JSON_SPACED, "{\"k\": 3, \"l\": 2}");
    written("{\"k\":1,\"l\":2,\"k\":3,\"a\":4}", K3_JSON_COMPACT_SORTED,
        "{\"a\":4,\"k\":3,\"l\":2}");
    /* by code point, which is the order of the bytes, and a beginning before the whole */
    written("{\"\\ud83d\\ude00\":1,\"\\uff5a\":2,\"ab\":3,\"a\":4,\"\":5}", K3_JSON_COMPACT_SORTED,
            "{\"\":5,\"a\":4,\"ab\":3,\"\xEF\xBD\x9A\":2,\"\xF0\x9F\x98\x80\":1}");
    written("\"\\u0000\\u001f\\b\\f\\n\\r\\t\\u000b\\\"\\\\\\/\\u007f\\u2028\"", K3_JSON_SPACED,
            "\"\\u0000\\u001f\\b\\f\\n\\r\\t\\u000b\\\"\\\\/\x7f\xE2\x80\xA8\"");
}

static void test_numbers(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"0", "0"}, {"-0", "0"}, {"-7", "-7"},
        {"123456789012345678901234567890", "123456789012345678901234567890"},
        {"1e2", "100.0"}, {"1.50", "1.5"}, {"-0.0", "-0.0"}, {"0.0001", "0.0001"},
        {"0.00001", "1e-05"},
        {"1e15", "1000000000000000.0"}, {"1e16", "1e+16"}, {"1e22", "1e+22"}, {"5e-324", "5e-324"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"}, {"1e400", "Infinity"},
        {"-1e400", "-Infinity"},
        {"1e-400", "0.0"}, {"0.1", "0.1"}, {"123456789.123", "123456789.123"},
        {"2.5e-7", "2.5e-07"},
        {"9007199254740993.0", "9007199254740992.0"}, {"1E+2", "100.0"}, {"0e0", "0.0"},
        {"5.9604644775390625e-08", "5.960464477539063e-08"}, /* a power of two, the next one up */
        {"9.5367431640625e-07", "9.5367431640625e-07"},
        {"123456789012345678.0", "1.2345678901234568e+17"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        written(cases[i].in, K3_JSON_SPACED, cases[i].out);
}

/* The point is a point whatever the locale says. */
static void test_locale(void **state)
{
    (void)state;
    const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]) != NULL;
    if (!found)
        skip();
    written("[1.5,1e-5]", K3_JSON_SPACED, "[1.5, 1e-05]");
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),  cmocka_unit_test(test_strings),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_skip),    cmocka_unit_test(test_writing),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_locale),
    };
    return cmocka_run_group_tests_name("text_json", tests, NULL, NULL);
}
