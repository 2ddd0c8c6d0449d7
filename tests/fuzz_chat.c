/* fuzz_chat.c - fuzz target: the parser of generated tokens, and the renderer.
 *
 * Input: a byte that chooses. 0, 1, 2: a stream for the parser, begun in no channel, thinking or
 * the response; a byte 0xFE and the one behind it are a control token, everything else is ordinary
 * text. Others: JSON, an object with "messages" and "options", for the renderer. With libFuzzer, in
 * a configured build folder:
 *
 *   clang -std=c11 -g -O1 -fsanitize=fuzzer,address,undefined -I. SRC/tests/fuzz_chat.c \
 *       SRC/engine/text/[a-z]*.c SRC/engine/k3_error.c -lm -o fuzz
 *   ./fuzz -max_total_time=30 SRC/tests/data/corpus/chat
 */
#include <stdlib.h>
#include <string.h>

#include "../engine/text/chat.h"
#include "../engine/text/json.h"
#include "../engine/text/utf8.h"
#include "fuzz.h"

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* ---- parser -------------------------------------------------------------------------------- */

struct told {
    struct k3_buf reasoning, content, arguments; /* arguments of all calls in one */
    int begun, ended, complete;
};

static void on_reasoning(void *ud, const char *text, size_t len)
{
    must(k3_utf8_valid(text, len));
    k3_buf_put(&((struct told *)ud)->reasoning, text, len);
}

static void on_content(void *ud, const char *text, size_t len)
{
    must(k3_utf8_valid(text, len));
    k3_buf_put(&((struct told *)ud)->content, text, len);
}

static void on_begin(void *ud, int index, const char *name, size_t len)
{
    struct told *t = ud;
    must(index == t->begun++ && len > 0 && k3_utf8_valid(name, len));
}

static void on_arguments(void *ud, int index, const char *text, size_t len)
{
    struct told *t = ud;
    must(index == t->begun - 1 && k3_utf8_valid(text, len));
    k3_buf_put(&t->arguments, text, len);
}

static void on_end(void *ud, int index, bool complete)
{
    struct told *t = ud;
    must(index == t->begun - 1);
    t->ended++;
    t->complete += complete;
}

static void free_told(struct told *t)
{
    k3_buf_free(&t->reasoning);
    k3_buf_free(&t->content);
    k3_buf_free(&t->arguments);
}

static void parse(const char *p, size_t len, enum k3_channel start, size_t step, struct told *told,
                  struct k3_answer *a)
{
    static const char *const names[] = {"<|open|>", "<|close|>", "<|sep|>", "[PAD]", "[EOS]",
                                        "<|end_of_msg|>"};
    const struct k3_chat_events events = {on_reasoning, on_content, on_begin, on_arguments, on_end,
                                          told};
    struct k3_error err;
    k3_chat_parser *parser = k3_chat_parser_new(start, &events);
    must(parser != NULL);
    for (size_t i = 0; i < len;) {
        if ((unsigned char)p[i] == 0xFE) {
            const char *name = names[i + 1 < len ? (unsigned char)p[i + 1] % 6 : 0];
            k3_chat_parser_special(parser, name, strlen(name));
            i += 2;
            continue;
        }
        size_t n = 1;
        while (n < step && i + n < len && (unsigned char)p[i + n] != 0xFE)
            n++;
        k3_chat_parser_bytes(parser, p + i, n);
        i += n;
    }
    must(k3_chat_parser_finish(parser, a, &err) == K3_OK);
    k3_chat_parser_free(parser);
}

static bool same(const char *a, size_t n, const char *b, size_t m)
{
    return n == m && (n == 0 || memcmp(a, b, n) == 0);
}

static void check_stream(const char *p, size_t len, enum k3_channel start)
{
    struct told whole = {0}, single = {0};
    struct k3_answer a, b;
    parse(p, len, start, len + 1, &whole, &a);
    parse(p, len, start, 1, &single, &b);
    must(same(a.reasoning, a.reasoning_len, b.reasoning, b.reasoning_len));
    must(same(a.content, a.content_len, b.content, b.content_len));
    must(same(a.reasoning, a.reasoning_len, whole.reasoning.v, whole.reasoning.n));
    must(same(b.reasoning, b.reasoning_len, single.reasoning.v, single.reasoning.n));
    must(same(a.content, a.content_len, whole.content.v, whole.content.n));
    must(same(b.content, b.content_len, single.content.v, single.content.n));
    must(same(whole.arguments.v, whole.arguments.n, single.arguments.v, single.arguments.n));
    must(a.n_calls == b.n_calls && a.end == b.end && a.has_partial == b.has_partial);
    must(a.abandoned_calls == b.abandoned_calls && whole.begun == whole.ended);
    must((size_t)whole.complete == a.n_calls);
    must(whole.begun == (int)a.n_calls + a.abandoned_calls + a.has_partial);
    for (size_t i = 0; i < a.n_calls; i++)
        must(same(a.calls[i].arguments, a.calls[i].arguments_len, b.calls[i].arguments,
                  b.calls[i].arguments_len));
    k3_answer_free(&a);
    k3_answer_free(&b);
    free_told(&whole);
    free_told(&single);
}

/* ---- renderer ------------------------------------------------------------------------------ */

static void check_render(const char *p, size_t len)
{
    struct k3_error err = {0};
    struct k3_json *j = k3_json_parse(p, len, &err);
    struct k3_chat_options opt;
    struct k3_segments s = {0};
    if (!j) {
        must(err.status == K3_USAGE);
        return;
    }
    enum k3_status st = k3_chat_options_read(k3_json_get(j, "options"), &opt, &err);
    if (st == K3_OK)
        st = k3_chat_render(k3_json_get(j, "messages"), &opt, &s, &err);
    must(st == K3_OK || (st == K3_USAGE && err.message[0] == '['));
    for (size_t i = 0; i < s.n; i++)
        must(s.v[i].len > 0 && k3_utf8_valid(s.v[i].text, s.v[i].len));
    k3_segments_free(&s);
    k3_json_free(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (data[0] <= 2)
        check_stream((const char *)data + 1, size - 1, (enum k3_channel)data[0]);
    else
        check_render((const char *)data + 1, size - 1);
    return 0;
}
