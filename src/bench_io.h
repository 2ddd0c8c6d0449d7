/* bench_io.h - k3chat bench io: the disk's own rate, through the program's own readers. */
#ifndef BENCH_IO_H
#define BENCH_IO_H

/* `k3chat bench io --model DIR | --file F [--tsv]`; argv[0] is the command's name. Prints the rate
 * by block size and requests in flight. Returns an exit status of k3_error.h. */
int bench_io(int argc, char **argv);

#endif
