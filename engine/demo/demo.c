/* demo.c - see demo.h. */
#include <config.h>

#include "demo.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "synth.h"

enum {
    DEMO_VERSION = 2, /* raise it when the generator's bytes change: old caches are then ignored */
    MAX_FILES = 256,
    PATH_CAP = 4096,
};
static const char marker_name[] = "k3chat-demo";

/* ---- what is in the folder --------------------------------------------------------------------- */

static uint64_t stir(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = (h ^ word) * 0x9fb21c651e98df25ULL;
        h ^= h >> 29;
    }
    for (; n > 0; n--)
        h = (h ^ *p++) * 0x100000001b3ULL;
    return h;
}

static bool stir_file(uint64_t *h, const char *dir, const char *name)
{
    char path[PATH_CAP];
    const int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = n > 0 && n < (int)sizeof path ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    unsigned char block[16384];
    uint64_t size = 0;
    for (size_t got; (got = fread(block, 1, sizeof block, f)) > 0; size += got)
        *h = stir(*h, block, got);
    *h = stir(*h, &size, sizeof size);
    *h = stir(*h, name, strlen(name) + 1);
    const bool good = !ferror(f);
    fclose(f);
    return good;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Digest of all files but the marker; guards against damage, not against malice. */
static bool digest_folder(const char *dir, uint64_t *out)
{
    char *names[MAX_FILES];
    size_t n = 0;
    DIR *d = opendir(dir);
    bool good = d != NULL;
    for (const struct dirent *e; good && (e = readdir(d));) {
        if (e->d_name[0] == '.' || strcmp(e->d_name, marker_name) == 0)
            continue;
        good = n < MAX_FILES && (names[n] = strdup(e->d_name));
        n += good;
    }
    if (d)
        closedir(d);
    qsort(names, n, sizeof names[0], by_name);
    *out = DEMO_VERSION;
    for (size_t i = 0; i < n; i++) {
        good = good && stir_file(out, dir, names[i]);
        free(names[i]);
    }
    return good && n > 0;
}

static void marker_text(char text[64], uint64_t digest)
{
    snprintf(text, 64, "k3chat demo %d %016llx\n", DEMO_VERSION, (unsigned long long)digest);
}

static bool folder_is_good(const char *dir)
{
    char path[PATH_CAP], have[64] = "", want[64];
    const int n = snprintf(path, sizeof path, "%s/%s", dir, marker_name);
    FILE *f = n > 0 && n < (int)sizeof path ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    const bool read_it = fgets(have, sizeof have, f) != NULL;
    fclose(f);
    uint64_t digest;
    if (!read_it || !digest_folder(dir, &digest))
        return false;
    marker_text(want, digest);
    return strcmp(have, want) == 0;
}

/* ---- making it --------------------------------------------------------------------------------- */

static enum k3_status put_marker(const char *dir, struct k3_error *err)
{
    char path[PATH_CAP], text[64];
    uint64_t digest;
    if (!digest_folder(dir, &digest))
        return k3_fail(err, K3_FAILED, "cannot read back %s", dir);
    marker_text(text, digest);
    const int n = snprintf(path, sizeof path, "%s/%s", dir, marker_name);
    FILE *f = n > 0 && n < (int)sizeof path ? fopen(path, "wxe") : NULL;
    const bool good = f && fputs(text, f) >= 0;
    if ((f && fclose(f) != 0) || !good)
        return k3_fail(err, K3_FAILED, "cannot write %s: %s", path, strerror(errno));
    return K3_OK;
}

/* An empty folder "dir.TAG-XXXXXX" of its own, to make or to throw away things in. */
static enum k3_status side_folder(char out[PATH_CAP], const char *dir, const char *tag,
                                  struct k3_error *err)
{
    const int n = snprintf(out, PATH_CAP, "%s.%s-XXXXXX", dir, tag);
    if (n < 0 || n >= PATH_CAP || !mkdtemp(out))
        return k3_fail(err, K3_FAILED, "cannot create a folder beside %s: %s (the demo model needs "
                       "10 MB there; set XDG_CACHE_HOME to a writable folder, or give --model DIR)",
                       dir, strerror(errno));
    return K3_OK;
}

static enum k3_status clear_damaged(const char *dir, struct k3_error *err)
{
    struct stat st;
    char old[PATH_CAP];
    if (lstat(dir, &st) != 0)
        return K3_OK;
    if (side_folder(old, dir, "old", err) != K3_OK)
        return err->status;
    if (!S_ISDIR(st.st_mode)) {
        rmdir(old);
        return k3_fail(err, K3_FAILED, "%s is in the way of the demo model: remove it", dir);
    }
    if (rename(dir, old) != 0 && errno != ENOENT) {
        const int reason = errno;
        rmdir(old);
        return k3_fail(err, K3_FAILED, "the demo model in %s is damaged and cannot be moved away: "
                       "%s; remove that folder", dir, strerror(reason));
    }
    k3_synth_remove(old);
    return K3_OK;
}

/* Another program may put its own, equal one there first. */
static enum k3_status make_folder(const char *dir, struct k3_error *err)
{
    struct k3_synth s;
    char fresh[PATH_CAP];
    if (!k3_synth_preset("demo", &s))
        return k3_fail(err, K3_FAILED, "this program was built without the demo geometry");
    if (side_folder(fresh, dir, "new", err) != K3_OK)
        return err->status;
    enum k3_status st = k3_synth_write(&s, fresh, NULL, NULL, err);
    if (st == K3_OK)
        st = put_marker(fresh, err);
    if (st == K3_OK && rename(fresh, dir) != 0) {
        const int reason = errno;
        if (!folder_is_good(dir))
            st = k3_fail(err, K3_FAILED, "cannot rename %s to %s: %s", fresh, dir,
                         strerror(reason));
        k3_synth_remove(fresh);
        return st;
    }
    if (st != K3_OK)
        k3_synth_remove(fresh);
    return st;
}

static enum k3_status make_parents(char *path, struct k3_error *err)
{
    for (char *p = path + 1;; p++) {
        const char c = *p;
        if (c != '/' && c != '\0')
            continue;
        *p = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return k3_fail(err, K3_FAILED, "cannot create the folder %s for the demo model: %s (set "
                           "XDG_CACHE_HOME to a writable folder, or give --model DIR)", path,
                           strerror(errno));
        *p = c;
        if (c == '\0')
            return K3_OK;
    }
}

static enum k3_status cache_folder(char out[PATH_CAP], struct k3_error *err)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;
    if (xdg && xdg[0] == '/')
        n = snprintf(out, PATH_CAP, "%s/k3chat", xdg);
    else if (home && home[0] == '/')
        n = snprintf(out, PATH_CAP, "%s/.cache/k3chat", home);
    else
        return k3_fail(err, K3_FAILED, "there is no place for the demo model: neither XDG_CACHE_HOME "
                       "nor HOME is an absolute path; set one of them, or give --model DIR");
    if (n < 0 || n >= PATH_CAP - 64)
        return k3_fail(err, K3_FAILED, "the path of the cache folder is too long; set "
                       "XDG_CACHE_HOME, or give --model DIR");
    return K3_OK;
}

enum k3_status k3_demo_prepare(char *dir, size_t cap, struct k3_error *err)
{
    char base[PATH_CAP];
    if (cache_folder(base, err) != K3_OK)
        return err->status;
    const int n = snprintf(dir, cap, "%s/demo-%d", base, DEMO_VERSION);
    if (n < 0 || (size_t)n >= cap)
        return k3_fail(err, K3_FAILED, "the path %s is too long for the demo model", base);
    if (folder_is_good(dir))
        return K3_OK;
    if (make_parents(base, err) != K3_OK || clear_damaged(dir, err) != K3_OK)
        return err->status;
    return make_folder(dir, err);
}
