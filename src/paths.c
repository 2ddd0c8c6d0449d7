/* paths.c - see paths.h. */
#include <config.h>

#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *path_format(struct k3_error *err, const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;
    va_start(ap, fmt);
    const int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0) {
        k3_fail_memory(err, "a path", strlen(fmt));
        return NULL;
    }
    return s;
}

static const char *home_dir(struct k3_error *err)
{
    const char *home = getenv("HOME");
    if (home != NULL && home[0] == '/')
        return home;
    const struct passwd *pw = getpwuid(getuid());
    if (pw != NULL && pw->pw_dir != NULL && pw->pw_dir[0] == '/')
        return pw->pw_dir;
    k3_fail(err, K3_FAILED, "there is no home folder: set HOME to an absolute path");
    return NULL;
}

static char *xdg_dir(const char *variable, const char *fallback, struct k3_error *err)
{
    const char *base = getenv(variable);
    if (base != NULL && base[0] == '/')
        return path_format(err, "%s/k3chat", base);
    const char *home = home_dir(err);
    return home == NULL ? NULL : path_format(err, "%s/%s/k3chat", home, fallback);
}

char *path_config_dir(struct k3_error *err)
{
    return xdg_dir("XDG_CONFIG_HOME", ".config", err);
}

char *path_data_dir(struct k3_error *err)
{
    return xdg_dir("XDG_DATA_HOME", ".local/share", err);
}

char *path_expand_home(const char *path, struct k3_error *err)
{
    if (path[0] != '~' || (path[1] != '/' && path[1] != '\0'))
        return path_format(err, "%s", path);
    const char *home = home_dir(err);
    return home == NULL ? NULL : path_format(err, "%s%s", home, path + 1);
}

char *path_dirname(const char *path, struct k3_error *err)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return path_format(err, ".");
    if (slash == path)
        return path_format(err, "/");
    return path_format(err, "%.*s", (int)(slash - path), path);
}

char *path_program_dir(struct k3_error *err)
{
    char exe[4096];
    const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) {
        k3_fail(err, K3_FAILED, "/proc/self/exe: %s", strerror(errno));
        return NULL;
    }
    exe[n] = '\0';
    return path_dirname(exe, err);
}

bool path_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool path_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

enum k3_status path_make_dirs(const char *path, struct k3_error *err)
{
    char *copy = path_format(err, "%s", path);
    if (copy == NULL)
        return err->status;
    enum k3_status status = K3_OK;
    char *at = copy;
    while (status == K3_OK && at != NULL) {
        at = strchr(at + 1, '/');
        if (at != NULL)
            *at = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST) {
            const int why = errno;
            if (!path_is_dir(copy)) /* "/" or a read-only parent gives other codes than EEXIST */
                status = k3_fail(err, K3_FAILED, "%s: the folder cannot be created: %s", copy,
                                 strerror(why));
        }
        if (at != NULL)
            *at = '/';
    }
    if (status == K3_OK && !path_is_dir(path))
        status = k3_fail(err, K3_FAILED, "%s: not a folder", path);
    free(copy);
    return status;
}

/* Grows the buffer as it reads, because a pipe has no size. */
static char *read_all(int fd, const char *path, size_t max, size_t *len, struct k3_error *err)
{
    size_t cap = 4096, n = 0;
    char *buf = malloc(cap + 1);
    for (;;) {
        if (buf == NULL) {
            k3_fail_memory(err, path, cap);
            return NULL;
        }
        const ssize_t got = read(fd, buf + n, cap - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            k3_fail(err, K3_FAILED, "%s: %s", path, strerror(errno));
            break;
        }
        if (got == 0) {
            buf[n] = '\0';
            *len = n;
            return buf;
        }
        n += (size_t)got;
        if (n > max) {
            k3_fail(err, K3_USAGE, "%s: longer than %zu bytes", path, max);
            break;
        }
        if (n == cap) {
            cap *= 2;
            char *grown = realloc(buf, cap + 1);
            if (grown == NULL)
                free(buf);
            buf = grown;
        }
    }
    free(buf);
    return NULL;
}

char *path_read_file(const char *path, size_t max, size_t *len, struct k3_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *text = NULL;
    if (fd < 0 || fstat(fd, &st) != 0)
        k3_fail(err, K3_USAGE, "%s: %s", path, strerror(errno));
    else if (S_ISDIR(st.st_mode))
        k3_fail(err, K3_USAGE, "%s: a folder, not a file", path);
    else
        text = read_all(fd, path, max, len, err);
    if (fd >= 0)
        close(fd);
    return text;
}
