/* typed.h - what was typed in the chat, kept for later starts: history.jsonl in the data folder.
 *
 * One JSON object a line, {"time":T,"text":"..."}, so that a text may have many lines. Several programs
 * may append: each line is one write under a lock. The file stays below TYPED_FILE_BYTES; when it would
 * grow beyond, the newest half is written anew and takes its place. */
#ifndef K3CHAT_TYPED_H
#define K3CHAT_TYPED_H

#include <stddef.h>

#include "../engine/k3_error.h"

#define TYPED_FILE_BYTES (1u << 20)
#define TYPED_TEXT_BYTES (1u << 16) /* longer texts are not kept */

/* Calls fn for each text, the oldest first. Lines that are damaged are passed over; no file is no
 * text. */
enum k3_status typed_read(void (*fn)(void *ud, const char *text, size_t len), void *ud,
                          struct k3_error *err);
/* Appends one; makes the folder and the file (mode 0600) if need be. */
enum k3_status typed_add(const char *text, size_t len, struct k3_error *err);

#endif
