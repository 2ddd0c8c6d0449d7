/* talk.h - the conversation as the screen keeps it: whole texts, unwrapped, and for each
 * entry the picture that was last made of it. Filled from session events. */
#ifndef K3CHAT_UI_TALK_H
#define K3CHAT_UI_TALK_H

#include "../src/session.h"
#include "rich.h"

enum entry_kind { ENTRY_USER, ENTRY_ASSISTANT, ENTRY_SYSTEM, ENTRY_NOTICE, ENTRY_ERROR };

struct text_buf {
    char *s;
    size_t len, cap;
};
bool text_buf_add(struct text_buf *b, const char *s, size_t len); /* false = memory */

struct entry {
    enum entry_kind kind;
    int64_t index;                /* place in the conversation; -1 = not a part of it */
    struct text_buf text, reasoning;
    int64_t time;                 /* 0 = unknown */
    uint32_t tokens, reasoning_tokens;
    double seconds;               /* of the whole answer; 0 = unknown */
    double reasoning_seconds;
    uint32_t reasoning_steps;     /* seen; fewer than the tokens when the answer was gone on with */
    enum session_finish finish;
    bool running, queued;
    size_t place;                 /* in the queue, from 1 */
    /* the picture */
    bool stale;
    unsigned built_width;
    bool built_open, built_bare;
    struct rich rich;
    size_t body;                  /* where in it the text begins: what is before may change */
    struct wrapped rows;
};

struct talk {
    struct entry **entries;       /* queued messages are the last ones */
    size_t n, cap;
    size_t n_queued;
    struct entry *running;        /* the answer under way, NULL = none */
    bool markdown;                /* show answers formatted, not as their source */
    bool bare;                    /* show what was written, with no mark that is not part of it */
    size_t pictures;              /* made so far: what drawing has cost */
    bool short_of_memory;         /* something could not be kept for the screen */
};

void talk_init(struct talk *t);
void talk_free(struct talk *t);
/* Takes one event in; true = something is to be drawn anew. */
bool talk_apply(struct talk *t, const struct session_event *ev);
/* Counts and times of the running answer. */
void talk_progress(struct talk *t, const struct session_status *st);
void talk_notice(struct talk *t, enum entry_kind kind, const char *text);
/* Queued messages: shown below everything until the session takes them up. */
bool talk_queue(struct talk *t, const char *s, size_t len);
void talk_unqueue(struct talk *t); /* the newest */
/* The n-th queued message, from 1; NULL = there are not that many. */
const struct entry *talk_queued(const struct talk *t, size_t n);
void talk_queue_drop(struct talk *t, size_t n);
void talk_queue_first(struct talk *t, size_t n);
void talk_queue_keep(struct talk *t, size_t n); /* the newest n are still waiting */
void talk_clear(struct talk *t);    /* nothing has been said; what is queued waits on */
void talk_mark_all(struct talk *t); /* every picture is to be made anew */

/* The n-th last message of the person, from 1; NULL = there are not that many. */
const struct entry *talk_own_message(const struct talk *t, size_t n);

/* Makes sure that e's picture is good for this width; false = memory. `open`: reasoning shown. */
bool entry_layout(struct talk *t, struct entry *e, unsigned width, bool open, int64_t now);

#endif
