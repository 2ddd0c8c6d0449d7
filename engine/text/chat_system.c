/* chat_system.c - the messages that the chat format adds by itself, and the options. */
#include <string.h>

#include "buf.h"
#include "chat_render.h"

static const char *const thinking_names[] = {"off", "low", "high", "max", "on"};

bool k3_thinking_parse(const char *s, enum k3_thinking *out)
{
    for (int i = K3_THINK_OFF; i <= K3_THINK_MAX; i++) {
        if (strcmp(s, thinking_names[i]) == 0) {
            *out = (enum k3_thinking)i;
            return true;
        }
    }
    return false;
}

const char *k3_thinking_name(enum k3_thinking t)
{
    return thinking_names[t];
}

/* ---- options ------------------------------------------------------------------------------- */

static const struct k3_json *given(const struct k3_json *options, const char *key)
{
    const struct k3_json *j = k3_json_get(options, key);
    return k3_json_present(j) ? j : NULL;
}

static enum k3_status read_switch(const struct k3_json *options, const char *key, bool *out,
                                  struct k3_error *err)
{
    const struct k3_json *j = given(options, key);
    if (j && j->type != K3_JSON_TRUE && j->type != K3_JSON_FALSE)
        return k3_fail(err, K3_USAGE, "[bad_options] %s must be true or false", key);
    if (j)
        *out = j->type == K3_JSON_TRUE;
    return K3_OK;
}

static enum k3_status read_effort(const struct k3_json *effort, enum k3_thinking *out,
                                  struct k3_error *err)
{
    *out = K3_THINK_MAX;
    if (!effort)
        return K3_OK;
    if (effort->type == K3_JSON_NULL) {
        *out = K3_THINK_NO_MESSAGE;
        return K3_OK;
    }
    const bool text = effort->type == K3_JSON_STRING;
    if (text && strlen(effort->text) == effort->len && k3_thinking_parse(effort->text, out) &&
        *out != K3_THINK_OFF)
        return K3_OK;
    return k3_fail(err, K3_USAGE, "[bad_effort] thinking_effort is %.60s; it must be low, high, "
                   "max or null", text ? effort->text : "not a text");
}

enum k3_status k3_chat_options_read(const struct k3_json *options, struct k3_chat_options *out,
                                    struct k3_error *err)
{
    bool thinking = true, prompt = true;
    *out = (struct k3_chat_options){
        .tools = given(options, "tools"),
        .tool_choice = given(options, "tool_choice"),
        .response_format = given(options, "response_format"),
        .response_schema = given(options, "response_schema"),
        .image_prompts = given(options, "image_prompts"),
    };
    enum k3_status st = read_switch(options, "thinking", &thinking, err);
    if (st == K3_OK)
        st = read_switch(options, "add_generation_prompt", &prompt, err);
    out->no_generation_prompt = !prompt;
    out->thinking = K3_THINK_OFF;
    if (st == K3_OK && thinking)
        st = read_effort(k3_json_get(options, "thinking_effort"), &out->thinking, err);
    return st;
}

/* ---- messages ------------------------------------------------------------------------------ */

/* A system message of a type, with the one body that is in b. Frees b. */
static void system_message(struct k3_render *r, const char *type, struct k3_buf *b)
{
    const struct k3_attr attrs[] = {{"role", "system", 6}, {"type", type, strlen(type)}};
    if (b->failed)
        k3_render_memory(r);
    k3_render_open(r, "message", attrs, 2);
    if (!b->failed)
        k3_render_own(r, b->v, b->n);
    k3_render_end_message(r);
    k3_buf_free(b);
}

void k3_render_tools(struct k3_render *r, const struct k3_json *tools, bool during)
{
    struct k3_buf b = {0};
    k3_buf_puts(&b, during ? "## New Tools Available\n"
                             "The system dynamically extends the toolset via lazy-loading.\n"
                             "You have access to all existing and extended tools.\n"
                             "Here are the specs for the extended tools.\n"
                           : "# Tools\n"
                             "Here are the available tools, described in JSONSchema.\n");
    k3_buf_puts(&b, "\n```json\n");
    k3_json_write(&b, tools, K3_JSON_COMPACT_SORTED);
    k3_buf_puts(&b, "\n```");
    system_message(r, "tool-declare", &b);
}

void k3_render_effort(struct k3_render *r)
{
    if (r->opt->thinking == K3_THINK_OFF || r->opt->thinking == K3_THINK_NO_MESSAGE)
        return;
    struct k3_buf b = {0};
    k3_buf_puts(&b, "`thinking_effort` guides on how much to think in your thinking channel (not "
                    "including the response channel), supported values include `low`, `medium`, "
                    "`high`, and `max`.\n"
                    "Now the system is invoked with `thinking_effort=");
    k3_buf_puts(&b, k3_thinking_name(r->opt->thinking));
    k3_buf_puts(&b, "`.");
    system_message(r, "thinking-effort", &b);
}

void k3_render_tool_choice(struct k3_render *r)
{
    const bool required = k3_json_is(r->opt->tool_choice, "required");
    if (!required && !k3_json_is(r->opt->tool_choice, "none"))
        return;
    struct k3_buf b = {0};
    k3_buf_puts(&b, required ? "The system is invoked with `tool_choice=required`.\n"
                               "You MUST call tools in the next message."
                             : "The system is invoked with `tool_choice=none`.\n"
                               "You MUST NOT call any tools in the next message.");
    system_message(r, "tool-choice", &b);
}

/* Where the schema of a response format stands; NULL = nowhere. */
static const struct k3_json *find_schema(const struct k3_chat_options *opt)
{
    if (k3_json_present(opt->response_schema))
        return opt->response_schema;
    const struct k3_json *outer = k3_json_get(opt->response_format, "json_schema");
    const struct k3_json *inner = k3_json_get(outer, "schema");
    if (!k3_json_present(inner))
        inner = k3_json_get(outer, "json_schema");
    if (k3_json_present(inner))
        return inner;
    return outer && outer->type == K3_JSON_OBJECT ? outer : NULL;
}

void k3_render_response_format(struct k3_render *r)
{
    const struct k3_json *type = r->opt->response_format;
    if (type && type->type == K3_JSON_OBJECT)
        type = k3_json_get(type, "type");
    const bool schema = k3_json_is(type, "json_schema");
    if (!schema && !k3_json_is(type, "json_object"))
        return;
    struct k3_buf b = {0};
    k3_buf_puts(&b, "The system is invoked with `response_format=");
    k3_buf_put(&b, type->text, type->len);
    k3_buf_puts(&b, "`.\nYour response must be raw JSON data "
                    "without markdown code blocks (```json) "
                    "or any additional formatting.");
    if (schema) {
        static const struct k3_json none = {.type = K3_JSON_NULL};
        const struct k3_json *j = find_schema(r->opt);
        k3_buf_puts(&b, "\nThe JSON data must match the following schema:\n```json\n");
        k3_json_write(&b, j ? j : &none, K3_JSON_COMPACT_SORTED);
        k3_buf_puts(&b, "\n```");
    }
    system_message(r, "response-format", &b);
}
