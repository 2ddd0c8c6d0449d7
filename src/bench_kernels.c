/* bench_kernels.c - see bench_kernels.h. Each figure is the median of some repeats; a repeat runs
 * whole units of work for a few hundredths of a second, and beside every repeat of a kernel that
 * streams weights the memory is read plainly, so that both saw the same machine. */
#include <config.h>

#include "bench_kernels.h"

#include <errno.h>
#include <getopt.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../engine/model/host.h"
#include "bench_kernel_cases.h"
#include "bench_roof.h"
#include "clock.h"

#define WEIGHTS_BYTES ((size_t)512 << 20)
#define ROOF_BYTES ((size_t)128 << 20) /* read for one figure of the roof */
#define SPELL 0.03                     /* seconds of one repeat */
#define MOST_REPEATS 101
#define MOST_THREADS 1024u

static const unsigned batches[] = {1, 4, 16, 64};
static const char *const isa_names[] = {"auto", "scalar", "avx2", "avx512", "neon"};
enum { BATCHES = sizeof batches / sizeof *batches, ISAS = sizeof isa_names / sizeof *isa_names };

struct bench {
    unsigned threads, repeats;
    enum k3_isa isa; /* AUTO = every set there is */
    const char *only;
    bool tsv;
    struct bench_data data;
    uint8_t *weights;
    float *x, *y, *state, *own;
    uint8_t *scales;
};

static const char help_text[] =
    "Usage: k3chat bench kernels [OPTION]...\n"
    "Measure every kernel at the released model's sizes, for each kernel set of this CPU.\n"
    "\n"
    "      --threads N      threads (default: physical cores)\n"
    "      --isa NAME       only this set: scalar, avx2, avx512, neon\n"
    "      --repeat N       repeats of which the median is printed (default: 5)\n"
    "      --kernel TEXT    only kernels whose name contains TEXT\n"
    "      --tsv            tab-separated values\n"
    "      --help           display this help and exit\n"
    "\n"
    "GB/s counts the weights once per call and the activations; 'of roof' compares it with plain\n"
    "reading of memory by the same threads in the same seconds, 'of peak' GFLOP/s with chains of\n"
    "fused multiply-adds in registers. Long products are measured on a part of their rows.\n"
    "Takes 1 GB of memory and about a minute per set.\n";

static int usage_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("k3chat bench kernels: ", stderr);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs("\nTry 'k3chat bench kernels --help' for more information.\n", stderr);
    return K3_USAGE;
}

/* ---- options ------------------------------------------------------------------------------- */

static int parse_count(unsigned *out, const char *option, const char *text, unsigned most)
{
    char *end;
    errno = 0;
    const unsigned long v = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v < 1 || v > most)
        return usage_error("%s: '%s' is no number from 1 to %u", option, text, most);
    *out = (unsigned)v;
    return K3_OK;
}

static int parse_isa(struct bench *b, const char *text)
{
    for (int i = 0; i < ISAS; i++) {
        if (strcmp(text, isa_names[i]) != 0)
            continue;
        b->isa = (enum k3_isa)i;
        if (!k3_kernels_get(b->isa))
            return usage_error("--isa: this CPU or build has no set '%s'", text);
        return K3_OK;
    }
    return usage_error("--isa: '%s' is none of auto, scalar, avx2, avx512, neon", text);
}

static int parse_option(struct bench *b, int option)
{
    switch (option) {
    case 'n':
        return parse_count(&b->threads, "--threads", optarg, MOST_THREADS);
    case 'r':
        return parse_count(&b->repeats, "--repeat", optarg, MOST_REPEATS);
    case 'i':
        return parse_isa(b, optarg);
    case 'k':
        b->only = optarg;
        return K3_OK;
    default:
        b->tsv = true;
        return K3_OK;
    }
}

/* -1 = go on, else the exit status. */
static int parse_args(struct bench *b, int argc, char **argv)
{
    static const struct option options[] = {
        {"threads", required_argument, NULL, 'n'}, {"repeat", required_argument, NULL, 'r'},
        {"isa", required_argument, NULL, 'i'},     {"kernel", required_argument, NULL, 'k'},
        {"tsv", no_argument, NULL, 't'},           {"help", no_argument, NULL, 'h'},
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
        const int st = parse_option(b, c);
        if (st != K3_OK)
            return st;
    }
    return optind < argc ? usage_error("unexpected argument '%s'", argv[optind]) : -1;
}

/* ---- memory -------------------------------------------------------------------------------- */

static uint64_t scramble(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Weights whose halves are BF16 from 2^-7 to 2, of both signs. */
static void fill_weights(struct bench *b)
{
#pragma omp parallel for num_threads(b->threads) schedule(static)
    for (size_t i = 0; i < WEIGHTS_BYTES / 8; i++) {
        const uint64_t v = (scramble(i) & 0x83ff83ff83ff83ffu) | 0x3c003c003c003c00u;
        memcpy(b->weights + 8 * i, &v, sizeof v);
    }
}

static float *floats(size_t n)
{
    float *x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
    for (size_t i = 0; x && i < n; i++)
        x[i] = (float)((int32_t)scramble(i) >> 8) * 0x1p-23f;
    return x;
}

static bool bench_open(struct bench *b)
{
    const size_t n_scales = (size_t)4096 * 4096 / 32;
    void *p = mmap(NULL, WEIGHTS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    b->weights = p == MAP_FAILED ? NULL : p;
    b->x = floats((size_t)BENCH_MOST_BATCH * BENCH_WIDEST);
    b->y = floats(bench_output_floats());
    b->state = floats((size_t)2 * BENCH_HEADS * 128 * 128);
    b->own = floats(b->threads * bench_own_floats());
    b->scales = malloc(n_scales);
    if (!b->weights || !b->x || !b->y || !b->state || !b->own || !b->scales)
        return false;
    madvise(p, WEIGHTS_BYTES, MADV_HUGEPAGE); /* a wish: without it the roof is lower as well */
    fill_weights(b);
    for (size_t i = 0; i < n_scales; i++)
        b->scales[i] = (uint8_t)(112 + scramble(i) % 12);
    b->data = (struct bench_data){b->weights, WEIGHTS_BYTES, b->scales, b->x,
                                  b->y,       b->state,      b->own,    bench_own_floats()};
    return true;
}

static void bench_close(struct bench *b)
{
    if (b->weights)
        munmap(b->weights, WEIGHTS_BYTES);
    free(b->x);
    free(b->y);
    free(b->state);
    free(b->own);
    free(b->scales);
}

/* ---- measuring ----------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, unsigned n)
{
    qsort(v, n, sizeof *v, ascending);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Seconds for `units` units from `first`, all threads. */
static double time_units(const struct bench *b, const struct bench_unit *unit, size_t first,
                         size_t units)
{
    const double start = clock_now();
#pragma omp parallel num_threads(b->threads)
    {
        struct bench_unit u = *unit;
        u.thread = (unsigned)omp_get_thread_num();
        for (u.index = first; u.index < first + units; u.index++)
            u.what->run(&u);
    }
    return clock_now() - start;
}

/* Units that fill a spell. One call may be held up by other processes, so the shorter of two counts. */
static size_t units_for_spell(const struct bench *b, const struct bench_unit *unit)
{
    for (size_t units = 1, index = 0;; index += 2 * units) {
        const double s = time_units(b, unit, index, units);
        const double t = s < SPELL / 2 ? s : time_units(b, unit, index + units, units);
        const double quick = t < s ? t : s;
        if (quick >= SPELL / 2)
            return units;
        units = quick < SPELL / 20 ? units * 10 : (size_t)((double)units * SPELL / quick) + 1;
    }
}

/* Bytes per second of plain reading, from another place of the ring each time. */
static double read_rate(const struct bench *b, size_t turn)
{
    const size_t places = WEIGHTS_BYTES / ROOF_BYTES, part = ROOF_BYTES / b->threads / 4096 * 4096;
    const uint8_t *at = b->weights + turn % places * ROOF_BYTES;
    uint64_t total = 0;
    const double start = clock_now();
#pragma omp parallel num_threads(b->threads) reduction(+ : total)
    total += bench_read(at + (size_t)omp_get_thread_num() * part, part);
    const double seconds = clock_now() - start;
    /* the sum must be looked at, or nothing need be read */
    return total == 0 ? 0 : (double)(part * b->threads) / seconds;
}

static double fma_rate(const struct bench *b, enum k3_isa isa)
{
    const size_t rounds = 1000000;
    double done = 0;
    const double start = clock_now();
#pragma omp parallel num_threads(b->threads) reduction(+ : done)
    done += bench_fma(isa, rounds);
    return done / (clock_now() - start);
}

/* Fewer rows where all of them would take long: a limit on multiply-adds per unit. */
static size_t rows_for(const struct bench_case *c, enum k3_isa isa, unsigned batch)
{
    const double limit = isa == K3_ISA_SCALAR ? 1e8 : 4e9;
    size_t rows = c->rows;
    while (!c->whole && rows > 256 && (double)rows * (double)c->cols * batch > limit)
        rows /= 2;
    return rows;
}

struct figure {
    double gbs, gflops, roof, peak, least, most; /* least and most of gbs */
};

static struct figure measure(const struct bench *b, const struct k3_kernels *k, enum k3_isa isa,
                             const struct bench_case *c, unsigned batch)
{
    struct bench_unit unit = {.k = k, .data = &b->data, .what = c, .batch = batch,
                              .threads = b->threads, .rows = rows_for(c, isa, batch)};
    const double cut = (double)unit.rows / (double)c->rows;
    const double weights = (double)c->rows * (double)c->cols * c->weight_bits / 8;
    const double bytes = (weights + c->bytes_per_token * batch) * cut;
    const double flops = c->flops_per_token * batch * cut;
    const size_t units = units_for_spell(b, &unit);
    size_t index = 0;
    double rate[MOST_REPEATS], roof[MOST_REPEATS], peak[MOST_REPEATS];
    for (unsigned r = 0; r < b->repeats; r++) {
        roof[r] = c->weight_bits > 0 ? read_rate(b, r) : 0;
        peak[r] = c->flops_per_token > 0 ? fma_rate(b, isa) : 0;
        index += units;
        rate[r] = (double)units / time_units(b, &unit, index, units);
    }
    const double mid = median(rate, b->repeats);
    return (struct figure){mid * bytes / 1e9,
                           mid * flops / 1e9,
                           median(roof, b->repeats) / 1e9,
                           median(peak, b->repeats) / 1e9,
                           rate[0] * bytes / 1e9,
                           rate[b->repeats - 1] * bytes / 1e9};
}

/* ---- printing ------------------------------------------------------------------------------ */

static void print_head(const struct bench *b)
{
    if (b->tsv)
        puts("set\tkernel\tuse\trows\tcols\tbatch\tthreads\tgb_s\tgb_s_least\tgb_s_most\tgflop_s\t"
             "roof_gb_s\tpeak_gflop_s");
    else
        printf("%u threads, median of %u\n%-7s %-13s %-21s %13s %5s %8s %7s %9s %7s\n", b->threads,
               b->repeats, "set", "kernel", "use", "rows x cols", "batch", "GB/s", "of roof",
               "GFLOP/s", "of peak");
}

static void print_share(double value, double limit)
{
    if (limit > 0)
        printf(" %6.0f%%", 100 * value / limit);
    else
        printf(" %7s", "-");
}

static void print_figure(const struct bench *b, const char *set, const struct bench_case *c,
                         unsigned batch, const struct figure *f)
{
    if (b->tsv) {
        printf("%s\t%s\t%s\t%zu\t%zu\t%u\t%u\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\n", set, c->kernel,
               c->use, c->rows, c->cols, batch, b->threads, f->gbs, f->least, f->most, f->gflops,
               f->roof, f->peak);
    } else {
        char shape[48];
        snprintf(shape, sizeof shape, "%zu x %zu", c->rows, c->cols);
        printf("%-7s %-13s %-21s %13s %5u %8.2f", set, c->kernel, c->use, shape, batch, f->gbs);
        print_share(f->gbs, f->roof);
        if (f->gflops > 0)
            printf(" %9.1f", f->gflops);
        else
            printf(" %9s", "-");
        print_share(f->gflops, f->peak);
        putchar('\n');
    }
    fflush(stdout);
}

static void bench_set(const struct bench *b, enum k3_isa isa)
{
    const struct k3_kernels *k = k3_kernels_get(isa);
    for (size_t i = 0; i < bench_case_count; i++) {
        const struct bench_case *c = &bench_cases[i];
        for (size_t t = 0; t < BATCHES && (!b->only || strstr(c->kernel, b->only)); t++) {
            const struct figure f = measure(b, k, isa, c, batches[t]);
            print_figure(b, k->name, c, batches[t], &f);
        }
    }
}

int bench_kernels(int argc, char **argv)
{
    struct bench b = {.threads = k3_host_cores(), .repeats = 5, .isa = K3_ISA_AUTO};
    const int st = parse_args(&b, argc, argv);
    if (st >= 0)
        return st;
    if (!bench_open(&b)) {
        fprintf(stderr, "k3chat bench kernels: no memory; it takes about 1 GB\n");
        bench_close(&b);
        return K3_FAILED;
    }
    print_head(&b);
    for (int isa = K3_ISA_SCALAR; isa < ISAS; isa++)
        if (k3_kernels_get((enum k3_isa)isa) && (b.isa == K3_ISA_AUTO || (int)b.isa == isa))
            bench_set(&b, (enum k3_isa)isa);
    bench_close(&b);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "k3chat bench kernels: cannot write: %s\n", strerror(errno));
        return K3_FAILED;
    }
    return K3_OK;
}
