/* slash.h - commands whose functions stand in a file of their own; the table is in slash.c. */
#ifndef K3CHAT_UI_SLASH_H
#define K3CHAT_UI_SLASH_H

#include "app.h"

/* The n-th last answer, from 1; NULL = none. */
const struct entry *slash_last_answer(const struct app *a, size_t n);

/* slash_session.c: sessions and files */
void slash_sessions(struct app *a, const char *args);
void slash_search(struct app *a, const char *args);
void slash_new(struct app *a, const char *args);
void slash_temporary(struct app *a, const char *args);
void slash_resume(struct app *a, const char *args);
void slash_rename(struct app *a, const char *args);
void slash_delete(struct app *a, const char *args);
void slash_branches(struct app *a, const char *args);
void slash_branch(struct app *a, const char *args);
void slash_save(struct app *a, const char *args);
void slash_export(struct app *a, const char *args);

#endif
