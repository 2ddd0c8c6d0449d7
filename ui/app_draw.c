/* app_draw.c - one frame: layout, chat, panes, message, status. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "app.h"
#include "format.h"
#include "pages.h"
#include "pane.h"
#include "screen.h"
#include "status.h"
#include "text.h"

static struct rect inset(const struct rect *r, int left, int right)
{
    const int cols = r->cols - left - right;
    return (struct rect){r->row, r->col + left, r->rows, cols > 0 ? cols : 0};
}

/* ---- layout ------------------------------------------------------------------------------ */

static void compute_layout(struct app *a)
{
    struct layout_in in = {.rows = a->grid.rows, .cols = a->grid.cols, .preset = a->preset,
                           .editor_rows = 1};
    for (size_t i = 0; i < a->n_pane_order; i++)
        if (!a->pane_hidden[a->pane_order[i]])
            in.panes[in.n_panes++] = panes[a->pane_order[i]].need;
    layout_compute(&in, &a->layout);
    if (a->layout.too_small)
        return;
    /* one margin column left, one right for blanks that hang over */
    a->edit_width = a->layout.editor.cols > 3 ? (unsigned)a->layout.editor.cols - 2 : 1;
    const struct wrapped *w = editor_rows(&a->editor, a->edit_width);
    in.editor_rows = w ? (int)(w->n < 1000 ? w->n : 1000) : 1;
    layout_compute(&in, &a->layout);
}

static void draw_too_small(struct app *a)
{
    const struct rect all = grid_all(&a->grid);
    char b[128];
    int row = all.rows / 2;
    int n = snprintf(b, sizeof b, "too small: have %dx%d, ", all.cols, all.rows);
    const bool two = n + 10 > all.cols;
    if (two) {
        grid_put_cut(&a->grid, &all, row, 0, all.cols, INK_WARN, b, (size_t)n - 2);
        n = 0;
    }
    snprintf(b + n, sizeof b - (size_t)n, "need %dx%d", LAYOUT_MIN_COLS, LAYOUT_MIN_ROWS);
    grid_put_cut(&a->grid, &all, two ? row + 1 : row, 0, all.cols, INK_WARN, b, strlen(b));
    if (row > 0) {
        snprintf(b, sizeof b, "k3chat: %s", session_phase_name(a->model.st.phase));
        grid_put_cut(&a->grid, &all, row - 1, 0, all.cols, INK_TEXT, b, strlen(b));
    }
}

/* ---- chat -------------------------------------------------------------------------------- */

static void draw_chat(struct app *a)
{
    const struct rect r = inset(&a->layout.transcript, 1, 1);
    a->view.now = a->model.now;
    talk_view_draw(&a->view, &a->talk, &a->grid, &r);
    if (a->talk.n == 0 && r.rows > 1) {
        const char *s = a->model.st.phase == PHASE_LOADING ? "The model is being loaded. You can "
                                                             "write already."
                                                           : "Ask something.";
        grid_put_cut(&a->grid, &r, 0, 0, r.cols, INK_DIM, s, strlen(s));
    }
}

/* A hint that has no room in a rule covers the last rows of an area until the next key; how many. */
static int draw_long_hint(struct app *a, const struct rect *t, enum ink ink, const char *text)
{
    struct wrapped w = {0};
    int rows = 0;
    if (wrap_plain(text, strlen(text), (unsigned)t->cols - 2, &w)) {
        rows = w.n < 5 ? (int)w.n : 5;
        rows = rows < t->rows ? rows : t->rows;
        const struct rect r = {t->row + t->rows - rows, t->col, rows, t->cols};
        grid_fill(&a->grid, &r, INK_TEXT, ' ');
        for (int y = 0; y < rows; y++)
            grid_put(&a->grid, &r, y, 0, ink, text + w.rows[y].start,
                     w.rows[y].end - w.rows[y].start);
    }
    wrapped_free(&w);
    return rows;
}

/* What stands in the rule instead of its title: a hint, or the question that waits. */
static const char *title_text(struct app *a, enum ink *ink, char *buf, size_t size)
{
    const struct session_status *st = &a->model.st;
    char t[32];
    *ink = a->hint_ink;
    if (a->hint[0] || st->phase != PHASE_ASKING)
        return a->hint;
    *ink = INK_WARN;
    snprintf(buf, size, "%u tokens to read again, about %s%s: read, or only view?",
             st->reread_tokens, fmt_about(t, sizeof t, st->reread_seconds),
             st->reread_planned ? " by the plan" : "");
    return buf;
}

static void draw_message_title(struct app *a)
{
    const struct rect r = a->layout.editor_title;
    char b[128], question[160];
    enum ink ink;
    const char *text = title_text(a, &ink, question, sizeof question);
    int col = 2;
    grid_hline(&a->grid, &r, 0, 0, r.cols, INK_RULE);
    const bool fits = (int)text_width(text, strlen(text)) <= r.cols - col - 2;
    if (text[0] && !fits) {
        const struct rect chat = inset(&a->layout.transcript, 1, 1);
        draw_long_hint(a, &chat, ink, text);
    }
    if (text[0] && fits) {
        grid_set(&a->grid, &r, 0, col - 1, INK_RULE, ' ');
        col = grid_put_cut(&a->grid, &r, 0, col, r.cols - col - 2, ink, text, strlen(text));
    } else {
        grid_set(&a->grid, &r, 0, col - 1, INK_RULE, ' ');
        if (a->editing >= 0) {
            snprintf(b, sizeof b, "edited: %s answers anew, %s leaves it", keymap_key(ACT_SEND),
                     keymap_key(ACT_CANCEL));
            col = grid_put_cut(&a->grid, &r, 0, col, r.cols - col - 2, INK_WARN, b, strlen(b));
        } else
            col = grid_puts(&a->grid, &r, 0, col, INK_TITLE, "message");
        if (a->model.queued > 0) {
            snprintf(b, sizeof b, "  queued: %zu (%s takes back)", a->model.queued,
                     keymap_key(ACT_UP));
            col = grid_put_cut(&a->grid, &r, 0, col, r.cols - col - 2, INK_WARN, b, strlen(b));
        }
    }
    grid_set(&a->grid, &r, 0, col, INK_RULE, ' ');
    const size_t fresh = talk_view_new_rows(&a->view, &a->talk);
    if (a->view.follow)
        return;
    if (fresh > 0)
        snprintf(b, sizeof b, " %zu new line%s: %s ", fresh, fresh == 1 ? "" : "s",
                 keymap_key(ACT_END));
    else
        snprintf(b, sizeof b, " scrolled back: %s ", keymap_key(ACT_END));
    if (col + (int)strlen(b) + 2 < r.cols)
        grid_puts_right(&a->grid, &r, 0, r.cols - 1, fresh > 0 ? INK_WARN : INK_LABEL, b);
}

static void draw_placeholder(struct app *a, const struct rect *r)
{
    char b[160];
    const enum session_phase p = a->model.st.phase;
    if (p == PHASE_FAILED)
        snprintf(b, sizeof b, "There is no model. %s leaves", keymap_key(ACT_QUIT));
    else if (p == PHASE_VIEWING)
        snprintf(b, sizeof b, "Read only. /resume tries to write it");
    else if (p == PHASE_ASKING)
        snprintf(b, sizeof b, "%s reads, %s only views", keymap_key(ACT_SEND),
                 keymap_key(ACT_CANCEL));
    else if (phase_is_busy(p))
        snprintf(b, sizeof b, "%s queues, %s stops, /help", keymap_key(ACT_SEND),
                 keymap_key(ACT_CANCEL));
    else
        snprintf(b, sizeof b, "%s sends, %s new line, /help", keymap_key(ACT_SEND),
                 keymap_key(ACT_NEWLINE));
    grid_put_cut(&a->grid, r, 0, 0, r->cols - 1, INK_DIM, b, strlen(b));
}

static void draw_message(struct app *a)
{
    const struct rect r = inset(&a->layout.editor, 1, 0);
    const struct wrapped *w = editor_rows(&a->editor, a->edit_width);
    size_t row = 0;
    unsigned col = 0;
    if (!w)
        return;
    if (a->editor.len == 0)
        draw_placeholder(a, &r);
    editor_cursor_pos(&a->editor, a->edit_width, &row, &col);
    const size_t rows = r.rows > 0 ? (size_t)r.rows : 1;
    if (a->edit_top > row)
        a->edit_top = row;
    if (row >= a->edit_top + rows)
        a->edit_top = row - rows + 1;
    if (a->edit_top + rows > w->n)
        a->edit_top = w->n > rows ? w->n - rows : 0;
    const size_t top = a->edit_top;
    for (int y = 0; y < r.rows && top + (size_t)y < w->n && a->editor.len > 0; y++) {
        const struct row *line = &w->rows[top + (size_t)y];
        const bool command = a->editor.text[0] == '/' && line->line == 0;
        grid_put(&a->grid, &r, y, 0, command ? INK_KEY : INK_TEXT,
                 a->editor.text + line->start, line->end - line->start);
    }
    if (a->page || r.cols < 1)
        return;
    a->grid.cursor_row = r.row + (int)(row - top);
    a->grid.cursor_col = r.col + ((int)col < r.cols ? (int)col : r.cols - 1);
}

/* ---- panes ------------------------------------------------------------------------------- */

static void draw_pane(struct app *a, const struct pane *p, const struct rect *r)
{
    const struct rect inner = {r->row + 1, r->col + 1, r->rows - 1, r->cols - 2};
    grid_hline(&a->grid, r, 0, 0, r->cols, INK_RULE);
    const int end = grid_puts(&a->grid, r, 0, 2, INK_TITLE, p->title);
    grid_set(&a->grid, r, 0, 1, INK_RULE, ' ');
    grid_set(&a->grid, r, 0, end, INK_RULE, ' ');
    p->draw(&a->model, &a->grid, &inner);
}

static void draw_panes(struct app *a)
{
    size_t shown = 0;
    for (size_t i = 0; i < a->n_pane_order && shown < a->layout.n_shown; i++) {
        if (a->pane_hidden[a->pane_order[i]])
            continue;
        draw_pane(a, &panes[a->pane_order[i]], &a->layout.panes[shown++]);
    }
}

static bool is_hline(struct app *a, int row, int col)
{
    const struct cell *c = grid_at(&a->grid, row, col);
    return c && c->ink == INK_RULE && c->cp == symbol(SYM_HLINE);
}

/* The upright line, joined to the lines that meet it. */
static void draw_rule(struct app *a)
{
    const struct rect r = a->layout.rule;
    for (int y = 0; y < r.rows; y++) {
        const bool left = is_hline(a, r.row + y, r.col - 1);
        const bool right = is_hline(a, r.row + y, r.col + 1);
        const enum symbol s = left && right ? SYM_CROSS : left ? SYM_TEE_LEFT
                              : right ? SYM_TEE_RIGHT : SYM_VLINE;
        grid_set(&a->grid, &r, y, 0, INK_RULE, symbol(s));
    }
}

/* ---- pages ------------------------------------------------------------------------------- */

static size_t page_rows_shown(const struct app *a)
{
    return a->grid.rows > 3 ? (size_t)a->grid.rows - 3 : 1;
}

void app_page_scroll(struct app *a, long rows)
{
    const size_t shown = page_rows_shown(a);
    const long most = a->page_rows.n > shown ? (long)(a->page_rows.n - shown) : 0;
    long top = (long)a->page_top + rows;
    a->page_top = (size_t)(top < 0 ? 0 : top > most ? most : top);
}

/* Clears the window between title and status; returns the room inside. `keys` stands behind the
 * title. */
static struct rect draw_cover(struct app *a, const char *title, const char *keys)
{
    const struct rect body = {1, 0, a->grid.rows - 2, a->grid.cols};
    grid_fill(&a->grid, &body, INK_TEXT, ' ');
    grid_hline(&a->grid, &body, 0, 0, body.cols, INK_RULE);
    int col = grid_puts(&a->grid, &body, 0, 2, INK_TITLE, title);
    grid_set(&a->grid, &body, 0, 1, INK_RULE, ' ');
    col = grid_put_cut(&a->grid, &body, 0, col, body.cols - col - 2, INK_LABEL, keys, strlen(keys));
    grid_set(&a->grid, &body, 0, col, INK_RULE, ' ');
    a->grid.cursor_row = -1;
    return (struct rect){2, 1, body.rows - 1, body.cols - 2};
}

static void draw_page(struct app *a)
{
    char b[128];
    rich_clear(&a->page_text);
    a->page->build(a, &a->page_text);
    if (!wrap_rich(&a->page_text, (unsigned)(a->grid.cols - 2), &a->page_rows))
        return;
    app_page_scroll(a, 0);
    const bool more = a->page_top + page_rows_shown(a) < a->page_rows.n;
    if (more)
        snprintf(b, sizeof b, "  %s for more, %s closes", keymap_key(ACT_PAGE_DOWN),
                 keymap_key(ACT_CANCEL));
    else
        snprintf(b, sizeof b, "  %s closes", keymap_key(ACT_CANCEL));
    const struct rect r = draw_cover(a, a->page->title, b);
    for (int y = 0; y < r.rows && a->page_top + (size_t)y < a->page_rows.n; y++)
        rich_draw_row(&a->page_text, &a->page_rows, a->page_top + (size_t)y, &a->grid, &r, y);
}

/* ---- sessions ---------------------------------------------------------------------------- */

/* What was to be said stands in the last row: the message's own line is covered. */
static void draw_chooser(struct app *a)
{
    char b[128];
    struct rect r = draw_cover(a, "sessions", chooser_keys(&a->chooser, b, sizeof b));
    if (a->hint[0] && r.rows > 3)
        r.rows -= draw_long_hint(a, &r, a->hint_ink, a->hint);
    chooser_draw(&a->chooser, &a->grid, &r, a->model.st.session_name, a->model.now);
}

/* ---- the frame --------------------------------------------------------------------------- */

static void draw_bare(struct app *a)
{
    const struct rect r = {0, 0, a->grid.rows - 1, a->grid.cols};
    const struct rect last = {a->grid.rows - 1, 0, 1, a->grid.cols};
    a->view.now = a->model.now;
    talk_view_draw(&a->view, &a->talk, &a->grid, &r);
    char b[128];
    snprintf(b, sizeof b, "%s and %s scroll, any other key goes back", keymap_key(ACT_PAGE_UP),
             keymap_key(ACT_PAGE_DOWN));
    grid_put_cut(&a->grid, &last, 0, 0, last.cols, INK_DIM, b, strlen(b));
}

static void draw_all(struct app *a)
{
    title_draw(&a->model, &a->grid, &a->layout.title);
    status_draw(&a->model, &a->grid, &a->layout.status);
    draw_chat(a);
    draw_panes(a);
    draw_message_title(a);
    draw_message(a);
    draw_rule(a);
    if (a->chooser.open)
        draw_chooser(a);
    if (a->page)
        draw_page(a);
}

static void update_window_title(struct app *a)
{
    char b[sizeof a->window_title];
    status_window_title(&a->model, b, sizeof b);
    if (strcmp(b, a->window_title) != 0) {
        memcpy(a->window_title, b, sizeof b);
        screen_set_title(b);
    }
}

/* A layout with panes in a window that has no room for one looks like the chat alone. */
static void tell_no_room(struct app *a)
{
    if (a->layout_news && a->preset != LAYOUT_CHAT && a->layout.n_shown == 0 && !a->layout.too_small)
        app_hint(a, INK_WARN, "this window has no room for panes");
    a->layout_news = false;
}

void app_draw(struct app *a)
{
    int rows, cols;
    screen_size(&rows, &cols);
    if (!grid_resize(&a->grid, rows, cols))
        return;
    talk_progress(&a->talk, &a->model.st);
    a->talk.bare = a->bare;
    compute_layout(a);
    tell_no_room(a);
    if (a->layout.too_small)
        draw_too_small(a);
    else if (a->bare)
        draw_bare(a);
    else
        draw_all(a);
    screen_set_mouse(a->mouse && !a->bare);
    screen_show(&a->grid);
    update_window_title(a);
}
