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

enum work_kind { WORK_SEND, WORK_CONTINUE, WORK_REGENERATE, WORK_EDIT };

struct queued_message {
    struct queued_message *next;
    enum work_kind kind;
    uint32_t index;               /* EDIT */
    char *text;                   /* SEND, EDIT; else NULL */
    size_t len;
};

/* Where the work stands, as the engine thread last told. */
struct session_state {
    enum session_phase phase;
    double phase_since;
    char detail[160];
    uint64_t load_done, load_total;
    uint64_t prompt_total;        /* tokens to read */
    uint64_t prompt_base;         /* the engine's token counter when reading began */
    uint32_t answer_tokens, reasoning_tokens;
    double step_since;            /* 0 = no step is under way */
    uint32_t position, context;
    uint32_t reread_tokens;
    double reread_seconds;
    char model_name[128];
    bool demo;
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
    struct recorder *rec;         /* any thread, once it is there */
    double read_pace;             /* seconds a token of a prompt takes; 0 = not known */
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

/* turn.c: one piece of work from the queue, from its first event to PHASE_IDLE. */
void turn_run(struct session *s, const struct queued_message *work, enum k3_thinking thinking);
/* What the loaded conversation will cost before the next answer: told, and put into the state. */
void turn_tell_reread(struct session *s);

void *engine_thread_main(void *session);

#endif
