/* elements.h - sums over one vector, norms, and what goes element by element. */
#ifndef K3_ELEMENTS_H
#define K3_ELEMENTS_H

#include <math.h>

/* ---- sums and norms -------------------------------------------------------------------------- */

static float dot(const float *a, const float *b, size_t n)
{
    v16 acc = v16_zero();
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        acc = v16_fma(v16_load(a + i), v16_load(b + i), acc);
    if (i < n)
        acc = v16_first(n - i, v16_fma(v16_load_n(a + i, n - i), v16_load_n(b + i, n - i), acc),
                        acc);
    return v16_fold(acc);
}

static float sum_squares(const float *x, size_t n)
{
    return dot(x, x, n);
}

static void rms_norm(float *y, const float *x, const float *w, size_t n, float eps)
{
    const v16 inv = v16_set1(1.0f / sqrtf(sum_squares(x, n) / (float)n + eps));
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        v16_store_n(y + i, v16_mul(v16_load_n(w + i, c), v16_mul(v16_load_n(x + i, c), inv)), c);
    }
}

static void l2_norm(float *x, size_t n, float eps)
{
    const v16 inv = v16_set1(1.0f / sqrtf(sum_squares(x, n) + eps));
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        v16_store_n(x + i, v16_mul(v16_load_n(x + i, c), inv), c);
    }
}

/* ---- softmax --------------------------------------------------------------------------------- */

/* The largest lane; NaN never gets into m. */
static float largest(v16 m)
{
    float lane[16], best = -INFINITY;
    v16_store(lane, m);
    for (int j = 0; j < 16; j++)
        best = lane[j] > best ? lane[j] : best;
    return best;
}

static void softmax(float *x, size_t n, float scale)
{
    const v16 by = v16_set1(scale);
    v16 m = v16_set1(-INFINITY);
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        const v16 s = v16_mul(v16_load_n(x + i, c), by);
        v16_store_n(x + i, s, c);
        m = v16_first(c, v16_max(s, m), m);
    }
    const v16 top = v16_set1(largest(m));
    v16 sum = v16_zero();
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        const v16 e = v16_exp(v16_sub(v16_load_n(x + i, c), top));
        v16_store_n(x + i, e, c);
        sum = v16_first(c, v16_add(sum, e), sum);
    }
    const v16 inv = v16_set1(1.0f / v16_fold(sum));
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        v16_store_n(x + i, v16_mul(v16_load_n(x + i, c), inv), c);
    }
}

/* ---- element by element ---------------------------------------------------------------------- */

static void kda_decay(float *alpha, const float *z, const float *bias, float a, float lower,
                      size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        const v16 g = v16_add(v16_load_n(z + i, c), v16_load_n(bias + i, c));
        const v16 l = v16_logistic(v16_mul(v16_set1(a), g));
        v16_store_n(alpha + i, v16_exp(v16_mul(v16_set1(lower), l)), c);
    }
}

static void situ_glu(float *y, const float *gate, const float *up, size_t n, float b1, float b2)
{
    const v16 cap1 = v16_set1(b1), cap2 = v16_set1(b2);
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        const v16 g = v16_load_n(gate + i, c), u = v16_load_n(up + i, c);
        const v16 a = v16_mul(cap1, v16_tanh(v16_div(g, cap1)));
        const v16 b = v16_mul(cap2, v16_tanh(v16_div(u, cap2)));
        v16_store_n(y + i, v16_mul(v16_mul(a, v16_logistic(g)), b), c);
    }
}

static void logistic(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        v16_store_n(y + i, v16_logistic(v16_load_n(x + i, c)), c);
    }
}

static void mul_logistic(float *y, const float *gate, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        v16_store_n(y + i, v16_mul(v16_load_n(y + i, c), v16_logistic(v16_load_n(gate + i, c))), c);
    }
}

static void exp_all(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        v16_store_n(y + i, v16_exp(v16_load_n(x + i, c)), c);
    }
}

static void tanh_all(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        v16_store_n(y + i, v16_tanh(v16_load_n(x + i, c)), c);
    }
}

static void add(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        v16_store_n(y + i, v16_add(v16_load_n(y + i, c), v16_load_n(x + i, c)), c);
    }
}

static void widen_bf16(float *y, const void *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        v16_store_n(y + i, row_load_n(BF16, x, i, c), c);
    }
}

/* The largest value first, then its first place; only NaN leaves both passes empty-handed. */
static size_t argmax(const float *x, size_t n)
{
    v16 m = v16_set1(-INFINITY);
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        m = v16_first(c, v16_max(v16_load_n(x + i, c), m), m);
    }
    const v16 top = v16_set1(largest(m));
    for (size_t i = 0; i < n; i += 16) {
        const size_t c = k3_least(16, n - i);
        const unsigned hits = m16_bits(v16_eq(v16_load_n(x + i, c), top)) & ((1u << c) - 1u);
        if (hits)
            return i + (size_t)__builtin_ctz(hits);
    }
    return 0;
}

#endif
