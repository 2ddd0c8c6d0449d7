/* cmd_bench.c - see cmd_bench.h. */
#include <config.h>

#include "cmd_bench.h"

#include <stdio.h>
#include <string.h>

#include "../engine/k3_error.h"
#include "bench_io.h"
#include "bench_kernels.h"
#include "bench_ladder.h"

static const struct {
    const char *name, *help;
    int (*run)(int argc, char **argv);
} benches[] = {
    {"kernels", "every kernel beside the memory-read roof", bench_kernels},
    {"ladder", "whole runs at several memory budgets", bench_ladder},
    {"threads", "whole runs by number of compute threads", bench_threads},
    {"io", "the disk's own rate, as the program reads", bench_io},
};
#define N_BENCHES (sizeof benches / sizeof *benches)

static void help(FILE *out)
{
    fputs("Usage: k3chat bench WHAT [OPTION]...\n\n", out);
    for (size_t i = 0; i < N_BENCHES; i++)
        fprintf(out, "  %-10s %s\n", benches[i].name, benches[i].help);
    fputs("\n'k3chat bench WHAT --help' shows the options.\n", out);
}

int cmd_bench(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        help(stdout);
        return K3_OK;
    }
    for (size_t i = 0; argc > 1 && i < N_BENCHES; i++)
        if (strcmp(argv[1], benches[i].name) == 0)
            return benches[i].run(argc - 1, argv + 1);
    if (argc > 1)
        fprintf(stderr, "k3chat bench: unknown measurement '%s'\n", argv[1]);
    help(stderr);
    return K3_USAGE;
}
