/* bench_io.c - see bench_io.h. The reads go through the engine's own queue and into its own kind of
 * buffers, so that the figures are what the tape and the experts can get at most. */
#include <config.h>

#include "bench_io.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk_meter.h"
#include "disk_rate.h"

#define SPELL 0.4 /* seconds of one repeat */
#define REPEATS_MAX 101
#define COUNT(a) (sizeof(a) / sizeof *(a))

static const uint32_t depths[] = {1, 2, 4, 8, 16, 32};
static const struct pattern {
    const char *name;
    struct disk_reads reads;
} patterns[] = {
    {"1 MiB in order", {1u << 20, false}},
    {"8 MiB in order", {8u << 20, false}},
    {"16 MiB in order", {16u << 20, false}},
    {"experts (17.5 MB) anywhere", {DISK_EXPERT_BYTES, true}},
};
enum { DEPTHS = COUNT(depths), PATTERNS = COUNT(patterns) };

struct bench {
    const char *model, *file;
    enum k3_io_kind kind;
    unsigned repeats;
    bool tsv;
    struct k3_checkpoint *c;
    struct k3_checkpoint of_file; /* with --file: a checkpoint of one file */
    struct k3_shard shard;
    struct disk_meter meter;
    double rates[PATTERNS][DEPTHS][REPEATS_MAX]; /* bytes/s; 0 = cannot be measured */
};

static const char help_text[] =
    "Usage: k3chat bench io --model DIR | --file FILE [OPTION]...\n"
    "Measure how fast the disk gives the reads of the trunk and of the experts, by the number of\n"
    "requests in flight.\n"
    "\n"
    "      --model DIR      read the shards of this checkpoint\n"
    "      --file FILE      read this file\n"
    "      --io NAME        auto, uring, direct or buffered (default: auto)\n"
    "      --repeat N       repeats of which the median is printed (default: 3)\n"
    "      --tsv            tab-separated values, with the slowest and fastest repeat\n"
    "      --help           display this help and exit\n"
    "\n"
    "Figures are GB/s (1e9 bytes). '-' stands where the data are too small or the buffers would\n"
    "be too large. Buffered reads begin with the files dropped from the page cache, as far as the\n"
    "system does that. Takes 300 MB of memory and about half a minute.\n";

K3_PRINTF(1, 2) static int usage_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("k3chat bench io: ", stderr);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs("\nTry 'k3chat bench io --help' for more information.\n", stderr);
    return K3_USAGE;
}

static int failed(const struct k3_error *err)
{
    fprintf(stderr, "k3chat bench io: %s\n", err->message);
    return (int)err->status;
}

/* ---- options ----------------------------------------------------------------------------- */

static int parse_kind(struct bench *b, const char *text)
{
    static const char *const names[] = {"auto", "uring", "direct", "buffered"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(text, names[i]) == 0) {
            b->kind = (enum k3_io_kind)i; /* the order of the enum */
            return K3_OK;
        }
    return usage_error("--io: '%s' is none of auto, uring, direct, buffered", text);
}

static int parse_repeats(struct bench *b, const char *text)
{
    char *end;
    errno = 0;
    unsigned long v = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v < 1 || v > REPEATS_MAX)
        return usage_error("--repeat: '%s' is no number from 1 to %d", text, REPEATS_MAX);
    b->repeats = (unsigned)v;
    return K3_OK;
}

static int parse_option(struct bench *b, int option)
{
    switch (option) {
    case 'm':
        b->model = optarg;
        return K3_OK;
    case 'f':
        b->file = optarg;
        return K3_OK;
    case 'i':
        return parse_kind(b, optarg);
    case 'r':
        return parse_repeats(b, optarg);
    default:
        b->tsv = true;
        return K3_OK;
    }
}

/* -1 = go on, else the exit status. */
static int parse_args(struct bench *b, int argc, char **argv)
{
    static const struct option options[] = {
        {"model", required_argument, NULL, 'm'},  {"file", required_argument, NULL, 'f'},
        {"io", required_argument, NULL, 'i'},     {"repeat", required_argument, NULL, 'r'},
        {"tsv", no_argument, NULL, 't'},          {"help", no_argument, NULL, 'h'},
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
        if (c == '?')
            return usage_error("unrecognized option '%s'", argv[optind - 1]);
        int st = parse_option(b, c);
        if (st != K3_OK)
            return st;
    }
    if (optind < argc)
        return usage_error("unexpected argument '%s'", argv[optind]);
    if (!b->model == !b->file)
        return usage_error("give either --model DIR or --file FILE");
    return -1;
}

/* ---- what is read ------------------------------------------------------------------------ */

static enum k3_status open_file(struct bench *b, struct k3_error *err)
{
    b->shard.path = (char *)b->file;
    if (!k3_shard_open(&b->shard))
        return k3_fail(err, K3_FAILED, "%s: cannot be opened: %s", b->file,
                       errno == EINVAL ? "not a regular file" : strerror(errno));
    b->of_file = (struct k3_checkpoint){.shards = &b->shard, .n_shards = 1};
    b->c = &b->of_file;
    return K3_OK;
}

static enum k3_status open_data(struct bench *b, struct k3_error *err)
{
    if (b->file)
        return open_file(b, err);
    b->c = k3_checkpoint_open(b->model, NULL, NULL, err);
    if (!b->c)
        return err->status;
    k3_checkpoint_drop_tensors(b->c);
    return K3_OK;
}

static void close_data(struct bench *b)
{
    if (b->c == &b->of_file)
        k3_shard_close(&b->shard);
    else
        k3_checkpoint_close(b->c);
}

/* ---- measuring --------------------------------------------------------------------------- */

static bool measurable(const struct bench *b, size_t pattern, size_t depth)
{
    const uint64_t bytes = patterns[pattern].reads.bytes;
    return disk_buffers(bytes, depths[depth]) <= DISK_IN_FLIGHT_MAX &&
           disk_places(b->c, bytes) > 0;
}

/* Repeats are the outermost loop, so that a slow minute of the disk meets all figures alike. */
static enum k3_status measure(struct bench *b, struct k3_error *err)
{
    struct disk_meter *m = &b->meter;
    m->files = b->c;
    m->kind = b->kind;
    m->buffers = k3_io_alloc(DISK_IN_FLIGHT_MAX);
    if (!m->buffers)
        return k3_fail_memory(err, "the buffers", DISK_IN_FLIGHT_MAX);
    memset(m->buffers, 1, DISK_IN_FLIGHT_MAX); /* the pages are there before the clock runs */
    enum k3_status st = K3_OK;
    for (unsigned r = 0; r < b->repeats && st == K3_OK; r++)
        for (size_t i = 0; i < PATTERNS && st == K3_OK; i++)
            for (size_t d = 0; d < DEPTHS && st == K3_OK; d++)
                if (measurable(b, i, d))
                    st = disk_measure(m, &patterns[i].reads, depths[d], SPELL,
                                      &b->rates[i][d][r], err);
    k3_io_free(m->buffers, DISK_IN_FLIGHT_MAX);
    return st;
}

/* ---- printing ---------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(const double *sorted, unsigned n)
{
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static void print_tsv(struct bench *b)
{
    puts("reads\tbytes\tdepth\tGB/s\tslowest\tfastest\trepeats\tbackend");
    for (size_t i = 0; i < PATTERNS; i++)
        for (size_t d = 0; d < DEPTHS; d++) {
            const double *r = b->rates[i][d];
            if (measurable(b, i, d))
                printf("%s\t%" PRIu64 "\t%u\t%.3f\t%.3f\t%.3f\t%u\t%s\n", patterns[i].name,
                       patterns[i].reads.bytes, depths[d], median(r, b->repeats) / 1e9, r[0] / 1e9,
                       r[b->repeats - 1] / 1e9, b->repeats, b->meter.name);
        }
}

static void print_table(struct bench *b)
{
    printf("%s: %zu file%s, %.2f GB; %s; median of %u repeat%s, GB/s\n\n",
           b->model ? b->model : b->file, b->c->n_shards, b->c->n_shards == 1 ? "" : "s",
           (double)disk_bytes(b->c) / 1e9, b->meter.name, b->repeats, b->repeats == 1 ? "" : "s");
    printf("%-28s", "requests in flight");
    for (size_t d = 0; d < DEPTHS; d++)
        printf("%8u", depths[d]);
    putchar('\n');
    for (size_t i = 0; i < PATTERNS; i++) {
        printf("%-28s", patterns[i].name);
        for (size_t d = 0; d < DEPTHS; d++)
            if (measurable(b, i, d))
                printf("%8.2f", median(b->rates[i][d], b->repeats) / 1e9);
            else
                printf("%8s", "-");
        putchar('\n');
    }
}

/* The chat shows its own rate beside the best one here. Reads through the page cache say too much. */
static void keep_best(struct bench *b)
{
    double best = 0;
    struct k3_error err = {0};
    for (size_t i = 0; i < PATTERNS; i++)
        for (size_t d = 0; d < DEPTHS; d++)
            if (measurable(b, i, d) && median(b->rates[i][d], b->repeats) > best)
                best = median(b->rates[i][d], b->repeats);
    if (!b->model || best <= 0 || strncmp(b->meter.name, "buffered", 8) == 0)
        return;
    if (disk_rate_keep(b->model, best, &err) != K3_OK)
        fprintf(stderr, "k3chat bench io: the rate could not be kept for the chat: %s\n",
                err.message);
    else if (!b->tsv)
        printf("\nkept for the disk pane of the chat: %.2f GB/s\n", best / 1e9);
}

static int report(struct bench *b)
{
    for (size_t i = 0; i < PATTERNS; i++)
        for (size_t d = 0; d < DEPTHS; d++)
            qsort(b->rates[i][d], b->repeats, sizeof(double), by_value);
    if (b->tsv)
        print_tsv(b);
    else
        print_table(b);
    keep_best(b);
    if (fflush(stdout) == 0)
        return K3_OK;
    fprintf(stderr, "k3chat bench io: writing the result failed: %s\n", strerror(errno));
    return K3_FAILED;
}

int bench_io(int argc, char **argv)
{
    struct bench *b = calloc(1, sizeof *b);
    struct k3_error err = {0};
    if (!b) {
        k3_fail_memory(&err, "the benchmark", sizeof *b);
        return failed(&err);
    }
    b->repeats = 3;
    int st = parse_args(b, argc, argv);
    if (st < 0 && (st = (int)open_data(b, &err)) == K3_OK) {
        if (disk_places(b->c, patterns[0].reads.bytes) == 0)
            k3_fail(&err, K3_FAILED, "%s: %" PRIu64 " bytes are too few to measure with",
                    b->model ? b->model : b->file, disk_bytes(b->c));
        else
            measure(b, &err);
        st = err.status == K3_OK ? report(b) : failed(&err);
        close_data(b);
    } else if (err.status != K3_OK) {
        failed(&err);
    }
    free(b);
    return st;
}
