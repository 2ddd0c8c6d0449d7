/* avx2.c - the AVX2 + FMA set. */
#include "v16_avx2.h"

#include "set.h"
#include "vmath.h"

#include "gemm.h"

#include "columns.h"
#include "elements.h"

K3_KERNEL_TABLE(k3_kernels_avx2, "avx2");
