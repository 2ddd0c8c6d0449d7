/* keymap.c - what the keys do (see keymap.h). */
#include <config.h>

#include "keymap.h"

#include <stdio.h>
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
static struct binding bindings[160 + UI_MAX_KEYS];
static size_t n_bindings;
static char labels[N_ACTIONS][32];

static struct binding parse(enum action a, const char *s, size_t len)
{
    const char *space = memchr(s, ' ', len);
    const size_t n = space ? (size_t)(space - s) : len;
    struct binding b = {key_from_name(s, n), space ? key_from_name(space + 1, len - n - 1) : 0, a};
    if (space && b.second == 0)
        b.first = 0;
    return b;
}

static void bind_one(enum action a, const char *s, size_t len)
{
    const struct binding b = parse(a, s, len);
    if (b.first != 0 && n_bindings < sizeof bindings / sizeof *bindings)
        bindings[n_bindings++] = b;
}

static void bind_defaults(void)
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

/* ---- the profile's keys ------------------------------------------------------------------ */

static const struct action_info *find_action(const char *name)
{
    for (size_t i = 0; i < n_actions; i++)
        if (actions[i].name && strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

static bool is_none(const struct ui_key *k)
{
    return strcmp(k->key, "none") == 0;
}

/* One begins with what is the whole other. */
static bool collide(const struct binding *a, const struct binding *b)
{
    return a->first == b->first && (a->second == b->second || a->second == 0 || b->second == 0);
}

static bool types_text(uint32_t key)
{
    return (key & (MOD_CTRL | MOD_ALT)) == 0 && (key & ~MOD_MASK) < 0x110000;
}

/* Control characters that are a key of their own: "Ctrl+I" is Tab for nearly every terminal. */
static bool never_comes(uint32_t key)
{
    static const char taken[] = "him[";
    const uint32_t base = key & ~MOD_MASK;
    return (key & MOD_CTRL) && base != 0 && base < 0x80 && strchr(taken, (int)base);
}

static bool fail(const struct ui_key *k, struct k3_error *err, const char *what)
{
    k3_fail(err, K3_USAGE, "%s: keys.%s: '%s' %s", k->where, k->action, k->key, what);
    return false;
}

static bool fail_action(const struct ui_key *k, struct k3_error *err)
{
    char known[1024] = "";
    for (size_t i = 0; i < n_actions; i++) {
        const size_t n = strlen(known);
        if (actions[i].name)
            snprintf(known + n, sizeof known - n, "%s%s", n > 0 ? ", " : "", actions[i].name);
    }
    k3_fail(err, K3_USAGE, "%s: keys: there is no action '%s'; known here: %s", k->where, k->action,
            known);
    return false;
}

static bool check_one(const struct ui_config *cfg, size_t i, struct k3_error *err)
{
    const struct ui_key *k = &cfg->keys[i];
    const struct action_info *a = find_action(k->action);
    if (!a)
        return fail_action(k, err);
    if (is_none(k))
        return a->action != ACT_SEND ||
               fail(k, err, "is not possible: without a key to send, nothing can be done");
    const struct binding b = parse(a->action, k->key, strlen(k->key));
    if (b.first == 0)
        return fail(k, err, "is no key; keys are written like F5, Ctrl+K, Alt+Enter, PgUp, or two "
                            "in a row like Ctrl+X Ctrl+E");
    if (types_text(b.first))
        return fail(k, err, "types text and cannot do anything else; add Ctrl+ or Alt+");
    if (never_comes(b.first) || never_comes(b.second))
        return fail(k, err, "does not come from a terminal: it sends Backspace, Tab, Enter or Esc "
                            "for it");
    for (size_t j = 0; j < i; j++) {
        const struct ui_key *o = &cfg->keys[j];
        const struct binding c = parse(ACT_NONE, o->key, strlen(o->key));
        if (is_none(o) || !collide(&b, &c))
            continue;
        k3_fail(err, K3_USAGE, "%s: keys.%s: '%s' is given to '%s' already (%s)", k->where,
                k->action, k->key, o->action, o->where);
        return false;
    }
    return true;
}

bool keymap_check(const struct ui_config *cfg, struct k3_error *err)
{
    for (size_t i = 0; i < cfg->n_keys; i++)
        if (!check_one(cfg, i, err))
            return false;
    return true;
}

static void unbind(enum action a)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bindings; i++)
        if (bindings[i].action != a)
            bindings[n++] = bindings[i];
    n_bindings = n;
}

static void take_away(const struct binding *key)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bindings; i++)
        if (!collide(&bindings[i], key))
            bindings[n++] = bindings[i];
    n_bindings = n;
}

static void bind_profile(const struct ui_config *cfg)
{
    for (size_t i = 0; i < cfg->n_keys; i++)
        unbind(find_action(cfg->keys[i].action)->action);
    for (size_t i = 0; i < cfg->n_keys; i++) {
        const struct ui_key *k = &cfg->keys[i];
        const enum action a = find_action(k->action)->action;
        if (is_none(k))
            continue;
        const struct binding b = parse(a, k->key, strlen(k->key));
        take_away(&b);
        bind_one(a, k->key, strlen(k->key));
    }
}

/* ---- names for the person ---------------------------------------------------------------- */

static size_t put_name(const struct binding *b, char *buf, size_t size)
{
    char first[32], second[32] = "";
    key_to_name(b->first, first, sizeof first);
    if (b->second != 0)
        key_to_name(b->second, second, sizeof second);
    const int n = snprintf(buf, size, "%s%s%s", first, b->second ? " " : "", second);
    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

const char *keymap_keys(enum action action, char *buf, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bindings; i++) {
        if (bindings[i].action != action || n + 3 > size)
            continue;
        if (n > 0)
            n += (size_t)snprintf(buf + n, size - n, ", ");
        n += put_name(&bindings[i], buf + n, size - n);
    }
    if (n == 0)
        snprintf(buf, size, "none");
    return buf;
}

const char *keymap_key(enum action action)
{
    return labels[action];
}

void keymap_init(const struct ui_config *cfg)
{
    bind_defaults();
    if (cfg)
        bind_profile(cfg);
    memset(labels, 0, sizeof labels);
    for (size_t i = n_bindings; i-- > 0;)
        put_name(&bindings[i], labels[bindings[i].action], sizeof labels[0]);
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
