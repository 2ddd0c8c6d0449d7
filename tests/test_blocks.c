/* test_blocks.c - the list of block digests: written, read back, refused when it is of other files, and
 * reads checked against it by every backend. */
#include <config.h>

#include "../engine/k3.h"
#include "../engine/storage/blocks.h"
#include "test_io_files.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define B K3_BLOCKS_BYTES

/* More blocks than one read of the list takes; whole blocks; less than one; nothing. */
static const uint64_t sizes[] = {70 * (uint64_t)B + 4321, 2 * (uint64_t)B, 777, 0};
static struct files files;
static char list[260];

static int setup(void **state)
{
    (void)state;
    files_make(&files, COUNT(sizes), sizes);
    snprintf(list, sizeof list, "%s/%s", files.dir, K3_BLOCKS_FILE);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(list);
    files_remove(&files);
    return 0;
}

static void write_list(void)
{
    struct k3_error err = {0};
    if (k3_blocks_write(&files.c, NULL, NULL, &err) != K3_OK)
        fail_msg("%s", err.message);
}

static struct k3_blocks *open_list(void)
{
    struct k3_error err = {0};
    struct k3_blocks *b = k3_blocks_open(&files.c, &err);
    if (!b)
        fail_msg("%s", err.message);
    return b;
}

/* Opening the list fails, and the message has this part. */
static void check_refused(const char *part)
{
    struct k3_error err = {0};
    assert_null(k3_blocks_open(&files.c, &err));
    assert_int_equal(err.status, K3_FAILED);
    if (!strstr(err.message, part) || !strstr(err.message, K3_BLOCKS_FILE))
        fail_msg("'%s' is not in: %s", part, err.message);
}

static void put(const char *path, off_t at, const void *data, size_t n)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, data, n, at), (ssize_t)n);
    close(fd);
}

static void change_byte(uint32_t shard, uint64_t offset)
{
    const uint8_t other = file_byte(shard, offset) ^ 1;
    put(files.paths[shard], (off_t)offset, &other, 1);
}

static void mend_byte(uint32_t shard, uint64_t offset)
{
    const uint8_t byte = file_byte(shard, offset);
    put(files.paths[shard], (off_t)offset, &byte, 1);
}

/* ---- the list ---------------------------------------------------------------------------- */

static void test_list(void **state)
{
    (void)state;
    check_refused("--write-blocks"); /* there is none yet */
    write_list();
    k3_blocks_close(open_list());
    struct stat st;
    assert_int_equal(stat(list, &st), 0);

    assert_int_equal(truncate(list, st.st_size - 8), 0);
    check_refused("bytes instead of");
    write_list();
    put(list, 0, "K", 1);
    check_refused("not a list of blocks");
    write_list();
    put(list, (off_t)strlen("k3chat-blocks 1 262144\n"), "SHARD", 5);
    check_refused("shard-0 is not in the list");
    write_list();
    files.shards[2].size++;
    check_refused("shard-2 has 778 bytes, and 777");
    files.shards[2].size--;
}

/* Random ranges of intact files are what the list says, and exactly the whole blocks are counted. */
static void test_ranges(void **state)
{
    (void)state;
    write_list();
    struct k3_blocks *b = open_list();
    uint8_t *data = malloc(sizes[0]);
    assert_non_null(data);
    for (uint64_t i = 0; i < sizes[0]; i++)
        data[i] = file_byte(0, i);
    uint64_t seed = 5, at = 0, counted = 0;
    for (int i = 0; i < 60; i++) {
        const uint64_t from = i == 0 ? 0 : rnd_below(&seed, sizes[0]);
        const uint64_t n = i == 0 ? sizes[0] : rnd_below(&seed, sizes[0] - from + 1);
        assert_true(k3_blocks_check(b, 0, from, n, data + from, &at));
        for (uint64_t k = 0; k * B < sizes[0]; k++) {
            const uint64_t end = (k + 1) * B < sizes[0] ? (k + 1) * B : sizes[0];
            if (k * B >= from && end <= from + n)
                counted += end - k * B;
        }
        assert_int_equal(k3_blocks_checked(b), counted);
    }
    data[66 * (uint64_t)B + 5] ^= 8;
    assert_false(k3_blocks_check(b, 0, 0, sizes[0], data, &at));
    assert_int_equal(at, 66 * (uint64_t)B);
    /* not within a whole block of the range: nothing is said of it */
    assert_true(k3_blocks_check(b, 0, 66 * (uint64_t)B + 1, B, data + 66 * (uint64_t)B + 1, &at));
    free(data);
    k3_blocks_close(b);
}

/* ---- reads ------------------------------------------------------------------------------- */

static void read_all(enum k3_io_kind kind)
{
    struct k3_error err = {0};
    struct k3_blocks *b = open_list();
    const struct k3_io_options opt = {.kind = kind, .depth = 4, .blocks = b};
    struct k3_io *io = k3_io_open(&files.c, &opt, &err);
    if (!io && kind == K3_IO_URING) { /* this kernel or build has none */
        k3_blocks_close(b);
        return;
    }
    assert_non_null(io);
    const uint64_t bad = 3 * (uint64_t)B + 99, from = 1000, n = 6 * (uint64_t)B;
    struct k3_io_req r = {.shard = 0, .class = K3_IO_TAPE, .offset = from, .bytes = n,
                          .buf = k3_io_alloc(k3_io_window(from, n))};
    struct k3_io_req *const reqs[] = {&r};
    assert_non_null(r.buf);
    k3_io_submit(io, reqs, 1);
    k3_io_wait(io, &r);
    assert_int_equal(r.error, 0);
    assert_true(file_bytes_equal(k3_io_data(&r), 0, from, n));
    assert_int_equal(k3_blocks_checked(b), 5 * (uint64_t)B);

    change_byte(0, bad);
    k3_io_submit(io, reqs, 1);
    k3_io_wait(io, &r);
    assert_int_equal(r.error, EBADMSG);
    assert_int_equal(r.error_offset, 3 * (uint64_t)B);
    assert_int_equal(k3_io_fail(io, &r, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "shard-0"));
    assert_non_null(strstr(err.message, "786432"));
    assert_non_null(strstr(err.message, "verify --sha256"));
    mend_byte(0, bad);
    k3_io_submit(io, reqs, 1);
    k3_io_wait(io, &r);
    assert_int_equal(r.error, 0);
    k3_io_free(r.buf, k3_io_window(from, n));
    k3_io_close(io);
    k3_blocks_close(b);
}

static void test_reads(void **state)
{
    (void)state;
    write_list();
    read_all(K3_IO_DIRECT);
    read_all(K3_IO_BUFFERED);
    read_all(K3_IO_URING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_reads),
    };
    return cmocka_run_group_tests_name("blocks", tests, setup, teardown);
}
