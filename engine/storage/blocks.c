/* blocks.c - see blocks.h. */
#include <config.h>

#include "blocks.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define HEAD "k3chat-blocks 1 262144\n"
#define AT_ONCE 64u /* digests of one read: more blocks than the largest request has */
#define WRITE_BYTES (16 * (size_t)K3_BLOCKS_BYTES)

struct k3_blocks {
    const struct k3_checkpoint *c;
    int fd;
    uint64_t *first; /* [n_shards] where the digests of a shard begin in the file */
    atomic_uint_fast64_t checked;
};

static uint64_t blocks_of(uint64_t size)
{
    return (size + K3_BLOCKS_BYTES - 1) / K3_BLOCKS_BYTES;
}

static bool list_path(const struct k3_checkpoint *c, char *path, size_t room, const char *suffix)
{
    const int n = snprintf(path, room, "%s/%s%s", c->dir, K3_BLOCKS_FILE, suffix);
    return n > 0 && (size_t)n < room;
}

/* ---- reading the list ------------------------------------------------------------------------ */

/* One line "NAME BYTES"; *at moves on by the shard's digests. */
static enum k3_status take_line(struct k3_blocks *b, const char *path, char *line, uint64_t *at,
                                struct k3_error *err)
{
    char *space = strrchr(line, ' '), *end = NULL;
    if (!space || space == line || space[1] < '0' || space[1] > '9')
        return k3_fail(err, K3_FAILED, "%s: '%.80s' is not a shard and its size; write the list "
                       "again with k3chat verify --write-blocks", path, line);
    *space = '\0';
    const uint64_t size = strtoull(space + 1, &end, 10);
    for (size_t i = 0; i < b->c->n_shards && *end == '\0'; i++)
        if (strcmp(b->c->shards[i].name, line) == 0) {
            if (b->c->shards[i].size != size)
                return k3_fail(err, K3_FAILED, "%s: %s has %" PRIu64 " bytes, and %" PRIu64
                               " when the list was written; fetch it again, or write the list "
                               "again with k3chat verify --write-blocks", path, line,
                               b->c->shards[i].size, size);
            b->first[i] = *at;
            break;
        }
    *at += blocks_of(size) * sizeof(uint64_t);
    return K3_OK;
}

static enum k3_status take_list(struct k3_blocks *b, const char *path, char *text, uint64_t size,
                                struct k3_error *err)
{
    char *body = strncmp(text, HEAD, strlen(HEAD)) == 0 ? strstr(text, "\n\n") : NULL;
    if (!body)
        return k3_fail(err, K3_FAILED, "%s: not a list of blocks of this version; write it again "
                       "with k3chat verify --write-blocks", path);
    uint64_t at = (uint64_t)(body + 2 - text);
    body[1] = '\0';
    char *save = NULL;
    for (char *line = strtok_r(text + strlen(HEAD), "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        if (take_line(b, path, line, &at, err) != K3_OK)
            return err->status;
    if (at != size)
        return k3_fail(err, K3_FAILED, "%s: %" PRIu64 " bytes instead of %" PRIu64 "; write the "
                       "list again with k3chat verify --write-blocks", path, size, at);
    for (size_t i = 0; i < b->c->n_shards; i++)
        if (b->first[i] == 0)
            return k3_fail(err, K3_FAILED, "%s: %s is not in the list; write it again with k3chat "
                           "verify --write-blocks", path, b->c->shards[i].name);
    return K3_OK;
}

/* The lines are short: as many bytes as all names could take, and no more of the file. */
static enum k3_status read_list(struct k3_blocks *b, const char *path, struct k3_error *err)
{
    struct stat st;
    size_t room = sizeof HEAD + 2;
    for (size_t i = 0; i < b->c->n_shards; i++)
        room += strlen(b->c->shards[i].name) + 24;
    b->first = calloc(b->c->n_shards + 1, sizeof *b->first);
    char *text = calloc(1, room + 1);
    if (!b->first || !text) {
        free(text);
        return k3_fail_memory(err, "the list of blocks", room);
    }
    enum k3_status s = K3_OK;
    b->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (b->fd < 0 && errno == ENOENT)
        s = k3_fail(err, K3_FAILED, "%s: there is no list of blocks to check reads against; "
                    "k3chat verify --write-blocks makes it", path);
    else if (b->fd < 0 || fstat(b->fd, &st) != 0 || pread(b->fd, text, room, 0) < 0)
        s = k3_fail(err, K3_FAILED, "%s: cannot be read: %s", path, strerror(errno));
    else
        s = take_list(b, path, text, (uint64_t)st.st_size, err);
    free(text);
    return s;
}

struct k3_blocks *k3_blocks_open(const struct k3_checkpoint *c, struct k3_error *err)
{
    char path[4096];
    struct k3_blocks *b = calloc(1, sizeof *b);
    if (!b) {
        k3_fail_memory(err, "the list of blocks", sizeof *b);
        return NULL;
    }
    b->c = c;
    b->fd = -1;
    if (!list_path(c, path, sizeof path, ""))
        k3_fail(err, K3_FAILED, "%s: the path is too long", c->dir);
    else if (read_list(b, path, err) == K3_OK)
        return b;
    k3_blocks_close(b);
    return NULL;
}

void k3_blocks_close(struct k3_blocks *b)
{
    if (!b)
        return;
    if (b->fd >= 0)
        close(b->fd);
    free(b->first);
    free(b);
}

/* ---- checking -------------------------------------------------------------------------------- */

bool k3_blocks_check(struct k3_blocks *b, uint32_t shard, uint64_t offset, uint64_t bytes,
                     const uint8_t *data, uint64_t *at)
{
    const uint64_t size = b->c->shards[shard].size, end = offset + bytes;
    uint64_t i = (offset + K3_BLOCKS_BYTES - 1) / K3_BLOCKS_BYTES;
    const uint64_t last = end == size ? blocks_of(size) : end / K3_BLOCKS_BYTES;
    uint64_t want[AT_ONCE];
    while (i < last) {
        const uint64_t n = last - i < AT_ONCE ? last - i : AT_ONCE;
        const ssize_t len = (ssize_t)(n * sizeof *want);
        *at = i * K3_BLOCKS_BYTES;
        /* Few bytes of the page cache, and none of the process's memory. */
        if (pread(b->fd, want, (size_t)len, (off_t)(b->first[shard] + i * sizeof *want)) != len)
            return false;
        for (uint64_t k = 0; k < n; k++, i++) {
            const uint64_t from = i * K3_BLOCKS_BYTES;
            const uint64_t len_k = size - from < K3_BLOCKS_BYTES ? size - from : K3_BLOCKS_BYTES;
            *at = from;
            if (XXH3_64bits(data + (from - offset), len_k) != le64toh(want[k]))
                return false;
            atomic_fetch_add_explicit(&b->checked, len_k, memory_order_relaxed);
        }
    }
    return true;
}

uint64_t k3_blocks_checked(const struct k3_blocks *b)
{
    return atomic_load_explicit(&((struct k3_blocks *)b)->checked, memory_order_relaxed);
}

/* ---- writing the list ------------------------------------------------------------------------ */

/* Digests of [from, from + n) of a shard, n bytes in buf, appended to the list. */
static bool put_digests(FILE *out, const uint8_t *buf, size_t n)
{
    for (size_t i = 0; i < n; i += K3_BLOCKS_BYTES) {
        const size_t len = n - i < K3_BLOCKS_BYTES ? n - i : K3_BLOCKS_BYTES;
        const uint64_t digest = htole64(XXH3_64bits(buf + i, len));
        if (fwrite(&digest, sizeof digest, 1, out) != 1)
            return false;
    }
    return true;
}

static size_t read_full(int fd, uint8_t *buf, size_t n, uint64_t at)
{
    size_t got = 0;
    while (got < n) {
        const ssize_t r = pread(fd, buf + got, n - got, (off_t)(at + got));
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            break;
        got += (size_t)r;
    }
    return got;
}

static enum k3_status put_shards(const struct k3_checkpoint *c, FILE *out, const char *path,
                                 uint8_t *buf, k3_progress_fn progress, void *ud,
                                 struct k3_error *err)
{
    uint64_t total = 0, done = 0;
    fputs(HEAD, out);
    for (size_t i = 0; i < c->n_shards; i++) {
        total += c->shards[i].size;
        fprintf(out, "%s %" PRIu64 "\n", c->shards[i].name, c->shards[i].size);
    }
    fputc('\n', out);
    for (size_t i = 0; i < c->n_shards; i++)
        for (uint64_t at = 0; at < c->shards[i].size; at += WRITE_BYTES) {
            const uint64_t left = c->shards[i].size - at;
            const size_t n = left < WRITE_BYTES ? (size_t)left : WRITE_BYTES;
            const size_t got = read_full(c->shards[i].fd, buf, n, at);
            if (got != n)
                return k3_fail(err, K3_FAILED, "%s: reading at byte %" PRIu64 " failed: %s",
                               c->shards[i].path, at + got,
                               errno ? strerror(errno) : "the file ends there");
            /* 1.56 TB must not push everything else out of the page cache. */
            posix_fadvise(c->shards[i].fd, (off_t)at, (off_t)n, POSIX_FADV_DONTNEED);
            if (!put_digests(out, buf, n))
                return k3_fail(err, K3_FAILED, "%s: writing failed: %s", path, strerror(errno));
            done += n;
            if (progress)
                progress(ud, "reading blocks", done, total);
        }
    return K3_OK;
}

enum k3_status k3_blocks_write(const struct k3_checkpoint *c, k3_progress_fn progress, void *ud,
                               struct k3_error *err)
{
    char path[4096], part[4096];
    if (!list_path(c, path, sizeof path, "") || !list_path(c, part, sizeof part, ".part"))
        return k3_fail(err, K3_FAILED, "%s: the path is too long", c->dir);
    uint8_t *buf = malloc(WRITE_BYTES);
    if (!buf)
        return k3_fail_memory(err, "the reading of blocks", WRITE_BYTES);
    FILE *out = fopen(part, "wbe");
    if (!out) {
        free(buf);
        return k3_fail(err, K3_FAILED, "%s: cannot be written: %s", part, strerror(errno));
    }
    errno = 0;
    enum k3_status st = put_shards(c, out, part, buf, progress, ud, err);
    bool written = st == K3_OK && fflush(out) == 0 && fsync(fileno(out)) == 0;
    written = fclose(out) == 0 && written;
    if (st == K3_OK && (!written || rename(part, path) != 0))
        st = k3_fail(err, K3_FAILED, "%s: cannot be written: %s", path, strerror(errno));
    if (st != K3_OK)
        unlink(part);
    free(buf);
    return st;
}
