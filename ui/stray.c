/* stray.c - stderr while the screen is up (see stray.h). */
#include <config.h>

#include "stray.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t caught;
static int ends[2] = {-1, -1}; /* the pipe; [1] is stderr as well */
static int real = -1;          /* stderr as it was */
static char held[1024];        /* of a line whose end has not come */
static size_t n_held;

static bool prepare(void)
{
    if (ends[0] >= 0)
        return true;
    if (pipe(ends) != 0)
        return false;
    for (int i = 0; i < 2; i++) { /* whoever writes must never wait for the screen */
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    return true;
}

void stray_catch(void)
{
    if (caught || !isatty(STDERR_FILENO) || !prepare())
        return;
    if (real < 0)
        real = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (real >= 0 && dup2(ends[1], STDERR_FILENO) >= 0)
        caught = 1;
}

/* Nothing of it may command the terminal. */
static void write_shown(char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)s[i] < 0x20 && s[i] != '\n' && s[i] != '\t') || s[i] == 0x7F)
            s[i] = '?';
    const ssize_t ignored = write(STDERR_FILENO, s, n);
    (void)ignored;
}

void stray_release(void)
{
    char buf[512];
    ssize_t n;
    if (!caught)
        return;
    caught = 0;
    dup2(real, STDERR_FILENO);
    if (n_held > 0)
        write_shown(held, n_held);
    n_held = 0;
    while ((n = read(ends[0], buf, sizeof buf)) > 0)
        write_shown(buf, (size_t)n);
}

int stray_fd(void)
{
    return caught ? ends[0] : -1;
}

bool stray_next(char *line, size_t size)
{
    if (!caught)
        return false;
    const ssize_t n = read(ends[0], held + n_held, sizeof held - n_held);
    n_held += n > 0 ? (size_t)n : 0;
    const char *nl = memchr(held, '\n', n_held);
    if (!nl && n_held < sizeof held)
        return false;
    const size_t len = nl ? (size_t)(nl - held) : n_held;
    const size_t used = nl ? len + 1 : len, kept = len < size - 1 ? len : size - 1;
    memcpy(line, held, kept);
    line[kept] = '\0';
    memmove(held, held + used, n_held - used);
    n_held -= used;
    return true;
}
