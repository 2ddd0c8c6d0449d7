/* fetch.c - the order of things; see fetch.h. */
#include <config.h>

#include "fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../engine/storage/checkpoint.h"
#include "fetch_source.h"
#include "paths.h"
#include "size.h"

#define WAIT_MAX 60.0           /* seconds between two tries */
#define RETRY_AFTER_MAX 600u    /* of what a server may ask for */
#define SPACE_MARGIN (16u << 20) /* of the disk, for everything else */

/* ---- for the parts ----------------------------------------------------------------------- */

void fetch_fail(struct fetch *f, struct job *j, const struct k3_error *why)
{
    j->state = JOB_FAILED;
    pthread_mutex_lock(&f->lock);
    if (f->failed++ == 0)
        f->error = *why;
    pthread_mutex_unlock(&f->lock);
    meter_say(&f->crew.meter, "k3chat: %s", why->message);
}

bool fetch_wait(struct fetch *f, struct patience *p, uint32_t retry_after,
                const struct k3_error *why)
{
    if (atomic_load(&f->crew.stop) || p->tries >= f->ask->retries)
        return false;
    double seconds = f->ask->retry_wait;
    for (unsigned i = 0; i < p->tries && seconds < WAIT_MAX; i++)
        seconds *= 2;
    seconds = seconds < WAIT_MAX ? seconds : WAIT_MAX;
    if (retry_after > seconds)
        seconds = retry_after < RETRY_AFTER_MAX ? retry_after : RETRY_AFTER_MAX;
    p->tries++;
    meter_say(&f->crew.meter, "%s; again in %.3g s (%u of %u)", why->message, seconds, p->tries,
              (unsigned)f->ask->retries);
    return crew_sleep(&f->crew, seconds);
}

/* ---- the list of files ------------------------------------------------------------------- */

static enum k3_status add_job(struct fetch *f, const char *name, bool needed, struct k3_error *err)
{
    struct job *v = realloc(f->jobs, (f->n + 1) * sizeof *v);
    if (v == NULL)
        return k3_fail_memory(err, "the list of files", (f->n + 1) * sizeof *v);
    f->jobs = v;
    v[f->n] = (struct job){.name = path_format(err, "%s", name), .needed = needed};
    if (v[f->n].name == NULL)
        return err->status;
    f->n++;
    return K3_OK;
}

static void forget_jobs(struct fetch *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->jobs[i].name);
    free(f->jobs);
    f->jobs = NULL;
    f->n = 0;
}

static enum k3_status list_files(struct fetch *f, struct ckfiles *ck, struct k3_error *err)
{
    if (ckfiles_read(ck, f->dir, err) != K3_OK)
        return err->status;
    forget_jobs(f);
    if (ck->index && add_job(f, CKFILES_INDEX, true, err) != K3_OK)
        return err->status;
    for (size_t i = 0; i < n_ckfiles_small; i++)
        if (add_job(f, ckfiles_small[i].name, ckfiles_small[i].needed, err) != K3_OK)
            return err->status;
    for (size_t i = 0; i < ck->n; i++)
        if (add_job(f, ck->shards[i], true, err) != K3_OK)
            return err->status;
    return K3_OK;
}

/* ---- steps over all files ---------------------------------------------------------------- */

static void work_probe(void *ud, unsigned thread, size_t i)
{
    struct fetch *f = ud;
    fetch_probe(f, thread, &f->jobs[i]);
    atomic_fetch_add(&f->crew.meter.files_done, 1);
}

static void work_check(void *ud, unsigned thread, size_t i)
{
    struct fetch *f = ud;
    (void)thread;
    if (f->jobs[i].state == JOB_CHECK)
        fetch_check(f, &f->jobs[i]);
}

static void work_get(void *ud, unsigned thread, size_t i)
{
    struct fetch *f = ud;
    if (f->jobs[i].state == JOB_GET)
        fetch_file(f, thread, &f->jobs[i]);
}

/* What the crew came to: a failure of a file that is met on the way ends the run after the step. */
static enum k3_status step(struct fetch *f, void (*work)(void *, unsigned, size_t),
                           struct k3_error *err)
{
    const enum k3_status st = crew_run(&f->crew, f->threads, f->n, work, f, err);
    if (f->failed > 0)
        *err = f->error;
    return f->failed > 0 ? err->status : st;
}

static uint64_t sum_of(const struct fetch *f, enum job_state state, bool kept, unsigned *files)
{
    uint64_t bytes = 0;
    *files = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->jobs[i].state != state)
            continue;
        bytes += kept ? f->jobs[i].kept : f->jobs[i].size;
        ++*files;
    }
    return bytes;
}

/* Asks the server about every file and looks at what is here. */
static enum k3_status survey(struct fetch *f, struct k3_error *err)
{
    unsigned files;
    meter_begin(&f->crew.meter, "asking the server", 0, (unsigned)f->n);
    if (step(f, work_probe, err) != K3_OK)
        return err->status;
    for (size_t i = 0; i < f->n; i++)
        if (f->jobs[i].state == JOB_GET)
            fetch_look(f, &f->jobs[i]);
    const uint64_t check = sum_of(f, JOB_CHECK, false, &files);
    if (files > 0) {
        meter_note(&f->crew.meter, "%u files are here already; their contents are checked", files);
        meter_begin(&f->crew.meter, "checking", check, files);
        if (step(f, work_check, err) != K3_OK)
            return err->status;
    }
    return f->failed > 0 ? (*err = f->error).status : K3_OK;
}

/* ---- room -------------------------------------------------------------------------------- */

static enum k3_status check_room(const struct fetch *f, uint64_t missing, struct k3_error *err)
{
    struct statvfs v;
    char need[32], have[32];
    if (missing == 0)
        return K3_OK;
    if (statvfs(f->dir, &v) != 0)
        return k3_fail(err, K3_FAILED, "%s: free space cannot be told: %s", f->dir, strerror(errno));
    const uint64_t free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
    if (free_bytes >= SPACE_MARGIN && free_bytes - SPACE_MARGIN >= missing)
        return K3_OK;
    return k3_fail(err, K3_FAILED,
                   "%s: %s are still to be fetched and the disk has %s free; make room, or name a "
                   "folder on another disk (nothing was fetched)", f->dir,
                   size_format(need, sizeof need, missing),
                   size_format(have, sizeof have, free_bytes));
}

/* A server that tells sizes which cannot hold the tensors of the index is not asked for days. */
static enum k3_status check_total(const struct fetch *f, const struct ckfiles *ck,
                                  struct k3_error *err)
{
    uint64_t shards = 0;
    for (size_t i = f->n - ck->n; i < f->n; i++) /* the last ones */
        shards += f->jobs[i].size;
    if (shards >= ck->total_size)
        return K3_OK;
    return k3_fail(err, K3_FAILED,
                   "%s: the server's shards have %" PRIu64 " bytes together, and the tensors of the "
                   "index alone %" PRIu64 " (metadata.total_size): what it has is not whole",
                   f->site.base, shards, ck->total_size);
}

/* ---- the whole --------------------------------------------------------------------------- */

static enum k3_status open_connections(struct fetch *f, struct k3_error *err)
{
    f->threads = f->ask->connections;
    f->http = calloc(f->threads, sizeof *f->http);
    if (f->http == NULL)
        return k3_fail_memory(err, "the connections", f->threads * sizeof *f->http);
    for (unsigned i = 0; i < f->threads; i++)
        if (http_open(&f->http[i], &f->site, &f->crew.stop, err) != K3_OK)
            return err->status;
    return K3_OK;
}

/* The index first: it names all else. A server without one has the checkpoint in a single file. */
static enum k3_status get_index(struct fetch *f, struct k3_error *err)
{
    unsigned files;
    if (add_job(f, CKFILES_INDEX, false, err) != K3_OK || survey(f, err) != K3_OK)
        return err->status;
    if (f->commit[0] != '\0' && fetch_source_pin(f->ask, &f->site, f->commit, err) != K3_OK)
        return err->status;
    if (check_room(f, sum_of(f, JOB_GET, false, &files), err) != K3_OK)
        return err->status;
    meter_begin(&f->crew.meter, "fetching", sum_of(f, JOB_GET, false, &files), files);
    return files == 0 ? K3_OK : step(f, work_get, err);
}

static enum k3_status get_files(struct fetch *f, struct k3_error *err)
{
    unsigned files;
    char a[32], b[32];
    const uint64_t total = sum_of(f, JOB_GET, false, &files);
    const uint64_t kept = sum_of(f, JOB_GET, true, &files);
    if (check_room(f, total - kept, err) != K3_OK)
        return err->status;
    if (files == 0)
        return K3_OK;
    meter_say(&f->crew.meter, "%u of %zu files to fetch: %s%s%s%s", files, f->n,
              size_format(a, sizeof a, total), kept > 0 ? ", " : "",
              kept > 0 ? size_format(b, sizeof b, kept) : "", kept > 0 ? " of them here already" : "");
    if (f->ask->dry_run)
        return K3_OK;
    meter_begin(&f->crew.meter, "fetching", total, files);
    return step(f, work_get, err);
}

static enum k3_status get_all(struct fetch *f, struct k3_error *err)
{
    struct ckfiles ck = {0};
    enum k3_status st = fetch_find_sums(f, err);
    if (st == K3_OK)
        st = get_index(f, err);
    if (st == K3_OK)
        st = list_files(f, &ck, err);
    if (st == K3_OK)
        st = survey(f, err);
    if (st == K3_OK)
        st = check_total(f, &ck, err);
    if (st == K3_OK)
        st = get_files(f, err);
    ckfiles_free(&ck);
    return st;
}

static enum k3_status begin(struct fetch *f, struct k3_error *err)
{
    if (fetch_source_open(f->ask, &f->site, err) != K3_OK || path_make_dirs(f->dir, err) != K3_OK ||
        crew_open(&f->crew, err) != K3_OK || seen_open(&f->seen, f->dir, true, err) != K3_OK)
        return err->status;
    if (f->seen.fd < 0)
        return k3_fail(err, K3_FAILED, "%s: cannot be written: %s", f->seen.path,
                       strerror(f->seen.why));
    char *words = fetch_source_words(f->ask, &f->site, err);
    const enum k3_status st =
        words == NULL ? err->status : seen_put_source(&f->seen, words, err);
    free(words);
    return st == K3_OK ? open_connections(f, err) : st;
}

static void end(struct fetch *f)
{
    for (unsigned i = 0; f->http != NULL && i < f->threads; i++)
        http_close(&f->http[i]);
    free(f->http);
    forget_jobs(f);
    sumlist_free(&f->sums);
    if (f->crew.signals >= 0)
        crew_close(&f->crew);
    seen_close(&f->seen);
    http_site_free(&f->site);
    pthread_mutex_destroy(&f->lock);
}

/* Sizes and checksums are right; the headers tell whether the server's files belong together. */
static enum k3_status check_whole(const struct fetch *f, struct k3_error *err)
{
    struct k3_checkpoint *c = k3_checkpoint_open(f->dir, NULL, NULL, err);
    if (c == NULL)
        return k3_fail_in(err, "everything was fetched, but it does not fit together");
    k3_checkpoint_close(c);
    return K3_OK;
}

static void print_verdict(const struct fetch *f)
{
    char a[32], b[32];
    unsigned files, summed = 0;
    const uint64_t bytes = sum_of(f, JOB_HERE, false, &files);
    for (size_t i = 0; i < f->n; i++)
        summed += f->jobs[i].state == JOB_HERE && f->jobs[i].sha256[0] != '\0';
    printf("whole: %u files, %s; fetched now: %u files, %s; checksums known and right: %u of %u; "
           "next: k3chat doctor --model ", files, size_format(a, sizeof a, bytes),
           atomic_load(&f->fetched), size_format(b, sizeof b, atomic_load(&f->received)), summed,
           files);
    fetch_print_word(stdout, f->dir);
    putchar('\n');
}

/* Files that failed were told of one by one. */
static enum k3_status sum_up(const struct fetch *f, enum k3_status st, struct k3_error *err)
{
    char size[32];
    if (f->failed > 0)
        return k3_fail(err, f->error.status,
                       "%u %s could not be fetched (see above); what came is kept, and the same "
                       "command fetches the rest", f->failed, f->failed == 1 ? "file" : "files");
    if (st == K3_CANCELLED)
        return k3_fail(err, st, "stopped; %s came in this run and are kept, the same command goes on "
                       "from there", size_format(size, sizeof size, atomic_load(&f->received)));
    return st;
}

enum k3_status fetch_run(const struct fetch_request *ask, struct k3_error *err)
{
    struct fetch f = {.ask = ask, .dir = ask->dir};
    pthread_mutex_init(&f.lock, NULL);
    f.seen.fd = f.crew.signals = -1;
    enum k3_status st = begin(&f, err);
    if (st == K3_OK)
        st = sum_up(&f, get_all(&f, err), err);
    if (st == K3_OK && !ask->dry_run) {
        st = fetch_keep_sums(&f, err);
        if (st == K3_OK)
            st = check_whole(&f, err);
        if (st == K3_OK)
            print_verdict(&f);
    }
    end(&f);
    return st;
}
