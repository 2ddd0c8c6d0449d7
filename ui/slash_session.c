/* slash_session.c - the commands about sessions and files (see slash.h). */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"
#include "slash.h"

void slash_sessions(struct app *a, const char *args)
{
    struct k3_error err = {0};
    (void)args;
    if (!chooser_open(&a->chooser, &err))
        app_hint(a, INK_BAD, "%s", err.message);
}

void slash_search(struct app *a, const char *args)
{
    if (*args == '\0') {
        app_hint(a, INK_WARN, "/search takes the text to look for in all sessions");
        return;
    }
    slash_sessions(a, "");
    if (a->chooser.open)
        chooser_search(&a->chooser, args);
}

static bool exists(const char *name, struct k3_error *err)
{
    char title[8];
    size_t n = 0;
    return saved_read(name, &n, title, sizeof title, err) == K3_OK;
}

void slash_new(struct app *a, const char *args)
{
    struct k3_error err = {0};
    if (*args && exists(args, &err))
        app_hint(a, INK_WARN, "there is a session \"%s\"; /resume opens it", args);
    else
        app_go_to(a, args, false);
}

void slash_temporary(struct app *a, const char *args)
{
    (void)args;
    app_go_to(a, NULL, false);
}

/* Of what only a session with a file has. */
static bool has_file(struct app *a)
{
    session_get_status(a->session, &a->model.st);
    if (a->model.st.temporary)
        app_hint(a, INK_WARN, "this session is temporary: it is in no file");
    return !a->model.st.temporary;
}

void slash_resume(struct app *a, const char *args)
{
    struct k3_error err = {0};
    if (*args == '\0' && a->model.st.phase == PHASE_VIEWING) /* perhaps it is free by now */
        app_go_to(a, a->model.st.session_name, false);
    else if (*args == '\0')
        slash_sessions(a, args);
    else if (!exists(args, &err))
        app_hint(a, INK_BAD, "%s", err.message);
    else
        app_go_to(a, args, false);
}

void slash_rename(struct app *a, const char *args)
{
    if (!has_file(a))
        return;
    if (*args == '\0')
        app_hint(a, INK_WARN, "/rename takes the new name of this session");
    else
        app_rename(a, a->model.st.session_name, args);
}

/* Of the session that is open; asks by wanting its name. */
void slash_delete(struct app *a, const char *args)
{
    if (*args == '\0' && !has_file(a))
        return;
    if (*args == '\0')
        app_hint(a, INK_WARN, "/delete %s deletes this session, for ever; others: /sessions",
                 a->model.st.session_name);
    else
        app_delete(a, args);
}

static bool read_branches(struct app *a)
{
    struct k3_error err = {0};
    if (!has_file(a))
        return false;
    free(a->branches);
    a->branches = NULL;
    a->n_branches = 0;
    if (saved_branches(a->model.st.session_name, &a->branches, &a->n_branches, &err) == K3_OK)
        return true;
    app_hint(a, INK_BAD, "%s", err.message);
    return false;
}

void slash_branches(struct app *a, const char *args)
{
    (void)args;
    if (read_branches(a))
        app_show_page(a, &page_branches);
}

void slash_branch(struct app *a, const char *args)
{
    struct k3_error err = {0};
    char *end;
    const unsigned long n = strtoul(args, &end, 10);
    if (*args == '\0' || *end != '\0')
        app_hint(a, INK_WARN, "/branch takes a number of /branches");
    else if (app_busy(a))
        app_hint(a, INK_WARN, "an answer is running; %s stops it", keymap_key(ACT_CANCEL));
    else if (!read_branches(a))
        return;
    else if (n < 1 || n > a->n_branches)
        app_hint(a, INK_WARN, "there are %zu branches; /branches lists them", a->n_branches);
    else if (session_branch(a->session, a->branches[n - 1].tip, &err) != K3_OK)
        app_hint(a, INK_BAD, "%s", err.message);
}

void slash_save(struct app *a, const char *args)
{
    struct k3_error err = {0};
    const struct entry *e = slash_last_answer(a, 1);
    if (*args == '\0' || !e)
        app_hint(a, INK_WARN, e ? "/save takes the name of a new file" : "there is no answer yet");
    else if (saved_write(args, e->text.s, e->text.len, &err) != K3_OK)
        app_hint(a, INK_BAD, "%s", err.message);
    else
        app_hint(a, INK_LABEL, "saved %s", args);
}

void slash_export(struct app *a, const char *args)
{
    struct k3_error err = {0};
    if (!has_file(a))
        return;
    if (*args == '\0')
        app_hint(a, INK_WARN, "/export takes a new file: .md, .txt or .jsonl");
    else if (saved_export(a->model.st.session_name, args, &err) != K3_OK)
        app_hint(a, INK_BAD, "%s", err.message);
    else
        app_hint(a, INK_LABEL, "exported %s", args);
}
