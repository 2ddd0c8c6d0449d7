/* gemm.h - y = W x for all three weight formats, on the lanes of the including set.
 *
 * Few tokens go the direct way: several rows at once, weights widened in registers as they stream
 * from memory. More tokens go through a tile: a block of rows and columns is widened once into
 * fp32 and multiplied with all tokens in register tiles; the sixteen partial sums of each output
 * are saved between blocks of columns, so the order stays that of the contract. */
#ifndef K3_GEMM_H
#define K3_GEMM_H

#include <stdbool.h>

enum format { F32, BF16, MXFP4 };

struct matrix {
    const uint8_t *w;     /* F32, BF16 elements or packed nibbles; aligned to nothing */
    const uint8_t *scale; /* MXFP4 */
    size_t rows, cols;
};

enum {
    BLOCK_ROWS = 16,  /* rows and columns of a block of weights, which stays in the first cache */
    BLOCK_COLS = 512,
    BLOCK_MOST = 640, /* columns that are still taken as one block at the end of a row */
    BLOCK_TOKENS = 64, /* most tokens whose partial sums are saved between blocks of columns */
    PANEL_ROWS = 64,   /* rows that share the passage of a block of activations, */
    PANEL_TOKENS = 16, /* when there are more tokens than this */
    DIRECT_AHEAD = 2048, /* bytes of prefetch within a row; the next row's start at its end */
    ACC_MAX = 32,
};

K3_INLINE size_t row_bytes(enum format f, size_t cols)
{
    return f == F32 ? cols * 4 : f == BF16 ? cols * 2 : cols / 2;
}

/* Sixteen weights of a row of F32 or BF16, from element i. */
K3_INLINE v16 row_load(enum format f, const uint8_t *row, size_t i)
{
    return f == F32 ? v16_load(row + 4 * i) : v16_load_bf16(row + 2 * i);
}

K3_INLINE v16 row_load_n(enum format f, const uint8_t *row, size_t i, size_t n)
{
    return f == F32 ? v16_load_n(row + 4 * i, n) : v16_load_bf16_n(row + 2 * i, n);
}

/* y[t*ldy + r] = folded lanes of acc[r*T + t] */
K3_INLINE void fold_out(float *y, size_t ldy, const v16 *acc, int R, int T)
{
    K3_UNROLL
    for (int t = 0; t < T; t++) {
        float *out = y + (size_t)t * ldy;
        K3_UNROLL
        for (int r = 0; r < R / 4 * 4; r += 4)
            v16_fold4(out + r, acc[r * T + t], acc[(r + 1) * T + t], acc[(r + 2) * T + t],
                      acc[(r + 3) * T + t]);
        K3_UNROLL
        for (int r = R / 4 * 4; r < R; r++)
            out[r] = v16_fold(acc[r * T + t]);
    }
}

/* The last cols % 16 columns, from column i. */
K3_INLINE void tail_step(enum format f, v16 *acc, const uint8_t *w, size_t stride, size_t i,
                         size_t n, const float *x, size_t ldx, int R, int T)
{
    K3_UNROLL
    for (int r = 0; r < R; r++) {
        const v16 a = row_load_n(f, w + (size_t)r * stride, i, n);
        K3_UNROLL
        for (int t = 0; t < T; t++) {
            const v16 b = v16_load_n(x + (size_t)t * ldx + i, n);
            acc[r * T + t] = v16_first(n, v16_fma(a, b, acc[r * T + t]), acc[r * T + t]);
        }
    }
}

/* ---- direct: weights widened in registers as they stream ------------------------------------- */

K3_INLINE void direct_plain(enum format f, float *y, size_t ldy, const uint8_t *w, size_t cols,
                            const float *x, size_t ldx, int R, int T)
{
    const size_t stride = row_bytes(f, cols);
    v16 acc[ACC_MAX];
    K3_UNROLL
    for (int a = 0; a < R * T; a++)
        acc[a] = v16_zero();
    /* The last columns fetch the first ones of the next R rows. */
    const size_t whole = cols / 16 * 16, turn = stride > DIRECT_AHEAD ? stride - DIRECT_AHEAD : 0;
    const size_t most = turn / row_bytes(f, 16) * 16;
    size_t i = 0;
    for (int part = 0; part < 2; part++) {
        const size_t end = part || most > whole ? whole : most;
        const size_t ahead = DIRECT_AHEAD + (part ? (size_t)(R - 1) * stride : 0);
        for (; i < end; i += 16) {
            v16 b[TILE_T];
            K3_UNROLL
            for (int t = 0; t < T; t++)
                b[t] = v16_load(x + (size_t)t * ldx + i);
            K3_UNROLL
            for (int r = 0; r < R; r++) {
                const uint8_t *row = w + (size_t)r * stride;
                const v16 a = row_load(f, row, i);
                __builtin_prefetch(row + row_bytes(f, i) + ahead);
                K3_UNROLL
                for (int t = 0; t < T; t++)
                    acc[r * T + t] = v16_fma(a, b[t], acc[r * T + t]);
            }
        }
    }
    if (i < cols)
        tail_step(f, acc, w, stride, i, cols - i, x, ldx, R, T);
    fold_out(y, ldy, acc, R, T);
}

/* 2^(s - 127) of n <= 16 groups. The loader refuses s = 255; here it would be an infinity. */
K3_INLINE void mx_scales(float *out, const uint8_t *s, size_t n)
{
    uint8_t few[16] = {0};
    if (n < 16)
        s = memcpy(few, s, n);
    mx_scales16(out, s);
}

/* R rows with T tokens, from packed bytes; sixteen groups of 32 columns share one step of scales. */
K3_INLINE void direct_mxfp4(float *y, size_t ldy, const uint8_t *w, const uint8_t *scale,
                            size_t cols, const float *x, size_t ldx, int R, int T)
{
    const size_t groups = cols / 32, stride = cols / 2;
    v16 acc[ACC_MAX];
    K3_UNROLL
    for (int a = 0; a < R * T; a++)
        acc[a] = v16_zero();
    for (size_t g0 = 0; g0 < groups; g0 += 16) {
        const size_t n = k3_least(16, groups - g0);
        float by[DIRECT_ROWS][16];
        for (int r = 0; r < R; r++)
            mx_scales(by[r], scale + (size_t)r * groups + g0, n);
        for (size_t g = 0; g < n; g++) {
            const float *at = x + (g0 + g) * 32;
            const uint8_t *packed = w + (g0 + g) * 16;
            /* the next R rows follow these: fetch them in one sweep */
            const uint8_t *next = w + (size_t)R * (stride + (g0 + g) * 16);
            K3_UNROLL
            for (int line = 0; line < (R + 3) / 4; line++)
                __builtin_prefetch(next + 64 * line);
            v16 x0[TILE_T], x1[TILE_T];
            K3_UNROLL
            for (int t = 0; t < T; t++) {
                x0[t] = mx_mix(v16_load(at + (size_t)t * ldx));
                x1[t] = mx_mix(v16_load(at + (size_t)t * ldx + 16));
            }
            K3_UNROLL
            for (int r = 0; r < R; r++) {
                v16 a0, a1;
                mx_group_mixed(mx_scaled(by[r][g]), packed + (size_t)r * stride, &a0, &a1);
                K3_UNROLL
                for (int t = 0; t < T; t++) {
                    acc[r * T + t] = v16_fma(a0, x0[t], acc[r * T + t]);
                    acc[r * T + t] = v16_fma(a1, x1[t], acc[r * T + t]);
                }
            }
        }
    }
    K3_UNROLL
    for (int a = 0; a < R * T; a++)
        acc[a] = mx_unmix(acc[a]);
    fold_out(y, ldy, acc, R, T);
}

/* R rows from row r with T tokens. */
K3_INLINE void direct_rows(enum format f, float *y, size_t ldy, const struct matrix *m, size_t r,
                           const float *x, size_t ldx, int R, int T)
{
    const uint8_t *w = m->w + r * row_bytes(f, m->cols);
    if (f == MXFP4)
        direct_mxfp4(y + r, ldy, w, m->scale + r * (m->cols / 32), m->cols, x, ldx, R, T);
    else
        direct_plain(f, y + r, ldy, w, m->cols, x, ldx, R, T);
}

/* T tokens with all rows, R at once, and the last rows one by one with each token. */
K3_INLINE void direct_tokens(enum format f, float *y, size_t ldy, const struct matrix *m,
                             const float *x, size_t ldx, int R, int T)
{
    size_t r = 0;
    for (; r + (size_t)R <= m->rows; r += (size_t)R)
        direct_rows(f, y, ldy, m, r, x, ldx, R, T);
    for (; r < m->rows; r++)
        for (size_t t = 0; t < (size_t)T; t++)
            direct_rows(f, y + t * ldy, ldy, m, r, x + t * ldx, ldx, 1, 1);
}

/* Tokens of the next group, when `left` are split into groups of at most `most` as even as can be:
 * 16 in sixes are 6 + 5 + 5, not 6 + 6 + 4. */
K3_INLINE size_t next_group(size_t left, size_t most)
{
    const size_t groups = (left + most - 1) / most;
    return (left + groups - 1) / groups;
}

/* nr rows of MXFP4 from row r0 with some tokens, DIRECT_GROUP at once. */
static void direct_groups(float *y, size_t ldy, const struct matrix *all, size_t r0, size_t nr,
                          const float *x, size_t ldx, size_t tokens)
{
    const struct matrix m = {all->w + r0 * (all->cols / 2), all->scale + r0 * (all->cols / 32), nr,
                             all->cols};
    for (size_t t = 0, n; t < tokens; t += n) {
        n = next_group(tokens - t, DIRECT_GROUP);
        float *yt = y + t * ldy + r0;
        const float *xt = x + t * ldx;
        if (DIRECT_GROUP > 3 && n == 4)
            direct_tokens(MXFP4, yt, ldy, &m, xt, ldx, DIRECT_FEW, 4);
        else if (DIRECT_GROUP > 2 && n == 3)
            direct_tokens(MXFP4, yt, ldy, &m, xt, ldx, DIRECT_FEW, 3);
        else if (n == 2)
            direct_tokens(MXFP4, yt, ldy, &m, xt, ldx, DIRECT_FEW, 2);
        else
            direct_tokens(MXFP4, yt, ldy, &m, xt, ldx, DIRECT_ROWS, 1);
    }
}

/* ---- blocks: many tokens with the weights of one block --------------------------------------- */

/* nr rows x nk columns of MXFP4 from row r0 and column k0 as fp32. */
static void decode_block(float *tile, const struct matrix *m, size_t r0, size_t nr, size_t k0,
                         size_t nk)
{
    for (size_t r = 0; r < nr; r++) {
        const uint8_t *w = m->w + (r0 + r) * (m->cols / 2) + k0 / 2;
        const uint8_t *scale = m->scale + (r0 + r) * (m->cols / 32) + k0 / 32;
        float by[16];
        for (size_t k = 0; k < nk; k += 32) {
            if (k % 512 == 0)
                mx_scales(by, scale + k / 32, k3_least(16, (nk - k) / 32));
            v16 a, b;
            mx_group(mx_scaled(by[k / 32 % 16]), w + k / 2, &a, &b);
            v16_store(tile + r * BLOCK_MOST + k, a);
            v16_store(tile + r * BLOCK_MOST + k + 16, b);
        }
    }
}

/* One block of weights in place or decoded. */
struct block {
    const uint8_t *w;
    size_t stride;  /* bytes from row to row */
    size_t rows, cols;
    ptrdiff_t ahead; /* bytes from a weight to the one at its place in the next block */
    bool fresh;     /* the first block of its rows: the partial sums start here */
};

/* R rows with T tokens over the block's columns; the partial sums of row r and token t are
 * lanes[(t * BLOCK_ROWS + r) * 16 ..]. */
K3_INLINE void block_step(enum format f, float *lanes, const struct block *b, const uint8_t *w,
                          const float *x, size_t ldx, int R, int T)
{
    v16 acc[ACC_MAX];
    K3_UNROLL
    for (int r = 0; r < R; r++) {
        K3_UNROLL
        for (int t = 0; t < T; t++)
            acc[r * T + t] = b->fresh ? v16_zero() : v16_load(lanes + (t * BLOCK_ROWS + r) * 16);
    }
    const size_t stride = b->stride, cols = b->cols;
    const ptrdiff_t ahead = b->ahead;
    for (size_t k = 0; k < cols; k += 16) {
        v16 xt[TILE_T];
        K3_UNROLL
        for (int t = 0; t < T; t++)
            xt[t] = v16_load(x + (size_t)t * ldx + k);
        K3_UNROLL
        for (int r = 0; r < R; r++) {
            const uint8_t *row = w + (size_t)r * stride;
            const v16 a = row_load(f, row, k);
            __builtin_prefetch(row + (ptrdiff_t)row_bytes(f, k) + ahead);
            K3_UNROLL
            for (int t = 0; t < T; t++)
                acc[r * T + t] = v16_fma(a, xt[t], acc[r * T + t]);
        }
    }
    K3_UNROLL
    for (int r = 0; r < R; r++) {
        K3_UNROLL
        for (int t = 0; t < T; t++)
            v16_store(lanes + (t * BLOCK_ROWS + r) * 16, acc[r * T + t]);
    }
}

/* All rows of the block with T tokens, TILE_R rows at once, and the last rows one by one with each
 * token. */
K3_INLINE void block_rows(enum format f, float *lanes, const struct block *b, const float *x,
                          size_t ldx, int T)
{
    size_t r = 0;
    for (; r + TILE_R <= b->rows; r += TILE_R)
        block_step(f, lanes + r * 16, b, b->w + r * b->stride, x, ldx, TILE_R, T);
    for (; r < b->rows; r++)
        for (size_t t = 0; t < (size_t)T; t++)
            block_step(f, lanes + (t * BLOCK_ROWS + r) * 16, b, b->w + r * b->stride, x + t * ldx,
                       ldx, 1, 1);
}

/* All tokens, up to TILE_T at once. */
K3_INLINE void block_tokens(enum format f, float *lanes, const struct block *b, const float *x,
                            size_t ldx, size_t tokens)
{
    for (size_t t = 0, n; t < tokens; t += n) {
        n = next_group(tokens - t, TILE_T);
        float *at = lanes + t * BLOCK_ROWS * 16;
        const float *xt = x + t * ldx;
        if (n == TILE_T)
            block_rows(f, at, b, xt, ldx, TILE_T);
        else if (TILE_T > 5 && n == 5)
            block_rows(f, at, b, xt, ldx, 5);
        else if (TILE_T > 4 && n == 4)
            block_rows(f, at, b, xt, ldx, 4);
        else if (TILE_T > 3 && n == 3)
            block_rows(f, at, b, xt, ldx, 3);
        else if (TILE_T > 2 && n == 2)
            block_rows(f, at, b, xt, ldx, 2);
        else
            block_rows(f, at, b, xt, ldx, 1);
    }
}

/* MXFP4, once decoded, takes the way of F32. */
static void block_f32(float *lanes, const struct block *b, const float *x, size_t ldx,
                      size_t tokens)
{
    block_tokens(F32, lanes, b, x, ldx, tokens);
}

static void block_bf16(float *lanes, const struct block *b, const float *x, size_t ldx,
                       size_t tokens)
{
    block_tokens(BF16, lanes, b, x, ldx, tokens);
}

/* R rows from r with one token: the columns after the last whole sixteen, then the fixed tree. */
K3_INLINE void block_finish(enum format f, float *y, const float *lanes, const struct matrix *m,
                            size_t r, const float *x, int R)
{
    const size_t stride = row_bytes(f, m->cols), whole = m->cols / 16 * 16;
    v16 acc[4];
    K3_UNROLL
    for (int k = 0; k < R; k++)
        acc[k] = v16_load(lanes + 16 * k);
    if (whole < m->cols)
        tail_step(f, acc, m->w + r * stride, stride, whole, m->cols - whole, x, 0, R, 1);
    fold_out(y + r, 0, acc, R, 1);
}

K3_INLINE void finish_tokens(enum format f, float *y, size_t ldy, const float *lanes,
                             const struct matrix *m, size_t r0, size_t nr, const float *x,
                             size_t ldx, size_t tokens)
{
    for (size_t t = 0; t < tokens; t++) {
        const float *of = lanes + t * BLOCK_ROWS * 16;
        size_t r = 0;
        for (; r + 4 <= nr; r += 4)
            block_finish(f, y + t * ldy, of + r * 16, m, r0 + r, x + t * ldx, 4);
        for (; r < nr; r++)
            block_finish(f, y + t * ldy, of + r * 16, m, r0 + r, x + t * ldx, 1);
    }
}

/* Up to PANEL_ROWS rows from r0 with up to BLOCK_TOKENS tokens: a block of the columns of the
 * activations stays in the second cache while the rows of the panel pass by. */
K3_INLINE void panel_by_tokens(enum format f, float *y, size_t ldy, const struct matrix *m,
                               size_t r0, size_t nr, const float *x, size_t ldx, size_t tokens)
{
    _Alignas(64) float lanes[PANEL_ROWS / BLOCK_ROWS][BLOCK_ROWS * BLOCK_TOKENS * 16];
    _Alignas(64) float tile[BLOCK_ROWS * BLOCK_MOST];
    const size_t whole = m->cols / 16 * 16, stride = row_bytes(f, m->cols);
    for (size_t k = 0, n; k == 0 || k < whole; k += n ? n : 1) {
        n = whole - k <= BLOCK_MOST ? whole - k : BLOCK_COLS;
        for (size_t r = 0; r < nr; r += BLOCK_ROWS) {
            struct block b = {.w = m->w + (r0 + r) * stride + row_bytes(f, k),
                              .stride = stride,
                              .rows = k3_least(BLOCK_ROWS, nr - r),
                              .cols = n,
                              .fresh = k == 0};
            /* the next rows of the panel, then its next columns; at its end the next panel */
            b.ahead = r + BLOCK_ROWS < nr ? (ptrdiff_t)(BLOCK_ROWS * stride)
                      : k + n < whole     ? (ptrdiff_t)row_bytes(f, n) - (ptrdiff_t)(r * stride)
                                          : (ptrdiff_t)(BLOCK_ROWS * stride - row_bytes(f, k));
            if (f == MXFP4) {
                decode_block(tile, m, r0 + r, b.rows, k, n);
                b.w = (const uint8_t *)tile;
                b.stride = BLOCK_MOST * sizeof *tile;
                b.ahead = 0;
            }
            (f == BF16 ? block_bf16 : block_f32)(lanes[r / BLOCK_ROWS], &b, x + k, ldx, tokens);
        }
    }
    for (size_t r = 0; r < nr; r += BLOCK_ROWS)
        finish_tokens(f, y, ldy, lanes[r / BLOCK_ROWS], m, r0 + r, k3_least(BLOCK_ROWS, nr - r), x,
                      ldx, tokens);
}

/* ---- the entries ----------------------------------------------------------------------------- */

K3_INLINE void gemm_any(enum format f, float *y, size_t ldy, const struct matrix *m,
                        const float *x, size_t ldx, size_t tokens)
{
    if (tokens == 1) {
        direct_tokens(f, y, ldy, m, x, ldx, DIRECT_ROWS, 1);
    } else if (f == MXFP4 && tokens <= DIRECT_MXFP4) {
        for (size_t r = 0; r < m->rows; r += BLOCK_ROWS)
            direct_groups(y, ldy, m, r, k3_least(BLOCK_ROWS, m->rows - r), x, ldx, tokens);
    } else {
        /* Few activations stay in a cache anyway, and the weights then stream row by row. */
        const size_t panel = tokens > PANEL_TOKENS ? PANEL_ROWS : BLOCK_ROWS;
        for (size_t r = 0; r < m->rows; r += panel) {
            const size_t nr = k3_least(panel, m->rows - r);
            for (size_t t = 0; t < tokens; t += BLOCK_TOKENS)
                panel_by_tokens(f, y + t * ldy, ldy, m, r, nr, x + t * ldx, ldx,
                                k3_least(BLOCK_TOKENS, tokens - t));
        }
    }
}

static void gemm_f32(float *y, size_t ldy, const void *w, size_t rows, size_t cols, const float *x,
                     size_t ldx, size_t tokens)
{
    const struct matrix m = {w, NULL, rows, cols};
    gemm_any(F32, y, ldy, &m, x, ldx, tokens);
}

static void gemm_bf16(float *y, size_t ldy, const void *w, size_t rows, size_t cols,
                      const float *x, size_t ldx, size_t tokens)
{
    const struct matrix m = {w, NULL, rows, cols};
    gemm_any(BF16, y, ldy, &m, x, ldx, tokens);
}

static void gemm_mxfp4(float *y, size_t ldy, const uint8_t *packed, const uint8_t *scale,
                       size_t rows, size_t cols, const float *x, size_t ldx, size_t tokens)
{
    const struct matrix m = {packed, scale, rows, cols};
    gemm_any(MXFP4, y, ldy, &m, x, ldx, tokens);
}

#endif
