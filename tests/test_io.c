/* test_io.c - the read queues: right bytes from every backend, faults, order, cancelling, counts.
 *
 * Nothing here depends on time: where an order of events matters, the injected read function holds
 * the reader threads until the test lets them go. */
#include <config.h>

#include <pthread.h>
#ifdef HAVE_LIBURING
#include <liburing.h>
#endif

#include "test_io_files.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define MAX_REQS 400

static struct files files;
static const uint64_t sizes[] = {300001, 4096 * 5, 123};

static int setup(void **state)
{
    (void)state;
    files_make(&files, COUNT(sizes), sizes);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    files_remove(&files);
    return 0;
}

static struct k3_io *open_io(const struct k3_io_options *opt)
{
    struct k3_error err = {0};
    struct k3_io *io = k3_io_open(&files.c, opt, &err);
    if (!io)
        fail_msg("%s", err.message);
    return io;
}

/* ---- requests ---------------------------------------------------------------------------- */

struct job {
    struct k3_io_req req;
    uint64_t window;
};

#define GUARD 64 /* bytes behind each window that must stay as they are */

static void job_make(struct job *j, uint32_t shard, enum k3_io_class class, uint64_t offset,
                     uint64_t bytes)
{
    *j = (struct job){.window = k3_io_window(offset, bytes)};
    j->req = (struct k3_io_req){.shard = shard, .class = class, .offset = offset, .bytes = bytes};
    j->req.buf = k3_io_alloc(j->window + GUARD);
    assert_non_null(j->req.buf);
    memset(j->req.buf, 0x5A, j->window + GUARD);
}

static void job_free(struct job *j)
{
    k3_io_free(j->req.buf, j->window + GUARD);
}

static void check_job(const struct job *j)
{
    const struct k3_io_req *r = &j->req;
    assert_int_equal(r->error, 0);
    assert_true(file_bytes_equal(k3_io_data(r), r->shard, r->offset, r->bytes));
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(r->buf[j->window + (uint64_t)i], 0x5A);
}

/* Random ranges, among them empty ones, aligned ones and such that end with the file. */
static void random_job(struct job *j, uint64_t *seed)
{
    uint32_t shard = (uint32_t)rnd_below(seed, COUNT(sizes));
    uint64_t offset = rnd_below(seed, sizes[shard] + 1);
    uint64_t bytes = rnd_below(seed, sizes[shard] - offset + 1);
    if (rnd_below(seed, 4) == 0)
        offset -= offset % K3_IO_ALIGN;
    if (rnd_below(seed, 4) == 0)
        bytes = sizes[shard] - offset;
    if (bytes > 20000 && rnd_below(seed, 8))
        bytes = bytes % 20000;
    job_make(j, shard, rnd_below(seed, 2) ? K3_IO_TAPE : K3_IO_DEMAND, offset, bytes);
}

static void submit_all(struct k3_io *io, struct job *jobs, size_t n)
{
    struct k3_io_req *reqs[MAX_REQS];
    for (size_t i = 0; i < n; i++)
        reqs[i] = &jobs[i].req;
    k3_io_submit(io, reqs, n);
}

/* Reads n random ranges, checks all bytes and the counters. */
static void read_random(const struct k3_io_options *opt, size_t n, uint64_t seed)
{
    struct job *jobs = calloc(n, sizeof *jobs);
    assert_non_null(jobs);
    struct k3_io *io = open_io(opt);
    uint64_t bytes[K3_IO_CLASSES] = {0}, reads[K3_IO_CLASSES] = {0};
    for (size_t i = 0; i < n; i++) {
        random_job(&jobs[i], &seed);
        bytes[jobs[i].req.class] += jobs[i].req.bytes;
        reads[jobs[i].req.class]++;
    }
    submit_all(io, jobs, n / 2);
    submit_all(io, jobs + n / 2, n - n / 2);
    for (size_t i = 0; i < n; i += 2) {
        assert_true(k3_io_wait(io, &jobs[i].req) >= 0);
        assert_int_equal(atomic_load(&jobs[i].req.done), 1);
    }
    k3_io_drain(io);
    struct k3_io_counters k;
    k3_io_get_counters(io, &k);
    for (int c = 0; c < K3_IO_CLASSES; c++) {
        assert_int_equal(k.bytes[c], bytes[c]);
        assert_int_equal(k.reads[c], reads[c]);
    }
    assert_true(k.busy_s > 0);
    assert_int_equal(k.devices, 1);
    assert_null(strstr(k3_io_name(io), "refused"));
    for (size_t i = 0; i < n; i++) {
        assert_true(k3_io_wait(io, &jobs[i].req) == 0.0);
        check_job(&jobs[i]);
        job_free(&jobs[i]);
    }
    k3_io_close(io);
    free(jobs);
}

/* ---- right bytes ------------------------------------------------------------------------- */

static bool all_direct(void)
{
    for (size_t i = 0; i < files.c.n_shards; i++)
        if (files.shards[i].fd_direct < 0)
            return false;
    return true;
}

static void test_threads(void **state)
{
    (void)state;
    for (uint32_t depth = 1; depth <= 16; depth *= 4) {
        read_random(&(struct k3_io_options){.depth = depth}, 60, depth);
        read_random(&(struct k3_io_options){.kind = K3_IO_DIRECT, .depth = depth}, 60, depth);
        read_random(&(struct k3_io_options){.kind = K3_IO_BUFFERED, .depth = depth}, 60, depth);
    }
}

static bool have_uring(void)
{
    struct k3_error err = {0};
    struct k3_io *io = k3_io_open(&files.c, &(struct k3_io_options){.kind = K3_IO_URING}, &err);
    if (!io) { /* then it must say what to do instead */
        assert_int_equal(err.status, K3_FAILED);
        assert_non_null(strstr(err.message, "choose the I/O backend"));
    }
    k3_io_close(io);
    return io != NULL;
}

static void test_uring(void **state)
{
    (void)state;
    if (!have_uring())
        skip();
    for (uint32_t depth = 1; depth <= 16; depth *= 4)
        read_random(&(struct k3_io_options){.kind = K3_IO_URING, .depth = depth}, 100, depth);
}

#ifdef HAVE_LIBURING
/* Stands before the library's (linked with --wrap): a kernel that takes no more reads, for ever. */
static atomic_bool kernel_refuses;
int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring)
{
    return atomic_load(&kernel_refuses) ? -ENOMEM : __real_io_uring_submit(ring);
}

/* A ring that is given up answers every request, however many there are. */
static void test_uring_given_up(void **state)
{
    (void)state;
    if (!have_uring())
        skip();
    struct job jobs[20];
    struct k3_io *io = open_io(&(struct k3_io_options){.kind = K3_IO_URING, .depth = 2});
    atomic_store(&kernel_refuses, true);
    for (size_t i = 0; i < COUNT(jobs); i++)
        job_make(&jobs[i], 0, K3_IO_DEMAND, 7 * i, 5000);
    for (size_t half = 0; half < COUNT(jobs); half += COUNT(jobs) / 2) {
        submit_all(io, jobs + half, COUNT(jobs) / 2);
        k3_io_drain(io);
    }
    atomic_store(&kernel_refuses, false);
    k3_io_close(io);
    for (size_t i = 0; i < COUNT(jobs); i++) {
        assert_int_equal(jobs[i].req.error, ENOMEM);
        job_free(&jobs[i]);
    }
}
#else
static void test_uring_given_up(void **state)
{
    (void)state;
    skip();
}
#endif

static void test_names(void **state)
{
    (void)state;
    struct k3_io *io = open_io(&(struct k3_io_options){.depth = 3});
    if (all_direct())
        assert_string_equal(k3_io_name(io), "direct x3");
    k3_io_close(io);
    io = open_io(&(struct k3_io_options){.kind = K3_IO_BUFFERED});
    assert_string_equal(k3_io_name(io), "buffered x16");
    k3_io_close(io);
    struct k3_shard saved[FILES_MAX];
    memcpy(saved, files.shards, sizeof saved);
    files.shards[1].fd_direct = -1;
    files.shards[1].direct_errno = EINVAL;
    io = open_io(&(struct k3_io_options){.kind = K3_IO_DIRECT, .depth = 2});
    if (all_direct())
        assert_string_equal(k3_io_name(io), "direct x2 (1 of 3 shards buffered, O_DIRECT: "
                                            "Invalid argument)");
    k3_io_close(io);
    for (size_t i = 0; i < files.c.n_shards; i++) {
        files.shards[i].fd_direct = -1;
        files.shards[i].direct_errno = EINVAL;
    }
    io = open_io(&(struct k3_io_options){.depth = 2});
    assert_string_equal(k3_io_name(io), "buffered x2 (O_DIRECT: Invalid argument)");
    k3_io_close(io);
    read_random(&(struct k3_io_options){.depth = 2}, 20, 1);
    memcpy(files.shards, saved, sizeof saved);
}

static void test_memory(void **state)
{
    (void)state;
    const uint64_t huge = 2u << 20;
    assert_int_equal(k3_io_round(1), 4096);
    assert_int_equal(k3_io_round(4096), 4096);
    assert_int_equal(k3_io_round(huge - 1), huge);
    assert_int_equal(k3_io_round(huge + 1), 2 * huge);
    assert_int_equal(k3_io_round(0), 0);
    for (uint64_t bytes = 1; bytes < 8 * huge; bytes = bytes * 3 + 1000) {
        uint8_t *p = k3_io_alloc(bytes);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % (bytes >= huge ? huge : 4096), 0);
        for (uint64_t i = 0; i < bytes; i += 4096)
            assert_int_equal(p[i], 0);
        p[bytes - 1] = 1;
        k3_io_free(p, bytes);
    }
    assert_null(k3_io_alloc(0));
    assert_null(k3_io_alloc(UINT64_MAX));
    k3_io_free(NULL, 5);
    assert_int_equal(k3_io_window(0, 4096), 4096);
    assert_int_equal(k3_io_window(4095, 2), 8192);
    assert_int_equal(k3_io_window(4096, 1), 4096);
}

/* ---- faults ------------------------------------------------------------------------------ */

enum fault { FAULT_SHORT = 1, FAULT_EINTR = 2, FAULT_EAGAIN = 4, FAULT_EINVAL_DIRECT = 8 };

struct faults {
    const struct files *f;
    unsigned kinds;
    pthread_mutex_t lock;
    uint64_t seed;
    unsigned again;       /* EAGAIN in a row so far */
    int bad_errno;        /* read of a range that holds this byte fails */
    uint32_t bad_shard;
    uint64_t bad_offset;
    atomic_uint direct_reads, reads;
};

static bool faults_now(struct faults *x, unsigned kind, uint64_t one_in)
{
    return x->kinds & kind && rnd_below(&x->seed, one_in) == 0;
}

static int faults_choose(struct faults *x, bool direct, uint64_t *n)
{
    if (direct && x->kinds & FAULT_EINVAL_DIRECT)
        return EINVAL;
    if (faults_now(x, FAULT_EINTR, 3))
        return EINTR;
    if (x->again < 3 && faults_now(x, FAULT_EAGAIN, 2)) {
        x->again++;
        return EAGAIN;
    }
    x->again = 0;
    if (faults_now(x, FAULT_SHORT, 2))
        *n = 1 + rnd_below(&x->seed, *n);
    return 0;
}

static int64_t faulty_read(void *ud, int fd, void *buf, uint64_t n, uint64_t offset)
{
    struct faults *x = ud;
    uint32_t shard = files_shard(x->f, fd);
    bool direct = fd == x->f->shards[shard].fd_direct;
    if (direct)
        atomic_fetch_add(&x->direct_reads, 1);
    atomic_fetch_add(&x->reads, 1);
    if (x->bad_errno && shard == x->bad_shard && x->bad_offset >= offset &&
        x->bad_offset < offset + n) {
        errno = x->bad_errno;
        return -1;
    }
    pthread_mutex_lock(&x->lock);
    uint64_t part = n;
    int error = faults_choose(x, direct, &part);
    pthread_mutex_unlock(&x->lock);
    if (error) {
        errno = error;
        return -1;
    }
    /* A real direct read needs whole blocks; what it gives beyond `part` is taken back. */
    int64_t got = pread(fd, buf, n, (off_t)offset);
    if (got > (int64_t)part) {
        memset((uint8_t *)buf + part, 0xEE, (size_t)got - part);
        got = (int64_t)part;
    }
    return got;
}

static void test_retried_faults(void **state)
{
    (void)state;
    for (unsigned kinds = 1; kinds < 8; kinds++)
        for (int kind = K3_IO_DIRECT; kind <= K3_IO_BUFFERED; kind++) {
            struct faults x = {.f = &files, .kinds = kinds, .seed = kinds,
                               .lock = PTHREAD_MUTEX_INITIALIZER};
            read_random(&(struct k3_io_options){.kind = (enum k3_io_kind)kind, .depth = 4,
                                                .read = faulty_read, .read_ud = &x}, 40, kinds);
        }
}

static void test_direct_refused_by_read(void **state)
{
    (void)state;
    if (!all_direct())
        skip();
    struct faults x = {.f = &files, .kinds = FAULT_EINVAL_DIRECT | FAULT_SHORT,
                       .lock = PTHREAD_MUTEX_INITIALIZER};
    struct k3_io_options opt = {.depth = 1, .read = faulty_read, .read_ud = &x};
    struct job jobs[6];
    struct k3_io *io = open_io(&opt);
    assert_string_equal(k3_io_name(io), "direct x1");
    for (uint32_t i = 0; i < COUNT(jobs); i++)
        job_make(&jobs[i], i % 2, K3_IO_TAPE, 5000 + i, 9000);
    submit_all(io, jobs, COUNT(jobs));
    k3_io_drain(io);
    for (size_t i = 0; i < COUNT(jobs); i++) {
        check_job(&jobs[i]);
        job_free(&jobs[i]);
    }
    assert_int_equal(atomic_load(&x.direct_reads), 2); /* asked once per shard, then never again */
    assert_string_equal(k3_io_name(io),
                        "direct x1, buffered where a read refused O_DIRECT (Invalid argument)");
    k3_io_close(io);
}

static void test_eio(void **state)
{
    (void)state;
    enum { N = 40 };
    uint64_t seed = 7;
    for (int round = 0; round < 4; round++) {
        struct job jobs[N];
        size_t bad = rnd_below(&seed, N);
        struct faults x = {.f = &files, .kinds = FAULT_SHORT, .seed = seed, .bad_errno = EIO,
                           .lock = PTHREAD_MUTEX_INITIALIZER};
        x.bad_offset = (uint64_t)bad * 7000 + 100;
        struct k3_io *io = open_io(&(struct k3_io_options){
            .kind = round % 2 ? K3_IO_BUFFERED : K3_IO_AUTO, .depth = 8, .read = faulty_read,
            .read_ud = &x});
        for (uint64_t i = 0; i < N; i++) /* each at least a block from the bad byte but one */
            job_make(&jobs[i], 0, i % 2, i * 7000, i == bad ? 600 : i + 1 == bad ? 2000 : 60);
        submit_all(io, jobs, N);
        k3_io_drain(io);
        for (size_t i = 0; i < N; i++) {
            if (i != bad) {
                /* Aligned windows of neighbours may hold the bad byte too. */
                if (jobs[i].req.error == 0)
                    check_job(&jobs[i]);
                else
                    assert_true(round % 2 == 0 && (i + 1 == bad || i == bad + 1));
                continue;
            }
            struct k3_error err = {0};
            assert_int_equal(jobs[i].req.error, EIO);
            assert_true(jobs[i].req.error_offset <= x.bad_offset);
            assert_int_equal(k3_io_fail(io, &jobs[i].req, &err), K3_FAILED);
            assert_non_null(strstr(err.message, files.paths[0]));
            assert_non_null(strstr(err.message, "Input/output error (errno 5)"));
            assert_non_null(strstr(err.message, "check the disk"));
        }
        struct k3_io_counters k;
        k3_io_get_counters(io, &k);
        assert_true(k.reads[0] + k.reads[1] < N);
        k3_io_close(io);
        for (size_t i = 0; i < N; i++)
            job_free(&jobs[i]);
    }
}

/* A range that runs over the end of the file: never zeros in place of what is missing. */
static void check_early_end(const struct k3_io_options *opt)
{
    struct job jobs[3];
    struct k3_io *io = open_io(opt);
    job_make(&jobs[0], 0, K3_IO_DEMAND, sizes[0] - 5000, 5001);
    job_make(&jobs[1], 1, K3_IO_DEMAND, sizes[1], 1);       /* begins at an aligned end */
    job_make(&jobs[2], 2, K3_IO_TAPE, sizes[2] + 9000, 10); /* wholly outside */
    submit_all(io, jobs, 3);
    k3_io_drain(io);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(jobs[i].req.error, ENODATA);
    assert_int_equal(jobs[0].req.error_offset, sizes[0]);
    assert_int_equal(jobs[1].req.error_offset, sizes[1]);
    struct k3_error err = {0};
    k3_io_fail(io, &jobs[0].req, &err);
    assert_non_null(strstr(err.message, "the file ends at byte 300001, but 5001 bytes at 295001"));
    assert_non_null(strstr(err.message, files.paths[0]));
    k3_io_close(io);
    for (size_t i = 0; i < 3; i++)
        job_free(&jobs[i]);
}

static void test_early_end(void **state)
{
    (void)state;
    struct faults x = {.f = &files, .kinds = FAULT_SHORT | FAULT_EINTR,
                       .lock = PTHREAD_MUTEX_INITIALIZER};
    check_early_end(&(struct k3_io_options){.kind = K3_IO_DIRECT, .depth = 2});
    check_early_end(&(struct k3_io_options){.kind = K3_IO_BUFFERED, .depth = 2});
    check_early_end(&(struct k3_io_options){.depth = 2, .read = faulty_read, .read_ud = &x});
    if (have_uring())
        check_early_end(&(struct k3_io_options){.kind = K3_IO_URING, .depth = 2});
}

static int64_t always_again(void *ud, int fd, void *buf, uint64_t n, uint64_t offset)
{
    (void)fd, (void)buf, (void)n, (void)offset;
    errno = atomic_fetch_add((atomic_uint *)ud, 1) < 9 ? EAGAIN : ENXIO;
    return -1;
}

/* The vanished disk behind a storm of EAGAIN is reported, with its own errno. */
static void test_storm_then_failure(void **state)
{
    (void)state;
    atomic_uint calls = 0;
    struct job j;
    struct k3_io *io = open_io(&(struct k3_io_options){.depth = 1, .read = always_again,
                                                       .read_ud = &calls});
    job_make(&j, 0, K3_IO_DEMAND, 10, 10);
    submit_all(io, &j, 1);
    k3_io_drain(io);
    assert_int_equal(j.req.error, ENXIO);
    assert_int_equal(atomic_load(&calls), 10);
    k3_io_close(io);
    job_free(&j);
}

/* One byte per read and EAGAIN before each: only EAGAIN in a row counts. */
static int64_t trickle(void *ud, int fd, void *buf, uint64_t n, uint64_t offset)
{
    (void)n;
    if (atomic_fetch_add((atomic_uint *)ud, 1) % 2 == 0) {
        errno = EAGAIN;
        return -1;
    }
    return pread(fd, buf, 1, (off_t)offset);
}

static void test_trickle(void **state)
{
    (void)state;
    atomic_uint calls = 0;
    struct job j;
    struct k3_io *io = open_io(&(struct k3_io_options){.kind = K3_IO_BUFFERED, .depth = 1,
                                                       .read = trickle, .read_ud = &calls});
    job_make(&j, 0, K3_IO_DEMAND, 10, 300);
    submit_all(io, &j, 1);
    k3_io_drain(io);
    check_job(&j);
    assert_int_equal(atomic_load(&calls), 600);
    k3_io_close(io);
    job_free(&j);
}

static void test_refused_options(void **state)
{
    (void)state;
    struct k3_error err = {0};
    struct k3_io_options opt = {.depth = K3_IO_DEPTH_MAX + 1};
    assert_null(k3_io_open(&files.c, &opt, &err));
    assert_int_equal(err.status, K3_USAGE);
    assert_non_null(strstr(err.message, "I/O depth 257 is over 256"));
    opt = (struct k3_io_options){.kind = K3_IO_URING, .read = always_again};
    assert_null(k3_io_open(&files.c, &opt, &err));
    assert_int_equal(err.status, K3_USAGE);
    k3_io_close(NULL);
}

/* ---- order ------------------------------------------------------------------------------- */

/* Holds every read until it is opened, and writes down what was begun. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    int inside, most;
    size_t n;
    uint64_t order[MAX_REQS];
};

#define GATE {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}

static int64_t gated_read(void *ud, int fd, void *buf, uint64_t n, uint64_t offset)
{
    struct gate *g = ud;
    pthread_mutex_lock(&g->lock);
    if (g->n < MAX_REQS)
        g->order[g->n++] = offset;
    if (++g->inside > g->most)
        g->most = g->inside;
    pthread_cond_broadcast(&g->changed);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->lock);
    g->inside--;
    pthread_mutex_unlock(&g->lock);
    return pread(fd, buf, n, (off_t)offset);
}

static void gate_wait_inside(struct gate *g, int n)
{
    pthread_mutex_lock(&g->lock);
    while (g->inside < n)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void gate_open(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

/* One buffered reader, held in its first read, and six requests behind it: tape, demand, ... */
static struct k3_io *hold_queue(struct gate *g, struct job *jobs)
{
    struct k3_io *io = open_io(&(struct k3_io_options){.kind = K3_IO_BUFFERED, .depth = 1,
                                                       .read = gated_read, .read_ud = g});
    job_make(&jobs[0], 0, K3_IO_TAPE, 0, 10);
    submit_all(io, jobs, 1);
    gate_wait_inside(g, 1);
    for (uint32_t i = 1; i < 7; i++)
        job_make(&jobs[i], 0, i % 2 ? K3_IO_TAPE : K3_IO_DEMAND, i, 10);
    submit_all(io, jobs + 1, 6);
    return io;
}

static void test_demand_first(void **state)
{
    (void)state;
    struct gate g = GATE;
    struct job jobs[7];
    struct k3_io *io = hold_queue(&g, jobs);
    gate_open(&g);
    k3_io_drain(io);
    static const uint64_t want[] = {0, 2, 4, 6, 1, 3, 5};
    assert_int_equal(g.n, COUNT(want));
    for (size_t i = 0; i < COUNT(want); i++)
        assert_int_equal(g.order[i], want[i]);
    k3_io_close(io);
    for (size_t i = 0; i < 7; i++) {
        check_job(&jobs[i]);
        job_free(&jobs[i]);
    }
}

static void test_cancel(void **state)
{
    (void)state;
    struct gate g = GATE;
    struct job jobs[7];
    struct k3_io *io = hold_queue(&g, jobs);
    struct k3_io_req never = {0};
    struct k3_io_req *some[] = {&jobs[0].req, &jobs[2].req, &jobs[5].req, &jobs[6].req, &never};
    k3_io_cancel(io, some, COUNT(some));
    assert_int_equal(atomic_load(&jobs[0].req.done), 0); /* a reader has it */
    for (size_t i = 1; i < 4; i++) {
        assert_true(k3_io_wait(io, some[i]) == 0.0);
        assert_int_equal(some[i]->error, ECANCELED);
    }
    gate_open(&g);
    k3_io_drain(io);
    k3_io_cancel(io, some, COUNT(some)); /* done already: nothing happens */
    static const uint64_t want[] = {0, 4, 1, 3};
    assert_int_equal(g.n, COUNT(want));
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_int_equal(g.order[i], want[i]);
        check_job(&jobs[want[i]]);
    }
    struct k3_io_counters k;
    k3_io_get_counters(io, &k);
    assert_int_equal(k.reads[K3_IO_DEMAND] + k.reads[K3_IO_TAPE], 4);
    submit_all(io, &jobs[2], 1); /* a request can be used again */
    k3_io_wait(io, &jobs[2].req);
    check_job(&jobs[2]);
    k3_io_close(io);
    for (size_t i = 0; i < 7; i++)
        job_free(&jobs[i]);
}

static void *open_later(void *ud)
{
    gate_open(ud);
    return NULL;
}

static void test_close_drops_queue(void **state)
{
    (void)state;
    struct gate g = GATE;
    struct job jobs[7];
    struct k3_io *io = hold_queue(&g, jobs);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, open_later, &g), 0);
    k3_io_close(io);
    pthread_join(t, NULL);
    check_job(&jobs[0]);
    for (size_t i = 0; i < 7; i++) { /* those not begun before the gate opened were dropped */
        assert_int_equal(atomic_load(&jobs[i].req.done), 1);
        assert_true(jobs[i].req.error == 0 || jobs[i].req.error == ECANCELED);
        job_free(&jobs[i]);
    }
}

static void test_depth(void **state)
{
    (void)state;
    enum { DEPTH = 6, N = 20 };
    struct gate g = GATE;
    struct job jobs[N];
    struct k3_io *io = open_io(&(struct k3_io_options){.depth = DEPTH, .read = gated_read,
                                                       .read_ud = &g});
    for (uint32_t i = 0; i < N; i++)
        job_make(&jobs[i], 0, K3_IO_TAPE, i * 5000, 100);
    submit_all(io, jobs, N);
    gate_wait_inside(&g, DEPTH);
    gate_open(&g);
    struct k3_io_req *pair[] = {&jobs[N - 2].req, &jobs[N - 1].req};
    assert_true(k3_io_wait_any(io, pair, 2) >= 0);
    assert_true(atomic_load(&pair[0]->done) || atomic_load(&pair[1]->done));
    assert_true(k3_io_wait_any(io, pair, 0) == 0.0);
    k3_io_drain(io);
    assert_int_equal(g.most, DEPTH);
    k3_io_close(io);
    for (size_t i = 0; i < N; i++) {
        check_job(&jobs[i]);
        job_free(&jobs[i]);
    }
}

/* A full queue of one disk does not hold up another. */
static void test_devices(void **state)
{
    (void)state;
    struct gate g = GATE;
    struct job jobs[8];
    uint64_t saved = files.shards[1].device;
    files.shards[1].device = saved + 1;
    struct k3_io *io = open_io(&(struct k3_io_options){.depth = 2, .read = gated_read,
                                                       .read_ud = &g});
    for (uint32_t i = 0; i < 8; i++)
        job_make(&jobs[i], i < 6 ? 0 : 1, K3_IO_TAPE, i * 100, 100);
    submit_all(io, jobs, 6);
    gate_wait_inside(&g, 2);
    submit_all(io, jobs + 6, 2);
    gate_wait_inside(&g, 4);
    gate_open(&g);
    k3_io_drain(io);
    assert_int_equal(g.most, 4);
    struct k3_io_counters k;
    k3_io_get_counters(io, &k);
    assert_int_equal(k.devices, 2);
    assert_int_equal(k.reads[K3_IO_TAPE], 8);
    k3_io_close(io);
    files.shards[1].device = saved;
    for (size_t i = 0; i < 8; i++) {
        check_job(&jobs[i]);
        job_free(&jobs[i]);
    }
}

/* 60 kB at 6 MB/s cannot take less than 10 ms, whoever reads them. */
static void test_simulated_rate(void **state)
{
    (void)state;
    bool uring = have_uring();
    for (int kind = 0; kind < (uring ? 2 : 1); kind++) {
        struct job jobs[6];
        struct k3_io *io = open_io(&(struct k3_io_options){
            .kind = kind ? K3_IO_URING : K3_IO_AUTO, .depth = 3, .simulate_rate = 6000000});
        for (uint32_t i = 0; i < 6; i++)
            job_make(&jobs[i], 0, K3_IO_TAPE, i * 10000, 10000);
        submit_all(io, jobs, 6);
        k3_io_drain(io);
        struct k3_io_counters k;
        k3_io_get_counters(io, &k);
        assert_true(k.busy_s >= 0.0099);
        k3_io_close(io);
        for (size_t i = 0; i < 6; i++) {
            check_job(&jobs[i]);
            job_free(&jobs[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_uring),
        cmocka_unit_test(test_uring_given_up),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_retried_faults),
        cmocka_unit_test(test_direct_refused_by_read),
        cmocka_unit_test(test_eio),
        cmocka_unit_test(test_early_end),
        cmocka_unit_test(test_storm_then_failure),
        cmocka_unit_test(test_trickle),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_demand_first),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_close_drops_queue),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_simulated_rate),
    };
    return cmocka_run_group_tests_name("io", tests, setup, teardown);
}
