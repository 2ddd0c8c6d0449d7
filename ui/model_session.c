/* model_session.c - the figures taken from the session (see model.h). */
#include <config.h>

#include <stdlib.h>

#include "model.h"

#define FADE 0.9 /* per step: a layer's hits are those of about the last ten */

/* The rate of the last second or more, so that it is steady enough to be read. */
static void measure_rate(struct ui_model *m, double clock)
{
    const struct k3_metrics *now = &m->st.metrics;
    const uint64_t bytes = now->bytes_trunk + now->bytes_experts;
    const uint64_t before = m->rate_from.bytes_trunk + m->rate_from.bytes_experts;
    const double dt = clock - m->rate_time;
    if (!phase_is_busy(m->st.phase) || now->devices == 0) {
        m->live_rate = -1;
        m->rate_time = 0;
    }
    if (m->rate_time > 0 && dt < 0.9 && bytes >= before)
        return;
    if (m->rate_time > 0 && bytes >= before && dt > 0)
        m->live_rate = (double)(bytes - before) / dt;
    if (m->live_rate > m->best_rate)
        m->best_rate = m->live_rate;
    m->rate_from = *now;
    m->rate_time = phase_is_busy(m->st.phase) && now->devices > 0 ? clock : 0;
}

void model_refresh(struct ui_model *m, struct session *s, double clock, int64_t now)
{
    session_get_status(s, &m->st);
    m->queued = session_queued(s);
    m->now = now;
    measure_rate(m, clock);
}

static bool have_layers(struct ui_model *m, size_t n)
{
    if (n == m->n_layers)
        return n > 0;
    if (n == 0 || n > 100000)
        return false;
    struct layer_heat *l = calloc(n, sizeof *l);
    if (!l)
        return false;
    free(m->layers);
    m->layers = l;
    m->n_layers = n;
    return true;
}

static void refresh_layers(struct ui_model *m, struct session *s)
{
    struct session_status st;
    session_get_status(s, &st);
    if (!have_layers(m, st.plan.layers))
        return;
    for (size_t i = 0; i < m->n_layers; i++) {
        struct layer_heat *l = &m->layers[i];
        struct k3_layer_counts c = {0};
        if (!session_get_layer(s, (uint32_t)i, &c))
            continue;
        const struct k3_layer_counts *old = &l->counts;
        const bool grown = l->known && c.requests >= old->requests && c.resident >= old->resident;
        l->requests = l->requests * FADE + (double)(c.requests - (grown ? old->requests : 0));
        l->resident = l->resident * FADE + (double)(c.resident - (grown ? old->resident : 0));
        l->counts = c;
        l->known = true;
    }
}

void model_step(struct ui_model *m, struct session *s, const struct session_event *ev)
{
    const double bytes = (double)(ev->step.bytes_trunk + ev->step.bytes_experts);
    if (ev->step.seconds > 0 && bytes / ev->step.seconds > m->best_rate)
        m->best_rate = bytes / ev->step.seconds;
    if (ev->kind == EVENT_STEP)
        history_add(&m->steps, &ev->step);
    else
        m->prefill = ev->step;
    refresh_layers(m, s);
}
