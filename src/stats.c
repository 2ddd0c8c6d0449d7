/* stats.c - see stats.h. */
#include <config.h>

#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct step_stats stats_between(const struct k3_metrics *before, const struct k3_metrics *after,
                                double seconds)
{
    return (struct step_stats){
        .tokens = (uint32_t)(after->tokens - before->tokens),
        .seconds = seconds,
        .wait_trunk_s = after->wait_trunk_s - before->wait_trunk_s,
        .wait_experts_s = after->wait_experts_s - before->wait_experts_s,
        .device_busy_s = after->device_busy_s - before->device_busy_s,
        .bytes_trunk = after->bytes_trunk - before->bytes_trunk,
        .bytes_experts = after->bytes_experts - before->bytes_experts,
        .requests = after->requests - before->requests,
        .resident = after->resident - before->resident,
        .prefetched = after->prefetched - before->prefetched,
        .waited = after->waited - before->waited,
    };
}

void stats_add(struct step_stats *sum, const struct step_stats *s)
{
    sum->tokens += s->tokens;
    sum->seconds += s->seconds;
    sum->wait_trunk_s += s->wait_trunk_s;
    sum->wait_experts_s += s->wait_experts_s;
    sum->device_busy_s += s->device_busy_s;
    sum->bytes_trunk += s->bytes_trunk;
    sum->bytes_experts += s->bytes_experts;
    sum->requests += s->requests;
    sum->resident += s->resident;
    sum->prefetched += s->prefetched;
    sum->waited += s->waited;
}

double stats_wait_fraction(const struct step_stats *s)
{
    return s->seconds > 0 ? (s->wait_trunk_s + s->wait_experts_s) / s->seconds : 0;
}

double stats_hit_rate(const struct step_stats *s)
{
    return s->requests > 0 ? (double)s->resident / (double)s->requests : 0;
}

/* Waited for or not, it was in its slot when it was multiplied: nearly always 1. */
double stats_raw_hit_rate(const struct step_stats *s)
{
    const uint64_t raw = s->resident + s->prefetched + s->waited;
    return s->requests > 0 ? (double)raw / (double)s->requests : 0;
}

double stats_trunk_per_token(const struct step_stats *s)
{
    return s->tokens > 0 ? (double)s->bytes_trunk / s->tokens : 0;
}

double stats_busy_fraction(const struct step_stats *s, uint32_t devices)
{
    return s->seconds > 0 && devices > 0 ? s->device_busy_s / (s->seconds * devices) : 0;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void pace_add(struct pace *p, double seconds)
{
    p->window[p->n++ % PACE_WINDOW] = seconds;
    p->last = seconds;
    const size_t n = p->n < PACE_WINDOW ? p->n : PACE_WINDOW;
    double sorted[PACE_WINDOW], sum = 0;
    memcpy(sorted, p->window, n * sizeof sorted[0]);
    qsort(sorted, n, sizeof sorted[0], compare);
    for (size_t i = 0; i < n; i++)
        sum += sorted[i];
    p->mean = sum / (double)n;
    /* the least sample that at least 95 % do not exceed */
    p->p95 = sorted[(size_t)ceil(0.95 * (double)n) - 1];
}
