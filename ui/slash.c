/* slash.c - what can be typed after a slash: one table with help and completion. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "format.h"
#include "markdown.h"
#include "pane.h"
#include "screen.h"

static void run_help(struct app *a, const char *args)
{
    (void)args;
    a->help = true;
    a->help_top = 0;
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

/* ---- sessions and files ------------------------------------------------------------------ */

static void run_sessions(struct app *a, const char *args)
{
    struct k3_error err = {0};
    (void)args;
    if (!chooser_open(&a->chooser, &err))
        app_hint(a, INK_BAD, "%s", err.message);
}

static void run_new(struct app *a, const char *args)
{
    char title[8];
    size_t n = 0;
    struct k3_error err = {0};
    if (*args && saved_read(args, &n, title, sizeof title, &err) == K3_OK)
        app_hint(a, INK_WARN, "there is a session \"%s\"; /resume opens it", args);
    else
        app_go_to(a, args);
}

static void run_resume(struct app *a, const char *args)
{
    char title[8];
    size_t n = 0;
    struct k3_error err = {0};
    if (*args == '\0')
        run_sessions(a, args);
    else if (saved_read(args, &n, title, sizeof title, &err) != K3_OK)
        app_hint(a, INK_BAD, "%s", err.message);
    else
        app_go_to(a, args);
}

static const struct entry *last_answer(const struct app *a, size_t n);

static void run_save(struct app *a, const char *args)
{
    struct k3_error err = {0};
    const struct entry *e = last_answer(a, 1);
    if (*args == '\0' || !e)
        app_hint(a, INK_WARN, e ? "/save takes the name of a new file" : "there is no answer yet");
    else if (saved_write(args, e->text.s, e->text.len, &err) != K3_OK)
        app_hint(a, INK_BAD, "%s", err.message);
    else
        app_hint(a, INK_LABEL, "saved %s", args);
}

static void run_export(struct app *a, const char *args)
{
    struct k3_error err = {0};
    if (*args == '\0')
        app_hint(a, INK_WARN, "/export takes a new file: .md, .txt or .jsonl");
    else if (saved_export(a->model.st.session_name, args, &err) != K3_OK)
        app_hint(a, INK_BAD, "%s", err.message);
    else
        app_hint(a, INK_LABEL, "exported %s", args);
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

/* The n-th last answer, from 1; NULL = none. */
static const struct entry *last_answer(const struct app *a, size_t n)
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
        const struct entry *e = last_answer(a, i);
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
    const struct entry *e = n > 0 ? last_answer(a, n) : NULL;
    if (e)
        copy(a, "answer", e->text.s, e->text.len);
    else
        app_hint(a, INK_WARN, "there is no such answer");
}

const struct slash_command slash_commands[] = {
    {"help", "", "keys and commands", NULL, run_help},
    {"think", "off|low|high|max", "how long K3 thinks, from the next message on",
     EFFORTS, run_think},
    {"continue", "", "go on with the last answer, when it was cut off", NULL, run_continue},
    {"regen", "", "another answer to the last message", NULL, run_regen},
    {"edit", "[N]", "change your last message, or the N-th last, and have it answered",
     NULL, run_edit},
    {"find", "TEXT", "find earlier text; Ctrl+R and Ctrl+S go on", NULL, run_find},
    {"copy", "[N | code [N]]", "copy the last answer, the N-th last, or a code block",
     "code", run_copy},
    {"save", "FILE", "the last answer into a new file", NULL, run_save},
    {"export", "FILE", "the whole session into a new file: .md, .txt or .jsonl", NULL, run_export},
    {"sessions", "", "the saved sessions, to open one", NULL, run_sessions},
    {"resume", "NAME", "go to that session", NULL, run_resume},
    {"new", "[NAME]", "begin another session", NULL, run_new},
    {"panes", "[NAME | both|chat|large]", "list panes; show or hide one; choose a layout",
     "both chat large timing disk hits experts memory", run_panes},
    {"source", "", "answers formatted, or as Markdown source", NULL, run_source},
    {"bare", "", "only the text, for selecting with the mouse", NULL, run_bare},
    {"quit", "", "leave", NULL, run_quit},
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
    char args[256];
    const char *p = text + 1 + len;
    snprintf(args, sizeof args, "%s", p + strspn(p, " \n\t"));
    args[strcspn(args, "\n")] = '\0';
    for (size_t n = strlen(args); n > 0 && args[n - 1] == ' ';)
        args[--n] = '\0';
    c->run(a, args);
    return true;
}

/* ---- completion -------------------------------------------------------------------------- */

struct completion {
    char common[64]; /* what all candidates begin with */
    char list[160];
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
