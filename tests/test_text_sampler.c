/* test_text_sampler.c - sampling: the same draw everywhere, and the right distribution. */
#include <config.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../engine/text/sampler.h"

enum { N = 8 };
static float scratch[2 * 4096];

static const float ROW[N] = {0.5f, -1.0f, 2.0f, 0.0f, 1.5f, -3.0f, 1.0f, 2.0f};

static int32_t draw(const struct k3_sampling *s, const float *logits, uint32_t position)
{
    return k3_sample(s, logits, N, position, scratch);
}

static void test_pcg32(void **state)
{
    /* The first numbers of the generator's own demonstration, seed 42, stream 54. */
    static const uint32_t want[] = {0xa15c02b7, 0x7b47f409, 0xba1d3330,
                                    0x83d2f293, 0xbfa4784b, 0xcbed606e};
    struct k3_pcg32 r;
    (void)state;
    k3_pcg32_seed(&r, 42, 54);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(k3_pcg32_next(&r), want[i]);
}

static void test_greedy(void **state)
{
    struct k3_sampling s = {.greedy = true, .repetition_penalty = 9, .top_k = 1};
    float row[N];
    (void)state;
    assert_int_equal(k3_sample(&s, ROW, N, 0, NULL), 2); /* the first of the largest */
    memcpy(row, ROW, sizeof row);
    row[0] = row[2] = NAN;
    assert_int_equal(k3_sample(&s, row, N, 0, NULL), 7);
    for (int i = 0; i < N; i++)
        row[i] = NAN;
    assert_int_equal(k3_sample(&s, row, N, 0, NULL), -1);
    assert_int_equal(k3_sample(&s, row, 0, 0, NULL), -1);
    s = (struct k3_sampling){.temperature = 0, .top_p = 1};
    assert_int_equal(k3_sample(&s, ROW, N, 0, NULL), 2);
    s.temperature = NAN;
    assert_int_equal(k3_sample(&s, ROW, N, 0, NULL), 2);
}

static void test_unsound_rows(void **state)
{
    const struct k3_sampling s = {.temperature = 1, .top_p = 1};
    float row[N];
    int seen[N] = {0};
    (void)state;
    for (int i = 0; i < N; i++)
        row[i] = i % 2 ? NAN : -INFINITY;
    assert_int_equal(draw(&s, row, 0), -1);
    row[4] = -1000;
    assert_int_equal(draw(&s, row, 0), 4);
    row[1] = row[6] = INFINITY;
    for (uint32_t p = 0; p < 200; p++)
        seen[draw(&s, row, p)]++;
    assert_int_equal(seen[1] + seen[6], 200);
    assert_true(seen[1] > 60 && seen[6] > 60);
    memcpy(row, ROW, sizeof row);
    row[2] = NAN;
    for (uint32_t p = 0; p < 2000; p++)
        assert_int_not_equal(draw(&s, row, p), 2);
}

/* The draw depends on seed and position alone: not on what was drawn before. */
static void test_resume(void **state)
{
    const struct k3_sampling a = {.temperature = 0.8f, .top_p = 0.9f, .seed = 11};
    struct k3_sampling b = a;
    int32_t first[500];
    int other = 0;
    (void)state;
    for (uint32_t p = 0; p < 500; p++)
        first[p] = draw(&a, ROW, p);
    for (uint32_t p = 500; p-- > 0;)
        assert_int_equal(draw(&a, ROW, p), first[p]);
    b.seed = 12;
    for (uint32_t p = 0; p < 500; p++)
        other += draw(&b, ROW, p) != first[p];
    assert_true(other > 100);
}

/* Draws worked out apart from this code (in Python, with its exp): every machine, compiler and libm
 * must give them. */
static void test_fixed(void **state)
{
    static const int32_t want[] = {
        520, 741, 952, 273, 247, 173, 494, 692, 741, 235, 457, 976,
        260, 642, 889, 951, 13, 494, 235, 445, 482, 754, 717, 988};
    struct k3_sampling s = {.temperature = 0.7f, .top_p = 0.95f, .seed = 2024};
    float row[1000];
    (void)state;
    for (int i = 0; i < 1000; i++)
        row[i] = (float)(i * 7919 % 1000) * 0.01f - (float)(i % 13) * 0.37f;
    for (uint32_t p = 0; p < sizeof want / sizeof *want; p++)
        assert_int_equal(k3_sample(&s, row, 1000, p * 1000003u, scratch), want[p]);
}

/* The probabilities of what may be drawn, by libm. */
static void probabilities(float temperature, const bool *may, double *p)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += p[i] = may[i] ? exp((double)ROW[i] / (double)temperature) : 0;
    for (int i = 0; i < N; i++)
        p[i] /= sum;
}

/* Chi square of 20,000 draws; with 7 degrees of freedom 30 is passed once in 10,000 times, and
 * these draws are always the same ones. */
static void distributed(const struct k3_sampling *s, const bool *may)
{
    enum { DRAWS = 20000 };
    double p[N], chi = 0;
    int seen[N] = {0};
    probabilities(s->temperature, may, p);
    for (uint32_t i = 0; i < DRAWS; i++)
        seen[draw(s, ROW, i)]++;
    for (int i = 0; i < N; i++) {
        if (!may[i])
            assert_int_equal(seen[i], 0);
        else
            chi += (seen[i] - p[i] * DRAWS) * (seen[i] - p[i] * DRAWS) / (p[i] * DRAWS);
    }
    assert_true(chi < 30);
}

static void test_distribution(void **state)
{
    static const bool all[N] = {1, 1, 1, 1, 1, 1, 1, 1};
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct k3_sampling s = {.temperature = 0.5f + (float)seed, .top_p = 1,
            .seed = seed << 60 | seed};
        distributed(&s, all);
        s.min_p = 1e-30f; /* cuts nothing, but goes the sorted way */
        distributed(&s, all);
    }
}

/* ROW in falling order: 2 7 (2.0), 4 (1.5), 6 (1.0), 0 (0.5), 3 (0.0), 1 (-1.0), 5 (-3.0). */
static void test_cuts(void **state)
{
    struct k3_sampling s = {.temperature = 1, .top_p = 1, .seed = 5};
    (void)state;
    s.top_k = 3;
    distributed(&s, (const bool[N]){0, 0, 1, 0, 1, 0, 0, 1});
    s.top_k = 1; /* of equals the lower id */
    distributed(&s, (const bool[N]){0, 0, 1, 0, 0, 0, 0, 0});
    s.top_k = 0;
    s.min_p = 0.3f; /* exp(-1) = 0.37 passes, exp(-1.5) = 0.22 does not */
    distributed(&s, (const bool[N]){0, 0, 1, 0, 1, 0, 1, 1});
    s.min_p = 0;
    s.top_p = 0.5f; /* the masses are .299 .299 .181 .110 .067 .040 .015 .002 */
    distributed(&s, (const bool[N]){0, 0, 1, 0, 0, 0, 0, 1});
    s.top_p = 0.61f;
    distributed(&s, (const bool[N]){0, 0, 1, 0, 1, 0, 0, 1});
    s.top_p = 0.0001f;
    distributed(&s, (const bool[N]){0, 0, 1, 0, 0, 0, 0, 0});
    s.top_p = 0.61f;
    s.top_k = 3; /* of 0.779: 0.384 0.384 0.233, so two are enough */
    distributed(&s, (const bool[N]){0, 0, 1, 0, 0, 0, 0, 1});
}

static void test_penalty(void **state)
{
    static const int32_t history[] = {2, 7, 2, 2, 1, -5, 99, 7};
    struct k3_sampling s = {.temperature = 1, .top_p = 1, .top_k = 1, .repetition_penalty = 2,
                            .history = history, .n_history = sizeof history / sizeof *history};
    (void)state;
    /* 2 and 7 fall to 1.0, once and not three times: 4 (1.5) is first, then 2, 6 and 7. */
    assert_int_equal(draw(&s, ROW, 0), 4);
    s.top_k = 4;
    int seen[N] = {0};
    for (uint32_t p = 0; p < 1000; p++)
        seen[draw(&s, ROW, p)]++;
    assert_int_equal(seen[2] + seen[4] + seen[6] + seen[7], 1000);
    assert_true(seen[2] > 150 && seen[7] > 150);
    s.repetition_penalty = 1;
    s.top_k = 1;
    assert_int_equal(draw(&s, ROW, 0), 2);
    s.repetition_penalty = 0;
    assert_int_equal(draw(&s, ROW, 0), 2);
}

/* Two tokens: the border between them stands where the logistic function says, to 1e-6. */
static void test_precision(void **state)
{
    (void)state;
    for (int step = 0; step < 400; step++) {
        float row[2] = {0, -(float)step * 0.02f};
        const struct k3_sampling s = {.temperature = 0.61f, .top_p = 1, .seed = (uint64_t)step};
        const double border = 1 / (1 + exp((double)row[1] / (double)0.61f));
        for (uint32_t p = 0; p < 50; p++) {
            struct k3_pcg32 r;
            k3_pcg32_seed(&r, s.seed, p);
            const double high = k3_pcg32_next(&r) >> 5, low = k3_pcg32_next(&r) >> 6;
            const double u = (high * 67108864 + low) / 9007199254740992.0;
            if (fabs(u - border) > 1e-6)
                assert_int_equal(k3_sample(&s, row, 2, p, scratch), u < border ? 0 : 1);
        }
    }
}

/* Neighbouring positions draw independently: the 64 pairs are equally frequent. */
static void test_positions(void **state)
{
    static const float flat[N] = {0};
    const struct k3_sampling s = {.temperature = 1, .top_p = 1, .seed = 3};
    int seen[N][N] = {{0}};
    double chi = 0;
    (void)state;
    for (uint32_t p = 0; p < 64000; p++)
        seen[draw(&s, flat, p)][draw(&s, flat, p + 1)]++;
    for (int i = 0; i < N * N; i++)
        chi += (seen[i / N][i % N] - 1000.0) * (seen[i / N][i % N] - 1000.0) / 1000.0;
    assert_true(chi < 120); /* 63 degrees of freedom: 1 in 50,000 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pcg32),     cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_unsound_rows), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_fixed),     cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_cuts),      cmocka_unit_test(test_penalty),
        cmocka_unit_test(test_precision), cmocka_unit_test(test_positions),
    };
    return cmocka_run_group_tests_name("text_sampler", tests, NULL, NULL);
}
