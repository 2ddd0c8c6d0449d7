/* fetch_file.c - one file from the server into its part, and to its name; see fetch.h. */
#include <config.h>

#include "fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fetch_part.h"
#include "paths.h"
#include "size.h"

#define OVERLAP 65536u /* bytes of a kept part that are asked for again, to see that it goes on */
#define WRONG_MAX 2    /* downloads of one file with wrong contents before it is given up */

/* What one request has come to. */
enum outcome {
    WHOLE,
    AGAIN,     /* try again, from where the part ends */
    ANEW,      /* try again, from the start */
    HOPELESS,  /* this file cannot be had */
    NO_DISK,   /* the part cannot be written: nothing can be fetched any more */
    STOPPED,
};

/* A file being fetched by one thread. */
struct work {
    struct fetch *f;
    struct job *j;
    struct part part;
    uint64_t next;       /* the byte of the file that comes next */
    bool answered;       /* the head of this answer has been looked at */
    enum outcome outcome; /* why the sink ended the transfer */
    struct k3_error err;
};

/* ---- the bytes as they come -------------------------------------------------------------- */

static bool end_with(struct work *w, enum outcome o)
{
    w->outcome = o;
    return false;
}

static bool restart(struct work *w)
{
    atomic_fetch_sub(&w->f->crew.meter.done, (uint_fast64_t)w->part.at);
    if (part_restart(&w->part, &w->err) != K3_OK)
        return end_with(w, NO_DISK);
    w->next = 0;
    return true;
}

/* Does the answer give what was asked for? */
static bool look_at_head(struct work *w, const struct http_reply *r)
{
    const struct job *j = w->j;
    w->answered = true;
    if (r->total != HTTP_UNKNOWN && r->total != j->size) {
        k3_fail(&w->err, K3_FAILED,
                "%s: the server now says %" PRIu64 " bytes, and said %" PRIu64 " before", j->name,
                r->total, j->size);
        return end_with(w, ANEW);
    }
    if (r->status == 200 && w->next > 0) /* it ignores ranges, or the file has changed */
        return restart(w);
    if (r->status == 206 && r->from != w->next) {
        k3_fail(&w->err, K3_FAILED,
                "%s: the server sends from byte %" PRIu64 " instead of %" PRIu64, j->name, r->from,
                w->next);
        return end_with(w, AGAIN);
    }
    return true;
}

/* Bytes that are in the part already are compared instead of kept. */
static bool compare(struct work *w, const char **bytes, size_t *n)
{
    if (w->next >= w->part.at)
        return true;
    const uint64_t left = w->part.at - w->next;
    const size_t m = left < *n ? (size_t)left : *n;
    if (!part_same(&w->part, w->next, *bytes, m)) {
        k3_fail(&w->err, K3_FAILED, "%s: what was kept is not what the server sends now",
                w->j->name);
        return end_with(w, ANEW);
    }
    w->next += m;
    *bytes += m;
    *n -= m;
    return true;
}

static bool take(void *ud, const struct http_reply *r, const void *bytes, size_t n)
{
    struct work *w = ud;
    const char *from = bytes;
    if (!w->answered && !look_at_head(w, r))
        return false;
    if (!compare(w, &from, &n))
        return false;
    if (n == 0)
        return true;
    if (n > w->j->size - w->part.at) {
        k3_fail(&w->err, K3_FAILED, "%s: the server sends more than the %" PRIu64
                " bytes that it told of", w->j->name, w->j->size);
        return end_with(w, ANEW);
    }
    if (part_add(&w->part, from, n, &w->err) != K3_OK)
        return end_with(w, NO_DISK);
    w->next = w->part.at;
    atomic_fetch_add(&w->f->crew.meter.done, (uint_fast64_t)n);
    atomic_fetch_add(&w->f->received, (uint_fast64_t)n);
    return true;
}

/* ---- one request ------------------------------------------------------------------------- */

/* A strong etag lets the server itself see that the part is of another version. With a checksum it
 * is not needed, and would only hurt where each of many servers has its own. */
static const char *validator(const struct job *j)
{
    const bool strong = j->etag[0] == '"';
    return j->sha256[0] == '\0' && strong ? j->etag : NULL;
}

static enum outcome request(struct work *w, unsigned thread, bool first, uint32_t *retry_after)
{
    struct http_reply r;
    const uint64_t back = first && w->part.at > OVERLAP ? OVERLAP : first ? w->part.at : 0;
    const struct http_range range = {.from = w->part.at - back, .if_range = validator(w->j)};
    w->next = range.from;
    w->answered = false;
    w->outcome = AGAIN;
    const enum http_end end = http_get(&w->f->http[thread], w->j->name,
                                       range.from > 0 ? &range : NULL, take, w, &r, &w->err);
    *retry_after = r.retry_after;
    w->j->status = r.status;
    if (end == HTTP_ENOUGH)
        return w->outcome;
    if (end == HTTP_STOPPED)
        return STOPPED;
    if (end == HTTP_REFUSED)
        return r.status == 416 ? ANEW : HOPELESS;
    if (end == HTTP_AGAIN)
        return AGAIN;
    if (w->part.at == w->j->size)
        return WHOLE;
    k3_fail(&w->err, K3_FAILED, "%s: the server ended at byte %" PRIu64 " of %" PRIu64, w->j->name,
            w->part.at, w->j->size);
    return AGAIN;
}

/* Requests until the part is whole, or there is no point. */
static enum outcome fill(struct work *w, unsigned thread)
{
    struct patience p = {0};
    bool first = w->part.at > 0;
    /* A part that is whole already is not asked for again: size and checksum decide. */
    while (w->part.at < w->j->size) {
        uint32_t retry_after = 0;
        const uint64_t before = w->part.at;
        const enum outcome o = request(w, thread, first, &retry_after);
        if (o != AGAIN && o != ANEW)
            return o;
        first = first && o == AGAIN && w->next < w->part.at; /* not all of it compared yet */
        if (o == ANEW && !restart(w))
            return w->outcome;
        if (o == AGAIN && w->part.at > before)
            p.tries = 0;
        if (!fetch_wait(w->f, &p, retry_after, &w->err))
            return atomic_load(&w->f->crew.stop) ? STOPPED : HOPELESS;
    }
    return WHOLE;
}

/* ---- the whole --------------------------------------------------------------------------- */

static void note_done(struct work *w, uint64_t bytes, double seconds)
{
    char size[32], rate[32];
    const double pace = seconds > 0 ? (double)bytes / seconds : 0;
    meter_note(&w->f->crew.meter, "%s: %s, %s/s, %s", w->j->name,
               size_format(size, sizeof size, w->j->size), size_format(rate, sizeof rate,
               (uint64_t)pace), w->j->sha256[0] != '\0' ? "checksum right" : "size right");
}

static enum outcome finish(struct work *w, const char *hex)
{
    struct stat st;
    if (part_finish(&w->part, &st, &w->err) != K3_OK)
        return NO_DISK;
    if (seen_put(&w->f->seen, w->j->name, &st, hex, w->j->etag, &w->err) != K3_OK)
        return NO_DISK;
    return WHOLE;
}

/* Until the contents are right; wrong ones are thrown away. */
static enum outcome fetch_whole(struct work *w, unsigned thread)
{
    for (int wrong = 1;; wrong++) {
        char hex[DIGEST_HEX];
        const enum outcome o = fill(w, thread);
        if (o != WHOLE)
            return o;
        if (part_digest(&w->part, hex, &w->err) != K3_OK)
            return HOPELESS;
        if (w->j->sha256[0] == '\0' || strcmp(w->j->sha256, hex) == 0)
            return finish(w, hex);
        k3_fail(&w->err, K3_FAILED,
                "%s: what came has the right size and wrong contents (SHA-256 %.12s..., not %.12s...)",
                w->j->name, hex, w->j->sha256);
        if (!restart(w))
            return NO_DISK;
        if (wrong == WRONG_MAX) {
            k3_fail_in(&w->err, "twice");
            return HOPELESS;
        }
        meter_say(&w->f->crew.meter, "%s; it is fetched once more", w->err.message);
    }
}

void fetch_file(struct fetch *f, unsigned thread, struct job *j)
{
    struct work w = {.f = f, .j = j};
    const double begun = clock_now();
    const struct digest_watch watch = {&f->crew.meter.done, &f->crew.stop};
    char *path = path_format(&w.err, "%s/%s", f->dir, j->name);
    enum outcome o = NO_DISK;
    if (path != NULL) {
        const enum k3_status st = part_open(&w.part, path, j, &watch, &w.err);
        const uint64_t had = w.part.at;
        o = st == K3_OK ? fetch_whole(&w, thread) : st == K3_CANCELLED ? STOPPED : NO_DISK;
        if (o == WHOLE)
            note_done(&w, j->size - had, clock_now() - begun);
        part_close(&w.part);
    }
    if (o == WHOLE) {
        j->state = JOB_HERE;
        atomic_fetch_add(&f->fetched, 1);
        atomic_fetch_add(&f->crew.meter.files_done, 1);
    } else if (o != STOPPED) {
        fetch_fail(f, j, &w.err);
        if (o == NO_DISK)
            atomic_store(&f->crew.stop, true);
    }
    free(path);
}
