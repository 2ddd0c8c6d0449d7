/* set.h - what every kernel set's file shares: helpers of the bodies and the table's shape. */
#ifndef K3_SET_H
#define K3_SET_H

#include "sets.h"

/* The bodies take shapes as constants, so they must melt into their callers, loops unrolled. */
#define K3_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define K3_UNROLL _Pragma("clang loop unroll(full)")
#else
#define K3_UNROLL _Pragma("GCC unroll 32")
#endif

static inline size_t k3_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A set's table, made of the static functions of the same names. */
#define K3_KERNEL_TABLE(variable, set_name)                                                        \
    const struct k3_kernels variable = {                                                           \
        .name = set_name,                                                                          \
        .gemm_f32 = gemm_f32,                                                                      \
        .gemm_bf16 = gemm_bf16,                                                                    \
        .gemm_mxfp4 = gemm_mxfp4,                                                                  \
        .gemm_t_f32 = gemm_t_f32,                                                                  \
        .gemm_t_bf16 = gemm_t_bf16,                                                                \
        .weighted_sum = weighted_sum,                                                              \
        .dot = dot,                                                                                \
        .sum_squares = sum_squares,                                                                \
        .rms_norm = rms_norm,                                                                      \
        .l2_norm = l2_norm,                                                                        \
        .conv_silu = conv_silu,                                                                    \
        .kda_decay = kda_decay,                                                                    \
        .kda_step = kda_step,                                                                      \
        .softmax = softmax,                                                                        \
        .situ_glu = situ_glu,                                                                      \
        .logistic = logistic,                                                                      \
        .mul_logistic = mul_logistic,                                                              \
        .exp = exp_all,                                                                            \
        .tanh = tanh_all,                                                                          \
        .add = add,                                                                                \
        .widen_bf16 = widen_bf16,                                                                  \
        .argmax = argmax,                                                                          \
    }

#endif
