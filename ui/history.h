/* history.h - what the last steps did, for graphs and windows. */
#ifndef K3CHAT_UI_HISTORY_H
#define K3CHAT_UI_HISTORY_H

#include "../src/session.h"

#define HISTORY_STEPS 1024

struct history {
    struct step_stats steps[HISTORY_STEPS]; /* a ring of decode steps */
    size_t n, next;
};

void history_add(struct history *h, const struct step_stats *s);
/* The i-th last step, 0 = the newest; NULL when there are not that many. */
const struct step_stats *history_back(const struct history *h, size_t i);
/* Sum of the last n steps (of all, when there are fewer); returns how many were summed. */
size_t history_sum(const struct history *h, size_t n, struct step_stats *out);

/* Shares in 0..1, and seconds; negative = unknown, nothing was asked or measured. */
double step_hit_rate(const struct step_stats *s);        /* TRUE residency */
double step_raw_hit_rate(const struct step_stats *s);
double step_prefetched(const struct step_stats *s);
double step_waited(const struct step_stats *s);
double step_wait_trunk(const struct step_stats *s);      /* share of the wall time */
double step_wait_experts(const struct step_stats *s);
double step_wait(const struct step_stats *s);
double step_device_busy(const struct step_stats *s);

/* The last n values of one figure, oldest first, right-aligned: out[n-1] is the newest, places
 * without a step are negative. */
void history_series(const struct history *h, double (*figure)(const struct step_stats *),
                    double *out, size_t n);
double step_seconds_of(const struct step_stats *s);

#endif
