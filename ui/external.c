/* external.c - the message written in the person's own editor. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app.h"
#include "screen.h"

static const char *editor_program(void)
{
    const char *p = getenv("VISUAL");
    if (!p || !*p)
        p = getenv("EDITOR");
    return p && *p ? p : "vi";
}

static bool write_file(int fd, const char *s, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, s, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        s += n;
        len -= (size_t)n;
    }
    return true;
}

/* Runs the editor on path and waits; the value may hold arguments, so the shell takes it apart. */
static bool run_editor(const char *path)
{
    const pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        for (int s = 1; s < 32; s++)
            signal(s, SIG_DFL);
        execl("/bin/sh", "sh", "-c", "eval \"$0 \\\"\\$1\\\"\"", editor_program(), path,
              (char *)NULL);
        _exit(127);
    }
    /* keys of the editor that the terminal turns into signals are not for us; a stop is for both */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, stop = {.sa_handler = SIG_DFL}, was[3];
    sigaction(SIGINT, &ignore, &was[0]);
    sigaction(SIGQUIT, &ignore, &was[1]);
    sigaction(SIGTSTP, &stop, &was[2]);
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    sigaction(SIGINT, &was[0], NULL);
    sigaction(SIGQUIT, &was[1], NULL);
    sigaction(SIGTSTP, &was[2], NULL);
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool read_back(struct app *a, const char *path)
{
    struct text_buf b = {0};
    char buf[65536];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    bool ok = true;
    while (ok && (n = fread(buf, 1, sizeof buf, f)) > 0)
        ok = text_buf_add(&b, buf, n);
    ok = ok && !ferror(f);
    fclose(f);
    while (b.len > 0 && (b.s[b.len - 1] == '\n' || b.s[b.len - 1] == '\r'))
        b.len--; /* the editor's, not the person's */
    if (ok)
        editor_set(&a->editor, b.s ? b.s : "", b.len);
    free(b.s);
    return ok;
}

void app_external_editor(struct app *a)
{
    const char *dir = getenv("TMPDIR");
    char path[1024];
    snprintf(path, sizeof path, "%s/k3chat-XXXXXX", dir && *dir ? dir : "/tmp");
    const int fd = mkstemp(path);
    if (fd < 0) {
        app_hint(a, INK_BAD, "cannot make a file for the editor: %s: %s", path, strerror(errno));
        return;
    }
    bool ok = write_file(fd, a->editor.text ? a->editor.text : "", a->editor.len);
    ok = close(fd) == 0 && ok;
    if (ok) {
        screen_leave();
        ok = run_editor(path);
        screen_enter();
        if (!ok)
            app_hint(a, INK_WARN, "%s failed; the message is as it was", editor_program());
    } else
        app_hint(a, INK_BAD, "cannot write %s: %s", path, strerror(errno));
    if (ok && !read_back(a, path))
        app_hint(a, INK_BAD, "cannot read %s back: %s", path, strerror(errno));
    unlink(path);
}
