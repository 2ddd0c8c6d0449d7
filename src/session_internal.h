/* session_internal.h - what session.c (the front end's side) and engine_thread.c share. */
#ifndef K3CHAT_SESSION_INTERNAL_H
#define K3CHAT_SESSION_INTERNAL_H

#include <pthread.h>

#include "recorder.h"
#include "run_config.h"
#include "runtime.h"
#include "session.h"
#include "stats.h"

#define CHAT_MAX_TOKENS 1024 /* of an answer, unless the configuration says otherwise */

struct event_node {
    struct event_node *next;
    struct session_event ev;
};

struct watched {
    int64_t size, changed; /* nanoseconds */
};

enum decision { DECISION_NONE, DECISION_READ, DECISION_VIEW };

/* A prompt that was read: what the next one will take is estimated from it. */
struct read_sample {
    double tokens;                /* 0 = there was none */
    double compute, wait;         /* seconds; waiting for the disk */
    double bytes;                 /* that came from there */
};

enum work_kind {
    WORK_SEND, WORK_CONTINUE, WORK_REGENERATE, WORK_EDIT, WORK_DISCARD, WORK_SYSTEM, WORK_BRANCH,
    WORK_SWITCH, WORK_RENAME /* about the session itself: no model is needed */
};

struct queued_message {
    struct queued_message *next;
    enum work_kind kind;
    uint32_t index;               /* EDIT */
    bool forget;                  /* SWITCH */
    int64_t tip;                  /* BRANCH */
    char *text;                   /* SEND, EDIT, SYSTEM; SWITCH, RENAME: the name; else NULL
                                   * (SWITCH: a temporary session) */
    size_t len;
};

/* Where the work stands, as the engine thread last told. */
struct session_state {
    enum session_phase phase;
    double phase_since;
    char detail[2048];
    uint64_t load_done, load_total;
    uint64_t prompt_total;        /* tokens to read */
    uint64_t prompt_base;         /* the engine's token counter when reading began */
    uint32_t answer_tokens, reasoning_tokens;
    double step_since;            /* 0 = no step is under way */
    uint32_t position, context;
    uint32_t reread_tokens;
    double reread_seconds;
    bool reread_planned;
    char model_name[128], session_name[128];
    bool temporary;
    bool demo;
    double disk_roof;
};

struct session {
    const struct run_config *cfg; /* the caller's; outlives the session */
    pthread_t engine_thread, ticker_thread;
    int pipe[2];                  /* [0] for the front end's poll() */

    pthread_mutex_t lock;         /* guards what follows up to the next heading; never held across
                                   * a kernel or file access of the engine */
    pthread_cond_t changed;       /* the queue, quit or the phase */
    struct event_node *first, *last;
    bool poked;                   /* a byte is in the pipe */
    struct queued_message *queue;
    bool quit;
    enum decision decision;       /* while ASKING */
    enum k3_thinking thinking;    /* for the next message */
    struct session_state state;
    struct pace pace;
    struct step_stats totals;
    struct k3_plan plan;
    const k3_engine *engine;      /* for figures; NULL while there is none */
    k3_engine *cancellable;       /* the same, for k3_cancel() */
    atomic_bool cancel;           /* the running prefill or answer shall end */

    /* the engine thread's own */
    struct runtime rt;
    struct conversation conversation;
    struct message unanswered;    /* the message that was being read when the session was closed */
    struct recorder *rec;         /* any thread, once it is there */
    struct read_sample read;
    bool loaded;                  /* there is a model */
    bool recount;                 /* what the next message costs has to be found out again */
    struct watched watched;       /* while VIEWING: the file as it was read last */
};

/* All of these take the lock. */
void session_emit(struct session *s, struct session_event ev); /* takes over ev's strings */
void session_emit_text(struct session *s, enum session_event_kind kind, const char *text,
                       size_t len);
void session_set_phase(struct session *s, enum session_phase phase); /* and its event */
void session_set_detail(struct session *s, const char *detail);
void session_poke(struct session *s);
char *text_copy(const char *text, size_t len); /* zero-terminated beyond len; NULL on no memory */

/* Emits EVENT_MESSAGE for message number `index` of the conversation. */
void session_emit_message(struct session *s, const struct message *m, size_t index);
/* The same for one that was queued. */
void session_emit_sent(struct session *s, const struct message *m, size_t index);

/* The lock is held. An answer to the question that waits, if one does. */
void session_decide_locked(struct session *s, bool read);
/* session_queue.c: a piece of work that hangs in no queue any more. */
void session_free_work(struct queued_message *q);

/* session_transcript.c */
/* Opens the configured session, for writing or, when another program has it, for reading, and tells
 * its history. */
enum k3_status session_open_first(struct session *s, struct k3_error *err);
/* What was typed and not yet sent on is recorded: the next start puts it into the editor. */
void session_save_queue(struct session *s);
/* On the engine thread: leaves the session for another, and renames it. */
void session_do_switch(struct session *s, const struct queued_message *work);
void session_do_rename(struct session *s, const struct queued_message *work);
void session_do_discard(struct session *s);
enum k3_status session_do_branch(struct session *s, int64_t tip, struct k3_error *err);
enum k3_status session_do_system(struct session *s, const struct queued_message *work,
                                 struct k3_error *err);
/* While VIEWING: tells what the other program has written meanwhile. */
void session_follow(struct session *s);
/* engine_thread.c: loads the model; the phase is then IDLE or FAILED. */
void session_load_model(struct session *s);
/* After another transcript was opened: its saved states, and what it costs to go on with it. */
void session_use_transcript(struct session *s);

/* turn.c: one piece of work from the queue, from its first event to PHASE_IDLE. */
void turn_run(struct session *s, const struct queued_message *work, enum k3_thinking thinking);

void *engine_thread_main(void *session);

#endif
