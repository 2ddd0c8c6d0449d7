/* restore.h - the terminal restored on every path, and signals turned into bytes on a pipe.
 *
 * Signals that end the program with dignity (TERM, HUP, INT) and those that report (WINCH, TSTP,
 * CONT) only write to the pipe; a second one that asks to end, and any crash, restores the terminal
 * in the handler with nothing but write() and tcsetattr(), then lets the signal do its work. */
#ifndef K3CHAT_UI_RESTORE_H
#define K3CHAT_UI_RESTORE_H

#include <stdbool.h>

#include "../engine/k3_error.h"

/* Remembers the modes of stdin's terminal, if it is one, and installs the handlers. `interrupts`:
 * SIGINT is reported (SCREEN_INTERRUPT) and does not ask to end. */
bool restore_install(bool interrupts, struct k3_error *err);
void restore_remove(void); /* puts the former handlers back, only a hangup stays ignored */
void restore_set_bytes(const char *s); /* what to write to the terminal in an emergency */
void restore_arm(bool on);            /* is there something to restore now? */
void restore_tty(void);               /* the remembered modes, now */
void restore_now(void);               /* all of it: what the handlers do in an emergency */
void restore_stop(void);              /* stop the process group as the terminal's Ctrl+Z does */

#endif
