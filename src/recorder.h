/* recorder.h - writes a conversation into its transcript while it happens.
 *
 * What has been shown is on disk after at most RECORDER_TOKENS tokens or RECORDER_SECONDS seconds.
 * The functions may be called from any thread. A recorder without a transcript does nothing, so
 * that callers need not ask. */
#ifndef K3CHAT_RECORDER_H
#define K3CHAT_RECORDER_H

#include "run_config.h"
#include "transcript.h"

#define RECORDER_TOKENS 8
#define RECORDER_SECONDS 10

struct recorder;

/* Called (from whichever thread was writing) when writing begins to fail and, with NULL, when it
 * works again. What is not written is kept and tried again with the next record. */
typedef void (*recorder_fault_fn)(void *ud, const char *message);

/* Takes over the transcript (NULL: nothing is recorded), on failure too. `tip` is the id of the
 * conversation's last message, 0 = none. */
struct recorder *recorder_new(struct transcript *t, int64_t tip, recorder_fault_fn fault, void *ud,
                              struct k3_error *err);
/* The last record could not be written, and still cannot: it is tried again. */
bool recorder_failing(struct recorder *r);
/* Before it is closed: see transcript_save(). */
enum k3_status recorder_save(struct recorder *r, struct k3_error *err);
void recorder_free(struct recorder *r); /* closes the transcript */

/* No answer is running: another transcript (taken over; NULL: nothing is recorded) takes the place of
 * the one there was, which is closed. */
void recorder_use(struct recorder *r, struct transcript *t, int64_t tip);
/* Of the transcript there is; see transcript.h. */
enum k3_status recorder_rename(struct recorder *r, const char *name, struct k3_error *err);
enum k3_status recorder_remove(struct recorder *r, struct k3_error *err);

const char *recorder_name(const struct recorder *r); /* of the transcript, or "" */

const char *recorder_path(const struct recorder *r); /* the same; NULL = none */

/* Gives m its id, parent and time, and records it. */
void recorder_add(struct recorder *r, struct message *m);
/* The message that was added last is taken back. */
void recorder_withdraw(struct recorder *r, const struct message *m);
/* The same for a message read from the transcript, put off until something else is recorded: if
 * the program dies before, the message is still there. */
void recorder_withdraw_later(struct recorder *r, const struct message *m);

/* The conversation goes back to this message (0 = its beginning): what comes next is its child. The
 * first record that is written tells. */
void recorder_set_tip(struct recorder *r, int64_t tip);
int64_t recorder_tip(struct recorder *r);
/* The same as a record of its own: that branch is the conversation again. */
void recorder_branch(struct recorder *r, int64_t tip);

/* When the file is synced to the disk: never, with each message, with each partial record too. The
 * default is messages. */
void recorder_set_sync(struct recorder *r, enum run_sync sync);

/* An answer begins. settings: recorded with it; a reference is not taken. */
void recorder_begin(struct recorder *r, const json_t *settings);
/* Text of the running answer, and then the token that it came with. */
void recorder_reasoning(struct recorder *r, const char *text, size_t n);
void recorder_content(struct recorder *r, const char *text, size_t n);
void recorder_token(struct recorder *r, int32_t id, bool reasoning);
/* Held: partial records wait, for tokens that were recorded elsewhere before. Letting go writes. */
void recorder_hold(struct recorder *r, bool held);
void recorder_flush(struct recorder *r); /* writes the partial record now */
/* To be called about once a second: writes what has waited too long. */
void recorder_tick(struct recorder *r);
/* The answer as it ended, in place of its partial records. Sets m's id and parent. */
void recorder_end(struct recorder *r, struct message *m, const json_t *figures);

#endif
