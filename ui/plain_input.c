/* plain_input.c - lines and pastes from a stream of bytes (see plain_input.h). */
#include <config.h>

#include "plain_input.h"

#include <stdlib.h>
#include <string.h>

static const char begin[] = "\033[200~", end[] = "\033[201~";
#define MARKER_LEN (sizeof begin - 1)

static void put(struct plain_input *in, const char *s, size_t n)
{
    if (!text_buf_add(&in->text, s, n))
        in->failed = true;
}

/* The markers differ in one byte; what turns out to be neither is text. */
static bool in_marker(struct plain_input *in, char c)
{
    const char *m = in->pasting ? end : begin;
    if (c == m[in->marker]) {
        if (++in->marker == MARKER_LEN) {
            in->marker = 0;
            in->pasting = !in->pasting;
        }
        return true;
    }
    put(in, m, in->marker);
    in->marker = 0;
    if (c == m[0]) {
        in->marker = 1;
        return true;
    }
    return false;
}

bool plain_input_byte(struct plain_input *in, char c)
{
    const bool after_cr = in->cr;
    in->cr = c == '\r';
    if (in_marker(in, c))
        return false;
    if (c == '\n' && after_cr && in->pasting)
        return false; /* the line break stands there already */
    if (c == '\n' && after_cr && in->text.len > 0)
        in->text.s[--in->text.len] = '\0'; /* it belongs to the line's end */
    if (c == '\n' && !in->pasting)
        return true;
    put(in, c == '\r' ? "\n" : &c, 1);
    return false;
}

void plain_input_clear(struct plain_input *in)
{
    in->text.len = 0;
    if (in->text.s)
        in->text.s[0] = '\0';
    in->failed = false;
}

void plain_input_free(struct plain_input *in)
{
    free(in->text.s);
    *in = (struct plain_input){0};
}
