/* program.c - see program.h. */
#include <config.h>

#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_WORDS 40
#define DEADLINE_S 120

static void exec_child(char **argv, const char *out_path, int out, int err)
{
    const int null = open("/dev/null", O_RDONLY);
    if (out_path != NULL)
        out = open(out_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        _exit(127);
    execv(argv[0], argv);
    _exit(127);
}

struct child program_start(const char *out_path, ...)
{
    char *argv[MAX_WORDS + 2], exe[1024];
    size_t n = 0;
    va_list ap;
    snprintf(exe, sizeof exe, "%s/k3chat", getenv("K3_BUILDDIR"));
    argv[n++] = exe;
    va_start(ap, out_path);
    for (char *w = va_arg(ap, char *); w != NULL; w = va_arg(ap, char *)) {
        assert_true(n <= MAX_WORDS);
        argv[n++] = w;
    }
    va_end(ap);
    argv[n] = NULL;
    int out[2], err[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    struct child c = {.pid = fork()};
    assert_true(c.pid >= 0);
    if (c.pid == 0)
        exec_child(argv, out_path, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    c.out = out[0];
    c.err = err[0];
    c.out_text = calloc(1, 1);
    c.err_text = calloc(1, 1);
    assert_true(c.out_text != NULL && c.err_text != NULL);
    return c;
}

static void take(int *fd, char **text, size_t *len)
{
    char bytes[4096];
    const ssize_t n = read(*fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        close(*fd);
        *fd = -1;
        return;
    }
    *text = realloc(*text, *len + (size_t)n + 1);
    assert_non_null(*text);
    memcpy(*text + *len, bytes, (size_t)n);
    *len += (size_t)n;
    (*text)[*len] = '\0';
}

/* Reads once from whichever speaks within the time; false when both have ended. */
static bool pump_for(struct child *c, time_t until, int milliseconds)
{
    if (c->out < 0 && c->err < 0)
        return false;
    struct pollfd p[2] = {{.fd = c->out, .events = POLLIN}, {.fd = c->err, .events = POLLIN}};
    poll(p, 2, milliseconds);
    if (time(NULL) > until) {
        kill(c->pid, SIGKILL);
        fail_msg("the program does not end; stdout '%s', stderr '%s'", c->out_text, c->err_text);
    }
    if (p[0].revents != 0)
        take(&c->out, &c->out_text, &c->out_len);
    if (p[1].revents != 0)
        take(&c->err, &c->err_text, &c->err_len);
    return true;
}

static bool pump(struct child *c, time_t until)
{
    return pump_for(c, until, 1000);
}

static unsigned count_in_file(const char *path, const char *text)
{
    char *line = NULL;
    size_t cap = 0;
    unsigned n = 0;
    FILE *f = fopen(path, "re");
    while (f != NULL && getline(&line, &cap, f) > 0)
        n += strstr(line, text) != NULL;
    if (f != NULL)
        fclose(f);
    free(line);
    return n;
}

void program_wait_file(struct child *c, const char *path, const char *text, unsigned times)
{
    const time_t until = time(NULL) + DEADLINE_S;
    while (count_in_file(path, text) < times)
        if (!pump_for(c, until, 20))
            fail_msg("the program ended early; stderr '%s'", c->err_text);
}

void program_wait_text(struct child *c, bool err, const char *text)
{
    const time_t until = time(NULL) + DEADLINE_S;
    while (strstr(err ? c->err_text : c->out_text, text) == NULL)
        if (!pump(c, until))
            fail_msg("'%s' did not come; stdout '%s', stderr '%s'", text, c->out_text, c->err_text);
}

void program_wait_bytes(struct child *c, size_t n)
{
    const time_t until = time(NULL) + DEADLINE_S;
    while (c->out_len < n)
        if (!pump(c, until))
            fail_msg("stdout ended early: '%s', stderr '%s'", c->out_text, c->err_text);
}

void program_wait(struct child *c)
{
    const time_t until = time(NULL) + DEADLINE_S;
    while (pump(c, until))
        continue;
    int status = 0;
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void program_kill_after(struct child *c, double seconds)
{
    const time_t until = time(NULL) + DEADLINE_S;
    const double end = now() + seconds;
    for (double left; (left = end - now()) > 0;)
        if (!pump_for(c, until, left < 1 ? (int)(left * 1000) : 1000))
            break;
    kill(c->pid, SIGKILL);
    program_wait(c); /* what it had written before is in the pipe still */
}

void program_free(struct child *c)
{
    if (c->out >= 0)
        close(c->out);
    if (c->err >= 0)
        close(c->err);
    free(c->out_text);
    free(c->err_text);
}
