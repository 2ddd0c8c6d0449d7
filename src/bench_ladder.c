/* bench_ladder.c - see bench_ladder.h. Repeats are interleaved: a slow minute of the machine then
 * falls on every budget alike. */
#include <config.h>

#include "bench_ladder.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../engine/model/host.h"
#include "bench_run.h"
#include "size.h"

#define MAX_POINTS 32
#define MAX_REPEAT 32
#define MAX_EXTRA 32

struct args {
    const char *command;
    struct bench_case base;
    uint64_t points[MAX_POINTS]; /* budgets, or thread counts */
    size_t n_points;
    uint32_t repeat;
    bool tsv;
    const char *extra[MAX_EXTRA];
};

/* What one point has shown over its repeats. */
struct point {
    double token_s[MAX_REPEAT], busy_s[MAX_REPEAT]; /* busy_s: beside a neighbour (threads) */
    size_t n;
    struct bench_result last;
    uint64_t peak;
    bool ids_differ;
};

static const char ladder_help[] =
    "Usage: k3chat bench ladder --model DIR --budgets LIST [OPTION]... [-- BATCH-OPTION...]\n"
    "Run the model at several memory budgets, each in a fresh process; compare the tokens\n"
    "with those of the first run and the peak RSS with the budget.\n"
    "\n"
    "      --model DIR        checkpoint\n"
    "      --budgets LIST     sizes separated by commas, as 2GB,4GB,8GB\n"
    "      --repeat N         runs per budget, interleaved (default 3)\n"
    "      --tokens N         tokens to generate (default 8)\n"
    "      --prompt N         tokens of the made-up prompt (default 8)\n"
    "      --threads N        compute threads (default: physical cores)\n"
    "      --tsv              tab-separated values\n"
    "      --help             display this help and exit\n"
    "What stands behind -- goes to every run, as -- --ring 64MiB --io uring.\n";

static const char threads_help[] =
    "Usage: k3chat bench threads --model DIR [OPTION]... [-- BATCH-OPTION...]\n"
    "Token time by number of compute threads, alone and beside one busy neighbour process.\n"
    "\n"
    "      --model DIR        checkpoint\n"
    "      --budget SIZE      memory budget (default: what is available)\n"
    "      --counts LIST      thread counts (default: 1, 2, 4 ... up to the physical cores)\n"
    "      --repeat N         runs per count, interleaved (default 3)\n"
    "      --tokens N         tokens to generate (default 8)\n"
    "      --prompt N         tokens of the made-up prompt (default 8)\n"
    "      --tsv              tab-separated values\n"
    "      --help             display this help and exit\n";

static int usage(const struct args *a, const char *fmt, ...) K3_PRINTF(2, 3);
static int usage(const struct args *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "k3chat bench %s: ", a->command);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nTry 'k3chat bench %s --help' for more information.\n", a->command);
    return K3_USAGE;
}

/* ---- options ----------------------------------------------------------------------------- */

static bool count_option(const char *text, uint32_t least, uint32_t most, uint32_t *out)
{
    char *end;
    const unsigned long v = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || v < least || v > most)
        return false;
    *out = (uint32_t)v;
    return true;
}

/* Sizes or counts separated by commas. */
static int list_option(struct args *a, const char *option, const char *list, bool sizes)
{
    a->n_points = 0;
    for (const char *p = list;; p++) {
        const size_t n = strcspn(p, ",");
        char word[64];
        const char *why = "not a number from 1 to 1024";
        uint32_t count = 0;
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), p);
        if (a->n_points == MAX_POINTS)
            return usage(a, "--%s: more than %d values", option, MAX_POINTS);
        const bool ok = sizes ? size_parse(word, &a->points[a->n_points], &why)
                              : count_option(word, 1, 1024, &count);
        if (!ok)
            return usage(a, "--%s: '%s': %s", option, word, why);
        if (!sizes)
            a->points[a->n_points] = count;
        a->n_points++;
        p += n;
        if (*p == '\0')
            return K3_OK;
    }
}

enum { OPT_MODEL = 256, OPT_BUDGETS, OPT_BUDGET, OPT_COUNTS, OPT_REPEAT, OPT_TOKENS, OPT_PROMPT,
       OPT_THREADS, OPT_TSV, OPT_HELP };

static int take_option(struct args *a, int c, const char *help)
{
    const char *why;
    switch (c) {
    case OPT_MODEL: a->base.model = optarg; return K3_OK;
    case OPT_BUDGETS: return list_option(a, "budgets", optarg, true);
    case OPT_COUNTS: return list_option(a, "counts", optarg, false);
    case OPT_BUDGET:
        return size_parse(optarg, &a->base.budget, &why) ? K3_OK
               : usage(a, "--budget: '%s': %s", optarg, why);
    case OPT_REPEAT:
        return count_option(optarg, 1, MAX_REPEAT, &a->repeat) ? K3_OK
               : usage(a, "--repeat: '%s' is no number from 1 to %d", optarg, MAX_REPEAT);
    case OPT_TOKENS:
        return count_option(optarg, 2, 100000, &a->base.tokens) ? K3_OK
               : usage(a, "--tokens: '%s' is no number from 2 to 100000", optarg);
    case OPT_PROMPT:
        return count_option(optarg, 1, 1000000, &a->base.prompt) ? K3_OK
               : usage(a, "--prompt: '%s' is no number from 1 to 1000000", optarg);
    case OPT_THREADS:
        return count_option(optarg, 1, 1024, &a->base.threads) ? K3_OK
               : usage(a, "--threads: '%s' is no number from 1 to 1024", optarg);
    case OPT_TSV: a->tsv = true; return K3_OK;
    case OPT_HELP: fputs(help, stdout); return -1;
    default: return usage(a, "option '%s' is not known", "?");
    }
}

/* K3_OK, an exit status, or -1 when help was printed. */
static int parse(struct args *a, int argc, char **argv, const struct option *options,
                 const char *help)
{
    optind = 0; /* the program has used getopt before */
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "+:", options, NULL)) != -1;) {
        if (c == ':')
            return usage(a, "option '%s' needs a value", argv[optind - 1]);
        if (c == '?')
            return usage(a, "option '%s' is not known", argv[optind - 1]);
        const int rc = take_option(a, c, help);
        if (rc != K3_OK)
            return rc;
    }
    for (int i = optind; i < argc; i++) {
        if (strcmp(argv[optind - 1], "--") != 0)
            return usage(a, "'%s' is no option; batch options go behind --", argv[optind]);
        if (a->base.n_extra == MAX_EXTRA)
            return usage(a, "more than %d words behind --", MAX_EXTRA);
        a->extra[a->base.n_extra++] = argv[i];
    }
    a->base.extra = a->extra;
    return a->base.model ? K3_OK : usage(a, "--model is missing");
}

static void defaults(struct args *a, const char *command)
{
    memset(a, 0, sizeof *a);
    a->command = command;
    a->repeat = 3;
    a->base.tokens = 8;
    a->base.prompt = 8;
}

/* ---- ladder ------------------------------------------------------------------------------ */

static bool same_ids(const struct bench_result *a, const struct bench_result *b)
{
    return a->n_ids == b->n_ids && memcmp(a->ids, b->ids, a->n_ids * sizeof *a->ids) == 0;
}

/* One run of a point; keeps the sample, compares with the reference (the first run of all). */
static int measure(const struct bench_case *c, struct point *p, struct bench_result *reference)
{
    struct k3_error err = {0};
    struct bench_result r;
    if (bench_run(c, &r, &err) != K3_OK) {
        fprintf(stderr, "k3chat bench: %s\n", err.message);
        return err.status;
    }
    if (!reference->ids) {
        *reference = r;
        reference->ids = malloc((r.n_ids + 1) * sizeof *r.ids);
        if (!reference->ids)
            return K3_FAILED;
        memcpy(reference->ids, r.ids, r.n_ids * sizeof *r.ids);
    }
    p->ids_differ |= !same_ids(&r, reference);
    p->token_s[p->n++] = r.token_s;
    p->peak = r.peak_rss > p->peak ? r.peak_rss : p->peak;
    bench_result_free(&p->last);
    p->last = r;
    return K3_OK;
}

static void print_ladder_head(const struct args *a)
{
    if (a->tsv)
        puts("budget\trepeats\ttoken_s_mean\ttoken_s_sd\ttoken_s_spread\tbytes_per_token\t"
             "trunk_per_token\texperts_per_token\tdisk_wait\ttrue_hit_rate\tdevice_busy\t"
             "peak_rss\tplanned\tids");
    else
        printf("%10s %9s %8s %8s %10s %7s %7s %7s %10s %10s  %s\n", "budget", "s/token", "sd",
               "spread", "GB/token", "wait", "hit", "busy", "peak", "planned", "ids");
}

static void print_ladder_row(const struct args *a, const struct point *p)
{
    const struct bench_result *r = &p->last;
    const struct bench_summary s = bench_summarise(p->token_s, p->n);
    const char *ids = p->ids_differ ? "DIFFER" : "same";
    if (a->tsv)
        printf("%" PRIu64 "\t%zu\t%.5f\t%.5f\t%.5f\t%.0f\t%.0f\t%.0f\t%.4f\t%.4f\t%.4f\t%" PRIu64
               "\t%" PRIu64 "\t%s\n", r->budget, p->n, s.mean, s.sd, s.spread, r->bytes_per_token,
               r->trunk_per_token, r->experts_per_token, r->wait_fraction, r->hit_rate,
               r->busy_fraction, p->peak, r->planned, ids);
    else
        printf("%7.3f GB %9.4f %8.4f %8.4f %10.4f %6.1f%% %6.1f%% %6.1f%% %7.3f GB %7.3f GB  %s\n",
               (double)r->budget / 1e9, s.mean, s.sd, s.spread, r->bytes_per_token / 1e9,
               100 * r->wait_fraction, 100 * r->hit_rate, 100 * r->busy_fraction,
               (double)p->peak / 1e9, (double)r->planned / 1e9, ids);
}

int bench_ladder(int argc, char **argv)
{
    static const struct option options[] = {
        {"model", 1, NULL, OPT_MODEL},   {"budgets", 1, NULL, OPT_BUDGETS},
        {"repeat", 1, NULL, OPT_REPEAT}, {"tokens", 1, NULL, OPT_TOKENS},
        {"prompt", 1, NULL, OPT_PROMPT}, {"threads", 1, NULL, OPT_THREADS},
        {"tsv", 0, NULL, OPT_TSV},       {"help", 0, NULL, OPT_HELP},
        {0}};
    struct args a;
    defaults(&a, "ladder");
    int rc = parse(&a, argc, argv, options, ladder_help);
    if (rc != K3_OK)
        return rc < 0 ? K3_OK : rc;
    if (a.n_points == 0)
        return usage(&a, "--budgets is missing");
    struct point points[MAX_POINTS] = {0};
    struct bench_result reference = {0};
    for (uint32_t i = 0; i < a.repeat && rc == K3_OK; i++)
        for (size_t k = 0; k < a.n_points && rc == K3_OK; k++) {
            struct bench_case c = a.base;
            c.budget = a.points[k];
            c.limit_memory = true;
            rc = measure(&c, &points[k], &reference);
        }
    if (rc == K3_OK) {
        const struct bench_result *r = &points[0].last;
        fprintf(stderr, "%s, %u threads, chunk %u, I/O %s; memory limit by cgroup: %s\n", r->isa,
                r->threads, r->chunk, r->io,
                r->limited ? "yes" : "no (not allowed here; peak RSS is compared all the same)");
        print_ladder_head(&a);
    }
    for (size_t k = 0; k < a.n_points; k++) {
        if (rc == K3_OK || rc == K3_FAILED)
            if (points[k].n == a.repeat)
                print_ladder_row(&a, &points[k]);
        if (points[k].ids_differ || points[k].peak > a.points[k])
            rc = K3_FAILED;
        bench_result_free(&points[k].last);
    }
    bench_result_free(&reference);
    return rc;
}

/* ---- threads ----------------------------------------------------------------------------- */

/* A process that does nothing but compute, until it is killed. */
static pid_t start_neighbour(void)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        for (volatile unsigned long i = 0;; i++)
            ;
    return pid;
}

static void stop_neighbour(pid_t pid)
{
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

static int measure_threads(const struct args *a, struct point *p, uint32_t threads,
                           struct bench_result *reference)
{
    struct bench_case c = a->base;
    c.threads = threads;
    const size_t at = p->n;
    const pid_t pid = start_neighbour();
    int rc = measure(&c, p, reference);
    stop_neighbour(pid);
    if (rc != K3_OK)
        return rc;
    p->busy_s[at] = p->token_s[at];
    p->n = at; /* the sample beside the neighbour has its own list */
    return measure(&c, p, reference);
}

int bench_threads(int argc, char **argv)
{
    static const struct option options[] = {
        {"model", 1, NULL, OPT_MODEL},   {"budget", 1, NULL, OPT_BUDGET},
        {"counts", 1, NULL, OPT_COUNTS}, {"repeat", 1, NULL, OPT_REPEAT},
        {"tokens", 1, NULL, OPT_TOKENS}, {"prompt", 1, NULL, OPT_PROMPT},
        {"tsv", 0, NULL, OPT_TSV},       {"help", 0, NULL, OPT_HELP},
        {0}};
    struct args a;
    defaults(&a, "threads");
    int rc = parse(&a, argc, argv, options, threads_help);
    if (rc != K3_OK)
        return rc < 0 ? K3_OK : rc;
    if (a.n_points == 0) {
        const uint32_t cores = k3_host_cores();
        for (uint32_t n = 1; n < cores && a.n_points + 1 < MAX_POINTS; n *= 2)
            a.points[a.n_points++] = n;
        a.points[a.n_points++] = cores;
    }
    struct point points[MAX_POINTS] = {0};
    struct bench_result reference = {0};
    for (uint32_t i = 0; i < a.repeat && rc == K3_OK; i++)
        for (size_t k = 0; k < a.n_points && rc == K3_OK; k++)
            rc = measure_threads(&a, &points[k], (uint32_t)a.points[k], &reference);
    if (rc == K3_OK)
        puts(a.tsv ? "threads\trepeats\ttoken_s_median\ttoken_s_sd\tbusy_neighbour_s_median\tratio\tids"
                   : "threads   s/token       sd   beside one busy process    ratio  ids");
    for (size_t k = 0; k < a.n_points; k++) {
        const struct bench_summary alone = bench_summarise(points[k].token_s, points[k].n);
        const struct bench_summary busy = bench_summarise(points[k].busy_s, points[k].n);
        const double ratio = alone.median > 0 ? busy.median / alone.median : 0;
        if (rc == K3_OK)
            printf(a.tsv ? "%" PRIu64 "\t%zu\t%.5f\t%.5f\t%.5f\t%.3f\t%s\n"
                         : "%7" PRIu64 "   (n=%zu) %.4f %8.4f %25.4f %8.2f  %s\n",
                   a.points[k], points[k].n, alone.median, alone.sd, busy.median, ratio,
                   points[k].ids_differ ? "DIFFER" : "same");
        if (points[k].ids_differ)
            rc = K3_FAILED;
        bench_result_free(&points[k].last);
    }
    bench_result_free(&reference);
    return rc;
}
