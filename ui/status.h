/* status.h - the title line and the status line: what matters most, in the room there is. */
#ifndef K3CHAT_UI_STATUS_H
#define K3CHAT_UI_STATUS_H

#include "grid.h"
#include "model.h"

/* One line that always works: phase in one word first, then what matters most in that phase;
 * what has no room is left out, the least important first. */
void status_draw(const struct ui_model *m, struct grid *g, const struct rect *r);
void title_draw(const struct ui_model *m, struct grid *g, const struct rect *r);
/* The window's title: phase and progress, UTF-8. */
void status_window_title(const struct ui_model *m, char *buf, size_t size);

#endif
