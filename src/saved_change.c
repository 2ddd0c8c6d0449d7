/* saved_change.c - renaming, deleting and searching sessions; see saved.h. */
#include <config.h>

#include "saved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

#include "paths.h"
#include "sessions.h"

#define BEFORE 40 /* bytes of an excerpt before the place, and behind */
#define BEHIND 80

/* The transcript, opened and locked, so that no chat has it. */
static struct transcript *open_alone(const char *name, struct k3_error *err)
{
    struct conversation c = {0};
    char *path = transcript_file(name, err), *note = NULL;
    if (path == NULL)
        return NULL;
    struct transcript *t = NULL;
    if (access(path, F_OK) != 0)
        k3_fail(err, K3_USAGE, "there is no session '%s' (%s)", name, path);
    else
        t = transcript_open(name, &c, &note, err);
    conversation_free(&c);
    free(note);
    free(path);
    return t;
}

enum k3_status saved_rename(const char *name, const char *new_name, struct k3_error *err)
{
    if (transcript_check_name(new_name, err) != K3_OK)
        return err->status;
    struct transcript *t = open_alone(name, err);
    const enum k3_status status = t == NULL ? err->status : transcript_rename(t, new_name, err);
    transcript_close(t);
    return status;
}

enum k3_status saved_delete(const char *name, struct k3_error *err)
{
    struct transcript *t = open_alone(name, err);
    const enum k3_status status = t == NULL ? err->status : transcript_remove(t, err);
    transcript_close(t);
    return status;
}

/* ---- searching --------------------------------------------------------------------------- */

/* Length of `what` at text when it stands there, upper and lower case being the same; 0 = no. */
static size_t match(const char *text, size_t len, const char *what)
{
    size_t at = 0;
    const size_t n = strlen(what);
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t a = 0, b = 0;
        const utf8proc_ssize_t ka = utf8proc_iterate((const utf8proc_uint8_t *)text + at,
                                                     (utf8proc_ssize_t)(len - at), &a);
        const utf8proc_ssize_t kb = utf8proc_iterate((const utf8proc_uint8_t *)what + i,
                                                     (utf8proc_ssize_t)(n - i), &b);
        if (ka <= 0 || kb <= 0 || utf8proc_tolower(a) != utf8proc_tolower(b))
            return 0;
        at += (size_t)ka;
        i += (size_t)kb;
    }
    return at;
}

static bool is_inner(char c) /* of a UTF-8 character */
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Where a word begins in [from, at]; `from` when none does. */
static size_t word_start(const char *text, size_t from, size_t at)
{
    for (size_t i = from; i <= at; i++)
        if (i == 0 || (is_blank(text[i - 1]) && !is_blank(text[i])))
            return i;
    while (from > 0 && is_inner(text[from]))
        from--;
    return from;
}

/* Where a word ends in [at, to]; `to` when none does. */
static size_t word_end(const char *text, size_t len, size_t at, size_t to)
{
    for (size_t i = to; i >= at && i > 0; i--)
        if (i == len || (is_blank(text[i]) && !is_blank(text[i - 1])))
            return i;
    while (to < len && is_inner(text[to]))
        to++;
    return to;
}

/* Some text around a place, on one line of whole words; marked where it is cut off. */
static void take_excerpt(const char *text, size_t len, size_t at, size_t found, char *out)
{
    const size_t from = word_start(text, at > BEFORE ? at - BEFORE : 0, at);
    const size_t to = word_end(text, len, at + found,
                               len - at > found + BEHIND ? at + found + BEHIND : len);
    size_t n = from > 0 ? (size_t)sprintf(out, "\xe2\x80\xa6 ") : 0;
    for (size_t i = from; i < to; i++)
        out[n++] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i];
    sprintf(out + n, "%s", to < len ? " \xe2\x80\xa6" : "");
}

/* The first place in one text of a message. */
static bool search_text(const struct message *m, const char *field, const char *what,
                        struct saved_hit *hit, char *excerpt)
{
    size_t len = 0, found = 0;
    const char *text = message_text(m, field, &len);
    for (size_t at = 0; at < len; at++) {
        if (is_inner(text[at]) || (found = match(text + at, len - at, what)) == 0)
            continue;
        take_excerpt(text, len, at, found, excerpt);
        hit->excerpt = excerpt;
        return true;
    }
    return false;
}

enum k3_status saved_search(const char *name, const char *what,
                            void (*fn)(void *ud, const struct saved_hit *hit), void *ud,
                            struct k3_error *err)
{
    static const char *const fields[] = {"content", "reasoning_content"};
    struct transcript_contents c;
    /* what is found can be longer than what was asked for, by the length of its characters */
    char *excerpt = malloc(BEFORE + BEHIND + 4 * strlen(what) + 32);
    if (excerpt == NULL)
        return k3_fail_memory(err, "an excerpt", 4 * strlen(what));
    if (sessions_load(name, &c, err) != K3_OK) {
        free(excerpt);
        return err->status;
    }
    for (size_t i = 0; i < c.conversation.n; i++) {
        const struct message *m = &c.conversation.v[i];
        struct saved_hit hit = {.message = i + 1, .role = message_role(m)};
        for (size_t k = 0; k < 2; k++)
            if (search_text(m, fields[k], what, &hit, excerpt))
                fn(ud, &hit);
    }
    conversation_free(&c.conversation);
    free(excerpt);
    return K3_OK;
}

/* ---- branches ---------------------------------------------------------------------------- */

static void one_line(char *to, const char *from, size_t cap)
{
    snprintf(to, cap, "%s", from);
    for (; *to; to++)
        if ((unsigned char)*to < 0x20)
            *to = ' ';
}

enum k3_status saved_branches(const char *name, struct saved_branch **list, size_t *n,
                              struct k3_error *err)
{
    struct transcript_branch *all = NULL;
    char *text = NULL, *path = transcript_file(name, err);
    size_t len = 0;
    *list = NULL;
    *n = 0;
    if (path != NULL)
        text = path_read_file(path, SIZE_MAX / 4, &len, err);
    if (text != NULL && transcript_branches(text, len, path, &all, n, err) == K3_OK)
        *list = calloc(*n + 1, sizeof **list);
    for (size_t i = 0; *list != NULL && i < *n; i++) {
        struct saved_branch *b = &(*list)[i];
        *b = (struct saved_branch){.tip = all[i].tip, .time = all[i].time,
                                   .messages = all[i].messages, .current = all[i].current};
        one_line(b->question, all[i].question, sizeof b->question);
        one_line(b->answer, all[i].answer, sizeof b->answer);
    }
    if (all != NULL && *list == NULL)
        k3_fail_memory(err, "the branches", *n * sizeof **list);
    free(all);
    free(text);
    free(path);
    return *list != NULL ? K3_OK : err->status;
}
