/* conversation.h - the messages of a chat, in the order in which they are rendered. */
#ifndef K3CHAT_CONVERSATION_H
#define K3CHAT_CONVERSATION_H

#include <jansson.h>

#include "../engine/text/chat.h"
#include "../engine/text/tokenizer.h"
#include "session.h"

struct message {
    int64_t id, parent;     /* of the transcript; parent 0 = none */
    int64_t time;           /* seconds since the epoch, 0 = unknown */
    json_t *body;           /* {"role": ..., "content": ..., "reasoning_content": ...}: owned */
    /* of an answer */
    struct k3_ids ids;      /* as generated */
    uint32_t tokens, reasoning_tokens;
    double seconds;
    enum session_finish finish;
    bool unfinished;        /* known from partial records only: the program ended in its midst */
    json_t *settings;       /* what it was made with, as recorded; owned, may be NULL */
    json_t *figures;        /* what it took; the same */
};
void message_free(struct message *m); /* what it holds */

const char *message_role(const struct message *m); /* "user", ... */
/* The text of a string field, with its length; "" when it is absent or no string. */
const char *message_text(const struct message *m, const char *field, size_t *len);

struct conversation { /* zero-initialise */
    struct message *v;
    size_t n, cap;
};
void conversation_free(struct conversation *c);

/* Appends; takes over what m holds, also on failure. */
enum k3_status conversation_push(struct conversation *c, struct message *m, struct k3_error *err);
/* Removes the last message and hands it out. The conversation is not empty. */
struct message conversation_pop(struct conversation *c);

/* The ids of the whole conversation in the chat format, with a generation prompt. The bodies are
 * checked by the renderer: K3_USAGE names what is wrong. An answer that has its ids, and whose text
 * is still what they say, stands there as it was generated: the same text may have been written in
 * other tokens, and a state that has been through them would be lost. */
enum k3_status conversation_encode(const struct conversation *c, enum k3_thinking thinking,
                                   const k3_tokenizer *tok, struct k3_ids *out,
                                   struct k3_error *err);

/* Can it be rendered? K3_USAGE names what cannot. Needs no tokenizer. */
enum k3_status conversation_check(const struct conversation *c, struct k3_error *err);

/* Messages from a file: an array, or one object per line. Errors name file and line. */
enum k3_status conversation_read(struct conversation *c, const char *path, struct k3_error *err);

/* The thinking effort an answer was made with; false when it is not recorded. */
bool message_thinking(const struct message *m, enum k3_thinking *out);

/* A body from text, which is made well-formed UTF-8 (U+FFFD for what is not). NULL on failure. */
json_t *body_new(const char *role, const char *text, size_t len, struct k3_error *err);
/* Sets a string field of a body; the same repair. */
enum k3_status body_set(json_t *body, const char *field, const char *text, size_t len,
                        struct k3_error *err);

#endif
