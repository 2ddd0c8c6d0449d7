/* chat_parse.c - generated tokens become reasoning, content and tool calls. See chat.h.
 *
 * The parser sees control tokens as such, by id, and everything else as bytes: text that spells a
 * marker is text, and nothing depends on how the bytes come. */
#include "chat_parser.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER_MAX = 4096 };

static const char OPEN[] = "<|open|>", CLOSE[] = "<|close|>", SEP[] = "<|sep|>";

/* ---- life ---------------------------------------------------------------------------------- */

k3_chat_parser *k3_chat_parser_new(enum k3_channel start, const struct k3_chat_events *events)
{
    k3_chat_parser *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    if (events)
        p->events = *events;
    p->state = start == K3_CHANNEL_THINK      ? K3_PARSE_THINK
               : start == K3_CHANNEL_RESPONSE ? K3_PARSE_RESPONSE
                                              : K3_PARSE_START;
    return p;
}

static void free_call(struct k3_tool_call *c)
{
    free(c->name);
    free(c->arguments);
}

void k3_chat_parser_free(k3_chat_parser *p)
{
    if (!p)
        return;
    k3_buf_free(&p->reasoning.text);
    k3_buf_free(&p->content.text);
    k3_buf_free(&p->held);
    k3_buf_free(&p->header);
    k3_call_clear(&p->call);
    for (size_t i = 0; i < p->n_calls; i++)
        free_call(&p->calls[i]);
    free(p->calls);
    free(p);
}

void k3_answer_free(struct k3_answer *a)
{
    free(a->reasoning);
    free(a->content);
    for (size_t i = 0; i < a->n_calls; i++)
        free_call(&a->calls[i]);
    free(a->calls);
    free_call(&a->partial);
    *a = (struct k3_answer){0};
}

/* ---- text ---------------------------------------------------------------------------------- */

static void reasoning_text(void *ud, const char *text, size_t len)
{
    k3_chat_parser *p = ud;
    k3_buf_put(&p->reasoning.text, text, len);
    if (p->events.reasoning)
        p->events.reasoning(p->events.ud, text, len);
}

static void content_text(void *ud, const char *text, size_t len)
{
    k3_chat_parser *p = ud;
    k3_buf_put(&p->content.text, text, len);
    if (p->events.content)
        p->events.content(p->events.ud, text, len);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Before any channel: white space waits; anything else makes all of it the content. */
static void start_text(k3_chat_parser *p, const char *bytes, size_t len)
{
    size_t n = 0;
    while (n < len && is_space(bytes[n]))
        n++;
    k3_buf_put(&p->held, bytes, n);
    if (n == len)
        return;
    p->state = K3_PARSE_RESPONSE;
    k3_utf8_feed(&p->content.utf8, p->held.v, p->held.n, content_text, p);
    k3_buf_clear(&p->held);
    k3_utf8_feed(&p->content.utf8, bytes + n, len - n, content_text, p);
}

static void text(k3_chat_parser *p, const char *bytes, size_t len)
{
    switch (p->state) {
    case K3_PARSE_START:
        start_text(p, bytes, len);
        break;
    case K3_PARSE_THINK:
        k3_utf8_feed(&p->reasoning.utf8, bytes, len, reasoning_text, p);
        break;
    case K3_PARSE_RESPONSE:
        k3_utf8_feed(&p->content.utf8, bytes, len, content_text, p);
        break;
    case K3_PARSE_ARGUMENT:
    case K3_PARSE_JSON:
        k3_call_value(p, bytes, len);
        break;
    case K3_PARSE_EPILOGUE:
    case K3_PARSE_TOOLS:
    case K3_PARSE_CALL:
    case K3_PARSE_DONE:
        break; /* nobody's */
    }
}

/* The tag being read turns out to be text: its marker and its header so far. */
static void tag_is_text(k3_chat_parser *p)
{
    const char *marker = p->marker;
    p->marker = NULL;
    text(p, marker, strlen(marker));
    if (p->header.n > 0)
        text(p, p->header.v, p->header.n);
    k3_buf_clear(&p->header);
}

/* ---- tags ---------------------------------------------------------------------------------- */

enum tag { TAG_UNKNOWN, TAG_THINK, TAG_RESPONSE, TAG_TOOLS, TAG_CALL, TAG_ARGUMENT, TAG_JSON,
           TAG_MESSAGE };

/* Which tag a header names; *rest is where its attributes begin. */
static enum tag tag_of(const char *header, size_t len, size_t *rest)
{
    static const char *const names[] = {"think", "response", "tools", "call", "argument", "json",
                                        "message"};
    size_t from = 0;
    while (from < len && is_space(header[from]))
        from++;
    size_t end = from;
    while (end < len && !is_space(header[end]))
        end++;
    *rest = end;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == end - from && memcmp(names[i], header + from, end - from) == 0)
            return (enum tag)(TAG_THINK + i);
    return TAG_UNKNOWN;
}

static bool in_call(const k3_chat_parser *p)
{
    return p->state == K3_PARSE_CALL;
}

/* Leaves for another state; a call that is open is abandoned. */
static void move_to(k3_chat_parser *p, enum k3_parse_state state)
{
    if (in_call(p))
        k3_call_abandon(p);
    p->state = state;
}

static void open_tag(k3_chat_parser *p, enum tag tag, const char *attrs, size_t len)
{
    if (tag == TAG_THINK) {
        move_to(p, K3_PARSE_THINK);
    } else if (tag == TAG_RESPONSE) {
        move_to(p, K3_PARSE_RESPONSE);
    } else if (tag == TAG_TOOLS) {
        move_to(p, K3_PARSE_TOOLS);
    } else if (tag == TAG_CALL && (p->state == K3_PARSE_TOOLS || in_call(p))) {
        move_to(p, K3_PARSE_CALL);
        k3_call_begin(p, attrs, len);
    } else if (tag == TAG_ARGUMENT && in_call(p)) {
        k3_call_open_argument(p, attrs, len);
        p->state = K3_PARSE_ARGUMENT;
    } else if (tag == TAG_JSON && in_call(p)) {
        k3_call_open_block(p);
        p->state = K3_PARSE_JSON;
    }
}

static void close_tag(k3_chat_parser *p, enum tag tag)
{
    const enum k3_parse_state s = p->state;
    if (tag == TAG_THINK && s == K3_PARSE_THINK) {
        p->state = K3_PARSE_START;
    } else if (tag == TAG_RESPONSE && (s == K3_PARSE_START || s == K3_PARSE_RESPONSE)) {
        p->state = K3_PARSE_EPILOGUE;
    } else if (tag == TAG_TOOLS && (s == K3_PARSE_TOOLS || in_call(p))) {
        move_to(p, K3_PARSE_EPILOGUE);
    } else if (tag == TAG_CALL && in_call(p)) {
        k3_call_complete(p);
        p->state = K3_PARSE_TOOLS;
    } else if (tag == TAG_MESSAGE) {
        move_to(p, K3_PARSE_DONE);
    }
}

/* Inside a value only the tag that ends it is a tag. Returns false for all others. */
static bool close_value(k3_chat_parser *p, enum tag tag, bool closing)
{
    if (closing && p->state == K3_PARSE_ARGUMENT && tag == TAG_ARGUMENT)
        k3_call_close_argument(p);
    else if (closing && p->state == K3_PARSE_JSON && tag == TAG_JSON)
        k3_call_close_block(p);
    else
        return false;
    p->state = K3_PARSE_CALL;
    return true;
}

/* The tag's header is complete. */
static void finish_tag(k3_chat_parser *p)
{
    const bool closing = p->marker == CLOSE;
    const bool in_value = p->state == K3_PARSE_ARGUMENT || p->state == K3_PARSE_JSON;
    size_t rest;
    const enum tag tag = tag_of(p->header.v, p->header.n, &rest);
    if (tag == TAG_UNKNOWN || (in_value && !close_value(p, tag, closing))) {
        tag_is_text(p);
        text(p, SEP, strlen(SEP));
        return;
    }
    if (!in_value && p->state != K3_PARSE_DONE) {
        k3_buf_clear(&p->held);
        if (closing)
            close_tag(p, tag);
        else if (p->header.v)
            open_tag(p, tag, p->header.v + rest, p->header.n - rest);
    }
    p->marker = NULL;
    k3_buf_clear(&p->header);
}

/* ---- tokens -------------------------------------------------------------------------------- */

void k3_chat_parser_bytes(k3_chat_parser *p, const char *bytes, size_t len)
{
    if (p->ended || len == 0)
        return;
    if (p->marker) {
        const size_t room = HEADER_MAX - p->header.n;
        if (len <= room) {
            k3_buf_put(&p->header, bytes, len);
            return;
        }
        tag_is_text(p);
    }
    text(p, bytes, len);
}

static bool is_name(const char *name, size_t len, const char *want)
{
    return strlen(want) == len && memcmp(name, want, len) == 0;
}

bool k3_chat_parser_special(k3_chat_parser *p, const char *name, size_t len)
{
    if (p->ended)
        return true;
    if (is_name(name, len, "[EOS]") || is_name(name, len, "<|end_of_msg|>")) {
        p->ended = true;
    } else if (is_name(name, len, SEP)) {
        if (p->marker)
            finish_tag(p);
        else
            text(p, SEP, strlen(SEP));
    } else if (is_name(name, len, OPEN) || is_name(name, len, CLOSE)) {
        if (p->marker)
            tag_is_text(p);
        p->marker = is_name(name, len, OPEN) ? OPEN : CLOSE;
    }
    return p->ended;
}

bool k3_chat_parser_token(k3_chat_parser *p, const k3_tokenizer *t, int32_t id)
{
    size_t len;
    const char *bytes = k3_token_bytes(t, id, &len);
    if (!bytes)
        return p->ended;
    if (k3_token_is_special(t, id))
        return k3_chat_parser_special(p, bytes, len);
    k3_chat_parser_bytes(p, bytes, len);
    return p->ended;
}

enum k3_channel k3_chat_parser_channel(const k3_chat_parser *p)
{
    return p->state == K3_PARSE_THINK      ? K3_CHANNEL_THINK
           : p->state == K3_PARSE_RESPONSE ? K3_CHANNEL_RESPONSE
                                           : K3_CHANNEL_NONE;
}

/* ---- the end ------------------------------------------------------------------------------- */

static bool is_call_state(enum k3_parse_state s)
{
    return s == K3_PARSE_CALL || s == K3_PARSE_ARGUMENT || s == K3_PARSE_JSON;
}

enum k3_status k3_chat_parser_finish(k3_chat_parser *p, struct k3_answer *out,
                                     struct k3_error *err)
{
    *out = (struct k3_answer){.abandoned_calls = p->abandoned};
    k3_utf8_end(&p->reasoning.utf8, reasoning_text, p);
    k3_utf8_end(&p->content.utf8, content_text, p);
    out->has_partial = is_call_state(p->state) && k3_call_take_partial(p, &out->partial);
    p->failed |= out->has_partial && (!out->partial.name || !out->partial.arguments);
    p->failed |= p->held.failed || p->header.failed;
    out->reasoning = k3_buf_take(&p->reasoning.text, &out->reasoning_len);
    out->content = k3_buf_take(&p->content.text, &out->content_len);
    out->calls = p->calls;
    out->n_calls = p->n_calls;
    p->calls = NULL;
    p->n_calls = p->calls_cap = 0;
    if (p->failed || !out->reasoning || !out->content) {
        k3_answer_free(out);
        return k3_fail_memory(err, "the generated answer", sizeof *out);
    }
    out->end = p->state == K3_PARSE_DONE ? K3_END_CLOSED
               : p->ended                ? K3_END_STOPPED
                                         : K3_END_CUT;
    out->finish_reason = out->end == K3_END_CUT ? "length"
                         : out->n_calls > 0     ? "tool_calls"
                                                : "stop";
    return K3_OK;
}
