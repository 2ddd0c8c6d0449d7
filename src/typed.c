/* typed.c - see typed.h. */
#include <config.h>

#include "typed.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "buffer.h"
#include "paths.h"

#define READ_MOST (64u << 20) /* of a file that something else has made */

static enum k3_status fail_errno(const char *path, struct k3_error *err)
{
    return k3_fail(err, K3_FAILED, "%s: the history cannot be kept: %s", path, strerror(errno));
}

static char *typed_path(bool make_folder, struct k3_error *err)
{
    char *dir = path_data_dir(err), *path = NULL;
    if (dir != NULL && (!make_folder || path_make_dirs(dir, err) == K3_OK))
        path = path_format(err, "%s/history.jsonl", dir);
    free(dir);
    return path;
}

/* ---- reading ----------------------------------------------------------------------------- */

enum k3_status typed_read(void (*fn)(void *ud, const char *text, size_t len), void *ud,
                          struct k3_error *err)
{
    char *path = typed_path(false, err);
    size_t len = 0;
    if (path == NULL)
        return err->status;
    const bool there = access(path, F_OK) == 0;
    char *all = there ? path_read_file(path, READ_MOST, &len, err) : NULL;
    free(path);
    if (all == NULL)
        return there ? err->status : K3_OK;
    for (const char *at = all, *nl; (nl = memchr(at, '\n', len - (size_t)(at - all))); at = nl + 1) {
        json_t *line = json_loadb(at, (size_t)(nl - at), 0, NULL);
        const json_t *text = json_object_get(line, "text");
        if (json_is_string(text))
            fn(ud, json_string_value(text), json_string_length(text));
        json_decref(line);
    }
    free(all);
    return K3_OK;
}

/* ---- appending --------------------------------------------------------------------------- */

static bool write_all(int fd, const char *s, size_t n)
{
    while (n > 0) {
        const ssize_t k = write(fd, s, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        s += k;
        n -= (size_t)k;
    }
    return true;
}

/* Opened and locked; once more when another program has put a new file in its place meanwhile. */
static int open_locked(const char *path)
{
    for (;;) {
        struct stat held, named;
        const int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            return -1;
        int locked;
        while ((locked = flock(fd, LOCK_EX)) != 0 && errno == EINTR)
            continue;
        if (locked != 0 || fstat(fd, &held) != 0) {
            close(fd);
            return -1;
        }
        if (stat(path, &named) == 0 && named.st_ino == held.st_ino && named.st_dev == held.st_dev)
            return fd;
        close(fd);
    }
}

/* Whole lines of the file's end, about half of what it may hold. */
static bool read_newest(int fd, off_t size, struct buffer *out)
{
    const off_t from = size - TYPED_FILE_BYTES / 2;
    char chunk[65536];
    ssize_t n;
    for (off_t at = from; (n = pread(fd, chunk, sizeof chunk, at)) > 0; at += n)
        buffer_add(out, chunk, (size_t)n);
    return n == 0 && !out->failed;
}

/* The newest lines and this one, beside the file's name and then in its place. The lock on the old file
 * is held: who waits for it sees that it is no longer the one of that name. */
static bool replace(int fd, off_t size, const char *path, const char *line, size_t n)
{
    struct buffer keep = {0};
    struct k3_error unused;
    char *temp = path_format(&unused, "%s.tmp", path);
    bool ok = temp != NULL && read_newest(fd, size, &keep);
    const char *first = ok && keep.n > 0 ? memchr(keep.v, '\n', keep.n) : NULL;
    const int out = ok ? open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    ok = out >= 0;
    if (ok && first != NULL) /* the line that is cut through is left out */
        ok = write_all(out, first + 1, keep.n - (size_t)(first + 1 - keep.v));
    ok = ok && write_all(out, line, n);
    ok = (out < 0 || close(out) == 0) && ok && rename(temp, path) == 0;
    if (!ok && out >= 0)
        unlink(temp);
    buffer_free(&keep);
    free(temp);
    return ok;
}

/* A last line without its end (a full disk, a power cut) must not take this one with it. */
static bool append(int fd, off_t size, const char *line, size_t n)
{
    char last = '\n';
    if (size > 0 && pread(fd, &last, 1, size - 1) != 1)
        return false;
    return (last == '\n' || write_all(fd, "\n", 1)) && write_all(fd, line, n);
}

static enum k3_status add_line(const char *path, const char *line, size_t n, struct k3_error *err)
{
    struct stat st;
    const int fd = open_locked(path);
    if (fd < 0)
        return fail_errno(path, err);
    bool ok = fstat(fd, &st) == 0;
    if (ok && (size_t)st.st_size + n + 1 > TYPED_FILE_BYTES)
        ok = replace(fd, st.st_size, path, line, n);
    else if (ok)
        ok = append(fd, st.st_size, line, n);
    const enum k3_status status = ok ? K3_OK : fail_errno(path, err);
    close(fd);
    return status;
}

enum k3_status typed_add(const char *text, size_t len, struct k3_error *err)
{
    if (len > TYPED_TEXT_BYTES)
        return K3_OK;
    json_t *rec = json_pack("{s:I, s:o}", "time", (json_int_t)time(NULL), "text",
                            json_stringn(text, len));
    char *line = rec == NULL ? NULL : json_dumps(rec, JSON_COMPACT);
    json_decref(rec);
    if (line == NULL)
        return k3_fail_memory(err, "a line of the history", len);
    const size_t n = strlen(line);
    line[n] = '\n'; /* in place of the zero byte: one write */
    char *path = typed_path(true, err);
    const enum k3_status status = path == NULL ? err->status : add_line(path, line, n + 1, err);
    free(path);
    free(line);
    return status;
}
