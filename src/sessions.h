/* sessions.h - the parts of `k3chat sessions`: transcripts as files, without a model but for check. */
#ifndef K3CHAT_SESSIONS_H
#define K3CHAT_SESSIONS_H

#include <stdio.h>

#include "runtime.h"
#include "transcript.h"

/* Reads NAME's transcript without opening it for writing; another program may have it open. A torn
 * end is left out. K3_USAGE when there is no such session. Free the conversation. */
enum k3_status sessions_load(const char *name, struct transcript_contents *out,
                             struct k3_error *err);

/* The first words of the first message, one line of at most `columns` characters. Returns buf. */
char *sessions_title(const struct conversation *c, int columns, char *buf, size_t cap);

/* ---- sessions_export.c ---- */

/* format: "md", "jsonl" (messages as other programs read them) or "txt". K3_USAGE: another one. */
enum k3_status sessions_export(const struct conversation *c, const char *name, const char *format,
                               FILE *out, struct k3_error *err);

/* ---- sessions_import.c ---- */

/* Messages of another program: an array, {"messages": [...]}, or one object per line; OpenAI's and
 * K3's fields. Into a new session of that name (NULL: named by the time); it must not exist. The name
 * it got is printed. */
enum k3_status sessions_import(const char *path, const char *name, struct k3_error *err);

/* ---- sessions_check.c ---- */

struct sessions_checked {
    uint32_t answers, tokens; /* compared, and found the same */
    uint32_t foreign;         /* answers that cannot be: no ids, or made by another model or version */
    uint32_t from_state;      /* position of the saved state that was compared; 0 = none */
};

/* Everything again, as a fresh process would: each answer is generated from the history before it
 * and compared token by token with the one recorded; then the logits behind the whole conversation
 * are computed in three ways - turn by turn, read at once, and from the longest saved state of `s` (NULL
 * = none) - and compared byte by byte. K3_FAILED names the first difference. `progress` may be NULL. */
enum k3_status sessions_check(struct runtime *rt, const struct conversation *c, struct states *s,
                              enum k3_thinking thinking, FILE *progress,
                              struct sessions_checked *out, struct k3_error *err);

#endif
