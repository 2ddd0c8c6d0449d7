/* teams.c - see teams.h. */
#include <config.h>

#include "teams.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* libgomp: turns of the wait loop before a thread blocks; about a microsecond, enough to catch the next
 * parallel region when it follows at once. A thread that spins for longer loses the claim of a sleeper
 * to be run first: with 50,000 turns one busy process beside two threads made a token seven times
 * slower, with 1,000 twice, and alone they are as fast (`k3chat bench threads`). */
#define SPIN_TURNS "1000"

void teams_block_when_idle(char **argv)
{
    /* By way of /proc the program would be called "exe" by ps, top and killall. */
    prctl(PR_SET_NAME, PACKAGE_NAME);
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || getenv("KMP_BLOCKTIME"))
        return;
    if (setenv("OMP_WAIT_POLICY", "passive", 1) != 0 || setenv("GOMP_SPINCOUNT", SPIN_TURNS, 1) != 0)
        return;
    execv("/proc/self/exe", argv);
    /* Without /proc the program runs with the library's own policy. */
}
