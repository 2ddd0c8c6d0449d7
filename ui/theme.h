/* theme.h - how the inks look on this terminal. The only place that knows colours. */
#ifndef K3CHAT_UI_THEME_H
#define K3CHAT_UI_THEME_H

#include "../src/run_config.h"
#include "grid.h"

/* Call after the terminal has been opened. Uses the terminal's own foreground and background;
 * NO_COLOR, UI_THEME_MONO and terminals without colours get attributes only. */
void theme_init(enum ui_theme theme);
/* Attributes for curses, colour pair included. */
unsigned long theme_attr(enum ink ink);
short theme_pair(enum ink ink);

#endif
