/* cmd_trace.c - see cmd_trace.h. */
#include <config.h>

#include "cmd_trace.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/storage/trace.h"
#include "size.h"

#define MAX_CAPACITIES 64
#define RELEASED_EXPERT_BYTES UINT64_C(17547264) /* one expert of the released model */

struct trace_args {
    const char *path;
    uint64_t capacity[MAX_CAPACITIES];
    size_t n_capacities;
    uint64_t expert_bytes;
    struct k3_trace_options view;
    bool tsv;
};

/* Counts of one capacity, by policy. */
struct row {
    uint64_t capacity;
    uint32_t slots;
    struct k3_replay_counts counts[K3_REPLAYS];
};

static const char help_text[] =
    "Usage: k3chat trace [OPTION]... FILE\n"
    "Replay the expert requests that a run recorded with --trace, and print the hit rate that\n"
    "each policy would have had for several sizes of the expert store.\n"
    "\n"
    "      --capacity LIST      sizes of the store, separated by commas\n"
    "                             (default: 4GB,8GB,16GB,24GB,32GB,48GB,64GB)\n"
    "      --expert-bytes N     bytes of one expert (default: 17547264, the released model)\n"
    "      --view VIEW          how to read the file:\n"
    "                             file              as it stands\n"
    "                             last-pass         a run that computed all tokens anew for each\n"
    "                                               new one: its last pass, token by token\n"
    "                             last-pass:PROMPT  the same with a prompt of that many tokens\n"
    "                             auto              last-pass if each pass repeats the one\n"
    "                                               before (default)\n"
    "      --top-k N            experts per token (default: found out from the file)\n"
    "      --tsv                tab-separated values, one line per capacity, policy and part\n"
    "      --help               display this help and exit\n"
    "\n"
    "A request is a hit when its expert was in memory before the step began; a prompt or a\n"
    "chunk of it is one step. Policies: lru, one recency list over all layers; quota, the\n"
    "engine's rule; belady, the fewest reads possible over the whole trace with the same\n"
    "capacity over all layers and knowledge of the future.\n";

static int usage_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("k3chat trace: ", stderr);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs("\nTry 'k3chat trace --help' for more information.\n", stderr);
    return K3_USAGE;
}

static int fail(const struct k3_error *err)
{
    fprintf(stderr, "k3chat trace: %s\n", err->message);
    return err->status;
}

/* ---- options ----------------------------------------------------------------------------- */

static int parse_capacities(struct trace_args *a, const char *list)
{
    a->n_capacities = 0;
    for (const char *p = list;; p++) {
        const size_t n = strcspn(p, ",");
        char word[64];
        const char *why;
        if (a->n_capacities == MAX_CAPACITIES)
            return usage_error("--capacity: more than %d sizes", MAX_CAPACITIES);
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), p);
        if (!size_parse(word, &a->capacity[a->n_capacities], &why))
            return usage_error("--capacity: '%s': %s", word, why);
        a->n_capacities++;
        p += n;
        if (*p == '\0')
            return K3_OK;
    }
}

/* A decimal number from 1 to max; 0 when it is none. */
static uint32_t parse_count(const char *text, uint32_t max)
{
    char *end;
    errno = 0;
    const unsigned long v = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v > max)
        return 0;
    return (uint32_t)v;
}

static int parse_view(struct trace_args *a, const char *text)
{
    static const char last_pass[] = "last-pass";
    const size_t n = sizeof last_pass - 1;
    if (strcmp(text, "auto") == 0)
        a->view.view = K3_TRACE_AUTO;
    else if (strcmp(text, "file") == 0)
        a->view.view = K3_TRACE_FILE;
    else if (strncmp(text, last_pass, n) == 0 && (text[n] == '\0' || text[n] == ':'))
        a->view.view = K3_TRACE_LAST_PASS;
    else
        return usage_error("--view: '%s' is none of auto, file, last-pass, last-pass:PROMPT", text);
    if (a->view.view == K3_TRACE_LAST_PASS && text[n] == ':') {
        a->view.prompt = parse_count(text + n + 1, UINT32_MAX);
        if (a->view.prompt == 0)
            return usage_error("--view: '%s': PROMPT must be a number of tokens from 1",
                               text + n + 1);
    }
    return K3_OK;
}

static int parse_option(struct trace_args *a, int option)
{
    const char *why;
    switch (option) {
    case 'c':
        return parse_capacities(a, optarg);
    case 'e':
        if (!size_parse(optarg, &a->expert_bytes, &why))
            return usage_error("--expert-bytes: '%s': %s", optarg, why);
        return a->expert_bytes ? K3_OK : usage_error("--expert-bytes: must be at least 1");
    case 'v':
        return parse_view(a, optarg);
    case 'k':
        a->view.top_k = parse_count(optarg, 65536);
        return a->view.top_k
                   ? K3_OK
                   : usage_error("--top-k: '%s' is no number from 1 to 65536", optarg);
    default:
        a->tsv = true;
        return K3_OK;
    }
}

/* -1 = go on, else the exit status. */
static int parse_args(struct trace_args *a, int argc, char **argv)
{
    static const struct option options[] = {
        {"capacity", required_argument, NULL, 'c'},
        {"expert-bytes", required_argument, NULL, 'e'},
        {"view", required_argument, NULL, 'v'},
        {"top-k", required_argument, NULL, 'k'},
        {"tsv", no_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    opterr = 0;
    optind = 0; /* glibc: start afresh, whoever used getopt before */
    for (int c; (c = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
        if (c == 'h') {
            fputs(help_text, stdout);
            return fflush(stdout) == 0 ? K3_OK : K3_FAILED;
        }
        if (c == ':')
            return usage_error("option '%s' requires an argument", argv[optind - 1]);
        if (c == '?' && optopt != 0 && strncmp(argv[optind - 1], "--", 2) != 0)
            return usage_error("unrecognized option '-%c'", optopt);
        if (c == '?')
            return usage_error("unrecognized option '%s'", argv[optind - 1]);
        const int st = parse_option(a, c);
        if (st != K3_OK)
            return st;
    }
    if (optind == argc)
        return usage_error("which trace? FILE is missing");
    if (optind + 1 < argc)
        return usage_error("extra operand '%s'", argv[optind + 1]);
    a->path = argv[optind];
    return -1;
}

/* ---- output ------------------------------------------------------------------------------ */

static double rate(uint64_t hits, uint64_t requests)
{
    return requests ? (double)hits / (double)requests : 0.0;
}

static void print_tsv_line(const struct row *row, const char *policy, const char *part,
                           uint64_t requests, uint64_t hits, uint64_t reads)
{
    printf("%" PRIu64 "\t%" PRIu32 "\t%s\t%s\t", row->capacity, row->slots, policy, part);
    printf("%" PRIu64 "\t%" PRIu64 "\t%.6f\t%" PRIu64 "\n", requests, hits, rate(hits, requests),
           reads);
}

static void print_tsv(const struct row *rows, size_t n)
{
    puts("capacity_bytes\tslots\tpolicy\tpart\trequests\thits\thit_rate\treads");
    for (size_t i = 0; i < n; i++) {
        for (int r = 0; r < K3_REPLAYS; r++) {
            const struct k3_replay_counts *c = &rows[i].counts[r];
            const char *const policy = k3_replay_name((enum k3_replay)r);
            print_tsv_line(&rows[i], policy, "decode", c->decode_requests, c->decode_hits,
                           c->decode_requests - c->decode_hits);
            print_tsv_line(&rows[i], policy, "all", c->requests, c->hits, c->reads);
        }
    }
}

static void print_head(const struct trace_args *a, const struct k3_trace_steps *s)
{
    printf("%s: %" PRIu32 " passes, %" PRIu32 " layers with experts, %" PRIu32
           " experts per token\n",
           a->path, s->passes, s->layers, s->top_k);
    if (s->view == K3_TRACE_LAST_PASS)
        printf("View: the last pass token by token, after a prompt of %" PRIu32 "\n", s->prompt);
    else
        puts("View: the file as it stands");
    printf("%" PRIu64 " requests, %" PRIu64 " of them in %" PRIu64 " decode steps\n\n", s->requests,
           s->decode_requests, s->decode_steps);
}

static void print_table(const struct trace_args *a, const struct k3_trace_steps *s,
                        const struct row *rows, size_t n)
{
    print_head(a, s);
    const bool decode = s->decode_requests != 0;
    puts(decode ? "Hit rate of the decode steps"
                : "Experts in memory, of those that the steps ask for (no decode steps here)");
    printf("%10s%10s", "store", "slots");
    for (int r = 0; r < K3_REPLAYS; r++)
        printf("%10s", k3_replay_name((enum k3_replay)r));
    puts("");
    for (size_t i = 0; i < n; i++) {
        char size[32];
        printf("%10s%10" PRIu32, size_format(size, sizeof size, rows[i].capacity), rows[i].slots);
        for (int r = 0; r < K3_REPLAYS; r++) {
            const struct k3_replay_counts *c = &rows[i].counts[r];
            printf("%8.1f %%", 100 * (decode ? rate(c->decode_hits, c->decode_requests)
                                             : rate(c->uses - c->reads, c->uses)));
        }
        puts("");
    }
}

/* ---- the command ------------------------------------------------------------------------- */

static enum k3_status replay_all(const struct trace_args *a, const struct k3_trace_steps *s,
                                 struct row *rows, struct k3_error *err)
{
    for (size_t i = 0; i < a->n_capacities; i++) {
        const uint64_t slots = a->capacity[i] / a->expert_bytes;
        rows[i].capacity = a->capacity[i];
        rows[i].slots = slots < UINT32_MAX ? (uint32_t)slots : UINT32_MAX;
        for (int r = 0; r < K3_REPLAYS; r++)
            if (k3_trace_replay(s, (enum k3_replay)r, rows[i].slots, &rows[i].counts[r], err))
                return err->status;
    }
    return K3_OK;
}

static enum k3_status run(const struct trace_args *a, struct k3_error *err)
{
    struct k3_trace trace = {0};
    struct k3_trace_steps steps = {0};
    struct row rows[MAX_CAPACITIES];
    if (k3_trace_read(a->path, &trace, err))
        return err->status;
    enum k3_status st = k3_trace_steps_make(&trace, &a->view, &steps, err);
    if (st)
        k3_fail_in(err, "%s", a->path);
    k3_trace_free(&trace);
    if (st == K3_OK)
        st = replay_all(a, &steps, rows, err);
    if (st == K3_OK && a->tsv)
        print_tsv(rows, a->n_capacities);
    else if (st == K3_OK)
        print_table(a, &steps, rows, a->n_capacities);
    k3_trace_steps_free(&steps);
    if (st == K3_OK && (fflush(stdout) != 0 || ferror(stdout)))
        st = k3_fail(err, K3_FAILED, "standard output: %s", strerror(errno));
    return st;
}

int cmd_trace(int argc, char **argv)
{
    static const uint64_t gb[] = {4, 8, 16, 24, 32, 48, 64};
    struct trace_args a = {.expert_bytes = RELEASED_EXPERT_BYTES,
                           .n_capacities = sizeof gb / sizeof gb[0]};
    for (size_t i = 0; i < a.n_capacities; i++)
        a.capacity[i] = gb[i] * 1000000000;
    const int st = parse_args(&a, argc, argv);
    if (st >= 0)
        return st;
    struct k3_error err;
    return run(&a, &err) ? fail(&err) : K3_OK;
}
