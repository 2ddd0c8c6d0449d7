/* cmd_bench.h - `k3chat bench WHAT`: the measurements, one file each. */
#ifndef CMD_BENCH_H
#define CMD_BENCH_H

/* argv[0] is "bench", argv[1] the measurement. Returns an exit status. */
int cmd_bench(int argc, char **argv);

#endif
