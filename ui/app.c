/* app.c - the loop of the screen: waits for keys, for the session and for signals, and draws what
 * has changed, for keys at once, for the session at most five times a second. */
#include <config.h>

#include "app.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../src/typed.h"
#include "graph.h"
#include "pane.h"
#include "plain.h"
#include "screen.h"
#include "stray.h"
#include "text.h"

#define FRAME_S 0.2
#define AWAY_MS 500
#define EVENTS_AT_ONCE 4096 /* then the keys have their turn */
#define LONG_ANSWER_S 60
#define NOTABLE_ANSWER_S 10

double app_clock(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void app_hint(struct app *a, enum ink ink, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a->hint, sizeof a->hint, fmt, ap);
    va_end(ap);
    a->hint_ink = ink;
    a->key_news = true;
}

/* ---- news from the session --------------------------------------------------------------- */

static void notify(struct app *a, const char *what)
{
    char b[128];
    const enum ui_notify how = a->cfg->notify;
    const bool osc777 = how == UI_NOTIFY_OSC777;
    snprintf(b, sizeof b, osc777 ? "k3chat;%s" : "k3chat: %s", what);
    if (how == UI_NOTIFY_OSC || osc777)
        screen_notify(osc777 ? "777;notify;" : "9;", b);
    else if (how != UI_NOTIFY_OFF)
        screen_bell();
}

static void notify_end(struct app *a)
{
    const double took = app_clock() - a->answer_began;
    const bool notable = took >= LONG_ANSWER_S || (!a->focused && took >= NOTABLE_ANSWER_S);
    if (notable)
        notify(a, "the answer is complete");
}

void app_put_first(struct app *a, const char *text, size_t len)
{
    struct editor *e = &a->editor;
    if (e->len == 0)
        editor_set(e, text, len);
    else if (len > 0) {
        editor_start(e);
        editor_begin_paste(e);
        editor_insert(e, text, len);
        editor_insert(e, "\n", 1);
        editor_end_paste(e);
        editor_end(e);
    }
}

static void give_back(struct app *a, const struct session_event *ev)
{
    if (a->editor.len == 0 && ev->edited)
        a->editing = ev->index;
    app_put_first(a, ev->text ? ev->text : "", ev->len);
    app_hint(a, INK_LABEL, "the message is back in the editor");
}

static void take_event(struct app *a, const struct session_event *ev)
{
    if (ev->kind == EVENT_OPENED)
        app_opened(a);
    else if (ev->kind == EVENT_STEP || ev->kind == EVENT_PREFILL)
        model_step(&a->model, a->session, ev);
    else if (ev->kind == EVENT_ANSWER)
        a->answer_began = app_clock();
    else if (ev->kind == EVENT_ANSWER_END)
        notify_end(a);
    else if (ev->kind == EVENT_WITHDRAWN)
        give_back(a, ev);
    else if (ev->kind == EVENT_MESSAGE && ev->role == ROLE_USER && ev->text && !ev->sent)
        editor_remember(&a->editor, ev->text, ev->len);
    if (ev->kind == EVENT_PHASE && ev->phase == PHASE_VIEWING)
        talk_queue_keep(&a->talk, 0); /* it comes back */
    if (ev->kind == EVENT_PHASE && ev->phase == PHASE_ASKING && !a->focused)
        notify(a, "read again, or only view?");
    if (ev->kind == EVENT_ANSWER_END || ev->kind == EVENT_ERROR)
        a->hint[0] = '\0';
    if (ev->kind == EVENT_DROPPED && a->editing >= (int64_t)ev->index)
        a->editing = -1; /* what the text would have replaced is gone: it is a new message */
    talk_apply(&a->talk, ev);
}

static void take_events(struct app *a)
{
    struct session_event ev;
    for (int i = 0; i < EVENTS_AT_ONCE && session_next_event(a->session, &ev); i++) {
        take_event(a, &ev);
        session_event_free(&ev);
    }
    talk_view_clamp(&a->view, &a->talk);
    app_seek(a);
    a->model_news = true;
}

/* ---- what libraries write ---------------------------------------------------------------- */

#define STRAY_MOST 20 /* lines that are shown; a broken library must not fill the conversation */

static void take_stray(struct app *a)
{
    char line[512], text[560];
    while (stray_next(line, sizeof line)) {
        if (a->stray_lines++ >= STRAY_MOST)
            continue;
        snprintf(text, sizeof text, a->stray_lines == STRAY_MOST
                                        ? "stderr: %s (what follows is not shown)" : "stderr: %s",
                 line);
        talk_notice(&a->talk, ENTRY_NOTICE, text);
        a->model_news = true;
    }
}

/* ---- signals and suspending -------------------------------------------------------------- */

/* Comes back only when the terminal is ours again; in the background the work goes on. */
void app_suspend(struct app *a)
{
    screen_leave();
    screen_stop();
    if (screen_in_foreground())
        screen_enter();
    a->key_news = true;
}

/* A shell says nothing to a job that was running in the background when it is fetched back: the program
 * has to look (AWAY_MS). */
static void come_back(struct app *a)
{
    if (!screen_is_away() || !screen_in_foreground())
        return;
    screen_enter();
    a->key_news = true;
}

static void take_signals(struct app *a)
{
    const unsigned got = screen_take_signals();
    if (got & SCREEN_QUIT) {
        a->quit = true;
        a->status = K3_CANCELLED;
        return;
    }
    if (got & SCREEN_STOP)
        app_suspend(a);
    if (got & SCREEN_RESIZED)
        a->key_news = true;
}

/* ---- keys -------------------------------------------------------------------------------- */

static void on_key(void *ud, const struct key_event *ev)
{
    app_key(ud, ev);
}

static void read_keys(struct app *a)
{
    char buf[65536];
    const ssize_t n = read(screen_input_fd(), buf, sizeof buf);
    if (n > 0)
        keys_feed(&a->keys, buf, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN)) { /* the terminal is gone */
        a->quit = true;
        a->status = K3_CANCELLED;
    }
}

/* ---- the loop ---------------------------------------------------------------------------- */

static int ms_until(double t, double now)
{
    return t <= now ? 0 : (int)((t - now) * 1000) + 1;
}

static void draw_if_due(struct app *a, double *next_frame)
{
    const double now = app_clock();
    if (screen_is_away() || (!a->key_news && !(a->model_news && now >= *next_frame)))
        return;
    model_refresh(&a->model, a->session, now, (int64_t)time(NULL));
    app_draw(a);
    a->key_news = a->model_news = false;
    *next_frame = app_clock() + FRAME_S;
}

static int wait_ms(struct app *a, double next_frame, double last_byte)
{
    const double now = app_clock();
    int ms = -1;
    if (chooser_searching(&a->chooser))
        return 0;
    if (screen_is_away())
        ms = AWAY_MS;
    else if (a->model_news)
        ms = ms_until(next_frame, now);
    const int keys = keys_wait_ms(&a->keys);
    if (keys >= 0) {
        const int k = ms_until(last_byte + keys / 1000.0, now);
        ms = ms < 0 || k < ms ? k : ms;
    }
    return ms;
}

static void loop(struct app *a)
{
    double next_frame = 0, last_byte = 0;
    a->key_news = true;
    while (!a->quit) {
        draw_if_due(a, &next_frame);
        struct pollfd fds[4] = {
            {.fd = screen_is_away() ? -1 : screen_input_fd(), .events = POLLIN},
            {.fd = session_fd(a->session), .events = POLLIN},
            {.fd = screen_signal_fd(), .events = POLLIN},
            {.fd = stray_fd(), .events = POLLIN},
        };
        if (poll(fds, 4, wait_ms(a, next_frame, last_byte)) < 0 && errno != EINTR)
            break;
        if (fds[2].revents)
            take_signals(a);
        come_back(a);
        if (fds[0].revents && !screen_is_away()) {
            read_keys(a);
            last_byte = app_clock();
        }
        if (fds[1].revents)
            take_events(a);
        if (fds[3].revents)
            take_stray(a);
        if (chooser_searching(&a->chooser)) {
            chooser_work(&a->chooser);
            a->model_news = true;
        }
        const int keys = keys_wait_ms(&a->keys);
        if (keys >= 0 && app_clock() >= last_byte + keys / 1000.0)
            keys_timeout(&a->keys);
    }
}

/* ---- the history of what was typed ------------------------------------------------------- */

static void take_typed(void *ud, const char *text, size_t len)
{
    editor_remember(ud, text, len);
}

/* What earlier starts have kept; the messages of the session that opens come behind it, and so are
 * nearer. */
static void read_history(struct app *a)
{
    struct k3_error err = {0};
    if (!a->cfg->no_history && typed_read(take_typed, &a->editor, &err) != K3_OK)
        talk_notice(&a->talk, ENTRY_NOTICE, err.message);
}

void app_remember(struct app *a, const char *text, size_t len)
{
    struct k3_error err = {0};
    editor_remember(&a->editor, text, len);
    if (a->cfg->no_history || a->unwritten || a->history_failed)
        return;
    a->history_failed = typed_add(text, len, &err) != K3_OK;
    if (a->history_failed)
        talk_notice(&a->talk, ENTRY_NOTICE, err.message);
}

/* Written and not sent: a terminal that closes must not take it along. */
static void keep_draft(struct app *a)
{
    size_t len = 0;
    char *text = a->editor.len > 0 ? editor_take(&a->editor, &len) : NULL;
    if (text && strspn(text, " \t\r\n") < strlen(text))
        app_remember(a, text, strlen(text));
    free(text);
}

/* ---- start and end ----------------------------------------------------------------------- */

/* The panes of the profile in its order; all of them when it names none. */
static void choose_panes(struct app *a)
{
    for (size_t i = 0; i < a->cfg->n_panes && a->n_pane_order < LAYOUT_MAX_PANES; i++) {
        const struct pane *p = a->cfg->panes[i] ? pane_find(a->cfg->panes[i]) : NULL;
        if (p)
            a->pane_order[a->n_pane_order++] = (size_t)(p - panes);
        else
            app_hint(a, INK_WARN, "the profile names a pane \"%s\" that there is not",
                     a->cfg->panes[i] ? a->cfg->panes[i] : "");
    }
    if (a->cfg->n_panes == 0)
        for (size_t i = 0; i < n_panes; i++)
            a->pane_order[a->n_pane_order++] = i;
}

static void app_init(struct app *a, struct session *s, const struct ui_config *cfg)
{
    *a = (struct app){.session = s, .cfg = cfg, .focused = true, .edit_width = 76,
                      .editing = -1, .seek_message = -1, .mouse = cfg->mouse};
    model_init(&a->model);
    talk_init(&a->talk);
    talk_view_init(&a->view);
    editor_init(&a->editor);
    keymap_init(cfg);
    keys_init(&a->keys, on_key, a);
    choose_panes(a);
    read_history(a);
    session_get_status(s, &a->model.st);
    a->unwritten = a->model.st.temporary;
    a->model.graph = graph_choose(cfg->graph, screen_utf8(), getenv("TERM"));
    if (!screen_utf8())
        talk_notice(&a->talk, ENTRY_NOTICE,
                    "The locale has no UTF-8: characters outside ASCII are shown as '?'. "
                    "LC_ALL=C.UTF-8 cures that.");
}

static void app_free(struct app *a)
{
    model_free(&a->model);
    talk_free(&a->talk);
    editor_free(&a->editor);
    grid_free(&a->grid);
    chooser_close(&a->chooser);
    free(a->branches);
    rich_free(&a->page_text);
    wrapped_free(&a->page_rows);
}

bool ui_check(const struct ui_config *cfg, struct k3_error *err)
{
    return keymap_check(cfg, err);
}

int ui_run(struct session *s, const struct ui_config *cfg, struct k3_error *err)
{
    struct app a;
    if (cfg->plain)
        return plain_run(s, cfg, err);
    if (!ui_terminal_ok(err))
        return err->status;
    if (!screen_open(cfg, err))
        return err->status;
    app_init(&a, s, cfg);
    loop(&a);
    keep_draft(&a);
    session_get_status(s, &a.model.st);
    screen_close();
    if (a.status == 0 && a.model.st.phase == PHASE_FAILED)
        a.status = k3_fail(err, K3_FAILED, "%s", a.model.st.detail);
    else if (a.status != 0)
        k3_fail(err, K3_CANCELLED, "interrupted");
    const int status = a.status;
    app_free(&a);
    return status;
}
