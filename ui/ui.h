/* ui.h - the full-screen front end. Knows src/session.h and no tensor. */
#ifndef K3CHAT_UI_H
#define K3CHAT_UI_H

#include "../src/run_config.h"
#include "../src/session.h"

/* Runs the screen until the person leaves. The terminal is restored on every path. Returns an exit
 * status; a message for stderr (after the terminal is back) stands in err when it is not 0. */
int ui_run(struct session *s, const struct ui_config *cfg, struct k3_error *err);

/* Is what only the screen can judge (the profile's keys) understood? False with a message
 * (K3_USAGE). To be asked before ui_run(). */
bool ui_check(const struct ui_config *cfg, struct k3_error *err);

/* Can this terminal carry the screen? False with a message that points to --batch: no terminal on
 * stdin/stdout, TERM unset or dumb, no cursor addressing. */
bool ui_terminal_ok(struct k3_error *err);

#endif
