/* batch_prompt.c - where the prompt of a batch run comes from. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "paths.h"

#define PROMPT_MAX_BYTES (256u << 20)

/* Token ids between commas or white space. `what` names the source. */
static enum k3_status parse_ids(const char *text, size_t len, const char *what, struct k3_ids *out,
                                struct k3_error *err)
{
    const char *p = text;
    if (strlen(text) != len)
        return k3_fail(err, K3_USAGE, "%s: a zero byte among the token ids", what);
    while (*(p += strspn(p, " \t\r\n,")) != '\0') {
        const size_t n = strcspn(p, " \t\r\n,");
        char *end = NULL;
        errno = 0;
        const long v = strtol(p, &end, 10);
        if (end != p + n || errno != 0 || v < 0 || v > INT32_MAX)
            return k3_fail(err, K3_USAGE, "%s: '%.*s' (number %zu) is no token id", what,
                           n > 40 ? 40 : (int)n, p, out->n + 1);
        if (k3_ids_push(out, (int32_t)v, err) != K3_OK)
            return err->status;
        p += n;
    }
    return out->n > 0 ? K3_OK : k3_fail(err, K3_USAGE, "%s: there is no token id", what);
}

static enum k3_status read_file(struct batch *b, struct k3_error *err)
{
    const struct batch_request *todo = &b->req->todo;
    size_t len = 0;
    char *text = path_read_file(todo->text, PROMPT_MAX_BYTES, &len, err);
    if (text == NULL)
        return k3_fail_in(err, "%s", todo->prompt_option);
    enum k3_status status = K3_OK;
    if (todo->kind == PROMPT_IDS_FILE)
        status = parse_ids(text, len, todo->text, &b->prompt, err);
    else
        buffer_add(&b->content, text, len); /* kept there until it is tokenized */
    free(text);
    if (b->content.failed)
        return k3_fail_memory(err, "the prompt", len);
    return status;
}

enum k3_status batch_prompt_read(struct batch *b, struct k3_error *err)
{
    const struct batch_request *todo = &b->req->todo;
    switch (todo->kind) {
    case PROMPT_IDS:
        return parse_ids(todo->text, strlen(todo->text), "--ids", &b->prompt, err);
    case PROMPT_IDS_FILE:
    case PROMPT_TEXT_FILE:
        return read_file(b, err);
    case PROMPT_TEXT:
        buffer_add(&b->content, todo->text, strlen(todo->text));
        return b->content.failed ? k3_fail_memory(err, "the prompt", 0) : K3_OK;
    case PROMPT_CHAT:
        if (conversation_read(&b->conversation, todo->text, err) != K3_OK)
            return k3_fail_in(err, "--chat");
        return K3_OK;
    case PROMPT_CONTINUE:
        return K3_OK;
    case PROMPT_NONE:
        break;
    }
    return k3_fail(err, K3_USAGE, "--batch needs a prompt: one of --ids, --ids-file, --prompt, "
                                  "--prompt-file, --chat and --continue");
}

enum k3_status batch_prompt_encode(struct batch *b, struct k3_error *err)
{
    const struct batch_request *todo = &b->req->todo;
    enum k3_status status = K3_OK;
    if (todo->kind == PROMPT_CHAT || todo->kind == PROMPT_CONTINUE) {
        status = conversation_encode(&b->conversation, b->with.thinking, b->rt.tok, &b->prompt,
                                     err);
        if (status != K3_OK)
            k3_fail_in(err, "%s%s%s", todo->prompt_option, todo->text[0] == '\0' ? "" : " ",
                       todo->text);
        for (size_t i = 0; status == K3_OK && i < b->base.ids.n; i++)
            status = k3_ids_push(&b->prompt, b->base.ids.v[i], err);
    } else if (todo->kind == PROMPT_TEXT || todo->kind == PROMPT_TEXT_FILE) {
        status = k3_encode(b->rt.tok, b->content.v, b->content.n, false, &b->prompt, err);
        buffer_clear(&b->content);
    }
    return status;
}
