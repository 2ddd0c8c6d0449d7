/* transcript.h - a chat on disk: an append-only file of JSON lines that survives any death.
 *
 * The first line names the format; each following line is one record, written whole and never
 * changed:
 *
 *   {"format":"k3chat-transcript","version":1,"created":T,"program":"0.1.0"}
 *   {"type":"message","id":1,"parent":null,"time":T,"role":"user","content":"..."}
 *   {"type":"partial","id":2,"parent":1,"time":T,"from":0,"ids":[...],"reasoning_content":"...",
 *    "content":"...","reasoning_tokens":8,"settings":{...}}
 *   {"type":"message","id":2,"parent":1,"time":T,"role":"assistant","content":"...",
 *    "reasoning_content":"...","ids":[...],"finish":"stop","tokens":40,"reasoning_tokens":12,
 *    "seconds":...,"settings":{...},"figures":{...}}
 *   {"type":"cancel","id":3,"time":T}
 *   {"type":"branch","tip":2,"time":T}
 *   {"type":"rename","from":"OLD","to":"NEW","time":T}
 *
 * Ids rise. `parent` is the message before (null: none), so that the conversation is the chain from
 * the last message back to the first; a message that is edited later becomes a second child of the
 * same parent. A partial record holds what came since the one before it ("from" = tokens before;
 * reasoning_tokens alone counts from the start); the message of the same id replaces its partials.
 * "cancel" takes a message back that got no answer. An answer that is generated again, or continued
 * after its end, becomes a second child of the message before it as well; "branch" goes back to
 * another branch: its tip is the conversation's last message from there on. "rename" tells what the
 * file was called before. Times are seconds since the epoch.
 *
 * A last line without its line break, or one that is no JSON, is torn: it is cut off, with a notice
 * and a copy in NAME.jsonl.torn, before anything is appended. Anything else that is wrong is an
 * error that names file and line, and the file is left alone. */
#ifndef K3CHAT_TRANSCRIPT_H
#define K3CHAT_TRANSCRIPT_H

#include "conversation.h"

#define TRANSCRIPT_VERSION 1
#define TRANSCRIPT_NAME_MAX 120

struct transcript;

/* K3_USAGE unless the name can be a file: UTF-8 of 1 to 120 bytes without '/', control characters
 * or a dot in front. */
enum k3_status transcript_check_name(const char *name, struct k3_error *err);

/* Opens NAME's transcript or creates it, locks it against other processes, reads it, and cuts off
 * a torn tail. NULL name: a new one, named by the time. The conversation read is appended to
 * *c. *notice is NULL or a malloc'ed sentence for the person. */
struct transcript *transcript_open(const char *name, struct conversation *c, char **notice,
                                   struct k3_error *err);
/* Tries again to write what a full disk has held back. */
enum k3_status transcript_flush(struct transcript *t, struct k3_error *err);
/* The same for the last time. What still cannot be written goes into a file in $TMPDIR, to be
 * appended by hand: K3_FAILED, and err says how much, why and where. Called before closing. */
enum k3_status transcript_save(struct transcript *t, struct k3_error *err);
/* Writes what a full disk had held back, and removes the file again when it was created by this
 * process and no record has been written. NULL is fine. */
void transcript_close(struct transcript *t);

/* Does another process (or another transcript of this one) have it open? Only an observation: the
 * answer can be old when it is read. */
bool transcript_in_use(const char *name);

/* Gives it another name, its saved states included. A name that is taken is refused (K3_USAGE). */
enum k3_status transcript_rename(struct transcript *t, const char *name, struct k3_error *err);
/* Removes the file, its saved states and what was cut off from it. Close the transcript then. */
enum k3_status transcript_remove(struct transcript *t, struct k3_error *err);

const char *transcript_name(const struct transcript *t);
const char *transcript_path(const struct transcript *t);
int64_t transcript_next_id(struct transcript *t); /* a fresh id at each call */

/* Is this a field that a record has about a message, and not a part of the message itself? */
bool transcript_is_meta(const char *field);
/* DIR/sessions, and the file of a session there: malloc'ed, NULL on failure. Nothing is created. */
char *transcript_folder(struct k3_error *err);
char *transcript_file(const char *name, struct k3_error *err);

/* Appends one record (a reference is not taken). sync: also fdatasync(). On failure the file ends
 * with the last whole record as before; the record is held in memory and goes out before the next
 * one. */
enum k3_status transcript_append(struct transcript *t, const json_t *record, bool sync,
                                 struct k3_error *err);

/* ---- the reader (transcript_read.c), also for files that are not opened for writing -------- */

struct transcript_contents {
    struct conversation conversation;
    int64_t last_id;
    size_t whole;       /* bytes up to the end of the last whole record */
    size_t records;     /* behind the header */
    bool has_header;    /* false: the file is empty or ends inside the header */
    bool torn;          /* something follows the whole records */
};
/* text[len] is the file; path is for messages. Free the conversation on success. */
enum k3_status transcript_parse(const char *text, size_t len, const char *path,
                                struct transcript_contents *out, struct k3_error *err);
/* The same, but the conversation is the branch that ends with message `tip` (K3_USAGE: there is none). */
enum k3_status transcript_parse_at(const char *text, size_t len, const char *path, int64_t tip,
                                   struct transcript_contents *out, struct k3_error *err);

/* The end of a branch: a message that none follows, or the conversation's own last one. */
struct transcript_branch {
    int64_t tip, time;
    size_t messages;                  /* of the conversation that ends there */
    bool current;
    char question[160], answer[160];  /* how the last ones of the branch begin; cut at any byte */
};
/* All of them, the oldest first; free() the list. */
enum k3_status transcript_branches(const char *text, size_t len, const char *path,
                                   struct transcript_branch **list, size_t *n,
                                   struct k3_error *err);

#endif
