/* teams.c - see teams.h. */
#include <config.h>

#include "teams.h"

#include <stdlib.h>
#include <unistd.h>

/* libgomp: turns of the wait loop before a thread blocks; some ten microseconds, enough to catch the
 * next parallel region when it follows at once (measured with `k3chat bench threads`), and nothing
 * beside the milliseconds of a read. */
#define SPIN_TURNS "50000"

void teams_block_when_idle(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || getenv("KMP_BLOCKTIME"))
        return;
    if (setenv("OMP_WAIT_POLICY", "passive", 1) != 0 || setenv("GOMP_SPINCOUNT", SPIN_TURNS, 1) != 0)
        return;
    execv("/proc/self/exe", argv);
    /* Without /proc the program runs with the library's own policy. */
}
