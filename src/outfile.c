/* outfile.c - see outfile.h. */
#include <config.h>

#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paths.h"

/* The temporary files there are, so that a second signal need not leave them behind. */
#define OPEN_MAX_FILES 8
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static char *list[OPEN_MAX_FILES];

static void remember(char *temp)
{
    pthread_mutex_lock(&list_lock);
    for (size_t i = 0; i < OPEN_MAX_FILES; i++) {
        if (list[i] == NULL) {
            list[i] = temp;
            break;
        }
    }
    pthread_mutex_unlock(&list_lock);
}

static void forget(const char *temp)
{
    pthread_mutex_lock(&list_lock);
    for (size_t i = 0; i < OPEN_MAX_FILES; i++)
        if (list[i] == temp)
            list[i] = NULL;
    pthread_mutex_unlock(&list_lock);
}

void outfile_remove_all(void)
{
    pthread_mutex_lock(&list_lock);
    for (size_t i = 0; i < OPEN_MAX_FILES; i++)
        if (list[i] != NULL)
            unlink(list[i]);
    pthread_mutex_unlock(&list_lock);
}

static enum k3_status fail_errno(const char *path, struct k3_error *err)
{
    return k3_fail(err, K3_FAILED, "%s: the file cannot be written: %s", path, strerror(errno));
}

static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

/* Makes the temporary file, which proves that the folder can be written before hours of work. */
enum k3_status outfile_reserve(struct outfile *o, const char *path, struct k3_error *err)
{
    memset(o, 0, sizeof *o);
    o->path = path_format(err, "%s", path);
    if (o->path == NULL)
        return err->status;
    if (is_special(path))
        return K3_OK;
    char *temp = path_format(err, "%s.%ld.tmp", path, (long)getpid());
    if (temp == NULL) {
        outfile_abort(o);
        return err->status;
    }
    const int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        fail_errno(path, err);
        free(temp);
        outfile_abort(o);
        return err->status;
    }
    close(fd);
    o->temp = temp;
    remember(temp);
    return K3_OK;
}

const char *outfile_name(const struct outfile *o)
{
    return o->temp != NULL ? o->temp : o->path;
}

enum k3_status outfile_open(struct outfile *o, const char *path, struct k3_error *err)
{
    if (outfile_reserve(o, path, err) != K3_OK)
        return err->status;
    o->f = fopen(outfile_name(o), "we");
    if (o->f == NULL) {
        fail_errno(path, err);
        outfile_abort(o);
        return err->status;
    }
    return K3_OK;
}

enum k3_status outfile_commit(struct outfile *o, struct k3_error *err)
{
    if (o->path == NULL)
        return K3_OK;
    enum k3_status status = K3_OK;
    if (o->f != NULL) {
        const bool bad = ferror(o->f) != 0 || fflush(o->f) != 0;
        if (fclose(o->f) != 0 || bad)
            status = fail_errno(o->path, err);
        o->f = NULL;
    }
    if (status == K3_OK && o->temp != NULL) {
        if (rename(o->temp, o->path) != 0) {
            status = fail_errno(o->path, err);
        } else {
            forget(o->temp);
            free(o->temp);
            o->temp = NULL;
        }
    }
    outfile_abort(o);
    return status;
}

void outfile_abort(struct outfile *o)
{
    if (o->f != NULL)
        fclose(o->f);
    if (o->temp != NULL) {
        unlink(o->temp);
        forget(o->temp);
    }
    free(o->temp);
    free(o->path);
    memset(o, 0, sizeof *o);
}
