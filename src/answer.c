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
                            enum k3_thinking thinking, json_t *settings, struct k3_error *err)
{
    const struct k3_chat_events events = {
        .reasoning = on_reasoning, .content = on_content, .ud = a};
    a->tok = tok;
    a->rec = rec;
    a->time = (int64_t)time(NULL);
    a->settings = json_incref(settings);
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

void answer_replay(struct answer *a, const struct k3_ids *ids)
{
    recorder_hold(a->rec, true);
    for (size_t i = 0; i < ids->n; i++)
        answer_token(a, ids->v[i]);
    recorder_hold(a->rec, false);
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
    m.settings = json_incref(a->settings);
    m.figures = json_deep_copy(figures);
    recorder_end(a->rec, &m, figures);
    *out = m;
    return K3_OK;
}

void answer_free(struct answer *a)
{
    k3_chat_parser_free(a->parser);
    k3_ids_free(&a->ids);
    json_decref(a->settings);
    a->settings = NULL;
    a->parser = NULL;
}

/* What is off stands nowhere. */
static bool put_sampling(json_t *j, const struct k3_sampling *s)
{
    if (s->greedy)
        return json_object_set_new(j, "greedy", json_true()) == 0;
    bool ok = json_object_set_new(j, "temperature", json_real((double)s->temperature)) == 0 &&
              json_object_set_new(j, "top_p", json_real((double)s->top_p)) == 0 &&
              json_object_set_new(j, "seed", json_integer((json_int_t)s->seed)) == 0;
    if (ok && s->top_k > 0)
        ok = json_object_set_new(j, "top_k", json_integer(s->top_k)) == 0;
    if (ok && s->min_p > 0)
        ok = json_object_set_new(j, "min_p", json_real((double)s->min_p)) == 0;
    if (ok && s->repetition_penalty > 0)
        ok = json_object_set_new(j, "repetition_penalty",
                                 json_real((double)s->repetition_penalty)) == 0;
    return ok;
}

json_t *answer_settings(const struct answer_maker *m)
{
    char fingerprint[K3_FINGERPRINT_TEXT];
    k3_fingerprint_text(m->fingerprint, fingerprint);
    json_t *j = json_pack("{s:s, s:s, s:i, s:s, s:s, s:I}", "model", m->model, "fingerprint",
                          fingerprint, "contract", (int)K3_CONTRACT_VERSION, "profile", m->profile,
                          "thinking", k3_thinking_name(m->thinking), "max_tokens",
                          (json_int_t)m->max_tokens);
    if (j == NULL || put_sampling(j, &m->sampling))
        return j;
    json_decref(j);
    return NULL;
}

static double real_of(const json_t *j, const char *key, double otherwise, double min, double max)
{
    const json_t *v = json_object_get(j, key);
    const double x = json_is_number(v) ? json_number_value(v) : otherwise;
    return x >= min && x <= max ? x : otherwise;
}

static uint64_t count_of(const json_t *j, const char *key, uint64_t otherwise, int64_t max)
{
    const json_t *v = json_object_get(j, key);
    const json_int_t x = json_integer_value(v);
    return json_is_integer(v) && x >= 0 && x <= max ? (uint64_t)x : otherwise;
}

bool answer_settings_read(const json_t *settings, struct answer_maker *m)
{
    char fingerprint[K3_FINGERPRINT_TEXT];
    const json_t *j = settings, *thinking = json_object_get(j, "thinking");
    struct k3_sampling *s = &m->sampling;
    if (json_is_string(thinking))
        k3_thinking_parse(json_string_value(thinking), &m->thinking);
    m->max_tokens = (uint32_t)count_of(j, "max_tokens", m->max_tokens, UINT32_MAX);
    if (json_is_true(json_object_get(j, "greedy"))) {
        s->greedy = true;
    } else if (json_object_get(j, "temperature") != NULL) {
        *s = (struct k3_sampling){
            .temperature = (float)real_of(j, "temperature", 1, 1e-6, 100),
            .top_p = (float)real_of(j, "top_p", 1, 1e-9, 1),
            .seed = count_of(j, "seed", 0, INT64_MAX),
            .top_k = (uint32_t)count_of(j, "top_k", 0, UINT32_MAX),
            .min_p = (float)real_of(j, "min_p", 0, 0, 1),
            .repetition_penalty = (float)real_of(j, "repetition_penalty", 0, 1e-6, 100)};
    }
    k3_fingerprint_text(m->fingerprint, fingerprint);
    const json_t *made_by = json_object_get(j, "fingerprint");
    return json_is_string(made_by) && strcmp(json_string_value(made_by), fingerprint) == 0 &&
           json_integer_value(json_object_get(j, "contract")) == (json_int_t)K3_CONTRACT_VERSION;
}

uint32_t answer_room(const struct message *m, struct answer_maker *with)
{
    const uint32_t have = (uint32_t)m->ids.n, most = with->max_tokens;
    if (have < most)
        return most - have;
    with->max_tokens = have > UINT32_MAX - most ? UINT32_MAX : have + most;
    return with->max_tokens - have;
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
