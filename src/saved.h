/* saved.h - what lies on the disk, as a front end needs it: the list of sessions, and files that
 * the person asks for. No session need be open. */
#ifndef K3CHAT_SAVED_H
#define K3CHAT_SAVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../engine/k3_error.h"

#define SAVED_NAME_CAP 128

struct saved_session {
    char name[SAVED_NAME_CAP];
    int64_t used;              /* seconds since the epoch */
    uint64_t bytes;            /* of the transcript */
};

/* All sessions, the one used last first; none is an empty list. free() the list. */
enum k3_status saved_list(struct saved_session **list, size_t *n, struct k3_error *err);

/* Reads a transcript: how many messages, and the first words (one line, cut to fit cap). Fails when
 * there is no such session or it is damaged; the message tells. */
enum k3_status saved_read(const char *name, size_t *messages, char *title, size_t cap,
                          struct k3_error *err);

/* Renames a session that no program has open; its saved states move with it. */
enum k3_status saved_rename(const char *name, const char *new_name, struct k3_error *err);
/* Deletes the transcript and its saved states; not while a program has it open. */
enum k3_status saved_delete(const char *name, struct k3_error *err);

/* A place in a session where a text was found. */
struct saved_hit {
    size_t message;            /* number in the conversation, from 1 */
    const char *role;
    const char *excerpt;       /* one line around the place, whole words where there are some */
};
/* Looks through every message of a session (capitals count as small letters), thinking included, and
 * calls fn once for each text that holds `what`. A session that cannot be read is an error. */
enum k3_status saved_search(const char *name, const char *what,
                            void (*fn)(void *ud, const struct saved_hit *hit), void *ud,
                            struct k3_error *err);

/* Where the conversation could go on as well: the ends of edited messages, other answers, what was
 * taken back. */
struct saved_branch {
    int64_t tip;               /* for session_branch() */
    int64_t time;
    size_t messages;
    bool current;
    char question[160], answer[160]; /* how they begin; one line each, cut at any byte */
};
/* The oldest first; free() the list. */
enum k3_status saved_branches(const char *name, struct saved_branch **list, size_t *n,
                              struct k3_error *err);

/* K3_USAGE unless a session can have that name. */
enum k3_status saved_check_name(const char *name, struct k3_error *err);

/* Writes the whole session into a file that must not exist yet; the format follows from the end of
 * its name: .jsonl, .txt, else Markdown. "~/" is the home folder. */
enum k3_status saved_export(const char *name, const char *path, struct k3_error *err);
/* Writes a text into a file that must not exist yet. */
enum k3_status saved_write(const char *path, const char *s, size_t len, struct k3_error *err);

#endif
