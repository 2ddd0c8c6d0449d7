/* bench_kernels.h - `k3chat bench kernels`: every kernel at the released model's sizes. */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

/* argv[0] is the word "kernels"; options: --tsv, --threads N, --isa NAME, --repeat N, --kernel TEXT,
 * --help. Prints a table (or tab-separated values) on stdout: per kernel set, kernel and batch the
 * median GB/s and GFLOP/s beside the memory-read roof and the peak of fused multiply-adds, both
 * measured in the same run with the same threads. Returns an exit status (enum k3_status). */
int bench_kernels(int argc, char **argv);

#endif
