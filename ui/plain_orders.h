/* plain_orders.h - inside plain mode: what plain.c and its commands (plain_orders.c) share. */
#ifndef K3CHAT_UI_PLAIN_ORDERS_H
#define K3CHAT_UI_PLAIN_ORDERS_H

#include "model.h"
#include "plain_input.h"

struct plain {
    struct session *session;
    struct ui_model model;
    struct plain_input input;
    bool tty, pastes;      /* a terminal; one that marks pastes */
    bool at_line_start;    /* of the output */
    bool prompted;         /* "> " stands there and waits */
    bool thought;          /* it was said that the answer thinks */
    bool speaking;         /* "Assistant: " stands before the answer's words */
    size_t own;            /* messages sent that come back as events: they are on the screen */
    enum session_phase told;
    bool ended;            /* of the input */
    bool asked;            /* leaving was asked for once */
    bool quit;
    int status;
};

/* A line of the program's own. */
void plain_say(struct plain *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* No to reading again; what is queued behind it is taken back too. */
void plain_only_view(struct plain *p);
/* Carries out a command; text begins with '/'. */
void plain_order(struct plain *p, const char *text);

#endif
