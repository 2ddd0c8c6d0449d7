/* shown.h - text that is not the program's own, on its way to a standard stream. */
#ifndef K3CHAT_SHOWN_H
#define K3CHAT_SHOWN_H

#include <stddef.h>
#include <stdio.h>

/* Writes the text as it is; on a terminal, which it must not command, control characters other than line
 * breaks and tabs are written as ^X, those of C1 as U+FFFD. Whole characters of UTF-8. */
void shown_put(FILE *out, const char *s, size_t len);

#endif
