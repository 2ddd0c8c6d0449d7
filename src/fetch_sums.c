/* fetch_sums.c - where it is said what the files must be; see fetch.h. */
#include <config.h>

#include "fetch.h"

#include <stdlib.h>
#include <string.h>

#include "paths.h"

struct text {
    char *p;
    size_t n;
    bool long_one;
};

static bool take_text(void *ud, const struct http_reply *r, const void *bytes, size_t n)
{
    (void)r;
    struct text *t = ud;
    char *p = t->n + n > SUMLIST_MAX ? NULL : realloc(t->p, t->n + n + 1);
    t->long_one = p == NULL;
    if (p == NULL)
        return false;
    memcpy(p + t->n, bytes, n);
    t->p = p;
    t->n += n;
    t->p[t->n] = '\0';
    return true;
}

/* The server's own list, when it has one. */
static enum k3_status ask_for_list(struct fetch *f, struct k3_error *err)
{
    struct text t = {0};
    struct http_reply r;
    struct patience p = {0};
    struct k3_error why = {0};
    enum http_end end;
    do {
        t.n = 0;
        end = http_get(&f->http[0], SUMLIST_NAME, NULL, take_text, &t, &r, &why);
    } while (end == HTTP_AGAIN && fetch_wait(f, &p, r.retry_after, &why));
    enum k3_status st = K3_OK;
    char *shown = path_format(err, "%s/" SUMLIST_NAME, f->site.base);
    if (end == HTTP_DONE && shown != NULL)
        st = sumlist_parse(&f->sums, shown, t.p, t.n, err);
    else if (end == HTTP_AGAIN || end == HTTP_STOPPED) /* not knowing is not the same as none */
        st = (*err = why).status;
    if (t.long_one)
        st = k3_fail(err, K3_FAILED, "%s: too long for a list of checksums", shown);
    free(shown);
    free(t.p);
    return st;
}

enum k3_status fetch_find_sums(struct fetch *f, struct k3_error *err)
{
    if (f->ask->sums != NULL)
        return sumlist_read(&f->sums, f->ask->sums, err);
    char *own = path_format(err, "%s/" SUMLIST_NAME, f->dir);
    if (own == NULL)
        return err->status;
    const enum k3_status st =
        path_is_file(own) ? sumlist_read(&f->sums, own, err) : ask_for_list(f, err);
    free(own);
    return st;
}

enum k3_status fetch_keep_sums(struct fetch *f, struct k3_error *err)
{
    struct sumlist all = {0};
    enum k3_status st = K3_OK;
    char *path = path_format(err, "%s/" SUMLIST_NAME, f->dir);
    if (path == NULL)
        return err->status;
    if (path_is_file(path))
        st = sumlist_read(&all, path, err);
    bool changed = false;
    for (size_t i = 0; i < f->n && st == K3_OK; i++) {
        const struct job *j = &f->jobs[i];
        const struct sum *known = sumlist_find(&all, j->name);
        if (j->state != JOB_HERE || j->sha256[0] == '\0' ||
            (known != NULL && strcmp(known->hex, j->sha256) == 0))
            continue;
        changed = true;
        st = sumlist_put(&all, j->name, j->sha256, err);
    }
    if (st == K3_OK && changed)
        st = sumlist_write(&all, path, err);
    sumlist_free(&all);
    free(path);
    return st;
}
