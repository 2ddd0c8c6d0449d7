/* bench_run.h - runs this program itself in batch mode and reads its JSON result back: a fresh
 * process per measurement, so that peak RSS and a cold start mean something. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../engine/k3_error.h"

struct bench_case {
    const char *model;
    uint64_t budget;         /* 0 = what is available */
    uint32_t threads;        /* 0 = physical cores */
    uint32_t prompt, tokens; /* ids of the (made-up) prompt, ids to generate */
    const char *const *extra; /* more options of the batch mode, or NULL */
    size_t n_extra;
    bool limit_memory;       /* a cgroup with memory.max = budget and no swap, where allowed */
};

struct bench_result {
    int32_t *ids;            /* generated; freed by bench_result_free() */
    size_t n_ids;
    double token_s;          /* mean decode step without the first one */
    double first_token_s;    /* the prompt's forward pass */
    double prompt_s;         /* per prompt token */
    double bytes_per_token, trunk_per_token, experts_per_token;
    double prompt_bytes_per_token;
    double wait_fraction, hit_rate, busy_fraction;
    uint64_t budget, planned, peak_rss;
    bool limited;            /* the cgroup limit was in force */
    char isa[16], io[128];
    uint32_t threads, chunk;
};

enum k3_status bench_run(const struct bench_case *c, struct bench_result *out,
                         struct k3_error *err);
void bench_result_free(struct bench_result *r);

/* Mean, standard deviation (n - 1) and spread (largest - smallest) of n samples. */
struct bench_summary {
    double mean, sd, spread, median;
};
struct bench_summary bench_summarise(const double *x, size_t n);

#endif
