/* clock.h - seconds from the monotonic clock. */
#ifndef K3CHAT_CLOCK_H
#define K3CHAT_CLOCK_H

#include <time.h>

static inline double clock_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

#endif
