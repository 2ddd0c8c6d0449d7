/* test_chat_keep.c - an answer kept as it was generated: wherever it was cut off, it becomes a whole
 * message that says what it said. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../engine/text/chat.h"
#include "text_fixture.h"

static k3_tokenizer *tok;

/* The ids of an assistant message behind the head that the generation prompt has, <|end_of_msg|>
 * left out. */
static struct k3_ids render_answer(const char *message, enum k3_thinking thinking)
{
    struct k3_error err;
    struct k3_json *list = k3_json_parse(message, strlen(message), &err);
    const struct k3_chat_options opt = {.thinking = thinking, .no_generation_prompt = true};
    struct k3_segments s = {0};
    struct k3_ids all = {0}, out = {0};
    assert_non_null(list);
    assert_int_equal(k3_chat_render(list, &opt, &s, &err), K3_OK);
    assert_int_equal(k3_chat_encode(tok, &s, &all, &err), K3_OK);
    const int32_t sep = k3_token_special(tok, "<|sep|>"), open = k3_token_special(tok, "<|open|>");
    size_t at = all.n; /* the last message's head: the second <|sep|> behind it begins the answer */
    const int32_t end = k3_token_special(tok, "<|end_of_msg|>");
    for (at = all.n - 1; at > 0 && all.v[at - 1] != end; at--)
        continue;
    assert_int_equal(all.v[at], open);
    for (int seps = 0; seps < 2; at++)
        seps += all.v[at] == sep;
    for (; at + 1 < all.n; at++)
        assert_int_equal(k3_ids_push(&out, all.v[at], &err), K3_OK);
    k3_ids_free(&all);
    k3_segments_free(&s);
    k3_json_free(list);
    return out;
}

static const char message[] =
    "[{\"role\":\"assistant\",\"reasoning_content\":\"Hm, \xc3\xa4\",\"content\":\"Yes: <|close|>\","
    "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"k\":\"v\",\"n\":1}}}]}]";

static bool begins_with(const char *whole, size_t n, const char *part, size_t k)
{
    return k <= n && memcmp(whole, part, k) == 0;
}

/* Is there a whole message that parses to the same? */
static void expect_whole(const struct k3_ids *ids, enum k3_channel start, const struct k3_answer *want)
{
    const struct k3_chat_events none = {.ud = NULL};
    struct k3_error err;
    struct k3_answer a;
    k3_chat_parser *p = k3_chat_parser_new(start, &none);
    for (size_t i = 0; i < ids->n; i++)
        assert_false(k3_chat_parser_token(p, tok, ids->v[i]));
    assert_int_equal(k3_chat_parser_finish(p, &a, &err), K3_OK);
    k3_chat_parser_free(p);
    assert_int_equal(a.end, K3_END_CLOSED);
    assert_int_equal(a.n_calls, want->n_calls);
    assert_int_equal(a.reasoning_len, want->reasoning_len);
    assert_memory_equal(a.reasoning, want->reasoning, a.reasoning_len);
    assert_int_equal(a.content_len, want->content_len);
    assert_memory_equal(a.content, want->content, a.content_len);
    k3_answer_free(&a);
}

/* The answer cut off behind each of its tokens. */
static void cut_everywhere(enum k3_thinking thinking, enum k3_channel start)
{
    struct k3_ids whole = render_answer(message, thinking);
    struct k3_error err;
    size_t kept_cuts = 0;
    assert_true(whole.n > 30);
    for (size_t n = 0; n <= whole.n; n++) {
        struct k3_ids out = {0};
        struct k3_answer a;
        bool kept = false;
        assert_int_equal(k3_ids_push(&out, 7, &err), K3_OK); /* what stands there stays */
        assert_int_equal(k3_chat_keep(tok, start, whole.v, n, &out, &a, &kept, &err), K3_OK);
        assert_int_equal(out.v[0], 7);
        kept_cuts += kept;
        if (kept) {
            const struct k3_ids rest = {.v = out.v + 1, .n = out.n - 1};
            expect_whole(&rest, start, &a);
            if (n == whole.n) { /* nothing was missing */
                assert_int_equal(rest.n, whole.n);
                assert_memory_equal(rest.v, whole.v, whole.n * sizeof *whole.v);
            }
            assert_true(begins_with("Yes: <|close|>", 14, a.content, a.content_len) ||
                        strstr(a.content, "\xef\xbf\xbd"));
        } else {
            assert_int_equal(out.n, 1);
            assert_true(a.has_partial || a.n_calls < 1); /* inside the call */
        }
        k3_answer_free(&a);
        k3_ids_free(&out);
    }
    assert_true(kept_cuts > whole.n / 3 && kept_cuts < whole.n);
    k3_ids_free(&whole);
}

static void thinking_answers(void **state)
{
    (void)state;
    cut_everywhere(K3_THINK_MAX, K3_CHANNEL_THINK);
}

static void answers_without_thinking(void **state)
{
    (void)state;
    cut_everywhere(K3_THINK_OFF, K3_CHANNEL_RESPONSE);
}

/* What stands behind the end of the message, and behind a stop token, is no part of it. */
static void what_follows_the_end_is_dropped(void **state)
{
    (void)state;
    struct k3_ids whole = render_answer("[{\"role\":\"assistant\",\"content\":\"Yes\"}]",
                                        K3_THINK_OFF);
    struct k3_error err;
    const size_t n = whole.n;
    const int32_t more[] = {k3_token_special(tok, "[EOS]"), 65, 66};
    for (size_t from = 0; from < 2; from++) {
        struct k3_ids ids = {0}, out = {0};
        struct k3_answer a;
        bool kept = false;
        for (size_t i = 0; i < n; i++)
            k3_ids_push(&ids, whole.v[i], &err);
        for (size_t i = from; i < 3; i++)
            k3_ids_push(&ids, more[i], &err);
        assert_int_equal(k3_chat_keep(tok, K3_CHANNEL_RESPONSE, ids.v, ids.n, &out, &a, &kept, &err),
                         K3_OK);
        assert_true(kept && out.n == n);
        assert_memory_equal(out.v, whole.v, n * sizeof *out.v);
        k3_answer_free(&a);
        k3_ids_free(&ids);
        k3_ids_free(&out);
    }
    k3_ids_free(&whole);
}

static int setup(void **state)
{
    (void)state;
    tok = fixture_mini();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    k3_tokenizer_close(tok);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thinking_answers),
        cmocka_unit_test(answers_without_thinking),
        cmocka_unit_test(what_follows_the_end_is_dropped),
    };
    return cmocka_run_group_tests_name("chat_keep", tests, setup, teardown);
}
