/* history.c - what the last steps did (see history.h). */
#include <config.h>

#include "history.h"

void history_add(struct history *h, const struct step_stats *s)
{
    h->steps[h->next] = *s;
    h->next = (h->next + 1) % HISTORY_STEPS;
    if (h->n < HISTORY_STEPS)
        h->n++;
}

const struct step_stats *history_back(const struct history *h, size_t i)
{
    if (i >= h->n)
        return NULL;
    return &h->steps[(h->next + HISTORY_STEPS - 1 - i) % HISTORY_STEPS];
}

size_t history_sum(const struct history *h, size_t n, struct step_stats *out)
{
    *out = (struct step_stats){0};
    size_t i = 0;
    for (const struct step_stats *s; i < n && (s = history_back(h, i)); i++) {
        out->tokens += s->tokens;
        out->seconds += s->seconds;
        out->wait_trunk_s += s->wait_trunk_s;
        out->wait_experts_s += s->wait_experts_s;
        out->device_busy_s += s->device_busy_s;
        out->bytes_trunk += s->bytes_trunk;
        out->bytes_experts += s->bytes_experts;
        out->requests += s->requests;
        out->resident += s->resident;
        out->prefetched += s->prefetched;
        out->waited += s->waited;
    }
    return i;
}

static double share(double part, double whole)
{
    if (!(whole > 0))
        return -1;
    const double v = part / whole;
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

double step_hit_rate(const struct step_stats *s)
{
    return share((double)s->resident, (double)s->requests);
}

double step_raw_hit_rate(const struct step_stats *s)
{
    return share((double)(s->resident + s->prefetched + s->waited), (double)s->requests);
}

double step_prefetched(const struct step_stats *s)
{
    return share((double)s->prefetched, (double)s->requests);
}

double step_waited(const struct step_stats *s)
{
    return share((double)s->waited, (double)s->requests);
}

double step_wait_trunk(const struct step_stats *s)
{
    return share(s->wait_trunk_s, s->seconds);
}

double step_wait_experts(const struct step_stats *s)
{
    return share(s->wait_experts_s, s->seconds);
}

double step_wait(const struct step_stats *s)
{
    return share(s->wait_trunk_s + s->wait_experts_s, s->seconds);
}

double step_device_busy(const struct step_stats *s)
{
    return share(s->device_busy_s, s->seconds);
}

double step_seconds_of(const struct step_stats *s)
{
    return s->seconds;
}

void history_series(const struct history *h, double (*figure)(const struct step_stats *),
                    double *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct step_stats *s = history_back(h, n - 1 - i);
        out[i] = s ? figure(s) : -1;
    }
}
