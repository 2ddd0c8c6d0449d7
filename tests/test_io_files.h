/* test_io_files.h - a few files with known bytes, dressed as the shards of a checkpoint, for the
 * tests of the readers. Every function asserts by itself. */
#ifndef TEST_IO_FILES_H
#define TEST_IO_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../engine/storage/io.h"

#define FILES_MAX 4

struct files {
    char dir[200];
    char paths[FILES_MAX][240];
    char names[FILES_MAX][16];
    struct k3_shard shards[FILES_MAX];
    struct k3_checkpoint c;
};

/* Deterministic random numbers (splitmix64). */
static inline uint64_t rnd(uint64_t *s)
{
    uint64_t z = *s += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline uint64_t rnd_below(uint64_t *s, uint64_t n)
{
    return rnd(s) % n;
}

/* The byte at this place of shard `shard`. */
static inline uint8_t file_byte(uint32_t shard, uint64_t offset)
{
    uint64_t s = (uint64_t)shard << 48 ^ offset / 8;
    return (uint8_t)(rnd(&s) >> offset % 8 * 8);
}

static inline bool file_bytes_equal(const uint8_t *p, uint32_t shard, uint64_t offset, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (p[i] != file_byte(shard, offset + i))
            return false;
    return true;
}

static inline void files_make(struct files *f, uint32_t n, const uint64_t *sizes)
{
    const char *tmp = getenv("TMPDIR");
    memset(f, 0, sizeof *f);
    snprintf(f->dir, sizeof f->dir, "%s/k3io-XXXXXX", tmp && strlen(tmp) < 150 ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->dir));
    for (uint32_t i = 0; i < n; i++) {
        snprintf(f->names[i], sizeof f->names[i], "shard-%u", i);
        snprintf(f->paths[i], sizeof f->paths[i], "%s/%s", f->dir, f->names[i]);
        uint8_t *data = malloc(sizes[i] + 1);
        assert_non_null(data);
        for (uint64_t o = 0; o < sizes[i]; o++)
            data[o] = file_byte(i, o);
        int fd = open(f->paths[i], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, data, sizes[i]), (ssize_t)sizes[i]);
        free(data);
        struct stat sb;
        assert_int_equal(fstat(fd, &sb), 0);
        f->shards[i] = (struct k3_shard){.name = f->names[i], .path = f->paths[i], .fd = fd,
                                         .size = sizes[i], .device = (uint64_t)sb.st_dev};
        f->shards[i].fd_direct = open(f->paths[i], O_RDONLY | O_CLOEXEC | O_DIRECT);
        f->shards[i].direct_errno = f->shards[i].fd_direct < 0 ? errno : 0;
    }
    f->c = (struct k3_checkpoint){.dir = f->dir, .shards = f->shards, .n_shards = n};
}

static inline void files_remove(struct files *f)
{
    for (size_t i = 0; i < f->c.n_shards; i++) {
        close(f->shards[i].fd);
        if (f->shards[i].fd_direct >= 0)
            close(f->shards[i].fd_direct);
        assert_int_equal(unlink(f->paths[i]), 0);
    }
    assert_int_equal(rmdir(f->dir), 0);
}

/* The shard that a descriptor belongs to. */
static inline uint32_t files_shard(const struct files *f, int fd)
{
    for (uint32_t i = 0; i < f->c.n_shards; i++)
        if (fd == f->shards[i].fd || fd == f->shards[i].fd_direct)
            return i;
    abort(); /* called by reader threads, where cmocka cannot fail */
}

#endif
