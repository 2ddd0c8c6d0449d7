/* saved.c - see saved.h. */
#include <config.h>

#include "saved.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paths.h"
#include "sessions.h"

#define SUFFIX ".jsonl"
#define TITLE_COLUMNS 200

static int latest_first(const void *a, const void *b)
{
    const struct saved_session *x = a, *y = b;
    if (x->used != y->used)
        return x->used < y->used ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Appends the session of this file, if it is one. */
static enum k3_status add_file(int dir, const char *file, struct saved_session **list, size_t *n,
                               struct k3_error *err)
{
    struct stat st;
    const size_t len = strlen(file), suffix = strlen(SUFFIX);
    if (file[0] == '.' || len <= suffix || len - suffix >= SAVED_NAME_CAP ||
        strcmp(file + len - suffix, SUFFIX) != 0 || fstatat(dir, file, &st, 0) != 0 ||
        !S_ISREG(st.st_mode))
        return K3_OK;
    if (*n % 64 == 0) {
        struct saved_session *more = realloc(*list, (*n + 64) * sizeof *more);
        if (more == NULL)
            return k3_fail_memory(err, "the list of sessions", (*n + 64) * sizeof *more);
        *list = more;
    }
    struct saved_session *s = &(*list)[(*n)++];
    *s = (struct saved_session){.used = st.st_mtime, .bytes = (uint64_t)st.st_size};
    memcpy(s->name, file, len - suffix);
    return K3_OK;
}

enum k3_status saved_list(struct saved_session **list, size_t *n, struct k3_error *err)
{
    *list = NULL;
    *n = 0;
    char *path = transcript_folder(err);
    if (path == NULL)
        return err->status;
    DIR *d = opendir(path);
    enum k3_status status = K3_OK;
    if (d == NULL && errno != ENOENT)
        status = k3_fail(err, K3_FAILED, "%s: %s", path, strerror(errno));
    for (const struct dirent *e; status == K3_OK && d != NULL && (e = readdir(d)) != NULL;)
        status = add_file(dirfd(d), e->d_name, list, n, err);
    if (d != NULL)
        closedir(d);
    free(path);
    if (status == K3_OK && *n > 1)
        qsort(*list, *n, sizeof **list, latest_first);
    if (status != K3_OK) {
        free(*list);
        *list = NULL;
        *n = 0;
    }
    return status;
}

enum k3_status saved_read(const char *name, size_t *messages, char *title, size_t cap,
                          struct k3_error *err)
{
    struct transcript_contents c;
    if (sessions_load(name, &c, err) != K3_OK)
        return err->status;
    *messages = c.conversation.n;
    sessions_title(&c.conversation, TITLE_COLUMNS, title, cap);
    conversation_free(&c.conversation);
    return K3_OK;
}

enum k3_status saved_check_name(const char *name, struct k3_error *err)
{
    return transcript_check_name(name, err);
}

/* A new file, or NULL. *full: its path, malloc'ed. */
static FILE *create_file(const char *path, char **full, struct k3_error *err)
{
    *full = path_expand_home(path, err);
    if (*full == NULL)
        return NULL;
    const int fd = open(*full, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
    if (f == NULL) {
        k3_fail(err, K3_FAILED, "%s: %s", *full, strerror(errno));
        if (fd >= 0)
            close(fd);
    }
    return f;
}

/* Closes f; what could not be written whole is removed. */
static enum k3_status finish_file(FILE *f, const char *full, enum k3_status status,
                                  struct k3_error *err)
{
    const bool bad = fflush(f) != 0 || ferror(f);
    const int why = errno;
    if ((fclose(f) != 0 || bad) && status == K3_OK)
        status = k3_fail(err, K3_FAILED, "%s: %s", full, strerror(why));
    if (status != K3_OK)
        unlink(full);
    return status;
}

enum k3_status saved_export(const char *name, const char *path, struct k3_error *err)
{
    struct transcript_contents c;
    char *full = NULL;
    const char *dot = strrchr(path, '.');
    const char *format = dot && strcmp(dot, ".jsonl") == 0 ? "jsonl"
                         : dot && strcmp(dot, ".txt") == 0 ? "txt" : "md";
    if (sessions_load(name, &c, err) != K3_OK)
        return err->status;
    FILE *f = create_file(path, &full, err);
    enum k3_status status = err->status;
    if (f != NULL)
        status = finish_file(f, full, sessions_export(&c.conversation, name, format, f, err), err);
    conversation_free(&c.conversation);
    free(full);
    return status;
}

enum k3_status saved_write(const char *path, const char *s, size_t len, struct k3_error *err)
{
    char *full = NULL;
    FILE *f = create_file(path, &full, err);
    enum k3_status status = err->status;
    if (f != NULL) {
        fwrite(s, 1, len, f);
        status = finish_file(f, full, K3_OK, err);
    }
    free(full);
    return status;
}
