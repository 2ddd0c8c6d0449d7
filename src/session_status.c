/* session_status.c - the figures of a session, as one consistent copy; see session.h. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "../engine/model/host.h"
#include "clock.h"
#include "session_internal.h"

/* Tokens of the prompt read so far, the share of layers in the running chunk counted in. */
static void put_prompt(const struct session_state *st, const struct k3_metrics *m, double now,
                       struct session_status *out)
{
    out->prompt_total = st->prompt_total;
    out->prompt_eta_s = -1;
    if (st->phase != PHASE_READING || st->prompt_total == 0)
        return;
    double done = (double)(m->tokens - st->prompt_base);
    if (m->running && m->layers > 0)
        done += (double)m->chunk_tokens * m->layer / m->layers;
    if (done > (double)st->prompt_total)
        done = (double)st->prompt_total;
    out->prompt_done = (uint64_t)done;
    out->position += (uint32_t)done;
    if (done > 0)
        out->prompt_eta_s = (now - st->phase_since) * ((double)st->prompt_total - done) / done;
}

static void put_state(const struct session *s, double now, struct session_status *out)
{
    const struct session_state *st = &s->state;
    out->phase = st->phase;
    memcpy(out->detail, st->detail, sizeof out->detail);
    out->load_done = st->load_done;
    out->load_total = st->load_total;
    out->phase_seconds = now - st->phase_since;
    out->answer_tokens = st->answer_tokens;
    out->reasoning_tokens = st->reasoning_tokens;
    out->step_seconds = st->step_since > 0 ? now - st->step_since : 0;
    out->last_step_seconds = s->pace.last;
    out->mean_step_seconds = s->pace.mean;
    out->p95_step_seconds = s->pace.p95;
    out->position = st->position;
    out->context = st->context;
    out->reread_tokens = st->reread_tokens;
    out->reread_seconds = st->reread_tokens > 0 ? st->reread_seconds : 0;
    out->reread_planned = st->reread_planned;
    out->temporary = st->temporary;
    out->demo = st->demo;
    out->disk_simulated = s->cfg->engine.simulate_rate > 0;
    out->disk_roof = out->disk_simulated ? (double)s->cfg->engine.simulate_rate : st->disk_roof;
    memcpy(out->model_name, st->model_name, sizeof out->model_name);
    memcpy(out->session_name, st->session_name, sizeof out->session_name);
}

void session_get_status(struct session *s, struct session_status *out)
{
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&s->lock);
    const double now = clock_now();
    put_state(s, now, out);
    out->totals = s->totals;
    out->plan = s->plan;
    if (s->engine != NULL)
        k3_get_metrics(s->engine, &out->metrics);
    put_prompt(&s->state, &out->metrics, now, out);
    snprintf(out->thinking, sizeof out->thinking, "%s", k3_thinking_name(s->thinking));
    pthread_mutex_unlock(&s->lock);
    snprintf(out->profile_name, sizeof out->profile_name, "%s", s->cfg->profile_name);
    out->rss = k3_host_rss();
    out->rss_anon = k3_host_rss_anon();
    out->page_cache = k3_host_page_cache();
    out->peak_rss = k3_host_peak_rss();
}

bool session_get_layer(struct session *s, uint32_t layer, struct k3_layer_counts *out)
{
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&s->lock);
    const bool found = s->engine != NULL && k3_get_layer_counts(s->engine, layer, out);
    pthread_mutex_unlock(&s->lock);
    return found;
}
