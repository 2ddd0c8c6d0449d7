/* synth_values.c - the numbers in a synthetic checkpoint.
 *
 * Element i of a tensor is a function of (key, i): SplitMix64 used as a counter, so any part can be
 * made alone and in parallel. Deviates are sums of four uniform integers (exact), scaled by one or
 * two single IEEE multiplications: no libm, no accumulated rounding, the same bytes everywhere. */
#include "synth_plan.h"

#include <string.h>

#define GOLDEN 0x9e3779b97f4a7c15ULL

/* SplitMix64's finaliser (Steele, Lea, Flood 2014; constants by Stafford, variant 13). */
uint64_t synth_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/* FNV-1a. */
uint64_t synth_hash(const char *text)
{
    uint64_t h = 0xcbf29ce484222325ULL;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3ULL;
    return h;
}

static uint64_t draw(uint64_t key, uint64_t i)
{
    return synth_mix(key + (i + 1) * GOLDEN);
}

/* Mean 0, deviation 1, at most 3.47 in magnitude. */
static float normal(uint64_t u)
{
    const int32_t sum = (int32_t)(u & 0xffff) + (int32_t)(u >> 16 & 0xffff) +
                        (int32_t)(u >> 32 & 0xffff) + (int32_t)(u >> 48) - 2 * 65535;
    return (float)sum * (1.0f / 37837.227f); /* sqrt(4 * (65536^2 - 1) / 12) */
}

static float uniform(uint64_t u, float low, float high)
{
    const float unit = (float)(uint32_t)(u >> 40) * (1.0f / 16777216.0f);
    return low + (high - low) * unit;
}

static uint16_t to_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

/* ---- experts ----------------------------------------------------------------------------------- */

/* How many of 128 codes have each E2M1 magnitude: about the shares found in released experts. */
static uint8_t code_of(uint8_t random)
{
    static const uint8_t count[8] = {15, 28, 25, 20, 19, 13, 6, 2};
    int left = random & 127;
    uint8_t code = 0;
    while (left >= count[code])
        left -= count[code++];
    return (uint8_t)(code | (random >> 7 << 3));
}

/* Bytes [first, first + n) of the packed codes. */
static void fill_codes(uint64_t key, uint64_t first, size_t n, uint8_t *out)
{
    uint8_t code[256];
    for (int i = 0; i < 256; i++)
        code[i] = code_of((uint8_t)i);
    for (size_t i = 0; i < n; i++) {
        const uint64_t at = first + i;
        uint64_t u = draw(key, at / 4) >> (at % 4 * 16);
        if (at % 4 == 0 && i + 4 <= n) {
            for (int j = 0; j < 4; j++, u >>= 16)
                out[i + (size_t)j] = (uint8_t)(code[u & 255] | code[u >> 8 & 255] << 4);
            i += 3;
        } else {
            out[i] = (uint8_t)(code[u & 255] | code[u >> 8 & 255] << 4);
        }
    }
}

static uint8_t scale_byte(uint64_t key, uint64_t i, float middle)
{
    const uint32_t u = (uint32_t)(draw(~key, i) >> 48);
    return (uint8_t)((int)middle + (u < 10000 ? -1 : u >= 64000 ? 1 : 0));
}

static float two_to(int exponent) /* -126..127 */
{
    const uint32_t u = (uint32_t)(exponent + 127) << 23;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* A code times a power of two has two significant bits: exact in BF16. */
static float expert_value(const struct synth_tensor *t, uint64_t i)
{
    static const float value[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    uint8_t pair;
    fill_codes(t->key, i / 2, 1, &pair);
    const uint8_t code = i % 2 ? pair >> 4 : pair & 15;
    const float magnitude = value[code & 7] * two_to(scale_byte(t->key, i / 32, t->scale) - 127);
    return code & 8 ? -magnitude : magnitude;
}

/* ---- everything else --------------------------------------------------------------------------- */

struct head {
    uint32_t first_word, end_word, ranks;
};

/* Rows of lm_head differ so that generated text is mostly whole words, and sometimes ends. */
static float head_factor(const struct head *h, uint64_t row)
{
    if (row >= h->ranks)
        return row - h->ranks == 1 || row - h->ranks == 2 ? 1.1f : 0.35f;
    if (row >= h->first_word && row < h->end_word)
        return 1.0f;
    if (row >= 256)
        return 0.65f;
    return row < 94 ? 0.5f : 0.35f; /* the first ranks are the printable ASCII bytes */
}

static float row_factor(const struct synth_tensor *t, const struct head *h, uint64_t row)
{
    if (t->kind == SYNTH_HEAD)
        return head_factor(h, row);
    return t->kind == SYNTH_MATRIX ? uniform(draw(~t->key, row), 0.7f, 1.3f) : 1.0f;
}

static float vector_value(const struct k3_synth *s, const struct synth_tensor *t, uint64_t i)
{
    const uint64_t u = draw(t->key, i);
    const uint32_t taps = t->shape[2];
    switch (t->kind) {
    case SYNTH_NORM:
        return 1.0f + t->scale * normal(u);
    case SYNTH_CONV:
        return uniform(u, -0.6f, 0.6f) + (i % taps == taps - 1 ? 1.0f : 0.0f);
    case SYNTH_A_LOG:
        return i < s->kda_heads ? uniform(u, -t->scale, t->scale) : 0.0f;
    case SYNTH_DT: /* with the gate's bound of -5: from nearly full memory to almost none */
        return uniform(u, -6.0f, 0.5f);
    default:
        return t->scale * normal(u);
    }
}

static void store(const struct synth_tensor *t, float value, void *out, size_t i)
{
    const uint16_t half = to_bf16(value);
    if (t->dtype == SYNTH_BF16) {
        memcpy((char *)out + 2 * i, &half, 2);
        return;
    }
    if (t->rounded) {
        const uint32_t wide = (uint32_t)half << 16;
        memcpy(&value, &wide, sizeof value);
    }
    memcpy((char *)out + 4 * i, &value, 4);
}

static void fill_rows(const struct k3_synth *s, const struct synth_tensor *t, uint64_t first,
                      size_t n, void *out)
{
    const uint64_t cols = (uint64_t)t->shape[1] * t->shape[2];
    struct head h = {.ranks = s->vocab - 256};
    if (t->kind == SYNTH_HEAD)
        synth_words(s, &h.first_word, &h.end_word);
    for (size_t i = 0; i < n;) {
        const uint64_t at = first + i, row = at / cols;
        const uint64_t left = (row + 1) * cols - at;
        const size_t end = left < n - i ? i + (size_t)left : n;
        const float scale = t->scale * row_factor(t, &h, row);
        for (; i < end; i++)
            store(t, normal(draw(t->key, first + i)) * scale, out, i);
    }
}

void synth_fill(const struct k3_synth *s, const struct synth_tensor *t, uint64_t first, size_t n,
                void *out)
{
    switch (t->kind) {
    case SYNTH_CODES:
        fill_codes(t->key, first, n, out);
        break;
    case SYNTH_SCALES:
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)out)[i] = scale_byte(t->key, first + i, t->scale);
        break;
    case SYNTH_EXPERT:
        for (size_t i = 0; i < n; i++)
            store(t, expert_value(t, first + i), out, i);
        break;
    case SYNTH_MATRIX:
    case SYNTH_FLAT:
    case SYNTH_HEAD:
        fill_rows(s, t, first, n, out);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            store(t, vector_value(s, t, first + i), out, i);
    }
}
