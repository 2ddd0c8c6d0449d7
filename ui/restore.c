/* restore.c - signal handlers and the way back to the former terminal (see restore.h). */
#include <config.h>

#include "restore.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "screen.h"
#include "stray.h"

static struct termios former_modes;
static bool has_modes;
static volatile sig_atomic_t interrupts_reported;
static char bytes[256];
static volatile sig_atomic_t n_bytes, armed, quit_signal;
static atomic_uint pending; /* handlers may run on any thread */
static int signal_pipe[2] = {-1, -1};

static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGQUIT, SIGSYS, SIGTRAP};
static const int reports[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGTERM, SIGHUP, SIGINT};
#define N_CRASHES (sizeof crashes / sizeof *crashes)
#define N_REPORTS (sizeof reports / sizeof *reports)
static struct sigaction former_crash[N_CRASHES], former_report[N_REPORTS], former_pipe;

void restore_set_bytes(const char *s)
{
    n_bytes = 0;
    strncpy(bytes, s, sizeof bytes - 1);
    n_bytes = (sig_atomic_t)strlen(bytes);
}

void restore_arm(bool on)
{
    armed = on;
}

void restore_tty(void)
{
    if (has_modes)
        tcsetattr(STDIN_FILENO, TCSANOW, &former_modes);
}

/* Async-signal-safe. */
static void emergency(void)
{
    if (!armed)
        return;
    armed = 0;
    ssize_t ignored = write(STDOUT_FILENO, bytes, (size_t)n_bytes);
    (void)ignored;
    restore_tty();
    stray_release();
}

void restore_now(void)
{
    emergency();
}

static void on_crash(int sig, siginfo_t *info, void *context)
{
    (void)context;
    emergency();
    for (size_t i = 0; i < N_CRASHES; i++)
        if (crashes[i] == sig)
            sigaction(sig, &former_crash[i], NULL);
    if (info->si_code <= 0 || sig == SIGABRT || sig == SIGQUIT)
        raise(sig); /* sent, not caused: it does not come again by itself */
}

static void on_report(int sig)
{
    const int saved = errno;
    switch (sig) {
    case SIGWINCH: atomic_fetch_or(&pending, SCREEN_RESIZED); break;
    case SIGTSTP: atomic_fetch_or(&pending, SCREEN_STOP); break;
    case SIGCONT: atomic_fetch_or(&pending, SCREEN_CONTINUED); break;
    default:
        if (sig == SIGINT && interrupts_reported) {
            atomic_fetch_or(&pending, SCREEN_INTERRUPT);
            break;
        }
        if (quit_signal && sig == SIGHUP)
            break; /* a terminal that closes says so more than once */
        if (quit_signal) { /* asked twice: the loop does not listen */
            emergency();
            _exit(128 + sig);
        }
        quit_signal = sig;
        atomic_fetch_or(&pending, SCREEN_QUIT);
    }
    const char c = 0;
    ssize_t ignored = write(signal_pipe[1], &c, 1);
    (void)ignored;
    errno = saved;
}

static bool make_pipe(struct k3_error *err)
{
    if (signal_pipe[0] >= 0)
        return true;
    if (pipe(signal_pipe) != 0) {
        k3_fail(err, K3_FAILED, "cannot make a pipe for signals: %s", strerror(errno));
        return false;
    }
    for (int i = 0; i < 2; i++) {
        fcntl(signal_pipe[i], F_SETFL, O_NONBLOCK);
        fcntl(signal_pipe[i], F_SETFD, FD_CLOEXEC);
    }
    return true;
}

/* A stack overflow needs a stack to be reported on. */
static void make_signal_stack(void)
{
    static char *stack;
    const size_t size = 64 * 1024;
    if (!stack)
        stack = malloc(size);
    const stack_t ss = {.ss_sp = stack, .ss_size = size};
    if (stack)
        sigaltstack(&ss, NULL);
}

bool restore_install(bool interrupts, struct k3_error *err)
{
    static bool at_exit;
    if (!make_pipe(err))
        return false;
    has_modes = tcgetattr(STDIN_FILENO, &former_modes) == 0;
    interrupts_reported = interrupts;
    make_signal_stack();
    quit_signal = armed = 0;
    atomic_store(&pending, 0);
    struct sigaction crash = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction report = {.sa_handler = on_report, .sa_flags = SA_RESTART};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigfillset(&crash.sa_mask);
    sigfillset(&report.sa_mask);
    for (size_t i = 0; i < N_CRASHES; i++)
        sigaction(crashes[i], &crash, &former_crash[i]);
    for (size_t i = 0; i < N_REPORTS; i++)
        sigaction(reports[i], &report, &former_report[i]);
    sigaction(SIGPIPE, &ignore, &former_pipe);
    if (!at_exit && atexit(emergency) == 0)
        at_exit = true;
    return true;
}

void restore_remove(void)
{
    for (size_t i = 0; i < N_CRASHES; i++)
        sigaction(crashes[i], &former_crash[i], NULL);
    for (size_t i = 0; i < N_REPORTS; i++)
        sigaction(reports[i], &former_report[i], NULL);
    /* What is still to be saved is saved, whether the terminal stays open that long or not. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGHUP, &ignore, NULL);
    sigaction(SIGPIPE, &former_pipe, NULL);
}

int screen_signal_fd(void)
{
    return signal_pipe[0];
}

unsigned screen_take_signals(void)
{
    char buf[64];
    while (read(signal_pipe[0], buf, sizeof buf) > 0) {
    }
    return atomic_exchange(&pending, 0);
}

void restore_stop(void)
{
    struct sigaction deflt = {.sa_handler = SIG_DFL}, ours;
    sigset_t set, old;
    sigemptyset(&deflt.sa_mask);
    sigaction(SIGTSTP, &deflt, &ours);
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &set, &old);
    kill(0, SIGTSTP);
    /* here the process stands still until it is continued */
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    sigaction(SIGTSTP, &ours, NULL);
}
