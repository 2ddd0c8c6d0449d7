/* watcher.c - see watcher.h. */
#include <config.h>

#include "watcher.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "outfile.h"
#include "report.h"

enum stage { STAGE_QUIET, STAGE_LOADING, STAGE_READING, STAGE_GENERATING };

struct watcher {
    pthread_t thread;
    sigset_t signals, before;
    atomic_bool cancelled, stop;
    bool progress;
    pthread_mutex_t lock;     /* guards what follows */
    k3_engine *engine;
    struct recorder *rec;
    enum stage stage;
    char what[96];
    uint64_t done, total, base;
    double since, mean;
    bool drawn;
};

/* ---- progress ---------------------------------------------------------------------------- */

static void draw_reading(const struct watcher *w, const struct k3_metrics *m)
{
    double done = (double)(m->tokens - w->base);
    if (m->running && m->layers > 0)
        done += (double)m->chunk_tokens * m->layer / m->layers;
    const double total = (double)w->total;
    char a[32], b[32] = "?";
    const double elapsed = clock_now() - w->since;
    if (done > 0)
        report_time(b, sizeof b, elapsed * (total - done) / done);
    fprintf(stderr, "reading the prompt: %.0f of %.0f tokens, %.0f %%, %s gone, about %s left",
            done, total, 100 * done / total, report_time(a, sizeof a, elapsed), b);
}

static void draw_generating(const struct watcher *w, const struct k3_metrics *m)
{
    fprintf(stderr, "generating: token %llu of at most %llu, layer %u of %u",
            (unsigned long long)w->done + 1, (unsigned long long)w->total, (unsigned)m->layer,
            (unsigned)m->layers);
    char a[32], b[32];
    if (w->mean > 0)
        fprintf(stderr, ", %s a token, at most %s left", report_time(a, sizeof a, w->mean),
                report_time(b, sizeof b, w->mean * (double)(w->total - w->done)));
}

/* One line, drawn over itself. The lock is held. */
static void draw(struct watcher *w)
{
    struct k3_metrics m = {0};
    if (w->engine != NULL)
        k3_get_metrics(w->engine, &m);
    fputs("\r\033[K", stderr);
    if (w->stage == STAGE_LOADING)
        fprintf(stderr, "%s: %llu of %llu", w->what, (unsigned long long)w->done,
                (unsigned long long)w->total);
    else if (w->stage == STAGE_READING)
        draw_reading(w, &m);
    else
        draw_generating(w, &m);
    fflush(stderr);
    w->drawn = true;
}

static void tick(struct watcher *w)
{
    pthread_mutex_lock(&w->lock);
    if (w->progress && w->stage != STAGE_QUIET)
        draw(w);
    struct recorder *rec = w->rec;
    if (rec != NULL)
        recorder_tick(rec);
    pthread_mutex_unlock(&w->lock);
}

static void set_stage(struct watcher *w, enum stage stage, uint64_t done, uint64_t total)
{
    if (w->stage != stage)
        w->since = clock_now();
    w->stage = stage;
    w->done = done;
    w->total = total;
}

void watcher_loading(struct watcher *w, const char *what, uint64_t done, uint64_t total)
{
    pthread_mutex_lock(&w->lock);
    set_stage(w, STAGE_LOADING, done, total);
    snprintf(w->what, sizeof w->what, "%s", what);
    pthread_mutex_unlock(&w->lock);
}

void watcher_reading(struct watcher *w, uint64_t tokens)
{
    struct k3_metrics m = {0};
    pthread_mutex_lock(&w->lock);
    if (w->engine != NULL)
        k3_get_metrics(w->engine, &m);
    w->base = m.tokens;
    set_stage(w, tokens > 0 ? STAGE_READING : STAGE_QUIET, 0, tokens);
    pthread_mutex_unlock(&w->lock);
}

void watcher_generating(struct watcher *w, uint32_t token, uint32_t most, double mean_seconds)
{
    pthread_mutex_lock(&w->lock);
    set_stage(w, STAGE_GENERATING, token, most);
    w->mean = mean_seconds;
    pthread_mutex_unlock(&w->lock);
}

void watcher_quiet(struct watcher *w)
{
    pthread_mutex_lock(&w->lock);
    w->stage = STAGE_QUIET;
    if (w->drawn)
        fputs("\r\033[K", stderr);
    w->drawn = false;
    pthread_mutex_unlock(&w->lock);
}

/* ---- signals ----------------------------------------------------------------------------- */

static void end_at_once(void)
{
    outfile_remove_all();
    static const char text[] = "k3chat: interrupted\n";
    const ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    (void)n;
    _exit(K3_CANCELLED);
}

/* Asked a second time, it ends at once; a terminal that closes says so more than once. */
static void on_signal(struct watcher *w, int sig)
{
    pthread_mutex_lock(&w->lock);
    const bool again = atomic_load(&w->cancelled) && sig != SIGHUP;
    const bool at_once = w->engine == NULL || again;
    atomic_store(&w->cancelled, true);
    if (!at_once)
        k3_cancel(w->engine);
    pthread_mutex_unlock(&w->lock);
    if (at_once)
        end_at_once();
}

static void *watch(void *watcher)
{
    struct watcher *w = watcher;
    const struct timespec second = {.tv_sec = 1};
    while (!atomic_load(&w->stop)) {
        const int sig = sigtimedwait(&w->signals, NULL, &second);
        if (atomic_load(&w->stop))
            break;
        if (sig > 0 && sig != SIGUSR2)
            on_signal(w, sig);
        tick(w);
    }
    return NULL;
}

struct watcher *watcher_start(bool progress, struct k3_error *err)
{
    struct watcher *w = calloc(1, sizeof *w);
    if (w == NULL || pthread_mutex_init(&w->lock, NULL) != 0) {
        free(w);
        k3_fail_memory(err, "the watcher", sizeof *w);
        return NULL;
    }
    w->progress = progress;
    sigemptyset(&w->signals);
    sigaddset(&w->signals, SIGINT);
    sigaddset(&w->signals, SIGTERM);
    sigaddset(&w->signals, SIGHUP);
    sigaddset(&w->signals, SIGUSR2); /* wakes the thread to stop */
    pthread_sigmask(SIG_BLOCK, &w->signals, &w->before);
    const int why = pthread_create(&w->thread, NULL, watch, w);
    if (why != 0) {
        pthread_sigmask(SIG_SETMASK, &w->before, NULL);
        pthread_mutex_destroy(&w->lock);
        free(w);
        k3_fail(err, K3_FAILED, "the watching thread cannot be started: %s", strerror(why));
        return NULL;
    }
    return w;
}

void watcher_stop(struct watcher *w)
{
    if (w == NULL)
        return;
    atomic_store(&w->stop, true);
    pthread_kill(w->thread, SIGUSR2);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

const atomic_bool *watcher_cancelled(const struct watcher *w)
{
    return &w->cancelled;
}

void watcher_set_engine(struct watcher *w, k3_engine *engine)
{
    pthread_mutex_lock(&w->lock);
    w->engine = engine;
    pthread_mutex_unlock(&w->lock);
}

void watcher_set_recorder(struct watcher *w, struct recorder *rec)
{
    pthread_mutex_lock(&w->lock);
    w->rec = rec;
    pthread_mutex_unlock(&w->lock);
}
