/* chat_parser.h - inside of the parser of generated tokens. */
#ifndef K3_CHAT_PARSER_H
#define K3_CHAT_PARSER_H

#include "buf.h"
#include "chat.h"

enum k3_parse_state {
    K3_PARSE_START, K3_PARSE_THINK, K3_PARSE_RESPONSE, K3_PARSE_EPILOGUE, K3_PARSE_TOOLS,
    K3_PARSE_CALL, K3_PARSE_ARGUMENT, K3_PARSE_JSON, K3_PARSE_DONE
};

struct k3_stream { /* one channel: text that may begin and end inside a character */
    struct k3_buf text;
    struct k3_utf8 utf8;
};

enum k3_call_form { K3_CALL_EMPTY, K3_CALL_ARGUMENTS, K3_CALL_BLOCK };

struct k3_open_call {
    bool named;              /* false: a call without a name, dropped as a whole */
    int index;
    struct k3_buf name, arguments;
    enum k3_call_form form;
    /* the argument or block being read */
    bool ignored, is_string;
    struct k3_buf key;       /* escaped for JSON */
    struct k3_buf raw;       /* value of an argument that is not a string */
    struct k3_utf8 utf8;
};

struct k3_chat_parser {
    enum k3_parse_state state;
    struct k3_chat_events events;
    bool ended;              /* a stop token came */
    bool failed;             /* memory ran out outside the buffers */
    struct k3_stream reasoning, content;
    struct k3_buf held;      /* white space at START */
    const char *marker;      /* of the tag being read, "<|open|>" or "<|close|>"; NULL = none */
    struct k3_buf header;
    struct k3_open_call call; /* while the state is CALL, ARGUMENT or JSON */
    struct k3_tool_call *calls;
    size_t n_calls, calls_cap;
    int next_index, abandoned;
};

/* ---- chat_call.c ------------------------------------------------------------------------- */

/* The value of the first attribute `name` of a tag's header, unescaped, appended to *out. False
 * when there is none. */
bool k3_tag_attribute(const char *header, size_t len, const char *name, struct k3_buf *out);

/* Each takes the header of the tag where it needs its attributes. */
void k3_call_begin(struct k3_chat_parser *p, const char *header, size_t len);
void k3_call_open_argument(struct k3_chat_parser *p, const char *header, size_t len);
void k3_call_open_block(struct k3_chat_parser *p);
void k3_call_value(struct k3_chat_parser *p, const char *bytes, size_t len);
void k3_call_close_argument(struct k3_chat_parser *p);
void k3_call_close_block(struct k3_chat_parser *p);
void k3_call_complete(struct k3_chat_parser *p);
void k3_call_abandon(struct k3_chat_parser *p);
/* The call open at the end of the stream, if it has a name, moved to *out; NULL strings when memory
 * ran out. */
bool k3_call_take_partial(struct k3_chat_parser *p, struct k3_tool_call *out);
void k3_call_clear(struct k3_open_call *c);

#endif
