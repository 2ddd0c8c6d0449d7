/* crew.c - see crew.h. */
#include <config.h>

#include "crew.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"

#define DRAW_MS 200
#define NAP_S 0.1 /* how late a sleeping thread may hear of a stop */

static sigset_t our_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

enum k3_status crew_open(struct crew *c, struct k3_error *err)
{
    const sigset_t set = our_signals();
    memset(c, 0, sizeof *c);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    c->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (c->signals < 0)
        return k3_fail(err, K3_FAILED, "signals cannot be waited for: %s", strerror(errno));
    meter_init(&c->meter);
    return K3_OK;
}

void crew_close(struct crew *c)
{
    const sigset_t set = our_signals();
    meter_end(&c->meter);
    close(c->signals);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

bool crew_sleep(struct crew *c, double seconds)
{
    const double end = clock_now() + seconds;
    for (double left; !atomic_load(&c->stop) && (left = end - clock_now()) > 0;)
        usleep((useconds_t)(1e6 * (left < NAP_S ? left : NAP_S)));
    return !atomic_load(&c->stop);
}

/* One run of the crew. */
struct shift {
    struct crew *crew;
    void (*work)(void *ud, unsigned thread, size_t item);
    void *ud;
    size_t n;
    atomic_size_t next;
    atomic_uint left; /* threads still at work */
    int over;         /* an eventfd: the last one has gone */
};

struct hand {
    struct shift *shift;
    unsigned number;
    pthread_t thread;
};

static void *toil(void *arg)
{
    const struct hand *h = arg;
    struct shift *s = h->shift;
    for (size_t i; !atomic_load(&s->crew->stop) && (i = atomic_fetch_add(&s->next, 1)) < s->n;)
        s->work(s->ud, h->number, i);
    const uint64_t one = 1;
    if (atomic_fetch_sub(&s->left, 1) == 1 && write(s->over, &one, sizeof one) < 0)
        abort(); /* an eventfd takes a one, or the process is broken */
    return NULL;
}

static void take_signal(struct crew *c)
{
    struct signalfd_siginfo info;
    while (read(c->signals, &info, sizeof info) > 0) {
        if (atomic_exchange(&c->stop, true)) {
            meter_wipe(&c->meter);
            _exit(K3_CANCELLED);
        }
    }
}

/* Signals and drawing, until the last thread has gone. */
static void attend(struct crew *c, const struct shift *s)
{
    for (;;) {
        struct pollfd p[2] = {{.fd = c->signals, .events = POLLIN}, {.fd = s->over, .events = POLLIN}};
        if (poll(p, 2, DRAW_MS) > 0 && p[0].revents != 0)
            take_signal(c);
        if (p[1].revents != 0)
            return;
        meter_draw(&c->meter);
    }
}

enum k3_status crew_run(struct crew *c, unsigned threads, size_t n,
                        void (*work)(void *ud, unsigned thread, size_t item), void *ud,
                        struct k3_error *err)
{
    struct shift s = {.crew = c, .work = work, .ud = ud, .n = n};
    enum k3_status st = K3_OK;
    if (threads > n)
        threads = (unsigned)n;
    if (threads == 0)
        return K3_OK;
    struct hand *hands = calloc(threads, sizeof *hands);
    s.over = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    unsigned begun = 0;
    if (hands == NULL || s.over < 0)
        st = k3_fail_memory(err, "the threads", threads * sizeof *hands);
    atomic_store(&s.left, threads);
    for (; st == K3_OK && begun < threads; begun++) {
        hands[begun] = (struct hand){.shift = &s, .number = begun};
        const int rc = pthread_create(&hands[begun].thread, NULL, toil, &hands[begun]);
        if (rc != 0) {
            st = k3_fail(err, K3_FAILED, "thread %u of %u cannot be started: %s", begun + 1, threads,
                         strerror(rc));
            atomic_store(&c->stop, true);
            break;
        }
    }
    if (st == K3_OK)
        attend(c, &s);
    for (unsigned i = 0; i < begun; i++)
        pthread_join(hands[i].thread, NULL);
    if (s.over >= 0)
        close(s.over);
    free(hands);
    meter_wipe(&c->meter);
    if (st == K3_OK && atomic_load(&c->stop))
        st = k3_fail(err, K3_CANCELLED, "stopped");
    return st;
}
