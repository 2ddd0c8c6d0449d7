/* test_tape.c - the stream plan and the tape: every byte once, in order, whatever the sizes. */
#include <config.h>

#include <inttypes.h>
#include <pthread.h>

#include "test_io_files.h"

#include "../engine/storage/tape.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define MAX_MATRICES 40
#define MAX_BLOCKS 4096

static struct files files;
static const uint64_t sizes[] = {400000, 150000};

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

/* ---- random trunks ----------------------------------------------------------------------- */

struct trunk {
    struct k3_tape_matrix m[MAX_MATRICES];
    uint32_t n;
    uint64_t bytes;
};

/* Matrices of any shape; some touch the one before on disk; the last ones may be head. */
static void random_trunk(struct trunk *w, uint64_t *seed)
{
    *w = (struct trunk){.n = 1 + (uint32_t)rnd_below(seed, MAX_MATRICES)};
    uint32_t heads = (uint32_t)rnd_below(seed, 3);
    uint32_t shard = 0;
    uint64_t at = rnd_below(seed, 10000);
    for (uint32_t i = 0; i < w->n; i++) {
        struct k3_tape_matrix *m = &w->m[i];
        m->unit = rnd_below(seed, 3) ? 1 : 1 + (uint32_t)rnd_below(seed, 30);
        m->row_bytes = 2 * (1 + rnd_below(seed, 300));
        m->rows = rnd_below(seed, 60);
        m->head = i + heads >= w->n;
        if (rnd_below(seed, 4) == 0 || at + m->rows * m->row_bytes > sizes[shard]) {
            shard = (uint32_t)rnd_below(seed, COUNT(sizes));
            at = rnd_below(seed, sizes[shard] - 60 * 600);
        }
        m->shard = shard;
        m->offset = at;
        at += m->rows * m->row_bytes;
        w->bytes += m->rows * m->row_bytes;
    }
}

static void make_plan(struct k3_tape_plan *p, const struct trunk *w, uint64_t block_bytes)
{
    struct k3_error err = {0};
    if (k3_tape_plan_make(p, w->m, w->n, block_bytes, &err) != K3_OK)
        fail_msg("%s", err.message);
}

/* ---- the plan ---------------------------------------------------------------------------- */

/* The blocks are tiled by their pieces, in order, without a gap. */
static void check_blocks(const struct k3_tape_plan *p, const struct trunk *w, uint64_t block_bytes)
{
    uint64_t bytes = 0, head_bytes = 0, window = 0;
    size_t piece = 0;
    for (size_t i = 0; i < p->n_blocks; i++) {
        const struct k3_tape_block *k = &p->blocks[i];
        uint64_t at = 0;
        assert_int_equal(k->first_piece, piece);
        assert_true(k->n_pieces > 0);
        for (uint32_t j = 0; j < k->n_pieces; j++, piece++) {
            const struct k3_tape_piece *q = &p->pieces[piece];
            const struct k3_tape_matrix *m = &w->m[q->matrix];
            assert_int_equal(q->block, i);
            assert_int_equal(q->at, at);
            assert_int_equal(k->shard, m->shard);
            assert_int_equal(k->head, m->head);
            assert_int_equal(k->offset + q->at, m->offset + q->row0 * m->row_bytes);
            at += q->rows * m->row_bytes;
        }
        assert_int_equal(at, k->bytes);
        if (k->bytes > block_bytes) { /* only where one unit is larger than a block */
            const struct k3_tape_piece *q = &p->pieces[k->first_piece];
            assert_int_equal(k->n_pieces, 1);
            assert_true(q->rows <= w->m[q->matrix].unit);
        }
        bytes += k->bytes;
        head_bytes += k->head ? k->bytes : 0;
        if (k3_io_window(k->offset, k->bytes) > window)
            window = k3_io_window(k->offset, k->bytes);
    }
    assert_int_equal(piece, p->n_pieces);
    assert_int_equal(bytes, w->bytes);
    assert_int_equal(p->bytes, bytes);
    assert_int_equal(p->head_bytes, head_bytes);
    assert_int_equal(p->largest_window, window);
}

/* The pieces are the rows of all matrices, in order, each once, cut between units. */
static void check_pieces(const struct k3_tape_plan *p, const struct trunk *w)
{
    size_t piece = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        uint64_t row = 0;
        for (; row < w->m[i].rows; piece++) {
            assert_true(piece < p->n_pieces);
            const struct k3_tape_piece *q = &p->pieces[piece];
            assert_int_equal(q->matrix, i);
            assert_int_equal(q->row0, row);
            assert_true(q->rows > 0);
            assert_int_equal(q->row0 % w->m[i].unit, 0);
            row += q->rows;
        }
        assert_int_equal(row, w->m[i].rows);
    }
    assert_int_equal(piece, p->n_pieces);
}

static void test_plan_covers_all_once(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 400; round++) {
        struct trunk w;
        struct k3_tape_plan p;
        random_trunk(&w, &seed);
        uint64_t block_bytes = 1 + rnd_below(&seed, 20000);
        make_plan(&p, &w, block_bytes);
        check_blocks(&p, &w, block_bytes);
        check_pieces(&p, &w);
        k3_tape_plan_free(&p);
    }
}

/* The case the sizes are made for: one run of rows comes in full blocks, neighbours share. */
static void test_plan_joins_neighbours(void **state)
{
    (void)state;
    struct trunk w = {.n = 4};
    w.m[0] = (struct k3_tape_matrix){.unit = 1, .offset = 100, .rows = 250, .row_bytes = 10};
    w.m[1] = (struct k3_tape_matrix){.unit = 1, .offset = 2600, .rows = 30, .row_bytes = 10};
    w.m[2] = (struct k3_tape_matrix){.unit = 1, .offset = 2900, .rows = 10, .row_bytes = 10};
    w.m[3] = (struct k3_tape_matrix){.unit = 1, .offset = 3001, .rows = 1, .row_bytes = 10};
    struct k3_tape_plan p;
    make_plan(&p, &w, 1000);
    static const uint64_t want[] = {1000, 1000, 900, 10};
    assert_int_equal(p.n_blocks, COUNT(want));
    for (size_t i = 0; i < COUNT(want); i++)
        assert_int_equal(p.blocks[i].bytes, want[i]);
    assert_int_equal(p.blocks[2].n_pieces, 3);
    k3_tape_plan_free(&p);
}

static void check_plan_refused(struct k3_tape_matrix m, uint64_t block_bytes, const char *words)
{
    struct k3_error err = {0};
    struct k3_tape_plan p;
    struct k3_tape_matrix two[] = {{.unit = 1, .rows = 1, .row_bytes = 1, .head = true}, m};
    assert_int_equal(k3_tape_plan_make(&p, two, 2, block_bytes, &err), K3_FAILED);
    assert_non_null(strstr(err.message, words));
    assert_null(p.blocks);
    assert_int_equal(p.n_blocks, 0);
}

static void test_plan_refuses(void **state)
{
    (void)state;
    struct k3_tape_matrix m = {.unit = 1, .rows = 2, .row_bytes = 2, .head = true};
    check_plan_refused(m, 0, "blocks of 0 bytes");
    m.head = false;
    check_plan_refused(m, 9, "matrix 1 follows the head");
    m.head = true;
    m.unit = 0;
    check_plan_refused(m, 9, "matrix 1 has impossible sizes");
    m.unit = 1;
    m.row_bytes = UINT64_MAX;
    check_plan_refused(m, 9, "matrix 1 has impossible sizes");
    m.row_bytes = 0;
    check_plan_refused(m, 9, "impossible sizes");
    m.row_bytes = 1;
    m.offset = INT64_MAX;
    check_plan_refused(m, 9, "impossible sizes");
}

/* ---- residents --------------------------------------------------------------------------- */

static uint64_t window(const struct k3_tape_block *k)
{
    return k3_io_window(k->offset, k->bytes);
}

static uint64_t all_windows(const struct k3_tape_plan *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->n_blocks; i++)
        sum += window(&p->blocks[i]);
    return sum;
}

static void test_residents_fit(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int round = 0; round < 300; round++) {
        struct trunk w;
        struct k3_tape_plan p;
        random_trunk(&w, &seed);
        make_plan(&p, &w, 1 + rnd_below(&seed, 20000));
        uint64_t all = all_windows(&p);
        for (int again = 0; again < 3; again++) { /* marking anew forgets the old marks */
            uint64_t bytes = rnd_below(&seed, all + all / 3 + 1);
            uint64_t taken = k3_tape_plan_residents(&p, bytes), kept = 0, least = UINT64_MAX;
            for (size_t i = 0; i < p.n_blocks; i++) {
                if (p.blocks[i].resident)
                    kept += window(&p.blocks[i]);
                else if (window(&p.blocks[i]) < least)
                    least = window(&p.blocks[i]);
            }
            assert_int_equal(taken, k3_io_round(kept));
            assert_true(taken <= bytes);
            /* Nothing that would still fit was left out. */
            assert_true(least == UINT64_MAX || k3_io_round(kept + least) > bytes);
        }
        k3_tape_plan_free(&p);
    }
}

static void test_residents_all_or_none(void **state)
{
    (void)state;
    struct trunk w;
    struct k3_tape_plan p;
    uint64_t seed = 3;
    random_trunk(&w, &seed);
    make_plan(&p, &w, 5000);
    assert_int_equal(k3_tape_plan_residents(&p, k3_io_round(all_windows(&p))),
                     k3_io_round(all_windows(&p)));
    for (size_t i = 0; i < p.n_blocks; i++)
        assert_true(p.blocks[i].resident);
    assert_int_equal(k3_tape_plan_residents(&p, 0), 0);
    for (size_t i = 0; i < p.n_blocks; i++)
        assert_false(p.blocks[i].resident);
    k3_tape_plan_free(&p);
    struct k3_tape_plan none = {0};
    assert_int_equal(k3_tape_plan_residents(&none, 1 << 20), 0);
}

/* 500 blocks of 8 MiB: along the tape, what is kept is never more than a block off its share. */
static void test_residents_spread(void **state)
{
    (void)state;
    const uint64_t block = 8u << 20;
    struct k3_tape_matrix m = {.unit = 1, .offset = 77, .rows = 500 * block / 4096,
                               .row_bytes = 4096};
    struct k3_tape_plan p;
    struct k3_error err = {0};
    assert_int_equal(k3_tape_plan_make(&p, &m, 1, block, &err), K3_OK);
    assert_int_equal(p.n_blocks, 500);
    double all = (double)all_windows(&p);
    for (uint64_t tenth = 0; tenth <= 10; tenth++) {
        uint64_t bytes = (uint64_t)(all * (double)tenth / 10);
        k3_tape_plan_residents(&p, bytes);
        double kept = 0, passed = 0;
        for (size_t i = 0; i < p.n_blocks; i++) {
            passed += (double)window(&p.blocks[i]);
            kept += p.blocks[i].resident ? (double)window(&p.blocks[i]) : 0;
            double share = passed * (double)tenth / 10;
            assert_true(kept >= share - 1.5 * (double)(block + 8192));
            assert_true(kept <= share + 1.5 * (double)(block + 8192));
        }
    }
    k3_tape_plan_free(&p);
}

/* ---- the tape ---------------------------------------------------------------------------- */

/* Counts the reads that begin each block, and fails one block when told to. */
struct watch {
    pthread_mutex_t lock;
    struct k3_tape_block blocks[MAX_BLOCKS]; /* the plan's */
    size_t n_blocks;
    unsigned reads[MAX_BLOCKS];
    size_t bad; /* block to fail; SIZE_MAX = none */
};

static void watch_init(struct watch *x, const struct k3_tape_plan *p)
{
    assert_true(p->n_blocks <= MAX_BLOCKS);
    memset(x, 0, sizeof *x);
    pthread_mutex_init(&x->lock, NULL);
    for (size_t i = 0; i < p->n_blocks; i++)
        x->blocks[i] = p->blocks[i];
    x->n_blocks = p->n_blocks;
    x->bad = SIZE_MAX;
}

static int64_t watched_read(void *ud, int fd, void *buf, uint64_t n, uint64_t offset)
{
    struct watch *x = ud;
    uint32_t shard = files_shard(&files, fd);
    bool bad = false;
    pthread_mutex_lock(&x->lock);
    for (size_t i = 0; i < x->n_blocks; i++)
        if (x->blocks[i].shard == shard && x->blocks[i].offset == offset &&
            x->blocks[i].bytes == n) {
            x->reads[i]++;
            bad |= i == x->bad;
        }
    pthread_mutex_unlock(&x->lock);
    if (bad) {
        errno = EIO;
        return -1;
    }
    return pread(fd, buf, n, (off_t)offset);
}

struct rig {
    struct trunk w;
    struct watch watch;
    struct k3_io *io;
    struct k3_tape *tape;
    uint64_t resident_bytes, head_bytes, bytes; /* payload, windows for the first */
    size_t n_blocks, n_residents;
};

/* Buffered, so that a read is exactly a block; `ring` 0 = the least. */
static void rig_open(struct rig *g, uint64_t block_bytes, uint64_t residents, uint64_t ring,
                     uint32_t depth)
{
    struct k3_error err = {0};
    struct k3_tape_plan p;
    make_plan(&p, &g->w, block_bytes);
    k3_tape_plan_residents(&p, residents);
    watch_init(&g->watch, &p);
    g->resident_bytes = 0;
    g->n_residents = 0;
    for (size_t i = 0; i < p.n_blocks; i++)
        if (p.blocks[i].resident) {
            g->resident_bytes += window(&p.blocks[i]);
            g->n_residents++;
        }
    g->head_bytes = p.head_bytes;
    g->bytes = p.bytes;
    g->n_blocks = p.n_blocks;
    if (ring < p.largest_window)
        ring = p.largest_window;
    struct k3_io_options opt = {.kind = K3_IO_BUFFERED, .depth = depth, .read = watched_read,
                                .read_ud = &g->watch};
    g->io = k3_io_open(&files.c, &opt, &err);
    assert_non_null(g->io);
    assert_true(k3_tape_table_bytes(&p) > p.n_blocks * sizeof(struct k3_io_req));
    g->tape = k3_tape_open(g->io, g->w.m, g->w.n, &p, ring, &err);
    if (!g->tape)
        fail_msg("%s", err.message);
    assert_null(p.blocks); /* taken over */
}

static void rig_close(struct rig *g)
{
    k3_tape_close(g->tape);
    k3_io_close(g->io);
}

static void check_rows(const struct k3_tape_matrix *m, const struct k3_rows *r)
{
    assert_true(file_bytes_equal(r->data, m->shard, m->offset + r->row0 * m->row_bytes,
                                 r->rows * m->row_bytes));
}

/* Checks pieces of the matrices first.. and counts their rows in done[]. */
static void check_pieces_of(const struct rig *g, const struct k3_rows *rows, size_t n,
                            uint32_t first, uint32_t end, uint64_t *done)
{
    uint32_t matrix = first;
    for (size_t k = 0; k < n; k++) {
        assert_true(rows[k].matrix >= matrix && rows[k].matrix < end);
        matrix = rows[k].matrix;
        assert_int_equal(rows[k].row0, done[matrix]);
        check_rows(&g->w.m[matrix], &rows[k]);
        done[matrix] += rows[k].rows;
    }
}

/* Runs a pass, by one or several matrices at a time, but stops before matrix `stop`, or inside it
 * when `inside`. */
static void run_pass(struct rig *g, bool with_head, uint32_t stop, bool inside, uint64_t *seed)
{
    struct k3_error err = {0};
    struct k3_rows rows[5];
    uint64_t done[MAX_MATRICES] = {0};
    uint32_t last = 0, end;
    while (last < g->w.n && (with_head || !g->w.m[last].head))
        last++;
    k3_tape_begin(g->tape, with_head);
    for (uint32_t i = 0; i < last && (i != stop || inside); i = end) {
        end = i + 1 + (uint32_t)rnd_below(seed, 3);
        if (end > last)
            end = last;
        if (end > stop && i <= stop)
            end = i == stop ? stop + 1 : stop;
        size_t n = 1;
        while (n > 0) {
            size_t max = 1 + rnd_below(seed, COUNT(rows));
            if ((end == i + 1 ? k3_tape_next(g->tape, i, rows, max, &n, &err)
                              : k3_tape_next_of(g->tape, i, end, rows, max, &n, &err)) != K3_OK)
                fail_msg("%s", err.message);
            assert_true(n <= max);
            check_pieces_of(g, rows, n, i, end, done);
            if (i == stop)
                return;
            k3_tape_release(g->tape);
        }
        for (uint32_t k = i; k < end; k++)
            assert_int_equal(done[k], g->w.m[k].rows);
    }
}

static void test_hands_out_the_file(void **state)
{
    (void)state;
    uint64_t seed = 4;
    for (int round = 0; round < 60; round++) {
        struct rig g;
        random_trunk(&g.w, &seed);
        rig_open(&g, 1 + rnd_below(&seed, 20000), rnd_below(&seed, 3) * rnd_below(&seed, 300000),
                 rnd_below(&seed, 2) * rnd_below(&seed, 400000),
                 1 + (uint32_t)rnd_below(&seed, 5));
        for (int pass = 0; pass < 4; pass++)
            run_pass(&g, rnd_below(&seed, 2), UINT32_MAX, false, &seed);
        assert_true(k3_tape_wait_seconds(g.tape) >= 0);
        rig_close(&g);
    }
}

static void test_rewind_anywhere(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < 40; round++) {
        struct rig g;
        random_trunk(&g.w, &seed);
        rig_open(&g, 1 + rnd_below(&seed, 20000), rnd_below(&seed, 2) * rnd_below(&seed, 300000),
                 rnd_below(&seed, 100000), 1 + (uint32_t)rnd_below(&seed, 5));
        for (int pass = 0; pass < 5; pass++) {
            run_pass(&g, rnd_below(&seed, 2), (uint32_t)rnd_below(&seed, g.w.n),
                     rnd_below(&seed, 2), &seed);
            if (rnd_below(&seed, 3)) /* else the next begin() abandons the pass */
                k3_tape_rewind(g.tape);
            if (rnd_below(&seed, 4) == 0)
                k3_tape_rewind(g.tape); /* twice is once */
        }
        run_pass(&g, true, UINT32_MAX, false, &seed);
        rig_close(&g);
    }
}

/* After one full pass every resident is filled; none is ever read again. */
static void test_residents_read_once(void **state)
{
    (void)state;
    uint64_t seed = 6;
    for (int round = 0; round < 20; round++) {
        struct rig g;
        random_trunk(&g.w, &seed);
        rig_open(&g, 1 + rnd_below(&seed, 9000), rnd_below(&seed, 300000), 30000, 3);
        for (int pass = 0; pass < 4; pass++)
            run_pass(&g, true, UINT32_MAX, false, &seed);
        assert_int_equal(k3_tape_resident_bytes(g.tape), g.resident_bytes);
        k3_io_drain(g.io);
        for (size_t i = 0; i < g.n_blocks; i++)
            if (g.watch.blocks[i].resident) /* twins: other blocks of the same range */
                for (size_t k = 0; k < g.n_blocks; k++)
                    if (k != i && g.watch.blocks[k].offset == g.watch.blocks[i].offset)
                        g.watch.reads[i] = 1;
        for (size_t i = 0; i < g.n_blocks; i++) {
            if (g.watch.blocks[i].resident)
                assert_int_equal(g.watch.reads[i], 1);
            else
                assert_true(g.watch.reads[i] >= 4);
        }
        rig_close(&g);
    }
}

static void test_all_resident(void **state)
{
    (void)state;
    struct rig g;
    uint64_t seed = 7;
    random_trunk(&g.w, &seed);
    rig_open(&g, 3000, UINT64_MAX / 2, 0, 4);
    assert_int_equal(g.n_residents, g.n_blocks);
    for (int pass = 0; pass < 3; pass++)
        run_pass(&g, true, UINT32_MAX, false, &seed);
    k3_io_drain(g.io);
    struct k3_io_counters k;
    k3_io_get_counters(g.io, &k);
    assert_int_equal(k.reads[K3_IO_TAPE], g.n_blocks);
    assert_int_equal(k.bytes[K3_IO_TAPE], g.bytes);
    assert_int_equal(k.bytes[K3_IO_DEMAND], 0);
    rig_close(&g);
}

/* Two layers and a head, one block each. */
static void three_blocks(struct trunk *w)
{
    *w = (struct trunk){.n = 3, .bytes = 3000};
    for (uint32_t i = 0; i < 3; i++)
        w->m[i] = (struct k3_tape_matrix){.unit = 1, .offset = 50 + 5000 * i, .rows = 10,
                                          .row_bytes = 100, .head = i == 2};
}

/* Without a ring limit the reader goes on into the next pass, but never into an unasked head. */
static void test_reads_ahead(void **state)
{
    (void)state;
    struct rig g;
    uint64_t seed = 8;
    three_blocks(&g.w);
    rig_open(&g, 1000, 0, 1 << 20, 2);
    k3_io_drain(g.io); /* reading began before the first pass did */
    assert_int_equal(g.watch.reads[0], 1);
    assert_int_equal(g.watch.reads[1], 1);
    assert_int_equal(g.watch.reads[2], 0);
    run_pass(&g, false, UINT32_MAX, false, &seed);
    k3_io_drain(g.io);
    assert_int_equal(g.watch.reads[0], 2);
    assert_int_equal(g.watch.reads[1], 2);
    assert_int_equal(g.watch.reads[2], 0);
    run_pass(&g, true, UINT32_MAX, false, &seed);
    k3_io_drain(g.io);
    assert_int_equal(g.watch.reads[0], 3);
    assert_int_equal(g.watch.reads[1], 3);
    assert_int_equal(g.watch.reads[2], 1);
    rig_close(&g);
}

/* In passes without a head, the head is not read, whatever else goes on. */
static void test_head_not_read_unasked(void **state)
{
    (void)state;
    uint64_t seed = 9;
    for (int round = 0; round < 20; round++) {
        struct rig g;
        random_trunk(&g.w, &seed);
        rig_open(&g, 1 + rnd_below(&seed, 9000), rnd_below(&seed, 100000), 200000, 3);
        for (int pass = 0; pass < 3; pass++)
            run_pass(&g, false, UINT32_MAX, false, &seed);
        k3_io_drain(g.io);
        struct k3_io_counters k;
        k3_io_get_counters(g.io, &k);
        uint64_t body = g.bytes - g.head_bytes;
        assert_true(k.bytes[K3_IO_TAPE] <= 4 * body);
        for (size_t i = 0; i < g.n_blocks; i++) {
            bool twin = false;
            for (size_t j = 0; j < g.n_blocks; j++)
                twin |= j != i && g.watch.blocks[j].offset == g.watch.blocks[i].offset;
            if (g.watch.blocks[i].head && !twin)
                assert_int_equal(g.watch.reads[i], 0);
        }
        rig_close(&g);
    }
}

static void test_failed_block(void **state)
{
    (void)state;
    struct rig g;
    struct k3_error err = {0};
    struct k3_rows rows[4];
    size_t n;
    uint64_t seed = 10;
    for (size_t bad = 0; bad < 3; bad++)
        for (int resident = 0; resident < 2; resident++) {
            three_blocks(&g.w);
            rig_open(&g, 1000, resident ? 1 << 20 : 0, 8192, 2);
            run_pass(&g, true, 0, false, &seed); /* begins, takes nothing */
            k3_tape_rewind(g.tape);
            k3_io_drain(g.io);
            pthread_mutex_lock(&g.watch.lock);
            g.watch.bad = bad;
            const bool read = g.watch.reads[bad] > 0; /* the head too, where the readers are quick */
            pthread_mutex_unlock(&g.watch.lock);
            assert_true(read || bad == 2);
            k3_tape_rewind(g.tape);
            k3_tape_begin(g.tape, true);
            enum k3_status st = K3_OK;
            uint32_t i = 0;
            for (; i < 3 && st == K3_OK; i++) {
                do {
                    st = k3_tape_next(g.tape, i, rows, 4, &n, &err);
                    k3_tape_release(g.tape);
                } while (st == K3_OK && n > 0);
            }
            if (resident && read) { /* before the disk went bad */
                assert_int_equal(st, K3_OK);
                rig_close(&g);
                continue;
            }
            assert_int_equal(st, K3_FAILED);
            assert_int_equal(i, bad + 1);
            assert_non_null(strstr(err.message, files.paths[0]));
            assert_non_null(strstr(err.message, "Input/output error"));
            assert_int_equal(n, 0);
            assert_int_equal(k3_tape_next(g.tape, (uint32_t)bad, rows, 4, &n, &err), K3_FAILED);
            if (bad == 0) { /* reading ahead fails too; the next pass tries again by itself */
                k3_tape_rewind(g.tape);
                k3_io_drain(g.io);
            }
            pthread_mutex_lock(&g.watch.lock);
            g.watch.bad = SIZE_MAX;
            pthread_mutex_unlock(&g.watch.lock);
            if (bad != 1) { /* else: closing right after the failure */
                if (bad == 2)
                    k3_tape_rewind(g.tape);
                run_pass(&g, true, UINT32_MAX, false, &seed);
            }
            rig_close(&g);
        }
}

static void test_misuse(void **state)
{
    (void)state;
    struct rig g;
    struct k3_error err = {0};
    struct k3_rows rows[4];
    size_t n = 9;
    three_blocks(&g.w);
    rig_open(&g, 1000, 0, 0, 1);
    assert_int_equal(k3_tape_next(g.tape, 0, rows, 4, &n, &err), K3_OK); /* no pass yet */
    assert_int_equal(n, 0);
    k3_tape_begin(g.tape, false);
    assert_int_equal(k3_tape_next(g.tape, 1, rows, 4, &n, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "matrix 1 is asked for before 0 is through"));
    assert_int_equal(k3_tape_next(g.tape, 0, rows, 4, &n, &err), K3_OK);
    assert_int_equal(n, 1);
    assert_int_equal(k3_tape_next(g.tape, 1, rows, 4, &n, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "never released"));
    k3_tape_release(g.tape);
    assert_int_equal(k3_tape_next(g.tape, 1, rows, 4, &n, &err), K3_OK);
    assert_int_equal(n, 1);
    assert_int_equal(k3_tape_next(g.tape, 2, rows, 4, &n, &err), K3_OK); /* not in this pass */
    assert_int_equal(n, 0);
    k3_tape_release(g.tape);
    rig_close(&g);
    k3_tape_close(NULL);
    /* A ring that is too small is refused, and the plan stays with the caller. */
    struct k3_tape_plan p;
    make_plan(&p, &g.w, 1000);
    struct k3_io *io = k3_io_open(&files.c, &(struct k3_io_options){.depth = 1}, &err);
    assert_non_null(io);
    assert_null(k3_tape_open(io, g.w.m, g.w.n, &p, p.largest_window - 1, &err));
    assert_non_null(strstr(err.message, "cannot hold the largest block"));
    assert_non_null(p.blocks);
    k3_tape_plan_free(&p);
    k3_io_close(io);
}

/* The same through O_DIRECT and io_uring, where they are to be had. */
static void test_backends(void **state)
{
    (void)state;
    static const enum k3_io_kind kinds[] = {K3_IO_DIRECT, K3_IO_URING};
    uint64_t seed = 11;
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (int round = 0; round < 6; round++) {
            struct rig g;
            struct k3_error err = {0};
            struct k3_tape_plan p;
            random_trunk(&g.w, &seed);
            make_plan(&p, &g.w, 1 + rnd_below(&seed, 20000));
            k3_tape_plan_residents(&p, rnd_below(&seed, 200000));
            uint64_t ring = p.largest_window + rnd_below(&seed, 50000);
            struct k3_io_options opt = {.kind = kinds[k], .depth = 4};
            g.io = k3_io_open(&files.c, &opt, &err);
            if (!g.io) {
                k3_tape_plan_free(&p);
                skip();
            }
            g.tape = k3_tape_open(g.io, g.w.m, g.w.n, &p, ring, &err);
            assert_non_null(g.tape);
            for (int pass = 0; pass < 3; pass++)
                run_pass(&g, pass != 1, UINT32_MAX, false, &seed);
            rig_close(&g);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_covers_all_once),
        cmocka_unit_test(test_plan_joins_neighbours),
        cmocka_unit_test(test_plan_refuses),
        cmocka_unit_test(test_residents_fit),
        cmocka_unit_test(test_residents_all_or_none),
        cmocka_unit_test(test_residents_spread),
        cmocka_unit_test(test_hands_out_the_file),
        cmocka_unit_test(test_rewind_anywhere),
        cmocka_unit_test(test_residents_read_once),
        cmocka_unit_test(test_all_resident),
        cmocka_unit_test(test_reads_ahead),
        cmocka_unit_test(test_head_not_read_unasked),
        cmocka_unit_test(test_failed_block),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_backends),
    };
    return cmocka_run_group_tests_name("tape", tests, setup, teardown);
}
