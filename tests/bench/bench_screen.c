/* bench_screen.c - what the screen costs and how fast it answers: the program on a pty, a key typed
 * now and then, the time until the terminal shows it, and the processor time of the screen's thread.
 *
 *     make bench-screen-run BENCH_ARGS='--model DIR --threads 2'
 *
 * A measurement, not a test: nothing here decides whether anything passes. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../vt.h"

#define KEYS_MAX 4096
#define WAIT_S 600

static struct {
    unsigned keys;    /* to be typed in each phase */
    double seconds;   /* of decoding to be measured */
    unsigned words;   /* of the prompt */
    unsigned pause_ms;
} todo = {200, 30, 1200, 50};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Processor time of the program's first thread, which draws; < 0 = not to be had. */
static double thread_seconds(pid_t pid)
{
    char path[64];
    unsigned long long ns = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)pid);
    FILE *f = fopen(path, "r");
    const bool ok = f && fscanf(f, "%llu", &ns) == 1;
    if (f)
        fclose(f);
    return ok ? (double)ns * 1e-9 : -1;
}

static bool wait_for(struct vt *vt, const char *text)
{
    for (const double until = now() + WAIT_S; now() < until; vt_pump(vt, 20))
        if (vt_has(vt, text))
            return true;
    fprintf(stderr, "bench-screen: \"%s\" did not come\n", text);
    vt_dump(vt);
    return false;
}

static bool is_decoding(const struct vt *vt)
{
    return vt_has(vt, "thinking \xe2\x94\x82") || vt_has(vt, "answering \xe2\x94\x82");
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void tell(const char *phase, double *ms, size_t n)
{
    size_t late = 0;
    if (n == 0) {
        printf("key latency while %s: the phase was over before a key could be typed\n", phase);
        return;
    }
    qsort(ms, n, sizeof *ms, by_value);
    for (size_t i = 0; i < n; i++)
        late += ms[i] > 33;
    printf("key latency while %s: %zu keys, median %.1f ms, 95 %% within %.1f, longest %.1f; "
           "%zu over 33 ms\n", phase, n, ms[n / 2], ms[(n * 95 + 99) / 100 - 1], ms[n - 1], late);
}

/* Types digits, each when the one before is seen, while `text` stands on the screen. */
static void measure_keys(struct vt *vt, const char *phase, const char *text)
{
    static double ms[KEYS_MAX];
    char typed[16] = "";
    size_t n = 0;
    unsigned count = 0;
    while (n < todo.keys && n < KEYS_MAX && vt_has(vt, text)) {
        if (count % 8 == 0) { /* a short line: what is typed is told from what was */
            vt_send(vt, "\x15");
            vt_pump(vt, 200);
            typed[0] = '\0';
        }
        const char key[2] = {(char)('0' + count % 10), '\0'};
        strcat(typed, key);
        const double from = now();
        vt_send(vt, key);
        while (!vt_has(vt, typed) && now() < from + 10)
            vt_pump(vt, 1);
        ms[n++] = (now() - from) * 1000;
        count++;
        for (const double until = now() + todo.pause_ms * 1e-3; now() < until;)
            vt_pump(vt, 5);
    }
    vt_send(vt, "\x15");
    tell(phase, ms, n);
}

static void measure_cpu(struct vt *vt)
{
    const double from = now(), cpu = thread_seconds(vt_pid(vt));
    const size_t bytes = vt_written(vt), frames = vt_count_written(vt, "\033[?2026h");
    while (now() < from + todo.seconds && is_decoding(vt))
        vt_pump(vt, 100);
    const double took = now() - from, used = thread_seconds(vt_pid(vt)) - cpu;
    printf("decoding for %.0f s: the screen's thread used %.2f %% of one core, %.1f frames/s, "
           "%.0f bytes/s to the terminal\n", took, 100 * used / took,
           (double)(vt_count_written(vt, "\033[?2026h") - frames) / took,
           (double)(vt_written(vt) - bytes) / took);
}

static void paste_prompt(struct vt *vt)
{
    const size_t size = todo.words * 8 + 1;
    char *s = calloc(1, size);
    if (!s)
        abort();
    for (unsigned i = 0; i < todo.words; i++)
        snprintf(s + strlen(s), size - strlen(s), "word%u ", i % 97);
    vt_paste(vt, s, strlen(s));
    free(s);
    vt_send(vt, "\r");
}

static int run(const char *program, char **args)
{
    const char *argv[64] = {program};
    size_t n = 1;
    while (*args && n < 63)
        argv[n++] = *args++;
    const struct vt_options opt = {.argv = argv, .rows = 34, .cols = 120, .control = -1,
                                   .report = -1};
    struct vt *vt = vt_start(&opt);
    if (!vt || !wait_for(vt, "idle"))
        return 1;
    paste_prompt(vt);
    if (!wait_for(vt, "reading prompt"))
        return 1;
    measure_keys(vt, "reading a prompt", "reading prompt");
    while (vt_has(vt, "reading prompt"))
        vt_pump(vt, 100);
    for (const double until = now() + WAIT_S; !is_decoding(vt) && now() < until;)
        vt_pump(vt, 20);
    measure_cpu(vt);
    measure_keys(vt, "decoding", " \xe2\x94\x82 layer");
    vt_send(vt, "\x11\x11");
    vt_wait_exit(vt);
    vt_free(vt);
    return 0;
}

int main(int argc, char **argv)
{
    char path[4096];
    const char *build = getenv("K3_BUILDDIR");
    int i = 1;
    setvbuf(stdout, NULL, _IOLBF, 0); /* what was measured stands there, even when the rest is cut off */
    for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
        if (strcmp(argv[i], "--keys") == 0)
            todo.keys = (unsigned)atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seconds") == 0)
            todo.seconds = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--words") == 0)
            todo.words = (unsigned)atoi(argv[i + 1]);
        else
            break;
    }
    if (i < argc && strcmp(argv[i], "--") != 0) {
        fputs("Usage: bench-screen [--keys N] [--seconds S] [--words N] [-- OPTION OF K3CHAT...]\n",
              stderr);
        return 2;
    }
    snprintf(path, sizeof path, "%s/k3chat", build ? build : ".");
    return run(path, argv + (i < argc ? i + 1 : i));
}
