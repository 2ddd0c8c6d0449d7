/* teams.h - makes the OpenMP team block instead of spin while it has nothing to do. */
#ifndef K3CHAT_TEAMS_H
#define K3CHAT_TEAMS_H

/* Spinning threads starve the readers and, beside one busy process, make a step many times slower.
 * The OpenMP libraries read their wait policy from the environment before main(), so this sets it
 * and starts the program again, once. A policy that the user has set is left alone. Returns when
 * nothing is to be done (or the program cannot be started again). */
void teams_block_when_idle(char **argv);

#endif
