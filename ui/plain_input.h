/* plain_input.h - lines and pastes from a stream of bytes. Pure. */
#ifndef K3CHAT_UI_PLAIN_INPUT_H
#define K3CHAT_UI_PLAIN_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "talk.h"

struct plain_input {
    struct text_buf text; /* of the message under way */
    size_t marker;        /* bytes of a paste's begin or end that have come */
    bool pasting;
    bool cr;              /* the last byte was a carriage return */
    bool failed;          /* memory was short: something was left out */
};

/* Takes one byte; true when a message is complete: it stands in in->text without its line break,
 * until plain_input_clear(); "\r\n" is one line break. The line breaks inside a bracketed paste are
 * part of the message. */
bool plain_input_byte(struct plain_input *in, char c);
void plain_input_clear(struct plain_input *in);
void plain_input_free(struct plain_input *in);

#endif
