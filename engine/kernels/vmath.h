/* vmath.h - mathfn.h on sixteen lanes: the same operations in the same order. */
#ifndef K3_VMATH_H
#define K3_VMATH_H

static inline v16 v16_keep_nan(v16 x, v16 from)
{
    return v16_select(v16_is_nan(from), v16_set1(k3_float(0x7fc00000u)), x);
}

static inline v16 v16_exp(v16 x)
{
    const v16 one = v16_set1(1.0f);
    const v16 c = v16_max(v16_min(x, v16_set1(K3_EXP_MAX)), v16_set1(K3_EXP_MIN));
    const v16 t = v16_fma(c, v16_set1(K3_LOG2E), v16_set1(K3_ROUND));
    const v16 n = v16_sub(t, v16_set1(K3_ROUND));
    const v16 r = v16_fnma(n, v16_set1(K3_LN2_HI), c);
    const v16 low = v16_mul(n, v16_set1(-K3_LN2_LO));
    const v16 z = v16_add(r, low);
    v16 q = v16_fma(v16_set1(K3_EXP_C5), z, v16_set1(K3_EXP_C4));
    q = v16_fma(q, z, v16_set1(K3_EXP_C3));
    q = v16_fma(q, z, v16_set1(K3_EXP_C2));
    q = v16_fma(q, z, v16_set1(K3_EXP_C1));
    q = v16_fma(q, z, v16_set1(K3_EXP_C0));
    const v16 s = v16_add(one, r);
    const v16 lost = v16_sub(r, v16_sub(s, one));
    const v16 p = v16_add(s, v16_add(lost, v16_fma(v16_mul(z, z), q, low)));
    v16 half, rest;
    v16_pow2(t, &half, &rest);
    return v16_keep_nan(v16_mul(v16_mul(p, half), rest), x);
}

static inline v16 v16_logistic(v16 x)
{
    const v16 one = v16_set1(1.0f);
    const v16 e = v16_exp(v16_copysign(x, v16_set1(-1.0f)));
    const v16 num = v16_select(v16_lt(x, v16_zero()), e, one);
    const v16 s = v16_add(one, e);
    const v16 lo = v16_sub(e, v16_sub(s, one));
    const v16 inv = v16_div(one, s);
    const v16 q = v16_mul(num, inv);
    v16 rem = v16_fnma(q, s, num);
    rem = v16_fnma(q, lo, rem);
    return v16_keep_nan(v16_fma(rem, inv, q), x);
}

static inline v16 v16_tanh(v16 x)
{
    const v16 a = v16_abs(x);
    const v16 z = v16_mul(a, a);
    v16 p = v16_fma(v16_set1(K3_TANH_C5), z, v16_set1(K3_TANH_C4));
    p = v16_fma(p, z, v16_set1(K3_TANH_C3));
    p = v16_fma(p, z, v16_set1(K3_TANH_C2));
    p = v16_fma(p, z, v16_set1(K3_TANH_C1));
    p = v16_fma(p, z, v16_set1(K3_TANH_C0));
    const v16 small = v16_fma(v16_mul(z, a), p, a);
    const v16 two = v16_set1(-2.0f);
    const v16 large = v16_fma(two, v16_logistic(v16_mul(two, a)), v16_set1(1.0f));
    const v16 y = v16_select(v16_lt(a, v16_set1(K3_TANH_SPLIT)), small, large);
    return v16_keep_nan(v16_copysign(y, x), x);
}

#endif
