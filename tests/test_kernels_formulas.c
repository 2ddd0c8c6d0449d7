/* test_kernels_formulas.c - norms, softmax, gates, convolution, KDA and argmax of every set against
 * their formulas in double, or in numbers for which every step is exact. */
#include <config.h>

#include "kernel_check.h"

static double sigma(double x)
{
    return 1 / (1 + exp(-x));
}

static void norms_follow_their_formulas(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct kernel_rng rng = {17};
    float x[N], w[N], y[N];
    double squares = 0;
    kernel_fill(&rng, INPUTS_PLAIN, x, N);
    kernel_fill(&rng, INPUTS_PLAIN, w, N);
    for (int i = 0; i < N; i++)
        squares += (double)x[i] * x[i];
    FOR_SETS(k) {
        k->rms_norm(y, x, w, N, 0.01f);
        for (int i = 0; i < N; i++)
            assert_near(k->name, "rms_norm", y[i], w[i] * x[i] / sqrt(squares / N + 0.01), 1e-6);
        memcpy(y, x, sizeof y);
        k->l2_norm(y, N, 0.01f);
        for (int i = 0; i < N; i++)
            assert_near(k->name, "l2_norm", y[i], x[i] / sqrt(squares + 0.01), 1e-7);
        assert_near(k->name, "sum_squares", k->sum_squares(x, N), squares, 1e-4);
    }
}

static void softmax_follows_its_formula(void **state)
{
    (void)state;
    enum { N = 777 };
    struct kernel_rng rng = {19};
    float x[N], y[N];
    double top = -INFINITY, sum = 0;
    kernel_fill(&rng, INPUTS_PLAIN, x, N);
    for (int i = 0; i < N; i++)
        top = fmax(top, 30.0 * x[i]);
    for (int i = 0; i < N; i++)
        sum += exp(30.0 * x[i] - top);
    FOR_SETS(k) {
        memcpy(y, x, sizeof y);
        k->softmax(y, N, 30.0f);
        for (int i = 0; i < N; i++)
            assert_near(k->name, "softmax", y[i], exp(30.0 * x[i] - top) / sum, 1e-6);
        y[0] = 5.0f;
        k->softmax(y, 1, 3.0f);
        assert_same(k->name, "softmax of one", 0, y[0], 1.0f);
    }
}

static void situ_and_decay_follow_their_formulas(void **state)
{
    (void)state;
    enum { N = 200 };
    float g[N], u[N], y[N], bias[N];
    for (int i = 0; i < N; i++) {
        g[i] = (float)(i - N / 2) * 0.25f;
        u[i] = (float)(i * 37 % N - N / 2) * 0.75f;
        bias[i] = (float)(i % 7) * 0.125f;
    }
    FOR_SETS(k) {
        k->situ_glu(y, g, u, N, 4.0f, 25.0f);
        for (int i = 0; i < N; i++)
            assert_near(k->name, "situ_glu", y[i],
                        4 * tanh(g[i] / 4.0) * sigma(g[i]) * 25 * tanh(u[i] / 25.0), 2e-5);
        k->kda_decay(y, g, bias, 1.5f, -5.0f, N);
        for (int i = 0; i < N; i++)
            assert_near(k->name, "kda_decay", y[i], exp(-5 * sigma(1.5 * ((double)g[i] + bias[i]))),
                        1e-6);
    }
}

/* Small whole numbers, so every step is exact: the history moves, the newest tap is the last. */
static void conv_keeps_its_history(void **state)
{
    (void)state;
    enum { C = 19, TAPS = 4, STEPS = 7 };
    float w[TAPS * C], x[STEPS][C];
    for (int i = 0; i < TAPS * C; i++)
        w[i] = (float)(i % 5 - 2);
    for (int s = 0; s < STEPS; s++)
        for (int c = 0; c < C; c++)
            x[s][c] = (float)((s * 3 + c) % 7 - 3);
    FOR_SETS(k) {
        float history[(TAPS - 1) * C] = {0}, y[C], gate[C];
        for (int s = 0; s < STEPS; s++) {
            memcpy(y, x[s], sizeof y);
            k->conv_silu(y, history, y, w, C, TAPS);
            for (int c = 0; c < C; c++) {
                float sum = 0;
                for (int t = 0; t < TAPS; t++)
                    sum += s + t >= TAPS - 1 ? w[t * C + c] * x[s + t - (TAPS - 1)][c] : 0;
                k->logistic(gate, &sum, 1);
                assert_near(k->name, "conv_silu", y[c], sum * gate[0], 0);
            }
        }
    }
}

/* Dyadic numbers, so every step is exact. */
static void kda_decays_reads_writes_reads(void **state)
{
    (void)state;
    enum { D = 18 };
    float q[D], key[D], v[D], alpha[D], start[D * D];
    double S[D][D], out[D];
    for (int i = 0; i < D; i++) {
        q[i] = (float)(i % 3 - 1);
        key[i] = (float)(i % 4 == 1);
        v[i] = (float)(i % 5 - 2);
        alpha[i] = i % 2 ? 0.5f : 0.25f;
        for (int j = 0; j < D; j++)
            start[i * D + j] = (float)((i * 5 + j * 3) % 9 - 4);
    }
    for (int j = 0; j < D; j++) {
        double read = 0;
        for (int i = 0; i < D; i++) {
            S[i][j] = (double)start[i * D + j] * alpha[i];
            read += S[i][j] * key[i];
        }
        out[j] = 0;
        for (int i = 0; i < D; i++) {
            S[i][j] += key[i] * (0.5 * (v[j] - read));
            out[j] += S[i][j] * (q[i] * 0.25);
        }
    }
    FOR_SETS(k) {
        float got[D * D], o[D];
        memcpy(got, start, sizeof got);
        k->kda_step(got, o, q, key, v, alpha, 0.5f, 0.25f, D);
        for (int i = 0; i < D * D; i++)
            assert_near(k->name, "kda_step state", got[i], S[i / D][i % D], 0);
        for (int j = 0; j < D; j++)
            assert_near(k->name, "kda_step output", o[j], out[j], 0);
    }
}

static void argmax_takes_the_first(void **state)
{
    (void)state;
    float x[50];
    FOR_SETS(k) {
        for (size_t i = 0; i < COUNT(x); i++)
            x[i] = (float)(i % 10);
        assert_int_equal(k->argmax(x, 50), 9);
        x[40] = 9.5f;
        assert_int_equal(k->argmax(x, 50), 40);
        assert_int_equal(k->argmax(x, 40), 9);
        x[3] = NAN;
        assert_int_equal(k->argmax(x, 50), 40);
        assert_int_equal(k->argmax(x + 3, 1), 0);
        for (size_t i = 0; i < COUNT(x); i++)
            x[i] = -INFINITY;
        assert_int_equal(k->argmax(x, 50), 0);
        x[0] = NAN;
        assert_int_equal(k->argmax(x, 50), 1);
        for (size_t i = 0; i < COUNT(x); i++)
            x[i] = i < 20 ? -0.0f : 0.0f;
        assert_int_equal(k->argmax(x, 50), 0);
        for (size_t i = 0; i < COUNT(x); i++)
            x[i] = NAN;
        assert_int_equal(k->argmax(x, 50), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_follow_their_formulas),
        cmocka_unit_test(softmax_follows_its_formula),
        cmocka_unit_test(situ_and_decay_follow_their_formulas),
        cmocka_unit_test(conv_keeps_its_history),
        cmocka_unit_test(kda_decays_reads_writes_reads),
        cmocka_unit_test(argmax_takes_the_first),
    };
    return cmocka_run_group_tests_name("kernels, formulas", tests, NULL, NULL);
}
