/* editor.c - text, cursor and motion of the message editor (see editor.h). */
#include <config.h>

#include "editor.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "editor_change.h"
#include "grow.h"
#include "text.h"

void editor_init(struct editor *e)
{
    *e = (struct editor){0};
}

void editor_free(struct editor *e)
{
    editor_forget_changes(e);
    for (size_t i = 0; i < e->n_past; i++)
        free(e->past[i]);
    free(e->past);
    free(e->undo);
    free(e->text);
    free(e->killed);
    free(e->draft);
    wrapped_free(&e->rows);
    *e = (struct editor){0};
}

bool editor_failed(struct editor *e)
{
    const bool failed = e->failed;
    e->failed = false;
    return failed;
}

/* Any action but a vertical motion, a kill or typing ends what these remember. */
static void settle(struct editor *e)
{
    e->has_goal = false;
    e->killing = false;
    editor_stop_typing(e);
}

/* ---- inserting --------------------------------------------------------------------------- */

/* A valid copy of s in *out (malloc'ed, unless s is valid already: then NULL). */
static bool make_valid(const char *s, size_t len, char **out, size_t *out_len)
{
    *out = NULL;
    *out_len = len;
    size_t at = 0;
    uint32_t cp = 0;
    while (at < len) {
        const size_t n = text_decode(s + at, len - at, &cp);
        if (n == 1 && cp == TEXT_BAD)
            break;
        at += n;
    }
    if (at == len)
        return true;
    char *clean = malloc(3 * len);
    if (!clean)
        return false;
    size_t good = 0;
    for (at = 0; at < len;) {
        at += text_decode(s + at, len - at, &cp);
        good += text_encode(cp, clean + good);
    }
    *out = clean;
    *out_len = good;
    return true;
}

void editor_insert(struct editor *e, const char *s, size_t len)
{
    char *clean = NULL;
    size_t n = 0;
    if (!make_valid(s, len, &clean, &n)) {
        e->failed = true;
        return;
    }
    e->has_goal = e->killing = false;
    if (!e->joining)
        editor_stop_typing(e);
    editor_replace(e, e->cursor, 0, clean ? clean : s, n, e->joining);
    free(clean);
}

void editor_insert_char(struct editor *e, uint32_t cp)
{
    char b[4];
    const size_t n = text_encode(cp, b);
    e->has_goal = e->killing = false;
    if (cp == ' ' || cp == '\n')
        editor_stop_typing(e); /* undo goes word by word */
    editor_replace(e, e->cursor, 0, b, n, true);
}

void editor_begin_paste(struct editor *e)
{
    settle(e);
    e->joining = true;
}

void editor_end_paste(struct editor *e)
{
    e->joining = false;
    editor_stop_typing(e);
}

void editor_set(struct editor *e, const char *s, size_t len)
{
    char *clean = NULL;
    size_t n = 0;
    settle(e);
    if (!make_valid(s, len, &clean, &n)) {
        e->failed = true;
        return;
    }
    editor_replace(e, 0, e->len, clean ? clean : s, n, false);
    free(clean);
}

char *editor_take(struct editor *e, size_t *len)
{
    char *s = malloc(e->len + 1);
    if (!s) {
        e->failed = true;
        return NULL;
    }
    if (e->len > 0)
        memcpy(s, e->text, e->len);
    s[e->len] = '\0';
    *len = e->len;
    e->len = e->cursor = 0;
    e->rows_good = false;
    e->past_at = e->n_past;
    settle(e);
    editor_forget_changes(e);
    return s;
}

/* ---- motion ------------------------------------------------------------------------------ */

void editor_left(struct editor *e)
{
    settle(e);
    e->cursor = text_prev(e->text, e->len, e->cursor);
}

void editor_right(struct editor *e)
{
    settle(e);
    e->cursor = text_next(e->text, e->len, e->cursor);
}

static bool in_word(const struct editor *e, size_t at)
{
    uint32_t cp = 0;
    if (text_decode(e->text + at, e->len - at, &cp) == 0)
        return false;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU: case UTF8PROC_CATEGORY_LL: case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM: case UTF8PROC_CATEGORY_LO: case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC: case UTF8PROC_CATEGORY_ND: case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return true;
    default: return cp == '_';
    }
}

static size_t word_left(const struct editor *e)
{
    size_t at = e->cursor;
    bool word = false;
    while (at > 0) {
        const size_t prev = text_prev(e->text, e->len, at);
        if (in_word(e, prev))
            word = true;
        else if (word)
            break;
        at = prev;
    }
    return at;
}

static size_t word_right(const struct editor *e)
{
    size_t at = e->cursor;
    while (at < e->len && !in_word(e, at))
        at = text_next(e->text, e->len, at);
    while (at < e->len && in_word(e, at))
        at = text_next(e->text, e->len, at);
    return at;
}

static size_t line_start(const struct editor *e)
{
    size_t at = e->cursor;
    while (at > 0 && e->text[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_end(const struct editor *e)
{
    const char *nl = e->cursor < e->len
                         ? memchr(e->text + e->cursor, '\n', e->len - e->cursor) : NULL;
    return nl ? (size_t)(nl - e->text) : e->len;
}

void editor_word_left(struct editor *e)
{
    settle(e);
    e->cursor = word_left(e);
}

void editor_word_right(struct editor *e)
{
    settle(e);
    e->cursor = word_right(e);
}

void editor_line_start(struct editor *e)
{
    settle(e);
    e->cursor = line_start(e);
}

void editor_line_end(struct editor *e)
{
    settle(e);
    e->cursor = line_end(e);
}

void editor_start(struct editor *e)
{
    settle(e);
    e->cursor = 0;
}

void editor_end(struct editor *e)
{
    settle(e);
    e->cursor = e->len;
}

const struct wrapped *editor_rows(struct editor *e, unsigned width)
{
    if (e->rows_good && e->rows.width == width)
        return &e->rows;
    e->rows_good = wrap_plain(e->text, e->len, width, &e->rows);
    if (!e->rows_good)
        e->failed = true;
    return e->rows_good ? &e->rows : NULL;
}

void editor_cursor_pos(struct editor *e, unsigned width, size_t *row, unsigned *col)
{
    const struct wrapped *w = editor_rows(e, width);
    *row = 0;
    *col = 0;
    if (!w || e->len == 0)
        return;
    *row = wrapped_find(w, e->cursor);
    const struct row *r = &w->rows[*row];
    *col = text_width(e->text + r->start, e->cursor - r->start);
}

/* Puts the cursor into a row, as near to the goal column as clusters allow. */
static void enter_row(struct editor *e, const struct wrapped *w, size_t row)
{
    const struct row *r = &w->rows[row];
    size_t at = r->start + text_fit(e->text + r->start, r->end - r->start, e->goal_col);
    const bool wraps_on = row + 1 < w->n && w->rows[row + 1].line == r->line;
    if (wraps_on && at >= w->rows[row + 1].start) /* that offset belongs to the next row */
        at = text_prev(e->text, e->len, w->rows[row + 1].start);
    e->cursor = at;
}

static bool move_rows(struct editor *e, unsigned width, bool up)
{
    const struct wrapped *w = editor_rows(e, width);
    size_t row = 0;
    unsigned col = 0;
    if (!w)
        return false;
    editor_cursor_pos(e, width, &row, &col);
    if (up ? row == 0 : row + 1 >= w->n)
        return false;
    if (!e->has_goal)
        e->goal_col = col;
    settle(e);
    e->has_goal = true;
    enter_row(e, w, up ? row - 1 : row + 1);
    return true;
}

bool editor_row_up(struct editor *e, unsigned width)
{
    return move_rows(e, width, true);
}

bool editor_row_down(struct editor *e, unsigned width)
{
    return move_rows(e, width, false);
}

/* ---- removing ---------------------------------------------------------------------------- */

void editor_backspace(struct editor *e)
{
    settle(e);
    const size_t from = text_prev(e->text, e->len, e->cursor);
    editor_replace(e, from, e->cursor - from, NULL, 0, false);
}

void editor_delete(struct editor *e)
{
    settle(e);
    editor_replace(e, e->cursor, text_next(e->text, e->len, e->cursor) - e->cursor, NULL, 0, false);
}

/* Moves [from, to) to the kill buffer; kills in a row are gathered in reading order. */
static void kill_range(struct editor *e, size_t from, size_t to)
{
    const bool append = e->killing;
    const bool before = to <= e->cursor;
    settle(e);
    if (from == to) {
        e->killing = append;
        return;
    }
    const size_t n = to - from, old = append ? e->n_killed : 0;
    char *k = malloc(old + n);
    if (!k) {
        e->failed = true;
        return;
    }
    memcpy(k + (before ? 0 : old), e->text + from, n);
    if (old > 0)
        memcpy(k + (before ? n : 0), e->killed, old);
    free(e->killed);
    e->killed = k;
    e->n_killed = old + n;
    editor_replace(e, from, n, NULL, 0, false);
    e->killing = true;
}

void editor_kill_word_left(struct editor *e)
{
    kill_range(e, word_left(e), e->cursor);
}

void editor_kill_word_right(struct editor *e)
{
    kill_range(e, e->cursor, word_right(e));
}

void editor_kill_to_line_start(struct editor *e)
{
    kill_range(e, line_start(e), e->cursor);
}

void editor_kill_to_line_end(struct editor *e)
{
    const size_t end = line_end(e);
    kill_range(e, e->cursor, end == e->cursor ? text_next(e->text, e->len, end) : end);
}

void editor_yank(struct editor *e)
{
    settle(e);
    if (e->n_killed > 0)
        editor_replace(e, e->cursor, 0, e->killed, e->n_killed, false);
}

/* ---- history ----------------------------------------------------------------------------- */

static bool is_blank(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (s[i] != ' ' && s[i] != '\n' && s[i] != '\t' && s[i] != '\r')
            return false;
    return true;
}

static void forget_past(struct editor *e, size_t i)
{
    free(e->past[i]);
    memmove(&e->past[i], &e->past[i + 1], (e->n_past - i - 1) * sizeof *e->past);
    e->n_past--;
}

void editor_remember(struct editor *e, const char *s, size_t len)
{
    e->past_at = e->n_past;
    if (is_blank(s, len))
        return;
    char *copy = malloc(len + 1);
    if (!copy || !GROW(e->past, e->cap_past, e->n_past + 1)) {
        free(copy);
        e->failed = true;
        return;
    }
    memcpy(copy, s, len);
    copy[len] = '\0';
    size_t i = 0;
    while (i < e->n_past && strcmp(e->past[i], copy) != 0)
        i++;
    if (i < e->n_past)
        forget_past(e, i);
    else if (e->n_past == EDITOR_PAST_MOST)
        forget_past(e, 0);
    e->past[e->n_past++] = copy;
    e->past_at = e->n_past;
}

static void show_past(struct editor *e, size_t at)
{
    const char *s = at < e->n_past ? e->past[at] : e->draft ? e->draft : "";
    editor_set(e, s, strlen(s));
    e->past_at = at;
}

bool editor_past_older(struct editor *e)
{
    if (e->past_at == 0)
        return false;
    if (e->past_at == e->n_past) {
        char *draft = malloc(e->len + 1);
        if (!draft) {
            e->failed = true;
            return false;
        }
        if (e->len > 0)
            memcpy(draft, e->text, e->len);
        draft[e->len] = '\0';
        free(e->draft);
        e->draft = draft;
    }
    show_past(e, e->past_at - 1);
    return true;
}

bool editor_past_newer(struct editor *e)
{
    if (e->past_at >= e->n_past)
        return false;
    show_past(e, e->past_at + 1);
    return true;
}
