/* avx512.c - the AVX-512 set (F, BW, DQ, VL). */
#include "v16_avx512.h"

#include "set.h"
#include "vmath.h"

#include "gemm.h"

#include "columns.h"
#include "elements.h"

K3_KERNEL_TABLE(k3_kernels_avx512, "avx512");
