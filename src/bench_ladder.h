/* bench_ladder.h - `k3chat bench ladder` and `k3chat bench threads`: whole runs compared. */
#ifndef BENCH_LADDER_H
#define BENCH_LADDER_H

/* argv[0] is the command's name. ladder: token time and bytes by budget, ids compared with the first
 * run, peak RSS compared with the budget. threads: token time by thread count, alone and beside one
 * busy neighbour. Both return an exit status (enum k3_status); 1 when ids differ or a peak exceeds
 * its budget. */
int bench_ladder(int argc, char **argv);
int bench_threads(int argc, char **argv);

#endif
