/* matmul.c - tape matrices times the chunk's activations, as their rows arrive. */
#include "engine.h"

#define MOST_PIECES 256
#define SERIAL_WORK 65536u /* multiply-adds below which a team costs more than it gives */
#define STREAM_BYTES 1048576u /* weights that a thread reads in one go */
#define SHARE_ROWS 64u        /* a panel of the kernels */

void k3_gemm(const struct k3_kernels *k, uint8_t dtype, float *y, size_t ldy, const void *w,
             size_t rows, size_t cols, const float *x, size_t ldx, size_t tokens)
{
    (dtype == K3_DT_F32 ? k->gemm_f32 : k->gemm_bf16)(y, ldy, w, rows, cols, x, ldx, tokens);
}

void k3_gemm_t(const struct k3_kernels *k, uint8_t dtype, float *y, size_t ldy, const void *w,
               size_t ldw, size_t rows, size_t cols, const float *x, size_t ldx, size_t tokens)
{
    (dtype == K3_DT_F32 ? k->gemm_t_f32 : k->gemm_t_bf16)(y, ldy, w, ldw, rows, cols, x, ldx,
                                                          tokens);
}

/* Matrices of one input, one behind the other on the tape: y[i] = x times matrix first + i. */
struct product {
    const struct k3_kernels *k;
    const struct k3_matrix *m;        /* [n]: they share cols */
    const struct k3_tape_matrix *at;  /* [n] */
    float *const *y;                  /* [n][tokens][rows] */
    uint32_t first;
    const float *x;
    size_t tokens;
};

/* Rows [lo, hi) of all rows in `pieces`, counted through. */
static void some_rows(const struct product *p, const struct k3_rows *pieces, size_t n, uint64_t lo,
                      uint64_t hi)
{
    uint64_t first = 0;
    for (size_t i = 0; i < n && first < hi; first += pieces[i].rows, i++) {
        const uint64_t a = lo > first ? lo - first : 0;
        const uint64_t b = hi - first < pieces[i].rows ? hi - first : pieces[i].rows;
        if (a >= b)
            continue;
        const uint32_t which = pieces[i].matrix - p->first;
        const struct k3_matrix *m = &p->m[which];
        k3_gemm(p->k, m->dtype, p->y[which] + pieces[i].row0 + a, m->rows,
                pieces[i].data + a * p->at[which].row_bytes, b - a, m->cols, p->x, m->cols,
                p->tokens);
    }
}

/* Rows that a thread takes at once: enough to stream, few enough that the threads end together
 * though one of them may be held up. Shares of whole cache lines of y, so that two threads hardly
 * ever write into one. */
static uint64_t share_of(uint64_t total, uint64_t row_bytes, unsigned team)
{
    const uint64_t fair = total / (4 * (uint64_t)team), stream = STREAM_BYTES / row_bytes;
    const uint64_t rows = fair < stream ? fair : stream;
    return (rows / SHARE_ROWS + 1) * SHARE_ROWS;
}

static void all_rows(const struct k3_engine *e, const struct product *p,
                     const struct k3_rows *pieces, size_t n)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += pieces[i].rows;
    if (e->plan.threads == 1 || total * p->m->cols * p->tokens < SERIAL_WORK) {
        some_rows(p, pieces, n, 0, total);
        return;
    }
    const uint64_t share = share_of(total, p->at->row_bytes, e->plan.threads);
#pragma omp parallel for num_threads(e->plan.threads) schedule(dynamic)
    for (uint64_t lo = 0; lo < total; lo += share)
        some_rows(p, pieces, n, lo, lo + share < total ? lo + share : total);
}

enum k3_status k3_matmuls(struct k3_engine *e, uint32_t first, float *const *y, uint32_t n,
                          const float *x, size_t tokens, struct k3_error *err)
{
    const struct product p = {.k = e->k,
                              .m = &e->bind.matrices[first],
                              .at = &e->bind.tape[first],
                              .y = y,
                              .first = first,
                              .x = x,
                              .tokens = tokens};
    struct k3_rows pieces[MOST_PIECES];
    for (;;) {
        size_t got = 0;
        if (k3_tape_next_of(e->tape, first, first + n, pieces, MOST_PIECES, &got, err) != K3_OK)
            return err->status;
        if (got == 0)
            return K3_OK;
        all_rows(e, &p, pieces, got);
        k3_tape_release(e->tape);
    }
}

enum k3_status k3_matmul(struct k3_engine *e, uint32_t m, float *y, const float *x, size_t tokens,
                         struct k3_error *err)
{
    return k3_matmuls(e, m, &y, 1, x, tokens, err);
}
