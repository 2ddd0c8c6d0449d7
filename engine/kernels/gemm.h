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
    TILE_ROWS = 16,   /* rows and columns of a widened block: 32 KB */
    TILE_COLS = 512,
    TILE_TOKENS = 64, /* tokens whose partial sums are saved: 64 KB */
    ACC_MAX = 16,
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
        if (R == 4) {
            v16_fold4(y + (size_t)t * ldy, acc[t], acc[T + t], acc[2 * T + t], acc[3 * T + t]);
            continue;
        }
        K3_UNROLL
        for (int r = 0; r < R; r++)
            y[(size_t)t * ldy + (size_t)r] = v16_fold(acc[r * T + t]);
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
    size_t i = 0;
    for (; i + 16 <= cols; i += 16) {
        v16 b[TILE_T];
        K3_UNROLL
        for (int t = 0; t < T; t++)
            b[t] = v16_load(x + (size_t)t * ldx + i);
        K3_UNROLL
        for (int r = 0; r < R; r++) {
            const v16 a = row_load(f, w + (size_t)r * stride, i);
            K3_UNROLL
            for (int t = 0; t < T; t++)
                acc[r * T + t] = v16_fma(a, b[t], acc[r * T + t]);
        }
    }
    if (i < cols)
        tail_step(f, acc, w, stride, i, cols - i, x, ldx, R, T);
    fold_out(y, ldy, acc, R, T);
}

K3_INLINE void direct_mxfp4(float *y, const uint8_t *w, const uint8_t *scale, size_t cols,
                            const float *x, int R)
{
    v16 acc[ACC_MAX];
    K3_UNROLL
    for (int r = 0; r < R; r++)
        acc[r] = v16_zero();
    for (size_t g = 0; g < cols / 32; g++) {
        const v16 b0 = v16_load(x + 32 * g), b1 = v16_load(x + 32 * g + 16);
        K3_UNROLL
        for (int r = 0; r < R; r++) {
            v16 a0, a1;
            mx_group(mx_scaled(scale[(size_t)r * (cols / 32) + g]),
                     w + (size_t)r * (cols / 2) + 16 * g, &a0, &a1);
            acc[r] = v16_fma(a0, b0, acc[r]);
            acc[r] = v16_fma(a1, b1, acc[r]);
        }
    }
    fold_out(y, 0, acc, R, 1);
}

K3_INLINE void direct_rows(enum format f, float *y, size_t ldy, const struct matrix *m, size_t r,
                           const float *x, size_t ldx, int R, int T)
{
    const uint8_t *w = m->w + r * row_bytes(f, m->cols);
    if (f == MXFP4)
        direct_mxfp4(y + r, w, m->scale + r * (m->cols / 32), m->cols, x, R);
    else
        direct_plain(f, y + r, ldy, w, m->cols, x, ldx, R, T);
}

/* T tokens with all rows, R at once and the last ones singly. */
K3_INLINE void direct_tokens(enum format f, float *y, size_t ldy, const struct matrix *m,
                             const float *x, size_t ldx, int R, int T)
{
    size_t r = 0;
    for (; r + (size_t)R <= m->rows; r += (size_t)R)
        direct_rows(f, y, ldy, m, r, x, ldx, R, T);
    for (; r < m->rows; r++)
        direct_rows(f, y, ldy, m, r, x, ldx, 1, T);
}

/* ---- the tile: weights widened once for many tokens ------------------------------------------ */

/* nr rows x nk columns (a multiple of 16, of 32 for MXFP4) from row r0 and column k0 as fp32. */
K3_INLINE void widen_block(enum format f, float *tile, const struct matrix *m, size_t r0,
                           size_t nr, size_t k0, size_t nk)
{
    for (size_t r = 0; r < nr; r++) {
        float *out = tile + r * TILE_COLS;
        const uint8_t *row = m->w + (r0 + r) * row_bytes(f, m->cols);
        if (f != MXFP4) {
            for (size_t k = 0; k < nk; k += 16)
                v16_store(out + k, row_load(f, row, k0 + k));
            continue;
        }
        const uint8_t *scale = m->scale + (r0 + r) * (m->cols / 32);
        for (size_t k = 0; k < nk; k += 32) {
            v16 a, b;
            mx_group(mx_scaled(scale[(k0 + k) / 32]), row + (k0 + k) / 2, &a, &b);
            v16_store(out + k, a);
            v16_store(out + k + 16, b);
        }
    }
}

/* R rows of fp32 weights (stride elements apart) with T tokens over nk columns; the partial sums
 * of row r and token t are lanes[(r * TILE_TOKENS + t) * 16 ..], started anew when `fresh`. */
K3_INLINE void tile_step(float *lanes, bool fresh, const uint8_t *w, size_t stride, const float *x,
                         size_t ldx, size_t nk, int R, int T)
{
    v16 acc[ACC_MAX];
    K3_UNROLL
    for (int r = 0; r < R; r++) {
        K3_UNROLL
        for (int t = 0; t < T; t++)
            acc[r * T + t] = fresh ? v16_zero() : v16_load(lanes + (r * TILE_TOKENS + t) * 16);
    }
    for (size_t k = 0; k < nk; k += 16) {
        v16 b[TILE_T];
        K3_UNROLL
        for (int t = 0; t < T; t++)
            b[t] = v16_load(x + (size_t)t * ldx + k);
        K3_UNROLL
        for (int r = 0; r < R; r++) {
            const v16 a = v16_load(w + ((size_t)r * stride + k) * 4);
            K3_UNROLL
            for (int t = 0; t < T; t++)
                acc[r * T + t] = v16_fma(a, b[t], acc[r * T + t]);
        }
    }
    K3_UNROLL
    for (int r = 0; r < R; r++) {
        K3_UNROLL
        for (int t = 0; t < T; t++)
            v16_store(lanes + (r * TILE_TOKENS + t) * 16, acc[r * T + t]);
    }
}

/* nr rows with T tokens, TILE_R rows at once. */
K3_INLINE void tile_rows(float *lanes, bool fresh, const uint8_t *w, size_t stride, size_t nr,
                         const float *x, size_t ldx, size_t nk, int T)
{
    size_t r = 0;
    for (; r + TILE_R <= nr; r += TILE_R)
        tile_step(lanes + r * TILE_TOKENS * 16, fresh, w + r * stride * 4, stride, x, ldx, nk,
                  TILE_R, T);
    for (; r < nr; r++)
        tile_step(lanes + r * TILE_TOKENS * 16, fresh, w + r * stride * 4, stride, x, ldx, nk, 1,
                  T);
}

/* One widened block with all tokens of the token block. */
static void tile_block(float *lanes, bool fresh, const uint8_t *w, size_t stride, size_t nr,
                       const float *x, size_t ldx, size_t nk, size_t tokens)
{
    for (size_t t = 0; t < tokens;) {
        const size_t left = tokens - t;
        /* TILE_T at once, but not so that a single one is left over */
        const size_t n = left <= TILE_T ? left : left == TILE_T + 1 ? TILE_T - 1 : TILE_T;
        float *at = lanes + t * 16;
        const float *xt = x + t * ldx;
        if (n == TILE_T)
            tile_rows(at, fresh, w, stride, nr, xt, ldx, nk, TILE_T);
        else if (TILE_T > 3 && n == 3)
            tile_rows(at, fresh, w, stride, nr, xt, ldx, nk, 3);
        else if (TILE_T > 2 && n == 2)
            tile_rows(at, fresh, w, stride, nr, xt, ldx, nk, 2);
        else
            tile_rows(at, fresh, w, stride, nr, xt, ldx, nk, 1);
        t += n;
    }
}

/* The columns after the last whole sixteen, then the fixed tree. */
K3_INLINE void tile_finish(enum format f, float *y, size_t ldy, const float *lanes,
                           const struct matrix *m, size_t r0, size_t nr, const float *x,
                           size_t ldx, size_t tokens)
{
    const size_t stride = row_bytes(f, m->cols);
    const size_t whole = m->cols / 16 * 16;
    for (size_t t = 0; t < tokens; t++)
        for (size_t r = 0; r < nr; r++) {
            v16 acc[1] = {v16_load(lanes + (r * TILE_TOKENS + t) * 16)};
            if (whole < m->cols)
                tail_step(f, acc, m->w + (r0 + r) * stride, stride, whole, m->cols - whole,
                          x + t * ldx, ldx, 1, 1);
            y[t * ldy + r0 + r] = v16_fold(acc[0]);
        }
}

/* TILE_ROWS rows from r0 with up to TILE_TOKENS tokens. */
K3_INLINE void tile_tokens(enum format f, float *y, size_t ldy, const struct matrix *m, size_t r0,
                           size_t nr, const float *x, size_t ldx, size_t tokens)
{
    _Alignas(64) float tile[TILE_ROWS * TILE_COLS];
    _Alignas(64) float lanes[TILE_ROWS * TILE_TOKENS * 16];
    const size_t whole = m->cols / 16 * 16;
    for (size_t k = 0; k == 0 || k < whole; k += TILE_COLS) {
        const size_t nk = k3_least(TILE_COLS, whole - k);
        const uint8_t *w = (const uint8_t *)tile;
        size_t stride = TILE_COLS;
        if (f == F32) {
            w = m->w + (r0 * m->cols + k) * 4;
            stride = m->cols;
        } else {
            widen_block(f, tile, m, r0, nr, k, nk);
        }
        tile_block(lanes, k == 0, w, stride, nr, x + k, ldx, nk, tokens);
    }
    tile_finish(f, y, ldy, lanes, m, r0, nr, x, ldx, tokens);
}

/* ---- the entries ----------------------------------------------------------------------------- */

K3_INLINE void gemm_any(enum format f, float *y, size_t ldy, const struct matrix *m,
                        const float *x, size_t ldx, size_t tokens)
{
    if (tokens == 1) {
        direct_tokens(f, y, ldy, m, x, ldx, DIRECT_ROWS, 1);
    } else if (tokens == 2 && f != MXFP4) {
        direct_tokens(f, y, ldy, m, x, ldx, DIRECT_PAIR, 2);
    } else {
        for (size_t r = 0; r < m->rows; r += TILE_ROWS) {
            const size_t nr = k3_least(TILE_ROWS, m->rows - r);
            for (size_t t = 0; t < tokens; t += TILE_TOKENS)
                tile_tokens(f, y + t * ldy, ldy, m, r, nr, x + t * ldx, ldx,
                            k3_least(TILE_TOKENS, tokens - t));
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
