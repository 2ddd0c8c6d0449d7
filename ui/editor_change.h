/* editor_change.h - inside the editor: every change of the text, and how it is taken back. */
#ifndef K3CHAT_UI_EDITOR_CHANGE_H
#define K3CHAT_UI_EDITOR_CHANGE_H

#include "editor.h"

/* Replaces n_removed bytes at `at` by valid UTF-8, puts the cursor behind it and records the
 * change; with `typed` an insertion right after the last typed one extends its record. */
void editor_replace(struct editor *e, size_t at, size_t n_removed, const char *added,
                    size_t n_added, bool typed);
void editor_stop_typing(struct editor *e); /* the next typed insertion starts a new record */
void editor_forget_changes(struct editor *e);

#endif
