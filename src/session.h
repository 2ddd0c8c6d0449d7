/* session.h - the one interface that the screen and the batch mode speak to.
 *
 * A session owns the engine thread, the conversation and its transcript. Everything that happens
 * comes out as events in order; figures are read as a snapshot at any time. The functions are
 * called from one front-end thread; none of them waits for the engine except session_close(). */
#ifndef K3CHAT_SESSION_H
#define K3CHAT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../engine/k3.h"

struct run_config; /* options + profile, see run_config.h */
struct session;

enum session_phase {
    PHASE_LOADING,
    PHASE_READING,    /* prefill of a prompt */
    PHASE_THINKING,
    PHASE_ANSWERING,
    PHASE_CANCELLING,
    PHASE_SAVING,
    PHASE_IDLE,
    PHASE_ASKING,     /* reading again takes long (status.reread_...): session_decide() says whether */
    PHASE_FAILED,     /* there is no model; the transcript can still be read */
    PHASE_VIEWING,    /* another program has the session open: it is shown, and nothing is written */
};
const char *session_phase_name(enum session_phase p); /* "loading", "reading prompt", ... */

enum session_role { ROLE_SYSTEM, ROLE_USER, ROLE_ASSISTANT };
enum session_finish { FINISH_STOP, FINISH_LENGTH, FINISH_CANCELLED, FINISH_ERROR };
const char *session_finish_name(enum session_finish f); /* "stop", "length", ... */

/* Figures of one decode step, or of a prefill (tokens > 1). */
struct step_stats {
    uint32_t tokens;
    double seconds;               /* wall time, sampling included */
    double wait_trunk_s, wait_experts_s, device_busy_s;
    uint64_t bytes_trunk, bytes_experts;
    uint64_t requests, resident, prefetched, waited;
};

enum session_event_kind {
    EVENT_PHASE,      /* status.phase changed */
    EVENT_MESSAGE,    /* a whole message of the conversation: from the transcript, or just sent */
    EVENT_ANSWER,     /* an answer begins */
    EVENT_REASONING,  /* text of the running answer, whole characters */
    EVENT_CONTENT,
    EVENT_STEP,       /* a decode step (one generated token) is done */
    EVENT_PREFILL,    /* a prompt has been read */
    EVENT_ANSWER_END, /* finish tells how */
    EVENT_WITHDRAWN,  /* cancelled before any output: text is the user's message, for the editor */
    EVENT_NOTICE,     /* one line for the person (torn transcript line cut off, demo model, ...) */
    EVENT_ERROR,      /* text says what; fatal: phase is FAILED afterwards */
    EVENT_DROPPED,    /* the messages from `index` on leave the conversation: something else comes in
                       * their place (an edited message, another answer, the same one going on) */
    EVENT_OPENED,     /* this is another session now: what was told before belongs to the one that was
                       * left; its messages follow. What was queued for it meanwhile waits on */
};

struct session_event {
    enum session_event_kind kind;
    enum session_role role;       /* MESSAGE */
    uint32_t index;               /* MESSAGE, ANSWER, DROPPED: place in the conversation, from 0 */
    bool sent;                    /* MESSAGE: one that session_send() queued, taken up now */
    bool edited;                  /* WITHDRAWN: the text would have replaced message `index` */
    char *text;                   /* of all kinds that speak; MESSAGE: the content */
    size_t len;
    char *reasoning;              /* MESSAGE of an assistant; may be NULL */
    size_t reasoning_len;
    int64_t time;                 /* MESSAGE, ANSWER: seconds since the epoch, 0 = unknown */
    int32_t token;                /* STEP: the generated id */
    uint32_t tokens;              /* MESSAGE, ANSWER_END: reasoning and content, 0 = unknown */
    uint32_t reasoning_tokens;
    double seconds;               /* ANSWER_END, MESSAGE: wall time of the answer */
    struct step_stats step;       /* STEP, PREFILL */
    enum session_finish finish;   /* ANSWER_END; MESSAGE of an assistant */
    enum session_phase phase;     /* PHASE */
};
void session_event_free(struct session_event *ev); /* frees its strings */

struct session_status {
    enum session_phase phase;
    char detail[2048];            /* loading: "indexing shards"; failed: the error */
    uint64_t load_done, load_total;
    uint64_t prompt_done, prompt_total;  /* tokens of the prefill under way */
    double phase_seconds;         /* since the phase began */
    double prompt_eta_s;          /* estimate; < 0 = not known yet */
    uint32_t answer_tokens;       /* of the running or last answer */
    uint32_t reasoning_tokens;
    double step_seconds;          /* age of the decode step under way; 0 = none */
    double last_step_seconds, mean_step_seconds, p95_step_seconds; /* 0 = no sample yet */
    uint32_t position, context;   /* tokens in the timeline (while a prompt is read: so far), and room */
    uint32_t reread_tokens;       /* of the loaded conversation, that no saved state covers: the next
                                   * message pays for them; 0 = none, or paid */
    double reread_seconds;        /* what that will take; < 0 = not known */
    bool reread_planned;          /* by the plan: nothing has been read yet that it could be taken from */
    struct step_stats totals;     /* decode steps since start, summed */
    struct k3_metrics metrics;    /* the engine's own counters, layer progress included */
    struct k3_plan plan;          /* zero before the engine has planned */
    uint64_t rss, peak_rss;       /* bytes, measured now */
    uint64_t rss_anon;            /* of rss, without pages of files; 0 = not known */
    uint64_t page_cache;          /* of the system, no part of ours; 0 = not known */
    char session_name[128], profile_name[64], model_name[128], thinking[16];
    bool temporary;               /* this session is in no file; session_name is empty */
    bool demo;                    /* the built-in model, which knows only this program */
    double disk_roof;             /* bytes/s that the disk can give; 0 = never measured */
    bool disk_simulated;          /* disk_roof is what --simulate-disk allows */
};

/* Starts the engine thread and begins to load. Never fails for reasons of the model: those come as
 * EVENT_ERROR. A session that another program has open is shown (PHASE_VIEWING, and followed while the
 * other one writes), without loading the model. NULL on memory or thread failure, or a transcript that
 * cannot be opened. */
struct session *session_open(const struct run_config *cfg, struct k3_error *err);
/* Has what was said last not found its way to the disk (which is full, say)? Asked before leaving. */
bool session_unsaved(struct session *s);
/* Cancels, saves, joins. K3_FAILED: not all could be written; err says what became of it. */
enum k3_status session_stop(struct session *s, struct k3_error *err);
void session_close(struct session *s); /* the same, if that has not been done; frees */

/* Becomes readable when events wait; also woken about every second while busy so that figures can
 * be redrawn. Owned by the session. */
int session_fd(const struct session *s);
/* Takes the oldest event; false = none. Drains the descriptor when the last one is taken. */
bool session_next_event(struct session *s, struct session_event *ev);
void session_get_status(struct session *s, struct session_status *out);
bool session_get_layer(struct session *s, uint32_t layer, struct k3_layer_counts *out);

/* The answer to PHASE_ASKING: the work that waits begins to read, or it ends as if it had been cancelled
 * before any output. session_cancel(), session_switch() and session_close() say no. Nothing happens
 * in other phases. */
void session_decide(struct session *s, bool read);

/* Queues a user message (copied). It may be sent in any phase but FAILED and VIEWING; messages are
 * answered in order. */
enum k3_status session_send(struct session *s, const char *text, size_t len, struct k3_error *err);

/* The three below are queued like messages, and carried out in order; what cannot be done then is
 * told by EVENT_NOTICE. Each ends as a message does: EVENT_DROPPED, then the events of an answer; when
 * nothing comes of it (cancelled before any output), EVENT_MESSAGE brings back what was dropped. The
 * transcript keeps every branch.
 *
 * continue: the last answer, cut off by a cancel, its length or the end of the program, goes on from
 * its last token with the settings it was begun with: its text comes again, then what is new. */
enum k3_status session_continue(struct session *s, struct k3_error *err);
/* regenerate: another answer to the last message, by today's settings and the next seed. */
enum k3_status session_regenerate(struct session *s, struct k3_error *err);
/* edit: the user message at `index` (of EVENT_MESSAGE) is replaced by this text and answered. */
enum k3_status session_edit(struct session *s, uint32_t index, const char *text, size_t len,
                            struct k3_error *err);

/* discard: the last question and its answer leave the conversation; EVENT_WITHDRAWN brings the
 * question back. */
enum k3_status session_discard(struct session *s, struct k3_error *err);

/* branch: the conversation becomes the one that ends with this message of the transcript (see
 * saved_branches()). EVENT_DROPPED, then the messages that differ. */
enum k3_status session_branch(struct session *s, int64_t tip, struct k3_error *err);

/* A system message behind what has been said: it holds from the next message on. */
enum k3_status session_system(struct session *s, const char *text, size_t len,
                              struct k3_error *err);

/* The two below are queued as well, and possible in every phase. When they fail, EVENT_NOTICE says so
 * and all is as before.
 *
 * switch: this session is left for NAME ("" = a new one, named by the time; NULL = a new one that is
 * temporary: nothing of it is written to a file); the model stays loaded,
 * or is loaded when there was none. Ends with EVENT_OPENED. One that is then only shown answers nothing: what
 * was queued for it comes back by EVENT_WITHDRAWN. `forget`: the one that is left is deleted, with its
 * saved states. */
enum k3_status session_switch(struct session *s, const char *name, bool forget,
                              struct k3_error *err);
/* rename: status.session_name tells when it is done. */
enum k3_status session_rename(struct session *s, const char *name, struct k3_error *err);

size_t session_queued(struct session *s);       /* messages waiting their turn */
/* Takes the newest queued message back; malloc'ed, or NULL when none is queued. */
char *session_unqueue(struct session *s, size_t *len);
/* One queued message, named by its text, since the engine may take up another meanwhile: taken out of
 * the queue, or put before the others. False = it is not waiting any more. */
bool session_queue_drop(struct session *s, const char *text, size_t len);
bool session_queue_first(struct session *s, const char *text, size_t len);
void session_cancel(struct session *s);         /* the running prefill or answer */
void session_set_thinking(struct session *s, const char *effort); /* from the next message on */

#endif
