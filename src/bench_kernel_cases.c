/* bench_kernel_cases.c - see bench_kernel_cases.h. Sizes are those of the released model. */
#include <config.h>

#include "bench_kernel_cases.h"

enum {
    HEAD = 128,      /* KDA head width, MLA nope and value width */
    LATENT = 512,    /* MLA latent, without and with the rope slots */
    ROW = 576,
    POSITIONS = 4096,
    GROUP = 16,      /* MLA heads that share one walk over the latents */
    EMBED = 7168,
    WIDE = BENCH_HEADS * HEAD,
    LARGEST = 33792, /* most rows of a product */
    OWN = POSITIONS * GROUP + 8 * WIDE,
};

size_t bench_own_floats(void)
{
    return OWN;
}

size_t bench_output_floats(void)
{
    return (size_t)BENCH_MOST_BATCH * LARGEST;
}

static float *own(const struct bench_unit *u)
{
    return u->data->own + u->thread * u->data->own_floats;
}

/* The unit's place in the ring of weights, `bytes` long and aligned as a row in a shard may be. */
static const uint8_t *ring(const struct bench_unit *u, size_t bytes)
{
    const size_t step = (bytes + 63) / 64 * 64, places = (u->data->weights_bytes - 64) / step;
    return u->data->weights + u->index % places * step + 16;
}

/* ---- products: rows are shared out ----------------------------------------------------------- */

static void share(const struct bench_unit *u, size_t *first, size_t *count)
{
    const size_t groups = (u->rows + 15) / 16;
    const size_t end = groups * (u->thread + 1) / u->threads * 16;
    *first = groups * u->thread / u->threads * 16;
    *count = (end < u->rows ? end : u->rows) - *first;
}

static void run_bf16(const struct bench_unit *u)
{
    const size_t cols = u->what->cols;
    size_t r, n;
    share(u, &r, &n);
    u->k->gemm_bf16(u->data->y + r, LARGEST, ring(u, u->rows * cols * 2) + r * cols * 2, n, cols,
                    u->data->x, cols, u->batch);
}

static void run_f32(const struct bench_unit *u)
{
    const size_t cols = u->what->cols;
    size_t r, n;
    share(u, &r, &n);
    u->k->gemm_f32(u->data->y + r, LARGEST, ring(u, u->rows * cols * 4) + r * cols * 4, n, cols,
                   u->data->x, cols, u->batch);
}

static void run_mxfp4(const struct bench_unit *u)
{
    const size_t cols = u->what->cols;
    size_t r, n;
    share(u, &r, &n);
    u->k->gemm_mxfp4(u->data->y + r, LARGEST, ring(u, u->rows * cols / 2) + r * cols / 2,
                     u->data->scales + r * cols / 32, n, cols, u->data->x, cols, u->batch);
}

/* ---- attention: heads are shared out --------------------------------------------------------- */

/* Wk_h^T q of every head. */
static void run_absorb(const struct bench_unit *u)
{
    const uint8_t *w = ring(u, (size_t)BENCH_HEADS * 2 * HEAD * LATENT * 2);
    for (size_t h = u->thread; h < BENCH_HEADS; h += u->threads)
        u->k->gemm_t_bf16(own(u), LATENT, w + h * 2 * HEAD * LATENT * 2, LATENT, HEAD, LATENT,
                          u->data->x + h * HEAD, BENCH_WIDEST, u->batch);
}

static void run_scores(const struct bench_unit *u)
{
    const float *latents = (const float *)(const void *)ring(u, (size_t)POSITIONS * ROW * 4);
    for (size_t g = u->thread; g < u->batch * BENCH_HEADS / GROUP; g += u->threads)
        u->k->gemm_f32(own(u), POSITIONS, latents, POSITIONS, ROW, u->data->x, ROW, GROUP);
}

static void run_softmax(const struct bench_unit *u)
{
    for (size_t h = u->thread; h < u->batch * BENCH_HEADS; h += u->threads) {
        float *s = own(u) + h % GROUP * POSITIONS;
        for (size_t i = 0; i < POSITIONS; i += 64)
            s[i] = u->data->x[i + h]; /* new scores, so that they do not even out */
        u->k->softmax(s, POSITIONS, 0.0721688f);
    }
}

static void run_read(const struct bench_unit *u)
{
    const float *latents = (const float *)(const void *)ring(u, (size_t)POSITIONS * ROW * 4);
    for (size_t g = u->thread; g < u->batch * BENCH_HEADS / GROUP; g += u->threads)
        u->k->gemm_t_f32(own(u), LATENT, latents, ROW, POSITIONS, LATENT, u->data->x, POSITIONS,
                         GROUP);
}

static void run_kda(const struct bench_unit *u)
{
    const float *x = u->data->x;
    float *out = own(u), *alpha = out + HEAD;
    for (size_t i = 0; i < HEAD; i++)
        alpha[i] = 0.9f + 0.09f * x[i];
    for (size_t h = u->thread; h < BENCH_HEADS; h += u->threads) {
        float *S = u->data->state + (u->index % 2 * BENCH_HEADS + h) * HEAD * HEAD;
        for (size_t t = 0; t < u->batch; t++) {
            const float *q = x + (t + h) * HEAD, *k = q + HEAD, *v = k + HEAD;
            u->k->kda_step(S, out, q, k, v, alpha, 0.01f, 0.0883f, HEAD);
        }
    }
}

/* ---- vectors: every thread its own ----------------------------------------------------------- */

static void run_rms(const struct bench_unit *u)
{
    for (size_t t = u->thread; t < u->batch; t += u->threads)
        u->k->rms_norm(own(u), u->data->x + t * BENCH_WIDEST, u->data->x, u->what->cols, 1e-5f);
}

static void run_l2(const struct bench_unit *u)
{
    for (size_t t = 0; t < u->batch; t++)
        for (size_t h = u->thread; h < BENCH_HEADS; h += u->threads)
            u->k->l2_norm(own(u) + h * HEAD, HEAD, 1e-6f);
}

static void run_conv(const struct bench_unit *u)
{
    float *y = own(u), *history = y + HEAD;
    for (size_t t = 0; t < u->batch; t++)
        for (size_t h = u->thread; h < BENCH_HEADS; h += u->threads)
            u->k->conv_silu(y, history + h * 3 * HEAD, u->data->x + h * HEAD, u->data->x, HEAD, 4);
}

static void run_decay(const struct bench_unit *u)
{
    const float *x = u->data->x;
    for (size_t t = 0; t < u->batch; t++)
        for (size_t h = u->thread; h < BENCH_HEADS; h += u->threads)
            u->k->kda_decay(own(u), x + h * HEAD, x, 2.5f, -5.0f, HEAD);
}

static void run_glu(const struct bench_unit *u)
{
    const float *x = u->data->x;
    for (size_t t = u->thread; t < u->batch * 16; t += u->threads)
        u->k->situ_glu(own(u), x + t / 16 * BENCH_WIDEST, x + 4096, u->what->cols, 4.0f, 25.0f);
}

static void run_gate(const struct bench_unit *u)
{
    for (size_t t = u->thread; t < u->batch; t += u->threads)
        u->k->mul_logistic(own(u), u->data->x + t * BENCH_WIDEST, WIDE);
}

static void run_sum(const struct bench_unit *u)
{
    const float *v[16];
    for (size_t i = 0; i < u->what->rows; i++)
        v[i] = u->data->x + i * BENCH_WIDEST;
    for (size_t t = u->thread; t < u->batch; t += u->threads)
        u->k->weighted_sum(own(u), u->data->x, v, u->what->rows, u->what->cols);
}

static void run_argmax(const struct bench_unit *u)
{
    for (size_t t = u->thread; t < u->batch; t += u->threads)
        own(u)[0] = (float)u->k->argmax(u->data->x, u->what->cols);
}

#define PRODUCT(R, C) .rows = (R), .cols = (C), .bytes_per_token = 4.0 * ((R) + (C)), \
                      .flops_per_token = 2.0 * (R) * (C)

const struct bench_case bench_cases[] = {
    {"gemm_bf16", "KDA projection", PRODUCT(WIDE, EMBED), .weight_bits = 16, .run = run_bf16},
    {"gemm_bf16", "output projection", PRODUCT(EMBED, WIDE), .weight_bits = 16, .run = run_bf16},
    {"gemm_bf16", "dense MLP", PRODUCT(LARGEST, EMBED), .weight_bits = 16, .run = run_bf16},
    {"gemm_bf16", "shared expert", PRODUCT(6144, EMBED), .weight_bits = 16, .run = run_bf16},
    {"gemm_bf16", "latent up", PRODUCT(EMBED, 3584), .weight_bits = 16, .run = run_bf16},
    {"gemm_bf16", "KDA decay, upper", PRODUCT(WIDE, HEAD), .weight_bits = 16, .run = run_bf16},
    {"gemm_f32", "router", PRODUCT(896, EMBED), .weight_bits = 32, .run = run_f32},
    {"gemm_mxfp4", "expert w1, w3", PRODUCT(3072, 3584), .weight_bits = 4.25, .run = run_mxfp4},
    {"gemm_mxfp4", "expert w2", PRODUCT(3584, 3072), .weight_bits = 4.25, .run = run_mxfp4},
    {"gemm_t_bf16", "MLA query to latent", BENCH_HEADS * HEAD, LATENT, .weight_bits = 16,
     .flops_per_token = 2.0 * WIDE * LATENT, .whole = true, .run = run_absorb},
    {"gemm_f32", "MLA scores, 4096 pos.", POSITIONS, ROW, .weight_bits = 32,
     .flops_per_token = 2.0 * POSITIONS * ROW * BENCH_HEADS, .whole = true, .run = run_scores},
    {"softmax", "MLA, 4096 positions", BENCH_HEADS, POSITIONS,
     .bytes_per_token = 8.0 * BENCH_HEADS * POSITIONS, .whole = true, .run = run_softmax},
    {"gemm_t_f32", "MLA read, 4096 pos.", POSITIONS, LATENT, .weight_bits = 32,
     .flops_per_token = 2.0 * POSITIONS * LATENT * BENCH_HEADS, .whole = true, .run = run_read},
    {"kda_step", "96 heads", BENCH_HEADS * HEAD, HEAD, .bytes_per_token = 8.0 * WIDE * HEAD,
     .flops_per_token = 7.0 * WIDE * HEAD, .whole = true, .run = run_kda},
    {"conv_silu", "one of q, k, v", 4, WIDE, .bytes_per_token = 4.0 * WIDE * 12, .whole = true,
     .run = run_conv},
    {"kda_decay", "96 heads", 1, WIDE, .bytes_per_token = 12.0 * WIDE, .whole = true,
     .run = run_decay},
    {"l2_norm", "96 heads", 1, WIDE, .bytes_per_token = 8.0 * WIDE, .whole = true, .run = run_l2},
    {"rms_norm", "layer norm", 1, EMBED, .bytes_per_token = 12.0 * EMBED, .whole = true,
     .run = run_rms},
    {"situ_glu", "16 experts", 1, 3072, .bytes_per_token = 12.0 * 16 * 3072, .whole = true,
     .run = run_glu},
    {"mul_logistic", "output gate", 1, WIDE, .bytes_per_token = 12.0 * WIDE, .whole = true,
     .run = run_gate},
    {"weighted_sum", "16 experts", 16, 3584, .bytes_per_token = 4.0 * 17 * 3584,
     .flops_per_token = 2.0 * 16 * 3584, .whole = true, .run = run_sum},
    {"weighted_sum", "AttnRes, 9 sources", 9, EMBED, .bytes_per_token = 4.0 * 10 * EMBED,
     .flops_per_token = 2.0 * 9 * EMBED, .whole = true, .run = run_sum},
    {"argmax", "vocabulary", 1, 163840, .bytes_per_token = 4.0 * 163840, .whole = true,
     .run = run_argmax},
};
const size_t bench_case_count = sizeof bench_cases / sizeof *bench_cases;
