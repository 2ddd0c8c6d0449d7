/* kernels.h - the arithmetic, one table per instruction set, all equal bit for bit.
 *
 * The numeric contract (docs/numbers-contract.md):
 *  - A dot product of length n is 16 fp32 partial sums. Lane j takes the elements i = j (mod 16) in
 *    rising order with a fused multiply-add, starting from +0; then lanes j += j+8, j += j+4,
 *    j += j+2, j += j+1. Sums of squares and softmax sums follow the same rule (the latter with
 *    plain additions). Everything else is rounded operation by operation, as written below.
 *  - Where the vector runs over the outputs (gemm_t, weighted_sum, conv, KDA), each output has one
 *    accumulator that starts from +0 and takes its terms in rising index order, fused.
 *  - A weight enters as its exact fp32 value.
 *  - No output depends on what is computed beside it: `tokens` and `rows` may be cut at will.
 *  - Where an output is NaN, it is NaN in every set, but sign and payload may differ (exp, tanh and
 *    logistic return 0x7fc00000).
 *
 * Every function runs on the calling thread; callers split outputs over threads. Pointers to
 * weights may be unaligned to anything (a tensor begins where its file says); activations are
 * float-aligned. Counts may be 0. Outputs never overlap inputs unless a comment says so. Nothing is
 * allocated; the products take up to K3_KERNEL_STACK_BYTES of stack. */
#ifndef K3_KERNELS_H
#define K3_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "../k3.h"

/* Partial sums of a panel, a tile of widened weights (gemm.h), and what else is in the frames. */
#define K3_KERNEL_STACK_BYTES (304u << 10)

struct k3_kernels {
    const char *name;

    /* y[t*ldy + r] = dot(row r of w, x + t*ldx) for r < rows, t < tokens. w is [rows, cols]. */
    void (*gemm_f32)(float *y, size_t ldy, const void *w, size_t rows, size_t cols, const float *x,
                     size_t ldx, size_t tokens);
    void (*gemm_bf16)(float *y, size_t ldy, const void *w, size_t rows, size_t cols, const float *x,
                      size_t ldx, size_t tokens);
    /* packed [rows, cols/2], low nibble first; scale [rows, cols/32], E8M0; cols % 32 == 0. */
    void (*gemm_mxfp4)(float *y, size_t ldy, const uint8_t *packed, const uint8_t *scale,
                       size_t rows, size_t cols, const float *x, size_t ldx, size_t tokens);

    /* y[t*ldy + c] = sum over r (rising) of w[r*ldw + c] * x[t*ldx + r]; w is [rows, cols] with
     * row stride ldw in elements. */
    void (*gemm_t_f32)(float *y, size_t ldy, const void *w, size_t ldw, size_t rows, size_t cols,
                       const float *x, size_t ldx, size_t tokens);
    void (*gemm_t_bf16)(float *y, size_t ldy, const void *w, size_t ldw, size_t rows, size_t cols,
                        const float *x, size_t ldx, size_t tokens);

    /* y[c] = sum over i (rising) of p[i] * v[i][c], c < width; n sources. */
    void (*weighted_sum)(float *y, const float *p, const float *const *v, size_t n, size_t width);

    float (*dot)(const float *a, const float *b, size_t n);
    float (*sum_squares)(const float *x, size_t n);

    /* y[i] = w[i] * (x[i] * inv), inv = 1 / sqrt(sum_squares/n + eps). y may be x. */
    void (*rms_norm)(float *y, const float *x, const float *w, size_t n, float eps);
    /* x[i] *= 1 / sqrt(sum_squares + eps) */
    void (*l2_norm)(float *x, size_t n, float eps);

    /* One token of a causal depthwise convolution followed by SiLU. w is [taps][channels] (tap
     * taps-1 takes the current input), history is [taps-1][channels], oldest first, and is shifted
     * by one: y = silu(sum over taps, rising). silu(a) = a * logistic(a). y may be x. */
    void (*conv_silu)(float *y, float *history, const float *x, const float *w, size_t channels,
                      size_t taps);

    /* alpha[i] = exp(lower * logistic(a * (z[i] + bias[i]))), one head, a = exp(A_log). */
    void (*kda_decay)(float *alpha, const float *z, const float *bias, float a, float lower,
                      size_t n);
    /* One head, one token. S [d][d] (key rows, value columns) is updated in place:
     *   S[i][j] *= alpha[i];  u[j] = sum_i S[i][j]*k[i];  c[j] = beta*(v[j]-u[j]);
     *   S[i][j] = fma(k[i], c[j], S[i][j]);  out[j] = sum_i S[i][j]*(q[i]*qscale). d <= 1024. */
    void (*kda_step)(float *S, float *out, const float *q, const float *k, const float *v,
                     const float *alpha, float beta, float qscale, size_t d);

    /* In place: x[i] = exp(x[i]*scale - m) * (1/sum), m = max of x[i]*scale; sum by the lane rule.
     * n >= 1. */
    void (*softmax)(float *x, size_t n, float scale);

    /* y[i] = (b1*tanh(g[i]/b1)) * logistic(g[i]) * (b2*tanh(u[i]/b2)), products left to right.
     * y may be gate or up. */
    void (*situ_glu)(float *y, const float *gate, const float *up, size_t n, float b1, float b2);

    void (*logistic)(float *y, const float *x, size_t n);       /* y may be x */
    void (*mul_logistic)(float *y, const float *gate, size_t n); /* y[i] *= logistic(gate[i]) */
    void (*exp)(float *y, const float *x, size_t n);
    void (*tanh)(float *y, const float *x, size_t n);
    void (*add)(float *y, const float *x, size_t n);             /* y[i] += x[i] */
    void (*widen_bf16)(float *y, const void *x, size_t n);

    size_t (*argmax)(const float *x, size_t n); /* the first of the largest; NaN never wins; n>=1 */
};

/* The table for a set, or NULL when this CPU or build lacks it. AUTO = the best there is. */
const struct k3_kernels *k3_kernels_get(enum k3_isa isa);

#endif
