/* chat_call.c - the tool call that is being generated: its arguments as JSON text. */
#include "chat_parser.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "utf8.h"

/* ---- attributes ---------------------------------------------------------------------------- */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void put_unescaped(struct k3_buf *out, const char *value, size_t len)
{
    struct k3_buf b = {0};
    for (size_t i = 0; i < len;) {
        if (len - i >= 6 && memcmp(value + i, "&quot;", 6) == 0) {
            k3_buf_putc(&b, '"');
            i += 6;
        } else if (len - i >= 5 && memcmp(value + i, "&amp;", 5) == 0) {
            k3_buf_putc(&b, '&');
            i += 5;
        } else {
            k3_buf_putc(&b, value[i++]);
        }
    }
    k3_utf8_repair(out, b.v, b.n);
    out->failed |= b.failed;
    k3_buf_free(&b);
}

bool k3_tag_attribute(const char *header, size_t len, const char *name, struct k3_buf *out)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < len;) {
        const size_t from = i;
        while (i < len && is_name_byte(header[i]))
            i++;
        if (i == from || len - i < 2 || header[i] != '=' || header[i + 1] != '"') {
            i += i == from;
            continue;
        }
        const char *value = header + i + 2;
        const char *quote = memchr(value, '"', len - i - 2);
        if (!quote)
            continue;
        if (i - from == n && memcmp(header + from, name, n) == 0) {
            put_unescaped(out, value, (size_t)(quote - value));
            return true;
        }
        i = (size_t)(quote - header) + 1;
    }
    return false;
}

/* ---- arguments ----------------------------------------------------------------------------- */

/* Argument text that is certain: kept and told. */
static void tell(struct k3_chat_parser *p, const char *text, size_t len)
{
    struct k3_open_call *c = &p->call;
    k3_buf_put(&c->arguments, text, len);
    if (p->events.call_arguments && len > 0)
        p->events.call_arguments(p->events.ud, c->index, text, len);
}

static void tell_text(void *ud, const char *text, size_t len)
{
    tell(ud, text, len);
}

static void tell_escaped(void *ud, const char *text, size_t len)
{
    struct k3_chat_parser *p = ud;
    struct k3_buf b = {0};
    k3_json_write_escaped(&b, text, len);
    if (!b.failed)
        tell(p, b.v, b.n);
    p->failed |= b.failed;
    k3_buf_free(&b);
}

static void keep_raw(void *ud, const char *text, size_t len)
{
    struct k3_chat_parser *p = ud;
    k3_buf_put(&p->call.raw, text, len);
}

/* The `{"key":` or `,"key":` of the argument being read, and what follows. */
static void put_key(struct k3_chat_parser *p, struct k3_buf *b)
{
    struct k3_open_call *c = &p->call;
    k3_buf_putc(b, c->form == K3_CALL_EMPTY ? '{' : ',');
    k3_buf_putc(b, '"');
    k3_buf_put(b, c->key.v, c->key.n);
    k3_buf_puts(b, "\":");
    c->form = K3_CALL_ARGUMENTS;
}

static void tell_buf(struct k3_chat_parser *p, struct k3_buf *b)
{
    if (!b->failed)
        tell(p, b->v, b->n);
    p->failed |= b->failed;
    k3_buf_free(b);
}

void k3_call_begin(struct k3_chat_parser *p, const char *header, size_t len)
{
    struct k3_open_call *c = &p->call;
    k3_call_clear(c);
    c->named = k3_tag_attribute(header, len, "tool", &c->name) && c->name.n > 0;
    if (!c->named)
        return;
    c->index = p->next_index++;
    if (p->events.call_begin && !c->name.failed)
        p->events.call_begin(p->events.ud, c->index, c->name.v, c->name.n);
}

void k3_call_open_argument(struct k3_chat_parser *p, const char *header, size_t len)
{
    struct k3_open_call *c = &p->call;
    struct k3_buf key = {0}, type = {0};
    c->ignored = !c->named || c->form == K3_CALL_BLOCK;
    c->utf8.n = 0;
    k3_buf_clear(&c->raw);
    k3_buf_clear(&c->key);
    if (c->ignored)
        return;
    k3_tag_attribute(header, len, "key", &key);
    c->is_string = !k3_tag_attribute(header, len, "type", &type) ||
                   (type.n == 6 && memcmp(type.v, "string", 6) == 0);
    k3_json_write_escaped(&c->key, key.v, key.n);
    p->failed |= key.failed || type.failed;
    k3_buf_free(&key);
    k3_buf_free(&type);
    if (c->is_string) {
        struct k3_buf b = {0};
        put_key(p, &b);
        k3_buf_putc(&b, '"');
        tell_buf(p, &b);
    }
}

void k3_call_open_block(struct k3_chat_parser *p)
{
    struct k3_open_call *c = &p->call;
    c->ignored = !c->named || c->form != K3_CALL_EMPTY;
    c->utf8.n = 0;
    if (!c->ignored)
        c->form = K3_CALL_BLOCK;
}

void k3_call_value(struct k3_chat_parser *p, const char *bytes, size_t len)
{
    struct k3_open_call *c = &p->call;
    if (c->ignored)
        return;
    k3_text_fn fn = tell_text;
    if (p->state == K3_PARSE_ARGUMENT)
        fn = c->is_string ? tell_escaped : keep_raw;
    k3_utf8_feed(&c->utf8, bytes, len, fn, p);
}

/* The value of an argument that is not a string: its own text where that is JSON. */
static void put_value(struct k3_buf *b, const char *raw, size_t len)
{
    const char *const end = raw + len;
    const char *from = k3_json_skip_space(raw, end);
    const char *to = k3_json_skip(from, end, K3_JSON_STRICT, SIZE_MAX);
    if (to && k3_json_skip_space(to, end) == end) {
        k3_buf_put(b, from, (size_t)(to - from));
        return;
    }
    k3_buf_putc(b, '"');
    k3_json_write_escaped(b, raw, len);
    k3_buf_putc(b, '"');
}

void k3_call_close_argument(struct k3_chat_parser *p)
{
    struct k3_open_call *c = &p->call;
    if (c->ignored)
        return;
    if (c->is_string) {
        k3_utf8_end(&c->utf8, tell_escaped, p);
        tell(p, "\"", 1);
        return;
    }
    k3_utf8_end(&c->utf8, keep_raw, p);
    k3_buf_put(&c->raw, "", 0);
    p->failed |= c->raw.failed || c->key.failed;
    if (p->failed)
        return;
    struct k3_buf b = {0};
    put_key(p, &b);
    put_value(&b, c->raw.v, c->raw.n);
    tell_buf(p, &b);
}

void k3_call_close_block(struct k3_chat_parser *p)
{
    if (!p->call.ignored)
        k3_utf8_end(&p->call.utf8, tell_text, p);
}

/* ---- the whole call ------------------------------------------------------------------------ */

static void tell_end(struct k3_chat_parser *p, bool complete)
{
    if (p->call.named && p->events.call_end)
        p->events.call_end(p->events.ud, p->call.index, complete);
}

/* The call's strings, moved. They are NULL when memory ran out. */
static struct k3_tool_call take(struct k3_open_call *c)
{
    struct k3_tool_call out = {.index = c->index};
    out.name = k3_buf_take(&c->name, &out.name_len);
    out.arguments = k3_buf_take(&c->arguments, &out.arguments_len);
    return out;
}

void k3_call_complete(struct k3_chat_parser *p)
{
    struct k3_open_call *c = &p->call;
    if (!c->named)
        return;
    if (c->form == K3_CALL_EMPTY)
        tell(p, "{}", 2);
    else if (c->form == K3_CALL_ARGUMENTS)
        tell(p, "}", 1);
    if (p->n_calls == p->calls_cap) {
        const size_t cap = p->calls_cap ? p->calls_cap * 2 : 4;
        struct k3_tool_call *v = realloc(p->calls, cap * sizeof *v);
        if (!v) {
            p->failed = true;
            return;
        }
        p->calls = v;
        p->calls_cap = cap;
    }
    struct k3_tool_call *call = &p->calls[p->n_calls++];
    *call = take(c);
    p->failed |= !call->name || !call->arguments;
    tell_end(p, true);
}

void k3_call_abandon(struct k3_chat_parser *p)
{
    if (p->call.named)
        p->abandoned++;
    tell_end(p, false);
}

bool k3_call_take_partial(struct k3_chat_parser *p, struct k3_tool_call *out)
{
    if (!p->call.named)
        return false;
    tell_end(p, false);
    *out = take(&p->call);
    return true;
}

void k3_call_clear(struct k3_open_call *c)
{
    k3_buf_free(&c->name);
    k3_buf_free(&c->arguments);
    k3_buf_free(&c->key);
    k3_buf_free(&c->raw);
    *c = (struct k3_open_call){0};
}
