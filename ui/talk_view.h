/* talk_view.h - the window onto the conversation: follow its end, or hold a place in it. */
#ifndef K3CHAT_UI_TALK_VIEW_H
#define K3CHAT_UI_TALK_VIEW_H

#include "talk.h"

struct talk_view {
    bool follow;          /* the end is shown, and stays shown while it grows */
    size_t entry;         /* else: the entry at the top */
    long offset;          /* and the place in its picture, counted from its body */
    bool blank;           /* the row behind that place: the blank one between entries */
    bool open;            /* reasoning shown in full */
    size_t held_entry;    /* where the end was when holding began */
    size_t held_rows;
    char find[128];       /* what is marked; empty = nothing */
    size_t found_entry, found_at; /* the last find: an offset in that entry's picture */
    struct rect area;     /* as drawn last */
    int64_t now;
};

void talk_view_init(struct talk_view *v);
/* Draws into r. Only what is visible is laid out, whatever the length of the conversation. */
void talk_view_draw(struct talk_view *v, struct talk *t, struct grid *g,
                          const struct rect *r);
/* Moves the window by rows (negative = up); reaching the end means following again. */
void talk_view_scroll(struct talk_view *v, struct talk *t, long rows);
void talk_view_top(struct talk_view *v, struct talk *t);
void talk_view_end(struct talk_view *v);
/* Rows that came since the window was held; 0 while following. */
size_t talk_view_new_rows(struct talk_view *v, struct talk *t);
void talk_view_toggle_thinking(struct talk_view *v, struct talk *t);
/* Looks for the next place of `what` (letters of either case) before or after the last find, or
 * from the end, and goes there; false = none. */
bool talk_view_find(struct talk_view *v, struct talk *t, const char *what, bool backwards);
/* Goes to the first place of `what` in message number `index` of the conversation, or to its beginning
 * when it is not seen there (folded thinking); false = there is no such message yet. */
bool talk_view_find_in(struct talk_view *v, struct talk *t, const char *what, int64_t index);
/* An entry was removed at or before the window's place: stay inside. */
void talk_view_clamp(struct talk_view *v, const struct talk *t);

#endif
