/* states.h - the state files of one session: NAME.state-POSITION-HASH.k3s beside NAME.jsonl.
 *
 * A state saves the reading of a conversation: it is used when its ids are a beginning of those that
 * are wanted. Nothing depends on it but time, so every failure is a sentence for the person, told
 * once, and the work goes on without. */
#ifndef K3CHAT_STATES_H
#define K3CHAT_STATES_H

#include "../engine/k3.h"

struct states;

typedef void (*states_notice_fn)(void *ud, const char *text);

struct states_limits {
    uint32_t keep;   /* files of this session, the newest; 0 = none are written */
    uint64_t disk;   /* bytes of the states of all sessions together */
};

/* transcript: the path of NAME.jsonl. With states to keep (the caller holds the transcript's
 * lock then) it removes what a killed program left half written. NULL on failure. */
struct states *states_open(const char *transcript, const struct states_limits *limits,
                           states_notice_fn notice, void *ud, struct k3_error *err);
void states_close(struct states *s); /* NULL is fine */

/* Saves the engine's state, which is at ids[0..n), and removes older ones. A state that is there
 * already is only marked as used. */
void states_save(struct states *s, k3_engine *e, const int32_t *ids, size_t n);

/* The longest state that this engine can use for ids[0..n): its position, 0 = none. It is longer
 * than `above`, and covers all n ids only when it has logits. */
uint32_t states_find(struct states *s, const k3_engine *e, const int32_t *ids, size_t n,
                     uint32_t above);
/* Loads that state. False: it turned out to be bad, which has been told; it is not found again, and
 * the engine's position tells whether its state is still there. */
bool states_load(struct states *s, k3_engine *e, const int32_t *ids, uint32_t position);

/* ---- files, without a session open ---- */

struct states_usage {
    uint32_t files;
    uint64_t bytes;
    uint32_t longest; /* position */
};
enum k3_status states_measure(const char *transcript, struct states_usage *out,
                              struct k3_error *err);
enum k3_status states_remove(const char *transcript, struct k3_error *err);
/* After the transcript was renamed. */
enum k3_status states_rename(const char *from, const char *to, struct k3_error *err);

#endif
