/* keymap.h - what the keys do: one table with the action, its keys and its help text. */
#ifndef K3CHAT_UI_KEYMAP_H
#define K3CHAT_UI_KEYMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../src/run_config.h"

enum action {
    ACT_NONE,
    ACT_PREFIX, /* the first key of a sequence of two */
    /* message */
    ACT_SEND, ACT_NEWLINE, ACT_COMPLETE, ACT_OLDER, ACT_NEWER, ACT_EXTERNAL,
    /* answer */
    ACT_CANCEL, ACT_INTERRUPT, ACT_THINKING,
    /* window */
    ACT_PAGE_UP, ACT_PAGE_DOWN, ACT_ROW_UP, ACT_ROW_DOWN, ACT_TOP, ACT_BOTTOM, ACT_FIND,
    ACT_FIND_AGAIN, ACT_BARE, ACT_PRESET,
    ACT_PANE_1, ACT_PANE_2, ACT_PANE_3, ACT_PANE_4, ACT_PANE_5, ACT_PANE_6, ACT_PANE_7, ACT_PANE_8,
    ACT_HELP, ACT_REDRAW, ACT_SUSPEND, ACT_QUIT, ACT_END_OF_INPUT,
    /* editing */
    ACT_LEFT, ACT_RIGHT, ACT_UP, ACT_DOWN, ACT_WORD_LEFT, ACT_WORD_RIGHT, ACT_HOME, ACT_END,
    ACT_BACKSPACE, ACT_DELETE, ACT_KILL_WORD_LEFT, ACT_KILL_WORD_RIGHT, ACT_KILL_TO_START,
    ACT_KILL_TO_END, ACT_YANK, ACT_UNDO, ACT_REDO,
    N_ACTIONS
};

struct action_info {
    enum action action;
    const char *name; /* for profiles */
    const char *keys; /* unless the profile has others: alternatives after ", ", a sequence of two
                       * after " " */
    const char *help; /* NULL: goes without saying */
};

/* In the order of the help; an entry with ACT_NONE is a heading (its help text). */
extern const struct action_info actions[];
extern const size_t n_actions;

/* False with a message that names the place and the value, when the profile's keys are not
 * understood: an action or a key that there is not, a key that types text, one key for two actions. */
bool keymap_check(const struct ui_config *cfg, struct k3_error *err);
/* The table's keys, and the profile's in place of them; a key that the profile uses is taken away from
 * the action that had it. cfg has been checked; NULL = the table's keys. */
void keymap_init(const struct ui_config *cfg);
/* All keys of an action, as the table writes them; "none" when it has none. Returns buf. */
const char *keymap_keys(enum action action, char *buf, size_t size);
/* Its first key, for hints: "F1"; "" when it has none. Valid until keymap_init(). */
const char *keymap_key(enum action action);
/* The action of a key, or of the second key after a prefix (first == 0: no prefix). */
enum action keymap_find(uint32_t first, uint32_t key);

#endif
