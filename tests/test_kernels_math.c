/* test_kernels_math.c - exp, tanh and the logistic function of every set against libm in double.
 *
 * A grid over the bit patterns of fp32 (all of them with K3_EXHAUSTIVE=1: minutes per set), the
 * special values, and the promise that all sets give the same bits. */
#include <config.h>

#include "kernel_check.h"

enum { BATCH = 4096 };

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static double sigma(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

/* Over all floats the worst are 0.76, 1.48 and 1.07. */
static const struct function {
    const char *name;
    double (*exact)(double x);
    double ulps;
} functions[] = {{"exp", exp, 0.76}, {"logistic", sigma, 1.60}, {"tanh", tanh, 1.08}};

static void apply(const struct k3_kernels *k, size_t f, float *y, const float *x, size_t n)
{
    (f == 0 ? k->exp : f == 1 ? k->logistic : k->tanh)(y, x, n);
}

/* Distance to the exact value in units of the last place of fp32 there. */
static double error_in_ulps(float got, double exact)
{
    const double size = fabs(exact);
    int exponent;
    if (got == (float)exact)
        return 0;
    if (isinf(got) || isinf((float)exact))
        return INFINITY;
    frexp(size, &exponent);
    return fabs(got - exact) / (size < 0x1p-126 ? 0x1p-149 : ldexp(1, exponent - 24));
}

static void check_batch(const struct k3_kernels *k, size_t f, const float *x, const float *y,
                        size_t n, double *worst)
{
    for (size_t i = 0; i < n; i++) {
        if (x[i] != x[i]) {
            assert_int_equal(bits_of(y[i]), 0x7fc00000u);
            continue;
        }
        const double exact = functions[f].exact(x[i]), e = error_in_ulps(y[i], exact);
        if (e > functions[f].ulps || !signbit(y[i]) != !signbit(exact))
            fail_msg("%s, %s(%a): %a, %.3f ulp from %.17g", k->name, functions[f].name,
                     (double)x[i], (double)y[i], e, exact);
        *worst = e > *worst ? e : *worst;
    }
}

/* Every step-th bit pattern; the last batch may be shorter. */
static void check_grid(const struct k3_kernels *k, size_t f, uint64_t step)
{
    const struct k3_kernels *scalar = k3_kernels_get(K3_ISA_SCALAR);
    float x[BATCH], y[BATCH], z[BATCH];
    double worst = 0;
    for (uint64_t u = 0; u <= UINT32_MAX;) {
        size_t n = 0;
        for (; n < BATCH && u <= UINT32_MAX; n++, u += step)
            x[n] = float_of((uint32_t)u);
        apply(k, f, y, x, n);
        if (k == scalar) {
            check_batch(k, f, x, y, n, &worst);
            continue;
        }
        apply(scalar, f, z, x, n);
        assert_memory_equal(y, z, n * sizeof *y);
    }
    if (step == 1 && k == scalar)
        fprintf(stderr, "%s %s: worst error %.4f ulp\n", k->name, functions[f].name, worst);
    else if (step == 1)
        fprintf(stderr, "%s %s: the bits of scalar\n", k->name, functions[f].name);
}

static void grid_within_limits(void **state)
{
    (void)state;
    const uint64_t step = getenv("K3_EXHAUSTIVE") ? 1 : 3001;
    FOR_SETS(k)
        for (size_t f = 0; f < COUNT(functions); f++)
            check_grid(k, f, step);
}

/* Every float near the places where something changes: splits, clamps, over- and underflow. */
static void neighbourhoods_within_limits(void **state)
{
    (void)state;
    static const float places[] = {0x1p-126f, 0.625f,     0.34657359f, 1.0f,      8.3178f,  9.01f,
                                   16.6355f,  17.3287f,   44.0f,       87.33654f, 88.72284f, 89.0f,
                                   103.2789f, 103.97208f, 104.0f,      0x1p-12f,  0x1p-24f,  20.0f};
    float x[BATCH], y[BATCH];
    double worst = 0;
    FOR_SETS(k)
        for (size_t f = 0; f < COUNT(functions); f++)
            for (size_t p = 0; p < 2 * COUNT(places); p++) {
                const uint32_t middle = bits_of(places[p / 2]) | (uint32_t)(p % 2) << 31;
                for (uint32_t i = 0; i < BATCH; i++)
                    x[i] = float_of(middle - BATCH / 2 + i);
                apply(k, f, y, x, BATCH);
                check_batch(k, f, x, y, BATCH, &worst);
            }
}

static void special_values(void **state)
{
    (void)state;
    static const struct {
        float x, exp, logistic, tanh;
    } want[] = {
        {0.0f, 1.0f, 0.5f, 0.0f},
        {-0.0f, 1.0f, 0.5f, -0.0f},
        {INFINITY, INFINITY, 1.0f, 1.0f},
        {-INFINITY, 0.0f, 0.0f, -1.0f},
        {0x1p-149f, 1.0f, 0.5f, 0x1p-149f},
        {-0x1p-149f, 1.0f, 0.5f, -0x1p-149f},
        {0x1.fffffep127f, INFINITY, 1.0f, 1.0f},
        {-0x1.fffffep127f, 0.0f, 0.0f, -1.0f},
    };
    FOR_SETS(k)
        for (size_t i = 0; i < COUNT(want); i++) {
            float y;
            k->exp(&y, &want[i].x, 1);
            assert_int_equal(bits_of(y), bits_of(want[i].exp));
            k->logistic(&y, &want[i].x, 1);
            assert_int_equal(bits_of(y), bits_of(want[i].logistic));
            k->tanh(&y, &want[i].x, 1);
            assert_int_equal(bits_of(y), bits_of(want[i].tanh));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_values),
        cmocka_unit_test(neighbourhoods_within_limits),
        cmocka_unit_test(grid_within_limits),
    };
    return cmocka_run_group_tests_name("kernels, math", tests, NULL, NULL);
}
