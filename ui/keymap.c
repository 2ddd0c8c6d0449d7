/* keymap.c - what the keys do (see keymap.h). */
#include <config.h>

#include "keymap.h"

#include <string.h>

#include "keys.h"

const struct action_info actions[] = {
    {ACT_NONE, NULL, NULL, "Message"},
    {ACT_SEND, "send", "Enter", "send; while an answer runs, the message is queued"},
    {ACT_NEWLINE, "newline", "Alt+Enter, Ctrl+J", "new line (a paste never sends)"},
    {ACT_COMPLETE, "complete", "Tab", "complete a /command"},
    {ACT_OLDER, "older", "Ctrl+P", "earlier message"},
    {ACT_NEWER, "newer", "Ctrl+N", "later message"},
    {ACT_UP, "up", "Up", "row up; on the first row an earlier message; when empty, the last queued "
                         "message is taken back"},
    {ACT_DOWN, "down", "Down", "row down; on the last row a later message"},
    {ACT_EXTERNAL, "external-editor", "Alt+E, Ctrl+X Ctrl+E", "write in $VISUAL or $EDITOR"},

    {ACT_NONE, NULL, NULL, "Answer"},
    {ACT_CANCEL, "cancel", "Esc", "stop the running answer, keep what there is"},
    {ACT_INTERRUPT, "interrupt", "Ctrl+C", "the same; when idle, twice leaves"},
    {ACT_THINKING, "thinking", "Ctrl+T", "open or fold the thinking"},

    {ACT_NONE, NULL, NULL, "Window"},
    {ACT_PAGE_UP, "page-up", "PgUp", "scroll back"},
    {ACT_PAGE_DOWN, "page-down", "PgDn", "scroll on"},
    {ACT_ROW_UP, "row-up", "Ctrl+Up, Alt+Up", "one row back"},
    {ACT_ROW_DOWN, "row-down", "Ctrl+Down, Alt+Down", "one row on"},
    {ACT_TOP, "top", "Ctrl+Home, Alt+<", "to the beginning"},
    {ACT_BOTTOM, "bottom", "Ctrl+End, Alt+>",
     "to the end, and follow it (End in an empty message too)"},
    {ACT_FIND, "find", "Ctrl+R", "find earlier text; again: the one before"},
    {ACT_FIND_AGAIN, "find-on", "Ctrl+S", "find on towards the end"},
    {ACT_PRESET, "preset", "F2, Ctrl+O", "chat with panes, chat alone, panes large"},
    {ACT_PANE_1, "pane-1", "Alt+1", "show or hide a pane: 1 to 5, as /panes lists them"},
    {ACT_PANE_2, "pane-2", "Alt+2", NULL},
    {ACT_PANE_3, "pane-3", "Alt+3", NULL},
    {ACT_PANE_4, "pane-4", "Alt+4", NULL},
    {ACT_PANE_5, "pane-5", "Alt+5", NULL},
    {ACT_PANE_6, "pane-6", "Alt+6", NULL},
    {ACT_PANE_7, "pane-7", "Alt+7", NULL},
    {ACT_PANE_8, "pane-8", "Alt+8", NULL},
    {ACT_BARE, "bare", "F3, Alt+0", "only the text, for selecting with the mouse"},
    {ACT_HELP, "help", "F1, Ctrl+G, Alt+?", "this help"},
    {ACT_REDRAW, "redraw", "Ctrl+L", "draw everything anew"},
    {ACT_SUSPEND, "suspend", "Ctrl+Z", "stop; fg goes on, bg lets the work go on unseen"},
    {ACT_END_OF_INPUT, "end-of-input", "Ctrl+D", "delete a character; in an empty message: leave"},
    {ACT_QUIT, "quit", "Ctrl+Q", "leave"},

    {ACT_NONE, NULL, NULL, "Editing"},
    {ACT_LEFT, "left", "Left, Ctrl+B", "character left"},
    {ACT_RIGHT, "right", "Right, Ctrl+F", "character right"},
    {ACT_WORD_LEFT, "word-left", "Alt+B, Ctrl+Left, Alt+Left", "word left"},
    {ACT_WORD_RIGHT, "word-right", "Alt+F, Ctrl+Right, Alt+Right", "word right"},
    {ACT_HOME, "home", "Home, Ctrl+A", "start of the line"},
    {ACT_END, "end", "End, Ctrl+E", "end of the line"},
    {ACT_BACKSPACE, "backspace", "Backspace", "delete to the left"},
    {ACT_DELETE, "delete", "Delete", "delete to the right"},
    {ACT_KILL_WORD_LEFT, "kill-word-left", "Ctrl+W, Alt+Backspace", "cut the word to the left"},
    {ACT_KILL_WORD_RIGHT, "kill-word-right", "Alt+D", "cut the word to the right"},
    {ACT_KILL_TO_START, "kill-to-start", "Ctrl+U", "cut to the start of the line"},
    {ACT_KILL_TO_END, "kill-to-end", "Ctrl+K", "cut to the end of the line"},
    {ACT_YANK, "yank", "Ctrl+Y", "put back what was cut"},
    {ACT_UNDO, "undo", "Ctrl+_, Alt+U", "undo"},
    {ACT_REDO, "redo", "Alt+_, Alt+R", "redo"},
};
const size_t n_actions = sizeof actions / sizeof *actions;

struct binding {
    uint32_t first, second; /* second == 0: a single key */
    enum action action;
};
static struct binding bindings[160];
static size_t n_bindings;

static void bind_one(enum action a, const char *s, size_t len)
{
    const char *space = memchr(s, ' ', len);
    const size_t n = space ? (size_t)(space - s) : len;
    if (n_bindings == sizeof bindings / sizeof *bindings)
        return;
    const struct binding b = {key_from_name(s, n),
                              space ? key_from_name(space + 1, len - n - 1) : 0, a};
    if (b.first != 0 && (!space || b.second != 0))
        bindings[n_bindings++] = b;
}

void keymap_init(void)
{
    n_bindings = 0;
    for (size_t i = 0; i < n_actions; i++) {
        const char *s = actions[i].keys;
        while (s && *s) {
            const char *end = strstr(s, ", ");
            bind_one(actions[i].action, s, end ? (size_t)(end - s) : strlen(s));
            s = end ? end + 2 : NULL;
        }
    }
}

enum action keymap_find(uint32_t first, uint32_t key)
{
    for (size_t i = 0; i < n_bindings; i++) {
        const struct binding *b = &bindings[i];
        if (first != 0 && b->first == first && b->second == key)
            return b->action;
        if (first == 0 && b->first == key)
            return b->second != 0 ? ACT_PREFIX : b->action;
    }
    return ACT_NONE;
}
