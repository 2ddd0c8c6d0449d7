/* v16_neon.h - sixteen fp32 lanes in four AArch64 NEON registers.
 * The names and their meaning are those of v16_avx512.h. */
#ifndef K3_V16_H
#define K3_V16_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "mathfn.h"

/* Thirty-two registers are eight v16. */
enum {
    DIRECT_ROWS = 4,
    DIRECT_MXFP4 = 4,
    DIRECT_GROUP = 2,
    DIRECT_FEW = 2,
    TILE_R = 2,
    TILE_T = 2,
    COLS_V = 2,
    COLS_T = 2,
    SUM_V = 4,
    KDA_V = 2,
};

typedef struct {
    float32x4_t a, b, c, d; /* lanes 0-3, 4-7, 8-11, 12-15 */
} v16;
typedef struct {
    uint32x4_t a, b, c, d; /* all bits of a lane or none */
} m16;

/* One operation on all four parts. */
#define K3_EACH1(f, x) {f(x.a), f(x.b), f(x.c), f(x.d)}
#define K3_EACH2(f, x, y) {f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d)}
#define K3_EACH3(f, x, y, z) {f(x.a, y.a, z.a), f(x.b, y.b, z.b), f(x.c, y.c, z.c), f(x.d, y.d, z.d)}

static inline v16 v16_set1(float x)
{
    const float32x4_t q = vdupq_n_f32(x);
    return (v16){q, q, q, q};
}

static inline v16 v16_zero(void)
{
    return v16_set1(0.0f);
}

/* By bytes: weights are aligned to nothing. */
static inline v16 v16_load(const void *p)
{
    const uint8_t *at = p;
    return (v16){vreinterpretq_f32_u8(vld1q_u8(at)), vreinterpretq_f32_u8(vld1q_u8(at + 16)),
                 vreinterpretq_f32_u8(vld1q_u8(at + 32)), vreinterpretq_f32_u8(vld1q_u8(at + 48))};
}

static inline void v16_store(float *p, v16 x)
{
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
    vst1q_f32(p + 8, x.c);
    vst1q_f32(p + 12, x.d);
}

static inline v16 v16_load_n(const void *p, size_t n)
{
    if (n == 16)
        return v16_load(p);
    float lane[16] = {0};
    memcpy(lane, p, n * sizeof *lane);
    return v16_load(lane);
}

static inline void v16_store_n(float *p, v16 x, size_t n)
{
    if (n == 16) {
        v16_store(p, x);
        return;
    }
    float lane[16];
    v16_store(lane, x);
    memcpy(p, lane, n * sizeof *lane);
}

static inline float32x4_t widen4(uint16x4_t half)
{
    return vreinterpretq_f32_u32(vshll_n_u16(half, 16));
}

static inline v16 widen16(uint16x8_t low, uint16x8_t high)
{
    return (v16){widen4(vget_low_u16(low)), widen4(vget_high_u16(low)),
                 widen4(vget_low_u16(high)), widen4(vget_high_u16(high))};
}

static inline v16 v16_load_bf16(const void *p)
{
    const uint8_t *at = p;
    return widen16(vreinterpretq_u16_u8(vld1q_u8(at)), vreinterpretq_u16_u8(vld1q_u8(at + 16)));
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
    return (v16)K3_EACH3(vbslq_f32, m, yes, no);
}

static inline v16 v16_first(size_t n, v16 x, v16 y)
{
    static const uint32_t lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const uint32x4_t count = vdupq_n_u32((uint32_t)n);
    const m16 m = {vcltq_u32(vld1q_u32(lane), count), vcltq_u32(vld1q_u32(lane + 4), count),
                   vcltq_u32(vld1q_u32(lane + 8), count), vcltq_u32(vld1q_u32(lane + 12), count)};
    return v16_select(m, x, y);
}

static inline v16 v16_add(v16 x, v16 y)
{
    return (v16)K3_EACH2(vaddq_f32, x, y);
}

static inline v16 v16_sub(v16 x, v16 y)
{
    return (v16)K3_EACH2(vsubq_f32, x, y);
}

static inline v16 v16_mul(v16 x, v16 y)
{
    return (v16)K3_EACH2(vmulq_f32, x, y);
}

static inline v16 v16_div(v16 x, v16 y)
{
    return (v16)K3_EACH2(vdivq_f32, x, y);
}

static inline v16 v16_fma(v16 x, v16 y, v16 z)
{
    return (v16)K3_EACH3(vfmaq_f32, z, x, y);
}

static inline v16 v16_fnma(v16 x, v16 y, v16 z)
{
    return (v16)K3_EACH3(vfmsq_f32, z, x, y);
}

/* vmaxq_f32 and vminq_f32 treat NaN and zeros in another way. */
static inline v16 v16_max(v16 x, v16 y)
{
    const m16 m = K3_EACH2(vcgtq_f32, x, y);
    return v16_select(m, x, y);
}

static inline v16 v16_min(v16 x, v16 y)
{
    const m16 m = K3_EACH2(vcltq_f32, x, y);
    return v16_select(m, x, y);
}

static inline m16 v16_lt(v16 x, v16 y)
{
    return (m16)K3_EACH2(vcltq_f32, x, y);
}

static inline m16 v16_eq(v16 x, v16 y)
{
    return (m16)K3_EACH2(vceqq_f32, x, y);
}

static inline m16 v16_is_nan(v16 x)
{
    const m16 number = K3_EACH2(vceqq_f32, x, x);
    return (m16)K3_EACH1(vmvnq_u32, number);
}

static inline unsigned bits4(uint32x4_t m)
{
    static const uint32_t bit[4] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(m, vld1q_u32(bit)));
}

static inline unsigned m16_bits(m16 m)
{
    return bits4(m.a) | bits4(m.b) << 4 | bits4(m.c) << 8 | bits4(m.d) << 12;
}

static inline v16 v16_abs(v16 x)
{
    return (v16)K3_EACH1(vabsq_f32, x);
}

static inline v16 v16_copysign(v16 x, v16 s)
{
    const uint32x4_t sign = vdupq_n_u32(0x80000000u);
    const m16 m = {sign, sign, sign, sign};
    return v16_select(m, s, x);
}

static inline void pow2_4(float32x4_t t, float32x4_t *half, float32x4_t *rest)
{
    const int32x4_t bias = vdupq_n_s32(127);
    const int32x4_t n = vsubq_s32(vreinterpretq_s32_f32(t), vdupq_n_s32((int32_t)K3_ROUND_BITS));
    const int32x4_t h = vshrq_n_s32(n, 1);
    const int32x4_t r = vsubq_s32(n, h);
    *half = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(h, bias), 23));
    *rest = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(r, bias), 23));
}

static inline void v16_pow2(v16 t, v16 *half, v16 *rest)
{
    pow2_4(t.a, &half->a, &rest->a);
    pow2_4(t.b, &half->b, &rest->b);
    pow2_4(t.c, &half->c, &rest->c);
    pow2_4(t.d, &half->d, &rest->d);
}

/* ---- the fixed tree: lanes j += j+8, +4, +2, +1 --------------------------------------------- */

static inline float32x2_t fold_to2(v16 x)
{
    const float32x4_t q = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    return vadd_f32(vget_low_f32(q), vget_high_f32(q));
}

static inline float v16_fold(v16 x)
{
    const float32x2_t p = fold_to2(x);
    return vget_lane_f32(p, 0) + vget_lane_f32(p, 1);
}

static inline void v16_fold4(float *y, v16 a, v16 b, v16 c, v16 d)
{
    vst1_f32(y, vpadd_f32(fold_to2(a), fold_to2(b)));
    vst1_f32(y + 2, vpadd_f32(fold_to2(c), fold_to2(d)));
}

/* ---- MXFP4 ---------------------------------------------------------------------------------- */

typedef float32x4_t mx_table; /* the scale in every lane */

static inline mx_table mx_scaled(float scale)
{
    return vdupq_n_f32(scale);
}

static inline void mx_scales4(float *out, uint16x4_t s)
{
    const uint32x4_t bits = vshlq_n_u32(vmovl_u16(s), 23);
    vst1q_f32(out, vreinterpretq_f32_u32(vmaxq_u32(bits, vdupq_n_u32(0x00400000u))));
}

static inline void mx_scales16(float *out, const uint8_t *s)
{
    const uint8x16_t all = vld1q_u8(s);
    const uint16x8_t low = vmovl_u8(vget_low_u8(all)), high = vmovl_u8(vget_high_u8(all));
    mx_scales4(out, vget_low_u16(low));
    mx_scales4(out + 4, vget_high_u16(low));
    mx_scales4(out + 8, vget_low_u16(high));
    mx_scales4(out + 12, vget_high_u16(high));
}

/* Sixteen weights from sixteen nibbles: the values are exact in the upper half of an fp32, so two
 * byte tables give it. */
static inline v16 mx_sixteen(mx_table scale, uint8x16_t nibble)
{
    static const uint8_t top[16] = {0x00, 0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40,
                                    0x80, 0xbf, 0xbf, 0xbf, 0xc0, 0xc0, 0xc0, 0xc0};
    static const uint8_t next[16] = {0x00, 0x00, 0x80, 0xc0, 0x00, 0x40, 0x80, 0xc0,
                                     0x00, 0x00, 0x80, 0xc0, 0x00, 0x40, 0x80, 0xc0};
    const uint8x16_t high = vqtbl1q_u8(vld1q_u8(top), nibble);
    const uint8x16_t low = vqtbl1q_u8(vld1q_u8(next), nibble);
    const v16 value = widen16(vreinterpretq_u16_u8(vzip1q_u8(low, high)),
                              vreinterpretq_u16_u8(vzip2q_u8(low, high)));
    const v16 by = {scale, scale, scale, scale};
    return v16_mul(value, by);
}

static inline void mx_group(mx_table scale, const uint8_t *p, v16 *a, v16 *b)
{
    const uint8x16_t packed = vld1q_u8(p);
    const uint8x16_t low = vandq_u8(packed, vdupq_n_u8(15)), high = vshrq_n_u8(packed, 4);
    *a = mx_sixteen(scale, vzip1q_u8(low, high));
    *b = mx_sixteen(scale, vzip2q_u8(low, high));
}

/* Nothing is to be gained by mixing. */
static inline void mx_group_mixed(mx_table scale, const uint8_t *p, v16 *a, v16 *b)
{
    mx_group(scale, p, a, b);
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
