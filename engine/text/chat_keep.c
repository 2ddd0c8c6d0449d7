/* chat_keep.c - an earlier answer as it was generated, made a whole message. See chat.h. */
#include "chat_parser.h"

#include <string.h>

/* Each text is tokenized alone, as the renderer's segments are. */
static enum k3_status put_tag(const k3_tokenizer *t, const char *marker, const char *tag,
                              size_t len, struct k3_ids *out, struct k3_error *err)
{
    if (k3_encode(t, marker, strlen(marker), true, out, err) != K3_OK ||
        k3_encode(t, tag, len, false, out, err) != K3_OK)
        return err->status;
    return k3_encode(t, "<|sep|>", 7, true, out, err);
}

/* What is missing behind each state. NULL: a call is open, which no rendering would show. */
static const char *missing_tags(enum k3_parse_state s)
{
    switch (s) {
    case K3_PARSE_THINK: return "-think +response -response -message";
    case K3_PARSE_START: return "+response -response -message";
    case K3_PARSE_RESPONSE: return "-response -message";
    case K3_PARSE_EPILOGUE: return "-message";
    case K3_PARSE_TOOLS: return "-tools -message";
    case K3_PARSE_DONE: return "";
    case K3_PARSE_CALL:
    case K3_PARSE_ARGUMENT:
    case K3_PARSE_JSON: break;
    }
    return NULL;
}

static enum k3_status put_missing(const k3_tokenizer *t, const char *tags, struct k3_ids *out,
                                  struct k3_error *err)
{
    while (*tags != '\0') {
        const char *marker = *tags++ == '+' ? "<|open|>" : "<|close|>";
        const size_t n = strcspn(tags, " ");
        if (put_tag(t, marker, tags, n, out, err) != K3_OK)
            return err->status;
        tags += n + strspn(tags + n, " ");
    }
    return K3_OK;
}

enum k3_status k3_chat_keep(const k3_tokenizer *t, enum k3_channel start, const int32_t *ids,
                            size_t n, struct k3_ids *out, struct k3_answer *answer, bool *kept,
                            struct k3_error *err)
{
    const struct k3_chat_events none = {.ud = NULL};
    k3_chat_parser *p = k3_chat_parser_new(start, &none);
    if (!p)
        return k3_fail_memory(err, "an earlier answer", 0);
    size_t whole = 0; /* ids up to the last one that stands in no unfinished tag */
    for (size_t i = 0; i < n && p->state != K3_PARSE_DONE; i++) {
        if (k3_chat_parser_token(p, t, ids[i]))
            break;
        if (!p->marker)
            whole = i + 1;
    }
    const char *tags = missing_tags(p->state);
    enum k3_status st = k3_chat_parser_finish(p, answer, err);
    k3_chat_parser_free(p);
    *kept = tags != NULL;
    for (size_t i = 0; st == K3_OK && *kept && i < whole; i++)
        st = k3_ids_push(out, ids[i], err);
    if (st == K3_OK && *kept)
        st = put_missing(t, tags, out, err);
    return st;
}
