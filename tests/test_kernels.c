/* test_kernels.c - the numeric contract: the scalar set against the rules themselves, every other
 * set against the scalar one, byte for byte. test_kernels_formulas.c has the formulas, and
 * test_kernels_math.c the math functions. */
#include <config.h>

#include <jansson.h>
#include <pthread.h>

#include "kernel_check.h"

static void *need(size_t bytes)
{
    void *p = calloc(bytes + 1, 1);
    assert_non_null(p);
    return p;
}

/* ---- all sets alike ------------------------------------------------------------------------ */

struct results {
    float *values;
    size_t n, room, at;
    const char *set;
};

static void record(void *ud, const char *kernel, const char *shape, const float *out, size_t n)
{
    (void)kernel, (void)shape;
    struct results *r = ud;
    if (r->n + n > r->room) {
        r->room = (r->room + n) * 2;
        r->values = realloc(r->values, r->room * sizeof *r->values);
        assert_non_null(r->values);
    }
    memcpy(r->values + r->n, out, n * sizeof *out);
    r->n += n;
}

static void compare(void *ud, const char *kernel, const char *shape, const float *out, size_t n)
{
    struct results *r = ud;
    char what[160];
    snprintf(what, sizeof what, "%s %s", kernel, shape);
    assert_true(r->at + n <= r->n);
    for (size_t i = 0; i < n; i++)
        assert_same(r->set, what, i, out[i], r->values[r->at + i]);
    r->at += n;
}

static void sets_equal_scalar(void **state)
{
    (void)state;
    struct results r = {.n = 0};
    kernel_cases_run(k3_kernels_get(K3_ISA_SCALAR), record, &r);
    assert_true(r.n > 1000000);
    FOR_SETS(k) {
        r.at = 0;
        r.set = k->name;
        kernel_cases_run(k, compare, &r);
        assert_int_equal(r.at, r.n);
    }
    free(r.values);
}

static void dispatch(void **state)
{
    (void)state;
    assert_string_equal(k3_kernels_get(K3_ISA_SCALAR)->name, "scalar");
    const struct k3_kernels *best = k3_kernels_get(K3_ISA_AUTO);
    assert_non_null(best);
    const struct k3_kernels *last = NULL;
    FOR_SETS(k)
        last = k;
    assert_ptr_equal(best, last);
}

/* ---- the rules of sums ------------------------------------------------------------------------ */

static float tree(const float l[16])
{
    return (((l[0] + l[8]) + (l[4] + l[12])) + ((l[2] + l[10]) + (l[6] + l[14]))) +
           (((l[1] + l[9]) + (l[5] + l[13])) + ((l[3] + l[11]) + (l[7] + l[15])));
}

static void lanes_fold_in_a_fixed_tree(void **state)
{
    (void)state;
    struct kernel_rng rng = {7};
    float x[16], one[16];
    for (int round = 0; round < 1000; round++) {
        kernel_fill(&rng, INPUTS_PLAIN, x, 16);
        for (int i = 0; i < 16; i++) {
            one[i] = 1.0f;
            x[i] *= round % 2 ? 1.0f : (float)(1 << i);
        }
        FOR_SETS(k) {
            float y[2];
            assert_same(k->name, "dot", 0, k->dot(x, one, 16), tree(x));
            k->gemm_f32(y, 1, x, 1, 16, one, 16, 1);
            assert_same(k->name, "gemm_f32", 0, y[0], tree(x));
        }
    }
}

/* Lane j sees the elements j, j + 16, j + 32 in this order: 2^24 + 1 - 2^24 is 0 and not 1. */
static void lanes_take_rising_order(void **state)
{
    (void)state;
    float x[48], one[48];
    for (int i = 0; i < 48; i++)
        one[i] = 1.0f;
    for (int lane = 0; lane < 16; lane++) {
        memset(x, 0, sizeof x);
        x[lane] = 0x1p24f;
        x[lane + 16] = 1.0f;
        x[lane + 32] = -0x1p24f;
        FOR_SETS(k)
            assert_same(k->name, "rising", (size_t)lane, k->dot(x, one, 48), 0.0f);
        x[lane + 16] = -0x1p24f;
        x[lane + 32] = 1.0f;
        FOR_SETS(k)
            assert_same(k->name, "other order", (size_t)lane, k->dot(x, one, 48), 1.0f);
    }
}

/* (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 when fused and 0 when the product is rounded first. */
static void products_are_fused(void **state)
{
    (void)state;
    const float a = 0x1.001p0f, minus = -0x1.002p0f, w[2] = {minus, a}, x[2] = {1.0f, a};
    const float *rows[2] = {&w[0], &w[1]};
    float lanes_w[32] = {0}, lanes_x[32] = {0}, y[2];
    lanes_w[3] = minus, lanes_x[3] = 1.0f, lanes_w[19] = a, lanes_x[19] = a;
    FOR_SETS(k) {
        assert_same(k->name, "dot", 0, k->dot(lanes_w, lanes_x, 32), 0x1p-24f);
        k->gemm_f32(y, 1, lanes_w, 1, 32, lanes_x, 32, 1);
        assert_same(k->name, "gemm_f32", 0, y[0], 0x1p-24f);
        k->gemm_t_f32(y, 1, w, 1, 2, 1, x, 2, 1);
        assert_same(k->name, "gemm_t_f32", 0, y[0], 0x1p-24f);
        k->weighted_sum(y, x, rows, 2, 1);
        assert_same(k->name, "weighted_sum", 0, y[0], 0x1p-24f);
    }
}

/* Products that vanish leave -0 in every lane; lanes that a short last step does not reach must keep
 * it, for adding +0 to them would make the sum +0. */
static void zero_keeps_its_sign(void **state)
{
    (void)state;
    float w[40], x[6 * 40], y[6];
    uint16_t half[40];
    for (int i = 0; i < 240; i++)
        x[i] = 0x1p-149f;
    for (int i = 0; i < 40; i++) {
        w[i] = -0x1p-133f; /* BF16's smallest */
        half[i] = 0x8001u;
    }
    FOR_SETS(k)
        for (size_t n = 1; n <= 40; n++) {
            const float want = n < 16 ? 0.0f : -0.0f;
            assert_same(k->name, "dot", n, k->dot(w, x, n), want);
            for (size_t tokens = 1; tokens <= 6; tokens++) {
                k->gemm_f32(y, 1, w, 1, n, x, 40, tokens);
                assert_same(k->name, "gemm_f32", n, y[tokens - 1], want);
                k->gemm_bf16(y, 1, half, 1, n, x, 40, tokens);
                assert_same(k->name, "gemm_bf16", n, y[tokens - 1], want);
            }
        }
}

static void columns_take_rising_order(void **state)
{
    (void)state;
    float w[3][20], y[20];
    const float x[3] = {1.0f, 1.0f, 1.0f}, *rows[3] = {w[0], w[1], w[2]};
    for (int c = 0; c < 20; c++) {
        w[0][c] = 0x1p24f;
        w[1][c] = c % 2 ? 1.0f : -0x1p24f;
        w[2][c] = c % 2 ? -0x1p24f : 1.0f;
    }
    FOR_SETS(k) {
        k->gemm_t_f32(y, 20, w, 20, 3, 20, x, 3, 1);
        for (size_t c = 0; c < 20; c++)
            assert_same(k->name, "gemm_t_f32", c, y[c], c % 2 ? 0.0f : 1.0f);
        k->weighted_sum(y, x, rows, 3, 20);
        for (size_t c = 0; c < 20; c++)
            assert_same(k->name, "weighted_sum", c, y[c], c % 2 ? 0.0f : 1.0f);
    }
}

/* ---- cut at will ---------------------------------------------------------------------------- */

/* A product in one call and cut into single tokens and uneven runs of rows. */
static void cutting_changes_nothing(void **state)
{
    (void)state;
    enum { ROWS = 37, COLS = 1184, TOKENS = 70 };
    struct kernel_rng rng = {11};
    uint8_t *w = need(ROWS * COLS * 4), *scale = need(ROWS * COLS / 32);
    float *x = need(TOKENS * COLS * 4), *all = need(TOKENS * ROWS * 4), *cut = need(ROWS * 4);
    kernel_fill(&rng, INPUTS_PLAIN, x, TOKENS * COLS);
    for (size_t i = 0; i < ROWS * COLS; i++) { /* BF16 and F32 of moderate size */
        const uint32_t r = (uint32_t)kernel_random(&rng);
        memcpy(w + 4 * i, &(uint32_t){(r & 0x83ff83ffu) | 0x3c003c00u}, 4);
    }
    for (size_t i = 0; i < ROWS * COLS / 32; i++)
        scale[i] = (uint8_t)(120 + kernel_random(&rng) % 8);
    FOR_SETS(k)
        for (int f = 0; f < 3; f++)
            for (size_t tokens = 1; tokens <= TOKENS; tokens += tokens < 20 ? 1 : 25) {
                const size_t bytes = f == 0 ? COLS * 4 : f == 1 ? COLS * 2 : COLS / 2;
                static const size_t edges[] = {0, 1, 4, 21, 22, 37};
                if (f < 2)
                    (f ? k->gemm_bf16 : k->gemm_f32)(all, ROWS, w, ROWS, COLS, x, COLS, tokens);
                else
                    k->gemm_mxfp4(all, ROWS, w, scale, ROWS, COLS, x, COLS, tokens);
                for (size_t t = 0; t < tokens; t++) {
                    for (size_t e = 0; e + 1 < COUNT(edges); e++) {
                        const size_t r = edges[e], n = edges[e + 1] - r;
                        const float *xt = x + t * COLS;
                        if (f < 2)
                            (f ? k->gemm_bf16 : k->gemm_f32)(cut + r, ROWS, w + r * bytes, n, COLS,
                                                             xt, COLS, 1);
                        else
                            k->gemm_mxfp4(cut + r, ROWS, w + r * bytes, scale + r * (COLS / 32), n,
                                          COLS, xt, COLS, 1);
                    }
                    for (size_t r = 0; r < ROWS; r++)
                        assert_same(k->name, "cut", r, cut[r], all[t * ROWS + r]);
                }
            }
    free(w), free(scale), free(x), free(all), free(cut);
}

/* ---- formats ---------------------------------------------------------------------------------- */

static const double e2m1[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};

/* Every nibble at every scale whose products are all finite (6 x 2^125 is the last), through unit
 * vectors. */
static void mxfp4_is_exact(void **state)
{
    (void)state;
    enum { GROUPS = 253 };
    uint8_t packed[GROUPS * 16], scale[GROUPS];
    float unit[32 * 32] = {0}, *y = need(32 * GROUPS * sizeof *y);
    for (size_t g = 0; g < GROUPS; g++) {
        scale[g] = (uint8_t)g;
        for (size_t b = 0; b < 16; b++) /* element 2b is nibble b, element 2b + 1 is 15 - b */
            packed[g * 16 + b] = (uint8_t)(b | (15 - b) << 4);
    }
    for (size_t t = 0; t < 32; t++)
        unit[t * 32 + t] = 1.0f;
    FOR_SETS(k) {
        k->gemm_mxfp4(y, GROUPS, packed, scale, GROUPS, 32, unit, 32, 32);
        for (size_t t = 0; t < 32; t++)
            for (size_t g = 0; g < GROUPS; g++) {
                const double v = e2m1[t % 2 ? 15 - t / 2 : t / 2];
                const float want = (float)ldexp(v, (int)g - 127);
                /* From 2^126 on, 4 and 6 overflow, and 0 times infinity spoils the group. */
                if (g < 253 && y[t * GROUPS + g] != want)
                    fail_msg("%s: code %zu, scale %zu: %a instead of %a", k->name, t, g,
                             (double)y[t * GROUPS + g], (double)want);
            }
    }
    free(y);
}

/* Compressed weights give the bits of the same weights as F32. */
static void formats_agree(void **state)
{
    (void)state;
    enum { ROWS = 19, COLS = 3584, TOKENS = 5 };
    struct kernel_rng rng = {13};
    uint8_t *packed = need(ROWS * COLS / 2), *scale = need(ROWS * COLS / 32);
    uint16_t *half = need(ROWS * COLS * 2);
    float *plain = need(ROWS * COLS * 4), *wide = need(ROWS * COLS * 4);
    float *x = need(TOKENS * COLS * 4), *y = need(TOKENS * ROWS * 4), *z = need(TOKENS * ROWS * 4);
    kernel_fill(&rng, INPUTS_PLAIN, x, TOKENS * COLS);
    for (size_t i = 0; i < ROWS * COLS / 2; i++)
        packed[i] = (uint8_t)kernel_random(&rng);
    for (size_t i = 0; i < ROWS * COLS / 32; i++)
        scale[i] = (uint8_t)(kernel_random(&rng) % 135);
    for (size_t i = 0; i < ROWS * COLS; i++) {
        const unsigned nibble = packed[i / 2] >> (i % 2 * 4) & 15u;
        plain[i] = (float)ldexp(e2m1[nibble], scale[i / 32] - 127);
        half[i] = (uint16_t)(kernel_random(&rng) & 0xbfffu);
        const uint32_t bits = (uint32_t)half[i] << 16;
        memcpy(&wide[i], &bits, sizeof bits);
    }
    FOR_SETS(k) {
        k->gemm_mxfp4(y, ROWS, packed, scale, ROWS, COLS, x, COLS, TOKENS);
        k->gemm_f32(z, ROWS, plain, ROWS, COLS, x, COLS, TOKENS);
        for (size_t i = 0; i < TOKENS * ROWS; i++)
            assert_same(k->name, "MXFP4 and F32", i, y[i], z[i]);
        k->gemm_bf16(y, ROWS, half, ROWS, COLS, x, COLS, TOKENS);
        k->gemm_f32(z, ROWS, wide, ROWS, COLS, x, COLS, TOKENS);
        for (size_t i = 0; i < TOKENS * ROWS; i++)
            assert_same(k->name, "BF16 and F32", i, y[i], z[i]);
    }
    free(packed), free(scale), free(half), free(plain), free(wide), free(x), free(y), free(z);
}

/* The numbers of an array in the file, or a failed test. */
static double *numbers(const json_t *root, const char *key, size_t want)
{
    const json_t *list = json_object_get(json_object_get(root, key), "data");
    /* rows of rows or one flat list */
    const json_t *first = json_array_get(list, 0);
    const size_t width = json_is_array(first) ? json_array_size(first) : 1;
    double *out = need(want * sizeof *out);
    assert_int_equal(json_array_size(list) * width, want);
    for (size_t i = 0; i < want; i++) {
        const json_t *v = json_array_get(list, i / width);
        out[i] = json_number_value(json_is_array(first) ? json_array_get(v, i % width) : v);
    }
    return out;
}

/* Bytes of the released checkpoint: a row of 3584 is 112 rows of one group, so 32 unit vectors give
 * every weight. */
static void released_bytes_decode(void **state)
{
    (void)state;
    enum { ROWS = 64, COLS = 3584, GROUPS = ROWS * COLS / 32 };
    char path[4096];
    const char *shared = getenv("K3_SHARED");
    snprintf(path, sizeof path, "%s/oracle/real-mxfp4.json", shared ? shared : "");
    json_t *root = json_load_file(path, 0, NULL);
    if (!root) {
        print_message("# no %s: released bytes not checked\n", path);
        skip();
    }
    double *packed = numbers(root, "packed", ROWS * COLS / 2);
    double *scales = numbers(root, "scales", GROUPS), *want = numbers(root, "expected", ROWS * COLS);
    json_decref(root);
    uint8_t *w = need(ROWS * COLS / 2), *s = need(GROUPS);
    for (size_t i = 0; i < ROWS * COLS / 2; i++)
        w[i] = (uint8_t)packed[i];
    for (size_t i = 0; i < GROUPS; i++)
        s[i] = (uint8_t)scales[i];
    float unit[32 * 32] = {0}, *y = need(32 * GROUPS * sizeof *y);
    for (size_t t = 0; t < 32; t++)
        unit[t * 32 + t] = 1.0f;
    FOR_SETS(k)
        for (size_t tokens = 1; tokens <= 32; tokens += 31) { /* directly and widened */
            k->gemm_mxfp4(y, GROUPS, w, s, GROUPS, 32, unit, 32, tokens);
            for (size_t i = 0; i < ROWS * COLS; i++)
                if (i % 32 < tokens)
                    assert_true((double)y[i % 32 * GROUPS + i / 32] == want[i]);
        }
    free(packed), free(scales), free(want), free(w), free(s), free(y);
}

/* ---- stack ----------------------------------------------------------------------------------- */

/* Without optimisation every inlined body has variables of its own, and sanitizers put guards between
 * them. */
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
#define FRAMES_AS_BUILT 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FRAMES_AS_BUILT 0
#endif
#endif
#ifndef FRAMES_AS_BUILT
#define FRAMES_AS_BUILT 1
#endif

enum { STACK_BYTES = 4 << 20, DEEP_ROWS = 64, DEEP_COLS = 1088, DEEP_TOKENS = 64 };

/* Products that fill whatever a product puts on its stack, or none at all. */
struct deep {
    const struct k3_kernels *k; /* NULL = none */
    float *x, *y;
    uint8_t *w, *s;
};

static void *multiply(void *arg)
{
    const struct deep *d = arg;
    if (!d->k)
        return NULL;
    d->k->gemm_f32(d->y, DEEP_ROWS, d->w, DEEP_ROWS, DEEP_COLS, d->x, DEEP_COLS, DEEP_TOKENS);
    d->k->gemm_bf16(d->y, DEEP_ROWS, d->w, DEEP_ROWS, DEEP_COLS, d->x, DEEP_COLS, DEEP_TOKENS);
    d->k->gemm_mxfp4(d->y, DEEP_ROWS, d->w, d->s, DEEP_ROWS, DEEP_COLS, d->x, DEEP_COLS,
                     DEEP_TOKENS);
    d->k->gemm_t_f32(d->y, DEEP_COLS, d->w, DEEP_COLS, DEEP_ROWS, DEEP_COLS, d->x, DEEP_COLS, 7);
    return NULL;
}

/* Bytes of a thread's stack, counted from above, that are not as they were. */
static size_t depth_of(uint8_t *stack, struct deep *d)
{
    pthread_attr_t attr;
    pthread_t thread;
    memset(stack, 0xa5, STACK_BYTES);
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstack(&attr, stack, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attr, multiply, d), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
    size_t at = 0;
    while (at < STACK_BYTES && stack[at] == 0xa5)
        at++;
    return STACK_BYTES - at;
}

/* The memory plan counts on it, for every thread. */
static void products_stay_within_their_stack(void **state)
{
    (void)state;
    if (!FRAMES_AS_BUILT)
        skip();
    struct deep d = {.x = need(DEEP_TOKENS * DEEP_COLS * sizeof(float)),
                     .y = need(DEEP_TOKENS * DEEP_COLS * sizeof(float)),
                     .w = need(DEEP_ROWS * DEEP_COLS * sizeof(float)),
                     .s = need(DEEP_ROWS * DEEP_COLS / 32)};
    uint8_t *stack = aligned_alloc(65536, STACK_BYTES);
    assert_non_null(stack);
    const size_t without = depth_of(stack, &d);
    FOR_SETS(set) {
        d.k = set;
        const size_t depth = depth_of(stack, &d) - without;
        if (depth > K3_KERNEL_STACK_BYTES)
            fail_msg("%s: %zu bytes of stack, planned are %u", set->name, depth,
                     K3_KERNEL_STACK_BYTES);
    }
    free(stack), free(d.x), free(d.y), free(d.w), free(d.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dispatch),
        cmocka_unit_test(lanes_fold_in_a_fixed_tree),
        cmocka_unit_test(lanes_take_rising_order),
        cmocka_unit_test(products_are_fused),
        cmocka_unit_test(zero_keeps_its_sign),
        cmocka_unit_test(columns_take_rising_order),
        cmocka_unit_test(cutting_changes_nothing),
        cmocka_unit_test(mxfp4_is_exact),
        cmocka_unit_test(formats_agree),
        cmocka_unit_test(released_bytes_decode),
        cmocka_unit_test(sets_equal_scalar),
        cmocka_unit_test(products_stay_within_their_stack),
    };
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
