/* tape.h - the trunk as a tape: matrices in execution order, cut into row blocks, read ahead of the
 * compute through a byte ring, or kept resident where the plan says so.
 *
 * The compute asks for one matrix after the other, always in the order they were given, and gets
 * pieces (runs of whole rows) as they arrive. A pass ends after the last matrix, or before the
 * "head" matrices when the pass was begun without them (a prefill chunk needs no logits); then the
 * next pass begins, and the reader has been working on it already. */
#ifndef K3_TAPE_H
#define K3_TAPE_H

#include "io.h"

struct k3_tape_matrix {
    uint32_t shard;
    uint32_t unit;         /* rows that stay together (a head of kv_b_proj); 1 = any cut */
    uint64_t offset;       /* of row 0 in the shard */
    uint64_t rows, row_bytes;
    bool head;             /* belongs to the part a pass may skip (must be the last ones) */
};

struct k3_tape_block {     /* one read */
    uint64_t offset, bytes;
    uint32_t shard;
    uint32_t first_piece, n_pieces;
    bool resident, head;
};

struct k3_tape_piece {     /* rows of one matrix inside one block */
    uint32_t matrix, block;
    uint64_t row0, rows;
    uint64_t at;           /* byte offset inside the block's payload */
};

/* The stream plan: a pure function of the matrices. Neighbours that touch on disk share a block up
 * to block_bytes; a matrix larger than that is cut at multiples of its unit. */
struct k3_tape_plan {
    struct k3_tape_block *blocks;
    struct k3_tape_piece *pieces; /* in order */
    size_t n_blocks, n_pieces;
    uint64_t bytes;               /* payload of all blocks */
    uint64_t head_bytes;
    uint64_t largest_window;      /* the largest k3_io_window of a block: the ring's least size */
};
/* On failure the plan is empty. */
enum k3_status k3_tape_plan_make(struct k3_tape_plan *p, const struct k3_tape_matrix *m, size_t n,
                                 uint64_t block_bytes, struct k3_error *err);
/* Marks blocks resident, spread evenly along the tape, so that their windows (rounded as memory is
 * taken) fit into `bytes`. Returns the memory they take. Forgets what was marked before. */
uint64_t k3_tape_plan_residents(struct k3_tape_plan *p, uint64_t bytes);
void k3_tape_plan_free(struct k3_tape_plan *p);

struct k3_tape;

/* What a tape takes besides ring and residents: the plan itself and a request per block. */
uint64_t k3_tape_table_bytes(const struct k3_tape_plan *p);

/* Takes over the plan (on failure it stays the caller's); m is not kept. ring_bytes >=
 * largest_window unless every block is resident, and then there is no ring. Allocates ring and
 * residents, each rounded by k3_io_round(), and begins to read. One thread at a time. */
struct k3_tape *k3_tape_open(struct k3_io *io, const struct k3_tape_matrix *m, size_t n,
                             struct k3_tape_plan *plan, uint64_t ring_bytes, struct k3_error *err);
void k3_tape_close(struct k3_tape *t);

/* Starts a pass; the reader goes into the head blocks only if with_head. The reader starts on the
 * blocks of the following pass when it is through. A pass that is under way is abandoned. */
void k3_tape_begin(struct k3_tape *t, bool with_head);

struct k3_rows {
    const uint8_t *data;
    uint64_t row0, rows;
    uint32_t matrix;
};
/* The next pieces of the matrices first .. end-1 (it must be the turn of one of them, or past them):
 * waits for the first piece, adds those behind it that are already there, up to max and up to a
 * quarter of the ring, so that reading goes on behind what is being computed. *n = 0 when they have
 * been handed out whole. The data stay valid until k3_tape_release(); until then the ring holds
 * them, so that a caller who never releases is refused once it is full. After a failed read every
 * call fails until k3_tape_rewind(), which tries again, and so does the first k3_tape_begin()
 * behind it, for what the disk could not give yet. */
enum k3_status k3_tape_next_of(struct k3_tape *t, uint32_t first, uint32_t end,
                               struct k3_rows *rows, size_t max, size_t *n, struct k3_error *err);
/* The same for one matrix. */
enum k3_status k3_tape_next(struct k3_tape *t, uint32_t m, struct k3_rows *rows, size_t max,
                            size_t *n, struct k3_error *err);
/* All pieces handed out so far have been used. */
void k3_tape_release(struct k3_tape *t);
/* Abandons a pass in the middle: the next one begins at the first matrix. Waits for the reads in
 * flight; resident blocks that came in stay. */
void k3_tape_rewind(struct k3_tape *t);

double k3_tape_wait_seconds(const struct k3_tape *t);   /* blocked in k3_tape_next, ever */
uint64_t k3_tape_resident_bytes(const struct k3_tape *t); /* resident blocks filled so far */
/* Both may be read from any thread. */

#endif
