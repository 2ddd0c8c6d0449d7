/* dispatch.c - which kernel sets this build carries and this CPU can run. */
#include "sets.h"

const struct k3_kernels *k3_kernels_get(enum k3_isa isa)
{
    return isa == K3_ISA_AUTO || isa == K3_ISA_SCALAR ? &k3_kernels_scalar : NULL;
}
