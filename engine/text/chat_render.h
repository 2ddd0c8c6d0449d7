/* chat_render.h - inside of the chat renderer. The status is sticky: after a failure every function
 * here does nothing, so that callers write a message from top to bottom and check once. */
#ifndef K3_CHAT_RENDER_H
#define K3_CHAT_RENDER_H

#include "chat.h"

struct k3_render {
    const struct k3_chat_options *opt;
    struct k3_segments *out;
    struct k3_error *err;
    enum k3_status st;
    size_t message;                    /* index of the one being rendered, for errors */
    size_t images;                     /* image prompts taken so far */
    const struct k3_json *calls;       /* tool_calls of the last assistant message, or NULL */
    size_t results;                    /* tool messages since then */
};

struct k3_attr {
    const char *name, *value; /* value NULL = leave the attribute out */
    size_t len;               /* of value */
};

void k3_render_fail(struct k3_render *r, const char *kind, const char *what);
void k3_render_memory(struct k3_render *r);

/* <|open|>tag k="v"...<|sep|>; n attributes. */
void k3_render_open(struct k3_render *r, const char *tag, const struct k3_attr *attrs, size_t n);
void k3_render_close(struct k3_render *r, const char *tag);
/* The end of a message: close(message) and <|end_of_msg|>. */
void k3_render_end_message(struct k3_render *r);
/* Ordinary text of the encoder itself or of the caller; the second may hold image placeholders. */
void k3_render_own(struct k3_render *r, const char *text, size_t len);
void k3_render_text(struct k3_render *r, const char *text, size_t len);
/* A message's content, which may be NULL. */
void k3_render_content(struct k3_render *r, const struct k3_json *content);

/* ---- chat_system.c: messages the encoder writes itself ------------------------------------- */

void k3_render_tools(struct k3_render *r, const struct k3_json *tools, bool during);
void k3_render_effort(struct k3_render *r);
void k3_render_tool_choice(struct k3_render *r);
void k3_render_response_format(struct k3_render *r);

/* ---- chat_tools.c ------------------------------------------------------------------------ */

/* tool_calls of an assistant message; NULL, null and empty give nothing. */
void k3_render_calls(struct k3_render *r, const struct k3_json *calls);
/* A run of tool messages: messages->items[first..end). */
void k3_render_results(struct k3_render *r, const struct k3_json *messages, size_t first,
                       size_t end);

/* NULL and JSON null are both "not there". */
bool k3_json_present(const struct k3_json *j);
bool k3_json_is(const struct k3_json *j, const char *string);

#endif
