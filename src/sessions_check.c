/* sessions_check.c - does a fresh process give the same tokens and the same bits? See sessions.h. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "sessions.h"

struct checking {
    struct runtime *rt;
    const struct conversation *c;
    enum k3_thinking thinking;  /* where a message does not say */
    FILE *progress;
    struct sessions_checked *out;
    struct k3_error *err;
};

static enum k3_status read_ids(struct checking *k, const struct k3_ids *ids)
{
    struct step_stats unused;
    uint32_t reused;
    return timeline_read(&k->rt->line, ids->v, ids->n, NULL, NULL, &unused, &reused, k->err);
}

/* ids[0..) is the prompt; each id of the answer must be the one that is drawn there. */
static enum k3_status draw_all(struct checking *k, struct k3_ids *ids, const struct message *m,
                               size_t number)
{
    struct timeline *line = &k->rt->line;
    for (size_t i = 0; i < m->ids.n; i++) {
        if (read_ids(k, ids) != K3_OK)
            return k->err->status;
        const int32_t id = timeline_draw(line);
        if (id != m->ids.v[i])
            return k3_fail(k->err, K3_FAILED,
                           "message %zu: token %zu of the answer is %d, and the transcript has %d "
                           "(position %zu): the transcript was changed, or this program or machine "
                           "does not compute what made it", number + 1, i + 1, id, m->ids.v[i],
                           line->fed.n);
        if (k3_ids_push(ids, id, k->err) != K3_OK)
            return k->err->status;
    }
    return K3_OK;
}

static enum k3_status check_answer(struct checking *k, size_t number)
{
    const struct message *m = &k->c->v[number];
    const struct conversation before = {.v = k->c->v, .n = number};
    struct answer_maker with = {.fingerprint = k3_get_fingerprint(k->rt->engine),
                                .thinking = k->thinking,
                                .sampling = {.greedy = true}};
    struct k3_ids ids = {0};
    if (m->ids.n == 0 || !answer_settings_read(m->settings, &with)) {
        k->out->foreign++;
        if (k->progress != NULL)
            fprintf(k->progress, "message %zu: %s\n", number + 1,
                    m->ids.n == 0 ? "no tokens are recorded; not compared"
                                  : "made by another model or version; not compared");
        return K3_OK;
    }
    k->rt->line.sampling = with.sampling;
    enum k3_status status = conversation_encode(&before, with.thinking, k->rt->tok, &ids, k->err);
    if (status == K3_OK)
        status = draw_all(k, &ids, m, number);
    k3_ids_free(&ids);
    if (status != K3_OK)
        return status;
    k->out->answers++;
    k->out->tokens += (uint32_t)m->ids.n;
    if (k->progress != NULL)
        fprintf(k->progress, "message %zu: %zu tokens, the same\n", number + 1, m->ids.n);
    return K3_OK;
}

/* Compares with, or when it is NULL sets, *want. */
static enum k3_status compare_logits(struct checking *k, float **want, const char *how)
{
    const struct timeline *line = &k->rt->line;
    const float *have = k3_logits(line->engine);
    const size_t bytes = line->vocab * sizeof *have;
    if (*want == NULL) {
        *want = malloc(bytes);
        if (*want == NULL)
            return k3_fail_memory(k->err, "the logits", bytes);
        memcpy(*want, have, bytes);
    } else if (memcmp(*want, have, bytes) != 0) {
        return k3_fail(k->err, K3_FAILED, "the logits behind the conversation are others %s", how);
    }
    if (k->progress != NULL)
        fprintf(k->progress, "logits behind %zu tokens, %s: the same\n", line->fed.n, how);
    return K3_OK;
}

static enum k3_status check_end(struct checking *k, const struct k3_ids *ids, struct states *s,
                                float **want)
{
    struct timeline *line = &k->rt->line;
    if (read_ids(k, ids) != K3_OK || compare_logits(k, want, "turn by turn") != K3_OK)
        return k->err->status;
    timeline_reset(line);
    if (read_ids(k, ids) != K3_OK || compare_logits(k, want, "read at once") != K3_OK)
        return k->err->status;
    if (s == NULL)
        return K3_OK;
    timeline_reset(line);
    line->states = s;
    k->out->from_state = (uint32_t)timeline_reusable(line, ids->v, ids->n);
    enum k3_status status = K3_OK;
    if (k->out->from_state > 0) {
        status = read_ids(k, ids);
        if (status == K3_OK)
            status = compare_logits(k, want, "from a saved state");
    }
    line->states = NULL;
    return status;
}

/* The effort of the last answer: the prompt that it stood in goes on. */
static enum k3_thinking last_thinking(const struct checking *k)
{
    enum k3_thinking t = k->thinking;
    for (size_t i = 0; i < k->c->n; i++)
        message_thinking(&k->c->v[i], &t);
    return t;
}

enum k3_status sessions_check(struct runtime *rt, const struct conversation *c, struct states *s,
                              enum k3_thinking thinking, FILE *progress,
                              struct sessions_checked *out, struct k3_error *err)
{
    struct checking k = {rt, c, thinking, progress, out, err};
    struct k3_ids ids = {0};
    float *logits = NULL;
    *out = (struct sessions_checked){0};
    rt->line.states = NULL;
    timeline_reset(&rt->line);
    enum k3_status status = K3_OK;
    for (size_t i = 0; status == K3_OK && i < c->n; i++)
        if (strcmp(message_role(&c->v[i]), "assistant") == 0)
            status = check_answer(&k, i);
    if (status == K3_OK)
        status = conversation_encode(c, last_thinking(&k), rt->tok, &ids, err);
    if (status == K3_OK)
        status = check_end(&k, &ids, s, &logits);
    free(logits);
    k3_ids_free(&ids);
    return status;
}
