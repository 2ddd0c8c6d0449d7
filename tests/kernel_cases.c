/* kernel_cases.c - see kernel_cases.h. C and the kernels only, so that it runs under an emulator. */
#include "kernel_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAD = 8 }; /* sentinels before and after every output */

struct run {
    const struct k3_kernels *k;
    kernel_emit *emit;
    void *ud;
    struct kernel_rng rng;
    enum kernel_inputs kind;
};

static const char *const kind_name[INPUTS_COUNT] = {"plain", "wild", "raw"};

/* ---- inputs ------------------------------------------------------------------------------ */

uint64_t kernel_random(struct kernel_rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static float from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static float random_value(struct kernel_rng *rng, enum kernel_inputs kind)
{
    const uint64_t r = kernel_random(rng);
    const uint32_t bits = (uint32_t)r, pick = (uint32_t)(r >> 32);
    switch (kind) {
    case INPUTS_PLAIN:
        return (float)((int32_t)bits >> 8) * 0x1p-23f;
    case INPUTS_WILD:
        if (pick % 16 == 0)
            return from_bits(bits & 0x80000000u); /* zero */
        if (pick % 16 == 1)
            return from_bits(bits & 0x807fffffu); /* denormal */
        /* exponents 2^-100 .. 2^27 */
        return from_bits((bits & 0x807fffffu) | (27u + pick % 128u) << 23);
    default:
        if (pick % 64 == 0)
            return from_bits((bits & 0x80000000u) | 0x7f800000u);
        /* NaN only rarely, or there would be nothing else in a sum */
        if ((bits & 0x7f800000u) == 0x7f800000u && pick % 16 != 1)
            return 1.0f;
        return from_bits(bits);
    }
}

void kernel_fill(struct kernel_rng *rng, enum kernel_inputs kind, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = random_value(rng, kind);
}

static void *need(size_t bytes)
{
    void *p = malloc(bytes + 1);
    if (!p) {
        fprintf(stderr, "kernel cases: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return p;
}

static float *fresh(struct run *run, size_t n)
{
    float *x = need(n * sizeof *x);
    kernel_fill(&run->rng, run->kind, x, n);
    return x;
}

/* Bytes at an address that is aligned to nothing; free *base. */
static uint8_t *fresh_bytes(struct run *run, size_t n, void **base)
{
    uint8_t *p = need(n + 4);
    *base = p;
    p += kernel_random(&run->rng) % 4;
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)kernel_random(&run->rng);
    return p;
}

/* n weights of 4 (F32) or 2 (BF16) bytes, aligned to nothing. */
static uint8_t *fresh_weights(struct run *run, size_t n, size_t size, void **base)
{
    uint8_t *p = need(n * size + 4);
    *base = p;
    p += kernel_random(&run->rng) % 4;
    for (size_t i = 0; i < n; i++) {
        const float x = random_value(&run->rng, run->kind);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        const uint16_t half = (uint16_t)(bits >> 16);
        if (size == 4)
            memcpy(p + 4 * i, &bits, sizeof bits);
        else
            memcpy(p + 2 * i, &half, sizeof half);
    }
    return p;
}

/* An output buffer of n values between two pads, filled with a sentinel. */
static float *output(size_t n)
{
    float *y = need((n + 2 * PAD) * sizeof *y);
    for (size_t i = 0; i < n + 2 * PAD; i++)
        y[i] = -12345.0f;
    return y;
}

static void emit(struct run *run, const char *kernel, size_t a, size_t b, size_t c, float *y,
                 size_t n)
{
    char shape[96];
    snprintf(shape, sizeof shape, "%zux%zux%zu %s", a, b, c, kind_name[run->kind]);
    run->emit(run->ud, kernel, shape, y, n + 2 * PAD);
    free(y);
}

/* ---- products ---------------------------------------------------------------------------- */

static const struct {
    size_t rows, cols;
} shapes[] = {{0, 16},  {1, 0},   {1, 1},    {2, 15},   {3, 16},  {4, 17},    {5, 31},  {6, 32},
              {7, 33},  {8, 47},  {9, 48},   {15, 64},  {16, 65}, {17, 96},   {31, 16}, {33, 130},
              {3, 512}, {5, 528}, {18, 545}, {2, 1040}, {5, 7168}, {4, 12288}, {17, 3584}};
static const size_t token_counts[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 17, 33, 64, 67};

enum { SHAPES = sizeof shapes / sizeof *shapes, TOKENS = sizeof token_counts / sizeof *token_counts };

/* Big shapes need only a few tokens to be big. */
static size_t most_tokens(size_t rows, size_t cols)
{
    return rows * cols > 16384 ? 6 : rows * cols > 2500 ? 17 : 67;
}

static void case_plain(struct run *run, size_t rows, size_t cols, size_t tokens, size_t size)
{
    const size_t ldx = cols + 3, ldy = rows + 5;
    void *base;
    const uint8_t *w = fresh_weights(run, rows * cols, size, &base);
    float *x = fresh(run, tokens * ldx + 1), *y = output(tokens * ldy);
    (size == 4 ? run->k->gemm_f32 : run->k->gemm_bf16)(y + PAD, ldy, w, rows, cols, x + 1, ldx,
                                                       tokens);
    emit(run, size == 4 ? "gemm_f32" : "gemm_bf16", rows, cols, tokens, y, tokens * ldy);
    free(x);
    free(base);
}

static void case_mxfp4(struct run *run, size_t rows, size_t cols, size_t tokens)
{
    const size_t ldx = cols + 3, ldy = rows + 5;
    void *base, *scale_base;
    const uint8_t *w = fresh_bytes(run, rows * cols / 2, &base);
    uint8_t *scale = fresh_bytes(run, rows * cols / 32, &scale_base);
    for (size_t i = 0; i < rows * cols / 32; i++) {
        if (run->kind == INPUTS_PLAIN)
            scale[i] = (uint8_t)(110 + scale[i] % 20);
        else if (run->kind == INPUTS_WILD)
            scale[i] = (uint8_t)(scale[i] % 150);
        else if (scale[i] == 255)
            scale[i] = 0;
    }
    float *x = fresh(run, tokens * ldx + 1), *y = output(tokens * ldy);
    run->k->gemm_mxfp4(y + PAD, ldy, w, scale, rows, cols, x + 1, ldx, tokens);
    emit(run, "gemm_mxfp4", rows, cols, tokens, y, tokens * ldy);
    free(x);
    free(base);
    free(scale_base);
}

static void case_transposed(struct run *run, size_t rows, size_t cols, size_t tokens, size_t size)
{
    const size_t ldx = rows + 3, ldy = cols + 5, ldw = cols + 2;
    void *base;
    const uint8_t *w = fresh_weights(run, rows * ldw, size, &base);
    float *x = fresh(run, tokens * ldx + 1), *y = output(tokens * ldy);
    (size == 4 ? run->k->gemm_t_f32 : run->k->gemm_t_bf16)(y + PAD, ldy, w, ldw, rows, cols, x + 1,
                                                           ldx, tokens);
    emit(run, size == 4 ? "gemm_t_f32" : "gemm_t_bf16", rows, cols, tokens, y, tokens * ldy);
    free(x);
    free(base);
}

static void all_products(struct run *run)
{
    for (size_t s = 0; s < SHAPES; s++)
        for (size_t t = 0; t < TOKENS; t++) {
            const size_t rows = shapes[s].rows, cols = shapes[s].cols, tokens = token_counts[t];
            if (tokens > most_tokens(rows, cols))
                continue;
            case_plain(run, rows, cols, tokens, 4);
            case_plain(run, rows, cols, tokens, 2);
            if (cols % 32 == 0)
                case_mxfp4(run, rows, cols, tokens);
            case_transposed(run, cols, rows, tokens, 4);
            case_transposed(run, rows, cols, tokens, 4);
            case_transposed(run, rows, cols, tokens, 2);
        }
}

static void case_weighted_sum(struct run *run, size_t n, size_t width)
{
    float *p = fresh(run, n), *v = fresh(run, n * (width + 1)), *y = output(width);
    const float **row = need((n + 1) * sizeof *row);
    for (size_t i = 0; i < n; i++)
        row[i] = v + i * (width + 1);
    run->k->weighted_sum(y + PAD, p, row, n, width);
    emit(run, "weighted_sum", n, width, 1, y, width);
    free(p);
    free(v);
    free(row);
}

/* ---- vectors ----------------------------------------------------------------------------- */

static const size_t lengths[] = {0,  1,  2,  15, 16,  17,  31,  32,   33,   47,
                                 48, 64, 65, 96, 128, 130, 576, 1536, 5000, 7168};

enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* One element-wise kernel: in place when `place` says so. */
static void case_unary(struct run *run, const char *name,
                       void (*f)(float *y, const float *x, size_t n), size_t n, bool in_place)
{
    float *x = fresh(run, n), *y = output(n);
    if (in_place)
        memcpy(y + PAD, x, n * sizeof *x);
    f(y + PAD, in_place ? y + PAD : x, n);
    emit(run, name, n, 1, in_place, y, n);
    free(x);
}

/* y is read and written. */
static void case_update(struct run *run, const char *name,
                        void (*f)(float *y, const float *x, size_t n), size_t n)
{
    float *x = fresh(run, n), *y = output(n);
    kernel_fill(&run->rng, run->kind, y + PAD, n);
    f(y + PAD, x, n);
    emit(run, name, n, 1, 1, y, n);
    free(x);
}

static void case_norms(struct run *run, size_t n)
{
    float *x = fresh(run, n), *w = fresh(run, n), *y = output(n);
    run->k->rms_norm(y + PAD, x, w, n, 1e-5f);
    emit(run, "rms_norm", n, 1, 0, y, n);
    y = output(n);
    memcpy(y + PAD, x, n * sizeof *x);
    run->k->rms_norm(y + PAD, y + PAD, w, n, 1e-6f);
    emit(run, "rms_norm", n, 1, 1, y, n);
    y = output(n);
    memcpy(y + PAD, x, n * sizeof *x);
    run->k->l2_norm(y + PAD, n, 1e-6f);
    emit(run, "l2_norm", n, 1, 1, y, n);
    y = output(2);
    y[PAD] = run->k->dot(x, w, n);
    y[PAD + 1] = run->k->sum_squares(x, n);
    emit(run, "dot, sum_squares", n, 1, 0, y, 2);
    free(x);
    free(w);
}

static void case_glu(struct run *run, size_t n)
{
    float *g = fresh(run, n), *u = fresh(run, n);
    for (size_t i = 0; i < n && run->kind == INPUTS_PLAIN; i++) {
        g[i] *= 12.0f;
        u[i] *= 60.0f;
    }
    float *y = output(n);
    run->k->situ_glu(y + PAD, g, u, n, 4.0f, 25.0f);
    emit(run, "situ_glu", n, 1, 0, y, n);
    y = output(n);
    memcpy(y + PAD, g, n * sizeof *g);
    run->k->situ_glu(y + PAD, y + PAD, u, n, 4.0f, 25.0f);
    emit(run, "situ_glu", n, 1, 1, y, n);
    y = output(n);
    memcpy(y + PAD, u, n * sizeof *u);
    run->k->situ_glu(y + PAD, g, y + PAD, n, 3.5f, 20.0f);
    emit(run, "situ_glu", n, 1, 2, y, n);
    free(g);
    free(u);
}

static void case_decay(struct run *run, size_t n)
{
    float *z = fresh(run, n), *bias = fresh(run, n), *y = output(n);
    run->k->kda_decay(y + PAD, z, bias, 1.75f, -5.0f, n);
    emit(run, "kda_decay", n, 1, 0, y, n);
    free(z);
    free(bias);
}

static void case_softmax(struct run *run, size_t n)
{
    if (n == 0)
        return;
    float *y = output(n);
    kernel_fill(&run->rng, run->kind, y + PAD, n);
    run->k->softmax(y + PAD, n, 8.25f);
    emit(run, "softmax", n, 1, 1, y, n);
}

/* The place of the largest, also among many equals. */
static void case_argmax(struct run *run, size_t n)
{
    if (n == 0)
        return;
    float *x = fresh(run, n), *y = output(3);
    y[PAD] = (float)run->k->argmax(x, n);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(kernel_random(&run->rng) % 3) - 1.0f;
    y[PAD + 1] = (float)run->k->argmax(x, n);
    for (size_t i = 0; i < n; i++)
        x[i] = kernel_random(&run->rng) % 2 ? -0.0f : 0.0f;
    y[PAD + 2] = (float)run->k->argmax(x, n);
    emit(run, "argmax", n, 1, 0, y, 3);
    free(x);
}

static void case_widen(struct run *run, size_t n)
{
    void *base;
    const uint8_t *w = fresh_weights(run, n, 2, &base);
    float *y = output(n);
    run->k->widen_bf16(y + PAD, w, n);
    emit(run, "widen_bf16", n, 1, 0, y, n);
    free(base);
}

static void all_vectors(struct run *run)
{
    const struct k3_kernels *k = run->k;
    for (size_t l = 0; l < LENGTHS; l++) {
        const size_t n = lengths[l];
        case_norms(run, n);
        case_softmax(run, n);
        case_argmax(run, n);
        case_widen(run, n);
        case_glu(run, n);
        case_decay(run, n);
        case_update(run, "add", k->add, n);
        case_update(run, "mul_logistic", k->mul_logistic, n);
        case_unary(run, "logistic", k->logistic, n, false);
        case_unary(run, "logistic", k->logistic, n, true);
        case_unary(run, "exp", k->exp, n, false);
        case_unary(run, "tanh", k->tanh, n, false);
        case_weighted_sum(run, l % 5 + l / 8 * 9, n);
    }
}

/* ---- with state -------------------------------------------------------------------------- */

static void case_conv(struct run *run, size_t channels, size_t taps)
{
    const size_t past = (taps - 1) * channels;
    float *w = fresh(run, taps * channels), *y = output(past + 2 * channels);
    float *history = y + PAD, *out = history + past;
    kernel_fill(&run->rng, run->kind, history, past);
    for (int step = 0; step < 6; step++) {
        float *x = fresh(run, channels);
        memcpy(out + channels, x, channels * sizeof *x);
        run->k->conv_silu(out, history, x, w, channels, taps);
        run->k->conv_silu(out + channels, history, out + channels, w, channels, taps);
        free(x);
    }
    emit(run, "conv_silu", channels, taps, 1, y, past + 2 * channels);
    free(w);
}

static void case_kda(struct run *run, size_t d, int steps)
{
    float *y = output(d * d + d);
    kernel_fill(&run->rng, run->kind, y + PAD, d * d);
    for (int s = 0; s < steps; s++) {
        float *q = fresh(run, d), *k = fresh(run, d), *v = fresh(run, d), *alpha = fresh(run, d);
        for (size_t i = 0; i < d && run->kind == INPUTS_PLAIN; i++)
            alpha[i] = alpha[i] < 0 ? -alpha[i] : alpha[i];
        run->k->l2_norm(k, d, 1e-6f);
        run->k->kda_step(y + PAD, y + PAD + d * d, q, k, v, alpha, 0.625f, 0.0883f, d);
        free(q);
        free(k);
        free(v);
        free(alpha);
    }
    emit(run, "kda_step", d, (size_t)steps, 1, y, d * d + d);
}

static void all_states(struct run *run)
{
    static const size_t widths[] = {0, 1, 8, 15, 16, 17, 32, 33, 64, 80, 128};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        case_kda(run, widths[i], 3);
    for (size_t l = 0; l < LENGTHS; l++)
        case_conv(run, lengths[l], 1 + l % 5);
    case_conv(run, 768, 4);
}

void kernel_cases_run(const struct k3_kernels *k, kernel_emit *emit_result, void *ud)
{
    for (int kind = 0; kind < INPUTS_COUNT; kind++) {
        struct run run = {k, emit_result, ud, {(uint64_t)kind + 1}, (enum kernel_inputs)kind};
        all_products(&run);
        all_vectors(&run);
        all_states(&run);
        if (run.kind == INPUTS_PLAIN)
            case_kda(&run, 32, 1000);
    }
}
