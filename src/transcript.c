/* transcript.c - opening, locking, repairing and appending; see transcript.h. */
#include <config.h>

#include "transcript.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <utf8proc.h>

#include "buffer.h"
#include "paths.h"
#include "states.h"

struct transcript {
    char *name, *path;
    int fd;
    int64_t last_id;
    off_t size;         /* of the whole records in the file */
    bool remnant;       /* behind them stands the beginning of one that could not be cut off */
    bool created;       /* by this process */
    size_t records;     /* in the file, without the header */
    struct buffer held; /* records that could not be written yet */
};

/* ---- names ------------------------------------------------------------------------------- */

enum k3_status transcript_check_name(const char *name, struct k3_error *err)
{
    const size_t n = strlen(name);
    if (n == 0 || n > TRANSCRIPT_NAME_MAX)
        return k3_fail(err, K3_USAGE, "a session's name has 1 to %d bytes, not %zu",
                       TRANSCRIPT_NAME_MAX, n);
    if (name[0] == '.')
        return k3_fail(err, K3_USAGE, "a session's name cannot begin with a dot");
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t c = 0;
        const utf8proc_ssize_t k = utf8proc_iterate((const utf8proc_uint8_t *)name + i,
                                                    (utf8proc_ssize_t)(n - i), &c);
        if (k <= 0)
            return k3_fail(err, K3_USAGE, "a session's name must be valid UTF-8");
        if (c == '/' || c < 0x20 || (c >= 0x7F && c < 0xA0))
            return k3_fail(err, K3_USAGE,
                           "a session's name cannot hold '/' or control characters");
        i += (size_t)k;
    }
    return K3_OK;
}

char *transcript_folder(struct k3_error *err)
{
    char *data = path_data_dir(err);
    char *dir = data == NULL ? NULL : path_format(err, "%s/sessions", data);
    free(data);
    return dir;
}

char *transcript_file(const char *name, struct k3_error *err)
{
    if (transcript_check_name(name, err) != K3_OK)
        return NULL;
    char *dir = transcript_folder(err);
    char *path = dir == NULL ? NULL : path_format(err, "%s/%s.jsonl", dir, name);
    free(dir);
    return path;
}

static enum k3_status set_paths(struct transcript *t, const char *name, const char *dir,
                                struct k3_error *err)
{
    free(t->name);
    free(t->path);
    t->name = path_format(err, "%s", name);
    t->path = path_format(err, "%s/%s.jsonl", dir, name);
    return t->name == NULL || t->path == NULL ? err->status : K3_OK;
}

/* ---- opening ----------------------------------------------------------------------------- */

static enum k3_status fail_errno(const struct transcript *t, const char *what, struct k3_error *err)
{
    return k3_fail(err, K3_FAILED, "%s: the transcript cannot be %s: %s", t->path, what,
                   strerror(errno));
}

/* A name made of the time, with a number when that minute has one already. */
static enum k3_status open_new(struct transcript *t, const char *dir, struct k3_error *err)
{
    const time_t now = time(NULL);
    struct tm tm;
    char stamp[64];
    if (localtime_r(&now, &tm) == NULL || strftime(stamp, sizeof stamp, "%Y-%m-%d-%H%M", &tm) == 0)
        snprintf(stamp, sizeof stamp, "chat-%lld", (long long)now);
    for (unsigned i = 1; i < 1000; i++) {
        char name[96];
        snprintf(name, sizeof name, i == 1 ? "%s" : "%s-%u", stamp, i);
        if (set_paths(t, name, dir, err) != K3_OK)
            return err->status;
        t->fd = open(t->path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (t->fd >= 0) {
            t->created = true;
            return K3_OK;
        }
        if (errno != EEXIST)
            break;
    }
    return fail_errno(t, "created", err);
}

static enum k3_status open_named(struct transcript *t, const char *name, const char *dir,
                                 struct k3_error *err)
{
    if (set_paths(t, name, dir, err) != K3_OK)
        return err->status;
    t->fd = open(t->path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (t->fd < 0 && errno == ENOENT) {
        t->fd = open(t->path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        t->created = t->fd >= 0;
    }
    return t->fd < 0 ? fail_errno(t, "opened", err) : K3_OK;
}

static enum k3_status lock(struct transcript *t, struct k3_error *err)
{
    if (flock(t->fd, LOCK_EX | LOCK_NB) == 0)
        return K3_OK;
    t->created = false; /* whoever holds it owns the file */
    if (errno == EWOULDBLOCK)
        return k3_fail(err, K3_FAILED,
                       "%s: session '%s' is open in another k3chat; close it there, or choose "
                       "another --session",
                       t->path, t->name);
    return fail_errno(t, "locked", err);
}

/* Between opening and locking, the program that had the file may have renamed or removed it: what is
 * written to the open one would be found nowhere. */
static bool is_in_place(const struct transcript *t)
{
    struct stat ours, there;
    return fstat(t->fd, &ours) == 0 && stat(t->path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

static enum k3_status open_and_lock(struct transcript *t, const char *name, const char *dir,
                                    struct k3_error *err)
{
    for (int i = 0; i < 100; i++) {
        if ((name == NULL ? open_new(t, dir, err) : open_named(t, name, dir, err)) != K3_OK ||
            lock(t, err) != K3_OK)
            return err->status;
        if (is_in_place(t))
            return K3_OK;
        close(t->fd);
        t->fd = -1;
        t->created = false;
    }
    return k3_fail(err, K3_FAILED, "%s: it is renamed or removed again and again", t->path);
}

bool transcript_in_use(const char *name)
{
    struct k3_error unused;
    char *path = transcript_file(name, &unused);
    const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (fd < 0)
        return false;
    const bool used = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd); /* and with it the lock, if it was to be had */
    return used;
}

/* ---- writing ----------------------------------------------------------------------------- */

static bool cut_remnant(struct transcript *t)
{
    t->remnant = ftruncate(t->fd, t->size) != 0;
    return !t->remnant;
}

/* All or nothing: after a failure the file is cut back to its last whole record, and nothing is written
 * behind what could not be cut off. */
static enum k3_status write_all(struct transcript *t, const char *text, size_t n,
                                struct k3_error *err)
{
    size_t done = 0;
    if (t->remnant && !cut_remnant(t))
        return k3_fail(err, K3_FAILED, "%s: an unfinished record cannot be cut off: %s", t->path,
                       strerror(errno));
    while (done < n) {
        const ssize_t k = write(t->fd, text + done, n - done);
        if (k < 0 && errno == EINTR)
            continue;
        if (k > 0) {
            done += (size_t)k;
            continue;
        }
        const int why = k == 0 ? ENOSPC : errno;
        if (done > 0 && !cut_remnant(t))
            return k3_fail(err, K3_FAILED,
                           "%s: %s; the unfinished record could not be cut off either (%s) and "
                           "will be later",
                           t->path, strerror(why), strerror(errno));
        return k3_fail(err, K3_FAILED,
                       "%s: %s; what is new is kept in memory and written when there is room",
                       t->path, strerror(why));
    }
    t->size += (off_t)n;
    return K3_OK;
}

static enum k3_status write_held(struct transcript *t, bool sync, struct k3_error *err)
{
    if (t->held.n > 0 && write_all(t, t->held.v, t->held.n, err) != K3_OK)
        return err->status;
    buffer_clear(&t->held);
    if (sync && fdatasync(t->fd) != 0 && errno != EINVAL && errno != EROFS)
        return fail_errno(t, "written", err);
    return K3_OK;
}

enum k3_status transcript_append(struct transcript *t, const json_t *record, bool sync,
                                 struct k3_error *err)
{
    char *text = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(9));
    if (text == NULL)
        return k3_fail_memory(err, "a record of the transcript", 0);
    const size_t before = t->held.n;
    buffer_add(&t->held, text, strlen(text));
    buffer_add(&t->held, "\n", 1);
    free(text);
    if (t->held.failed) {
        t->held.n = before;
        t->held.failed = false;
        return k3_fail_memory(err, "a record of the transcript", 0);
    }
    t->records++;
    return write_held(t, sync, err);
}

static enum k3_status write_header(struct transcript *t, struct k3_error *err)
{
    json_t *h = json_pack("{s:s, s:i, s:I, s:s}", "format", "k3chat-transcript", "version",
                          TRANSCRIPT_VERSION, "created", (json_int_t)time(NULL), "program",
                          PACKAGE_VERSION);
    if (h == NULL)
        return k3_fail_memory(err, "the transcript's header", 0);
    const enum k3_status status = transcript_append(t, h, true, err);
    json_decref(h);
    t->records = 0;
    return status;
}

/* ---- reading and repair ------------------------------------------------------------------ */

/* Keeps what is cut off in a file beside the transcript; true when that worked. */
static bool keep_copy(const struct transcript *t, const char *tail, size_t n)
{
    struct k3_error unused;
    char *path = path_format(&unused, "%s.torn", t->path);
    if (path == NULL)
        return false;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool ok = fd >= 0 && write(fd, tail, n) == (ssize_t)n;
    if (fd >= 0)
        close(fd);
    free(path);
    return ok;
}

static enum k3_status cut_tail(struct transcript *t, const struct transcript_contents *in,
                               const char *text, size_t len, char **notice, struct k3_error *err)
{
    const size_t n = len - in->whole;
    const bool kept = keep_copy(t, text + in->whole, n);
    if (ftruncate(t->fd, (off_t)in->whole) != 0)
        return fail_errno(t, "repaired", err);
    *notice = path_format(err, "the last record was cut short (%zu bytes); it was removed%s%s%s", n,
                          kept ? ", a copy is in " : "", kept ? t->path : "",
                          kept ? ".torn" : "");
    return *notice == NULL ? err->status : K3_OK;
}

static enum k3_status load(struct transcript *t, struct conversation *c, char **notice,
                           struct k3_error *err)
{
    struct transcript_contents in;
    size_t len = 0;
    char *text = path_read_file(t->path, SIZE_MAX / 4, &len, err);
    if (text == NULL) {
        err->status = K3_FAILED;
        return err->status;
    }
    enum k3_status status = transcript_parse(text, len, t->path, &in, err);
    if (status == K3_OK && in.torn)
        status = cut_tail(t, &in, text, len, notice, err);
    free(text);
    if (status != K3_OK)
        return status;
    t->size = (off_t)in.whole;
    t->records = in.records;
    t->last_id = in.last_id;
    *c = in.conversation;
    return in.has_header ? K3_OK : write_header(t, err);
}

/* A new file is durable only when its folder is, too. */
static void sync_dir(const char *dir)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

struct transcript *transcript_open(const char *name, struct conversation *c, char **notice,
                                   struct k3_error *err)
{
    *notice = NULL;
    struct transcript *t = calloc(1, sizeof *t);
    if (t == NULL) {
        k3_fail_memory(err, "a transcript", sizeof *t);
        return NULL;
    }
    t->fd = -1;
    char *dir = transcript_folder(err);
    enum k3_status status = dir == NULL ? err->status : path_make_dirs(dir, err);
    if (status == K3_OK)
        status = open_and_lock(t, name, dir, err);
    if (status == K3_OK)
        status = load(t, c, notice, err);
    if (status == K3_OK && t->created)
        sync_dir(dir);
    free(dir);
    if (status != K3_OK) {
        t->held.n = 0;
        transcript_close(t);
        free(*notice);
        *notice = NULL;
        return NULL;
    }
    return t;
}

/* ---- renaming and removing --------------------------------------------------------------- */

/* A session that holds nothing yet needs no record of what it was called, and vanishes as before. */
static enum k3_status record_rename(struct transcript *t, const char *from, struct k3_error *err)
{
    if (t->records == 0)
        return K3_OK;
    json_t *rec = json_pack("{s:s, s:s, s:s, s:I}", "type", "rename", "from", from, "to", t->name,
                            "time", (json_int_t)time(NULL));
    if (rec == NULL)
        return k3_fail_memory(err, "a record", 0);
    const enum k3_status status = transcript_append(t, rec, true, err);
    json_decref(rec);
    return status;
}

/* link() fails when the new name is taken; rename() would not. */
static enum k3_status move_file(const char *from, const char *to, struct k3_error *err)
{
    if (link(from, to) != 0)
        return k3_fail(err, errno == EEXIST ? K3_USAGE : K3_FAILED, "%s: %s", to, strerror(errno));
    if (unlink(from) != 0)
        return k3_fail(err, K3_FAILED, "%s: %s", from, strerror(errno));
    return K3_OK;
}

enum k3_status transcript_rename(struct transcript *t, const char *name, struct k3_error *err)
{
    char *path = transcript_file(name, err);
    char *copy = path == NULL ? NULL : path_format(err, "%s", name);
    if (copy == NULL || move_file(t->path, path, err) != K3_OK) {
        free(path);
        free(copy);
        return err->status;
    }
    char *old_name = t->name, *old_path = t->path;
    t->name = copy;
    t->path = path;
    enum k3_status status = record_rename(t, old_name, err);
    if (status == K3_OK)
        status = states_rename(old_path, path, err);
    free(old_name);
    free(old_path);
    return status;
}

enum k3_status transcript_remove(struct transcript *t, struct k3_error *err)
{
    char *torn = path_format(err, "%s.torn", t->path);
    if (torn == NULL || states_remove(t->path, err) != K3_OK) {
        free(torn);
        return err->status;
    }
    unlink(torn);
    free(torn);
    if (unlink(t->path) != 0)
        return k3_fail(err, K3_FAILED, "%s: %s", t->path, strerror(errno));
    t->created = false; /* it is gone: nothing is left to close but the descriptor */
    buffer_clear(&t->held);
    return K3_OK;
}

/* ---- closing ----------------------------------------------------------------------------- */

/* The records that found no room, in a file of their own: malloc'ed path, or NULL. */
static char *write_elsewhere(const struct transcript *t)
{
    struct k3_error unused;
    const char *tmp = getenv("TMPDIR");
    char *path = path_format(&unused, "%s/k3chat-rest-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    const int fd = path == NULL ? -1 : mkstemp(path);
    const bool ok = fd >= 0 && write(fd, t->held.v, t->held.n) == (ssize_t)t->held.n;
    if (fd >= 0)
        close(fd);
    if (ok)
        return path;
    if (fd >= 0)
        unlink(path);
    free(path);
    return NULL;
}

enum k3_status transcript_flush(struct transcript *t, struct k3_error *err)
{
    return t->held.n == 0 ? K3_OK : write_held(t, true, err);
}

enum k3_status transcript_save(struct transcript *t, struct k3_error *err)
{
    if (transcript_flush(t, err) == K3_OK)
        return K3_OK;
    if (t->held.n == 0) /* written, but not synced */
        return err->status;
    const int why = errno;
    char *path = write_elsewhere(t);
    k3_fail(err, K3_FAILED,
            "%s: %s; the last %zu bytes of the conversation are not in it%s%s%s", t->path,
            strerror(why), t->held.n,
            path == NULL ? " and are lost" : ", but in ", path == NULL ? "" : path,
            path == NULL ? "" : ": append that file to it when there is room");
    if (path != NULL)
        buffer_clear(&t->held);
    free(path);
    return err->status;
}

void transcript_close(struct transcript *t)
{
    if (t == NULL)
        return;
    struct k3_error unused;
    if (t->fd >= 0) {
        write_held(t, t->held.n > 0, &unused);
        if (t->created && t->records == 0)
            unlink(t->path);
        close(t->fd);
    }
    buffer_free(&t->held);
    free(t->name);
    free(t->path);
    free(t);
}

const char *transcript_name(const struct transcript *t)
{
    return t->name;
}

const char *transcript_path(const struct transcript *t)
{
    return t->path;
}

int64_t transcript_next_id(struct transcript *t)
{
    return ++t->last_id;
}
