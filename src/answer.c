/* answer.c - see answer.h. */
#include <config.h>

#include "answer.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../engine/model/host.h"

static void on_reasoning(void *ud, const char *text, size_t len)
{
    struct answer *a = ud;
    recorder_reasoning(a->rec, text, len);
    if (a->reasoning != NULL)
        a->reasoning(a->ud, text, len);
}

static void on_content(void *ud, const char *text, size_t len)
{
    struct answer *a = ud;
    recorder_content(a->rec, text, len);
    if (a->content != NULL)
        a->content(a->ud, text, len);
}

enum k3_status answer_begin(struct answer *a, const k3_tokenizer *tok, struct recorder *rec,
                            enum k3_thinking thinking, const json_t *settings, struct k3_error *err)
{
    const struct k3_chat_events events = {
        .reasoning = on_reasoning, .content = on_content, .ud = a};
    a->tok = tok;
    a->rec = rec;
    a->time = (int64_t)time(NULL);
    a->parser = k3_chat_parser_new(
        thinking == K3_THINK_OFF ? K3_CHANNEL_RESPONSE : K3_CHANNEL_THINK, &events);
    if (a->parser == NULL)
        return k3_fail_memory(err, "the answer", 0);
    recorder_begin(rec, settings);
    return K3_OK;
}

bool answer_thinks(const struct answer *a)
{
    return k3_chat_parser_channel(a->parser) == K3_CHANNEL_THINK;
}

void answer_token(struct answer *a, int32_t id)
{
    const bool thinks = answer_thinks(a);
    if (k3_ids_push(&a->ids, id, &a->error) != K3_OK)
        return;
    a->reasoning_tokens += thinks;
    k3_chat_parser_token(a->parser, a->tok, id);
    recorder_token(a->rec, id, thinks);
}

/* Complete calls as an assistant message carries them. */
static json_t *calls_json(const struct k3_answer *parsed)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < parsed->n_calls; i++) {
        const struct k3_tool_call *c = &parsed->calls[i];
        json_t *call = json_pack("{s:s, s:{s:s%, s:s%}}", "type", "function", "function", "name",
                                 c->name, c->name_len, "arguments", c->arguments,
                                 c->arguments_len);
        if (json_array_append_new(list, call) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static enum k3_status make_message(const struct answer *a, const struct k3_answer *parsed,
                                   struct message *m, struct k3_error *err)
{
    m->body = body_new("assistant", parsed->content, parsed->content_len, err);
    if (m->body == NULL ||
        body_set(m->body, "reasoning_content", parsed->reasoning, parsed->reasoning_len, err) !=
            K3_OK)
        return err->status;
    if (parsed->n_calls > 0 &&
        json_object_set_new(m->body, "tool_calls", calls_json(parsed)) != 0)
        return k3_fail_memory(err, "the answer's tool calls", parsed->n_calls);
    m->time = a->time;
    m->tokens = (uint32_t)a->ids.n;
    m->reasoning_tokens = a->reasoning_tokens;
    return K3_OK;
}

enum k3_status answer_end(struct answer *a, enum session_finish finish, double seconds,
                          const json_t *figures, struct message *out, struct k3_error *err)
{
    struct k3_answer parsed = {0};
    struct message m = {.finish = finish, .seconds = seconds};
    memset(out, 0, sizeof *out);
    enum k3_status status = k3_chat_parser_finish(a->parser, &parsed, err);
    if (status == K3_OK && a->error.status != K3_OK) {
        *err = a->error;
        status = err->status;
    }
    if (status == K3_OK)
        status = make_message(a, &parsed, &m, err);
    k3_answer_free(&parsed);
    if (status != K3_OK) {
        message_free(&m);
        return status;
    }
    m.ids = a->ids; /* moves */
    a->ids = (struct k3_ids){0};
    recorder_end(a->rec, &m, figures);
    *out = m;
    return K3_OK;
}

void answer_free(struct answer *a)
{
    k3_chat_parser_free(a->parser);
    k3_ids_free(&a->ids);
    a->parser = NULL;
}

json_t *answer_settings(const struct run_config *cfg, const char *model, enum k3_thinking thinking)
{
    json_t *j = json_pack("{s:s, s:s, s:s}", "model", model, "profile", cfg->profile_name,
                          "thinking", k3_thinking_name(thinking));
    if (j == NULL)
        return NULL;
    const struct k3_sampling *s = &cfg->sampling;
    bool ok;
    if (s->greedy)
        ok = json_object_set_new(j, "greedy", json_true()) == 0;
    else
        ok = json_object_set_new(j, "temperature", json_real((double)s->temperature)) == 0 &&
             json_object_set_new(j, "top_p", json_real((double)s->top_p)) == 0 &&
             json_object_set_new(j, "seed", json_integer((json_int_t)s->seed)) == 0;
    if (ok)
        return j;
    json_decref(j);
    return NULL;
}

json_t *answer_figures(uint32_t prompt_tokens, uint32_t reused, const struct step_stats *prefill,
                       const struct step_stats *steps)
{
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:I, s:I}", "prompt_tokens",
                     (json_int_t)prompt_tokens, "reused_tokens", (json_int_t)reused, "prefill_s",
                     prefill->seconds, "disk_wait_fraction", stats_wait_fraction(steps),
                     "true_resident_hit_rate", stats_hit_rate(steps), "bytes_read",
                     (json_int_t)(prefill->bytes_trunk + prefill->bytes_experts +
                                  steps->bytes_trunk + steps->bytes_experts),
                     "peak_rss", (json_int_t)k3_host_peak_rss());
}
