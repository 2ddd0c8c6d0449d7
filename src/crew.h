/* crew.h - many files, a few threads: the work of fetch and verify, with its signals.
 *
 * SIGINT, SIGTERM and SIGHUP are blocked in every thread and waited for by the calling one: the first
 * asks the work to stop, the second ends the program at once with status 130. */
#ifndef K3CHAT_CREW_H
#define K3CHAT_CREW_H

#include "meter.h"

struct crew {
    atomic_bool stop; /* the work looks at it */
    struct meter meter;
    int signals;      /* a descriptor that tells of them */
};

/* To be called before any other thread exists. */
enum k3_status crew_open(struct crew *c, struct k3_error *err);
/* The signals do again what they did before. */
void crew_close(struct crew *c);

/* Calls work(ud, thread, item) for item 0 to n - 1, side by side on up to `threads` threads, in
 * order of item; nothing more is begun after a stop. Draws the meter meanwhile. Returns when all
 * calls have: K3_CANCELLED after a stop. */
enum k3_status crew_run(struct crew *c, unsigned threads, size_t n,
                        void (*work)(void *ud, unsigned thread, size_t item), void *ud,
                        struct k3_error *err);

/* Sleeps unless there is a stop; false when there was one. For the threads of the crew. */
bool crew_sleep(struct crew *c, double seconds);

#endif
