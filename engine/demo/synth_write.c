/* synth_write.c - puts a planned checkpoint on disk: a temporary folder, then one rename. */
#include <config.h>

#include "synth_plan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHUNK = 8 << 20,    /* bytes made before they are written */
    TASK = 64 << 10,    /* elements a thread makes at a time */
    FEW_TASKS = 16,     /* not worth waking other threads, which would then spin while we write */
    PATH_CAP = 4096,
};

struct writer {
    const struct k3_synth *s;
    struct synth_plan plan;
    char tmp[PATH_CAP];
    unsigned char *chunk;
    uint64_t done;
    k3_progress_fn progress;
    void *ud;
};

static enum k3_status fail_errno(struct k3_error *err, const char *what, const char *path)
{
    return k3_fail(err, K3_FAILED, "%s %s: %s", what, path, strerror(errno));
}

static bool join_path(char out[PATH_CAP], const char *dir, const char *name)
{
    const int n = snprintf(out, PATH_CAP, "%s/%s", dir, name);
    return n > 0 && n < PATH_CAP;
}

/* ---- shards ------------------------------------------------------------------------------------ */

static enum k3_status write_all(int fd, const unsigned char *data, size_t n, const char *path,
                                struct k3_error *err)
{
    while (n > 0) {
        const ssize_t got = write(fd, data, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(err, "cannot write", path);
        data += got;
        n -= (size_t)got;
    }
    return K3_OK;
}

static void fill_parallel(const struct k3_synth *s, const struct synth_tensor *t, uint64_t first,
                          size_t n, size_t size, unsigned char *out)
{
    const long tasks = (long)((n + TASK - 1) / TASK);
#pragma omp parallel for schedule(dynamic) if (tasks > FEW_TASKS)
    for (long i = 0; i < tasks; i++) {
        const size_t at = (size_t)i * TASK;
        synth_fill(s, t, first + at, n - at < TASK ? n - at : TASK, out + at * size);
    }
}

static enum k3_status write_tensor(struct writer *w, int fd, const char *path,
                                   const struct synth_tensor *t, struct k3_error *err)
{
    static const size_t sizes[] = {[SYNTH_F32] = 4, [SYNTH_BF16] = 2, [SYNTH_U8] = 1};
    const size_t size = sizes[t->dtype];
    const uint64_t total = (t->end - t->begin) / size;
    for (uint64_t at = 0; at < total;) {
        const uint64_t left = total - at;
        const size_t n = left < CHUNK / size ? (size_t)left : CHUNK / size;
        fill_parallel(w->s, t, at, n, size, w->chunk);
        if (write_all(fd, w->chunk, n * size, path, err) != K3_OK)
            return err->status;
        at += n;
        w->done += n * size;
        if (w->progress)
            w->progress(w->ud, "writing the checkpoint", w->done, w->plan.bytes);
    }
    return K3_OK;
}

/* Length as 8 bytes little endian, the JSON text, spaces up to a multiple of 8. */
static enum k3_status write_header(int fd, const char *path, const struct synth_tensor *t, size_t n,
                                   struct k3_error *err)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    bool ok = f && fwrite("\0\0\0\0\0\0\0", 1, 8, f) == 8 && synth_put_header(t, n, f);
    if (ok && fflush(f) == 0)
        ok = fprintf(f, "%*s", (int)(-len & 7), "") >= 0;
    if (f && fclose(f) != 0)
        ok = false;
    if (!ok) {
        free(text);
        return k3_fail_memory(err, "the header of a shard", (unsigned long long)n * 160);
    }
    for (int i = 0; i < 8; i++)
        text[i] = (char)((uint64_t)(len - 8) >> (8 * i) & 255);
    const enum k3_status st = write_all(fd, (unsigned char *)text, len, path, err);
    free(text);
    return st;
}

static enum k3_status leave_hole(int fd, const char *path, uint64_t bytes, struct k3_error *err)
{
    const off_t header = lseek(fd, 0, SEEK_CUR);
    if (header < 0 || ftruncate(fd, header + (off_t)bytes) != 0)
        return fail_errno(err, "cannot enlarge", path);
    return K3_OK;
}

/* The tensors [first, end) of the plan are those of one shard. */
static enum k3_status write_shard(struct writer *w, size_t first, size_t end, struct k3_error *err)
{
    char name[64], path[PATH_CAP];
    const struct synth_tensor *t = &w->plan.v[first];
    synth_shard_name(name, t->shard, w->plan.shards);
    if (!join_path(path, w->tmp, name))
        return k3_fail(err, K3_FAILED, "%s: the path is too long", w->tmp);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return fail_errno(err, "cannot create", path);
    enum k3_status st = write_header(fd, path, t, end - first, err);
    if (st == K3_OK && w->s->holes)
        st = leave_hole(fd, path, w->plan.v[end - 1].end, err);
    for (size_t i = first; i < end && st == K3_OK && !w->s->holes; i++)
        st = write_tensor(w, fd, path, &w->plan.v[i], err);
    if (close(fd) != 0 && st == K3_OK)
        st = fail_errno(err, "cannot write", path);
    return st;
}

static enum k3_status write_shards(struct writer *w, struct k3_error *err)
{
    w->chunk = malloc(CHUNK);
    if (!w->chunk)
        return k3_fail_memory(err, "a buffer for weights", CHUNK);
    for (size_t i = 0; i < w->plan.n;) {
        size_t end = i;
        while (end < w->plan.n && w->plan.v[end].shard == w->plan.v[i].shard)
            end++;
        if (write_shard(w, i, end, err) != K3_OK)
            return err->status;
        i = end;
    }
    return K3_OK;
}

/* ---- text files -------------------------------------------------------------------------------- */

static enum k3_status write_text(const struct writer *w, const char *name,
                                 bool (*put)(const struct k3_synth *, FILE *), struct k3_error *err)
{
    char path[PATH_CAP];
    if (!join_path(path, w->tmp, name))
        return k3_fail(err, K3_FAILED, "%s: the path is too long", w->tmp);
    FILE *f = fopen(path, "wxe");
    if (!f)
        return fail_errno(err, "cannot create", path);
    const bool good = put ? put(w->s, f) : synth_put_index(&w->plan, f);
    if (fclose(f) != 0 || !good)
        return fail_errno(err, "cannot write", path);
    return K3_OK;
}

static enum k3_status write_texts(const struct writer *w, struct k3_error *err)
{
    static const struct {
        const char *name;
        bool (*put)(const struct k3_synth *, FILE *);
    } texts[] = {
        {"config.json", synth_put_config},
        {"generation_config.json", synth_put_generation_config},
        {"tiktoken.model", synth_put_tiktoken},
        {"tokenizer_config.json", synth_put_tokenizer_config},
        {"model.safetensors.index.json", NULL},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (write_text(w, texts[i].name, texts[i].put, err) != K3_OK)
            return err->status;
    return K3_OK;
}

/* ---- the folder -------------------------------------------------------------------------------- */

void k3_synth_remove(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    for (const struct dirent *e; (e = readdir(d));) {
        char path[PATH_CAP];
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            join_path(path, dir, e->d_name))
            unlink(path);
    }
    closedir(d);
    rmdir(dir);
}

/* A folder beside `dir`, so that the rename stays on one file system. */
static enum k3_status make_temporary(struct writer *w, const char *dir, struct k3_error *err)
{
    size_t len = strlen(dir);
    while (len > 1 && dir[len - 1] == '/')
        len--;
    const int n = snprintf(w->tmp, sizeof w->tmp, "%.*s.part-XXXXXX", (int)len, dir);
    if (len == 0 || n < 0 || (size_t)n >= sizeof w->tmp - 64) {
        w->tmp[0] = '\0';
        return k3_fail(err, K3_USAGE, "'%.200s' is no name for a new folder", dir);
    }
    if (!mkdtemp(w->tmp)) {
        const enum k3_status st = fail_errno(err, "cannot create the folder", w->tmp);
        w->tmp[0] = '\0';
        return st;
    }
    if (chmod(w->tmp, 0755) != 0)
        return fail_errno(err, "cannot set the mode of", w->tmp);
    return K3_OK;
}

static enum k3_status move_into_place(struct writer *w, const char *dir, struct k3_error *err)
{
    if (rename(w->tmp, dir) != 0) {
        if (errno == EEXIST || errno == ENOTEMPTY)
            return k3_fail(err, K3_FAILED, "%s exists and is not empty; name another folder or "
                           "remove it", dir);
        return k3_fail(err, K3_FAILED, "cannot rename %s to %s: %s", w->tmp, dir, strerror(errno));
    }
    w->tmp[0] = '\0';
    return K3_OK;
}

enum k3_status k3_synth_write(const struct k3_synth *s, const char *dir, k3_progress_fn progress,
                              void *ud, struct k3_error *err)
{
    struct writer w = {.s = s, .progress = progress, .ud = ud};
    enum k3_status st = synth_plan_make(s, &w.plan, err);
    if (st == K3_OK)
        st = make_temporary(&w, dir, err);
    if (st == K3_OK)
        st = write_texts(&w, err);
    if (st == K3_OK)
        st = write_shards(&w, err);
    if (st == K3_OK)
        st = move_into_place(&w, dir, err);
    if (w.tmp[0])
        k3_synth_remove(w.tmp);
    free(w.chunk);
    synth_plan_free(&w.plan);
    return st;
}
