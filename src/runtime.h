/* runtime.h - the model of a run, loaded: tokenizer, engine, timeline. Chat and batch use it. */
#ifndef K3CHAT_RUNTIME_H
#define K3CHAT_RUNTIME_H

#include "decode.h"
#include "run_config.h"

struct runtime {
    k3_engine *engine;
    k3_tokenizer *tok;       /* NULL when none was asked for */
    struct timeline line;
    struct states *states;   /* NULL when there are none */
    char dir[4096];          /* of the checkpoint */
    char name[128];          /* the folder's last part, or "demo" */
    bool demo;               /* the built-in model, which knows only this program */
};

/* What is heard of the loading; any member may be NULL. Called on the loading thread. */
struct runtime_listener {
    void (*notice)(void *ud, const char *text);
    k3_progress_fn progress;
    void (*plan)(void *ud, const struct k3_plan *plan); /* before anything is allocated for it */
    void *ud;
};

struct runtime_needs {
    bool tokenizer;
    bool all_logits;         /* of every position of a prompt */
    uint64_t extra_bytes;    /* that the caller is going to take outside the engine */
};

/* What the screen, the transcript and the editor take in a chat. */
#define RUNTIME_CHAT_BYTES (16u << 20)
/* What an id of the vocabulary takes in a tokenizer that is not loaded yet. */
#define RUNTIME_TOKENIZER_PER_ID 48u

/* Tells the engine what the program takes of the budget, with what is loaded now. */
void runtime_count_program(struct k3_options *opt, uint64_t extra_bytes);

/* Free with runtime_close(), also after a failure. */
enum k3_status runtime_load(struct runtime *rt, const struct run_config *cfg,
                            const struct runtime_needs *needs,
                            const struct runtime_listener *listen, struct k3_error *err);
/* From now on the timeline saves its state beside this transcript and looks there. NULL: no. */
enum k3_status runtime_use_states(struct runtime *rt, const struct run_config *cfg,
                                  const char *transcript, states_notice_fn notice, void *ud,
                                  struct k3_error *err);
void runtime_close(struct runtime *rt);

#endif
