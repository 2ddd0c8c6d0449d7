/* test_experts.c - the store over the real readers: random requests against a plain model of what
 * it should hold, all formats, faults, and the contents of every job. */
#include <config.h>

#include "test_experts_shard.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* ---- a plain model of the policies ------------------------------------------------------- */

#define MAX_KEYS 256

struct model {
    enum k3_policy policy;
    uint32_t layers, n_experts, slots;
    bool has[MAX_KEYS];
    uint64_t last[MAX_KEYS]; /* quota: position; LRU: time of use; 0 = never */
    uint64_t freq[MAX_KEYS];
    uint64_t clock[16], now;
    uint64_t requests, resident;
};

static uint32_t model_quota(const struct model *m, uint32_t layer)
{
    return (layer + 1) * m->slots / m->layers - layer * m->slots / m->layers;
}

static bool model_better(const struct model *m, uint32_t a, uint32_t b)
{
    if (m->last[a] != m->last[b])
        return m->last[a] > m->last[b];
    if (m->freq[a] != m->freq[b])
        return m->freq[a] > m->freq[b];
    return a < b;
}

/* Of those in `pool` the n best stay. */
static void model_keep(struct model *m, bool *pool, uint32_t begin, uint32_t end, uint32_t n)
{
    for (uint32_t key = begin; key < end; key++)
        m->has[key] = false;
    for (; n > 0; n--) {
        uint32_t best = end;
        for (uint32_t key = begin; key < end; key++)
            if (pool[key] && (best == end || model_better(m, key, best)))
                best = key;
        if (best == end)
            return;
        pool[best] = false;
        m->has[best] = true;
    }
}

static void model_step(struct model *m, uint32_t layer, const struct k3_expert_use *uses, size_t n)
{
    bool pool[MAX_KEYS];
    uint64_t tokens = 0;
    const uint32_t first = layer * m->n_experts, all = m->layers * m->n_experts;
    memcpy(pool, m->has, sizeof pool);
    for (size_t i = 0; i < n; i++) {
        const uint32_t key = first + uses[i].expert;
        m->requests += uses[i].requests;
        m->resident += m->has[key] ? uses[i].requests : 0;
        pool[key] = true;
        if (m->policy == K3_POLICY_LRU) {
            m->last[key] = ++m->now;
            continue;
        }
        const uint64_t at = m->clock[layer] + uses[i].last + 1;
        for (uint64_t t = m->last[key]; m->last[key] != 0 && t < at; t++)
            m->freq[key] = m->freq[key] * 7 / 8; /* floor: what ceil of the loss leaves */
        m->last[key] = at;
        m->freq[key] += uses[i].requests * (1024 / (4 + uses[i].best_rank));
        if (uses[i].last + 1 > tokens)
            tokens = uses[i].last + 1;
    }
    m->clock[layer] += tokens;
    if (m->policy == K3_POLICY_LRU)
        model_keep(m, pool, 0, all, m->slots);
    else
        model_keep(m, pool, first, first + m->n_experts, model_quota(m, layer));
}

static void compare(const struct model *m, const struct k3_experts *store)
{
    struct k3_experts_counters c;
    k3_experts_get_counters(store, &c);
    assert_int_equal(c.requests, m->requests);
    assert_int_equal(c.resident, m->resident);
    for (uint32_t l = 0; l < m->layers; l++) {
        uint32_t used = 0;
        struct k3_layer_counts lc;
        for (uint32_t e = 0; e < m->n_experts; e++)
            used += m->has[l * m->n_experts + e];
        k3_experts_get_layer(store, l, &lc);
        assert_int_equal(lc.used, used);
        assert_int_equal(lc.slots, m->policy == K3_POLICY_LRU ? m->slots : model_quota(m, l));
    }
}

/* ---- random steps ------------------------------------------------------------------------ */

/* Distinct experts, low numbers more often, in random order. */
static size_t random_uses(uint64_t *seed, uint32_t n_experts, struct k3_expert_use *uses)
{
    bool taken[64] = {false};
    const uint32_t tokens = shard_random(seed) % 4 == 0 ? 1 + shard_random(seed) % 9 : 1;
    const size_t want = 1 + shard_random(seed) % (n_experts / 2);
    size_t n = 0;
    while (n < want) {
        const uint32_t a = shard_random(seed) % n_experts, b = shard_random(seed) % n_experts;
        const uint32_t expert = a < b ? a : b;
        if (taken[expert])
            continue;
        taken[expert] = true;
        const uint32_t last = (uint32_t)(shard_random(seed) % tokens);
        uses[n++] = (struct k3_expert_use){expert, 1 + (uint32_t)(shard_random(seed) % (last + 1)),
                                           (uint32_t)(shard_random(seed) % 16), last};
    }
    return n;
}

static struct k3_io *open_io(const struct shard *s, k3_io_read_fn read, void *ud)
{
    const struct k3_io_options opt = {
        .kind = K3_IO_BUFFERED, .depth = 4, .read = read, .read_ud = ud};
    struct k3_error err = {0};
    struct k3_io *io = k3_io_open(&s->c, &opt, &err);
    if (!io)
        fail_msg("%s", err.message);
    return io;
}

/* Direct reads fill whole windows, where the file system of the scratch folder has them; without
 * io_uring the thread pool takes its place. */
static struct k3_io *open_io_kind(const struct shard *s, enum k3_io_kind kind)
{
    struct k3_io_options opt = {.kind = kind, .depth = 4};
    struct k3_error err = {0};
    struct k3_io *io = k3_io_open(&s->c, &opt, &err);
    if (!io && kind == K3_IO_URING) {
        opt.kind = K3_IO_DIRECT;
        io = k3_io_open(&s->c, &opt, &err);
    }
    if (!io)
        fail_msg("%s", err.message);
    return io;
}

/* Takes some jobs of a step and gives it up. */
static void abandon(const struct shard *s, struct k3_experts *store, uint32_t layer,
                    const struct k3_expert_use *uses, size_t n, uint64_t *seed)
{
    struct k3_error err = {0};
    struct k3_expert_job jobs[4];
    size_t count = 1;
    assert_int_equal(k3_experts_begin(store, layer, uses, n, &err), K3_OK);
    for (size_t calls = shard_random(seed) % (2 * n); calls > 0 && count > 0; calls--) {
        assert_int_equal(k3_experts_next(store, jobs, 4, &count, &err), K3_OK);
        for (size_t i = 0; i < count; i++) {
            shard_check_job(s, layer, uses[jobs[i].use].expert, &jobs[i]);
            if (jobs[i].out)
                k3_experts_done(store, jobs[i].use);
        }
    }
    k3_experts_abort(store);
}

static void random_run(enum shard_layout layout, enum k3_policy policy, uint32_t slots,
                       uint32_t staging, bool aborts, uint64_t seed)
{
    struct shard s;
    struct k3_expert_use uses[64];
    shard_make(&s, layout, 5, 20, 32, 96);
    static const enum k3_io_kind kinds[] = {K3_IO_DIRECT, K3_IO_BUFFERED, K3_IO_URING};
    struct k3_io *io = open_io_kind(&s, kinds[seed % 3]);
    struct k3_experts *store = shard_store(&s, io, slots, staging, policy);
    struct model m = {.policy = policy, .layers = 5, .n_experts = 20};
    m.slots = slots < 100 ? slots : 100;
    for (uint32_t i = 0; i < 150; i++) {
        const uint32_t layer = shard_random(&seed) % 8 ? i % 5 : shard_random(&seed) % 5;
        const size_t n = random_uses(&seed, 20, uses);
        if (aborts && shard_random(&seed) % 4 == 0) {
            abandon(&s, store, layer, uses, n, &seed);
        } else {
            shard_step(&s, store, layer, uses, n, 1 + shard_random(&seed) % 12);
            model_step(&m, layer, uses, n);
        }
        /* With little staging an aborted step may have used slots of residents. */
        if (!aborts || staging >= 20)
            compare(&m, store);
        shard_check_counters(&s, store);
    }
    k3_experts_close(store);
    k3_io_close(io);
    shard_remove(&s);
}

static void random_quota(void **state)
{
    (void)state;
    random_run(SHARD_PACKED, K3_POLICY_QUOTA, 23, 20, false, 1);
    random_run(SHARD_APART, K3_POLICY_QUOTA, 40, 10, false, 2);
    random_run(SHARD_BF16, K3_POLICY_QUOTA, 12, 10, false, 3);
    random_run(SHARD_APART, K3_POLICY_QUOTA, 0, 3, false, 4);
    random_run(SHARD_PACKED, K3_POLICY_QUOTA, 1000, 20, false, 5); /* more than there are */
}

static void random_lru(void **state)
{
    (void)state;
    random_run(SHARD_PACKED, K3_POLICY_LRU, 23, 20, false, 6);
    random_run(SHARD_APART, K3_POLICY_LRU, 4, 10, false, 7); /* less than a step asks for */
    random_run(SHARD_BF16, K3_POLICY_LRU, 60, 10, false, 8);
    random_run(SHARD_BF16, K3_POLICY_LRU, 0, 2, false, 9);
}

static void random_little_staging(void **state)
{
    (void)state;
    for (uint32_t staging = 1; staging <= 3; staging++) {
        random_run(SHARD_PACKED, K3_POLICY_QUOTA, 30, staging, false, 10 + staging);
        random_run(SHARD_APART, K3_POLICY_LRU, 30, staging, false, 20 + staging);
    }
}

static void random_aborts(void **state)
{
    (void)state;
    random_run(SHARD_PACKED, K3_POLICY_QUOTA, 30, 20, true, 31);
    random_run(SHARD_APART, K3_POLICY_LRU, 30, 20, true, 32);
    random_run(SHARD_BF16, K3_POLICY_QUOTA, 30, 1, true, 33);
    random_run(SHARD_PACKED, K3_POLICY_LRU, 30, 2, true, 34);
}

/* ---- faults ------------------------------------------------------------------------------ */

struct fault {
    atomic_ullong at; /* reads that cover this byte fail; UINT64_MAX = none */
    atomic_int error;
    atomic_ullong largest;
};

static int64_t faulty_read(void *ud, int fd, void *buf, uint64_t n, uint64_t offset)
{
    struct fault *f = ud;
    const uint64_t at = atomic_load(&f->at);
    if (n > atomic_load(&f->largest))
        atomic_store(&f->largest, n);
    if (at >= offset && at - offset < n) {
        errno = atomic_load(&f->error);
        return -1;
    }
    return pread(fd, buf, n, (off_t)offset);
}

/* Runs the step into its error, and gives it up. */
static void expect_error(struct k3_experts *store, const struct k3_expert_use *uses, size_t n,
                         struct k3_error *err)
{
    struct k3_expert_job jobs[4];
    size_t count = 1;
    enum k3_status st = k3_experts_begin(store, 1, uses, n, err);
    while (st == K3_OK && count > 0) {
        st = k3_experts_next(store, jobs, 4, &count, err);
        for (size_t i = 0; st == K3_OK && i < count; i++)
            if (jobs[i].out)
                k3_experts_done(store, jobs[i].use);
    }
    assert_int_equal(st, K3_FAILED);
    k3_experts_abort(store);
}

static void expect_text(const struct k3_error *err, const char *text)
{
    if (!strstr(err->message, text))
        fail_msg("'%s' is not in: %s", text, err->message);
}

static const struct k3_expert_use four[] = {{2, 1, 0, 0}, {3, 1, 1, 0}, {5, 1, 2, 0}, {7, 1, 3, 0}};

static void a_disk_error_names_its_place(void **state)
{
    (void)state;
    for (uint32_t m = 0; m < K3_EXPERT_MATRICES; m++) {
        struct shard s;
        struct k3_error err = {0};
        struct fault fault = {.error = EIO};
        shard_make(&s, SHARD_APART, 2, 8, 64, 64);
        atomic_store(&fault.at, s.places[8 + 5].offset[m][m % 2]);
        struct k3_io *io = open_io(&s, faulty_read, &fault);
        struct k3_experts *store = shard_store(&s, io, 6, 4, K3_POLICY_QUOTA);
        expect_error(store, four, 4, &err);
        expect_text(&err, "layer 2 expert 5");
        expect_text(&err, s.path);
        expect_text(&err, strerror(EIO));
        shard_check_counters(&s, store);
        atomic_store(&fault.at, UINT64_MAX);
        shard_step(&s, store, 1, four, 4, 4); /* the disk is well again */
        shard_step(&s, store, 1, four, 4, 4);
        shard_check_counters(&s, store);
        k3_experts_close(store);
        k3_io_close(io);
        shard_remove(&s);
    }
}

static void a_short_file_is_told(void **state)
{
    (void)state;
    struct shard s;
    struct k3_error err = {0};
    shard_make(&s, SHARD_PACKED, 2, 8, 64, 64);
    struct k3_io *io = open_io(&s, NULL, NULL);
    struct k3_experts *store = shard_store(&s, io, 6, 1, K3_POLICY_QUOTA);
    assert_int_equal(ftruncate(s.fd, (off_t)s.places[8 + 7].offset[K3_W2][1]), 0);
    expect_error(store, four, 4, &err);
    expect_text(&err, "layer 2 expert 7");
    expect_text(&err, s.path);
    expect_text(&err, "ends");
    k3_experts_close(store);
    k3_io_close(io);
    shard_remove(&s);
}

static void a_nan_scale_is_never_handed_out(void **state)
{
    (void)state;
    static const char *const names[] = {"w1", "w2", "w3"};
    for (int layout = SHARD_PACKED; layout <= SHARD_APART; layout++) {
        for (uint32_t m = 0; m < K3_EXPERT_MATRICES; m++) {
            struct shard s;
            struct k3_error err = {0};
            char want[80];
            shard_make(&s, (enum shard_layout)layout, 2, 8, 64, 96);
            struct k3_io *io = open_io(&s, NULL, NULL);
            struct k3_experts *store = shard_store(&s, io, 6, 4, K3_POLICY_QUOTA);
            const uint64_t at = s.places[8 + 3].offset[m][1];
            const uint32_t columns = m == K3_W2 ? 2 : 3;
            shard_poke(&s, at + 17 * columns + 1, &(uint8_t){255}, 1);
            expect_error(store, four, 4, &err);
            snprintf(want, sizeof want, "layer 2 expert 3: %s.weight_scale row 17 column 1",
                     names[m]);
            expect_text(&err, want);
            expect_text(&err, s.path);
            const uint8_t good = shard_byte(1, 3, m, 1, 17 * columns + 1);
            shard_poke(&s, at + 17 * columns + 1, &good, 1);
            shard_step(&s, store, 1, four, 4, 4);
            k3_experts_close(store);
            k3_io_close(io);
            shard_remove(&s);
        }
    }
}

/* Scales of 255 in the bytes around a matrix, and weights of 255, mean nothing. */
static void a_255_elsewhere_is_no_nan(void **state)
{
    (void)state;
    struct shard s;
    shard_make(&s, SHARD_PACKED, 2, 8, 32, 32);
    uint64_t weights = 0;
    for (uint32_t m = 0; m < K3_EXPERT_MATRICES; m++)
        for (uint64_t i = 0; i < s.shape.bytes[m][0]; i++)
            weights += shard_byte(1, 2, m, 0, i) == 255;
    assert_true(weights > 0);
    struct k3_io *io = open_io(&s, NULL, NULL);
    struct k3_experts *store = shard_store(&s, io, 6, 4, K3_POLICY_QUOTA);
    shard_step(&s, store, 1, four, 4, 4);
    k3_experts_close(store);
    k3_io_close(io);
    shard_remove(&s);
}

/* ---- large experts ----------------------------------------------------------------------- */

static void large_parts_are_cut(void **state)
{
    (void)state;
    struct shard s;
    struct fault fault = {.at = UINT64_MAX};
    shard_make(&s, SHARD_BF16, 1, 2, 2080, 2048); /* 8.5 MB each */
    struct k3_io *io = open_io(&s, faulty_read, &fault);
    struct k3_experts *store = shard_store(&s, io, 1, 1, K3_POLICY_QUOTA);
    const struct k3_expert_use uses[] = {{1, 1, 0, 0}, {0, 1, 1, 0}};
    shard_step(&s, store, 0, uses, 2, 2);
    struct k3_io_counters c;
    k3_io_get_counters(io, &c);
    assert_int_equal(c.reads[K3_IO_DEMAND], 12);
    assert_int_equal(c.bytes[K3_IO_DEMAND], 6 * s.shape.bytes[0][0]);
    assert_true(atomic_load(&fault.largest) <= UINT64_C(8) << 20);
    k3_experts_close(store);
    k3_io_close(io);
    shard_remove(&s);
}

static void sizes_of_the_released_model(void **state)
{
    (void)state;
    struct k3_expert_shape shape = {.format = K3_EXPERT_MXFP4};
    for (uint32_t m = 0; m < K3_EXPERT_MATRICES; m++) {
        shape.bytes[m][0] = 3072 * 3584 / 2;
        shape.bytes[m][1] = 3072 * 3584 / 32;
    }
    /* the payload and, for each of six parts, a block for windows that begin anywhere */
    assert_int_equal(k3_experts_slot_bytes(&shape), 17547264 + 6 * 4096);
    const struct k3_experts_config cfg = {
        .shape = shape, .layers = 92, .n_experts = 896, .slots = 1823, .staging = 16};
    assert_in_range(k3_experts_table_bytes(&cfg), 1, 2000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_quota),
        cmocka_unit_test(random_lru),
        cmocka_unit_test(random_little_staging),
        cmocka_unit_test(random_aborts),
        cmocka_unit_test(a_disk_error_names_its_place),
        cmocka_unit_test(a_short_file_is_told),
        cmocka_unit_test(a_nan_scale_is_never_handed_out),
        cmocka_unit_test(a_255_elsewhere_is_no_nan),
        cmocka_unit_test(large_parts_are_cut),
        cmocka_unit_test(sizes_of_the_released_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
