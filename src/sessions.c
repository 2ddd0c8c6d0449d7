/* sessions.c - reading transcripts that are not open; see sessions.h. */
#include <config.h>

#include "sessions.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

#include "paths.h"

enum k3_status sessions_load(const char *name, struct transcript_contents *out,
                             struct k3_error *err)
{
    char *path = transcript_file(name, err);
    size_t len = 0;
    if (path == NULL)
        return err->status;
    enum k3_status status = K3_OK;
    if (access(path, F_OK) != 0)
        status = k3_fail(err, K3_USAGE, "there is no session '%s' (%s)", name, path);
    char *text = status == K3_OK ? path_read_file(path, SIZE_MAX / 4, &len, err) : NULL;
    if (text != NULL)
        status = transcript_parse(text, len, path, out, err);
    else if (status == K3_OK)
        status = err->status;
    free(text);
    free(path);
    return status;
}

char *sessions_title(const struct conversation *c, int columns, char *buf, size_t cap)
{
    size_t len = 0, n = 0;
    int used = 0;
    const char *text = "";
    for (size_t i = 0; i < c->n && len == 0; i++)
        if (strcmp(message_role(&c->v[i]), "user") == 0)
            text = message_text(&c->v[i], "content", &len);
    for (size_t at = 0; at < len;) {
        utf8proc_int32_t ch = 0;
        const utf8proc_ssize_t k = utf8proc_iterate((const utf8proc_uint8_t *)text + at,
                                                    (utf8proc_ssize_t)(len - at), &ch);
        const bool plain = k > 0 && ch >= 0x20 && ch != 0x7f && !(ch >= 0x80 && ch < 0xa0);
        const int width = plain ? utf8proc_charwidth(ch) : 1;
        const size_t bytes = plain ? (size_t)k : 1;
        if (used + width > columns || n + bytes + 4 > cap) {
            n += (size_t)snprintf(buf + n, cap - n, "%s", "\xe2\x80\xa6");
            break;
        }
        if (plain)
            memcpy(buf + n, text + at, bytes);
        else
            buf[n] = ' ';
        n += bytes;
        used += width;
        at += k > 0 ? (size_t)k : 1;
    }
    buf[n] = '\0';
    return buf;
}
