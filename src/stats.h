/* stats.h - the figures of steps: differences, sums, pace. The words are defined in
 * docs/architecture.md ("What is measured"). */
#ifndef K3CHAT_STATS_H
#define K3CHAT_STATS_H

#include "session.h"

/* What happened between two snapshots of the engine's counters. */
struct step_stats stats_between(const struct k3_metrics *before, const struct k3_metrics *after,
                                double seconds);
void stats_add(struct step_stats *sum, const struct step_stats *s);

double stats_wait_fraction(const struct step_stats *s);                   /* 0 without time */
double stats_hit_rate(const struct step_stats *s);                        /* TRUE resident hits */
double stats_raw_hit_rate(const struct step_stats *s);                    /* there when used */
double stats_trunk_per_token(const struct step_stats *s);                 /* bytes */
double stats_busy_fraction(const struct step_stats *s, uint32_t devices); /* per device */

#define PACE_WINDOW 1024

/* Token times: the last one, and mean and 95th percentile of the last PACE_WINDOW. */
struct pace { /* zero-initialise */
    double window[PACE_WINDOW];
    size_t n;      /* samples ever */
    double last, mean, p95;
};
void pace_add(struct pace *p, double seconds);

#endif
