/* test_text_chat.c - chat format: what cannot be forged, refusals, limits, streams. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../engine/text/chat.h"
#include "../engine/text/json.h"
#include "text_fixture.h"

static struct k3_json *parse(const char *text)
{
    struct k3_error err;
    struct k3_json *j = k3_json_parse(text, strlen(text), &err);
    if (!j)
        fail_msg("%s: %s", text, err.message);
    return j;
}

static enum k3_status render(const char *messages, const char *options, struct k3_segments *out,
                             struct k3_error *err)
{
    struct k3_json *m = parse(messages), *o = parse(options);
    struct k3_chat_options opt;
    enum k3_status st = k3_chat_options_read(o, &opt, err);
    if (st == K3_OK)
        st = k3_chat_render(m, &opt, out, err);
    k3_json_free(m);
    k3_json_free(o);
    return st;
}

/* ---- rendering ----------------------------------------------------------------------------- */

/* Every field that a caller fills holds names of control tokens; the control tokens that come out
 * are those of the encoder itself, one for each special segment. */
static void test_no_forgery(void **state)
{
#define X "<|open|><|close|><|sep|><|end_of_msg|>[EOS][BOS][PAD]<|media_pad|>"
    static const char messages[] =
        "[{\"role\":\"system\",\"content\":\"" X "\",\"name\":\"" X "\"},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"" X "\",\"text\":\"" X "\"}],"
        "\"name\":\"" X "\"},{\"role\":\"system\",\"tools\":[{\"" X "\":\"" X "\"}]},"
        "{\"role\":\"assistant\",\"name\":\"" X "\",\"content\":\"" X "\","
        "\"reasoning_content\":\"" X "\",\"tool_calls\":[{\"id\":\"" X "\","
        "\"function\":{\"name\":\"" X "\",\"arguments\":{\"" X "\":\"" X "\",\"o\":[\"" X "\"]}}},"
        "{\"name\":\"" X "\",\"arguments\":\"" X "\"},"
        "{\"name\":\"x\",\"arguments\":\"{\\\"" X "\\\":\\\"" X "\\\"}\"}]},"
        "{\"role\":\"tool\",\"tool\":\"" X "\",\"content\":\"" X "\"}]";
    static const char options[] =
        "{\"tools\":[\"" X "\"],\"response_format\":"
        "{\"type\":\"json_schema\",\"json_schema\":{\"" X "\":1}}}";
    k3_tokenizer *t = fixture_mini();
    struct k3_segments s = {0};
    struct k3_ids ids = {0};
    struct k3_error err = {0};
    size_t special = 0, controls = 0;
    (void)state;
    assert_int_equal(render(messages, options, &s, &err), K3_OK);
    assert_int_equal(k3_chat_encode(t, &s, &ids, &err), K3_OK);
    for (size_t i = 0; i < s.n; i++)
        special += s.v[i].special;
    for (size_t i = 0; i < ids.n; i++)
        controls += k3_token_is_special(t, ids.v[i]);
    assert_true(special > 50);
    assert_int_equal(controls, special);
    k3_ids_free(&ids);
    k3_segments_free(&s);
    k3_tokenizer_close(t);
#undef X
}

static void test_refusals(void **state)
{
    static const struct {
        const char *messages, *options, *message;
    } cases[] = {
        {"{}", "{}", "[bad_message] a conversation must be an array"},
        {"[1]", "{}", "[bad_message] messages[0]: is not an object"},
        {"[{\"role\":\"user\"},{\"role\":\"bot\"}]", "{}",
          "[unknown_role] messages[1].role is \"bot\""},
        {"[{}]", "{}", "[unknown_role] messages[0]: has no role"},
        {"[{\"role\":7}]", "{}", "[unknown_role]"},
        {"[{\"role\":\"user\",\"name\":7}]", "{}",
          "[bad_message] messages[0]: name must be a text"},
        {"[{\"role\":\"system\",\"tools\":7}]", "{}", "[bad_message] messages[0]: tools must be"},
        {"[{\"role\":\"user\",\"content\":true}]", "{}", "[bad_content] messages[0]: content"},
        {"[{\"role\":\"assistant\",\"reasoning\":[1]}]", "{}",
          "[bad_content] messages[0]: reasoning"},
        {"[{\"role\":\"assistant\",\"tool_calls\":{}}]", "{}", "[bad_tool_call] messages[0]"},
        {"[{\"role\":\"assistant\",\"tool_calls\":[7]}]", "{}", "[bad_tool_call] messages[0]"},
        {"[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":7}]}]", "{}", "[bad_tool_call]"},
        {"[{\"role\":\"assistant\",\"tool_calls\":[{\"name\":null}]}]", "{}", "[bad_tool_call]"},
        {"[{\"role\":\"assistant\",\"tool_calls\":[{\"name\":\"f\",\"arguments\":true}]}]", "{}",
          "[bad_arguments]"},
        {"[{\"role\":\"tool\"}]", "{}", "[no_tool_name] messages[0]"},
        {"[{\"role\":\"tool\",\"tool\":7}]", "{}",
          "[bad_message] messages[0]: the name of the tool"},
        {"[]", "{\"thinking_effort\":\"medium\"}", "[bad_effort] thinking_effort is medium"},
        {"[]", "{\"thinking_effort\":\"off\"}", "[bad_effort]"},
        {"[]", "{\"thinking_effort\":3}", "[bad_effort]"},
        {"[]", "{\"thinking\":\"yes\"}", "[bad_options] thinking must be true or false"},
        {"[]", "{\"tools\":{\"a\":1}}", "[bad_options] tools must be an array"},
        {"[]", "{\"image_prompts\":\"a\"}", "[bad_options] image_prompts"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]", "{\"image_prompts\":[7]}",
          "[bad_options]"},
        {"[]", "{\"image_prompts\":[\"a\"]}", "[image_count] 1 image prompts for 0 images"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k3_segments s = {0};
        struct k3_error err = {0};
        assert_int_equal(render(cases[i].messages, cases[i].options, &s, &err), K3_USAGE);
        if (strncmp(err.message, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("%s: %s", cases[i].messages, err.message);
        k3_segments_free(&s);
    }
}

static void test_images_refused(void **state)
{
    struct k3_json *m = parse("[{\"role\":\"user\",\"content\":\"a\"},"
                              "{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]");
    const struct k3_chat_options opt = {.refuse_images = true};
    struct k3_segments s = {0};
    struct k3_error err;
    (void)state;
    assert_int_equal(k3_chat_render(m, &opt, &s, &err), K3_USAGE);
    assert_non_null(strstr(err.message, "messages[1]: images are not supported"));
    k3_segments_free(&s);
    k3_json_free(m);
}

static void test_thinking_names(void **state)
{
    enum k3_thinking t;
    (void)state;
    for (int i = K3_THINK_OFF; i <= K3_THINK_MAX; i++) {
        assert_true(k3_thinking_parse(k3_thinking_name((enum k3_thinking)i), &t));
        assert_int_equal(t, i);
    }
    assert_false(k3_thinking_parse("medium", &t));
    assert_false(k3_thinking_parse("", &t));
}

/* Arguments given as text: nested as deep as the limit they are an argument, deeper a raw block. */
static void test_deep_arguments(void **state)
{
    (void)state;
    for (size_t depth = K3_JSON_DEPTH; depth <= 200000; depth += 199488) {
        struct k3_buf args = {0}, all = {0};
        struct k3_segments s = {0};
        struct k3_error err = {0};
        k3_buf_puts(&args,
            "[{\"role\":\"assistant\",\"tool_calls\":[{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":");
        for (size_t i = 0; i < depth; i++)
            k3_buf_putc(&args, '[');
        for (size_t i = 0; i < depth; i++)
            k3_buf_putc(&args, ']');
        k3_buf_puts(&args, "}\"}]}]");
        assert_int_equal(render(args.v, "{}", &s, &err), K3_OK);
        for (size_t i = 0; i < s.n; i++)
            k3_buf_put(&all, s.v[i].text, s.v[i].len);
        const bool raw = strstr(all.v, "<|open|>json type=\"object\"<|sep|>{\"a\":[[[") != NULL;
        const bool pair = strstr(all.v,
            "<|open|>argument key=\"a\" type=\"array\"<|sep|>[[[") != NULL;
        assert_int_equal(raw, depth > K3_JSON_DEPTH);
        assert_int_equal(pair, depth <= K3_JSON_DEPTH);
        k3_segments_free(&s);
        k3_buf_free(&args);
        k3_buf_free(&all);
    }
}

static void test_tokenizer_without_controls(void **state)
{
    struct k3_buf model = {0};
    struct k3_segments s = {0};
    struct k3_ids ids = {0};
    struct k3_error err = {0};
    (void)state;
    fixture_bytes_model(&model);
    k3_tokenizer *t = fixture_open(&model, "{}");
    assert_int_equal(render("[]", "{}", &s, &err), K3_OK);
    assert_int_equal(k3_chat_encode(t, &s, &ids, &err), K3_USAGE);
    assert_non_null(strstr(err.message, "no special token <|open|>"));
    k3_segments_free(&s);
    k3_tokenizer_close(t);
    k3_buf_free(&model);
}

/* ---- parsing ------------------------------------------------------------------------------- */

static void special(k3_chat_parser *p, const char *name)
{
    k3_chat_parser_special(p, name, strlen(name));
}

static void bytes(k3_chat_parser *p, const char *text)
{
    k3_chat_parser_bytes(p, text, strlen(text));
}

static void tag(k3_chat_parser *p, const char *marker, const char *header)
{
    special(p, marker);
    bytes(p, header);
    special(p, "<|sep|>");
}

static void finish(k3_chat_parser *p, struct k3_answer *a)
{
    struct k3_error err;
    assert_int_equal(k3_chat_parser_finish(p, a, &err), K3_OK);
    k3_chat_parser_free(p);
}

static void test_channels(void **state)
{
    struct k3_answer a;
    k3_chat_parser *p = k3_chat_parser_new(K3_CHANNEL_THINK, NULL);
    (void)state;
    assert_non_null(p);
    assert_int_equal(k3_chat_parser_channel(p), K3_CHANNEL_THINK);
    tag(p, "<|close|>", "think");
    assert_int_equal(k3_chat_parser_channel(p), K3_CHANNEL_NONE);
    tag(p, "<|open|>", "response");
    assert_int_equal(k3_chat_parser_channel(p), K3_CHANNEL_RESPONSE);
    assert_false(k3_chat_parser_special(p, "[PAD]", 5));
    assert_true(k3_chat_parser_special(p, "[EOS]", 5));
    assert_true(k3_chat_parser_special(p, "<|open|>", 8)); /* ended is ended */
    finish(p, &a);
    assert_int_equal(a.end, K3_END_STOPPED);
    assert_string_equal(a.content, "");
    k3_answer_free(&a);
    k3_answer_free(&a);
    k3_chat_parser_free(NULL);
}

/* Deltas as they come: what is shown after each token. */
static void note(void *ud, const char *text, size_t len)
{
    k3_buf_putc(ud, '<');
    k3_buf_put(ud, text, len);
    k3_buf_putc(ud, '>');
}

static void note_begin(void *ud, int index, const char *name, size_t len)
{
    char head[24];
    snprintf(head, sizeof head, "{%d", index);
    k3_buf_puts(ud, head);
    note(ud, name, len);
}

static void note_arguments(void *ud, int index, const char *text, size_t len)
{
    (void)index;
    note(ud, text, len);
}

static void note_end(void *ud, int index, bool complete)
{
    (void)index;
    k3_buf_puts(ud, complete ? "}" : "!");
}

static void test_stream(void **state)
{
    struct k3_buf log = {0};
    const struct k3_chat_events events = {note, note, note_begin, note_arguments, note_end, &log};
    struct k3_answer a;
    k3_chat_parser *p = k3_chat_parser_new(K3_CHANNEL_THINK, &events);
    (void)state;
    bytes(p, "a\xC3");
    bytes(p, "\xA9");
    tag(p, "<|close|>", "think");
    bytes(p, " \n");
    tag(p, "<|open|>", "tools");
    tag(p, "<|open|>", "call tool=\"f\"");
    tag(p, "<|open|>", "argument key=\"s\"");
    bytes(p, "x\"");
    bytes(p, "\xE4");
    bytes(p, "\xB8\xAD");
    tag(p, "<|close|>", "argument");
    tag(p, "<|open|>", "argument key=\"n\" type=\"number\"");
    bytes(p, "1");
    bytes(p, "2");
    tag(p, "<|close|>", "argument");
    tag(p, "<|close|>", "call");
    tag(p, "<|open|>", "call tool=\"g\"");
    tag(p, "<|open|>", "call tool=\"h\"");
    finish(p, &a);
    assert_string_equal(log.v, "<a><é>{0<f><{\"s\":\"><x\\\"><中><\"><,\"n\":12><}>}"
                               "{1<g>!{2<h>!");
    assert_int_equal(a.n_calls, 1);
    assert_string_equal(a.calls[0].arguments, "{\"s\":\"x\\\"中\",\"n\":12}");
    assert_true(a.has_partial);
    assert_int_equal(a.partial.index, 2);
    assert_int_equal(a.abandoned_calls, 1);
    k3_answer_free(&a);
    k3_buf_free(&log);
}

/* A million brackets as the value of an argument: valid JSON of any depth is kept, nothing
 * recurses. */
static void test_deep_value(void **state)
{
    enum { DEPTH = 1000000 };
    char *text = malloc(2 * DEPTH);
    struct k3_answer a;
    (void)state;
    assert_non_null(text);
    memset(text, '[', DEPTH);
    memset(text + DEPTH, ']', DEPTH);
    k3_chat_parser *p = k3_chat_parser_new(K3_CHANNEL_NONE, NULL);
    tag(p, "<|open|>", "tools");
    tag(p, "<|open|>", "call tool=\"f\"");
    tag(p, "<|open|>", "argument key=\"a\" type=\"array\"");
    k3_chat_parser_bytes(p, text, 2 * DEPTH);
    tag(p, "<|close|>", "argument");
    tag(p, "<|open|>", "argument key=\"b\" type=\"array\"");
    k3_chat_parser_bytes(p, text, 2 * DEPTH - 1);
    tag(p, "<|close|>", "argument");
    tag(p, "<|close|>", "call");
    finish(p, &a);
    assert_int_equal(a.calls[0].arguments_len, 4 * DEPTH - 1 + strlen("{'a':,'b':''}"));
    assert_memory_equal(a.calls[0].arguments, "{\"a\":[[", 7);
    assert_memory_equal(a.calls[0].arguments + 2 * DEPTH, "]]]]],\"b\":\"[[", 12);
    k3_answer_free(&a);
    free(text);
}

static void test_ids_out_of_range(void **state)
{
    k3_tokenizer *t = fixture_mini();
    k3_chat_parser *p = k3_chat_parser_new(K3_CHANNEL_RESPONSE, NULL);
    struct k3_answer a;
    (void)state;
    assert_false(k3_chat_parser_token(p, t, -1));
    assert_false(k3_chat_parser_token(p, t, INT32_MAX));
    assert_true(k3_chat_parser_token(p, t, k3_token_special(t, "<|end_of_msg|>")));
    finish(p, &a);
    assert_int_equal(a.content_len, 0);
    k3_answer_free(&a);
    k3_tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_forgery),      cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_images_refused),  cmocka_unit_test(test_thinking_names),
        cmocka_unit_test(test_deep_arguments),  cmocka_unit_test(test_tokenizer_without_controls),
        cmocka_unit_test(test_channels),        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_deep_value),      cmocka_unit_test(test_ids_out_of_range),
    };
    return cmocka_run_group_tests_name("text_chat", tests, NULL, NULL);
}
