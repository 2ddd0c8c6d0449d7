/* file_server.c - see file_server.h. */
#include <config.h>

#include "file_server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"

#define CHUNK 16384u

struct guest {
    struct file_server *s;
    int fd;
};

struct wish {
    char path[512], host[128], auth[256], if_range[256];
    bool range, first_byte;
    uint64_t from;
};

static void lock(struct file_server *s)
{
    pthread_mutex_lock(s->lock);
}

static void unlock(struct file_server *s)
{
    pthread_mutex_unlock(s->lock);
}

/* ---- requests ---------------------------------------------------------------------------- */

/* The head of a request; false at the end of the connection. */
static bool read_head(int fd, char *head, size_t cap)
{
    size_t n = 0;
    while (n + 1 < cap) {
        const ssize_t got = recv(fd, head + n, 1, 0);
        if (got <= 0)
            return false;
        head[++n] = '\0';
        if (n >= 4 && memcmp(head + n - 4, "\r\n\r\n", 4) == 0)
            return true;
    }
    return false;
}

static void copy_field(const char *head, const char *name, char *out, size_t cap)
{
    const char *at = strcasestr(head, name);
    out[0] = '\0';
    if (at != NULL)
        snprintf(out, cap, "%.*s", (int)strcspn(at + strlen(name), "\r\n"), at + strlen(name));
}

static bool read_wish(int fd, struct wish *w)
{
    char head[8192], range[128];
    memset(w, 0, sizeof *w);
    if (!read_head(fd, head, sizeof head) || sscanf(head, "GET %511s", w->path) != 1)
        return false;
    copy_field(head, "\r\nHost: ", w->host, sizeof w->host);
    copy_field(head, "\r\nAuthorization: ", w->auth, sizeof w->auth);
    copy_field(head, "\r\nIf-Range: ", w->if_range, sizeof w->if_range);
    copy_field(head, "\r\nRange: ", range, sizeof range);
    w->range = sscanf(range, "bytes=%" SCNu64 "-", &w->from) == 1;
    w->first_byte = strcmp(range, "bytes=0-0") == 0;
    return true;
}

/* ---- answers ----------------------------------------------------------------------------- */

static bool send_all(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        const ssize_t put = send(fd, p, n, MSG_NOSIGNAL);
        if (put <= 0)
            return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

static bool send_text(int fd, const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return n > 0 && n < (int)sizeof text && send_all(fd, text, (size_t)n);
}

static bool send_status(int fd, unsigned status, unsigned retry_after)
{
    char retry[64] = "";
    if (retry_after > 0)
        snprintf(retry, sizeof retry, "Retry-After: %u\r\n", retry_after);
    return send_text(fd, "HTTP/1.1 %u Something\r\nContent-Length: 5\r\n%s\r\noops\n", status, retry);
}

/* Until it is released or the other end is gone. */
static void stall(struct file_server *s, int fd)
{
    while (!atomic_load(&s->stop) && !atomic_load(&s->release)) {
        struct pollfd p = {.fd = fd, .events = POLLIN | POLLRDHUP};
        if (poll(&p, 1, 20) > 0)
            return;
    }
}

struct answer {
    uint64_t from, n, cut, stall; /* cut, stall: bytes of this answer; FS_ANY = not */
    uint64_t flip;
    bool counts;
};

static bool send_body(struct file_server *s, int fd, struct fs_file *f, const struct answer *a)
{
    if (a->cut == 0)
        return false;
    for (uint64_t done = 0; done < a->n;) {
        uint64_t m = a->n - done < CHUNK ? a->n - done : CHUNK;
        if (done < a->cut && a->cut - done < m)
            m = a->cut - done;
        if (done < a->stall && a->stall - done < m)
            m = a->stall - done;
        uint8_t chunk[CHUNK];
        for (uint64_t i = 0; i < m; i++) {
            const uint64_t at = a->from + done + i;
            chunk[i] = at < f->size ? f->data[at] : (uint8_t)'x';
            if (at == a->flip)
                chunk[i] ^= 1;
        }
        if (!send_all(fd, chunk, (size_t)m))
            return false;
        done += m;
        lock(s);
        f->sent += a->counts ? m : 0;
        unlock(s);
        if (done == a->cut)
            return false;
        if (done == a->stall) {
            stall(s, fd);
            return false;
        }
    }
    return true;
}

/* Looks do not use the faults up: those are for the requests that matter. */
static struct answer plan_answer(struct fs_file *f, const struct wish *w, bool partial)
{
    struct answer a = {.from = partial ? w->from : 0, .cut = FS_ANY, .stall = FS_ANY, .flip = FS_ANY};
    a.counts = !w->first_byte;
    a.n = w->first_byte && partial ? 1 : f->size + f->extra - a.from;
    if (!a.counts)
        return a;
    if (f->cut_times > 0) {
        f->cut_times--;
        a.cut = f->cut_after;
    }
    if (f->stall_times > 0) {
        f->stall_times--;
        a.stall = f->stall_after;
    }
    if (f->flip_times > 0) {
        f->flip_times--;
        a.flip = f->flip_at;
    }
    f->gets++;
    f->ranged += partial && w->from > 0;
    f->last_from = a.from;
    return a;
}

static void put_fields(const struct file_server *s, const struct fs_file *f, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    if (f->etag != NULL)
        n += (size_t)snprintf(out + n, cap - n, "ETag: %s\r\n", f->etag);
    if (f->sha256 != NULL)
        n += (size_t)snprintf(out + n, cap - n, "X-Linked-Etag: \"%s\"\r\nX-Linked-Size: %" PRIu64
                              "\r\n", f->sha256, f->size);
    const char *commit = f->commit != NULL ? f->commit : s->commit;
    if (commit != NULL)
        snprintf(out + n, cap - n, "X-Repo-Commit: %s\r\n", commit);
}

static bool answer_redirect(struct file_server *s, int fd, const struct fs_file *f,
                            const struct wish *w)
{
    char fields[1024];
    put_fields(s, f, fields, sizeof fields);
    return send_text(fd, "HTTP/1.1 %u Elsewhere\r\n%sLocation: %s%s\r\nContent-Length: 5\r\n\r\nGone\n",
                     f->redirect_status != 0 ? f->redirect_status : 302, fields, f->redirect,
                     f->redirect[0] == '/' || strchr(f->redirect, '?') != NULL ? "" : w->path);
}

static bool answer_bytes(struct file_server *s, int fd, struct fs_file *f, const struct wish *w)
{
    char fields[1024];
    if (f->etag_after != NULL && f->gets > 0)
        f->etag = f->etag_after;
    /* If-Range with another etag: the whole file, as the standard says. */
    const bool same = w->if_range[0] == '\0' ||
                      (f->etag != NULL && strcmp(w->if_range, f->etag) == 0);
    const bool partial = w->range && same && !f->ignore_range;
    const uint64_t told = f->claim_get != 0 && !w->first_byte ? f->claim_get
                          : f->claim != 0                     ? f->claim
                                                              : f->size;
    if (partial && w->from >= f->size)
        return send_text(fd, "HTTP/1.1 416 No\r\nContent-Range: bytes */%" PRIu64
                         "\r\nContent-Length: 0\r\n\r\n", told);
    lock(s);
    struct answer a = plan_answer(f, w, partial);
    unlock(s);
    put_fields(s, f, fields, sizeof fields);
    bool good;
    if (partial)
        good = send_text(fd, "HTTP/1.1 206 Part\r\n%sContent-Range: bytes %" PRIu64 "-%" PRIu64
                         "/%" PRIu64 "\r\nContent-Length: %" PRIu64 "\r\n\r\n", fields,
                         a.from + f->shift, a.from + a.n - 1, told, a.n);
    else if (f->no_length)
        good = send_text(fd, "HTTP/1.1 200 Yes\r\n%sConnection: close\r\n\r\n", fields);
    else
        good = send_text(fd, "HTTP/1.1 200 Yes\r\n%sContent-Length: %" PRIu64 "\r\n\r\n", fields, told);
    return good && send_body(s, fd, f, &a) && !(f->no_length && !partial);
}

static struct fs_file *find(struct file_server *s, const char *path)
{
    size_t n = strlen(s->prefix);
    if (s->also != NULL && strncmp(path, s->also, strlen(s->also)) == 0) {
        n = strlen(s->also);
        atomic_fetch_add(&s->also_requests, 1);
    } else if (strncmp(path, s->prefix, n) != 0) {
        return NULL;
    }
    const size_t len = strcspn(path + n, "?");
    for (unsigned i = 0; i < s->n_files; i++)
        if (strlen(s->files[i].name) == len && strncmp(s->files[i].name, path + n, len) == 0)
            return &s->files[i];
    return NULL;
}

/* False closes the connection. */
static bool answer(struct file_server *s, int fd, const struct wish *w)
{
    struct fs_file *f = find(s, w->path);
    char bearer[256];
    if (f == NULL) {
        atomic_fetch_add(&s->other_requests, 1);
        return send_status(fd, 404, 0);
    }
    snprintf(bearer, sizeof bearer, "Bearer %s", s->token != NULL ? s->token : "");
    const bool token = s->token != NULL && strcmp(w->auth, bearer) == 0;
    lock(s);
    f->requests++;
    f->looks += w->first_byte;
    f->with_token += token;
    f->with_password += strncmp(w->auth, "Basic ", 6) == 0;
    snprintf(f->if_range, sizeof f->if_range, "%s", w->if_range);
    const bool status = f->status_times > 0;
    if (status && f->status_times < FS_ALWAYS)
        f->status_times--;
    unlock(s);
    if (s->locked && !token)
        return send_status(fd, 401, 0);
    if (status)
        return send_status(fd, f->status, f->retry_after);
    return f->redirect != NULL ? answer_redirect(s, fd, f, w) : answer_bytes(s, fd, f, w);
}

static void *serve(void *arg)
{
    struct guest *g = arg;
    struct wish w;
    while (!atomic_load(&g->s->stop) && read_wish(g->fd, &w) && answer(g->s, g->fd, &w))
        continue;
    shutdown(g->fd, SHUT_RDWR);
    close(g->fd);
    atomic_fetch_sub(&g->s->connections, 1);
    free(g);
    return NULL;
}

static void *listen_on(void *arg)
{
    struct file_server *s = arg;
    for (int fd; (fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        struct guest *g = malloc(sizeof *g);
        pthread_t t;
        const struct timeval limit = {.tv_sec = 60};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        *g = (struct guest){s, fd};
        atomic_fetch_add(&s->connections, 1);
        if (pthread_create(&t, NULL, serve, g) != 0)
            abort();
        pthread_detach(t);
    }
    return NULL;
}

/* ---- life -------------------------------------------------------------------------------- */

static void load(struct file_server *s, const char *dir)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        assert_true(s->n_files < FS_FILES);
        struct fs_file *f = &s->files[s->n_files++];
        size_t n = 0;
        snprintf(f->name, sizeof f->name, "%s", e->d_name);
        f->data = f->own = (uint8_t *)fixture_read(dir, e->d_name, &n);
        f->kept = malloc(n + 1);
        assert_non_null(f->kept);
        memcpy(f->kept, f->own, n);
        f->size = f->kept_size = n;
    }
    closedir(d);
}

void fs_start(struct file_server *s, const char *dir, const char *prefix)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    memset(s, 0, sizeof *s);
    s->prefix = prefix;
    s->lock = malloc(sizeof(pthread_mutex_t));
    s->thread = malloc(sizeof(pthread_t));
    pthread_mutex_init(s->lock, NULL);
    load(s, dir);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->listener >= 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->listener, 64), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&a, &len), 0);
    s->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(s->thread, NULL, listen_on, s), 0);
}

static void nap(void)
{
    const struct timespec t = {.tv_nsec = 5000000};
    nanosleep(&t, NULL);
}

void fs_stop(struct file_server *s)
{
    atomic_store(&s->stop, true);
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(*(pthread_t *)s->thread, NULL);
    close(s->listener);
    while (atomic_load(&s->connections) > 0)
        nap();
    for (unsigned i = 0; i < s->n_files; i++) {
        free(s->files[i].own);
        free(s->files[i].kept);
    }
    pthread_mutex_destroy(s->lock);
    free(s->lock);
    free(s->thread);
}

void fs_reset(struct file_server *s)
{
    lock(s);
    for (unsigned i = 0; i < s->n_files; i++) {
        struct fs_file *f = &s->files[i];
        struct fs_file fresh = {.data = f->own, .own = f->own, .kept = f->kept,
                                .size = f->kept_size, .kept_size = f->kept_size};
        memcpy(f->own, f->kept, (size_t)f->kept_size);
        memcpy(fresh.name, f->name, sizeof fresh.name);
        *f = fresh;
    }
    unlock(s);
    s->token = s->commit = s->also = NULL;
    atomic_store(&s->also_requests, 0);
    s->locked = false;
    atomic_store(&s->release, false);
    atomic_store(&s->other_requests, 0);
}

struct fs_file *fs_file(struct file_server *s, const char *name)
{
    for (unsigned i = 0; i < s->n_files; i++)
        if (strcmp(s->files[i].name, name) == 0)
            return &s->files[i];
    fail_msg("the server has no file '%s'", name);
    return NULL;
}

void fs_wait_sent(struct file_server *s, struct fs_file *f, uint64_t bytes)
{
    const time_t until = time(NULL) + 120;
    for (bool there = false; !there; nap()) {
        lock(s);
        there = f->sent >= bytes;
        unlock(s);
        assert_true(time(NULL) < until);
    }
}

void fs_release(struct file_server *s)
{
    atomic_store(&s->release, true);
}

uint64_t fs_sent(const struct file_server *s)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < s->n_files; i++)
        n += s->files[i].sent;
    return n;
}

unsigned fs_gets(const struct file_server *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < s->n_files; i++)
        n += s->files[i].gets;
    return n;
}
