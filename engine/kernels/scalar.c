/* scalar.c - the reference: every kernel in plain C, in exactly the order of the contract.
 *
 * The other sets are compared with this one byte for byte, so it is written to be read, not to be
 * fast. Every fused step is an fmaf; everything else is rounded operation by operation. */
#include <stdbool.h>
#include <string.h>

#include "mathfn.h"
#include "sets.h"

enum { LANES = 16 };

/* ---- exact weights ----------------------------------------------------------------------- */

static float f32_at(const void *w, size_t i)
{
    float x;
    memcpy(&x, (const uint8_t *)w + i * sizeof x, sizeof x);
    return x;
}

static float bf16_at(const void *w, size_t i)
{
    uint16_t half;
    memcpy(&half, (const uint8_t *)w + i * sizeof half, sizeof half);
    return k3_float((uint32_t)half << 16);
}

/* 2^(s - 127). The loader refuses s = 255; here it would be an infinity. */
static float e8m0(uint8_t s)
{
    return s == 0 ? 0x1p-127f : k3_float((uint32_t)s << 23);
}

static float mxfp4_at(const uint8_t *packed, const uint8_t *scale, size_t i)
{
    static const float value[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                    -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
    const unsigned nibble = (i & 1 ? packed[i / 2] >> 4 : packed[i / 2]) & 15u;
    return value[nibble] * e8m0(scale[i / 32]);
}

/* ---- sums -------------------------------------------------------------------------------- */

static float fold(float lane[LANES])
{
    for (size_t step = LANES / 2; step > 0; step /= 2)
        for (size_t j = 0; j < step; j++)
            lane[j] += lane[j + step];
    return lane[0];
}

static float dot(const float *a, const float *b, size_t n)
{
    float lane[LANES] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i % LANES] = fmaf(a[i], b[i], lane[i % LANES]);
    return fold(lane);
}

static float sum_squares(const float *x, size_t n)
{
    return dot(x, x, n);
}

/* ---- products ---------------------------------------------------------------------------- */

static void gemm_f32(float *y, size_t ldy, const void *w, size_t rows, size_t cols, const float *x,
                     size_t ldx, size_t tokens)
{
    for (size_t t = 0; t < tokens; t++)
        for (size_t r = 0; r < rows; r++) {
            float lane[LANES] = {0};
            for (size_t i = 0; i < cols; i++)
                lane[i % LANES] = fmaf(f32_at(w, r * cols + i), x[t * ldx + i], lane[i % LANES]);
            y[t * ldy + r] = fold(lane);
        }
}

static void gemm_bf16(float *y, size_t ldy, const void *w, size_t rows, size_t cols,
                      const float *x, size_t ldx, size_t tokens)
{
    for (size_t t = 0; t < tokens; t++)
        for (size_t r = 0; r < rows; r++) {
            float lane[LANES] = {0};
            for (size_t i = 0; i < cols; i++)
                lane[i % LANES] = fmaf(bf16_at(w, r * cols + i), x[t * ldx + i], lane[i % LANES]);
            y[t * ldy + r] = fold(lane);
        }
}

static void gemm_mxfp4(float *y, size_t ldy, const uint8_t *packed, const uint8_t *scale,
                       size_t rows, size_t cols, const float *x, size_t ldx, size_t tokens)
{
    for (size_t t = 0; t < tokens; t++)
        for (size_t r = 0; r < rows; r++) {
            const uint8_t *p = packed + r * (cols / 2);
            const uint8_t *s = scale + r * (cols / 32);
            float lane[LANES] = {0};
            for (size_t i = 0; i < cols; i++)
                lane[i % LANES] = fmaf(mxfp4_at(p, s, i), x[t * ldx + i], lane[i % LANES]);
            y[t * ldy + r] = fold(lane);
        }
}

static void gemm_t_f32(float *y, size_t ldy, const void *w, size_t ldw, size_t rows, size_t cols,
                       const float *x, size_t ldx, size_t tokens)
{
    for (size_t t = 0; t < tokens; t++)
        for (size_t c = 0; c < cols; c++) {
            float sum = 0.0f;
            for (size_t r = 0; r < rows; r++)
                sum = fmaf(f32_at(w, r * ldw + c), x[t * ldx + r], sum);
            y[t * ldy + c] = sum;
        }
}

static void gemm_t_bf16(float *y, size_t ldy, const void *w, size_t ldw, size_t rows, size_t cols,
                        const float *x, size_t ldx, size_t tokens)
{
    for (size_t t = 0; t < tokens; t++)
        for (size_t c = 0; c < cols; c++) {
            float sum = 0.0f;
            for (size_t r = 0; r < rows; r++)
                sum = fmaf(bf16_at(w, r * ldw + c), x[t * ldx + r], sum);
            y[t * ldy + c] = sum;
        }
}

static void weighted_sum(float *y, const float *p, const float *const *v, size_t n, size_t width)
{
    for (size_t c = 0; c < width; c++) {
        float sum = 0.0f;
        for (size_t i = 0; i < n; i++)
            sum = fmaf(p[i], v[i][c], sum);
        y[c] = sum;
    }
}

/* ---- norms ------------------------------------------------------------------------------- */

static void rms_norm(float *y, const float *x, const float *w, size_t n, float eps)
{
    const float inv = 1.0f / sqrtf(sum_squares(x, n) / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        y[i] = w[i] * (x[i] * inv);
}

static void l2_norm(float *x, size_t n, float eps)
{
    const float inv = 1.0f / sqrtf(sum_squares(x, n) + eps);
    for (size_t i = 0; i < n; i++)
        x[i] *= inv;
}

/* ---- convolution and delta attention ------------------------------------------------------- */

static void conv_silu(float *y, float *history, const float *x, const float *w, size_t channels,
                      size_t taps)
{
    for (size_t c = 0; c < channels; c++) {
        const float now = x[c];
        float sum = 0.0f;
        for (size_t k = 0; k + 1 < taps; k++) {
            sum = fmaf(w[k * channels + c], history[k * channels + c], sum);
            history[k * channels + c] = k + 2 < taps ? history[(k + 1) * channels + c] : now;
        }
        sum = fmaf(w[(taps - 1) * channels + c], now, sum);
        y[c] = sum * k3_logistic1(sum);
    }
}

static void kda_decay(float *alpha, const float *z, const float *bias, float a, float lower,
                      size_t n)
{
    for (size_t i = 0; i < n; i++)
        alpha[i] = k3_exp1(lower * k3_logistic1(a * (z[i] + bias[i])));
}

static void kda_step(float *S, float *out, const float *q, const float *k, const float *v,
                     const float *alpha, float beta, float qscale, size_t d)
{
    for (size_t j = 0; j < d; j++) {
        float u = 0.0f, o = 0.0f;
        for (size_t i = 0; i < d; i++) {
            S[i * d + j] *= alpha[i];
            u = fmaf(S[i * d + j], k[i], u);
        }
        const float c = beta * (v[j] - u);
        for (size_t i = 0; i < d; i++) {
            S[i * d + j] = fmaf(k[i], c, S[i * d + j]);
            o = fmaf(S[i * d + j], q[i] * qscale, o);
        }
        out[j] = o;
    }
}

/* ---- element by element ------------------------------------------------------------------ */

/* s = x * scale and d = s - m are rounded apart; m ignores NaN; the sum adds exp(d) to lane i % 16. */
static void softmax(float *x, size_t n, float scale)
{
    float m = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        x[i] *= scale;
        m = x[i] > m ? x[i] : m;
    }
    float lane[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        x[i] = k3_exp1(x[i] - m);
        lane[i % LANES] += x[i];
    }
    const float inv = 1.0f / fold(lane);
    for (size_t i = 0; i < n; i++)
        x[i] *= inv;
}

static void situ_glu(float *y, const float *gate, const float *up, size_t n, float b1, float b2)
{
    for (size_t i = 0; i < n; i++) {
        const float g = gate[i], u = up[i];
        const float a = b1 * k3_tanh1(g / b1);
        y[i] = (a * k3_logistic1(g)) * (b2 * k3_tanh1(u / b2));
    }
}

static void logistic(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = k3_logistic1(x[i]);
}

static void mul_logistic(float *y, const float *gate, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= k3_logistic1(gate[i]);
}

static void exp_all(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = k3_exp1(x[i]);
}

static void tanh_all(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = k3_tanh1(x[i]);
}

static void add(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void widen_bf16(float *y, const void *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = bf16_at(x, i);
}

static size_t argmax(const float *x, size_t n)
{
    size_t best = 0;
    bool found = false;
    for (size_t i = 0; i < n; i++)
        if (x[i] == x[i] && (!found || x[i] > x[best])) {
            best = i;
            found = true;
        }
    return best;
}

const struct k3_kernels k3_kernels_scalar = {
    .name = "scalar",
    .gemm_f32 = gemm_f32,
    .gemm_bf16 = gemm_bf16,
    .gemm_mxfp4 = gemm_mxfp4,
    .gemm_t_f32 = gemm_t_f32,
    .gemm_t_bf16 = gemm_t_bf16,
    .weighted_sum = weighted_sum,
    .dot = dot,
    .sum_squares = sum_squares,
    .rms_norm = rms_norm,
    .l2_norm = l2_norm,
    .conv_silu = conv_silu,
    .kda_decay = kda_decay,
    .kda_step = kda_step,
    .softmax = softmax,
    .situ_glu = situ_glu,
    .logistic = logistic,
    .mul_logistic = mul_logistic,
    .exp = exp_all,
    .tanh = tanh_all,
    .add = add,
    .widen_bf16 = widen_bf16,
    .argmax = argmax,
};
