/* tape.c - the trunk stream: ring, residents, reading ahead. See tape.h.
 *
 * No thread of its own: the compute thread submits what fits whenever it frees space, and the
 * readers of io.h work through it. Space in the ring is given out and taken back in the order of
 * the blocks. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tape.h"

enum block_state { BLOCK_OUT, BLOCK_COMING, BLOCK_HELD /* read; residents for ever */ };

struct slot {
    struct k3_io_req req;
    uint64_t ring_end; /* position behind it, for blocks in the ring */
    uint8_t state;     /* enum block_state */
};

struct k3_tape {
    struct k3_io *io;
    struct k3_tape_plan plan;
    struct slot *slots;        /* [n_blocks] */
    struct k3_io_req **batch;  /* [n_blocks] scratch */
    size_t first_head;         /* block; n_blocks when there is no head */
    uint8_t *ring, *residents;
    uint64_t ring_bytes, ring_taken, residents_taken; /* *_taken as given to k3_io_alloc */
    /* Ring positions count up for ever; modulo ring_bytes they are places. */
    uint64_t head, tail;
    /* The reader: next block to submit, in this pass or (ahead) in the one after. */
    size_t reader;
    bool ahead;
    /* The compute. */
    bool begun, with_head;
    bool rewound;              /* and no pass begun since */
    size_t piece;              /* next to hand out */
    size_t freed;              /* blocks before this one have been released in this pass */
    atomic_ullong wait_ns;
    atomic_ullong held;        /* bytes of resident blocks filled */
};

/* ---- the ring ---------------------------------------------------------------------------- */

/* Finds room for a block's window. A block never wraps: what is left before the end is skipped. */
static bool ring_take(struct k3_tape *t, struct slot *s, uint64_t bytes)
{
    if (t->head == t->tail)
        t->head = t->tail = 0;
    uint64_t at = t->head % t->ring_bytes;
    uint64_t begin = at + bytes > t->ring_bytes ? t->head + (t->ring_bytes - at) : t->head;
    if (begin + bytes - t->tail > t->ring_bytes)
        return false;
    s->req.buf = t->ring + begin % t->ring_bytes;
    s->ring_end = begin + bytes;
    t->head = s->ring_end;
    return true;
}

/* Submits everything that has room, as far as it is known what will be needed. */
static void read_ahead(struct k3_tape *t)
{
    size_t n = 0;
    for (;;) {
        if (t->reader == t->plan.n_blocks ||
            (t->reader >= t->first_head && t->begun && !t->ahead && !t->with_head)) {
            if (t->ahead || !t->begun)
                break;
            t->ahead = true;
            t->reader = 0;
            continue;
        }
        if (t->reader >= t->first_head && (t->ahead || !t->begun))
            break; /* the coming pass may not want the head */
        struct slot *s = &t->slots[t->reader];
        const struct k3_tape_block *k = &t->plan.blocks[t->reader];
        if (!k->resident && (s->state != BLOCK_OUT ||
                             !ring_take(t, s, k3_io_window(k->offset, k->bytes))))
            break;
        if (s->state == BLOCK_OUT) {
            s->state = BLOCK_COMING;
            t->batch[n++] = &s->req;
        }
        t->reader++;
    }
    if (n > 0)
        k3_io_submit(t->io, t->batch, n);
}

/* ---- life -------------------------------------------------------------------------------- */

uint64_t k3_tape_table_bytes(const struct k3_tape_plan *p)
{
    return p->n_blocks * (sizeof *p->blocks + sizeof(struct slot) + sizeof(struct k3_io_req *)) +
           p->n_pieces * sizeof *p->pieces + sizeof(struct k3_tape);
}

/* Every block gets its request, every resident its place. */
static void make_slots(struct k3_tape *t)
{
    uint64_t at = 0;
    t->first_head = t->plan.n_blocks;
    for (size_t i = t->plan.n_blocks; i-- > 0;)
        if (t->plan.blocks[i].head)
            t->first_head = i;
    for (size_t i = 0; i < t->plan.n_blocks; i++) {
        const struct k3_tape_block *k = &t->plan.blocks[i];
        t->slots[i].req = (struct k3_io_req){
            .shard = k->shard, .class = K3_IO_TAPE, .offset = k->offset, .bytes = k->bytes};
        if (k->resident) {
            t->slots[i].req.buf = t->residents + at;
            at += k3_io_window(k->offset, k->bytes);
        }
    }
}

static enum k3_status allocate(struct k3_tape *t, uint64_t ring_bytes, struct k3_error *err)
{
    const struct k3_tape_plan *p = &t->plan;
    bool all_resident = true;
    for (size_t i = 0; i < p->n_blocks; i++) {
        all_resident &= p->blocks[i].resident;
        if (p->blocks[i].resident)
            t->residents_taken += k3_io_window(p->blocks[i].offset, p->blocks[i].bytes);
    }
    t->slots = calloc(p->n_blocks + 1, sizeof *t->slots);
    t->batch = calloc(p->n_blocks + 1, sizeof *t->batch);
    if (!t->slots || !t->batch)
        return k3_fail_memory(err, "the stream's blocks", p->n_blocks * sizeof *t->slots);
    if (t->residents_taken && !(t->residents = k3_io_alloc(t->residents_taken)))
        return k3_fail_memory(err, "the resident trunk blocks", t->residents_taken);
    if (all_resident)
        return K3_OK;
    if (ring_bytes < p->largest_window)
        return k3_fail(err, K3_FAILED,
                       "a ring of %" PRIu64 " bytes cannot hold the largest block, %" PRIu64
                       "; enlarge the ring or the budget", ring_bytes, p->largest_window);
    t->ring_taken = ring_bytes;
    t->ring_bytes = ring_bytes - ring_bytes % K3_IO_ALIGN;
    t->ring = k3_io_alloc(ring_bytes);
    return t->ring ? K3_OK : k3_fail_memory(err, "the trunk ring", ring_bytes);
}

static void release_memory(struct k3_tape *t)
{
    k3_io_free(t->ring, t->ring_taken);
    k3_io_free(t->residents, t->residents_taken);
    free(t->slots);
    free(t->batch);
    free(t);
}

struct k3_tape *k3_tape_open(struct k3_io *io, const struct k3_tape_matrix *m, size_t n,
                             struct k3_tape_plan *plan, uint64_t ring_bytes, struct k3_error *err)
{
    (void)m;
    (void)n;
    struct k3_tape *t = calloc(1, sizeof *t);
    if (!t) {
        k3_fail_memory(err, "the trunk stream", sizeof *t);
        return NULL;
    }
    t->io = io;
    t->plan = *plan;
    if (allocate(t, ring_bytes, err) != K3_OK) {
        release_memory(t);
        return NULL;
    }
    *plan = (struct k3_tape_plan){0};
    make_slots(t);
    read_ahead(t);
    return t;
}

/* A resident block has come in. */
static void hold(struct k3_tape *t, size_t block)
{
    const struct k3_tape_block *k = &t->plan.blocks[block];
    t->slots[block].state = BLOCK_HELD;
    if (k->resident)
        atomic_fetch_add(&t->held, k3_io_window(k->offset, k->bytes));
}

/* Takes back what is not begun and waits for the rest; residents that came in intact stay. */
static void stop_reading(struct k3_tape *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->plan.n_blocks; i++)
        if (t->slots[i].state == BLOCK_COMING)
            t->batch[n++] = &t->slots[i].req;
    k3_io_cancel(t->io, t->batch, n);
    for (size_t i = 0; i < t->plan.n_blocks; i++) {
        struct slot *s = &t->slots[i];
        if (s->state == BLOCK_COMING) {
            k3_io_wait(t->io, &s->req);
            if (s->req.error == 0)
                hold(t, i);
            else
                s->state = BLOCK_OUT;
        }
        if (!t->plan.blocks[i].resident)
            s->state = BLOCK_OUT;
    }
    t->head = t->tail = 0;
}

void k3_tape_close(struct k3_tape *t)
{
    if (!t)
        return;
    stop_reading(t);
    k3_tape_plan_free(&t->plan);
    release_memory(t);
}

/* ---- passes ------------------------------------------------------------------------------ */

/* The piece behind the last one of this pass. */
static size_t pass_end(const struct k3_tape *t)
{
    if (t->with_head || t->first_head == t->plan.n_blocks)
        return t->plan.n_pieces;
    return t->plan.blocks[t->first_head].first_piece;
}

void k3_tape_rewind(struct k3_tape *t)
{
    stop_reading(t);
    t->begun = false;
    t->rewound = true;
    t->ahead = false;
    t->reader = 0;
    t->piece = 0;
    t->freed = 0;
    read_ahead(t);
}

/* Has a block that was read ahead come back with an error? */
static bool ahead_failed(const struct k3_tape *t)
{
    for (size_t i = 0; i < t->plan.n_blocks; i++) {
        const struct slot *s = &t->slots[i];
        if (s->state == BLOCK_COMING &&
            atomic_load_explicit(&s->req.done, memory_order_acquire) && s->req.error != 0)
            return true;
    }
    return false;
}

void k3_tape_begin(struct k3_tape *t, bool with_head)
{
    /* Reading began again right behind a failure, and failed again, hours ago perhaps: before that is
     * reported a second time it is tried again. */
    if ((t->begun && t->piece < pass_end(t)) || (t->rewound && ahead_failed(t)))
        k3_tape_rewind(t);
    t->rewound = false;
    if (t->begun) {
        k3_tape_release(t);
        t->begun = false;
        /* The reader may still stand at the end of the old pass. */
        if (!t->ahead)
            t->reader = 0;
        t->ahead = false;
    }
    t->begun = true;
    t->with_head = with_head;
    t->piece = 0;
    t->freed = 0;
    read_ahead(t);
}

/* Waits for the block; on failure says why. */
static enum k3_status arrive(struct k3_tape *t, size_t block, struct k3_error *err)
{
    struct slot *s = &t->slots[block];
    if (s->state == BLOCK_HELD)
        return K3_OK;
    if (s->state == BLOCK_OUT)
        return k3_fail(err, K3_FAILED,
                       "trunk stream: the ring is full of rows that were never released");
    double waited = k3_io_wait(t->io, &s->req);
    atomic_fetch_add(&t->wait_ns, (unsigned long long)(waited * 1e9));
    if (s->req.error)
        return k3_io_fail(t->io, &s->req, err);
    hold(t, block);
    return K3_OK;
}

/* Without waiting. */
static bool is_there(struct k3_tape *t, size_t block)
{
    struct slot *s = &t->slots[block];
    if (s->state == BLOCK_COMING && atomic_load_explicit(&s->req.done, memory_order_acquire) &&
        s->req.error == 0)
        hold(t, block);
    return s->state == BLOCK_HELD;
}

/* May this piece go out with those that are out already? Residents always; of the ring a quarter at
 * most: if all of it went out at once, nothing could be read until all of it was computed. */
static bool may_join(struct k3_tape *t, const struct k3_tape_piece *q, uint64_t *ring_out)
{
    const struct k3_tape_block *k = &t->plan.blocks[q->block];
    if (!is_there(t, q->block))
        return false;
    if (k->resident)
        return true;
    *ring_out += q->at == 0 ? k->bytes : 0;
    return *ring_out <= t->ring_bytes / 4;
}

enum k3_status k3_tape_next_of(struct k3_tape *t, uint32_t first, uint32_t end,
                               struct k3_rows *rows, size_t max, size_t *n, struct k3_error *err)
{
    *n = 0;
    size_t last = t->begun ? pass_end(t) : 0;
    const struct k3_tape_piece *p = t->plan.pieces;
    if (t->piece == last || p[t->piece].matrix >= end)
        return K3_OK;
    if (p[t->piece].matrix < first)
        return k3_fail(err, K3_FAILED, "trunk stream: matrix %u is asked for before %u is through",
                       first, p[t->piece].matrix);
    uint64_t ring_out = 0;
    while (*n < max && t->piece < last && p[t->piece].matrix < end) {
        const struct k3_tape_piece *q = &p[t->piece];
        if (*n == 0 && arrive(t, q->block, err) != K3_OK)
            return err->status;
        if (!may_join(t, q, &ring_out) && *n > 0)
            break;
        rows[(*n)++] = (struct k3_rows){
            .data = k3_io_data(&t->slots[q->block].req) + q->at,
            .row0 = q->row0,
            .rows = q->rows,
            .matrix = q->matrix,
        };
        t->piece++;
    }
    return K3_OK;
}

enum k3_status k3_tape_next(struct k3_tape *t, uint32_t m, struct k3_rows *rows, size_t max,
                            size_t *n, struct k3_error *err)
{
    return k3_tape_next_of(t, m, m + 1, rows, max, n, err);
}

void k3_tape_release(struct k3_tape *t)
{
    if (!t->begun)
        return;
    size_t before = t->freed;
    size_t end = t->piece < t->plan.n_pieces ? t->plan.pieces[t->piece].block : t->plan.n_blocks;
    for (; t->freed < end; t->freed++) {
        if (t->plan.blocks[t->freed].resident)
            continue;
        t->slots[t->freed].state = BLOCK_OUT;
        t->tail = t->slots[t->freed].ring_end;
    }
    if (t->freed != before)
        read_ahead(t);
}

double k3_tape_wait_seconds(const struct k3_tape *t)
{
    return (double)atomic_load(&t->wait_ns) * 1e-9;
}

uint64_t k3_tape_resident_bytes(const struct k3_tape *t)
{
    return atomic_load(&t->held);
}
