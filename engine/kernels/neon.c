/* neon.c - the AArch64 NEON set. */
#include "v16_neon.h"

#include "set.h"
#include "vmath.h"

#include "gemm.h"

#include "columns.h"
#include "elements.h"

K3_KERNEL_TABLE(k3_kernels_neon, "neon");
