/* tape_plan.c - the stream plan: which bytes are read in which order, and which of them stay. Pure
 * arithmetic over the matrices. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tape.h"

struct builder {
    struct k3_tape_plan *p;
    size_t cap_blocks, cap_pieces;
    uint64_t block_bytes;
    struct k3_error *err;
};

static enum k3_status grow(void **array, size_t n, size_t *cap, size_t size, struct k3_error *err)
{
    if (n < *cap)
        return K3_OK;
    size_t want = *cap ? 2 * *cap : 64;
    void *a = realloc(*array, want * size);
    if (!a)
        return k3_fail_memory(err, "the stream plan", want * size);
    *array = a;
    *cap = want;
    return K3_OK;
}

/* Bytes of matrix m that may still join the last block: 0 when it does not touch its end. */
static uint64_t room(const struct builder *b, const struct k3_tape_matrix *m, uint64_t offset)
{
    const struct k3_tape_plan *p = b->p;
    if (p->n_blocks == 0)
        return 0;
    const struct k3_tape_block *k = &p->blocks[p->n_blocks - 1];
    if (k->shard != m->shard || k->head != m->head || k->offset + k->bytes != offset ||
        k->bytes >= b->block_bytes)
        return 0;
    return b->block_bytes - k->bytes;
}

static enum k3_status add_block(struct builder *b, const struct k3_tape_matrix *m, uint64_t offset)
{
    struct k3_tape_plan *p = b->p;
    if (grow((void **)&p->blocks, p->n_blocks, &b->cap_blocks, sizeof *p->blocks, b->err) != K3_OK)
        return b->err->status;
    p->blocks[p->n_blocks++] = (struct k3_tape_block){
        .offset = offset,
        .shard = m->shard,
        .first_piece = (uint32_t)p->n_pieces,
        .head = m->head,
    };
    return K3_OK;
}

/* Rows [row0, row0 + rows) of matrix i go into the last block. */
static enum k3_status add_piece(struct builder *b, uint32_t i, uint64_t row0, uint64_t rows,
                                uint64_t bytes)
{
    struct k3_tape_plan *p = b->p;
    if (p->n_pieces >= UINT32_MAX)
        return k3_fail(b->err, K3_FAILED,
                       "the stream plan has too many pieces; enlarge the blocks");
    if (grow((void **)&p->pieces, p->n_pieces, &b->cap_pieces, sizeof *p->pieces, b->err) != K3_OK)
        return b->err->status;
    struct k3_tape_block *k = &p->blocks[p->n_blocks - 1];
    p->pieces[p->n_pieces++] = (struct k3_tape_piece){
        .matrix = i,
        .block = (uint32_t)(p->n_blocks - 1),
        .row0 = row0,
        .rows = rows,
        .at = k->bytes,
    };
    k->bytes += bytes;
    k->n_pieces++;
    p->bytes += bytes;
    if (k->head)
        p->head_bytes += bytes;
    return K3_OK;
}

/* How many rows from row0 on go into the last block: whole units, or the rest of the matrix. 0 when
 * a new block should begin: a sliver of a large matrix is not worth a piece of its own. */
static uint64_t rows_that_fit(const struct builder *b, const struct k3_tape_matrix *m,
                              uint64_t row0, uint64_t space)
{
    uint64_t rest = m->rows - row0;
    if (space / m->row_bytes >= rest)
        return rest;
    uint64_t rows = space / m->row_bytes / m->unit * m->unit;
    return space < b->block_bytes && rows * m->row_bytes < b->block_bytes / 4 ? 0 : rows;
}

static enum k3_status add_matrix(struct builder *b, const struct k3_tape_matrix *m, uint32_t i)
{
    for (uint64_t row0 = 0; row0 < m->rows;) {
        uint64_t offset = m->offset + row0 * m->row_bytes;
        uint64_t rows = rows_that_fit(b, m, row0, room(b, m, offset));
        if (rows == 0) {
            if (add_block(b, m, offset) != K3_OK)
                return b->err->status;
            rows = rows_that_fit(b, m, row0, b->block_bytes);
            if (rows == 0) /* one unit is larger than a block should be */
                rows = m->rows - row0 < m->unit ? m->rows - row0 : m->unit;
        }
        if (add_piece(b, i, row0, rows, rows * m->row_bytes) != K3_OK)
            return b->err->status;
        row0 += rows;
    }
    return K3_OK;
}

static enum k3_status check_matrix(const struct k3_tape_matrix *m, size_t i, bool after_head,
                                   struct k3_error *err)
{
    uint64_t bytes, end;
    if (m->unit == 0 || m->row_bytes == 0 ||
        __builtin_mul_overflow(m->rows, m->row_bytes, &bytes) ||
        __builtin_add_overflow(m->offset, bytes, &end) || end > INT64_MAX - K3_IO_ALIGN)
        return k3_fail(err, K3_FAILED,
                       "stream plan: matrix %zu has impossible sizes: %" PRIu64 " rows of %" PRIu64
                       " bytes in units of %u at byte %" PRIu64, i, m->rows, m->row_bytes, m->unit,
                       m->offset);
    if (after_head && !m->head)
        return k3_fail(err, K3_FAILED,
                       "stream plan: matrix %zu follows the head, which must be last", i);
    return K3_OK;
}

enum k3_status k3_tape_plan_make(struct k3_tape_plan *p, const struct k3_tape_matrix *m, size_t n,
                                 uint64_t block_bytes, struct k3_error *err)
{
    *p = (struct k3_tape_plan){0};
    struct builder b = {.p = p, .block_bytes = block_bytes, .err = err};
    if (block_bytes == 0 || n > UINT32_MAX)
        return k3_fail(err, K3_FAILED, "stream plan: %zu matrices in blocks of %" PRIu64 " bytes",
                       n, block_bytes);
    for (size_t i = 0; i < n; i++)
        if (check_matrix(&m[i], i, i > 0 && m[i - 1].head, err) != K3_OK ||
            add_matrix(&b, &m[i], (uint32_t)i) != K3_OK) {
            k3_tape_plan_free(p);
            return err->status;
        }
    for (size_t i = 0; i < p->n_blocks; i++) {
        uint64_t w = k3_io_window(p->blocks[i].offset, p->blocks[i].bytes);
        if (w > p->largest_window)
            p->largest_window = w;
    }
    return K3_OK;
}

void k3_tape_plan_free(struct k3_tape_plan *p)
{
    free(p->blocks);
    free(p->pieces);
    *p = (struct k3_tape_plan){0};
}

/* ---- residents --------------------------------------------------------------------------- */

static uint64_t window(const struct k3_tape_block *k)
{
    return k3_io_window(k->offset, k->bytes);
}

/* Keeps the block when the sum stays within what memory of `bytes` can hold. */
static bool keep(struct k3_tape_block *k, uint64_t *kept, uint64_t bytes)
{
    uint64_t sum = *kept + window(k);
    if (k->resident || k3_io_round(sum) > bytes)
        return false;
    k->resident = true;
    *kept = sum;
    return true;
}

uint64_t k3_tape_plan_residents(struct k3_tape_plan *p, uint64_t bytes)
{
    uint64_t total = 0, kept = 0, passed = 0;
    for (size_t i = 0; i < p->n_blocks; i++) {
        p->blocks[i].resident = false;
        total += window(&p->blocks[i]);
    }
    if (total == 0)
        return 0;
    /* Walking along the tape, what is kept follows the share of the way, to half a block. */
    double share = bytes < total ? (double)bytes / (double)total : 1.0;
    for (size_t i = 0; i < p->n_blocks; i++) {
        uint64_t w = window(&p->blocks[i]);
        passed += w;
        if ((double)kept + (double)w / 2 <= share * (double)passed)
            keep(&p->blocks[i], &kept, bytes);
    }
    /* Less than a block or two is left; small blocks may still fit. */
    for (size_t i = 0; i < p->n_blocks; i++)
        keep(&p->blocks[i], &kept, bytes);
    return k3_io_round(kept);
}
