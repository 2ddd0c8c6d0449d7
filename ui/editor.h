/* editor.h - the text buffer of the message editor: cursor by grapheme cluster, words, lines,
 * killing and yanking, undo and redo, and a history of sent messages. Pure; it draws nothing.
 *
 * The text is always valid UTF-8 (what is not becomes U+FFFD on its way in) and has no size limit
 * but memory: a change that finds no memory is left out and reported by editor_failed(). */
#ifndef K3CHAT_UI_EDITOR_H
#define K3CHAT_UI_EDITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rich.h"

#define EDITOR_PAST_MOST 1000 /* texts of the history */

struct editor_change {      /* one step of undo */
    size_t at;
    char *removed, *added;  /* malloc'ed, NULL when empty */
    size_t n_removed, n_added;
    size_t cursor_before;
    bool typed;             /* may grow by further typing */
};

struct editor {
    char *text;
    size_t len, cap;
    size_t cursor;          /* always on a cluster boundary */
    unsigned goal_col;      /* column that vertical motion tries to keep */
    bool has_goal;
    bool failed;

    struct editor_change *undo;
    size_t n_undo, cap_undo, undo_at; /* undo_at changes are applied, the rest can be redone */
    size_t undo_bytes;
    bool joining;           /* a paste is one change */

    char *killed;
    size_t n_killed;
    bool killing;           /* the last action was a kill: the next one appends */

    char **past;            /* sent messages, oldest first */
    size_t n_past, cap_past, past_at; /* past_at == n_past: the text being written */
    char *draft;            /* that text, while the past is looked at */

    struct wrapped rows;    /* of the text as it is now, for rows_width */
    bool rows_good;
};

void editor_init(struct editor *e);
void editor_free(struct editor *e);
bool editor_failed(struct editor *e); /* memory was short since the last call */

void editor_insert(struct editor *e, const char *s, size_t len);
void editor_insert_char(struct editor *e, uint32_t cp); /* typing: joined into words for undo */
void editor_begin_paste(struct editor *e);
void editor_end_paste(struct editor *e);
void editor_set(struct editor *e, const char *s, size_t len); /* as one undoable change */
/* Takes the text away, malloc'ed and NUL-terminated, and forgets the undo steps; NULL = memory. */
char *editor_take(struct editor *e, size_t *len);

void editor_left(struct editor *e);
void editor_right(struct editor *e);
void editor_word_left(struct editor *e);
void editor_word_right(struct editor *e);
void editor_line_start(struct editor *e);
void editor_line_end(struct editor *e);
void editor_start(struct editor *e);
void editor_end(struct editor *e);
/* One screen row up or down when wrapped to width columns; false = there is none. */
bool editor_row_up(struct editor *e, unsigned width);
bool editor_row_down(struct editor *e, unsigned width);

void editor_backspace(struct editor *e);
void editor_delete(struct editor *e);
void editor_kill_word_left(struct editor *e);
void editor_kill_word_right(struct editor *e);
void editor_kill_to_line_start(struct editor *e);
void editor_kill_to_line_end(struct editor *e);
void editor_yank(struct editor *e);
void editor_undo(struct editor *e);
void editor_redo(struct editor *e);

/* History. Adding skips blanks; what is there already becomes the newest, and of too many the oldest
 * goes. */
void editor_remember(struct editor *e, const char *s, size_t len);
bool editor_past_older(struct editor *e);
bool editor_past_newer(struct editor *e);

/* The rows of the text for width columns; NULL = memory. Owned by the editor. */
const struct wrapped *editor_rows(struct editor *e, unsigned width);
/* Row and column of the cursor in them. */
void editor_cursor_pos(struct editor *e, unsigned width, size_t *row, unsigned *col);

#endif
