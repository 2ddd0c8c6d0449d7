/* mathfn.h - the one definition of exp, tanh and the logistic function.
 *
 * libm differs between systems, so these are the project's own: fp32 throughout, fusing written
 * out, choices by compare and select and not by branches. The functions below are the scalar form;
 * vmath.h has the same operations in the same order on 16 lanes and must be changed together with
 * it. Errors against the correctly rounded result, over every fp32 input (tests/test_kernels_math.c
 * says how it is measured): exp below 0.76 ulp, logistic below 1.6, tanh below 1.08.
 *
 * NaN in, NaN out. exp: no over- or underflow but the result's own, denormal results included. */
#ifndef K3_MATHFN_H
#define K3_MATHFN_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Above MAX the result is +infinity, below MIN it is +0; clamping keeps the exponent in range. */
#define K3_EXP_MAX 89.0f
#define K3_EXP_MIN (-104.0f)
#define K3_LOG2E 0x1.715476p+0f
/* Adding 1.5 * 2^23 leaves the nearest integer in the low bits (ties to even). */
#define K3_ROUND 0x1.8p+23f
#define K3_ROUND_BITS 0x4b400000u
/* ln 2 = HI + LO; a whole n times HI is exact inside the fused step. */
#define K3_LN2_HI 0x1.62e430p-1f
#define K3_LN2_LO (-0x1.05c610p-29f)
/* (exp(r) - 1 - r) / r^2 for |r| <= ln2 / 2; relative error of exp 2^-34. */
#define K3_EXP_C0 0x1.000000p-1f
#define K3_EXP_C1 0x1.555554p-3f
#define K3_EXP_C2 0x1.55548ep-5f
#define K3_EXP_C3 0x1.111272p-7f
#define K3_EXP_C4 0x1.6d8db4p-10f
#define K3_EXP_C5 0x1.9f0820p-13f
/* (tanh(x) - x) / x^3 in powers of x^2 for |x| < SPLIT; relative error of tanh 2^-32. */
#define K3_TANH_SPLIT 0.625f
#define K3_TANH_C0 (-0x1.555554p-2f)
#define K3_TANH_C1 0x1.111064p-3f
#define K3_TANH_C2 (-0x1.b9ee0cp-5f)
#define K3_TANH_C3 0x1.638580p-6f
#define K3_TANH_C4 (-0x1.0bd718p-7f)
#define K3_TANH_C5 0x1.18710cp-9f

static inline uint32_t k3_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float k3_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* x, or the one quiet NaN that every set returns when `from` is NaN. */
static inline float k3_keep_nan(float x, float from)
{
    return from != from ? k3_float(0x7fc00000u) : x;
}

/* exp: n = round(x * log2 e); r + low = x - n ln 2, where r is exact; then 1 + r + (low + z^2 q(z)),
 * z = r + low, with the rounding error of 1 + r carried along; times 2^(n/2) times 2^(n - n/2):
 * only the second product can round, so denormal results are right. */
static inline float k3_exp1(float x)
{
    float c = x > K3_EXP_MAX ? K3_EXP_MAX : x;
    c = c < K3_EXP_MIN ? K3_EXP_MIN : c;
    const float t = fmaf(c, K3_LOG2E, K3_ROUND);
    const float n = t - K3_ROUND;
    const float r = fmaf(n, -K3_LN2_HI, c);
    const float low = n * -K3_LN2_LO;
    const float z = r + low;
    float q = fmaf(K3_EXP_C5, z, K3_EXP_C4);
    q = fmaf(q, z, K3_EXP_C3);
    q = fmaf(q, z, K3_EXP_C2);
    q = fmaf(q, z, K3_EXP_C1);
    q = fmaf(q, z, K3_EXP_C0);
    const float s = 1.0f + r;
    const float p = s + ((r - (s - 1.0f)) + fmaf(z * z, q, low));
    const int32_t whole = (int32_t)(k3_bits(t) - K3_ROUND_BITS);
    const int32_t half = whole >> 1;
    const uint32_t rest = (uint32_t)whole - (uint32_t)half;
    const float y = (p * k3_float(((uint32_t)half + 127u) << 23)) * k3_float((rest + 127u) << 23);
    return k3_keep_nan(y, x);
}

/* logistic(x) = (x < 0 ? e : 1) / (1 + e) with e = exp(-|x|). The rounding error of 1 + e is kept
 * (s + lo is exact) and one Newton step on the quotient takes it in. */
static inline float k3_logistic1(float x)
{
    const float e = k3_exp1(-fabsf(x));
    const float num = x < 0.0f ? e : 1.0f;
    const float s = 1.0f + e;
    const float lo = e - (s - 1.0f);
    const float inv = 1.0f / s;
    const float q = num * inv;
    float rem = fmaf(-q, s, num);
    rem = fmaf(-q, lo, rem);
    return k3_keep_nan(fmaf(rem, inv, q), x);
}

/* tanh(x), a = |x|: a + a^3 p(a^2) below SPLIT, 1 - 2 logistic(-2a) from there; the sign is x's. */
static inline float k3_tanh1(float x)
{
    const float a = fabsf(x);
    const float z = a * a;
    float p = fmaf(K3_TANH_C5, z, K3_TANH_C4);
    p = fmaf(p, z, K3_TANH_C3);
    p = fmaf(p, z, K3_TANH_C2);
    p = fmaf(p, z, K3_TANH_C1);
    p = fmaf(p, z, K3_TANH_C0);
    const float small = fmaf(z * a, p, a);
    const float large = fmaf(-2.0f, k3_logistic1(-2.0f * a), 1.0f);
    return k3_keep_nan(copysignf(a < K3_TANH_SPLIT ? small : large, x), x);
}

#endif
