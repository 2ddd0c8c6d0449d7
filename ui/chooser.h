/* chooser.h - the list of saved sessions, to look through and to open one. */
#ifndef K3CHAT_UI_CHOOSER_H
#define K3CHAT_UI_CHOOSER_H

#include "../src/saved.h"
#include "grid.h"
#include "keymap.h"

struct chooser_row {
    struct saved_session saved;
    bool read;                 /* the following is known */
    size_t messages;
    char title[256];           /* first words, or why it cannot be read */
    bool damaged;
};

struct chooser {
    bool open;
    struct chooser_row *rows;
    size_t n;
    size_t *shown;             /* rows that fit the filter */
    size_t n_shown, at, top;   /* at: the chosen one of these */
    size_t height;             /* rows on the screen, as drawn last */
    char filter[64];
};

/* Reads the list; false with a message. */
bool chooser_open(struct chooser *c, struct k3_error *err);
void chooser_close(struct chooser *c); /* frees everything */
/* What a key does; true when the session under the cursor is wanted: chooser_name(). */
bool chooser_key(struct chooser *c, enum action action, uint32_t key);
const char *chooser_name(const struct chooser *c); /* NULL when nothing fits the filter */
void chooser_draw(struct chooser *c, struct grid *g, const struct rect *r, const char *current,
                  int64_t now);

#endif
