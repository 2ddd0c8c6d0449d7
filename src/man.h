/* man.h - the manual page, made from the tables that also make --help. */
#ifndef K3CHAT_MAN_H
#define K3CHAT_MAN_H

#include <stdio.h>

/* Writes k3chat(1) as roff: `k3chat --print-man`, which "make update-man" stores as docs/k3chat.1. */
void man_print(FILE *out);

#endif
