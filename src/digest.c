/* digest.c - see digest.h. */
#include <config.h>

#include "digest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../engine/storage/io.h"

/* Large enough that a disk streams, small enough that a stop is heard at once. */
#define BLOCK (UINT64_C(4) << 20)

static enum k3_status refuse(struct k3_error *err)
{
    return k3_fail(err, K3_FAILED, "the library libcrypto refuses SHA-256; see its configuration");
}

enum k3_status digest_begin(struct digest *d, struct k3_error *err)
{
    if (d->ctx == NULL)
        d->ctx = EVP_MD_CTX_new();
    if (d->ctx == NULL)
        return k3_fail_memory(err, "a checksum", 512);
    return EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL) == 1 ? K3_OK : refuse(err);
}

enum k3_status digest_add(struct digest *d, const void *bytes, size_t n, struct k3_error *err)
{
    return EVP_DigestUpdate(d->ctx, bytes, n) == 1 ? K3_OK : refuse(err);
}

enum k3_status digest_end(struct digest *d, char hex[DIGEST_HEX], struct k3_error *err)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (EVP_DigestFinal_ex(d->ctx, sum, &n) != 1 || n != 32)
        return refuse(err);
    for (unsigned i = 0; i < n; i++) {
        hex[2 * i] = digits[sum[i] >> 4];
        hex[2 * i + 1] = digits[sum[i] & 15];
    }
    hex[DIGEST_HEX - 1] = '\0';
    return K3_OK;
}

void digest_free(struct digest *d)
{
    EVP_MD_CTX_free(d->ctx);
    d->ctx = NULL;
}

bool digest_parse(const char *text, size_t n, char hex[DIGEST_HEX])
{
    if (n != DIGEST_HEX - 1)
        return false;
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))
            hex[i] = c;
        else if (c >= 'A' && c <= 'F')
            hex[i] = (char)(c - 'A' + 'a');
        else
            return false;
    }
    hex[n] = '\0';
    return true;
}

/* ---- files ------------------------------------------------------------------------------- */

struct reader {
    const char *path;
    int fd;
    bool direct;
    uint8_t *block;
    const struct digest_watch *watch;
};

/* O_DIRECT may be taken at open and refused at the first read; then the file is read as usual. */
static bool leave_direct(struct reader *r)
{
    if (!r->direct || errno != EINVAL)
        return false;
    r->direct = false;
    return fcntl(r->fd, F_SETFL, 0) == 0;
}

/* The next bytes at `at`: 0 at the end of the file, -1 with errno. */
static ssize_t read_block(struct reader *r, uint64_t at, size_t want)
{
    for (;;) {
        const ssize_t got = pread(r->fd, r->block, want, (off_t)at);
        if (got >= 0 || (errno != EINTR && !leave_direct(r)))
            return got;
    }
}

static bool stopped(const struct digest_watch *w)
{
    return w != NULL && w->stop != NULL && atomic_load(w->stop);
}

/* From the start up to `most` bytes or the end of the file; *size is how far it came. */
static enum k3_status add_blocks(struct digest *d, struct reader *r, uint64_t most, uint64_t *size,
                                 struct k3_error *err)
{
    for (*size = 0; *size < most;) {
        if (stopped(r->watch))
            return k3_fail(err, K3_CANCELLED, "%s: stopped", r->path);
        const uint64_t want = most - *size < BLOCK ? most - *size : BLOCK;
        const ssize_t got = read_block(r, *size, (size_t)want);
        if (got < 0)
            return k3_fail(err, K3_FAILED, "%s: cannot be read at byte %" PRIu64 ": %s", r->path,
                           *size, strerror(errno));
        if (got == 0)
            break;
        if (digest_add(d, r->block, (size_t)got, err) != K3_OK)
            return err->status;
        if (!r->direct)
            (void)posix_fadvise(r->fd, (off_t)*size, got, POSIX_FADV_DONTNEED);
        *size += (uint64_t)got;
        if (r->watch != NULL && r->watch->done != NULL)
            atomic_fetch_add(r->watch->done, (uint_fast64_t)got);
    }
    return K3_OK;
}

enum k3_status digest_add_file(struct digest *d, int fd, const char *path, uint64_t n,
                               const struct digest_watch *watch, struct k3_error *err)
{
    struct reader r = {.path = path, .fd = fd, .watch = watch, .block = k3_io_alloc(BLOCK)};
    uint64_t got = 0;
    if (r.block == NULL)
        return k3_fail_memory(err, path, BLOCK);
    enum k3_status st = add_blocks(d, &r, n, &got, err);
    if (st == K3_OK && got < n)
        st = k3_fail(err, K3_FAILED, "%s: the file ended at byte %" PRIu64 " while being read",
                     path, got);
    k3_io_free(r.block, BLOCK);
    return st;
}

static int open_regular(const char *path, bool *direct)
{
    struct stat st;
    *direct = true;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_DIRECT);
    if (fd < 0 && errno == EINVAL) {
        *direct = false;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    }
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

enum k3_status digest_file(const char *path, const struct digest_watch *watch, char hex[DIGEST_HEX],
                           uint64_t *size, struct k3_error *err)
{
    struct reader r = {.path = path, .watch = watch};
    struct digest d = {0};
    r.fd = open_regular(path, &r.direct);
    if (r.fd < 0)
        return k3_fail(err, K3_FAILED, "%s: cannot be opened: %s", path,
                       errno == EINVAL ? "not a regular file" : strerror(errno));
    (void)posix_fadvise(r.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    r.block = k3_io_alloc(BLOCK);
    enum k3_status st =
        r.block == NULL ? k3_fail_memory(err, path, BLOCK) : digest_begin(&d, err);
    if (st == K3_OK)
        st = add_blocks(&d, &r, UINT64_MAX, size, err);
    if (st == K3_OK)
        st = digest_end(&d, hex, err);
    digest_free(&d);
    if (r.block != NULL)
        k3_io_free(r.block, BLOCK);
    close(r.fd);
    return st;
}
