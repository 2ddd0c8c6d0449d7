/* chooser.h - the list of saved sessions: to look through, to search in all of them, to open, rename
 * and delete one. Knows the disk through src/saved.h only; what changes it is asked of the caller. */
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

struct chooser_hit {           /* a place where the text was found */
    size_t row, message;       /* message: its number in that session, from 1 */
    char role[12];
    char *excerpt;
};

enum chooser_mode {
    CHOOSER_LIST,
    CHOOSER_HITS,              /* the places of the filter's text in all sessions */
    CHOOSER_DELETE,            /* the chosen session: sure? */
    CHOOSER_RENAME,            /* its new name is being typed */
};

enum chooser_wish { CHOOSER_NOTHING, CHOOSER_OPEN, CHOOSER_DO_DELETE, CHOOSER_DO_RENAME };

struct chooser {
    bool open;
    enum chooser_mode mode;
    struct chooser_row *rows;
    size_t n;
    size_t *shown;             /* rows that fit the filter */
    size_t n_shown, at, top;   /* at: the chosen one of these, or of the hits */
    size_t height;             /* rows on the screen, as drawn last */
    char filter[64];
    char input[SAVED_NAME_CAP]; /* the new name */
    struct chooser_hit *hits;
    size_t n_hits, hits_cap;
    size_t searched;           /* rows searched so far */
};

/* Reads the list; false with a message. */
bool chooser_open(struct chooser *c, struct k3_error *err);
void chooser_close(struct chooser *c); /* frees everything */
/* Reads the list again after a change; filter and place stay. */
bool chooser_reload(struct chooser *c, struct k3_error *err);
/* Looks for `what` in all sessions. */
void chooser_search(struct chooser *c, const char *what);
/* Is there a search that goes on? Then chooser_work() searches one more session. */
bool chooser_searching(const struct chooser *c);
void chooser_work(struct chooser *c);

void chooser_read_row(struct chooser_row *r); /* once: what is not known of it yet */

/* What a key does, and what the caller is asked to do with chooser_name() for it. */
enum chooser_wish chooser_key(struct chooser *c, enum action action, uint32_t key);
const char *chooser_name(const struct chooser *c); /* NULL when there is none under the cursor */
const struct chooser_hit *chooser_hit(const struct chooser *c); /* NULL: not among the hits */
void chooser_draw(struct chooser *c, struct grid *g, const struct rect *r, const char *current,
                  int64_t now);
/* One line for the frame: which keys do what. Returns buf. */
const char *chooser_keys(const struct chooser *c, char *buf, size_t size);

#endif
