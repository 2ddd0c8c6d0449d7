/* meter.c - see meter.h. */
#include <config.h>

#include "meter.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clock.h"
#include "size.h"

#define RATE_SECONDS 15.0 /* the rate shown is that of the latest seconds */

void meter_init(struct meter *m)
{
    memset(m, 0, sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    m->terminal = isatty(STDERR_FILENO) != 0;
}

void meter_begin(struct meter *m, const char *verb, uint64_t total, unsigned files)
{
    pthread_mutex_lock(&m->lock);
    m->verb = verb;
    m->files = files;
    m->samples = 0;
    atomic_store(&m->done, 0);
    atomic_store(&m->total, total);
    atomic_store(&m->files_done, 0);
    pthread_mutex_unlock(&m->lock);
}

void meter_end(struct meter *m)
{
    meter_wipe(m);
    pthread_mutex_destroy(&m->lock);
}

/* ---- the line ---------------------------------------------------------------------------- */

static int put_time(char *buf, size_t cap, double seconds)
{
    const uint64_t s = (uint64_t)(seconds + 0.5);
    const unsigned h = (unsigned)(s / 3600), min = (unsigned)(s / 60 % 60), sec = (unsigned)(s % 60);
    return h > 0 ? snprintf(buf, cap, ", %u:%02u:%02u left", h, min, sec)
                 : snprintf(buf, cap, ", %u:%02u left", min, sec);
}

char *meter_text(const struct meter *m, double rate, int columns, char *buf, size_t cap)
{
    char a[32], b[32], c[32], left[48] = "";
    const uint64_t done = atomic_load(&m->done), total = atomic_load(&m->total);
    char pace[48] = "";
    if (total == 0) { /* no bytes are counted */
        snprintf(buf, cap, "%s, %u of %u files", m->verb, atomic_load(&m->files_done), m->files);
        return buf;
    }
    if (rate >= 0)
        snprintf(pace, sizeof pace, ", %s/s", size_format(c, sizeof c, (uint64_t)rate));
    if (rate > 0 && total > done && (double)(total - done) / rate < 1e7)
        put_time(left, sizeof left, (double)(total - done) / rate);
    const double percent = 100.0 * (double)done / (double)total;
    const int wide = snprintf(buf, cap, "%s %s of %s (%.1f %%)%s%s, %u of %u files", m->verb,
                              size_format(a, sizeof a, done), size_format(b, sizeof b, total),
                              percent, pace, left, atomic_load(&m->files_done), m->files);
    if (wide > columns)
        snprintf(buf, cap, "%.1f %%%s%s", percent, pace, left);
    return buf;
}

/* Bytes per second over the latest samples; work that is taken back gives no negative rate. */
static double measure(struct meter *m)
{
    const double now = clock_now();
    const uint64_t done = atomic_load(&m->done);
    unsigned from = m->samples > METER_SAMPLES ? m->samples - METER_SAMPLES : 0;
    while (from < m->samples && now - m->when[from % METER_SAMPLES] > RATE_SECONDS)
        from++;
    double rate = -1;
    if (from < m->samples) {
        const double seconds = now - m->when[from % METER_SAMPLES];
        const uint64_t was = m->was[from % METER_SAMPLES];
        if (seconds > 0.5)
            rate = done > was ? (double)(done - was) / seconds : 0;
    }
    m->when[m->samples % METER_SAMPLES] = now;
    m->was[m->samples % METER_SAMPLES] = done;
    m->samples++;
    return rate;
}

static int terminal_columns(void)
{
    struct winsize w = {0};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col - 1 : 79;
}

static void wipe(struct meter *m)
{
    if (m->drawn)
        fputs("\r\033[K", stderr);
    m->drawn = false;
}

void meter_draw(struct meter *m)
{
    char text[256];
    pthread_mutex_lock(&m->lock);
    if (m->terminal && m->files > 0) {
        const int columns = terminal_columns();
        meter_text(m, measure(m), columns, text, sizeof text);
        fprintf(stderr, "\r%.*s\033[K", columns, text);
        m->drawn = true;
    }
    pthread_mutex_unlock(&m->lock);
}

void meter_wipe(struct meter *m)
{
    pthread_mutex_lock(&m->lock);
    wipe(m);
    pthread_mutex_unlock(&m->lock);
}

static void say(struct meter *m, const char *fmt, va_list ap)
{
    pthread_mutex_lock(&m->lock);
    wipe(m);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    pthread_mutex_unlock(&m->lock);
}

void meter_say(struct meter *m, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(m, fmt, ap);
    va_end(ap);
}

void meter_note(struct meter *m, const char *fmt, ...)
{
    va_list ap;
    if (m->terminal)
        return;
    va_start(ap, fmt);
    say(m, fmt, ap);
    va_end(ap);
}
