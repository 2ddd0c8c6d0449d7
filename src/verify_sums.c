/* verify_sums.c - see verify_sums.h. */
#include <config.h>

#include "verify_sums.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../engine/model/host.h"
#include "ckfiles.h"
#include "crew.h"
#include "fetch_source.h"
#include "paths.h"
#include "seen.h"
#include "size.h"
#include "sumlist.h"

#define MAX_THREADS 8 /* more do not make a disk faster */

enum item_state { ITEM_UNREAD, ITEM_READ, ITEM_REMEMBERED, ITEM_MISSING, ITEM_UNREADABLE };

struct item {
    char *name;
    bool needed;             /* else it is looked at only if it is there */
    enum item_state state;
    uint64_t size;
    char hex[DIGEST_HEX];    /* of what is there */
    const struct sum *want;  /* NULL = not in the list */
};

struct check {
    const char *dir;
    const struct verify_request *ask;
    struct crew crew;
    struct seen seen;
    struct sumlist list;
    struct item *items;
    size_t n;
    pthread_mutex_t lock;
    struct k3_error forget;  /* why something could not be remembered; status 0 = nothing */
};

/* ---- what there is to read --------------------------------------------------------------- */

static enum k3_status add(struct check *c, const char *name, bool needed, struct k3_error *err)
{
    struct item *v = realloc(c->items, (c->n + 1) * sizeof *v);
    if (v == NULL)
        return k3_fail_memory(err, "the list of files", (c->n + 1) * sizeof *v);
    c->items = v;
    v[c->n] = (struct item){.name = path_format(err, "%s", name), .needed = needed};
    if (v[c->n].name == NULL)
        return err->status;
    v[c->n++].want = sumlist_find(&c->list, name);
    return K3_OK;
}

/* The files of the checkpoint; what else the list names is not ours. */
static enum k3_status list_items(struct check *c, struct k3_error *err)
{
    struct ckfiles ck = {0};
    enum k3_status st = ckfiles_read(&ck, c->dir, err);
    for (size_t i = 0; i < n_ckfiles_small && st == K3_OK; i++)
        st = add(c, ckfiles_small[i].name, ckfiles_small[i].needed, err);
    if (st == K3_OK && ck.index)
        st = add(c, CKFILES_INDEX, true, err);
    for (size_t i = 0; i < ck.n && st == K3_OK; i++)
        st = add(c, ck.shards[i], true, err);
    ckfiles_free(&ck);
    return st;
}

static char *path_of(const struct check *c, const struct item *it, struct k3_error *err)
{
    return path_format(err, "%s/%s", c->dir, it->name);
}

/* Which have to be read, and how many bytes. */
static enum k3_status look(struct check *c, uint64_t *bytes, unsigned *files, struct k3_error *err)
{
    for (size_t i = 0; i < c->n; i++) {
        struct item *it = &c->items[i];
        struct seen_known known;
        struct stat st;
        char *path = path_of(c, it, err);
        if (path == NULL)
            return err->status;
        const bool there = stat(path, &st) == 0;
        free(path);
        it->size = there ? (uint64_t)st.st_size : 0;
        if (!there) {
            it->state = ITEM_MISSING;
        } else if (!c->ask->afresh && seen_find(&c->seen, it->name, &st, &known)) {
            it->state = ITEM_REMEMBERED;
            memcpy(it->hex, known.hex, DIGEST_HEX);
        } else {
            *bytes += it->size;
            ++*files;
        }
    }
    return K3_OK;
}

/* ---- reading ----------------------------------------------------------------------------- */

static void remember(struct check *c, const struct item *it, const struct stat *st)
{
    struct k3_error err = {0};
    if (seen_put(&c->seen, it->name, st, it->hex, NULL, &err) == K3_OK)
        return;
    pthread_mutex_lock(&c->lock);
    c->forget = err;
    pthread_mutex_unlock(&c->lock);
}

static void work(void *ud, unsigned thread, size_t i)
{
    struct check *c = ud;
    struct item *it = &c->items[i];
    const struct digest_watch watch = {&c->crew.meter.done, &c->crew.stop};
    struct k3_error err = {0};
    struct stat st;
    (void)thread;
    if (it->state != ITEM_UNREAD)
        return;
    char *path = path_of(c, it, &err);
    if (path != NULL && stat(path, &st) != 0)
        k3_fail(&err, K3_FAILED, "%s: %s", path, strerror(errno));
    else if (path != NULL && digest_file(path, &watch, it->hex, &it->size, &err) == K3_OK)
        it->state = ITEM_READ;
    free(path);
    if (err.status == K3_CANCELLED)
        return;
    if (it->state == ITEM_READ) {
        remember(c, it, &st);
        meter_note(&c->crew.meter, "%s: read", it->name);
    } else {
        it->state = ITEM_UNREADABLE;
        meter_say(&c->crew.meter, "k3chat: %s", err.message);
    }
    atomic_fetch_add(&c->crew.meter.files_done, 1);
}

static unsigned count(const struct check *c, enum item_state state)
{
    unsigned n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->items[i].state == state;
    return n;
}

static enum k3_status read_all(struct check *c, struct k3_error *err)
{
    char size[32];
    uint64_t bytes = 0;
    unsigned files = 0;
    if (look(c, &bytes, &files, err) != K3_OK)
        return err->status;
    if (c->seen.fd < 0)
        meter_say(&c->crew.meter, "%s cannot be written (%s): if this run is stopped, the next one "
                  "begins anew", c->seen.path, strerror(c->seen.why));
    const unsigned known = count(c, ITEM_REMEMBERED);
    if (known > 0)
        printf("%u files were read before and have not changed since (--afresh reads them again)\n",
               known);
    fflush(stdout);
    meter_begin(&c->crew.meter, "reading", bytes, files);
    const unsigned cores = k3_host_cores();
    const enum k3_status st =
        crew_run(&c->crew, cores < MAX_THREADS ? cores : MAX_THREADS, c->n, work, c, err);
    if (st == K3_CANCELLED)
        return k3_fail(err, st, "stopped after %s of %s; the same command goes on from there",
                       size_format(size, sizeof size, atomic_load(&c->crew.meter.done)),
                       size_format((char[32]){0}, 32, bytes));
    return st;
}

/* ---- what came out ----------------------------------------------------------------------- */

/* What is wrong with it, or NULL. */
static const char *complaint(const struct item *it)
{
    if (it->state == ITEM_MISSING)
        return it->needed ? "is missing" : NULL;
    if (it->state == ITEM_UNREADABLE)
        return "cannot be read";
    if (it->want != NULL && strcmp(it->want->hex, it->hex) != 0)
        return "is damaged: its contents are not those of the list";
    return NULL;
}

static void print_fetch(const char *dir, const char *source, const char *sums)
{
    fputs("fetch again what is wrong or missing: k3chat fetch ", stdout);
    if (sums != NULL) {
        fputs("--sums ", stdout);
        fetch_print_word(stdout, sums);
        putchar(' ');
    }
    fputs(source != NULL ? source : "SOURCE", stdout);
    putchar(' ');
    fetch_print_word(stdout, dir);
    puts(source != NULL ? "" : "  (SOURCE: where it came from, OWNER/NAME or https://...)");
}

static enum k3_status compare(const struct check *c, struct k3_error *err)
{
    unsigned wrong = 0, unlisted = 0, right = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct item *it = &c->items[i];
        const char *what = complaint(it);
        const bool there = it->state == ITEM_READ || it->state == ITEM_REMEMBERED;
        if (what != NULL)
            printf("%s %s\n", it->name, what);
        else if (there && it->want == NULL)
            printf("%s is not in the list: nobody says what its contents must be\n", it->name);
        wrong += what != NULL;
        unlisted += what == NULL && there && it->want == NULL;
        right += what == NULL && there && it->want != NULL;
    }
    printf("%u files have the contents that %s says", right, c->list.path);
    printf(wrong + unlisted > 0 ? ", %u have not, %u are not in it\n" : "\n", wrong, unlisted);
    if (wrong > 0) {
        print_fetch(c->dir, c->seen.source, c->ask->sums);
        return k3_fail(err, K3_FAILED, "%s: %u of the checkpoint's files are missing or damaged",
                       c->dir, wrong);
    }
    if (unlisted > 0)
        return k3_fail(err, K3_FAILED, "%s: %u of the checkpoint's files are not in %s", c->dir,
                       unlisted, c->list.path);
    return K3_OK;
}

/* A list of what is there says nothing about whether it is right; it is for later comparisons. */
static enum k3_status write_list(const struct check *c, struct k3_error *err)
{
    struct sumlist out = {0};
    enum k3_status st = K3_OK;
    char *path = c->ask->sums_out != NULL ? path_format(err, "%s", c->ask->sums_out)
                                          : path_format(err, "%s/" SUMLIST_NAME, c->dir);
    for (size_t i = 0; i < c->n && st == K3_OK; i++) {
        const struct item *it = &c->items[i];
        if (it->needed && it->state != ITEM_READ && it->state != ITEM_REMEMBERED)
            st = k3_fail(err, K3_FAILED, "%s/%s %s: no list is written", c->dir, it->name,
                         complaint(it));
        else if (it->state == ITEM_READ || it->state == ITEM_REMEMBERED)
            st = sumlist_put(&out, it->name, it->hex, err);
    }
    if (path == NULL)
        st = err->status;
    else if (st == K3_OK && access(path, F_OK) == 0)
        st = k3_fail(err, K3_USAGE, "%s: is there already, and may be what the files must be; "
                     "remove it or name another", path);
    if (st == K3_OK)
        st = sumlist_write(&out, path, err);
    if (st == K3_OK)
        printf("%s: written, %zu files\n", path, out.n);
    sumlist_free(&out);
    free(path);
    return st;
}

static enum k3_status read_list(struct check *c, struct k3_error *err)
{
    if (!c->ask->sha256)
        return K3_OK;
    if (c->ask->sums != NULL)
        return sumlist_read(&c->list, c->ask->sums, err);
    char *path = path_format(err, "%s/" SUMLIST_NAME, c->dir);
    enum k3_status st = path == NULL ? err->status : K3_OK;
    if (st == K3_OK && access(path, F_OK) != 0)
        st = k3_fail(err, K3_USAGE, "%s: %s; name the list (--sha256 LIST): k3chat fetch leaves one "
                     "there when the server tells checksums", path, strerror(errno));
    else if (st == K3_OK)
        st = sumlist_read(&c->list, path, err);
    free(path);
    return st;
}

static void end(struct check *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->items[i].name);
    free(c->items);
    sumlist_free(&c->list);
    seen_close(&c->seen);
    if (c->crew.signals >= 0)
        crew_close(&c->crew);
    pthread_mutex_destroy(&c->lock);
}

enum k3_status verify_sums(const char *dir, const struct verify_request *ask, struct k3_error *err)
{
    struct check c = {.dir = dir, .ask = ask, .crew.signals = -1};
    pthread_mutex_init(&c.lock, NULL);
    enum k3_status st = seen_open(&c.seen, dir, true, err);
    if (st == K3_OK)
        st = read_list(&c, err);
    if (st == K3_OK)
        st = list_items(&c, err);
    if (st == K3_OK)
        st = crew_open(&c.crew, err);
    if (st == K3_OK)
        st = read_all(&c, err);
    if (st == K3_OK && ask->sha256)
        st = compare(&c, err);
    if (st == K3_OK && ask->write_sums)
        st = write_list(&c, err);
    if (c.forget.status != K3_OK)
        fprintf(stderr, "k3chat: what was read is not remembered: %s\n", c.forget.message);
    end(&c);
    return st;
}

/* ---- without reading --------------------------------------------------------------------- */

static bool is_there(const char *dir, const char *name)
{
    struct k3_error err;
    char *path = path_format(&err, "%s/%s", dir, name);
    const bool there = path != NULL && path_is_file(path);
    free(path);
    return there;
}

void verify_print_missing(const char *dir)
{
    struct ckfiles ck = {0};
    struct seen seen;
    struct k3_error err = {0};
    bool summed = is_there(dir, SUMLIST_NAME);
    if (!path_is_dir(dir) || ckfiles_read(&ck, dir, &err) != K3_OK) {
        ckfiles_free(&ck);
        return; /* that was told already */
    }
    for (size_t i = 0; i < n_ckfiles_small; i++)
        if (ckfiles_small[i].needed && !is_there(dir, ckfiles_small[i].name))
            printf("%s is missing\n", ckfiles_small[i].name);
    for (size_t i = 0; i < ck.n; i++)
        if (!is_there(dir, ck.shards[i]))
            printf("%s is missing\n", ck.shards[i]);
    if (!summed)
        puts("a damaged file must be removed first: there are no checksums to know it by");
    if (seen_open(&seen, dir, false, &err) == K3_OK)
        print_fetch(dir, seen.source, NULL);
    seen_close(&seen);
    ckfiles_free(&ck);
}
