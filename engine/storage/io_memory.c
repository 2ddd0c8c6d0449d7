/* io_memory.c - buffers for direct reads, on 2 MiB pages where the system has them. */
#include <config.h>

#include <sys/mman.h>

#include "io.h"

#define HUGE_PAGE (UINT64_C(2) << 20)

uint64_t k3_io_round(uint64_t bytes)
{
    uint64_t unit = bytes >= HUGE_PAGE ? HUGE_PAGE : K3_IO_ALIGN;
    if (bytes > UINT64_MAX - unit)
        return UINT64_MAX;
    return bytes + (unit - bytes % unit) % unit;
}

void *k3_io_alloc(uint64_t bytes)
{
    uint64_t size = k3_io_round(bytes);
    uint64_t slack = size >= HUGE_PAGE ? HUGE_PAGE : 0; /* to find an aligned start */
    if (size == 0 || size > SIZE_MAX - slack)
        return NULL;
    char *p = mmap(NULL, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (slack == 0)
        return p;
    uint64_t skip = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
    if (skip > 0)
        munmap(p, skip);
    if (skip < slack)
        munmap(p + skip + size, slack - skip);
    p += skip;
#ifdef MADV_HUGEPAGE
    /* Refused where the system has none; ordinary pages then do. */
    (void)madvise(p, size, MADV_HUGEPAGE);
#endif
    return p;
}

void k3_io_free(void *p, uint64_t bytes)
{
    if (p)
        munmap(p, k3_io_round(bytes));
}
