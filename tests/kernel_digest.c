/* kernel_digest.c - one line per kernel: a digest of its outputs over all of kernel_cases.h.
 *
 * Usage: kernel_digest SET, SET being auto, scalar, avx2, avx512 or neon. The lines are the same for
 * every set on every architecture. Needs nothing but C, so it can be built by a cross compiler and
 * run by an emulator (make check-aarch64). */
#include <stdio.h>
#include <string.h>

#include "kernel_cases.h"

enum { NAMES = 40 };

struct digest {
    const char *name;
    uint64_t hash;
    unsigned long results;
};

struct digests {
    struct digest list[NAMES];
    size_t count;
};

/* FNV-1a over the little-endian bytes; any NaN counts as one. */
static uint64_t hash_floats(uint64_t h, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], sizeof u);
        if (x[i] != x[i])
            u = 0x7fc00000u;
        for (int b = 0; b < 32; b += 8)
            h = (h ^ ((u >> b) & 255u)) * 0x100000001b3u;
    }
    return h;
}

static void take(void *ud, const char *kernel, const char *shape, const float *out, size_t n)
{
    (void)shape;
    struct digests *all = ud;
    size_t i = 0;
    while (i < all->count && strcmp(all->list[i].name, kernel) != 0)
        i++;
    if (i == NAMES)
        return;
    if (i == all->count)
        all->list[all->count++] = (struct digest){kernel, 0xcbf29ce484222325u, 0};
    all->list[i].hash = hash_floats(all->list[i].hash, out, n);
    all->list[i].results++;
}

int main(int argc, char **argv)
{
    static const char *const sets[] = {"auto", "scalar", "avx2", "avx512", "neon"};
    enum { SETS = sizeof sets / sizeof *sets };
    size_t isa = 0;
    while (argc == 2 && isa < SETS && strcmp(argv[1], sets[isa]) != 0)
        isa++;
    if (argc != 2 || isa == SETS) {
        fprintf(stderr, "usage: kernel_digest auto|scalar|avx2|avx512|neon\n");
        return 2;
    }
    const struct k3_kernels *k = k3_kernels_get((enum k3_isa)isa);
    if (!k) {
        fprintf(stderr, "kernel_digest: this CPU or build has no set %s\n", argv[1]);
        return 1;
    }
    struct digests all = {.count = 0};
    kernel_cases_run(k, take, &all);
    for (size_t i = 0; i < all.count; i++)
        printf("%-18s %5lu results  %016llx\n", all.list[i].name, all.list[i].results,
               (unsigned long long)all.list[i].hash);
    return 0;
}
