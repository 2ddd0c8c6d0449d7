/* reread.c - see reread.h. */
#include <config.h>

#include "reread.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report.h"

/* Reading again fewer tokens than this is not worth a word. */
#define REREAD_LEAST 32u

/* Bytes a second of a disk that nothing is known about: a slow SSD, so that it is rather asked. */
#define RATE_UNKNOWN 500e6

/* ---- how long ---------------------------------------------------------------------------- */

/* Bytes from the disk for so many tokens: each chunk reads the trunk that does not stay, and the experts
 * that its tokens choose, were they drawn evenly; `kept`: the share of all experts that is there. */
static double planned_bytes(const struct k3_plan *p, double tokens, double kept)
{
    const double experts = (double)p->moe_layers * p->n_experts;
    if (p->chunk == 0 || tokens <= 0)
        return 0;
    const double chunks = ceil(tokens / p->chunk), each = tokens / chunks;
    const double distinct =
        experts > 0 ? experts * (1 - pow(1 - (double)p->top_k / p->n_experts, each)) : 0;
    return chunks * ((double)p->trunk_per_token + (1 - kept) * distinct * (double)p->expert_bytes);
}

static double share(double part, double whole)
{
    return whole > 0 ? fmin(part / whole, 1) : 0;
}

/* Now: what is to stay and is not there yet has to be read as well. */
static double bytes_now(const struct k3_plan *p, const struct k3_metrics *m, double tokens)
{
    const double experts = (double)p->moe_layers * p->n_experts * (double)p->expert_bytes;
    const double missing = (double)p->residents - (double)m->resident_bytes;
    return planned_bytes(p, tokens, share((double)m->expert_bytes_resident, experts)) +
           fmax(missing, 0);
}

/* Of the disk: simulated, measured by `bench io`, or what it has given so far. */
static double disk_rate(struct session *s, const struct k3_metrics *m)
{
    pthread_mutex_lock(&s->lock);
    const double roof = s->state.disk_roof;
    pthread_mutex_unlock(&s->lock);
    if (s->cfg->engine.simulate_rate > 0)
        return (double)s->cfg->engine.simulate_rate;
    if (roof > 0)
        return roof;
    return m->device_busy_s > 0.1 ? (double)(m->bytes_trunk + m->bytes_experts) / m->device_busy_s
                                  : RATE_UNKNOWN;
}

/* Seconds; < 0 = not known. From the last prompt: its waiting grows with the bytes, the rest with the
 * tokens. Before there was one, from the plan and the disk alone (*planned). */
static double estimate(struct session *s, double tokens, bool *planned)
{
    const struct read_sample *r = &s->read;
    struct k3_metrics m;
    k3_get_metrics(s->rt.engine, &m);
    const double bytes = bytes_now(k3_get_plan(s->rt.engine), &m, tokens);
    *planned = r->tokens <= 0;
    if (*planned)
        return bytes > 0 ? bytes / disk_rate(s, &m) : -1;
    const double more = tokens / r->tokens;
    return r->compute * more + r->wait * (r->bytes > 0 ? bytes / r->bytes : more);
}

void reread_measured(struct session *s, const struct step_stats *prefill)
{
    const double wait = prefill->wait_trunk_s + prefill->wait_experts_s;
    if (prefill->tokens == 0)
        return;
    s->read = (struct read_sample){prefill->tokens, fmax(prefill->seconds - wait, 0), wait,
                                   (double)(prefill->bytes_trunk + prefill->bytes_experts)};
}

/* The last prompt whose figures are recorded, if there is one; the share of waiting is that of its
 * answer. */
static void use_recorded(struct session *s)
{
    const struct conversation *c = &s->conversation;
    const struct k3_plan *p = k3_get_plan(s->rt.engine);
    for (size_t i = c->n; i-- > 0;) {
        const json_t *f = c->v[i].figures;
        const json_int_t read = json_integer_value(json_object_get(f, "prompt_tokens")) -
                                json_integer_value(json_object_get(f, "reused_tokens"));
        const double seconds = json_number_value(json_object_get(f, "prefill_s"));
        const double wait =
            fmin(fmax(json_number_value(json_object_get(f, "disk_wait_fraction")), 0), 1);
        if (read <= 0 || seconds <= 0)
            continue;
        s->read = (struct read_sample){
            (double)read, seconds * (1 - wait), seconds * wait,
            planned_bytes(p, (double)read, share(p->expert_slots, (double)p->moe_layers * p->n_experts))};
        return;
    }
}

/* ---- how much ---------------------------------------------------------------------------- */

enum k3_status reread_known(const struct session *s, enum k3_thinking thinking, size_t *known,
                            struct k3_error *err)
{
    struct conversation c = s->conversation; /* a view of it, to end with an answer */
    struct k3_ids ids = {0};
    *known = 0;
    while (c.n > 0 && strcmp(message_role(&c.v[c.n - 1]), "assistant") != 0)
        c.n--;
    if (c.n == 0)
        return K3_OK;
    const size_t answer = c.v[c.n - 1].ids.n;
    c.n -= answer > 0;
    const enum k3_status status = conversation_encode(&c, thinking, s->rt.tok, &ids, err);
    *known = ids.n + (answer > 0 ? answer - 1 : 0);
    k3_ids_free(&ids);
    return status;
}

/* Puts the cost into the state; fewer than are worth a word are none. */
static void note_cost(struct session *s, size_t tokens)
{
    bool planned = false;
    const double seconds = estimate(s, (double)tokens, &planned);
    pthread_mutex_lock(&s->lock);
    s->state.reread_tokens = tokens < REREAD_LEAST ? 0 : (uint32_t)tokens;
    s->state.reread_seconds = seconds;
    s->state.reread_planned = planned;
    pthread_mutex_unlock(&s->lock);
}

static void say_cost(struct session *s, const char *when)
{
    char text[256], time[32] = "";
    const double seconds = s->state.reread_seconds;
    if (seconds >= 1 && seconds < 99.5)
        snprintf(time, sizeof time, "%.0f s", seconds); /* an estimate has no hundredths */
    else if (seconds >= 0.05)
        report_time(time, sizeof time, seconds);
    snprintf(text, sizeof text, "%u tokens to read again%s%s%s%s",
             (unsigned)s->state.reread_tokens, when, time[0] ? ", about " : "", time,
             time[0] && s->state.reread_planned ? " by the plan" : "");
    session_emit_text(s, EVENT_NOTICE, text, strlen(text));
}

#define READY "state saved: ready at once"

void reread_tell(struct session *s)
{
    size_t known = 0;
    struct k3_ids ids = {0};
    struct k3_error err = {0};
    pthread_mutex_lock(&s->lock);
    s->recount = false;
    const enum k3_thinking thinking = s->thinking;
    const bool opening = s->state.phase == PHASE_LOADING;
    pthread_mutex_unlock(&s->lock);
    if (s->conversation.n == 0)
        return;
    use_recorded(s);
    if (conversation_encode(&s->conversation, thinking, s->rt.tok, &ids, &err) == K3_OK &&
        reread_known(s, thinking, &known, &err) == K3_OK) {
        const size_t have = timeline_reusable(&s->rt.line, ids.v, ids.n);
        pthread_mutex_lock(&s->lock);
        s->state.position = (uint32_t)known; /* what it takes of the context, read or not */
        pthread_mutex_unlock(&s->lock);
        note_cost(s, known > have ? known - have : 0);
        if (s->state.reread_tokens > 0)
            say_cost(s, " before the next answer");
        else if (opening && have > 0)
            session_emit_text(s, EVENT_NOTICE, READY, strlen(READY));
    }
    k3_ids_free(&ids);
}

/* ---- asking ------------------------------------------------------------------------------ */

static bool ask(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    s->decision = DECISION_NONE;
    pthread_mutex_unlock(&s->lock);
    session_set_phase(s, PHASE_ASKING);
    pthread_mutex_lock(&s->lock);
    while (!s->quit && s->decision == DECISION_NONE)
        pthread_cond_wait(&s->changed, &s->lock);
    const bool yes = !s->quit && s->decision == DECISION_READ;
    pthread_mutex_unlock(&s->lock);
    return yes;
}

bool reread_allowed(struct session *s, size_t tokens)
{
    const bool told = s->state.reread_tokens > 0;
    note_cost(s, tokens);
    if (s->state.reread_tokens == 0)
        return true;
    if (s->cfg->ask_reread > 0 && s->state.reread_seconds > s->cfg->ask_reread)
        return ask(s);
    if (!told)
        say_cost(s, "");
    return true;
}
