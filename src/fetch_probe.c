/* fetch_probe.c - what the server has and what is here already; see fetch.h. */
#include <config.h>

#include "fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fetch_part.h"
#include "paths.h"

/* ---- the server -------------------------------------------------------------------------- */

/* A server that ignores the range would send all of the file: what is to be known is in the head. */
static bool head_only(void *ud, const struct http_reply *r, const void *bytes, size_t n)
{
    (void)ud;
    (void)bytes;
    (void)n;
    return r->status == 206;
}

static enum k3_status take_size(struct job *j, const struct http_reply *r, struct k3_error *err)
{
    if (r->total == HTTP_UNKNOWN && r->linked_size == HTTP_UNKNOWN)
        return k3_fail(err, K3_FAILED, "%s: the server does not tell the file's size", j->name);
    if (r->total != HTTP_UNKNOWN && r->linked_size != HTTP_UNKNOWN && r->total != r->linked_size)
        return k3_fail(err, K3_FAILED,
                       "%s: the server tells two sizes, %" PRIu64 " and %" PRIu64 " bytes", j->name,
                       r->total, r->linked_size);
    j->size = r->total != HTTP_UNKNOWN ? r->total : r->linked_size;
    if (j->size > INT64_MAX)
        return k3_fail(err, K3_FAILED, "%s: the size that the server tells is no file's", j->name);
    return K3_OK;
}

/* The list and the server may both say what the file must be; they must say the same. */
static enum k3_status take_sum(struct fetch *f, struct job *j, const char *told,
                               struct k3_error *err)
{
    const struct sum *s = sumlist_find(&f->sums, j->name);
    if (s != NULL && told[0] != '\0' && strcmp(s->hex, told) != 0)
        return k3_fail(err, K3_FAILED,
                       "%s: %s says that its SHA-256 is %.12s..., the server says %.12s...: the list "
                       "is of another version. Fetch that version (--revision), or remove the list "
                       "if the new one is wanted", j->name, f->sums.path, s->hex, told);
    memcpy(j->sha256, s != NULL ? s->hex : told, DIGEST_HEX);
    return K3_OK;
}

static enum k3_status take_commit(struct fetch *f, const struct http_reply *r, struct k3_error *err)
{
    enum k3_status st = K3_OK;
    pthread_mutex_lock(&f->lock);
    if (f->commit[0] == '\0')
        memcpy(f->commit, r->commit, sizeof f->commit);
    else if (r->commit[0] != '\0' && strcmp(f->commit, r->commit) != 0)
        st = k3_fail(err, K3_FAILED,
                     "%s: the repository changes while it is being fetched (%.12s is now %.12s); "
                     "run the command again", f->site.base, f->commit, r->commit);
    pthread_mutex_unlock(&f->lock);
    return st;
}

static enum k3_status take_reply(struct fetch *f, struct job *j, const struct http_reply *r,
                                 struct k3_error *err)
{
    if (take_size(j, r, err) != K3_OK || take_commit(f, r, err) != K3_OK ||
        take_sum(f, j, r->sha256, err) != K3_OK)
        return err->status;
    memcpy(j->etag, r->etag, sizeof j->etag);
    j->state = JOB_GET;
    return K3_OK;
}

void fetch_probe(struct fetch *f, unsigned thread, struct job *j)
{
    const struct http_range first = {.one = true};
    struct patience p = {0};
    for (;;) {
        struct http_reply r;
        struct k3_error err = {0};
        const enum http_end end = http_get(&f->http[thread], j->name, &first, head_only, NULL, &r,
                                           &err);
        j->status = r.status;
        /* Of an empty file there is no first byte. */
        const bool empty = r.status == 416 && r.total == 0;
        if (end == HTTP_DONE || end == HTTP_ENOUGH || empty) {
            if (take_reply(f, j, &r, &err) != K3_OK)
                fetch_fail(f, j, &err);
            return;
        }
        if (end == HTTP_REFUSED && (r.status == 404 || r.status == 410) && !j->needed) {
            j->state = JOB_ABSENT;
            return;
        }
        if (end == HTTP_AGAIN && fetch_wait(f, &p, r.retry_after, &err))
            continue;
        if (end != HTTP_STOPPED && !atomic_load(&f->crew.stop))
            fetch_fail(f, j, &err);
        return;
    }
}

/* ---- what is here ------------------------------------------------------------------------ */

/* Nobody says what the contents must be: what the server called the file then and now decides. */
static bool same_etag(const struct job *j, const struct seen_known *known)
{
    return j->etag[0] == '\0' || strcmp(known->etag, "-") == 0 || strcmp(known->etag, j->etag) == 0;
}

void fetch_look(struct fetch *f, struct job *j)
{
    struct stat st;
    struct seen_known known;
    struct k3_error err = {0};
    char *path = path_format(&err, "%s/%s", f->dir, j->name);
    j->state = JOB_GET;
    if (path == NULL) {
        fetch_fail(f, j, &err);
        return;
    }
    const bool whole = stat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == j->size;
    const bool remembered = whole && seen_find(&f->seen, j->name, &st, &known);
    if (whole && j->sha256[0] == '\0' && (!remembered || same_etag(j, &known)))
        j->state = JOB_HERE;
    else if (whole && j->sha256[0] != '\0' && !remembered)
        j->state = JOB_CHECK;
    else if (whole && j->sha256[0] != '\0' && strcmp(known.hex, j->sha256) == 0)
        j->state = JOB_HERE;
    if (j->state == JOB_GET)
        j->kept = part_kept(path, j);
    else if (j->state == JOB_HERE) /* ended between the file's name and the tidying up */
        part_forget(path);
    free(path);
}

void fetch_check(struct fetch *f, struct job *j)
{
    struct k3_error err = {0};
    struct stat st;
    char hex[DIGEST_HEX];
    uint64_t size = 0;
    const struct digest_watch watch = {&f->crew.meter.done, &f->crew.stop};
    char *path = path_format(&err, "%s/%s", f->dir, j->name);
    if (path == NULL || stat(path, &st) != 0) {
        j->state = JOB_GET;
    } else if (digest_file(path, &watch, hex, &size, &err) == K3_CANCELLED) {
        free(path);
        return;
    } else if (err.status != K3_OK) { /* a disk that cannot read it can perhaps be written anew */
        meter_say(&f->crew.meter, "k3chat: %s; it is fetched again", err.message);
        j->state = JOB_GET;
    } else {
        j->state = strcmp(hex, j->sha256) == 0 ? JOB_HERE : JOB_GET;
        if (seen_put(&f->seen, j->name, &st, hex, j->etag, &err) != K3_OK)
            fetch_fail(f, j, &err);
        if (j->state == JOB_HERE)
            part_forget(path);
        if (j->state == JOB_GET)
            meter_say(&f->crew.meter, "%s: its contents are not what they must be; it is fetched "
                      "again", j->name);
    }
    atomic_fetch_add(&f->crew.meter.files_done, 1);
    free(path);
}
