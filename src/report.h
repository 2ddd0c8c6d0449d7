/* report.h - plans and figures in words a person can read. */
#ifndef K3CHAT_REPORT_H
#define K3CHAT_REPORT_H

#include <stdio.h>

#include "session.h"
#include "stats.h"

/* The memory plan, part by part, and what a token will read. */
void report_plan(FILE *out, const struct k3_plan *p);

/* "1.2 s", "24.1 s", "12 min", "3.4 h". Returns buf. */
char *report_time(char *buf, size_t cap, double seconds);

struct run_figures {
    struct step_stats prefill, steps; /* of the prompt; of all decode steps */
    uint32_t prompt_tokens, reused, generated;
    const struct pace *pace;
    enum session_finish finish;
    uint32_t devices;
    const char *io;                   /* the way of reading, as it was at the end */
    uint64_t budget, planned, peak_rss;
    uint64_t plan_bytes_per_token;    /* of the trunk */
    double first_read_s;
};
void report_run(FILE *out, const struct run_figures *r);

#endif
