/* talk_find.h - finding text, letters of either case alike (ASCII). */
#ifndef K3CHAT_UI_TALK_FIND_H
#define K3CHAT_UI_TALK_FIND_H

#include "talk_view.h"

#define FIND_NONE SIZE_MAX

/* First place at or after `from`, last place that starts before `before`; FIND_NONE = none. */
size_t find_first(const char *s, size_t len, const char *what, size_t from);
size_t find_last(const char *s, size_t len, const char *what, size_t before);
/* Marks what of row i is found, after it was drawn in line y of r. */
void find_mark(const char *what, const struct rich *rich, const struct wrapped *w, size_t i,
               struct grid *g, const struct rect *r, int y);
/* Puts the row with that offset of an entry's picture into the window (talk_view.c). */
void talk_view_go(struct talk_view *v, struct talk *t, size_t entry, size_t at);

#endif
