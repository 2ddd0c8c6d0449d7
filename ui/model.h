/* model.h - the figures that the panes and the status line draw from: one consistent copy, taken
 * from the session between two frames. */
#ifndef K3CHAT_UI_MODEL_H
#define K3CHAT_UI_MODEL_H

#include "../src/run_config.h"
#include "../src/session.h"
#include "history.h"

struct layer_heat {
    bool known;                    /* a layer with experts */
    struct k3_layer_counts counts;
    double requests, resident;     /* of the last steps, older ones fading */
};

struct ui_model {
    struct session_status st;
    struct history steps;
    struct step_stats prefill;     /* the last one; tokens == 0: none yet */
    struct layer_heat *layers;
    size_t n_layers;
    size_t queued;
    int64_t now;                   /* seconds since the epoch */
    enum ui_graph graph;
    double live_rate;              /* bytes/s read just now; < 0 = not known */
    double best_rate;              /* the greatest there was; 0 = none yet */
    struct k3_metrics rate_from;   /* what live_rate was last measured from, and when */
    double rate_time;
};

void model_init(struct ui_model *m);
void model_free(struct ui_model *m);
/* Takes the session's figures; `clock` is monotonic seconds. */
void model_refresh(struct ui_model *m, struct session *s, double clock, int64_t now);
/* After a step or a prefill: its figures and the layers' counts. */
void model_step(struct ui_model *m, struct session *s, const struct session_event *ev);
/* The memory that is set against the budget: what the process holds itself, without pages of files. */
uint64_t model_memory(const struct ui_model *m);
/* Hits of a layer lately, 0..1; < 0 = unknown. */
double model_layer_hits(const struct ui_model *m, size_t layer);

bool phase_is_busy(enum session_phase p); /* work goes on that a cancel would stop */

#endif
