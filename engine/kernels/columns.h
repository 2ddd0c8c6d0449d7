/* columns.h - kernels whose vector runs over the outputs: one accumulator per output, from +0,
 * terms in rising index order, fused. */
#ifndef K3_COLUMNS_H
#define K3_COLUMNS_H

enum {
    RUN_ROWS = 128,   /* rows of one block of W^T x, so that the block stays in the first cache */
    RUN_AHEAD = 24,   /* rows of prefetch within a block, for the first one, which no other fetched */
    KDA_MAX = 1024,   /* largest head width of kda_step */
};

/* ---- W^T x ----------------------------------------------------------------------------------- */

/* V vectors of columns (the last of n lanes) for T tokens over nr rows; y is continued unless
 * `fresh`. Weights `ahead` bytes further are fetched, unless that is 0. */
K3_INLINE void run_rows(enum format f, float *y, size_t ldy, bool fresh, const uint8_t *w,
                        size_t ldw, ptrdiff_t ahead, size_t nr, const float *x, size_t ldx,
                        size_t n, int V, int T)
{
    const size_t stride = ldw * row_bytes(f, 1);
    v16 acc[ACC_MAX];
    K3_UNROLL
    for (int t = 0; t < T; t++) {
        K3_UNROLL
        for (int v = 0; v < V; v++)
            acc[t * V + v] = fresh ? v16_zero() : v16_load_n(y + (size_t)t * ldy + 16 * v, n);
    }
    for (size_t r = 0; r < nr; r++) {
        v16 a[SUM_V];
        K3_UNROLL
        for (int v = 0; v < V; v++)
            a[v] = n == 16 ? row_load(f, w, r * ldw + 16 * (size_t)v) : row_load_n(f, w, r * ldw, n);
        if (ahead != 0) {
            K3_UNROLL
            for (size_t line = 0; line < row_bytes(f, 16 * (size_t)V); line += 64) {
                __builtin_prefetch(w + r * stride + line + ahead);
                if (f == BF16) /* F32 are latents, which the heads before have read */
                    __builtin_prefetch(w + (r + RUN_AHEAD) * stride + line);
            }
        }
        K3_UNROLL
        for (int t = 0; t < T; t++) {
            const v16 b = v16_set1(x[(size_t)t * ldx + r]);
            K3_UNROLL
            for (int v = 0; v < V; v++)
                acc[t * V + v] = v16_fma(a[v], b, acc[t * V + v]);
        }
    }
    K3_UNROLL
    for (int t = 0; t < T; t++) {
        K3_UNROLL
        for (int v = 0; v < V; v++)
            v16_store_n(y + (size_t)t * ldy + 16 * v, acc[t * V + v], n);
    }
}

/* V vectors of columns for all tokens, T at once, and all rows in blocks. */
K3_INLINE void run_columns(enum format f, float *y, size_t ldy, const uint8_t *w, size_t ldw,
                           size_t rows, const float *x, size_t ldx, size_t tokens, size_t n, int V,
                           int T)
{
    const size_t stride = ldw * row_bytes(f, 1);
    for (size_t r = 0; r == 0 || r < rows; r += RUN_ROWS) {
        const size_t nr = k3_least(RUN_ROWS, rows - r);
        const uint8_t *at = w + r * stride;
        /* the next rows, then the next columns; the first tokens fetch them for all */
        ptrdiff_t ahead = r + RUN_ROWS < rows
                              ? (ptrdiff_t)(RUN_ROWS * stride)
                              : (ptrdiff_t)row_bytes(f, 16 * (size_t)V) - (ptrdiff_t)(r * stride);
        for (size_t t = 0, g; t < tokens; t += g, ahead = 0) {
            g = next_group(tokens - t, (size_t)T);
            float *yt = y + t * ldy;
            const float *xt = x + t * ldx + r;
            if (g == (size_t)T)
                run_rows(f, yt, ldy, r == 0, at, ldw, ahead, nr, xt, ldx, n, V, T);
            else if (T > 5 && g == 5)
                run_rows(f, yt, ldy, r == 0, at, ldw, ahead, nr, xt, ldx, n, V, 5);
            else if (T > 4 && g == 4)
                run_rows(f, yt, ldy, r == 0, at, ldw, ahead, nr, xt, ldx, n, V, 4);
            else if (T > 3 && g == 3)
                run_rows(f, yt, ldy, r == 0, at, ldw, ahead, nr, xt, ldx, n, V, 3);
            else if (T > 2 && g == 2)
                run_rows(f, yt, ldy, r == 0, at, ldw, ahead, nr, xt, ldx, n, V, 2);
            else
                run_rows(f, yt, ldy, r == 0, at, ldw, ahead, nr, xt, ldx, n, V, 1);
        }
    }
}

K3_INLINE void gemm_t_any(enum format f, float *y, size_t ldy, const uint8_t *w, size_t ldw,
                          size_t rows, size_t cols, const float *x, size_t ldx, size_t tokens, int V,
                          int T)
{
    const size_t size = row_bytes(f, 1), wide = 16 * (size_t)V;
    size_t c = 0;
    for (; c + wide <= cols; c += wide)
        run_columns(f, y + c, ldy, w + c * size, ldw, rows, x, ldx, tokens, 16, V, T);
    for (; c < cols; c += 16)
        run_columns(f, y + c, ldy, w + c * size, ldw, rows, x, ldx, tokens,
                    k3_least(16, cols - c), 1, 1);
}

/* A single token has registers to spare for more columns. */
static void gemm_t_f32(float *y, size_t ldy, const void *w, size_t ldw, size_t rows, size_t cols,
                       const float *x, size_t ldx, size_t tokens)
{
    if (tokens == 1)
        gemm_t_any(F32, y, ldy, w, ldw, rows, cols, x, ldx, tokens, SUM_V, 1);
    else
        gemm_t_any(F32, y, ldy, w, ldw, rows, cols, x, ldx, tokens, COLS_V, COLS_T);
}

static void gemm_t_bf16(float *y, size_t ldy, const void *w, size_t ldw, size_t rows, size_t cols,
                        const float *x, size_t ldx, size_t tokens)
{
    if (tokens == 1)
        gemm_t_any(BF16, y, ldy, w, ldw, rows, cols, x, ldx, tokens, SUM_V, 1);
    else
        gemm_t_any(BF16, y, ldy, w, ldw, rows, cols, x, ldx, tokens, COLS_V, COLS_T);
}

/* ---- weighted sum ---------------------------------------------------------------------------- */

K3_INLINE void sum_columns(float *y, const float *p, const float *const *v, size_t n, size_t c,
                           size_t lanes, int V)
{
    v16 acc[SUM_V];
    K3_UNROLL
    for (int k = 0; k < V; k++)
        acc[k] = v16_zero();
    for (size_t i = 0; i < n; i++) {
        const v16 weight = v16_set1(p[i]);
        K3_UNROLL
        for (int k = 0; k < V; k++)
            acc[k] = v16_fma(weight, v16_load_n(v[i] + c + 16 * k, lanes), acc[k]);
    }
    K3_UNROLL
    for (int k = 0; k < V; k++)
        v16_store_n(y + c + 16 * k, acc[k], lanes);
}

static void weighted_sum(float *y, const float *p, const float *const *v, size_t n, size_t width)
{
    size_t c = 0;
    for (; c + 16 * SUM_V <= width; c += 16 * SUM_V)
        sum_columns(y, p, v, n, c, 16, SUM_V);
    for (; c < width; c += 16)
        sum_columns(y, p, v, n, c, k3_least(16, width - c), 1);
}

/* ---- convolution ----------------------------------------------------------------------------- */

static void conv_silu(float *y, float *history, const float *x, const float *w, size_t channels,
                      size_t taps)
{
    for (size_t c = 0; c < channels; c += 16) {
        const size_t n = k3_least(16, channels - c);
        const v16 now = v16_load_n(x + c, n);
        v16 sum = v16_zero();
        for (size_t k = 0; k + 1 < taps; k++) {
            float *past = history + k * channels + c;
            sum = v16_fma(v16_load_n(w + k * channels + c, n), v16_load_n(past, n), sum);
            v16_store_n(past, k + 2 < taps ? v16_load_n(past + channels, n) : now, n);
        }
        sum = v16_fma(v16_load_n(w + (taps - 1) * channels + c, n), now, sum);
        v16_store_n(y + c, v16_mul(sum, v16_logistic(sum)), n);
    }
}

/* ---- KDA ------------------------------------------------------------------------------------- */

/* One step's vectors; q is already scaled. */
struct kda {
    const float *q, *k, *v, *alpha;
    float beta;
    size_t d;
};

/* V vectors of value columns from column c: read with decay, then write back and read again. The
 * block of columns stays in the first cache between the two passes. */
K3_INLINE void kda_columns(float *S, float *out, const struct kda *h, size_t c, size_t n, int V)
{
    v16 u[KDA_V], o[KDA_V];
    K3_UNROLL
    for (int j = 0; j < V; j++)
        u[j] = o[j] = v16_zero();
    for (size_t i = 0; i < h->d; i++) {
        const v16 alpha = v16_set1(h->alpha[i]), k = v16_set1(h->k[i]);
        K3_UNROLL
        for (int j = 0; j < V; j++) {
            const v16 s = v16_mul(v16_load_n(S + i * h->d + c + 16 * j, n), alpha);
            u[j] = v16_fma(s, k, u[j]);
        }
    }
    K3_UNROLL
    for (int j = 0; j < V; j++)
        u[j] = v16_mul(v16_set1(h->beta), v16_sub(v16_load_n(h->v + c + 16 * j, n), u[j]));
    for (size_t i = 0; i < h->d; i++) {
        const v16 alpha = v16_set1(h->alpha[i]), k = v16_set1(h->k[i]), q = v16_set1(h->q[i]);
        K3_UNROLL
        for (int j = 0; j < V; j++) {
            float *at = S + i * h->d + c + 16 * j;
            const v16 s = v16_fma(k, u[j], v16_mul(v16_load_n(at, n), alpha));
            v16_store_n(at, s, n);
            o[j] = v16_fma(s, q, o[j]);
        }
    }
    K3_UNROLL
    for (int j = 0; j < V; j++)
        v16_store_n(out + c + 16 * j, o[j], n);
}

static void kda_step(float *S, float *out, const float *q, const float *k, const float *v,
                     const float *alpha, float beta, float qscale, size_t d)
{
    float scaled[KDA_MAX];
    for (size_t i = 0; i < d; i++)
        scaled[i] = q[i] * qscale;
    const struct kda h = {scaled, k, v, alpha, beta, d};
    size_t c = 0;
    for (; c + 16 * KDA_V <= d; c += 16 * KDA_V)
        kda_columns(S, out, &h, c, 16, KDA_V);
    for (; c < d; c += 16)
        kda_columns(S, out, &h, c, k3_least(16, d - c), 1);
}

#endif
