/* vectors_chat.c - chat vectors: conversations as segments, generated tokens as answers. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/text/buf.h"
#include "../engine/text/utf8.h"
#include "vectors.h"

/* ---- rendering ----------------------------------------------------------------------------- */

static enum vec_result same_segments(struct vec_env *env, const struct k3_segments *got,
                                     const struct k3_json *want)
{
    for (size_t i = 0; i < got->n && i < want->n; i++) {
        const struct k3_json *w = &want->items[i];
        char what[40];
        snprintf(what, sizeof what, "segment %zu", i);
        if (w->type != K3_JSON_ARRAY || w->n != 2)
            return vec_fail(env, "%s is not understood", what);
        if (!vec_same_text(env, what, got->v[i].text, got->v[i].len, &w->items[0]))
            return VEC_FAIL;
        if (got->v[i].special != (vec_int(&w->items[1]) == 1))
            return vec_fail(env, "%s: special is %d", what, got->v[i].special);
    }
    if (got->n != want->n)
        return vec_fail(env, "%zu segments, expected %zu", got->n, want->n);
    return VEC_PASS;
}

static enum vec_result same_rendered(struct vec_env *env, const struct k3_segments *got,
                                     const struct k3_json *want)
{
    struct k3_buf all = {0};
    for (size_t i = 0; i < got->n; i++)
        k3_buf_put(&all, got->v[i].text, got->v[i].len);
    const bool same = vec_same_text(env, "rendered", all.v, all.n, want);
    k3_buf_free(&all);
    return same ? VEC_PASS : VEC_FAIL;
}

static enum vec_result same_encoded(struct vec_env *env, const struct k3_segments *got,
                                    const struct k3_json *want)
{
    struct k3_ids ids = {0};
    struct k3_error err;
    enum vec_result r = VEC_PASS;
    if (k3_chat_encode(env->tok, got, &ids, &err) != K3_OK)
        r = vec_fail(env, "%s", err.message);
    if (r == VEC_PASS)
        r = vec_same_ids(env, &ids, want);
    k3_ids_free(&ids);
    return r;
}

/* The message of a refusal begins with its kind in brackets. */
static enum vec_result same_error(struct vec_env *env, enum k3_status st,
                                  const struct k3_error *err, const struct k3_json *want)
{
    char kind[80];
    if (st == K3_OK)
        return vec_fail(env, "rendered, though the error %s was expected", want->text);
    snprintf(kind, sizeof kind, "[%s] ", want->text);
    if (st != K3_USAGE || strncmp(err->message, kind, strlen(kind)) != 0)
        return vec_fail(env, "error is \"%s\", expected %s", err->message, want->text);
    return VEC_PASS;
}

enum vec_result vec_render(struct vec_env *env, const struct k3_json *v)
{
    const struct k3_json *error = vec_get(v, "error", K3_JSON_STRING);
    const struct k3_json *segments = vec_get(v, "segments", K3_JSON_ARRAY);
    const struct k3_json *rendered = vec_get(v, "rendered", K3_JSON_STRING);
    const struct k3_json *ids = vec_get(v, "ids", K3_JSON_ARRAY);
    struct k3_chat_options opt;
    struct k3_segments got = {0};
    struct k3_error err = {0};
    enum k3_status st = k3_chat_options_read(k3_json_get(v, "options"), &opt, &err);
    if (st == K3_OK)
        st = k3_chat_render(k3_json_get(v, "messages"), &opt, &got, &err);
    enum vec_result r = VEC_PASS;
    if (error)
        r = same_error(env, st, &err, error);
    else if (st != K3_OK)
        r = vec_fail(env, "%s", err.message);
    else if (!segments && !rendered && !ids)
        r = vec_fail(env, "has no expectation");
    if (r == VEC_PASS && !error && segments)
        r = same_segments(env, &got, segments);
    if (r == VEC_PASS && !error && rendered)
        r = same_rendered(env, &got, rendered);
    if (r == VEC_PASS && !error && ids)
        r = same_encoded(env, &got, ids);
    k3_segments_free(&got);
    return r;
}

/* ---- parsing ------------------------------------------------------------------------------- */

struct piece {
    char *bytes;
    size_t len;
    bool control;
};
struct pieces {
    struct piece *v;
    size_t n;
};

static void free_pieces(struct pieces *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->v[i].bytes);
    free(p->v);
}

static bool read_pieces(const struct k3_json *v, struct pieces *out)
{
    const struct k3_json *list = vec_get(v, "pieces", K3_JSON_ARRAY);
    const bool base64 = !list;
    if (!list)
        list = vec_get(v, "pieces_b64", K3_JSON_ARRAY);
    if (!list)
        return false;
    out->v = calloc(list->n + 1, sizeof *out->v);
    for (size_t i = 0; out->v && i < list->n; i++) {
        const struct k3_json *item = &list->items[i];
        if (item->type != K3_JSON_ARRAY || item->n != 2 || item->items[0].type != K3_JSON_STRING)
            return false;
        struct piece *p = &out->v[out->n++];
        const struct k3_json *text = &item->items[0];
        p->control = vec_int(&item->items[1]) == 1;
        if (base64) {
            p->bytes = vec_base64(text, &p->len);
        } else {
            p->bytes = malloc(text->len + 1);
            p->len = text->len;
            if (p->bytes)
                memcpy(p->bytes, text->text, text->len + 1);
        }
        if (!p->bytes)
            return false;
    }
    return out->v != NULL;
}

/* What a listener has been told. */
struct told {
    struct k3_buf reasoning, content;
    struct k3_buf arguments; /* of all calls: "index:text" in the order of the calls */
    int begun, ended, complete;
};

static void told_reasoning(void *ud, const char *text, size_t len)
{
    k3_buf_put(&((struct told *)ud)->reasoning, text, len);
}

static void told_content(void *ud, const char *text, size_t len)
{
    k3_buf_put(&((struct told *)ud)->content, text, len);
}

static void told_begin(void *ud, int index, const char *name, size_t len)
{
    struct told *t = ud;
    char head[24];
    t->begun++;
    snprintf(head, sizeof head, "\n%d:", index);
    k3_buf_puts(&t->arguments, head);
    k3_buf_put(&t->arguments, name, len);
}

static void told_arguments(void *ud, int index, const char *text, size_t len)
{
    (void)index;
    k3_buf_put(&((struct told *)ud)->arguments, text, len);
}

static void told_end(void *ud, int index, bool complete)
{
    struct told *t = ud;
    (void)index;
    t->ended++;
    t->complete += complete;
}

static void free_told(struct told *t)
{
    k3_buf_free(&t->reasoning);
    k3_buf_free(&t->content);
    k3_buf_free(&t->arguments);
}

static bool contains_call(const struct told *t, const struct k3_tool_call *c)
{
    struct k3_buf want = {0};
    char head[24];
    snprintf(head, sizeof head, "\n%d:", c->index);
    k3_buf_puts(&want, head);
    k3_buf_put(&want, c->name, c->name_len);
    k3_buf_put(&want, c->arguments, c->arguments_len);
    bool found = false;
    for (size_t i = 0; i + want.n <= t->arguments.n && !found; i++)
        found = memcmp(t->arguments.v + i, want.v, want.n) == 0 &&
                (i + want.n == t->arguments.n || t->arguments.v[i + want.n] == '\n');
    k3_buf_free(&want);
    return found;
}

/* The deltas joined are the final strings. */
static enum vec_result same_told(struct vec_env *env, const struct told *t,
                                 const struct k3_answer *a)
{
    if (t->reasoning.n != a->reasoning_len ||
        (a->reasoning_len && memcmp(t->reasoning.v, a->reasoning, a->reasoning_len) != 0))
        return vec_fail(env, "the streamed reasoning is not the final one");
    if (t->content.n != a->content_len ||
        (a->content_len && memcmp(t->content.v, a->content, a->content_len) != 0))
        return vec_fail(env, "the streamed content is not the final one");
    if (t->begun != t->ended || (size_t)t->complete != a->n_calls ||
        t->begun != (int)a->n_calls + a->abandoned_calls + a->has_partial)
        return vec_fail(env, "%d calls begun, %d ended, %d complete", t->begun, t->ended,
                        t->complete);
    for (size_t i = 0; i < a->n_calls; i++)
        if (!contains_call(t, &a->calls[i]))
            return vec_fail(env, "the streamed arguments of call %zu are not the final ones", i);
    if (a->has_partial && !contains_call(t, &a->partial))
        return vec_fail(env, "the streamed arguments of the open call are not the final ones");
    return VEC_PASS;
}

static bool same_call(struct vec_env *env, const struct k3_tool_call *c, const struct k3_json *want)
{
    if (vec_int(k3_json_get(want, "index")) != c->index) {
        vec_fail(env, "call index is %d", c->index);
        return false;
    }
    return vec_same_text(env, "call name", c->name, c->name_len, k3_json_get(want, "name")) &&
           vec_same_text(env, "arguments", c->arguments, c->arguments_len,
                         k3_json_get(want, "arguments"));
}

static enum vec_result same_answer(struct vec_env *env, const struct k3_answer *a,
                                   const struct k3_json *want)
{
    static const char *const ends[] = {"cut", "stopped", "closed"};
    const struct k3_json *calls = vec_get(want, "tool_calls", K3_JSON_ARRAY);
    const struct k3_json *partial = vec_get(want, "partial_call", K3_JSON_OBJECT);
    if (!vec_same_text(env, "reasoning", a->reasoning, a->reasoning_len,
                       k3_json_get(want, "reasoning")) ||
        !vec_same_text(env, "content", a->content, a->content_len, k3_json_get(want, "content")) ||
        !vec_same_text(env, "end", ends[a->end], strlen(ends[a->end]), k3_json_get(want, "end")) ||
        !vec_same_text(env, "finish_reason", a->finish_reason, strlen(a->finish_reason),
                       k3_json_get(want, "finish_reason")))
        return VEC_FAIL;
    if (!calls || calls->n != a->n_calls)
        return vec_fail(env, "%zu complete calls", a->n_calls);
    for (size_t i = 0; i < a->n_calls; i++)
        if (!same_call(env, &a->calls[i], &calls->items[i]))
            return VEC_FAIL;
    if (a->has_partial != (partial != NULL))
        return vec_fail(env, "a call %s open at the end", a->has_partial ? "is" : "is not");
    if (partial && !same_call(env, &a->partial, partial))
        return VEC_FAIL;
    if (vec_int(k3_json_get(want, "abandoned_calls")) != a->abandoned_calls)
        return vec_fail(env, "%d abandoned calls", a->abandoned_calls);
    return VEC_PASS;
}

enum feed { FEED_WHOLE, FEED_BYTES, FEED_CUT, FEED_TOKENS };
struct way {
    enum feed feed;
    size_t piece, at; /* FEED_CUT: where the one cut is */
};

static bool feed_tokens(const k3_tokenizer *t, k3_chat_parser *parser, const struct piece *p)
{
    struct k3_ids ids = {0};
    struct k3_error err;
    const bool ok = k3_encode(t, p->bytes, p->len, p->control, &ids, &err) == K3_OK &&
                    (!p->control || ids.n == 1);
    for (size_t i = 0; ok && i < ids.n; i++)
        k3_chat_parser_token(parser, t, ids.v[i]);
    k3_ids_free(&ids);
    return ok;
}

static bool feed_piece(const struct vec_env *env, k3_chat_parser *parser, const struct piece *p,
                       const struct way *way, size_t i)
{
    size_t at = p->len;
    if (way->feed == FEED_TOKENS)
        return feed_tokens(env->tok, parser, p);
    if (p->control) {
        k3_chat_parser_special(parser, p->bytes, p->len);
        return true;
    }
    if (way->feed == FEED_BYTES) {
        for (size_t k = 0; k < p->len; k++)
            k3_chat_parser_bytes(parser, p->bytes + k, 1);
        return true;
    }
    if (way->feed == FEED_CUT && way->piece == i)
        at = way->at;
    k3_chat_parser_bytes(parser, p->bytes, at);
    k3_chat_parser_bytes(parser, p->bytes + at, p->len - at);
    return true;
}

static enum vec_result parse_one_way(struct vec_env *env, const struct pieces *pieces,
                                     enum k3_channel start, const struct way *way,
                                     const struct k3_json *expect)
{
    struct told told = {0};
    const struct k3_chat_events events = {told_reasoning, told_content, told_begin, told_arguments,
                                          told_end, &told};
    struct k3_answer answer = {0};
    struct k3_error err;
    k3_chat_parser *parser = k3_chat_parser_new(start, &events);
    if (!parser)
        return vec_fail(env, "no memory");
    bool fed = true;
    for (size_t i = 0; fed && i < pieces->n; i++)
        fed = feed_piece(env, parser, &pieces->v[i], way, i);
    enum vec_result r = VEC_PASS;
    if (!fed)
        r = vec_fail(env, "a control piece is not one special token");
    else if (k3_chat_parser_finish(parser, &answer, &err) != K3_OK)
        r = vec_fail(env, "%s", err.message);
    if (r == VEC_PASS)
        r = same_answer(env, &answer, expect);
    if (r == VEC_PASS)
        r = same_told(env, &told, &answer);
    k3_answer_free(&answer);
    k3_chat_parser_free(parser);
    free_told(&told);
    return r;
}

static bool all_valid(const struct pieces *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (!k3_utf8_valid(p->v[i].bytes, p->v[i].len))
            return false;
    return true;
}

static enum vec_result parse_all_ways(struct vec_env *env, const struct pieces *p,
                                      enum k3_channel start, const struct k3_json *expect)
{
    struct way way = {FEED_WHOLE, 0, 0};
    enum vec_result r = parse_one_way(env, p, start, &way, expect);
    if (r == VEC_PASS) {
        way.feed = FEED_BYTES;
        r = parse_one_way(env, p, start, &way, expect);
    }
    if (r == VEC_PASS && env->tok && all_valid(p)) {
        way.feed = FEED_TOKENS;
        r = parse_one_way(env, p, start, &way, expect);
    }
    for (size_t i = 0; r == VEC_PASS && i < p->n; i++) {
        for (size_t at = 1; r == VEC_PASS && !p->v[i].control && at < p->v[i].len; at++) {
            way = (struct way){FEED_CUT, i, at};
            r = parse_one_way(env, p, start, &way, expect);
        }
    }
    if (r != VEC_PASS) {
        static const char *const names[] = {"as given", "in single bytes", "with one cut",
                                            "as tokens"};
        char why[sizeof env->why];
        memcpy(why, env->why, sizeof why);
        vec_fail(env, "%s (piece %zu, byte %zu): %.500s", names[way.feed], way.piece, way.at, why);
    }
    return r;
}

enum vec_result vec_parse(struct vec_env *env, const struct k3_json *v)
{
    const struct k3_json *expect = vec_get(v, "expect", K3_JSON_OBJECT);
    const struct k3_json *start = vec_get(v, "start", K3_JSON_STRING);
    struct pieces pieces = {0};
    enum vec_result r;
    if (!expect || !start || !read_pieces(v, &pieces))
        r = vec_fail(env, "has no start, no pieces or no expectation");
    else
        r = parse_all_ways(env, &pieces,
                           strcmp(start->text, "think") == 0      ? K3_CHANNEL_THINK
                           : strcmp(start->text, "response") == 0 ? K3_CHANNEL_RESPONSE
                                                                  : K3_CHANNEL_NONE,
                           expect);
    free_pieces(&pieces);
    return r;
}
