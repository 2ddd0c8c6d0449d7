/* run_config.h - what one run is asked to do: defaults, overlaid by the profile, then by options. */
#ifndef K3CHAT_RUN_CONFIG_H
#define K3CHAT_RUN_CONFIG_H

#include "../engine/k3.h"
#include "../engine/text/chat.h"
#include "../engine/text/sampler.h"

enum ui_graph { UI_GRAPH_AUTO, UI_GRAPH_BRAILLE, UI_GRAPH_BLOCK, UI_GRAPH_ASCII };
enum ui_theme { UI_THEME_AUTO, UI_THEME_DARK, UI_THEME_LIGHT, UI_THEME_MONO };
enum ui_notify { UI_NOTIFY_AUTO, UI_NOTIFY_BELL, UI_NOTIFY_OSC, UI_NOTIFY_OSC777, UI_NOTIFY_OFF };

enum run_sync { RUN_SYNC_MESSAGES, RUN_SYNC_PARTIALS, RUN_SYNC_NEVER };

#define UI_MAX_PANES 8

/* A key of the profile, as written there: checked by the screen, which knows its keys. */
struct ui_key {
    const char *action, *key;
    const char *where;               /* FILE:LINE:COLUMN */
};
#define UI_MAX_KEYS 128

struct ui_config {
    enum ui_theme theme;
    enum ui_graph graph;
    enum ui_notify notify;
    bool mouse;                      /* the wheel scrolls */
    bool no_history;                 /* what is typed is not kept for later starts */
    bool plain;                      /* lines of text instead of a screen */
    const char *panes[UI_MAX_PANES]; /* names from the pane table, in order */
    size_t n_panes;
    struct ui_key keys[UI_MAX_KEYS];
    size_t n_keys;
};

struct run_config {
    struct k3_options engine;   /* model_dir NULL = the demo model */
    enum k3_thinking thinking;
    struct k3_sampling sampling;
    uint32_t max_tokens;        /* 0 = the mode's default: 64 in batch, 1024 in the chat */
    bool ignore_stop;
    bool temporary;             /* chat: nothing of it is written to a file */
    const char *session_name;   /* NULL = a new one named by the time (chat), none (batch) */
    const char *profile_name;   /* for display */
    uint32_t states_keep;       /* saved states of a session; 0 = none */
    uint64_t states_disk;       /* bytes of the states of all sessions */
    double save_every;          /* seconds between states within an answer or a prompt; 0 = none */
    double ask_reread;          /* chat: asks before reading again for more seconds than this; 0 = never */
    enum run_sync sync;         /* of the transcript */
    bool continue_answer;       /* batch: the session's last answer goes on */
    struct ui_config ui;
    void *owned;                /* strings; freed by run_config_free() */
};

void run_config_init(struct run_config *cfg);
void run_config_free(struct run_config *cfg);

/* Copies text into the configuration, which then owns it. NULL when memory is short. */
const char *run_config_keep(struct run_config *cfg, const char *text, struct k3_error *err);

#endif
