/* bench_kernel_cases.h - what `k3chat bench kernels` measures: one table of kernels and sizes. */
#ifndef BENCH_KERNEL_CASES_H
#define BENCH_KERNEL_CASES_H

#include "../engine/kernels/kernels.h"

#define BENCH_MOST_BATCH 64u
#define BENCH_WIDEST 12288u /* most columns of a product */
#define BENCH_HEADS 96u     /* KDA and MLA heads */

/* Memory of one run. Weights are read as a ring far larger than any cache. */
struct bench_data {
    const uint8_t *weights; /* sane as BF16 and as F32 */
    size_t weights_bytes;
    const uint8_t *scales; /* E8M0, as many as the largest MXFP4 matrix needs */
    const float *x;        /* [BENCH_MOST_BATCH][BENCH_WIDEST] in (-1, 1) */
    float *y;              /* output of products, written by all threads, apart */
    float *state;          /* KDA: [2][heads][128][128] */
    float *own;            /* scratch: `own_floats` for each thread */
    size_t own_floats;
};

struct bench_case;

/* One unit of work, `index` counting up: what `thread` of `threads` does of it. */
struct bench_unit {
    const struct k3_kernels *k;
    const struct bench_data *data;
    const struct bench_case *what;
    size_t index, rows, batch;
    unsigned thread, threads;
};

struct bench_case {
    const char *kernel, *use; /* the table's name for it; what the model does with it */
    size_t rows, cols;
    double weight_bits;       /* per element of [rows, cols], read once per unit */
    double bytes_per_token;   /* besides: activations and state read and written */
    double flops_per_token;   /* 0 = not counted */
    bool whole;               /* rows must not be cut to save time */
    void (*run)(const struct bench_unit *u);
};

extern const struct bench_case bench_cases[];
extern const size_t bench_case_count;

size_t bench_own_floats(void);    /* scratch that one thread needs */
size_t bench_output_floats(void); /* size of y */

#endif
