/* size.c - see size.h. */
#include <config.h>

#include "size.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct unit {
    const char *name;
    uint64_t bytes;
} units[] = {
    {"B", 1},
    {"kB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
};

static const char not_a_size[] = "not a size: write 8GB, 8GiB, 500MB or a number of bytes";
static const char too_large[] = "more than 64 bits can hold";

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits into *value; false when they do not fit. */
static bool take_digits(const char **at, uint64_t *value)
{
    uint64_t v = 0;
    const char *p = *at;
    for (; is_digit(*p); p++) {
        const uint64_t digit = (uint64_t)(*p - '0');
        if (v > (UINT64_MAX - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *at = p;
    *value = v;
    return true;
}

static const struct unit *find_unit(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcasecmp(name, units[i].name) == 0)
            return &units[i];
    return NULL;
}

bool size_parse(const char *text, uint64_t *bytes, const char **why)
{
    const char *p = text;
    uint64_t whole = 0, part = 0, scale = 1;
    *why = not_a_size;
    if (!is_digit(*p))
        return false;
    if (!take_digits(&p, &whole)) {
        *why = too_large;
        return false;
    }
    bool fraction = false;
    if (*p == '.') {
        const char *first = ++p;
        for (; is_digit(*p) && p - first < 6; p++) {
            part = part * 10 + (uint64_t)(*p - '0');
            scale *= 10;
        }
        if (p == first || is_digit(*p))
            return false;
        fraction = true;
    }
    if (*p == '\0') {
        if (!fraction)
            *bytes = whole;
        return !fraction;
    }
    if (*p == ' ')
        p++;
    const struct unit *u = find_unit(p);
    if (u == NULL) {
        if (*p != '\0' && p[1] == '\0' && strchr("kKmMgGtT", *p) != NULL)
            *why = "ambiguous: write GB for 10^9 or GiB for 2^30 bytes (likewise k, M, T)";
        return false;
    }
    if (fraction && u->bytes == 1)
        return false;
    /* part < 10^6 and a unit is below 2^41: the product fits */
    const uint64_t rest = part * u->bytes / scale;
    if (whole > (UINT64_MAX - rest) / u->bytes) {
        *why = too_large;
        return false;
    }
    *bytes = whole * u->bytes + rest;
    return true;
}

char *size_format(char *buf, size_t cap, uint64_t bytes)
{
    static const char *const names[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    if (bytes < 1000) {
        snprintf(buf, cap, "%u B", (unsigned)bytes);
        return buf;
    }
    double v = (double)bytes;
    size_t i = 0;
    while (v >= 999.5 && i + 1 < sizeof names / sizeof names[0]) {
        v /= 1000.0;
        i++;
    }
    snprintf(buf, cap, v < 99.95 ? (v < 9.995 ? "%.2f %s" : "%.1f %s") : "%.0f %s", v, names[i]);
    return buf;
}
