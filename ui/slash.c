/* slash.c - what can be typed after a slash: one table with help and completion. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "graph.h"
#include "markdown.h"
#include "pages.h"
#include "pane.h"
#include "screen.h"
#include "slash.h"
#include "text.h"

static void run_help(struct app *a, const char *args)
{
    (void)args;
    app_show_page(a, &page_help);
}

static void run_quit(struct app *a, const char *args)
{
    (void)args;
    app_leave(a, !app_busy(a));
}

static bool is_choice(const char *choices, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = choices; n > 0 && (p = strstr(p, word)); p += n)
        if ((p == choices || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return true;
    return false;
}

/* ---- the queue --------------------------------------------------------------------------- */

/* "1 how it begins  2 ..." */
static void list_queue(struct app *a)
{
    char b[sizeof a->hint] = "";
    const struct entry *e;
    for (size_t n = 1; (e = talk_queued(&a->talk, n)); n++) {
        const size_t at = strlen(b), cut = text_fit(e->text.s, strcspn(e->text.s, "\n"), 32);
        snprintf(b + at, sizeof b - at, "%s%zu %.*s%s", n > 1 ? "   " : "", n, (int)cut, e->text.s,
                 cut < e->text.len ? "..." : "");
    }
    if (*b)
        app_hint(a, INK_LABEL, "queued: %s", b);
    else
        app_hint(a, INK_LABEL, "nothing is queued");
}

static void run_queue(struct app *a, const char *args)
{
    const bool first = strncmp(args, "first ", 6) == 0, drop = strncmp(args, "drop ", 5) == 0;
    if (!first && !drop) {
        if (*args == '\0')
            list_queue(a);
        else
            app_hint(a, INK_WARN, "/queue takes drop or first, and a number; alone it lists");
        return;
    }
    const size_t n = strtoul(args + (first ? 6 : 5), NULL, 10);
    const struct entry *e = talk_queued(&a->talk, n);
    if (!e)
        app_hint(a, INK_WARN, "there is no such queued message; /queue lists them");
    else if (!(first ? session_queue_first : session_queue_drop)(a->session, e->text.s, e->text.len))
        app_hint(a, INK_WARN, "that message is being answered already");
    else if (first) {
        talk_queue_first(&a->talk, n);
        list_queue(a);
    } else {
        talk_queue_drop(&a->talk, n);
        app_hint(a, INK_LABEL, "dropped; %s finds its text", keymap_key(ACT_OLDER));
    }
}

#define EFFORTS "off low high max"

static void run_think(struct app *a, const char *args)
{
    if (!is_choice(EFFORTS, args)) {
        app_hint(a, INK_WARN, "/think takes off, low, high or max (now: %s)", a->model.st.thinking);
        return;
    }
    session_set_thinking(a->session, args);
    app_hint(a, INK_LABEL, "from the next message on: thinking %s", args);
}

static void list_panes(struct app *a)
{
    char b[160] = "";
    for (size_t i = 0; i < a->n_pane_order; i++) {
        const size_t n = strlen(b), p = a->pane_order[i];
        snprintf(b + n, sizeof b - n, "%s%zu %s%s", i > 0 ? ", " : "", i + 1, panes[p].name,
                 a->pane_hidden[p] ? " (hidden)" : "");
    }
    app_hint(a, INK_LABEL, "%s", b[0] ? b : "no panes");
}

static void run_panes(struct app *a, const char *args)
{
    if (*args == '\0') {
        list_panes(a);
        return;
    }
    static const char *const presets[] = {"both", "chat", "large"};
    for (size_t i = 0; i < LAYOUT_PRESETS; i++) {
        if (strcmp(args, presets[i]) == 0) {
            a->preset = (enum layout_preset)i;
            a->layout_news = true;
            return;
        }
    }
    for (size_t i = 0; i < a->n_pane_order; i++) {
        if (strcmp(args, panes[a->pane_order[i]].name) == 0) {
            app_toggle_pane(a, i);
            return;
        }
    }
    app_hint(a, INK_WARN, "/panes takes both, chat, large or the name of a pane");
}

static void run_continue(struct app *a, const char *args)
{
    struct k3_error err = {0};
    (void)args;
    if (session_continue(a->session, &err) != K3_OK)
        app_hint(a, INK_BAD, "%s", err.message);
    talk_view_end(&a->view);
}

static void run_regen(struct app *a, const char *args)
{
    struct k3_error err = {0};
    (void)args;
    if (session_regenerate(a->session, &err) != K3_OK)
        app_hint(a, INK_BAD, "%s", err.message);
    talk_view_end(&a->view);
}

static void run_edit(struct app *a, const char *args)
{
    const unsigned long n = *args ? strtoul(args, NULL, 10) : 1;
    const struct entry *e = n > 0 ? talk_own_message(&a->talk, n) : NULL;
    if (!e) {
        app_hint(a, INK_WARN, "there is no such message of yours");
        return;
    }
    editor_set(&a->editor, e->text.s ? e->text.s : "", e->text.len);
    a->editing = e->index;
}

static void run_discard(struct app *a, const char *args)
{
    struct k3_error err = {0};
    (void)args;
    if (session_discard(a->session, &err) != K3_OK)
        app_hint(a, INK_BAD, "%s", err.message);
    talk_view_end(&a->view);
}

static void run_system(struct app *a, const char *args)
{
    struct k3_error err = {0};
    if (*args == '\0')
        app_hint(a, INK_WARN, "/system takes what the model is told before your next message");
    else if (session_system(a->session, args, strlen(args), &err) != K3_OK)
        app_hint(a, INK_BAD, "%s", err.message);
}

/* ---- looks and figures ------------------------------------------------------------------- */

static void run_plan(struct app *a, const char *args)
{
    (void)args;
    app_show_page(a, &page_plan);
}

static void run_stats(struct app *a, const char *args)
{
    (void)args;
    app_show_page(a, &page_figures);
}

#define LOOKS "auto dark light mono braille block ascii"

/* The words in the order of their enums: themes, then graphs without "auto". */
static void run_theme(struct app *a, const char *args)
{
    static const char *const words[] = {"auto", "dark", "light", "mono", "braille", "block",
                                        "ascii"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(args, words[i]) != 0)
            continue;
        if (i <= UI_THEME_MONO)
            screen_set_theme((enum ui_theme)i);
        else
            a->model.graph = graph_choose((enum ui_graph)(i - UI_THEME_MONO), screen_utf8(),
                                          getenv("TERM"));
        return;
    }
    app_hint(a, INK_WARN, "/theme takes auto, dark, light or mono, and for graphs braille, block "
                          "or ascii");
}

static void run_mouse(struct app *a, const char *args)
{
    const bool wheel = strcmp(args, "wheel") == 0;
    if (!wheel && strcmp(args, "off") != 0) {
        app_hint(a, INK_WARN, "/mouse takes wheel or off");
        return;
    }
    a->mouse = wheel;
    app_hint(a, INK_LABEL, wheel ? "the wheel scrolls; text is selected with Shift held"
                                 : "the mouse is the terminal's");
}

/* ---- reading and copying ----------------------------------------------------------------- */

static void run_find(struct app *a, const char *args)
{
    snprintf(a->find, sizeof a->find, "%s", args);
    a->view.find[0] = '\0';
    app_find(a, true);
}

static void run_bare(struct app *a, const char *args)
{
    (void)args;
    a->bare = true;
}

static void run_source(struct app *a, const char *args)
{
    (void)args;
    a->talk.markdown = !a->talk.markdown;
    talk_mark_all(&a->talk);
    app_hint(a, INK_LABEL, a->talk.markdown ? "answers are formatted" : "answers as their source");
}

const struct entry *slash_last_answer(const struct app *a, size_t n)
{
    for (size_t i = a->talk.n; i-- > 0;) {
        const struct entry *e = a->talk.entries[i];
        if (e->kind == ENTRY_ASSISTANT && e->text.len > 0 && --n == 0)
            return e;
    }
    return NULL;
}

static void copy(struct app *a, const char *what, const char *s, size_t len)
{
    char b[32];
    if (screen_copy(s, len))
        app_hint(a, INK_LABEL, "copied %s (%s, by OSC 52)", what,
                 fmt_bytes(b, sizeof b, (double)len));
    else
        app_hint(a, INK_WARN, "this terminal takes no %s of %s (OSC 52)", what,
                 fmt_bytes(b, sizeof b, (double)len));
}

static void copy_code(struct app *a, const char *number)
{
    const size_t n = strtoul(number, NULL, 10);
    for (size_t i = 1;; i++) {
        size_t len = 0;
        const struct entry *e = slash_last_answer(a, i);
        char *code = e ? markdown_code(e->text.s, e->text.len, n, &len) : NULL;
        if (code) {
            copy(a, "code block", code, len);
            free(code);
            return;
        }
        if (!e) {
            app_hint(a, INK_WARN, "there is no such code block");
            return;
        }
    }
}

static void run_copy(struct app *a, const char *args)
{
    if (strncmp(args, "code", 4) == 0) {
        copy_code(a, args + 4);
        return;
    }
    const unsigned long n = *args ? strtoul(args, NULL, 10) : 1;
    const struct entry *e = n > 0 ? slash_last_answer(a, n) : NULL;
    if (e)
        copy(a, "answer", e->text.s, e->text.len);
    else
        app_hint(a, INK_WARN, "there is no such answer");
}

const struct slash_command slash_commands[] = {
    {"help", "", "keys and commands", NULL, ACT_HELP, run_help},
    {"think", "off|low|high|max", "how long K3 thinks, from the next message on",
     EFFORTS, ACT_NONE, run_think},
    {"continue", "", "go on with the last answer, when it was cut off", NULL, ACT_NONE,
     run_continue},
    {"regen", "", "another answer to the last message", NULL, ACT_NONE, run_regen},
    {"edit", "[N]", "change your last message, or the N-th last, and have it answered",
     NULL, ACT_NONE, run_edit},
    {"queue", "[drop N | first N]", "the queued messages; drop one, or have it answered first",
     "drop first", ACT_NONE, run_queue},
    {"discard", "", "take the last question back, without its answer", NULL, ACT_NONE, run_discard},
    {"branches", "", "edited messages and other answers: where the conversation could go on", NULL,
     ACT_NONE, slash_branches},
    {"branch", "N", "go to one of them", NULL, ACT_NONE, slash_branch},
    {"system", "TEXT", "tell the model what holds from here on", NULL, ACT_NONE, run_system},
    {"find", "TEXT", "find earlier text in this session", NULL, ACT_FIND, run_find},
    {"search", "TEXT", "find text in all sessions", NULL, ACT_NONE, slash_search},
    {"copy", "[N | code [N]]", "copy the last answer, the N-th last, or a code block",
     "code", ACT_NONE, run_copy},
    {"save", "FILE", "the last answer into a new file", NULL, ACT_NONE, slash_save},
    {"export", "FILE", "the whole session into a new file: .md, .txt or .jsonl", NULL, ACT_NONE,
     slash_export},
    {"sessions", "", "the saved sessions: open, search, rename, delete", NULL, ACT_NONE,
     slash_sessions},
    {"resume", "NAME", "go to that session", NULL, ACT_NONE, slash_resume},
    {"new", "[NAME]", "begin another session", NULL, ACT_NONE, slash_new},
    {"temporary", "", "begin a session that is written to no file", NULL, ACT_NONE,
     slash_temporary},
    {"rename", "NAME", "another name for this session", NULL, ACT_NONE, slash_rename},
    {"delete", "NAME", "delete a session for ever, with its saved states", NULL, ACT_NONE,
     slash_delete},
    {"panes", "[NAME | both|chat|large]", "list panes; show or hide one; choose a layout",
     "both chat large timing disk hits experts memory", ACT_PRESET, run_panes},
    {"theme", "NAME", "auto, dark, light, mono; graphs: braille, block, ascii", LOOKS, ACT_NONE,
     run_theme},
    {"mouse", "wheel|off", "the wheel scrolls, and Shift selects; or the mouse is the terminal's",
     "wheel off", ACT_NONE, run_mouse},
    {"profile", "", "the profile, and how its memory is spent", NULL, ACT_NONE, run_plan},
    {"budget", "", "the same", NULL, ACT_NONE, run_plan},
    {"stats", "", "figures of all tokens since the start", NULL, ACT_NONE, run_stats},
    {"source", "", "answers formatted, or as Markdown source", NULL, ACT_NONE, run_source},
    {"bare", "", "only the text, for selecting with the mouse", NULL, ACT_BARE, run_bare},
    {"quit", "", "leave", NULL, ACT_QUIT, run_quit},
};
const size_t n_slash_commands = sizeof slash_commands / sizeof *slash_commands;

static const struct slash_command *find_command(const char *name, size_t len)
{
    for (size_t i = 0; i < n_slash_commands; i++)
        if (strlen(slash_commands[i].name) == len && memcmp(slash_commands[i].name, name, len) == 0)
            return &slash_commands[i];
    return NULL;
}

bool slash_run(struct app *a, const char *text)
{
    const size_t len = strcspn(text + 1, " \n\t");
    const struct slash_command *c = find_command(text + 1, len);
    if (!c) {
        app_hint(a, INK_WARN, "no command /%.*s; // sends a leading /",
                 (int)(len < 40 ? len : 40), text + 1);
        return false;
    }
    char args[2048];
    const char *p = text + 1 + len;
    p += strspn(p, " \n\t");
    if (strlen(p) >= sizeof args) {
        app_hint(a, INK_WARN, "/%s takes no more than %zu bytes", c->name, sizeof args - 1);
        return false;
    }
    snprintf(args, sizeof args, "%s", p);
    if (c->run != run_system) /* which may have several lines */
        args[strcspn(args, "\n")] = '\0';
    for (size_t n = strlen(args); n > 0 && args[n - 1] == ' ';)
        args[--n] = '\0';
    c->run(a, args);
    return true;
}

/* ---- completion -------------------------------------------------------------------------- */

struct completion {
    char common[64]; /* what all candidates begin with */
    char list[320];
    size_t n;
};

static void offer(struct completion *c, const char *word, size_t len, const char *typed)
{
    if (strlen(typed) > len || strncmp(word, typed, strlen(typed)) != 0)
        return;
    const size_t at = strlen(c->list);
    snprintf(c->list + at, sizeof c->list - at, "%s%.*s", c->n > 0 ? "  " : "", (int)len, word);
    if (c->n++ == 0) {
        snprintf(c->common, sizeof c->common, "%.*s", (int)len, word);
        return;
    }
    size_t same = 0;
    while (same < len && c->common[same] == word[same])
        same++;
    c->common[same] = '\0';
}

/* Puts the common beginning in place of the word from `start` on; shows what is possible. */
static void apply(struct app *a, const struct completion *c, size_t start)
{
    char line[256];
    if (c->n == 0)
        return;
    snprintf(line, sizeof line, "%.*s%s%s", (int)start, a->editor.text, c->common,
             c->n == 1 ? " " : "");
    editor_set(&a->editor, line, strlen(line));
    if (c->n > 1)
        app_hint(a, INK_LABEL, "%s", c->list);
}

/* What the command is for, and the key that does the same. */
static void explain(struct app *a, const char *name)
{
    const struct slash_command *c = find_command(name, strlen(name));
    if (!c)
        return;
    const char *key = c->action == ACT_NONE ? "" : keymap_key(c->action);
    app_hint(a, INK_LABEL, "/%s%s%s: %s%s%s%s", c->name, *c->args ? " " : "", c->args, c->help,
             *key ? " (" : "", key, *key ? ")" : "");
}

void slash_complete(struct app *a)
{
    struct editor *e = &a->editor;
    char line[128];
    struct completion c = {.n = 0};
    if (e->len == 0 || e->len >= sizeof line || e->text[0] != '/' || e->cursor != e->len)
        return;
    memcpy(line, e->text, e->len);
    line[e->len] = '\0';
    char *space = strchr(line, ' ');
    if (!space) {
        for (size_t i = 0; i < n_slash_commands; i++)
            offer(&c, slash_commands[i].name, strlen(slash_commands[i].name), line + 1);
        apply(a, &c, 1);
        if (c.n == 1)
            explain(a, c.common);
        return;
    }
    const struct slash_command *cmd = find_command(line + 1, (size_t)(space - line - 1));
    for (const char *p = cmd ? cmd->choices : NULL; p && *p; p += strspn(p, " ")) {
        const size_t n = strcspn(p, " ");
        offer(&c, p, n, space + 1);
        p += n;
    }
    apply(a, &c, (size_t)(space + 1 - line));
}
