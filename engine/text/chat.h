/* chat.h - K3's chat format: a conversation becomes segments, generated tokens become an answer.
 *
 * Only segments marked `special` may produce control tokens; whatever a user, a tool or a file
 * supplies stands in ordinary segments, so no text can forge a control token. */
#ifndef K3_CHAT_H
#define K3_CHAT_H

#include "json.h"
#include "tokenizer.h"

enum k3_thinking { K3_THINK_OFF, K3_THINK_LOW, K3_THINK_HIGH, K3_THINK_MAX, K3_THINK_NO_MESSAGE };

/* "off", "low", "high", "max"; false when it is none of them. */
bool k3_thinking_parse(const char *s, enum k3_thinking *out);
const char *k3_thinking_name(enum k3_thinking t);

struct k3_chat_options {
    enum k3_thinking thinking;          /* NO_MESSAGE: on, without an effort message */
    bool no_generation_prompt;
    bool refuse_images;                 /* an image is an error: for callers without them */
    const struct k3_json *tools;        /* array, or NULL */
    const struct k3_json *tool_choice;  /* string or object, or NULL */
    const struct k3_json *response_format, *response_schema; /* or NULL */
    const struct k3_json *image_prompts; /* array of strings; NULL = images become a placeholder */
};

/* Reads options written as JSON: thinking (default true), thinking_effort (absent = "max", null =
 * no effort message), tools, tool_choice, response_format, response_schema, image_prompts,
 * add_generation_prompt (default true); other keys are ignored. *out points into `options`, which
 * may be NULL. Errors are K3_USAGE, a bad effort with "[bad_effort] ...". */
enum k3_status k3_chat_options_read(const struct k3_json *options, struct k3_chat_options *out,
                                    struct k3_error *err);

struct k3_segment {
    char *text;
    size_t len;
    bool special;
};
struct k3_segments { /* zero-initialise; free with k3_segments_free() */
    struct k3_segment *v;
    size_t n, cap;
};
void k3_segments_free(struct k3_segments *s);

/* messages: an array of objects (role, content, name, reasoning_content, tool_calls, ...). Errors
 * are K3_USAGE; the message begins with the kind in brackets, as "[unknown_role] ...". Kinds:
 * bad_message, unknown_role, bad_content, bad_tool_call, bad_arguments, no_tool_name, bad_effort,
 * image_count, image_refused, bad_options. After an error *out holds what was rendered before it,
 * and is freed as ever. */
enum k3_status k3_chat_render(const struct k3_json *messages, const struct k3_chat_options *opt,
                              struct k3_segments *out, struct k3_error *err);
/* Each segment tokenized alone, the ids joined. A tokenizer without the four control tokens is
 * refused (K3_USAGE). */
enum k3_status k3_chat_encode(const k3_tokenizer *t, const struct k3_segments *s,
                              struct k3_ids *out, struct k3_error *err);

/* ---- the other way: generated tokens ----------------------------------------------------- */

enum k3_channel { K3_CHANNEL_NONE, K3_CHANNEL_THINK, K3_CHANNEL_RESPONSE };
enum k3_answer_end { K3_END_CUT, K3_END_STOPPED, K3_END_CLOSED };

struct k3_tool_call {
    int index;
    char *name, *arguments; /* arguments: JSON text */
    size_t name_len, arguments_len;
};

/* What a parse has found. Strings are malloc'ed, well-formed UTF-8, zero-terminated beyond len. */
struct k3_answer {
    char *reasoning, *content;
    size_t reasoning_len, content_len;
    struct k3_tool_call *calls;
    size_t n_calls;
    bool has_partial;              /* a call was still open at the end */
    struct k3_tool_call partial;
    int abandoned_calls;
    enum k3_answer_end end;
    const char *finish_reason;     /* "stop", "length", "tool_calls" */
};
void k3_answer_free(struct k3_answer *a);

/* Deltas as they become certain; text is whole UTF-8 characters, the deltas of a channel joined are
 * its final string. A call still open at the end gets call_end with complete = false, as does an
 * abandoned one: only complete calls may be executed. Any member may be NULL. */
struct k3_chat_events {
    void (*reasoning)(void *ud, const char *text, size_t len);
    void (*content)(void *ud, const char *text, size_t len);
    void (*call_begin)(void *ud, int index, const char *name, size_t len);
    void (*call_arguments)(void *ud, int index, const char *text, size_t len);
    void (*call_end)(void *ud, int index, bool complete);
    void *ud;
};

typedef struct k3_chat_parser k3_chat_parser;
k3_chat_parser *k3_chat_parser_new(enum k3_channel start, const struct k3_chat_events *events);
void k3_chat_parser_free(k3_chat_parser *p);
/* One generated id. Returns true once a stop token has ended the parse; what follows is ignored.
 * Ids that are not in the vocabulary are ignored. */
bool k3_chat_parser_token(k3_chat_parser *p, const k3_tokenizer *t, int32_t id);
/* The same without a tokenizer: bytes of ordinary tokens, or the name of one special token. */
void k3_chat_parser_bytes(k3_chat_parser *p, const char *bytes, size_t len);
bool k3_chat_parser_special(k3_chat_parser *p, const char *name, size_t len);
enum k3_channel k3_chat_parser_channel(const k3_chat_parser *p); /* where text goes now */
/* Ends the stream; flushes the last deltas. The parser can only be freed afterwards. Fails when
 * memory ran out at any time (K3_FAILED); *out is then empty. */
enum k3_status k3_chat_parser_finish(k3_chat_parser *p, struct k3_answer *out,
                                     struct k3_error *err);

/* An earlier answer as the model generated it, for a prompt that goes on behind it: appends to *out
 * the ids up to the <|sep|> of close(message) or to the first stop token, without a tag that is cut
 * off, and then what a whole message still needs, <|end_of_msg|> excepted. `start` is the channel
 * the answer began in. *answer: what it parses to, to be freed. *kept is false (and *out as before)
 * when it ends inside a tool call: such an answer can only be rendered anew. */
enum k3_status k3_chat_keep(const k3_tokenizer *t, enum k3_channel start, const int32_t *ids,
                            size_t n, struct k3_ids *out, struct k3_answer *answer, bool *kept,
                            struct k3_error *err);

#endif
