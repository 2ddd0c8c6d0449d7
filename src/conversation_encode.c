/* conversation_encode.c - from messages to the ids of a prompt; see conversation.h. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "conversation.h"

/* The renderer reads its own JSON values; the conversation goes there as text. */
static struct k3_json *to_k3_json(const struct conversation *c, struct k3_error *err)
{
    json_t *list = json_array();
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < c->n; i++)
        ok = json_array_append(list, c->v[i].body) == 0;
    char *text = ok ? json_dumps(list, JSON_COMPACT) : NULL;
    json_decref(list);
    if (text == NULL) {
        k3_fail_memory(err, "the conversation as JSON", c->n);
        return NULL;
    }
    struct k3_json *j = k3_json_parse(text, strlen(text), err);
    free(text);
    return j;
}

/* ---- answers as they were generated ------------------------------------------------------- */

static bool same_text(const struct message *m, const char *field, const char *text, size_t len)
{
    size_t n = 0;
    const char *have = message_text(m, field, &n);
    return n == len && memcmp(have, text, n) == 0;
}

static bool same_string(const json_t *j, const char *text, size_t len)
{
    return json_is_string(j) && json_string_length(j) == len &&
           memcmp(json_string_value(j), text, len) == 0;
}

static bool same_calls(const struct message *m, const struct k3_answer *a)
{
    const json_t *calls = json_object_get(m->body, "tool_calls");
    if (json_array_size(calls) != a->n_calls)
        return false;
    for (size_t i = 0; i < a->n_calls; i++) {
        const json_t *f = json_object_get(json_array_get(calls, i), "function");
        const struct k3_tool_call *c = &a->calls[i];
        if (!same_string(json_object_get(f, "name"), c->name, c->name_len) ||
            !same_string(json_object_get(f, "arguments"), c->arguments, c->arguments_len))
            return false;
    }
    return true;
}

bool message_thinking(const struct message *m, enum k3_thinking *out)
{
    const json_t *j = json_object_get(m->settings, "thinking");
    return json_is_string(j) && k3_thinking_parse(json_string_value(j), out);
}

/* Appends the message's own ids, completed; false = it has to be rendered. */
static bool put_generated(const struct message *m, enum k3_thinking thinking,
                          const k3_tokenizer *tok, struct k3_ids *out, struct k3_error *err)
{
    enum k3_thinking made = K3_THINK_MAX;
    if (m->ids.n == 0 || !message_thinking(m, &made) ||
        (made == K3_THINK_OFF) != (thinking == K3_THINK_OFF))
        return false;
    struct k3_answer a = {0};
    const size_t before = out->n;
    bool kept = false;
    const size_t n = m->ids.n - (m->finish == FINISH_STOP); /* the stop id itself */
    const enum k3_status status =
        k3_chat_keep(tok, made == K3_THINK_OFF ? K3_CHANNEL_RESPONSE : K3_CHANNEL_THINK, m->ids.v,
                     n, out, &a, &kept, err);
    kept = kept && status == K3_OK && same_text(m, "content", a.content, a.content_len) &&
           same_text(m, "reasoning_content", a.reasoning, a.reasoning_len) && same_calls(m, &a);
    k3_answer_free(&a);
    if (!kept)
        out->n = before;
    return kept;
}

/* ---- the prompt -------------------------------------------------------------------------- */

static bool is_special(const struct k3_segment *g, const char *name)
{
    return g->special && strcmp(g->text, name) == 0;
}

/* The segments [from, end) of one message, its end marker included; `end` is returned. */
static size_t message_end(const struct k3_segments *s, size_t from)
{
    while (from < s->n && !is_special(&s->v[from], "<|end_of_msg|>"))
        from++;
    return from < s->n ? from + 1 : from;
}

/* <|open|> message role="assistant": a closed one, not the generation prompt. */
static bool is_answer(const struct k3_segments *s, size_t from, size_t end)
{
    return end - from > 8 && is_special(&s->v[end - 1], "<|end_of_msg|>") &&
           strcmp(s->v[from + 1].text, "message") == 0 &&
           strcmp(s->v[from + 2].text, " role") == 0 &&
           strcmp(s->v[from + 4].text, "assistant") == 0;
}

static enum k3_status put_range(const struct k3_segments *s, size_t from, size_t end,
                                const k3_tokenizer *tok, struct k3_ids *out, struct k3_error *err)
{
    const struct k3_segments part = {.v = s->v + from, .n = end - from};
    return k3_chat_encode(tok, &part, out, err);
}

/* Behind the second <|sep|>, that of the first channel, the model wrote for itself. */
static size_t head_end(const struct k3_segments *s, size_t from)
{
    for (int seps = 0; seps < 2; from++)
        seps += is_special(&s->v[from], "<|sep|>");
    return from;
}

static enum k3_status put_answer(const struct k3_segments *s, size_t from, size_t end,
                                 const struct message *m, enum k3_thinking thinking,
                                 const k3_tokenizer *tok, struct k3_ids *out, struct k3_error *err)
{
    const size_t before = out->n, head = head_end(s, from);
    if (put_range(s, from, head, tok, out, err) != K3_OK)
        return err->status;
    struct k3_error why = {0};
    if (put_generated(m, thinking, tok, out, &why))
        return put_range(s, end - 1, end, tok, out, err);
    out->n = before;
    return put_range(s, from, end, tok, out, err);
}

static enum k3_status put_all(const struct k3_segments *s, const struct conversation *c,
                              enum k3_thinking thinking, const k3_tokenizer *tok,
                              struct k3_ids *out, struct k3_error *err)
{
    enum k3_status status = K3_OK;
    size_t next = 0; /* message of the conversation */
    for (size_t at = 0, end; status == K3_OK && at < s->n; at = end) {
        end = message_end(s, at);
        if (!is_answer(s, at, end)) {
            status = put_range(s, at, end, tok, out, err);
            continue;
        }
        while (next < c->n && strcmp(message_role(&c->v[next]), "assistant") != 0)
            next++;
        status = next < c->n ? put_answer(s, at, end, &c->v[next], thinking, tok, out, err)
                             : put_range(s, at, end, tok, out, err);
        next++;
    }
    return status;
}

enum k3_status conversation_encode(const struct conversation *c, enum k3_thinking thinking,
                                   const k3_tokenizer *tok, struct k3_ids *out,
                                   struct k3_error *err)
{
    const struct k3_chat_options opt = {.thinking = thinking, .refuse_images = true};
    struct k3_segments segments = {0};
    struct k3_json *messages = to_k3_json(c, err);
    if (messages == NULL)
        return err->status;
    enum k3_status status = k3_chat_render(messages, &opt, &segments, err);
    if (status == K3_OK)
        status = put_all(&segments, c, thinking, tok, out, err);
    k3_segments_free(&segments);
    k3_json_free(messages);
    return status;
}

enum k3_status conversation_check(const struct conversation *c, struct k3_error *err)
{
    const struct k3_chat_options opt = {.refuse_images = true};
    struct k3_segments segments = {0};
    struct k3_json *messages = to_k3_json(c, err);
    if (messages == NULL)
        return err->status;
    const enum k3_status status = k3_chat_render(messages, &opt, &segments, err);
    k3_segments_free(&segments);
    k3_json_free(messages);
    return status;
}
