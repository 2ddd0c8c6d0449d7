/* test_devices.c - a checkpoint whose shards lie on two disks: a folder of symbolic links into two
 * file systems has two queues, and computes what one disk gives. */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"

#define SHARDS 10

static const int32_t ids[] = {384, 3, 300, 301, 17, 5, 386};
#define N_IDS (sizeof ids / sizeof ids[0])

static char scratch[FIXTURE_PATH], one[FIXTURE_PATH], both[FIXTURE_PATH];
static char other[FIXTURE_PATH]; /* on the second file system; "" when there is none */

static uint64_t device_of(const char *path)
{
    struct stat sb;
    assert_int_equal(stat(path, &sb), 0);
    return (uint64_t)sb.st_dev;
}

static void copy(const char *name, const char *to)
{
    size_t n = 0;
    char *data = fixture_read(one, name, &n);
    FILE *f = fopen(to, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(data);
}

static void link_into_both(const char *name, const char *dir)
{
    char from[FIXTURE_PATH], to[FIXTURE_PATH];
    fixture_join(from, dir, name);
    fixture_join(to, both, name);
    assert_int_equal(symlink(from, to), 0);
}

/* Every other shard is moved to the second file system. */
static void make_folders(void)
{
    static const char *const texts[] = {"config.json", "model.safetensors.index.json"};
    assert_int_equal(mkdir(both, 0700), 0);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        link_into_both(texts[i], one);
    for (unsigned i = 0; i < SHARDS; i++) {
        char name[64], to[FIXTURE_PATH];
        snprintf(name, sizeof name, "model-%05u-of-%06u.safetensors", i + 1, SHARDS);
        fixture_join(to, other, name);
        if (i % 2)
            copy(name, to);
        link_into_both(name, i % 2 ? other : one);
    }
}

static k3_engine *engine_of(const char *dir, enum k3_io_kind io)
{
    struct k3_options opt = fixture_options(dir);
    struct k3_error err;
    opt.io = io;
    opt.full_logits = true;
    opt.chunk = 3;
    opt.experts = 0; /* everything that is chosen is read */
    k3_engine *e = k3_open(&opt, NULL, NULL, &err);
    if (e == NULL)
        fail_msg("%s", err.message);
    if (k3_start(e, NULL, NULL, &err) == K3_OK)
        return e;
    k3_close(e);
    if (io != K3_IO_URING || strstr(err.message, "io_uring") == NULL)
        fail_msg("%s", err.message);
    return NULL;
}

/* Logits of every position, and the counters after them. */
static float *run(k3_engine *e, struct k3_metrics *m)
{
    float *rows = fixture_logits(e, ids, N_IDS);
    k3_get_metrics(e, m);
    return rows;
}

static void same_bits_with(enum k3_io_kind io)
{
    struct k3_metrics a, b;
    k3_engine *e = engine_of(one, io), *f = e ? engine_of(both, io) : NULL;
    if (e == NULL || f == NULL) { /* this system has no such backend */
        k3_close(e);
        return;
    }
    const size_t n = N_IDS * (size_t)k3_get_plan(e)->vocab;
    float *x = run(e, &a), *y = run(f, &b);
    assert_memory_equal(x, y, n * sizeof *x);
    assert_int_equal(a.devices, 1);
    assert_int_equal(b.devices, 2);
    assert_int_equal(a.bytes_experts, b.bytes_experts); /* the sum over both queues */
    assert_int_equal(a.requests, b.requests);
    assert_true(a.bytes_experts > 0);
    free(x);
    free(y);
    k3_close(e);
    k3_close(f);
}

static void two_disks_give_the_same_bits(void **state)
{
    (void)state;
    if (other[0] == '\0')
        skip();
    static const enum k3_io_kind kinds[] = {K3_IO_BUFFERED, K3_IO_AUTO, K3_IO_URING};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        same_bits_with(kinds[i]);
}

/* The way of reading is told as it is at the end: O_DIRECT can be missing on one disk of two. */
static void the_way_of_reading_is_told(void **state)
{
    (void)state;
    struct k3_metrics m;
    k3_engine *e = engine_of(one, K3_IO_BUFFERED);
    assert_non_null(e);
    free(run(e, &m));
    assert_int_equal(strncmp(k3_io_in_use(e), "buffered x16", 12), 0);
    k3_close(e);
}

static int setup(void **state)
{
    (void)state;
    char path[FIXTURE_PATH] = "/dev/shm/k3test-XXXXXX";
    fixture_scratch(scratch);
    fixture_join(one, scratch, "one");
    fixture_join(both, scratch, "both");
    const struct k3_synth s = fixture_preset("tiny");
    fixture_write(&s, one);
    if (mkdtemp(path) == NULL) {
        print_message("# no second file system: /dev/shm: %s\n", strerror(errno));
    } else if (device_of(path) == device_of(scratch)) {
        print_message("# no second file system: /dev/shm is the one of %s\n", scratch);
        rmdir(path);
    } else {
        memcpy(other, path, sizeof other);
        make_folders();
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_scratch_end(scratch);
    if (other[0] != '\0')
        fixture_scratch_end(other);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_disks_give_the_same_bits),
        cmocka_unit_test(the_way_of_reading_is_told),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
