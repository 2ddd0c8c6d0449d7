/* app.h - inside the screen: everything that one run of it keeps, shared by the files that draw
 * it, act on keys, carry out commands and wait for news. */
#ifndef K3CHAT_UI_APP_H
#define K3CHAT_UI_APP_H

#include "chooser.h"
#include "editor.h"
#include "keymap.h"
#include "keys.h"
#include "layout.h"
#include "model.h"
#include "talk_view.h"
#include "ui.h"

struct page; /* pages.h */

struct app {
    struct session *session;
    const struct ui_config *cfg;
    struct ui_model model;
    struct talk talk;
    struct talk_view view;
    struct editor editor;
    struct keys keys;
    uint32_t prefix;            /* first key of a sequence; 0 = none */

    struct grid grid;
    struct layout layout;
    enum layout_preset preset;
    size_t pane_order[LAYOUT_MAX_PANES]; /* indices into the table of panes */
    bool pane_hidden[LAYOUT_MAX_PANES];  /* by index into that table */
    size_t n_pane_order;
    unsigned edit_width;        /* columns that the message is wrapped to */
    size_t edit_top;            /* the first row of the message that is shown */
    bool bare;                  /* the text alone */
    bool mouse;                 /* the wheel scrolls, except in the bare view */
    struct chooser chooser;
    const struct page *page;    /* over everything; NULL = none */
    size_t page_top;
    struct rich page_text;
    struct wrapped page_rows;

    char hint[2048];             /* one line for the person; gone at the next key */
    enum ink hint_ink;
    int64_t editing;            /* index of the message that the text replaces; -1 = a new one */
    bool layout_news;           /* another layout was asked for */
    bool asked_to_leave;        /* the next such key does it */
    char find[128];             /* what was looked for last */
    int64_t seek_message;       /* where to look for it when it is there; -1 = nowhere */
    bool seek_found;            /* it was there, with the end of what had come in view */
    bool seek_opened;           /* the session that it is in is the one that is open */
    struct saved_branch *branches; /* as /branches listed them last */
    size_t n_branches;
    bool unwritten;             /* nothing that is typed may be kept: the session is temporary */
    bool history_failed;        /* keeping what is typed has failed, and that was told */
    unsigned stray_lines;       /* written to stderr by something, and shown */
    bool focused;
    double answer_began;        /* monotonic seconds */
    char window_title[256];

    bool quit;
    int status;
    bool key_news, model_news;  /* something to draw, from the person or from the session */
};

double app_clock(void);         /* monotonic seconds */
void app_hint(struct app *a, enum ink ink, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

void app_draw(struct app *a);                    /* app_draw.c */
void app_page_scroll(struct app *a, long rows);
void app_show_page(struct app *a, const struct page *page);
void app_key(struct app *a, const struct key_event *ev); /* app_keys.c */
void app_remember(struct app *a, const char *text, size_t len); /* for Up, and for later starts */
/* Text that comes back goes before what stands in the editor. */
void app_put_first(struct app *a, const char *text, size_t len);
void app_leave(struct app *a, bool sure);        /* ask first, unless sure */
bool app_busy(struct app *a);                    /* asks the session */
/* app_sessions.c. Leaves this session for another ("" = a new one, NULL = a temporary one); refused while an answer runs. */
void app_go_to(struct app *a, const char *name, bool forget);
void app_rename(struct app *a, const char *name, const char *new_name);
void app_delete(struct app *a, const char *name);
void app_chooser_key(struct app *a, enum action action, uint32_t key);
void app_opened(struct app *a); /* the session has become another one */
void app_seek(struct app *a);   /* to seek_message, when it is there */
void app_toggle_pane(struct app *a, size_t number); /* from 0, in the order on the screen */
void app_find(struct app *a, bool backwards);
void app_suspend(struct app *a);                 /* app.c */
void app_external_editor(struct app *a);         /* external.c */

/* slash.c: text begins with '/'. False when there is no such command. */
bool slash_run(struct app *a, const char *text);
void slash_complete(struct app *a);

struct slash_command {
    const char *name, *args, *help;
    const char *choices; /* for completion, separated by blanks; NULL = none */
    enum action action;  /* whose key does the same; ACT_NONE = there is none */
    void (*run)(struct app *a, const char *args);
};
extern const struct slash_command slash_commands[];
extern const size_t n_slash_commands;

#endif
