/* app_keys.c - what a key does. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "pages.h"
#include "pane.h"
#include "screen.h"
#include "text.h"

/* ---- leaving and cancelling -------------------------------------------------------------- */

/* The phase as it is now, not as it was when the last frame was drawn. */
static enum session_phase phase_now(struct app *a)
{
    session_get_status(a->session, &a->model.st);
    return a->model.st.phase;
}

bool app_busy(struct app *a)
{
    return phase_is_busy(phase_now(a));
}

void app_leave(struct app *a, bool sure)
{
    const bool unsaved = !a->asked_to_leave && session_unsaved(a->session);
    if ((sure && !unsaved) || a->asked_to_leave) {
        a->quit = true;
        return;
    }
    a->asked_to_leave = true;
    const char *key = keymap_key(ACT_QUIT)[0] ? keymap_key(ACT_QUIT) : keymap_key(ACT_INTERRUPT);
    if (unsaved)
        app_hint(a, INK_BAD, "what was said last is not on the disk: make room, or %s again leaves and "
                             "writes it elsewhere", key);
    else if (app_busy(a))
        app_hint(a, INK_WARN, "answer running: %s stops it and leaves", key);
    else
        app_hint(a, INK_WARN, "%s again leaves", keymap_key(ACT_INTERRUPT));
}

static bool take_back(struct app *a);

/* No to reading again: what is queued behind it comes back as well, in its order. */
static void only_view(struct app *a)
{
    size_t len = 0;
    char *text;
    while ((text = session_unqueue(a->session, &len)) != NULL) {
        app_put_first(a, text, len);
        talk_unqueue(&a->talk);
        free(text);
    }
    session_decide(a->session, false);
}

/* Stops what runs; false when nothing does. */
static bool cancel(struct app *a)
{
    const enum session_phase p = phase_now(a);
    if (phase_is_busy(p) && p != PHASE_CANCELLING) {
        session_cancel(a->session);
        app_hint(a, INK_WARN, "stopping");
        return true;
    }
    if (p == PHASE_ASKING) {
        only_view(a);
        return true;
    }
    return p == PHASE_IDLE && take_back(a); /* sent, but not begun */
}

static void interrupt(struct app *a)
{
    if (!cancel(a))
        app_leave(a, false);
}

static void end_of_input(struct app *a)
{
    if (a->editor.len > 0)
        editor_delete(&a->editor);
    else
        app_leave(a, !app_busy(a));
}

/* ---- sending ----------------------------------------------------------------------------- */

static bool only_blanks(const char *s, size_t len)
{
    return strspn(s, " \t\r\n") == len;
}

/* A message or a command; when it is refused, the text stays where it was. */
static void send_text(struct app *a, char *text, size_t len)
{
    struct k3_error err = {0};
    const size_t skip = len >= 2 && text[0] == '/' && text[1] == '/' ? 1 : 0;
    app_remember(a, text, len);
    if (text[0] == '/' && !skip) {
        if (!slash_run(a, text))
            editor_set(&a->editor, text, len);
        return;
    }
    const int64_t edited = a->editing;
    const enum k3_status status =
        edited < 0 ? session_send(a->session, text + skip, len - skip, &err)
                   : session_edit(a->session, (uint32_t)edited, text + skip, len - skip, &err);
    if (status != K3_OK) {
        editor_set(&a->editor, text, len);
        app_hint(a, INK_BAD, "%s", err.message);
        return;
    }
    a->editing = -1;
    if (edited < 0)
        talk_queue(&a->talk, text + skip, len - skip);
    talk_view_end(&a->view);
}

static void send_message(struct app *a)
{
    size_t len = 0;
    if (a->editor.len == 0 || only_blanks(a->editor.text, a->editor.len)) {
        session_decide(a->session, true);
        return;
    }
    char *text = editor_take(&a->editor, &len);
    if (!text)
        return;
    if (memchr(text, '\0', len)) /* nothing that is typed or pasted needs it */
        len = strlen(text);
    send_text(a, text, len);
    free(text);
}

/* The newest queued message comes back into the editor. */
static bool take_back(struct app *a)
{
    size_t len = 0;
    if (a->editor.len > 0 || session_queued(a->session) == 0)
        return false;
    char *text = session_unqueue(a->session, &len);
    if (!text)
        return false;
    editor_set(&a->editor, text, len);
    talk_unqueue(&a->talk);
    app_hint(a, INK_LABEL, "taken back from the queue");
    free(text);
    return true;
}

/* ---- window ------------------------------------------------------------------------------ */

void app_toggle_pane(struct app *a, size_t number)
{
    if (number >= a->n_pane_order) {
        app_hint(a, INK_LABEL, "there is no pane %zu", number + 1);
        return;
    }
    const size_t p = a->pane_order[number];
    a->pane_hidden[p] = !a->pane_hidden[p];
    app_hint(a, INK_LABEL, "%s: %s", panes[p].title, a->pane_hidden[p] ? "hidden" : "shown");
    a->layout_news = !a->pane_hidden[p];
    if (!a->pane_hidden[p] && a->preset == LAYOUT_CHAT)
        a->preset = LAYOUT_BOTH;
}

static void next_preset(struct app *a)
{
    static const char *const names[] = {"chat and panes", "chat alone", "panes large"};
    a->preset = (enum layout_preset)((a->preset + 1) % LAYOUT_PRESETS);
    app_hint(a, INK_LABEL, "%s", names[a->preset]);
    a->layout_news = true;
}

void app_show_page(struct app *a, const struct page *page)
{
    a->page = page;
    a->page_top = 0;
}

void app_find(struct app *a, bool backwards)
{
    if (a->find[0] == '\0') {
        if (a->editor.len == 0)
            editor_set(&a->editor, "/find ", 6);
        return;
    }
    if (!talk_view_find(&a->view, &a->talk, a->find, backwards))
        app_hint(a, INK_WARN, "no %s \"%s\"", backwards ? "earlier" : "later", a->find);
    else
        app_hint(a, INK_LABEL, "%s before, %s after, %s ends", keymap_key(ACT_FIND),
                 keymap_key(ACT_FIND_AGAIN), keymap_key(ACT_CANCEL));
}

static long page(const struct app *a)
{
    return a->view.area.rows > 2 ? a->view.area.rows - 2 : 1;
}

static void end_key(struct app *a)
{
    if (a->editor.len == 0)
        talk_view_end(&a->view);
    editor_line_end(&a->editor);
}

static void escape(struct app *a)
{
    if (a->view.find[0])
        a->view.find[0] = '\0';
    else if (a->editing >= 0) {
        a->editing = -1;
        editor_set(&a->editor, "", 0);
        app_hint(a, INK_LABEL, "the message stays as it was (undo brings the text back)");
    }
    else
        cancel(a);
}

static void move_up(struct app *a)
{
    if (take_back(a))
        return;
    if (!editor_row_up(&a->editor, a->edit_width))
        editor_past_older(&a->editor);
}

static void move_down(struct app *a)
{
    if (!editor_row_down(&a->editor, a->edit_width))
        editor_past_newer(&a->editor);
}

/* ---- actions ----------------------------------------------------------------------------- */

/* Those of the message editor; false when it is none of them. */
static bool edit(struct app *a, enum action act)
{
    struct editor *e = &a->editor;
    static void (*const simple[N_ACTIONS])(struct editor *) = {
        [ACT_LEFT] = editor_left,           [ACT_RIGHT] = editor_right,
        [ACT_WORD_LEFT] = editor_word_left, [ACT_WORD_RIGHT] = editor_word_right,
        [ACT_HOME] = editor_line_start,     [ACT_BACKSPACE] = editor_backspace,
        [ACT_DELETE] = editor_delete,       [ACT_KILL_WORD_LEFT] = editor_kill_word_left,
        [ACT_KILL_WORD_RIGHT] = editor_kill_word_right,
        [ACT_KILL_TO_START] = editor_kill_to_line_start,
        [ACT_KILL_TO_END] = editor_kill_to_line_end,
        [ACT_YANK] = editor_yank,           [ACT_UNDO] = editor_undo,
        [ACT_REDO] = editor_redo,
    };
    if (simple[act]) {
        simple[act](e);
        return true;
    }
    switch (act) {
    case ACT_SEND: send_message(a); return true;
    case ACT_NEWLINE: editor_insert_char(e, '\n'); return true;
    case ACT_COMPLETE: slash_complete(a); return true;
    case ACT_OLDER: editor_past_older(e); return true;
    case ACT_NEWER: editor_past_newer(e); return true;
    case ACT_UP: move_up(a); return true;
    case ACT_DOWN: move_down(a); return true;
    case ACT_END: end_key(a); return true;
    case ACT_EXTERNAL: app_external_editor(a); return true;
    case ACT_END_OF_INPUT: end_of_input(a); return true;
    default: return false;
    }
}

static void scroll(struct app *a, enum action act)
{
    switch (act) {
    case ACT_PAGE_UP: talk_view_scroll(&a->view, &a->talk, -page(a)); break;
    case ACT_PAGE_DOWN: talk_view_scroll(&a->view, &a->talk, page(a)); break;
    case ACT_ROW_UP: talk_view_scroll(&a->view, &a->talk, -1); break;
    case ACT_ROW_DOWN: talk_view_scroll(&a->view, &a->talk, 1); break;
    case ACT_TOP: talk_view_top(&a->view, &a->talk); break;
    case ACT_BOTTOM: talk_view_end(&a->view); break;
    default: break;
    }
}

static void act(struct app *a, enum action action)
{
    if (action >= ACT_PANE_1 && action <= ACT_PANE_8) {
        app_toggle_pane(a, (size_t)(action - ACT_PANE_1));
        return;
    }
    switch (action) {
    case ACT_CANCEL: escape(a); break;
    case ACT_INTERRUPT: interrupt(a); break;
    case ACT_THINKING: talk_view_toggle_thinking(&a->view, &a->talk); break;
    case ACT_FIND: app_find(a, true); break;
    case ACT_FIND_AGAIN: app_find(a, false); break;
    case ACT_PRESET: next_preset(a); break;
    case ACT_BARE: a->bare = true; break;
    case ACT_HELP: app_show_page(a, &page_help); break;
    case ACT_REDRAW: screen_redraw(); break;
    case ACT_SUSPEND: app_suspend(a); break;
    case ACT_QUIT: app_leave(a, !app_busy(a)); break;
    default: scroll(a, action); break;
    }
}

/* ---- pages, the list and the bare view take keys first ------------------------------------------ */

static bool page_key(struct app *a, enum action action, uint32_t key)
{
    if (!a->page)
        return false;
    const long rows = a->grid.rows > 5 ? a->grid.rows - 5 : 1;
    switch (action) {
    case ACT_PAGE_UP: app_page_scroll(a, -rows); return true;
    case ACT_PAGE_DOWN: app_page_scroll(a, rows); return true;
    case ACT_UP: case ACT_ROW_UP: app_page_scroll(a, -1); return true;
    case ACT_DOWN: case ACT_ROW_DOWN: app_page_scroll(a, 1); return true;
    case ACT_HOME: case ACT_TOP: app_page_scroll(a, -100000); return true;
    case ACT_END: case ACT_BOTTOM: app_page_scroll(a, 100000); return true;
    case ACT_REDRAW: case ACT_SUSPEND: case ACT_QUIT: return false;
    default: break;
    }
    if (key == ' ')
        app_page_scroll(a, rows);
    else
        a->page = NULL;
    return true;
}

static bool chooser_takes(struct app *a, enum action action, uint32_t key)
{
    if (!a->chooser.open)
        return false;
    if (action == ACT_REDRAW || action == ACT_SUSPEND || action == ACT_QUIT)
        return false;
    app_chooser_key(a, action, key);
    return true;
}

static bool bare_key(struct app *a, enum action action)
{
    if (!a->bare)
        return false;
    if ((action >= ACT_PAGE_UP && action <= ACT_BOTTOM) || action == ACT_THINKING ||
        action == ACT_REDRAW || action == ACT_SUSPEND || action == ACT_QUIT)
        return false;
    a->bare = false;
    return true;
}

static void press(struct app *a, uint32_t key)
{
    const enum action action = keymap_find(a->prefix, key);
    const bool in_sequence = a->prefix != 0;
    const bool asked = a->asked_to_leave;
    a->prefix = action == ACT_PREFIX ? key : 0;
    if (action == ACT_PREFIX)
        return;
    a->hint[0] = '\0';
    a->asked_to_leave = asked && (action == ACT_INTERRUPT || action == ACT_QUIT ||
                                  action == ACT_END_OF_INPUT);
    if (page_key(a, action, key) || chooser_takes(a, action, key) || bare_key(a, action))
        return;
    if (action != ACT_NONE) {
        if (!edit(a, action))
            act(a, action);
    } else if (!in_sequence && (key & MOD_MASK) == 0 && key < 0x110000 && key >= 0x20)
        editor_insert_char(&a->editor, key);
}

#define WHEEL_ROWS 3

static void wheel(struct app *a, bool up)
{
    const long rows = up ? -WHEEL_ROWS : WHEEL_ROWS;
    if (a->page)
        app_page_scroll(a, rows);
    else if (a->chooser.open)
        app_chooser_key(a, up ? ACT_UP : ACT_DOWN, 0);
    else
        talk_view_scroll(&a->view, &a->talk, rows);
}

void app_key(struct app *a, const struct key_event *ev)
{
    switch (ev->kind) {
    case KEY_PRESS:
        if (a->seek_found)
            a->seek_message = -1;
        press(a, ev->key);
        break;
    case KEY_PASTE_BEGIN:
        a->page = NULL;
        a->bare = false;
        chooser_close(&a->chooser);
        a->hint[0] = '\0';
        editor_begin_paste(&a->editor);
        break;
    case KEY_PASTE_TEXT:
        editor_insert(&a->editor, ev->text, ev->len);
        a->model_news = true; /* a long one is drawn now and then, not piece by piece */
        return;
    case KEY_PASTE_END: editor_end_paste(&a->editor); break;
    case KEY_FOCUS_IN: a->focused = true; break;
    case KEY_FOCUS_OUT: a->focused = false; break;
    case KEY_WHEEL_UP: wheel(a, true); break;
    case KEY_WHEEL_DOWN: wheel(a, false); break;
    }
    a->key_news = true;
    if (editor_failed(&a->editor))
        app_hint(a, INK_BAD, "there is no memory for that");
}
