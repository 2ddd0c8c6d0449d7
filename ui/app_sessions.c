/* app_sessions.c - going from one session to another, renaming and deleting, and the list of them. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "app.h"

void app_go_to(struct app *a, const char *name, bool forget)
{
    struct k3_error err = {0};
    a->seek_message = -1;
    a->seek_opened = false;
    if (app_busy(a))
        app_hint(a, INK_WARN, "an answer is running; %s stops it", keymap_key(ACT_CANCEL));
    else if (session_switch(a->session, name, forget, &err) != K3_OK)
        app_hint(a, INK_BAD, "%s", err.message);
    else if (!name)
        a->unwritten = true; /* what is typed before it is open belongs there already */
}

static bool is_current(struct app *a, const char *name)
{
    session_get_status(a->session, &a->model.st);
    return strcmp(name, a->model.st.session_name) == 0;
}

void app_rename(struct app *a, const char *name, const char *new_name)
{
    struct k3_error err = {0};
    if (!is_current(a, name)) {
        if (saved_rename(name, new_name, &err) != K3_OK)
            app_hint(a, INK_BAD, "%s", err.message);
        return;
    }
    const bool busy = app_busy(a);
    if (session_rename(a->session, new_name, &err) != K3_OK)
        app_hint(a, INK_BAD, "%s", err.message);
    else if (busy)
        app_hint(a, INK_LABEL, "renamed as soon as the answer is complete");
}

void app_delete(struct app *a, const char *name)
{
    struct k3_error err = {0};
    if (!is_current(a, name)) {
        if (saved_delete(name, &err) != K3_OK)
            app_hint(a, INK_BAD, "%s", err.message);
        else
            app_hint(a, INK_LABEL, "deleted \"%s\"", name);
    } else if (a->model.st.phase == PHASE_VIEWING)
        app_hint(a, INK_WARN, "this session is open in another k3chat");
    else
        app_go_to(a, "", true);
}

/* ---- the list ---------------------------------------------------------------------------- */

/* The session of a found place is opened, and the place looked for when its messages are there. */
static void open_chosen(struct app *a)
{
    const struct chooser_hit *hit = chooser_hit(&a->chooser);
    const int64_t message = hit ? (int64_t)hit->message - 1 : -1;
    const bool current = hit && is_current(a, chooser_name(&a->chooser));
    if (!current)
        app_go_to(a, chooser_name(&a->chooser), false);
    if (hit)
        snprintf(a->find, sizeof a->find, "%s", a->chooser.filter);
    a->seek_message = message;
    a->seek_found = false;
    a->seek_opened = current;
    app_seek(a);
    chooser_close(&a->chooser);
}

void app_chooser_key(struct app *a, enum action action, uint32_t key)
{
    struct k3_error err = {0};
    char name[SAVED_NAME_CAP];
    const enum chooser_wish wish = chooser_key(&a->chooser, action, key);
    if (wish == CHOOSER_OPEN)
        open_chosen(a);
    else if (wish != CHOOSER_NOTHING) {
        snprintf(name, sizeof name, "%s", chooser_name(&a->chooser));
        const bool current = is_current(a, name);
        if (wish == CHOOSER_DO_RENAME)
            app_rename(a, name, a->chooser.input);
        else
            app_delete(a, name);
        if (current) /* it changes a little later, on the engine's thread */
            chooser_close(&a->chooser);
        else if (!chooser_reload(&a->chooser, &err))
            app_hint(a, INK_BAD, "%s", err.message);
    }
    if (!a->chooser.open)
        chooser_close(&a->chooser);
}

/* ---- another session is there ------------------------------------------------------------ */

void app_opened(struct app *a)
{
    talk_clear(&a->talk);
    talk_queue_keep(&a->talk, session_queued(a->session)); /* the others were for the one that was left */
    const bool open = a->view.open;
    talk_view_init(&a->view);
    a->view.open = open;
    a->editing = -1;
    a->seek_opened = true;
    session_get_status(a->session, &a->model.st);
    a->unwritten = a->model.st.temporary;
}

void app_seek(struct app *a)
{
    if (a->seek_message < 0 || !a->seek_opened)
        return;
    if (!talk_view_find_in(&a->view, &a->talk, a->find, a->seek_message))
        return;
    /* So near the end as it is now, the place would be left when more messages come: it is gone to
     * again then, until a key says otherwise. */
    a->seek_found = true;
    if (!a->view.follow)
        a->seek_message = -1;
}
