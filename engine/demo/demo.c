/* demo.c - see demo.h. */
#include <config.h>

#include "demo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "embedded.h"

enum {
    PIECE = 64 * 1024, /* of the archive: read, then given back, so that it never takes memory */
    TAR_BLOCK = 512,
    TAR_NAME = 100,
    TAR_SIZE_AT = 124,
    TAR_SIZE_DIGITS = 12,
    PATH_CAP = 4096,
};

/* ---- the archive ------------------------------------------------------------------------------- */

struct entry {
    char name[TAR_NAME + 1];
    const unsigned char *data;
    size_t size;
};

/* Gives back the pages of a part of the archive that was read from its beginning on: they are in
 * the program's file. */
static void drop(const unsigned char *from, size_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)from / page * page;
    const uintptr_t end = ((uintptr_t)from + n) / page * page;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED); /* a hint: failing costs memory only */
}

/* The file whose header is at *at, which moves behind it; false at the archive's end. */
static bool next_entry(uint64_t *at, struct entry *e)
{
    const unsigned char *h = k3_demo_tar + *at;
    if (*at + TAR_BLOCK > k3_demo_tar_size || h[0] == '\0')
        return false;
    char digits[TAR_SIZE_DIGITS + 1] = "";
    memcpy(digits, h + TAR_SIZE_AT, TAR_SIZE_DIGITS);
    memcpy(e->name, h, TAR_NAME);
    e->name[TAR_NAME] = '\0';
    e->data = h + TAR_BLOCK;
    e->size = strtoull(digits, NULL, 8);
    if (e->size > k3_demo_tar_size - TAR_BLOCK - *at)
        return false;
    *at += TAR_BLOCK + (e->size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
    return true;
}

/* Names the folder: another model is another folder. */
static uint64_t digest_archive(void)
{
    uint64_t digest = k3_demo_tar_size;
    for (uint64_t at = 0; at < k3_demo_tar_size; at += PIECE) {
        const uint64_t left = k3_demo_tar_size - at;
        const size_t n = left < PIECE ? (size_t)left : PIECE;
        digest = XXH3_64bits_withSeed(k3_demo_tar + at, n, digest);
        drop(k3_demo_tar + at, n);
    }
    return digest;
}

/* ---- what is in the folder --------------------------------------------------------------------- */

static bool same_bytes(FILE *f, const struct entry *e)
{
    unsigned char block[16384];
    size_t at = 0;
    for (size_t got; (got = fread(block, 1, sizeof block, f)) > 0; at += got) {
        if (got > e->size - at || memcmp(block, e->data + at, got) != 0)
            return false;
        drop(e->data + at, got);
    }
    return !ferror(f) && at == e->size;
}

static bool file_is_good(const char *dir, const struct entry *e)
{
    char path[PATH_CAP];
    const int n = snprintf(path, sizeof path, "%s/%s", dir, e->name);
    FILE *f = n > 0 && n < (int)sizeof path ? fopen(path, "re") : NULL;
    const bool good = f && same_bytes(f, e);
    if (f)
        fclose(f);
    return good;
}

static bool folder_is_good(const char *dir)
{
    uint64_t at = 0;
    struct entry e;
    size_t n = 0;
    for (; next_entry(&at, &e); n++)
        if (!file_is_good(dir, &e))
            return false;
    return n > 0;
}

/* ---- making it --------------------------------------------------------------------------------- */

static enum k3_status write_all(int fd, const char *path, const struct entry *e,
                                struct k3_error *err)
{
    for (size_t at = 0; at < e->size;) {
        const size_t n = e->size - at < PIECE ? e->size - at : PIECE;
        const ssize_t put = write(fd, e->data + at, n);
        if (put < 0 && errno != EINTR)
            return k3_fail(err, K3_FAILED, "cannot write %s: %s (the demo model needs %d MB there; "
                           "set XDG_CACHE_HOME to another folder, or give --model DIR)", path,
                           strerror(errno),
                           (int)(k3_demo_tar_size / 1000000 + 1));
        if (put > 0) {
            drop(e->data + at, (size_t)put);
            at += (size_t)put;
        }
    }
    return K3_OK;
}

static enum k3_status write_file(const char *dir, const struct entry *e, struct k3_error *err)
{
    char path[PATH_CAP];
    const int n = snprintf(path, sizeof path, "%s/%s", dir, e->name);
    if (n < 0 || n >= (int)sizeof path)
        return k3_fail(err, K3_FAILED, "the path %s is too long for the demo model", dir);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return k3_fail(err, K3_FAILED, "cannot create %s: %s", path, strerror(errno));
    enum k3_status st = write_all(fd, path, e, err);
    if (close(fd) != 0 && st == K3_OK)
        st = k3_fail(err, K3_FAILED, "cannot write %s: %s", path, strerror(errno));
    return st;
}

static enum k3_status unpack(const char *dir, struct k3_error *err)
{
    uint64_t at = 0;
    struct entry e;
    while (next_entry(&at, &e))
        if (write_file(dir, &e, err) != K3_OK)
            return err->status;
    return K3_OK;
}

/* Plain files only; whatever else is in there stays. */
static void remove_folder(const char *dir)
{
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(dir);
}

/* An empty folder "dir.TAG-XXXXXX" of its own, to make or to throw away things in. */
static enum k3_status side_folder(char out[PATH_CAP], const char *dir, const char *tag,
                                  struct k3_error *err)
{
    const int n = snprintf(out, PATH_CAP, "%s.%s-XXXXXX", dir, tag);
    if (n < 0 || n >= PATH_CAP || !mkdtemp(out))
        return k3_fail(err, K3_FAILED, "cannot create a folder beside %s: %s (the demo model is "
                       "unpacked there; set XDG_CACHE_HOME to a writable folder, or give "
                       "--model DIR)", dir, strerror(errno));
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
    remove_folder(old);
    return K3_OK;
}

/* Another program may put its own, equal one there first. */
static enum k3_status make_folder(const char *dir, struct k3_error *err)
{
    char fresh[PATH_CAP];
    if (side_folder(fresh, dir, "new", err) != K3_OK)
        return err->status;
    enum k3_status st = unpack(fresh, err);
    if (st == K3_OK && rename(fresh, dir) != 0) {
        const int reason = errno;
        if (!folder_is_good(dir))
            st = k3_fail(err, K3_FAILED, "cannot rename %s to %s: %s", fresh, dir,
                         strerror(reason));
        remove_folder(fresh);
        return st;
    }
    if (st != K3_OK)
        remove_folder(fresh);
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
    const int n = snprintf(dir, cap, "%s/demo-%016" PRIx64, base, digest_archive());
    if (n < 0 || (size_t)n >= cap)
        return k3_fail(err, K3_FAILED, "the path %s is too long for the demo model", base);
    if (folder_is_good(dir))
        return K3_OK;
    if (make_parents(base, err) != K3_OK || clear_damaged(dir, err) != K3_OK)
        return err->status;
    return make_folder(dir, err);
}
