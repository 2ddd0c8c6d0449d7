/* states.c - see states.h. */
#include <config.h>

#include "states.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "paths.h"
#include "size.h"

#define SUFFIX ".k3s"
#define MARK ".state-"
/* Room that is left to the transcript, whatever happens. */
#define DISK_RESERVE (64u << 20)

struct states {
    char *dir, *name; /* of the transcript, without .jsonl */
    struct states_limits limits;
    states_notice_fn notice;
    void *ud;
    char **bad;       /* paths that are of no use to this process */
    size_t n_bad;
    bool failing;     /* the last save failed; told once */
};

/* A state file of the folder. */
struct file {
    char *path;
    struct timespec used;
    uint64_t bytes;
    uint32_t position;
    bool own;         /* of this session */
};

struct files {
    struct file *v;
    size_t n, cap;
};

/* ---- names ------------------------------------------------------------------------------- */

/* "/a/b/NAME.jsonl" -> "/a/b" and "NAME". */
static enum k3_status split(const char *transcript, char **dir, char **name, struct k3_error *err)
{
    const char *slash = strrchr(transcript, '/'), *base = slash == NULL ? transcript : slash + 1;
    const size_t n = strlen(base);
    const bool jsonl = n > 6 && strcmp(base + n - 6, ".jsonl") == 0;
    *dir = path_dirname(transcript, err);
    *name = *dir == NULL ? NULL : path_format(err, "%.*s", (int)(jsonl ? n - 6 : n), base);
    if (*name != NULL)
        return K3_OK;
    free(*dir);
    *dir = NULL;
    return err->status;
}

/* The length of NAME in "NAME.state-DIGITS-HASH.k3s"; 0 when it is no such name. */
static size_t state_name(const char *file, uint32_t *position)
{
    const size_t n = strlen(file), tail = sizeof SUFFIX - 1;
    if (n < tail || strcmp(file + n - tail, SUFFIX) != 0)
        return 0;
    const char *mark = NULL; /* the last one: a session's own name may hold such a thing */
    for (const char *at = file; (at = strstr(at, MARK)) != NULL; at++)
        mark = at;
    if (mark == NULL)
        return 0;
    const char *p = mark + sizeof MARK - 1;
    char *end = NULL;
    const unsigned long v = strtoul(p, &end, 10);
    const size_t hex = *end == '-' ? strspn(end + 1, "0123456789abcdef") : 0;
    if (end == p || *p < '0' || *p > '9' || v > UINT32_MAX || hex != 16 ||
        strcmp(end + 17, SUFFIX) != 0)
        return 0;
    *position = (uint32_t)v;
    return (size_t)(mark - file);
}

static char *state_path(const struct states *s, const int32_t *ids, size_t n, struct k3_error *err)
{
    return path_format(err, "%s/%s" MARK "%06zu-%016llx" SUFFIX, s->dir, s->name, n,
                       (unsigned long long)XXH3_64bits(ids, n * sizeof *ids));
}

/* ---- the folder -------------------------------------------------------------------------- */

static void files_free(struct files *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->v[i].path);
    free(f->v);
    *f = (struct files){0};
}

static enum k3_status add_file(struct files *f, const char *dir, const char *name, bool own,
                               uint32_t position, struct k3_error *err)
{
    struct stat st;
    char *path = path_format(err, "%s/%s", dir, name);
    if (path == NULL)
        return err->status;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) { /* gone meanwhile, or nothing of ours */
        free(path);
        return K3_OK;
    }
    if (f->n == f->cap) {
        const size_t cap = f->cap == 0 ? 16 : 2 * f->cap;
        struct file *v = realloc(f->v, cap * sizeof *v);
        if (v == NULL) {
            free(path);
            return k3_fail_memory(err, "the list of states", cap * sizeof *v);
        }
        f->v = v;
        f->cap = cap;
    }
    f->v[f->n++] = (struct file){path, st.st_mtim, (uint64_t)st.st_size, position, own};
    return K3_OK;
}

static int newest_first(const void *a, const void *b)
{
    const struct timespec *x = &((const struct file *)a)->used, *y = &((const struct file *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? 1 : -1;
    return x->tv_nsec < y->tv_nsec ? 1 : x->tv_nsec > y->tv_nsec ? -1 : 0;
}

/* Every state of the folder, the one used last first. */
static enum k3_status list(const char *dir, const char *name, struct files *out,
                           struct k3_error *err)
{
    *out = (struct files){0};
    DIR *d = opendir(dir);
    if (d == NULL)
        return errno == ENOENT ? K3_OK
                               : k3_fail(err, K3_FAILED, "%s: %s", dir, strerror(errno));
    enum k3_status status = K3_OK;
    for (const struct dirent *e; status == K3_OK && (e = readdir(d)) != NULL;) {
        uint32_t position = 0;
        const size_t n = state_name(e->d_name, &position);
        if (n > 0)
            status = add_file(out, dir, e->d_name,
                              n == strlen(name) && memcmp(e->d_name, name, n) == 0, position, err);
    }
    closedir(d);
    if (status != K3_OK)
        files_free(out);
    else if (out->n > 1)
        qsort(out->v, out->n, sizeof *out->v, newest_first);
    return status;
}

/* Half-written states of this session: whoever wrote them is dead, for we hold the lock. */
static void remove_temporary(const struct states *s)
{
    DIR *d = opendir(s->dir);
    if (d == NULL)
        return;
    const size_t own = strlen(s->name), tail = sizeof SUFFIX ".tmp" - 1;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        const size_t n = strlen(e->d_name);
        char base[512];
        uint32_t position = 0;
        if (n <= tail || n >= sizeof base || strcmp(e->d_name + n - tail, SUFFIX ".tmp") != 0)
            continue;
        memcpy(base, e->d_name, n - 4);
        base[n - 4] = '\0';
        if (state_name(base, &position) == own && memcmp(base, s->name, own) == 0)
            unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
}

/* ---- opening ----------------------------------------------------------------------------- */

struct states *states_open(const char *transcript, const struct states_limits *limits,
                           states_notice_fn notice, void *ud, struct k3_error *err)
{
    struct states *s = calloc(1, sizeof *s);
    if (s == NULL) {
        k3_fail_memory(err, "the states", sizeof *s);
        return NULL;
    }
    if (split(transcript, &s->dir, &s->name, err) != K3_OK) {
        free(s);
        return NULL;
    }
    s->limits = *limits;
    s->notice = notice;
    s->ud = ud;
    if (limits->keep > 0) /* a reader does not hold the lock */
        remove_temporary(s);
    return s;
}

void states_close(struct states *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n_bad; i++)
        free(s->bad[i]);
    free(s->bad);
    free(s->dir);
    free(s->name);
    free(s);
}

static void tell(struct states *s, const char *text)
{
    if (s->notice != NULL)
        s->notice(s->ud, text);
}

static bool is_bad(const struct states *s, const char *path)
{
    for (size_t i = 0; i < s->n_bad; i++)
        if (strcmp(s->bad[i], path) == 0)
            return true;
    return false;
}

/* Ignored from now on; said once, because it is not looked at again. */
static void ignore(struct states *s, const char *path, const struct k3_error *why)
{
    char text[sizeof why->message + 64];
    snprintf(text, sizeof text, "a saved state is not used: %s", why->message);
    tell(s, text);
    char *copy = strdup(path);
    char **bad = realloc(s->bad, (s->n_bad + 1) * sizeof *bad);
    if (bad != NULL)
        s->bad = bad;
    if (copy == NULL || bad == NULL) {
        free(copy);
        return;
    }
    s->bad[s->n_bad++] = copy;
}

/* ---- saving ------------------------------------------------------------------------------ */

/* The newest stay: so many of this session, and so many bytes of all. The one just written is the
 * first. */
static void retire(const struct states *s)
{
    struct files f;
    struct k3_error unused;
    if (list(s->dir, s->name, &f, &unused) != K3_OK)
        return;
    uint32_t own = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < f.n; i++) {
        own += f.v[i].own;
        bytes += f.v[i].bytes;
        if ((f.v[i].own && own > s->limits.keep) || bytes > s->limits.disk) {
            unlink(f.v[i].path);
            bytes -= f.v[i].bytes;
            own -= f.v[i].own;
        }
    }
    files_free(&f);
}

static enum k3_status check_room(const struct states *s, uint64_t bytes, struct k3_error *err)
{
    char a[32], b[32];
    struct statvfs v;
    if (bytes > s->limits.disk)
        return k3_fail(err, K3_FAILED, "one state takes %s, and session.state_disk allows %s",
                       size_format(a, sizeof a, bytes), size_format(b, sizeof b, s->limits.disk));
    if (statvfs(s->dir, &v) == 0 && v.f_frsize > 0) {
        const uint64_t room = (uint64_t)v.f_bavail * v.f_frsize;
        if (room < bytes + DISK_RESERVE)
            return k3_fail(err, K3_FAILED, "%s has %s of room, and a state takes %s", s->dir,
                           size_format(a, sizeof a, room), size_format(b, sizeof b, bytes));
    }
    return K3_OK;
}

void states_save(struct states *s, k3_engine *e, const int32_t *ids, size_t n)
{
    struct k3_error err = {0};
    if (s->limits.keep == 0)
        return;
    char *path = state_path(s, ids, n, &err);
    enum k3_status status = path == NULL ? err.status : K3_OK;
    if (status == K3_OK && !is_bad(s, path) && utimensat(AT_FDCWD, path, NULL, 0) == 0) {
        free(path);
        return;
    }
    if (status == K3_OK)
        status = check_room(s, k3_state_file_bytes(e), &err);
    if (status == K3_OK)
        status = k3_state_save(e, path, ids, n, &err);
    if (status == K3_OK) {
        retire(s);
    } else if (!s->failing) {
        char text[sizeof err.message + 128];
        snprintf(text, sizeof text, "the state of the conversation was not saved (the transcript "
                 "is; a later start will have to read more again): %s", err.message);
        tell(s, text);
    }
    s->failing = status != K3_OK;
    free(path);
}

/* ---- finding and loading ----------------------------------------------------------------- */

static bool usable(struct states *s, const k3_engine *e, const struct file *f, const int32_t *ids,
                   size_t n)
{
    struct k3_state_info info;
    struct k3_error err = {0};
    enum k3_status status = k3_state_read_info(f->path, &info, &err);
    if (status == K3_OK)
        status = k3_state_fits(e, f->path, &info, &err);
    const bool ok = status == K3_OK && info.position <= n &&
                    (info.position < n || info.has_logits) &&
                    memcmp(info.ids, ids, info.position * sizeof *ids) == 0;
    k3_state_info_free(&info);
    if (status != K3_OK)
        ignore(s, f->path, &err);
    return ok;
}

uint32_t states_find(struct states *s, const k3_engine *e, const int32_t *ids, size_t n,
                     uint32_t above)
{
    struct files f;
    struct k3_error err;
    if (list(s->dir, s->name, &f, &err) != K3_OK)
        return 0;
    uint32_t best = above;
    for (size_t i = 0; i < f.n; i++)
        if (f.v[i].own && f.v[i].position > best && !is_bad(s, f.v[i].path) &&
            usable(s, e, &f.v[i], ids, n))
            best = f.v[i].position;
    files_free(&f);
    return best > above ? best : 0;
}

bool states_load(struct states *s, k3_engine *e, const int32_t *ids, uint32_t position)
{
    struct k3_error err = {0};
    char *path = state_path(s, ids, position, &err);
    if (path == NULL)
        return false;
    const bool ok = k3_state_load(e, path, ids, position, &err) == K3_OK;
    if (ok)
        utimensat(AT_FDCWD, path, NULL, 0);
    else
        ignore(s, path, &err);
    free(path);
    return ok;
}

/* ---- without a session ------------------------------------------------------------------- */

enum k3_status states_measure(const char *transcript, struct states_usage *out,
                              struct k3_error *err)
{
    struct files f = {0};
    char *dir = NULL, *name = NULL;
    *out = (struct states_usage){0};
    if (split(transcript, &dir, &name, err) != K3_OK)
        return err->status;
    const enum k3_status status = list(dir, name, &f, err);
    for (size_t i = 0; i < f.n; i++) {
        if (!f.v[i].own)
            continue;
        out->files++;
        out->bytes += f.v[i].bytes;
        if (f.v[i].position > out->longest)
            out->longest = f.v[i].position;
    }
    files_free(&f);
    free(dir);
    free(name);
    return status;
}

/* Removes, or with a new name moves, every state of the session. */
static enum k3_status each(const char *transcript, const char *new_name, struct k3_error *err)
{
    struct files f = {0};
    char *dir = NULL, *name = NULL;
    if (split(transcript, &dir, &name, err) != K3_OK)
        return err->status;
    enum k3_status status = list(dir, name, &f, err);
    const size_t skip = strlen(dir) + 1 + strlen(name);
    for (size_t i = 0; status == K3_OK && i < f.n; i++) {
        if (!f.v[i].own)
            continue;
        const char *path = f.v[i].path;
        char *to = new_name == NULL ? NULL
                                    : path_format(err, "%s/%s%s", dir, new_name, path + skip);
        if (new_name != NULL && to == NULL)
            status = err->status;
        else if ((to == NULL ? unlink(path) : rename(path, to)) != 0)
            status = k3_fail(err, K3_FAILED, "%s: %s", path, strerror(errno));
        free(to);
    }
    files_free(&f);
    free(dir);
    free(name);
    return status;
}

enum k3_status states_remove(const char *transcript, struct k3_error *err)
{
    return each(transcript, NULL, err);
}

enum k3_status states_rename(const char *from, const char *to, struct k3_error *err)
{
    char *dir = NULL, *name = NULL;
    if (split(to, &dir, &name, err) != K3_OK)
        return err->status;
    const enum k3_status status = each(from, name, err);
    free(dir);
    free(name);
    return status;
}
