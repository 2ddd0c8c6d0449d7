/* sets.h - the tables behind k3_kernels_get(); each stands in the file of its set. */
#ifndef K3_KERNEL_SETS_H
#define K3_KERNEL_SETS_H

#include "kernels.h"

extern const struct k3_kernels k3_kernels_scalar;
extern const struct k3_kernels k3_kernels_avx2;
extern const struct k3_kernels k3_kernels_avx512;
extern const struct k3_kernels k3_kernels_neon;

#endif
