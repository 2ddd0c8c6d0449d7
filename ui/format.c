/* format.c - figures as people read them (see format.h). */
#include <config.h>

#include "format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *unknown(char *buf, size_t size)
{
    snprintf(buf, size, "-");
    return buf;
}

const char *fmt_seconds(char *buf, size_t size, double s)
{
    if (!isfinite(s) || s < 0)
        return unknown(buf, size);
    if (s < 0.9995)
        snprintf(buf, size, "%.0f ms", s * 1000);
    else if (s < 9.995)
        snprintf(buf, size, "%.2f s", s);
    else if (s < 99.95)
        snprintf(buf, size, "%.1f s", s);
    else
        snprintf(buf, size, "%.0f s", s < 1e7 ? s : 1e7);
    return buf;
}

const char *fmt_about(char *buf, size_t size, double s)
{
    if (!isfinite(s) || s < 0)
        return unknown(buf, size);
    if (s < 0.95)
        snprintf(buf, size, "%.1f s", s);
    else if (s < 90)
        snprintf(buf, size, "%.0f s", s);
    else if (s < 90 * 60)
        snprintf(buf, size, "%.0f min", s / 60);
    else if (s < 36 * 3600)
        snprintf(buf, size, "%.1f h", s / 3600);
    else
        snprintf(buf, size, "%.1f d", s / 86400 < 1e5 ? s / 86400 : 1e5);
    return buf;
}

const char *fmt_clock(char *buf, size_t size, double s)
{
    if (!isfinite(s) || s < 0)
        return unknown(buf, size);
    const long t = s < 3.6e8 ? (long)s : 360000000;
    if (t < 3600)
        snprintf(buf, size, "%ld:%02ld", t / 60, t % 60);
    else
        snprintf(buf, size, "%ld:%02ld:%02ld", t / 3600, t / 60 % 60, t % 60);
    return buf;
}

const char *fmt_bytes(char *buf, size_t size, double n)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    if (!isfinite(n) || n < 0)
        return unknown(buf, size);
    size_t u = 0;
    while (n >= 999.5 && u + 1 < sizeof units / sizeof *units) {
        n /= 1000;
        u++;
    }
    snprintf(buf, size, "%.*f %s", u > 0 && n < 99.95 ? 1 : 0, n < 1e9 ? n : 1e9, units[u]);
    return buf;
}

const char *fmt_size(char *buf, size_t size, double n)
{
    fmt_bytes(buf, size, n);
    char *zero = strstr(buf, ".0 ");
    if (zero)
        memmove(zero, zero + 2, strlen(zero + 2) + 1);
    return buf;
}

const char *fmt_rate(char *buf, size_t size, double per_s)
{
    char b[32];
    if (!isfinite(per_s) || per_s < 0)
        return unknown(buf, size);
    snprintf(buf, size, "%s/s", fmt_bytes(b, sizeof b, per_s));
    return buf;
}

/* The same unit is said once. */
static void share_unit(char *part, const char *whole)
{
    char *a = strrchr(part, ' ');
    const char *b = strrchr(whole, ' ');
    if (a && b && strcmp(a, b) == 0)
        *a = '\0';
}

void fmt_bytes_of(char *part_buf, char *whole_buf, size_t size, double part, double whole)
{
    fmt_bytes(part_buf, size, part);
    fmt_bytes(whole_buf, size, whole);
    share_unit(part_buf, whole_buf);
}

void fmt_rate_of(char *part_buf, char *whole_buf, size_t size, double part, double whole)
{
    fmt_rate(part_buf, size, part);
    fmt_rate(whole_buf, size, whole);
    share_unit(part_buf, whole_buf);
}

static double bounded(double share)
{
    return share > 10 ? 10 : share;
}

const char *fmt_percent(char *buf, size_t size, double share)
{
    if (!isfinite(share) || share < 0)
        return unknown(buf, size);
    snprintf(buf, size, "%.0f %%", bounded(share) * 100);
    return buf;
}

const char *fmt_percent1(char *buf, size_t size, double share)
{
    if (!isfinite(share) || share < 0)
        return unknown(buf, size);
    snprintf(buf, size, "%.1f %%", bounded(share) * 100);
    return buf;
}

const char *fmt_count(char *buf, size_t size, uint64_t n)
{
    if (n < 10000)
        snprintf(buf, size, "%" PRIu64, n);
    else if (n < 999950)
        snprintf(buf, size, "%.1fk", (double)n / 1e3);
    else if (n < 999950000)
        snprintf(buf, size, "%.1fM", (double)n / 1e6);
    else
        snprintf(buf, size, "%.1fG", (double)n / 1e9);
    return buf;
}

const char *fmt_when(char *buf, size_t size, int64_t time, int64_t now)
{
    const time_t t = (time_t)time, n = (time_t)now;
    struct tm then, today;
    buf[0] = '\0';
    if (time <= 0 || !localtime_r(&t, &then) || !localtime_r(&n, &today))
        return buf;
    const char *form = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday
                           ? "%H:%M" : "%Y-%m-%d %H:%M";
    if (strftime(buf, size, form, &then) == 0)
        buf[0] = '\0';
    return buf;
}
