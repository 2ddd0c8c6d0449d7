/* k3_error.c - see k3_error.h. */
#include "k3_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Cuts a message that vsnprintf may have cut inside a UTF-8 character. */
static void trim_utf8(char *s, size_t cap)
{
    size_t n = strlen(s);
    if (n + 1 < cap)
        return;
    while (n > 0 && ((unsigned char)s[n - 1] & 0xC0) == 0x80)
        n--;
    if (n > 0 && ((unsigned char)s[n - 1] & 0x80))
        n--;
    s[n] = '\0';
}

enum k3_status k3_fail(struct k3_error *err, enum k3_status status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    trim_utf8(err->message, sizeof err->message);
    err->status = status;
    return status;
}

enum k3_status k3_fail_in(struct k3_error *err, const char *fmt, ...)
{
    char old[sizeof err->message];
    memcpy(old, err->message, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    size_t at = n < 0 ? 0 : (size_t)n;
    if (at + 3 < sizeof err->message)
        snprintf(err->message + at, sizeof err->message - at, ": %.*s",
                 (int)(sizeof err->message - at - 3), old);
    trim_utf8(err->message, sizeof err->message);
    return err->status;
}

enum k3_status k3_fail_memory(struct k3_error *err, const char *what, unsigned long long bytes)
{
    return k3_fail(err, K3_FAILED, "out of memory: %s needs %llu bytes", what, bytes);
}
