/* test_experts_script.c - the store over a scripted disk: which reads it asks for and in which
 * order, and the exact counters of every way in which they can come in. The functions of io.h that
 * the store uses are replaced here; a read is done when the script says so. */
#include <config.h>

#include "test_experts_shard.h"

#include <errno.h>
#include <unistd.h>

/* ---- the scripted disk ------------------------------------------------------------------- */

#define LOG_MAX 256

static struct {
    const struct shard *shard;
    struct k3_io_req *log[LOG_MAX]; /* in order of submission */
    size_t n, waits;
    double seconds;                 /* what a wait returns */
    void (*on_wait)(void);
} disk;

static void complete(size_t i)
{
    struct k3_io_req *r = disk.log[i];
    assert_true(i < disk.n);
    assert_int_equal(atomic_load(&r->done), 0);
    assert_int_equal(pread(disk.shard->fd, r->buf + r->offset % K3_IO_ALIGN, r->bytes,
                           (off_t)r->offset),
                     r->bytes);
    atomic_store(&r->done, 1);
}

static void complete_all(void)
{
    for (size_t i = 0; i < disk.n; i++)
        if (!atomic_load(&disk.log[i]->done))
            complete(i);
}

void k3_io_submit(struct k3_io *io, struct k3_io_req *const *reqs, size_t n)
{
    (void)io;
    for (size_t i = 0; i < n; i++) {
        assert_true(disk.n < LOG_MAX);
        atomic_store(&reqs[i]->done, 0);
        disk.log[disk.n++] = reqs[i];
    }
}

void k3_io_cancel(struct k3_io *io, struct k3_io_req *const *reqs, size_t n)
{
    (void)io;
    for (size_t i = 0; i < n; i++)
        if (!atomic_load(&reqs[i]->done)) {
            reqs[i]->error = ECANCELED;
            atomic_store(&reqs[i]->done, 1);
        }
}

double k3_io_wait(struct k3_io *io, struct k3_io_req *r)
{
    (void)io;
    assert_int_equal(atomic_load(&r->done), 1);
    return 0;
}

double k3_io_wait_any(struct k3_io *io, struct k3_io_req *const *reqs, size_t n)
{
    (void)io;
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(atomic_load(&reqs[i]->done), 0);
    disk.waits++;
    assert_non_null(disk.on_wait);
    disk.on_wait();
    return disk.seconds;
}

enum k3_status k3_io_fail(const struct k3_io *io, const struct k3_io_req *r, struct k3_error *err)
{
    (void)io;
    return k3_fail(err, K3_FAILED, "read at %llu failed", (unsigned long long)r->offset);
}

uint64_t k3_io_round(uint64_t bytes)
{
    return bytes + (K3_IO_ALIGN - bytes % K3_IO_ALIGN) % K3_IO_ALIGN;
}

void *k3_io_alloc(uint64_t bytes)
{
    return aligned_alloc(K3_IO_ALIGN, k3_io_round(bytes));
}

void k3_io_free(void *p, uint64_t bytes)
{
    (void)bytes;
    free(p);
}

/* ---- helpers ----------------------------------------------------------------------------- */

static struct shard shard;

static void start_disk(void)
{
    memset(&disk, 0, sizeof disk);
    disk.shard = &shard;
    disk.seconds = 0.25;
}

static int setup(void **state)
{
    (void)state;
    shard_make(&shard, SHARD_PACKED, 2, 8, 32, 64);
    start_disk();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    shard_remove(&shard);
    return 0;
}

static void begin(struct k3_experts *s, uint32_t layer, const struct k3_expert_use *uses, size_t n)
{
    struct k3_error err = {0};
    disk.n = 0;
    disk.waits = 0;
    if (k3_experts_begin(s, layer, uses, n, &err))
        fail_msg("%s", err.message);
}

static size_t next(struct k3_experts *s, struct k3_expert_job *jobs, size_t max)
{
    struct k3_error err = {0};
    size_t n;
    if (k3_experts_next(s, jobs, max, &n, &err))
        fail_msg("%s", err.message);
    return n;
}

/* Takes the one group of jobs that is there and compares it. */
static void expect_jobs(struct k3_experts *s, uint32_t layer, const struct k3_expert_use *uses,
                        bool out, const uint32_t *want, size_t n_want)
{
    struct k3_expert_job jobs[8];
    assert_int_equal(next(s, jobs, 8), n_want);
    for (size_t i = 0; i < n_want; i++) {
        assert_int_equal(jobs[i].use, want[i]);
        assert_int_equal(jobs[i].out, out);
        shard_check_job(&shard, layer, uses[want[i]].expert, &jobs[i]);
    }
    for (size_t i = 0; i < n_want && out; i++)
        k3_experts_done(s, want[i]);
}
#define EXPECT(out, ...)                                                                          \
    expect_jobs(s, layer, uses, out, (const uint32_t[]){__VA_ARGS__},                             \
                sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void end(struct k3_experts *s)
{
    struct k3_expert_job job;
    struct k3_error err = {0};
    assert_int_equal(next(s, &job, 1), 0);
    if (k3_experts_end(s, &err))
        fail_msg("%s", err.message);
    shard_check_counters(&shard, s);
}

static void expect_counts(const struct k3_experts *s, uint64_t requests, uint64_t resident,
                          uint64_t prefetched, uint64_t waited, double wait_s)
{
    struct k3_experts_counters c;
    k3_experts_get_counters(s, &c);
    assert_int_equal(c.requests, requests);
    assert_int_equal(c.resident, resident);
    assert_int_equal(c.prefetched, prefetched);
    assert_int_equal(c.waited, waited);
    assert_true(c.wait_s == wait_s);
}

static void expect_read(size_t i, uint32_t layer, uint32_t expert, uint32_t m)
{
    const struct k3_expert_place *p = &shard.places[layer * shard.n_experts + expert];
    assert_true(i < disk.n);
    assert_int_equal(disk.log[i]->class, K3_IO_DEMAND);
    assert_int_equal(disk.log[i]->offset, p->offset[m][0]);
    assert_int_equal(disk.log[i]->bytes, shard.shape.bytes[m][0] + shard.shape.bytes[m][1]);
}

/* ---- tests ------------------------------------------------------------------------------- */

static void reads_in_order(void **state)
{
    (void)state;
    struct k3_experts *s = shard_store(&shard, NULL, 4, 4, K3_POLICY_QUOTA);
    const struct k3_expert_use uses[] = {{5, 1, 0, 0}, {2, 1, 1, 0}, {7, 1, 2, 0}};
    begin(s, 1, uses, 3);
    assert_int_equal(disk.n, 9); /* weights and scales in one read; w1 and w3 of all, then w2 */
    for (size_t i = 0; i < 3; i++) {
        expect_read(2 * i, 1, uses[i].expert, K3_W1);
        expect_read(2 * i + 1, 1, uses[i].expert, K3_W3);
        expect_read(6 + i, 1, uses[i].expert, K3_W2);
    }
    k3_experts_close(s); /* in the middle of a step */
}

static void all_there_is_prefetched(void **state)
{
    (void)state;
    struct k3_experts *s = shard_store(&shard, NULL, 4, 4, K3_POLICY_QUOTA);
    const struct k3_expert_use uses[] = {{5, 1, 0, 0}, {2, 3, 1, 2}};
    const uint32_t layer = 0;
    begin(s, layer, uses, 2);
    complete_all();
    expect_counts(s, 0, 0, 0, 0, 0); /* a step counts when it ends */
    EXPECT(false, 0, 1);
    EXPECT(true, 0, 1);
    end(s);
    assert_int_equal(disk.waits, 0);
    expect_counts(s, 4, 0, 4, 0, 0);

    begin(s, layer, uses, 2); /* and the next time they are hits */
    assert_int_equal(disk.n, 0);
    EXPECT(false, 0, 1);
    EXPECT(true, 0, 1);
    end(s);
    expect_counts(s, 8, 4, 4, 0, 0);
    k3_experts_close(s);
}

/* Log: 0,1 w1 w3 of use 0; 2,3 of use 1; 4,5 of use 2; then w2s 6, 7, 8. */
static void first_in(void)
{
    complete(0);
    complete(1);
}

static void second_w2(void)
{
    complete(7);
}

static void those_that_end_a_wait_are_waited_for(void **state)
{
    (void)state;
    struct k3_experts *s = shard_store(&shard, NULL, 6, 4, K3_POLICY_QUOTA);
    const struct k3_expert_use uses[] = {{5, 1, 0, 0}, {2, 10, 1, 9}, {7, 100, 2, 9}};
    const uint32_t layer = 0;
    begin(s, layer, uses, 3);
    disk.on_wait = first_in; /* compute waits for use 0 */
    EXPECT(false, 0);
    complete(2), complete(3), complete(4), complete(5); /* while it computes the others come */
    complete(6), complete(8);                           /* but for w2 of use 1 */
    EXPECT(true, 0);
    EXPECT(false, 1, 2);
    EXPECT(true, 2);
    disk.on_wait = second_w2; /* compute waits for use 1, for the first time */
    EXPECT(true, 1);
    end(s);
    assert_int_equal(disk.waits, 2);
    expect_counts(s, 111, 0, 100, 11, 0.5);
    k3_experts_close(s);
}

/* The second wait ends as soon as it begins; the use has been waited for all the same. */
static void one_then_the_other(void)
{
    complete(disk.waits == 1 ? 1 : 0);
    disk.seconds = disk.waits == 1 ? 0.25 : 0;
}

static void half_a_stage_is_not_there(void **state)
{
    (void)state;
    struct k3_experts *s = shard_store(&shard, NULL, 6, 4, K3_POLICY_QUOTA);
    const struct k3_expert_use uses[] = {{3, 1, 0, 0}};
    const uint32_t layer = 1;
    begin(s, layer, uses, 1);
    complete(2); /* w2 alone is of no use yet */
    disk.on_wait = one_then_the_other;
    EXPECT(false, 0);
    assert_int_equal(disk.waits, 2);
    EXPECT(true, 0);
    end(s);
    expect_counts(s, 1, 0, 0, 1, 0.25);
    k3_experts_close(s);
}

static void no_time_lost_is_no_wait(void **state)
{
    (void)state;
    struct k3_experts *s = shard_store(&shard, NULL, 6, 4, K3_POLICY_QUOTA);
    const struct k3_expert_use uses[] = {{3, 1, 0, 0}};
    const uint32_t layer = 1;
    begin(s, layer, uses, 1);
    disk.on_wait = complete_all; /* came in just before the queue was asked */
    disk.seconds = 0;
    EXPECT(false, 0);
    EXPECT(true, 0);
    end(s);
    expect_counts(s, 1, 0, 1, 0, 0);
    k3_experts_close(s);
}

static void residents_come_first_and_cost_nothing(void **state)
{
    (void)state;
    struct k3_experts *s = shard_store(&shard, NULL, 4, 4, K3_POLICY_QUOTA); /* 2 per layer */
    const uint32_t layer = 0;
    {
        const struct k3_expert_use uses[] = {{1, 1, 0, 0}, {6, 1, 2, 0}, {4, 1, 1, 0}};
        begin(s, layer, uses, 3);
        complete_all();
        EXPECT(false, 0, 1, 2);
        EXPECT(true, 0, 1, 2);
        end(s); /* keeps 1 and 4: the third choice is refused */
        expect_counts(s, 3, 0, 3, 0, 0);
    }
    const struct k3_expert_use uses[] = {{6, 1, 0, 0}, {4, 2, 1, 1}, {1, 1, 2, 0}};
    begin(s, layer, uses, 3);
    assert_int_equal(disk.n, 3); /* only 6 is read */
    expect_read(2, 0, 6, K3_W2);
    EXPECT(false, 1, 2);
    EXPECT(true, 1, 2);
    disk.on_wait = complete_all;
    EXPECT(false, 0);
    EXPECT(true, 0);
    end(s);
    expect_counts(s, 7, 3, 3, 1, 0.25);
    struct k3_layer_counts lc;
    k3_experts_get_layer(s, 0, &lc);
    assert_int_equal(lc.requests, 7);
    assert_int_equal(lc.resident, 3);
    assert_int_equal(lc.slots, 2);
    assert_int_equal(lc.used, 2);
    k3_experts_close(s);
}

static void staging_limits_what_is_in_flight(void **state)
{
    (void)state;
    struct k3_experts *s = shard_store(&shard, NULL, 0, 1, K3_POLICY_QUOTA);
    const struct k3_expert_use uses[] = {{3, 1, 0, 0}, {0, 1, 1, 0}, {5, 1, 2, 0}};
    const uint32_t layer = 1;
    begin(s, layer, uses, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(disk.n, 3 * (i + 1));
        expect_read(3 * i, 1, uses[i].expert, K3_W1);
        expect_read(3 * i + 1, 1, uses[i].expert, K3_W3);
        expect_read(3 * i + 2, 1, uses[i].expert, K3_W2);
        complete_all();
        EXPECT(false, i);
        assert_int_equal(disk.n, 3 * (i + 1));
        EXPECT(true, i); /* done: the slot is free, the next is asked for at once */
    }
    end(s);
    expect_counts(s, 3, 0, 3, 0, 0);
    k3_experts_close(s);
}

static void next_before_done_is_refused(void **state)
{
    (void)state;
    struct k3_experts *s = shard_store(&shard, NULL, 0, 1, K3_POLICY_QUOTA);
    const struct k3_expert_use uses[] = {{3, 1, 0, 0}, {0, 1, 1, 0}};
    struct k3_expert_job job;
    struct k3_error err = {0};
    size_t n;
    begin(s, 0, uses, 2);
    complete_all();
    assert_int_equal(next(s, &job, 1), 1);
    assert_int_equal(next(s, &job, 1), 1);
    assert_true(job.out);
    assert_int_equal(k3_experts_next(s, &job, 1, &n, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "before done()"));
    assert_int_equal(k3_experts_end(s, &err), K3_FAILED);
    k3_experts_abort(s);
    expect_counts(s, 0, 0, 0, 0, 0);
    k3_experts_close(s);
}

/* Two slots full, one of staging, three misses of which two stay: the second and third miss must
 * take the slots of residents that leave, of the one in use only when its job is done. */
static void leaving_residents_make_room(void **state)
{
    (void)state;
    struct k3_experts *s = shard_store(&shard, NULL, 4, 1, K3_POLICY_QUOTA);
    const uint32_t layer = 0;
    {
        const struct k3_expert_use uses[] = {{0, 1, 0, 0}, {1, 1, 1, 0}};
        disk.on_wait = complete_all;
        shard_step(&shard, s, layer, uses, 2, 8);
        shard_step(&shard, s, 1, uses, 2, 8); /* all four slots are taken */
    }
    const struct k3_expert_use uses[] = {{1, 1, 9, 0}, {2, 5, 0, 4}, {3, 5, 0, 4}, {4, 1, 9, 3}};
    begin(s, layer, uses, 4);
    complete_all();
    EXPECT(false, 0, 1);
    EXPECT(true, 0, 1);       /* 2 stays; 3 gets the slot of 0 */
    complete_all();
    EXPECT(false, 2);
    EXPECT(true, 2);          /* 3 stays; 4 gets the slot of 1 */
    complete_all();
    EXPECT(false, 3);
    EXPECT(true, 3);
    end(s);
    begin(s, layer, (const struct k3_expert_use[]){{2, 1, 0, 0}, {3, 1, 0, 0}}, 2);
    assert_int_equal(disk.n, 0);
    k3_experts_close(s);
}

/* One slot full with an expert that leaves and is in use, one of staging, two misses: the second
 * must wait for the resident's job even when the first one's is done. */
static void an_expert_in_use_keeps_its_slot(void **state)
{
    (void)state;
    struct k3_experts *s = shard_store(&shard, NULL, 2, 1, K3_POLICY_QUOTA);
    const struct k3_expert_use before[] = {{1, 1, 0, 0}};
    disk.on_wait = complete_all;
    shard_step(&shard, s, 0, before, 1, 8);
    shard_step(&shard, s, 1, before, 1, 8);
    const struct k3_expert_use uses[] = {{1, 1, 9, 0}, {2, 5, 0, 4}, {3, 1, 9, 3}};
    const uint32_t layer = 0;
    struct k3_expert_job jobs[8];
    begin(s, layer, uses, 3);
    complete_all();
    EXPECT(false, 0, 1);
    assert_int_equal(next(s, jobs, 8), 2);
    k3_experts_done(s, 1);
    assert_int_equal(disk.n, 3);
    shard_check_job(&shard, layer, 1, &jobs[0]);
    k3_experts_done(s, 0);
    assert_int_equal(disk.n, 6);
    complete_all();
    EXPECT(false, 2);
    EXPECT(true, 2);
    end(s);
    k3_experts_close(s);
}

static void an_abort_forgets_the_step(void **state)
{
    (void)state;
    struct k3_experts *s = shard_store(&shard, NULL, 4, 4, K3_POLICY_QUOTA);
    const struct k3_expert_use uses[] = {{1, 1, 0, 0}, {2, 1, 1, 0}};
    const uint32_t layer = 0;
    k3_experts_abort(s); /* outside a step: nothing */
    begin(s, layer, uses, 2);
    complete_all();
    EXPECT(false, 0, 1);
    EXPECT(true, 0, 1);
    end(s);
    begin(s, layer, (const struct k3_expert_use[]){{5, 1, 0, 0}, {6, 1, 1, 0}, {7, 1, 2, 0}}, 3);
    complete(0);
    k3_experts_abort(s);
    expect_counts(s, 2, 0, 2, 0, 0);
    shard_check_counters(&shard, s);
    begin(s, layer, uses, 2);
    assert_int_equal(disk.n, 0); /* the residents are what they were */
    EXPECT(false, 0, 1);
    EXPECT(true, 0, 1);
    end(s);
    expect_counts(s, 4, 2, 2, 0, 0);
    k3_experts_close(s);
}

static void bad_calls_are_refused(void **state)
{
    (void)state;
    struct k3_experts *s = shard_store(&shard, NULL, 4, 4, K3_POLICY_QUOTA);
    struct k3_error err = {0};
    struct k3_expert_job job;
    size_t n;
    const struct k3_expert_use twice[] = {{1, 1, 0, 0}, {2, 1, 1, 0}, {1, 1, 2, 0}};
    assert_int_equal(k3_experts_begin(s, 0, twice, 3, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "layer 1: expert 1 of 8 is asked for twice"));
    const struct k3_expert_use outside = {8, 1, 0, 0};
    assert_int_equal(k3_experts_begin(s, 0, &outside, 1, &err), K3_FAILED);
    assert_int_equal(k3_experts_begin(s, 2, twice, 2, &err), K3_FAILED);
    assert_int_equal(k3_experts_next(s, &job, 1, &n, &err), K3_FAILED);
    assert_int_equal(k3_experts_end(s, &err), K3_FAILED);
    assert_int_equal(k3_experts_begin(s, 0, twice, 2, &err), K3_OK);
    assert_int_equal(k3_experts_begin(s, 1, twice, 2, &err), K3_FAILED);
    assert_int_equal(k3_experts_next(s, &job, 0, &n, &err), K3_FAILED);
    k3_experts_done(s, 0); /* not handed out: no effect */
    k3_experts_done(s, 99);
    k3_experts_close(s);
}

static void a_step_may_be_empty(void **state)
{
    (void)state;
    struct k3_experts *s = shard_store(&shard, NULL, 4, 4, K3_POLICY_LRU);
    begin(s, 0, NULL, 0);
    end(s);
    expect_counts(s, 0, 0, 0, 0, 0);
    k3_experts_close(s);
}

static void bad_shapes_are_refused(void **state)
{
    (void)state;
    struct k3_error err = {0};
    struct k3_experts_config cfg = {
        .shape = shard.shape, .layers = 1, .n_experts = 2, .staging = 1};
    cfg.shape.bytes[K3_W3][1]++;
    assert_null(k3_experts_open(&cfg, &err));
    assert_non_null(strstr(err.message, "w3"));
    cfg.shape = shard.shape;
    cfg.staging = 0;
    assert_null(k3_experts_open(&cfg, &err));
    cfg.staging = 1;
    cfg.shape.format = K3_EXPERT_F32; /* with scales */
    assert_null(k3_experts_open(&cfg, &err));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(reads_in_order),
        TEST(all_there_is_prefetched),
        TEST(those_that_end_a_wait_are_waited_for),
        TEST(half_a_stage_is_not_there),
        TEST(no_time_lost_is_no_wait),
        TEST(residents_come_first_and_cost_nothing),
        TEST(staging_limits_what_is_in_flight),
        TEST(next_before_done_is_refused),
        TEST(leaving_residents_make_room),
        TEST(an_expert_in_use_keeps_its_slot),
        TEST(an_abort_forgets_the_step),
        TEST(bad_calls_are_refused),
        TEST(a_step_may_be_empty),
        TEST(bad_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
