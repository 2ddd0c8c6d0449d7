/* seen.c - see seen.h. */
#include <config.h>

#include "seen.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "paths.h"

#define FILE_MAX (64u << 20)
static const char head[] = "k3chat-files 1\n";

static int64_t mtime_of(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* Index of the name, or s->n. */
static size_t place_of(const struct seen *s, const char *name)
{
    size_t i = 0;
    while (i < s->n && strcmp(s->v[i].name, name) != 0)
        i++;
    return i;
}

/* Takes name and etag over; the later line about a name wins. */
static enum k3_status enter(struct seen *s, struct seen_file f, struct k3_error *err)
{
    const size_t i = place_of(s, f.name);
    if (i < s->n) {
        free(s->v[i].name);
        free(s->v[i].etag);
    } else {
        struct seen_file *v = realloc(s->v, (s->n + 1) * sizeof *v);
        if (v == NULL) {
            free(f.name);
            free(f.etag);
            return k3_fail_memory(err, s->path, (s->n + 1) * sizeof *v);
        }
        s->v = v;
        s->n++;
    }
    s->v[i] = f;
    return K3_OK;
}

/* "seen DIGEST SIZE MTIME ETAG NAME"; anything else is a line that was cut off, and passed over. */
static enum k3_status take_seen(struct seen *s, char *line, struct k3_error *err)
{
    char *save = NULL, *end = NULL;
    struct seen_file f = {0};
    const char *hex = strtok_r(line, " ", &save);
    const char *size = strtok_r(NULL, " ", &save);
    const char *mtime = strtok_r(NULL, " ", &save);
    const char *etag = strtok_r(NULL, " ", &save);
    if (etag == NULL || *save == '\0' || !digest_parse(hex, strlen(hex), f.hex))
        return K3_OK;
    f.size = strtoull(size, &end, 10);
    if (*end != '\0')
        return K3_OK;
    f.mtime_ns = strtoll(mtime, &end, 10);
    if (*end != '\0')
        return K3_OK;
    f.name = strdup(save);
    f.etag = strdup(etag);
    if (f.name == NULL || f.etag == NULL) {
        free(f.name);
        free(f.etag);
        return k3_fail_memory(err, s->path, strlen(save));
    }
    return enter(s, f, err);
}

static enum k3_status take_line(struct seen *s, char *line, struct k3_error *err)
{
    if (strncmp(line, "seen ", 5) == 0)
        return take_seen(s, line + 5, err);
    if (strncmp(line, "source ", 7) != 0 || line[7] == '\0')
        return K3_OK;
    free(s->source);
    s->source = path_format(err, "%s", line + 7);
    return s->source == NULL ? err->status : K3_OK;
}

static enum k3_status take_text(struct seen *s, char *text, struct k3_error *err)
{
    if (strncmp(text, head, sizeof head - 1) != 0)
        return text[0] == '\0'
                   ? K3_OK
                   : k3_fail(err, K3_FAILED,
                             "%s: not made by this version of k3chat; remove it (files that were "
                             "checked before are then read again)", s->path);
    char *line = text + sizeof head - 1;
    for (char *nl; (nl = strchr(line, '\n')) != NULL; line = nl + 1) {
        *nl = '\0';
        if (take_line(s, line, err) != K3_OK)
            return err->status;
    }
    return K3_OK;
}

/* ---- writing ----------------------------------------------------------------------------- */

static enum k3_status append(struct seen *s, const char *line, struct k3_error *err)
{
    const size_t n = strlen(line);
    if (s->fd < 0)
        return K3_OK;
    const ssize_t put = write(s->fd, line, n);
    if (put == (ssize_t)n)
        return K3_OK;
    return k3_fail(err, K3_FAILED, "%s: cannot be written: %s", s->path,
                   put < 0 ? strerror(errno) : "no space left on the disk");
}

/* A line that was cut off must not swallow the next one. */
static enum k3_status begin_lines(struct seen *s, const char *text, size_t len,
                                  struct k3_error *err)
{
    if (len == 0)
        return append(s, head, err);
    return text[len - 1] == '\n' ? K3_OK : append(s, "\n", err);
}

enum k3_status seen_open(struct seen *s, const char *dir, bool add, struct k3_error *err)
{
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    s->fd = -1;
    s->path = path_format(err, "%s/" SEEN_NAME, dir);
    if (s->path == NULL)
        return err->status;
    if (add)
        s->fd = open(s->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    s->why = s->fd < 0 ? errno : 0;
    if (s->fd >= 0 && flock(s->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return k3_fail(err, K3_FAILED,
                       "%s: another k3chat is fetching or verifying these files; wait for it or "
                       "end it", dir);
    size_t len = 0;
    if (s->fd < 0 && access(s->path, R_OK) != 0)
        return K3_OK; /* nothing is known */
    char *text = path_read_file(s->path, FILE_MAX, &len, err);
    enum k3_status st = text == NULL ? err->status : begin_lines(s, text, len, err);
    if (st == K3_OK)
        st = take_text(s, text, err);
    free(text);
    return st;
}

void seen_close(struct seen *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].name);
        free(s->v[i].etag);
    }
    free(s->v);
    free(s->path);
    free(s->source);
    if (s->fd >= 0)
        close(s->fd);
    pthread_mutex_destroy(&s->lock);
    memset(s, 0, sizeof *s);
    s->fd = -1;
}

bool seen_find(struct seen *s, const char *name, const struct stat *st, struct seen_known *out)
{
    pthread_mutex_lock(&s->lock);
    const size_t i = place_of(s, name);
    const struct seen_file *f = i < s->n ? &s->v[i] : NULL;
    const bool same =
        f != NULL && f->size == (uint64_t)st->st_size && f->mtime_ns == mtime_of(st);
    if (same) {
        memcpy(out->hex, f->hex, DIGEST_HEX);
        snprintf(out->etag, sizeof out->etag, "%s", f->etag);
    }
    pthread_mutex_unlock(&s->lock);
    return same;
}

/* An etag has neither spaces nor control characters; one that has is not worth keeping. */
static const char *plain_etag(const char *etag)
{
    if (etag == NULL || etag[0] == '\0')
        return "-";
    if (strlen(etag) >= SEEN_ETAG)
        return "-";
    for (const char *p = etag; *p != '\0'; p++)
        if ((unsigned char)*p <= 0x20 || *p == 0x7f)
            return "-";
    return etag;
}

enum k3_status seen_put(struct seen *s, const char *name, const struct stat *st, const char *hex,
                        const char *etag, struct k3_error *err)
{
    struct seen_file f = {.size = (uint64_t)st->st_size, .mtime_ns = mtime_of(st)};
    char *line = path_format(err, "seen %s %" PRIu64 " %" PRId64 " %s %s\n", hex, f.size,
                             f.mtime_ns, plain_etag(etag), name);
    f.name = path_format(err, "%s", name);
    f.etag = path_format(err, "%s", plain_etag(etag));
    if (line == NULL || f.name == NULL || f.etag == NULL) {
        free(f.name);
        free(f.etag);
        free(line);
        return err->status;
    }
    memcpy(f.hex, hex, DIGEST_HEX);
    pthread_mutex_lock(&s->lock);
    enum k3_status status = append(s, line, err);
    if (enter(s, f, err) != K3_OK)
        status = err->status;
    pthread_mutex_unlock(&s->lock);
    free(line);
    return status;
}

enum k3_status seen_put_source(struct seen *s, const char *source, struct k3_error *err)
{
    if (s->source != NULL && strcmp(s->source, source) == 0)
        return K3_OK;
    char *line = path_format(err, "source %s\n", source);
    if (line == NULL)
        return err->status;
    const enum k3_status st = append(s, line, err);
    free(line);
    free(s->source);
    s->source = path_format(err, "%s", source);
    return st != K3_OK ? st : s->source == NULL ? err->status : K3_OK;
}
