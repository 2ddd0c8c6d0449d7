/* helper.h - commands that a program of their own does: k3chat-files, for fetch and verify.
 *
 * They need libcurl and libcrypto, which would cost every chat start-up time and memory out of its
 * budget (docs/architecture.md has the figures). */
#ifndef K3CHAT_HELPER_H
#define K3CHAT_HELPER_H

/* Becomes k3chat-files with this command line; argv[0] is the command's name. Returns only when there
 * is no such program: an exit status. */
int helper_run(int argc, char **argv);

#endif
