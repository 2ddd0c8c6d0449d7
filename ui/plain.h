/* plain.h - the chat as lines of text: no screen, no boxes, nothing that moves. For screen readers,
 * terminals without cursor addressing, and pipes. The terminal's own line editing is used. */
#ifndef K3CHAT_UI_PLAIN_H
#define K3CHAT_UI_PLAIN_H

#include "ui.h"

/* As ui_run(). */
int plain_run(struct session *s, const struct ui_config *cfg, struct k3_error *err);

#endif
