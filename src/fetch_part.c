/* fetch_part.c - see fetch_part.h. */
#include <config.h>

#include "fetch_part.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "paths.h"

#define WINDOW (UINT64_C(32) << 20) /* of a file: written out, then dropped from the page cache */
#define TAG_CAP (HTTP_ETAG + 64)

/* The version as one line: its checksum if it is known, else what the server calls it. */
static void make_tag(const struct job *j, char tag[TAG_CAP])
{
    if (j->sha256[0] != '\0')
        snprintf(tag, TAG_CAP, "%" PRIu64 " sha256 %s\n", j->size, j->sha256);
    else
        snprintf(tag, TAG_CAP, "%" PRIu64 " etag %s\n", j->size, j->etag);
}

static bool tag_fits(const char *path, const struct job *j)
{
    char want[TAG_CAP], have[TAG_CAP + 1];
    make_tag(j, want);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    const size_t n = fread(have, 1, sizeof have - 1, f);
    fclose(f);
    have[n] = '\0';
    return strcmp(have, want) == 0;
}

uint64_t part_kept(const char *path, const struct job *j)
{
    struct k3_error err = {0};
    struct stat st;
    char *part = path_format(&err, "%s.part", path), *tag = path_format(&err, "%s.part.tag", path);
    uint64_t kept = 0;
    if (part != NULL && tag != NULL && stat(part, &st) == 0 && S_ISREG(st.st_mode) &&
        (uint64_t)st.st_size <= j->size && tag_fits(tag, j))
        kept = (uint64_t)st.st_size;
    free(part);
    free(tag);
    return kept;
}

void part_forget(const char *path)
{
    struct k3_error err = {0};
    char *part = path_format(&err, "%s.part", path), *tag = path_format(&err, "%s.part.tag", path);
    if (part != NULL)
        (void)unlink(part);
    if (tag != NULL)
        (void)unlink(tag);
    free(part);
    free(tag);
}

/* ---- errors ------------------------------------------------------------------------------ */

static enum k3_status fail_write(const char *path, int why, struct k3_error *err)
{
    const char *todo = why == ENOSPC || why == EDQUOT ? "make room and run the command again"
                       : why == EFBIG ? "the file size limit or the file system does not allow files "
                                        "of that size"
                                      : "look after the disk and run the command again";
    return k3_fail(err, K3_FAILED, "%s: cannot be written: %s; %s (what is there is kept)", path,
                   strerror(why), todo);
}

/* ---- opening ----------------------------------------------------------------------------- */

static enum k3_status write_tag(const struct part *p, const struct job *j, struct k3_error *err)
{
    char tag[TAG_CAP];
    make_tag(j, tag);
    FILE *f = fopen(p->tag, "we");
    if (f == NULL)
        return fail_write(p->tag, errno, err);
    const bool good = fputs(tag, f) >= 0;
    const int why = errno;
    if (fclose(f) != 0)
        return fail_write(p->tag, errno, err);
    return good ? K3_OK : fail_write(p->tag, why, err);
}

static enum k3_status read_back(struct part *p, uint64_t kept, const struct digest_watch *watch,
                                struct k3_error *err)
{
    if (digest_begin(&p->sum, err) != K3_OK)
        return err->status;
    if (kept > 0 && digest_add_file(&p->sum, p->fd, p->part, kept, watch, err) != K3_OK)
        return err->status;
    p->at = p->synced = kept;
    return K3_OK;
}

enum k3_status part_open(struct part *p, const char *path, const struct job *j,
                         const struct digest_watch *watch, struct k3_error *err)
{
    *p = (struct part){.fd = -1};
    p->path = path_format(err, "%s", path);
    p->part = path_format(err, "%s.part", path);
    p->tag = path_format(err, "%s.part.tag", path);
    if (p->path == NULL || p->part == NULL || p->tag == NULL)
        return err->status;
    const uint64_t kept = part_kept(path, j);
    if (kept == 0 && unlink(p->part) != 0 && errno != ENOENT)
        return fail_write(p->part, errno, err);
    p->fd = open(p->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (p->fd < 0)
        return fail_write(p->part, errno, err);
    if (kept == 0 && write_tag(p, j, err) != K3_OK)
        return err->status;
    return read_back(p, kept, watch, err);
}

void part_close(struct part *p)
{
    digest_free(&p->sum);
    if (p->fd >= 0)
        close(p->fd);
    free(p->path);
    free(p->part);
    free(p->tag);
    *p = (struct part){.fd = -1};
}

/* ---- growing ----------------------------------------------------------------------------- */

/* A terabyte must not push everything else out of memory: each window is sent to the disk when it is
 * full, and dropped when it has got there, one window later. */
static void write_out(struct part *p)
{
    while (p->at - p->synced >= 2 * WINDOW) {
        const off_t from = (off_t)p->synced, n = (off_t)WINDOW;
        (void)sync_file_range(p->fd, from + n, n, SYNC_FILE_RANGE_WRITE);
        (void)sync_file_range(p->fd, from, n,
                              SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                  SYNC_FILE_RANGE_WAIT_AFTER);
        (void)posix_fadvise(p->fd, from, n, POSIX_FADV_DONTNEED);
        p->synced += WINDOW;
    }
}

enum k3_status part_add(struct part *p, const void *bytes, size_t n, struct k3_error *err)
{
    const char *from = bytes;
    for (size_t done = 0; done < n;) {
        const ssize_t put = pwrite(p->fd, from + done, n - done, (off_t)(p->at + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            const int why = put < 0 ? errno : ENOSPC;
            /* The digest knows only what came before: the next run takes the part from there. */
            (void)!ftruncate(p->fd, (off_t)p->at);
            return fail_write(p->part, why, err);
        }
        done += (size_t)put;
    }
    p->at += n;
    write_out(p);
    return digest_add(&p->sum, bytes, n, err);
}

enum k3_status part_restart(struct part *p, struct k3_error *err)
{
    p->at = p->synced = 0;
    if (ftruncate(p->fd, 0) != 0)
        return fail_write(p->part, errno, err);
    return digest_begin(&p->sum, err);
}

bool part_same(const struct part *p, uint64_t from, const void *bytes, size_t n)
{
    char have[4096];
    const char *want = bytes;
    for (size_t done = 0; done < n;) {
        const size_t m = n - done < sizeof have ? n - done : sizeof have;
        const ssize_t got = pread(p->fd, have, m, (off_t)(from + done));
        if (got <= 0 || memcmp(have, want + done, (size_t)got) != 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

/* ---- the end ----------------------------------------------------------------------------- */

enum k3_status part_digest(struct part *p, char hex[DIGEST_HEX], struct k3_error *err)
{
    return digest_end(&p->sum, hex, err);
}

/* The folder is not synced: after a power cut the file may have its old name, and no more is lost. */
enum k3_status part_finish(struct part *p, struct stat *st, struct k3_error *err)
{
    if (fsync(p->fd) != 0)
        return fail_write(p->part, errno, err);
    (void)posix_fadvise(p->fd, 0, 0, POSIX_FADV_DONTNEED);
    if (rename(p->part, p->path) != 0)
        return k3_fail(err, K3_FAILED, "%s: cannot be renamed to %s: %s", p->part, p->path,
                       strerror(errno));
    if (fstat(p->fd, st) != 0)
        return fail_write(p->path, errno, err);
    (void)unlink(p->tag);
    return K3_OK;
}
