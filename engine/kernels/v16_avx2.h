/* v16_avx2.h - sixteen fp32 lanes in two AVX registers; AVX2 and FMA are assumed.
 * The names and their meaning are those of v16_avx512.h. */
#ifndef K3_V16_H
#define K3_V16_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "mathfn.h"

/* Sixteen registers are eight v16. */
enum {
    DIRECT_ROWS = 4,
    DIRECT_MXFP4 = 8,
    DIRECT_GROUP = 2,
    DIRECT_FEW = 2,
    TILE_R = 2,
    TILE_T = 3,
    COLS_V = 2,
    COLS_T = 2,
    SUM_V = 4,
    KDA_V = 2,
};

typedef struct {
    __m256 lo, hi;
} v16;
typedef struct {
    __m256 lo, hi; /* all bits of a lane or none */
} m16;

static inline v16 v16_zero(void)
{
    return (v16){_mm256_setzero_ps(), _mm256_setzero_ps()};
}

static inline v16 v16_set1(float x)
{
    return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

static inline v16 v16_load(const void *p)
{
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps((const float *)((const uint8_t *)p + 32))};
}

static inline void v16_store(float *p, v16 a)
{
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}

static inline v16 v16_load_n(const void *p, size_t n)
{
    if (n == 16)
        return v16_load(p);
    float lane[16] = {0};
    memcpy(lane, p, n * sizeof *lane);
    return v16_load(lane);
}

static inline void v16_store_n(float *p, v16 a, size_t n)
{
    if (n == 16) {
        v16_store(p, a);
        return;
    }
    float lane[16];
    v16_store(lane, a);
    memcpy(p, lane, n * sizeof *lane);
}

static inline __m256 widen8(__m128i half)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

static inline v16 v16_load_bf16(const void *p)
{
    const __m128i *half = p;
    return (v16){widen8(_mm_loadu_si128(half)), widen8(_mm_loadu_si128(half + 1))};
}

static inline v16 v16_load_bf16_n(const void *p, size_t n)
{
    if (n == 16)
        return v16_load_bf16(p);
    uint16_t lane[16] = {0};
    memcpy(lane, p, n * sizeof *lane);
    return v16_load_bf16(lane);
}

static inline v16 v16_select(m16 m, v16 yes, v16 no)
{
    return (v16){_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}

static inline v16 v16_first(size_t n, v16 a, v16 b)
{
    const __m256i count = _mm256_set1_epi32((int)n);
    const __m256i low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i high = _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15);
    const m16 m = {_mm256_castsi256_ps(_mm256_cmpgt_epi32(count, low)),
                   _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, high))};
    return v16_select(m, a, b);
}

static inline v16 v16_add(v16 a, v16 b)
{
    return (v16){_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}

static inline v16 v16_sub(v16 a, v16 b)
{
    return (v16){_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}

static inline v16 v16_mul(v16 a, v16 b)
{
    return (v16){_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}

static inline v16 v16_div(v16 a, v16 b)
{
    return (v16){_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}

static inline v16 v16_fma(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}

static inline v16 v16_fnma(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}

static inline v16 v16_max(v16 a, v16 b)
{
    return (v16){_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}

static inline v16 v16_min(v16 a, v16 b)
{
    return (v16){_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}

static inline m16 v16_lt(v16 a, v16 b)
{
    return (m16){_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}

static inline m16 v16_eq(v16 a, v16 b)
{
    return (m16){_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)};
}

static inline m16 v16_is_nan(v16 a)
{
    return (m16){_mm256_cmp_ps(a.lo, a.lo, _CMP_UNORD_Q), _mm256_cmp_ps(a.hi, a.hi, _CMP_UNORD_Q)};
}

static inline unsigned m16_bits(m16 m)
{
    return (unsigned)_mm256_movemask_ps(m.lo) | (unsigned)_mm256_movemask_ps(m.hi) << 8;
}

static inline v16 v16_abs(v16 a)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}

static inline v16 v16_copysign(v16 a, v16 s)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    const v16 b = v16_abs(a);
    return (v16){_mm256_or_ps(b.lo, _mm256_and_ps(sign, s.lo)),
                 _mm256_or_ps(b.hi, _mm256_and_ps(sign, s.hi))};
}

static inline void pow2_8(__m256 t, __m256 *half, __m256 *rest)
{
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i n = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_set1_epi32(K3_ROUND_BITS));
    const __m256i h = _mm256_srai_epi32(n, 1);
    const __m256i r = _mm256_sub_epi32(n, h);
    *half = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(h, bias), 23));
    *rest = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(r, bias), 23));
}

static inline void v16_pow2(v16 t, v16 *half, v16 *rest)
{
    pow2_8(t.lo, &half->lo, &rest->lo);
    pow2_8(t.hi, &half->hi, &rest->hi);
}

/* ---- the fixed tree: lanes j += j+8, +4, +2, +1 --------------------------------------------- */

static inline __m128 fold_to4(v16 a)
{
    const __m256 b = _mm256_add_ps(a.lo, a.hi);
    return _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
}

static inline float v16_fold(v16 a)
{
    const __m128 c = fold_to4(a);
    const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps(d, d, 1)));
}

static inline void v16_fold4(float *y, v16 a, v16 b, v16 c, v16 d)
{
    const __m128 e = fold_to4(a), f = fold_to4(b), g = fold_to4(c), h = fold_to4(d);
    const __m128 ef = _mm_add_ps(_mm_movelh_ps(e, f), _mm_movehl_ps(f, e));
    const __m128 gh = _mm_add_ps(_mm_movelh_ps(g, h), _mm_movehl_ps(h, g));
    _mm_storeu_ps(y, _mm_add_ps(_mm_shuffle_ps(ef, gh, 0x88), _mm_shuffle_ps(ef, gh, 0xdd)));
}

/* ---- MXFP4 ---------------------------------------------------------------------------------- */

/* The eight magnitudes of one scale; the sign is the nibble's highest bit. */
typedef __m256 mx_table;

static inline mx_table mx_scaled(float scale)
{
    const __m256 value = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
    return _mm256_mul_ps(value, _mm256_set1_ps(scale));
}

static inline void mx_scales8(float *out, const uint8_t *s)
{
    const __m256i bits =
        _mm256_slli_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)s)), 23);
    _mm256_storeu_si256((__m256i *)out, _mm256_max_epi32(bits, _mm256_set1_epi32(0x00400000)));
}

static inline void mx_scales16(float *out, const uint8_t *s)
{
    mx_scales8(out, s);
    mx_scales8(out + 8, s + 8);
}

/* Eight weights from 4 packed bytes: lane j wants nibble j. */
static inline __m256 mx_four(mx_table table, const uint8_t *p)
{
    int32_t packed;
    memcpy(&packed, p, sizeof packed);
    const __m256i shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    const __m256i nibble = _mm256_srlv_epi32(_mm256_set1_epi32(packed), shift);
    const __m256 sign = _mm256_and_ps(_mm256_castsi256_ps(_mm256_slli_epi32(nibble, 28)),
                                      _mm256_set1_ps(-0.0f));
    return _mm256_xor_ps(_mm256_permutevar8x32_ps(table, nibble), sign);
}

static inline void mx_group(mx_table table, const uint8_t *p, v16 *a, v16 *b)
{
    *a = (v16){mx_four(table, p), mx_four(table, p + 4)};
    *b = (v16){mx_four(table, p + 8), mx_four(table, p + 12)};
}

/* Nothing is to be gained by mixing. */
static inline void mx_group_mixed(mx_table table, const uint8_t *p, v16 *a, v16 *b)
{
    mx_group(table, p, a, b);
}

static inline v16 mx_mix(v16 x)
{
    return x;
}

static inline v16 mx_unmix(v16 x)
{
    return x;
}

#endif
