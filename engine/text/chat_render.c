/* chat_render.c - a conversation as segments. See chat.h. */
#include "chat_render.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"

static const char PLACEHOLDER[] = "<|kimi_image_placeholder|>";

/* ---- segments ------------------------------------------------------------------------------ */

void k3_segments_free(struct k3_segments *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i].text);
    free(s->v);
    *s = (struct k3_segments){0};
}

static bool push_segment(struct k3_segments *s, const char *text, size_t len, bool special)
{
    if (s->n == s->cap) {
        const size_t cap = s->cap ? s->cap * 2 : 64;
        struct k3_segment *v = realloc(s->v, cap * sizeof *v);
        if (!v)
            return false;
        s->v = v;
        s->cap = cap;
    }
    char *copy = malloc(len + 1);
    if (!copy)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    s->v[s->n++] = (struct k3_segment){copy, len, special};
    return true;
}

static void put(struct k3_render *r, const char *text, size_t len, bool special)
{
    if (r->st == K3_OK && len > 0 && !push_segment(r->out, text, len, special))
        k3_render_memory(r);
}

static void put_control(struct k3_render *r, const char *name)
{
    put(r, name, strlen(name), true);
}

static void put_string(struct k3_render *r, const char *text)
{
    put(r, text, strlen(text), false);
}

void k3_render_fail(struct k3_render *r, const char *kind, const char *what)
{
    if (r->st == K3_OK)
        r->st = k3_fail(r->err, K3_USAGE, "[%s] messages[%zu]: %s", kind, r->message, what);
}

void k3_render_memory(struct k3_render *r)
{
    if (r->st == K3_OK)
        r->st = k3_fail_memory(r->err, "rendering a conversation", sizeof(struct k3_segment));
}

/* ---- building blocks ----------------------------------------------------------------------- */

static void put_escaped(struct k3_render *r, const char *value, size_t len)
{
    struct k3_buf b = {0};
    for (size_t i = 0; i < len; i++) {
        if (value[i] == '&')
            k3_buf_puts(&b, "&amp;");
        else if (value[i] == '"')
            k3_buf_puts(&b, "&quot;");
        else
            k3_buf_putc(&b, value[i]);
    }
    if (b.failed)
        k3_render_memory(r);
    else if (b.n > 0)
        put(r, b.v, b.n, false);
    k3_buf_free(&b);
}

static void put_attr(struct k3_render *r, const struct k3_attr *a)
{
    struct k3_buf key = {0};
    k3_buf_putc(&key, ' ');
    k3_buf_puts(&key, a->name);
    if (key.failed)
        k3_render_memory(r);
    else
        put(r, key.v, key.n, false);
    k3_buf_free(&key);
    put_string(r, "=\"");
    put_escaped(r, a->value, a->len);
    put_string(r, "\"");
}

void k3_render_open(struct k3_render *r, const char *tag, const struct k3_attr *attrs, size_t n)
{
    put_control(r, "<|open|>");
    put_string(r, tag);
    for (size_t i = 0; i < n; i++)
        if (attrs[i].value)
            put_attr(r, &attrs[i]);
    put_control(r, "<|sep|>");
}

void k3_render_close(struct k3_render *r, const char *tag)
{
    put_control(r, "<|close|>");
    put_string(r, tag);
    put_control(r, "<|sep|>");
}

void k3_render_end_message(struct k3_render *r)
{
    k3_render_close(r, "message");
    put_control(r, "<|end_of_msg|>");
}

void k3_render_own(struct k3_render *r, const char *text, size_t len)
{
    put(r, text, len, false);
}

bool k3_json_present(const struct k3_json *j)
{
    return j && j->type != K3_JSON_NULL;
}

bool k3_json_is(const struct k3_json *j, const char *string)
{
    return j && j->type == K3_JSON_STRING && j->len == strlen(string) &&
           memcmp(j->text, string, j->len) == 0;
}

/* ---- images and content -------------------------------------------------------------------- */

static void put_image(struct k3_render *r)
{
    const struct k3_json *prompts = r->opt->image_prompts;
    if (r->opt->refuse_images) {
        k3_render_fail(r, "image_refused", "images are not supported; send text only");
    } else if (!prompts) {
        put_control(r, PLACEHOLDER);
    } else if (r->images == prompts->n) {
        k3_render_fail(r, "image_count", "there are more images than image prompts");
    } else {
        const struct k3_json *prompt = &prompts->items[r->images++];
        if (prompt->type == K3_JSON_STRING)
            put(r, prompt->text, prompt->len, true);
        else
            k3_render_fail(r, "bad_options", "an image prompt must be a text");
    }
}

static const char *find(const char *text, size_t len, const char *what, size_t n)
{
    const char *const end = text + len;
    while ((size_t)(end - text) >= n) {
        text = memchr(text, what[0], (size_t)(end - text) - n + 1);
        if (!text || memcmp(text, what, n) == 0)
            return text;
        text++;
    }
    return NULL;
}

void k3_render_text(struct k3_render *r, const char *text, size_t len)
{
    const size_t n = sizeof PLACEHOLDER - 1;
    while (r->st == K3_OK && r->opt->image_prompts && !r->opt->refuse_images) {
        const char *image = find(text, len, PLACEHOLDER, n);
        if (!image)
            break;
        put(r, text, (size_t)(image - text), false);
        put_image(r);
        len -= (size_t)(image - text) + n;
        text = image + n;
    }
    put(r, text, len, false);
}

static void put_part(struct k3_render *r, const struct k3_json *part)
{
    const struct k3_json *type = k3_json_get(part, "type"), *text = k3_json_get(part, "text");
    if (part->type != K3_JSON_OBJECT)
        k3_render_fail(r, "bad_content", "a part of content must be an object");
    else if (!type || type->type != K3_JSON_STRING)
        k3_render_fail(r, "bad_content", "a part of content has no \"type\"");
    else if (k3_json_is(type, "image") || k3_json_is(type, "image_url"))
        put_image(r);
    else if (!text || text->type != K3_JSON_STRING)
        k3_render_fail(r, "bad_content", "a part of content has no \"text\"");
    else
        k3_render_text(r, text->text, text->len);
}

void k3_render_content(struct k3_render *r, const struct k3_json *content)
{
    if (!k3_json_present(content))
        return;
    if (content->type == K3_JSON_STRING) {
        k3_render_text(r, content->text, content->len);
    } else if (content->type == K3_JSON_ARRAY) {
        for (size_t i = 0; r->st == K3_OK && i < content->n; i++)
            put_part(r, &content->items[i]);
    } else {
        k3_render_fail(r, "bad_content", "content must be a text, an array of parts or null");
    }
}

/* ---- messages ------------------------------------------------------------------------------ */

/* The attribute `name`, left out when absent, null or empty. */
static struct k3_attr name_attr(struct k3_render *r, const struct k3_json *message)
{
    const struct k3_json *name = k3_json_get(message, "name");
    if (!k3_json_present(name))
        return (struct k3_attr){"name", NULL, 0};
    if (name->type != K3_JSON_STRING) {
        k3_render_fail(r, "bad_message", "name must be a text");
        return (struct k3_attr){"name", NULL, 0};
    }
    return (struct k3_attr){"name", name->len ? name->text : NULL, name->len};
}

static void open_message(struct k3_render *r, const struct k3_json *message, const char *role)
{
    const struct k3_attr attrs[] = {{"role", role, strlen(role)}, name_attr(r, message)};
    k3_render_open(r, "message", attrs, 2);
}

/* Not there, false, zero or empty: what Python takes for false. */
static bool falsy(const struct k3_json *j)
{
    if (!k3_json_present(j) || j->type == K3_JSON_FALSE)
        return true;
    if (j->type == K3_JSON_NUMBER)
        return j->text[strspn(j->text, "-0.")] == '\0';
    return j->type == K3_JSON_STRING ? j->len == 0 : j->type != K3_JSON_TRUE && j->n == 0;
}

static void put_reasoning(struct k3_render *r, const struct k3_json *message)
{
    const struct k3_json *reasoning = k3_json_get(message, "reasoning_content");
    if (falsy(reasoning))
        reasoning = k3_json_get(message, "reasoning");
    k3_render_open(r, "think", NULL, 0);
    if (!falsy(reasoning)) {
        if (reasoning->type == K3_JSON_STRING)
            k3_render_text(r, reasoning->text, reasoning->len);
        else
            k3_render_fail(r, "bad_content", "reasoning must be a text");
    }
    k3_render_close(r, "think");
}

static void render_assistant(struct k3_render *r, const struct k3_json *message)
{
    const struct k3_json *calls = k3_json_get(message, "tool_calls");
    r->calls = calls && calls->type == K3_JSON_ARRAY ? calls : NULL;
    r->results = 0;
    open_message(r, message, "assistant");
    if (r->opt->thinking != K3_THINK_OFF)
        put_reasoning(r, message);
    k3_render_open(r, "response", NULL, 0);
    k3_render_content(r, k3_json_get(message, "content"));
    k3_render_close(r, "response");
    k3_render_calls(r, calls);
    k3_render_end_message(r);
}

static void render_plain(struct k3_render *r, const struct k3_json *message, const char *role)
{
    open_message(r, message, role);
    k3_render_content(r, k3_json_get(message, "content"));
    k3_render_end_message(r);
}

static void render_system(struct k3_render *r, const struct k3_json *message)
{
    const struct k3_json *tools = k3_json_get(message, "tools");
    if (falsy(tools))
        render_plain(r, message, "system");
    else if (tools->type == K3_JSON_ARRAY)
        k3_render_tools(r, tools, true);
    else
        k3_render_fail(r, "bad_message", "tools must be an array");
}

static void fail_role(struct k3_render *r, const struct k3_json *role)
{
    if (role && role->type == K3_JSON_STRING)
        r->st = k3_fail(r->err, K3_USAGE, "[unknown_role] messages[%zu].role is \"%.60s\"; it must "
                        "be system, user, assistant or tool", r->message, role->text);
    else
        k3_render_fail(r, "unknown_role",
                       "has no role; it must be system, user, assistant or tool");
}

/* One message, or a whole run of tool messages. Returns the index behind it. */
static size_t render_message(struct k3_render *r, const struct k3_json *messages, size_t i)
{
    const struct k3_json *m = &messages->items[i];
    const struct k3_json *role = k3_json_get(m, "role");
    size_t end = i + 1;
    r->message = i;
    if (m->type != K3_JSON_OBJECT) {
        k3_render_fail(r, "bad_message", "is not an object");
    } else if (k3_json_is(role, "user")) {
        render_plain(r, m, "user");
    } else if (k3_json_is(role, "system")) {
        render_system(r, m);
    } else if (k3_json_is(role, "assistant")) {
        render_assistant(r, m);
    } else if (k3_json_is(role, "tool")) {
        while (end < messages->n && k3_json_is(k3_json_get(&messages->items[end], "role"), "tool"))
            end++;
        k3_render_results(r, messages, i, end);
    } else {
        fail_role(r, role);
    }
    return end;
}

static void render_generation_prompt(struct k3_render *r)
{
    const struct k3_attr role = {"role", "assistant", 9};
    k3_render_open(r, "message", &role, 1);
    k3_render_open(r, r->opt->thinking == K3_THINK_OFF ? "response" : "think", NULL, 0);
}

enum k3_status k3_chat_render(const struct k3_json *messages, const struct k3_chat_options *opt,
                              struct k3_segments *out, struct k3_error *err)
{
    struct k3_render r = {.opt = opt, .out = out, .err = err, .st = K3_OK};
    if (!messages || messages->type != K3_JSON_ARRAY)
        return k3_fail(err, K3_USAGE, "[bad_message] a conversation must be an array of messages");
    if (opt->image_prompts && opt->image_prompts->type != K3_JSON_ARRAY)
        return k3_fail(err, K3_USAGE, "[bad_options] image_prompts must be an array of texts");
    if (opt->tools && !falsy(opt->tools)) {
        if (opt->tools->type != K3_JSON_ARRAY)
            return k3_fail(err, K3_USAGE, "[bad_options] tools must be an array");
        k3_render_tools(&r, opt->tools, false);
    }
    k3_render_effort(&r);
    for (size_t i = 0; r.st == K3_OK && i < messages->n;)
        i = render_message(&r, messages, i);
    k3_render_tool_choice(&r);
    k3_render_response_format(&r);
    if (!opt->no_generation_prompt)
        render_generation_prompt(&r);
    if (r.st == K3_OK && opt->image_prompts && r.images != opt->image_prompts->n)
        r.st = k3_fail(err, K3_USAGE, "[image_count] %zu image prompts for %zu images",
                       opt->image_prompts->n, r.images);
    return r.st;
}

enum k3_status k3_chat_encode(const k3_tokenizer *t, const struct k3_segments *s,
                              struct k3_ids *out, struct k3_error *err)
{
    static const char *const controls[] = {"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"};
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
        if (k3_token_special(t, controls[i]) < 0)
            return k3_fail(err, K3_USAGE, "the tokenizer has no special token %s: its "
                           "tokenizer_config.json is not that of a K3 chat model", controls[i]);
    enum k3_status st = K3_OK;
    for (size_t i = 0; st == K3_OK && i < s->n; i++)
        st = k3_encode(t, s->v[i].text, s->v[i].len, s->v[i].special, out, err);
    return st;
}
