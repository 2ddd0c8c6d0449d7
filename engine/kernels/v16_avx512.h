/* v16_avx512.h - sixteen fp32 lanes in one AVX-512 register; F, BW, DQ and VL are assumed.
 *
 * v16_avx2.h and v16_neon.h have the same names with the same meaning; what they mean is written
 * here. Lane j of a v16 is element j in memory. Every operation is rounded once, to nearest. */
#ifndef K3_V16_H
#define K3_V16_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "mathfn.h"

/* Shapes of the register tiles that fit this set's registers; see gemm.h and columns.h. */
enum {
    DIRECT_ROWS = 8, /* rows at once, 1 token */
    DIRECT_MXFP4 = 16, /* most tokens that MXFP4 takes directly, */
    DIRECT_GROUP = 4,  /* so many at once */
    DIRECT_FEW = 4,    /* with so many rows */
    TILE_R = 4,      /* rows x tokens of the widened tile */
    TILE_T = 6,
    COLS_V = 4,      /* vectors of columns x tokens where the vector runs over outputs */
    COLS_T = 6,
    SUM_V = 8,       /* vectors of columns of a weighted sum */
    KDA_V = 4,       /* vectors of value columns of a KDA step */
};

typedef __m512 v16;
typedef __mmask16 m16; /* one truth per lane */

static inline v16 v16_zero(void)
{
    return _mm512_setzero_ps();
}

static inline v16 v16_set1(float x)
{
    return _mm512_set1_ps(x);
}

/* p may be unaligned to anything in all loads. */
static inline v16 v16_load(const void *p)
{
    return _mm512_loadu_ps(p);
}

static inline void v16_store(float *p, v16 a)
{
    _mm512_storeu_ps(p, a);
}

/* n <= 16 elements; the lanes beyond are zero, and memory beyond is not touched. */
static inline m16 m16_first(size_t n)
{
    return (m16)((1u << n) - 1u);
}

static inline v16 v16_load_n(const void *p, size_t n)
{
    return _mm512_maskz_loadu_ps(m16_first(n), p);
}

static inline void v16_store_n(float *p, v16 a, size_t n)
{
    _mm512_mask_storeu_ps(p, m16_first(n), a);
}

static inline v16 v16_widen(__m256i half)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

static inline v16 v16_load_bf16(const void *p)
{
    return v16_widen(_mm256_loadu_si256((const __m256i *)p));
}

static inline v16 v16_load_bf16_n(const void *p, size_t n)
{
    return v16_widen(_mm256_maskz_loadu_epi16(m16_first(n), p));
}

/* The first n lanes of a, the others of b. */
static inline v16 v16_first(size_t n, v16 a, v16 b)
{
    return _mm512_mask_mov_ps(b, m16_first(n), a);
}

static inline v16 v16_add(v16 a, v16 b)
{
    return _mm512_add_ps(a, b);
}

static inline v16 v16_sub(v16 a, v16 b)
{
    return _mm512_sub_ps(a, b);
}

static inline v16 v16_mul(v16 a, v16 b)
{
    return _mm512_mul_ps(a, b);
}

static inline v16 v16_div(v16 a, v16 b)
{
    return _mm512_div_ps(a, b);
}

/* a * b + c and c - a * b, fused */
static inline v16 v16_fma(v16 a, v16 b, v16 c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline v16 v16_fnma(v16 a, v16 b, v16 c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

/* a > b ? a : b and a < b ? a : b; b where either is NaN */
static inline v16 v16_max(v16 a, v16 b)
{
    return _mm512_max_ps(a, b);
}

static inline v16 v16_min(v16 a, v16 b)
{
    return _mm512_min_ps(a, b);
}

static inline m16 v16_lt(v16 a, v16 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

static inline m16 v16_eq(v16 a, v16 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

static inline m16 v16_is_nan(v16 a)
{
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}

static inline v16 v16_select(m16 m, v16 yes, v16 no)
{
    return _mm512_mask_mov_ps(no, m, yes);
}

/* Bit j = lane j. */
static inline unsigned m16_bits(m16 m)
{
    return m;
}

static inline v16 v16_abs(v16 a)
{
    return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a);
}

/* |a| with the sign of s */
static inline v16 v16_copysign(v16 a, v16 s)
{
    return _mm512_or_ps(v16_abs(a), _mm512_and_ps(_mm512_set1_ps(-0.0f), s));
}

/* t = K3_ROUND + n: 2^(n >> 1) into *half and 2^(n - (n >> 1)) into *rest, as in k3_exp1. */
static inline void v16_pow2(v16 t, v16 *half, v16 *rest)
{
    const __m512i bias = _mm512_set1_epi32(127);
    const __m512i n = _mm512_sub_epi32(_mm512_castps_si512(t), _mm512_set1_epi32(K3_ROUND_BITS));
    const __m512i h = _mm512_srai_epi32(n, 1);
    const __m512i r = _mm512_sub_epi32(n, h);
    *half = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(h, bias), 23));
    *rest = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(r, bias), 23));
}

/* ---- the fixed tree: lanes j += j+8, +4, +2, +1 --------------------------------------------- */

static inline __m128 fold_to4(v16 a)
{
    const __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    return _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
}

static inline float v16_fold(v16 a)
{
    const __m128 c = fold_to4(a);
    const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps(d, d, 1)));
}

/* Four sums at once into y[0..3]. */
static inline void v16_fold4(float *y, v16 a, v16 b, v16 c, v16 d)
{
    const __m128 e = fold_to4(a), f = fold_to4(b), g = fold_to4(c), h = fold_to4(d);
    const __m128 ef = _mm_add_ps(_mm_movelh_ps(e, f), _mm_movehl_ps(f, e));
    const __m128 gh = _mm_add_ps(_mm_movelh_ps(g, h), _mm_movehl_ps(h, g));
    _mm_storeu_ps(y, _mm_add_ps(_mm_shuffle_ps(ef, gh, 0x88), _mm_shuffle_ps(ef, gh, 0xdd)));
}

/* ---- MXFP4 ---------------------------------------------------------------------------------- */

/* The sixteen weights of one scale: value x 2^(s - 127), each exact. */
typedef v16 mx_table;

static inline mx_table mx_scaled(float scale)
{
    const v16 value = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f,
                                     -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
    return _mm512_mul_ps(value, _mm512_set1_ps(scale));
}

/* The scales of sixteen groups as floats; 2^-127 is the denormal 0x00400000. */
static inline void mx_scales16(float *out, const uint8_t *s)
{
    const __m512i bits =
        _mm512_slli_epi32(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)s)), 23);
    _mm512_storeu_si512(out, _mm512_max_epi32(bits, _mm512_set1_epi32(0x00400000)));
}

/* Sixteen weights from 8 packed bytes: lane j wants nibble j. Both 32-bit halves are spread over
 * eight lanes each and shifted into place; the permutation reads the lowest four bits alone. */
static inline v16 mx_eight(mx_table table, const uint8_t *p)
{
    uint32_t low, high;
    memcpy(&low, p, 4);
    memcpy(&high, p + 4, 4);
    const __m512i shift = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    const __m512i both =
        _mm512_mask_set1_epi32(_mm512_set1_epi32((int)low), 0xff00, (int)high);
    return _mm512_permutexvar_ps(_mm512_srlv_epi32(both, shift), table);
}

/* Sixteen weights in mixed order: lane 2i is nibble i, lane 2i + 1 is nibble i + 8. That saves a
 * step per sixteen weights, so products directly from packed bytes mix x once for many rows and
 * unmix the sums at the end. */
static inline v16 mx_eight_mixed(mx_table table, const uint8_t *p)
{
    int64_t packed;
    memcpy(&packed, p, sizeof packed);
    const __m512i shift = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
    return _mm512_permutexvar_ps(_mm512_srlv_epi64(_mm512_set1_epi64(packed), shift), table);
}

static inline void mx_group_mixed(mx_table table, const uint8_t *p, v16 *a, v16 *b)
{
    *a = mx_eight_mixed(table, p);
    *b = mx_eight_mixed(table, p + 8);
}

static inline v16 mx_mix(v16 x)
{
    return _mm512_permutexvar_ps(
        _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15), x);
}

static inline v16 mx_unmix(v16 x)
{
    return _mm512_permutexvar_ps(
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15), x);
}

/* The 32 weights of one group from its 16 packed bytes, in order. */
static inline void mx_group(mx_table table, const uint8_t *p, v16 *a, v16 *b)
{
    *a = mx_eight(table, p);
    *b = mx_eight(table, p + 8);
}

#endif
