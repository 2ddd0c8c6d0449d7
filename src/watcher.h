/* watcher.h - the batch mode's second thread: takes the signals, and draws progress on a terminal.
 *
 * SIGINT, SIGTERM and SIGHUP are blocked in every thread and waited for here. The first one cancels
 * the run, which then ends in order; before there is an engine, and at the second one, the program
 * ends at once with status 130. */
#ifndef K3CHAT_WATCHER_H
#define K3CHAT_WATCHER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "../engine/k3.h"
#include "recorder.h"

struct watcher;

/* To be called before any other thread exists. progress: draw on stderr. */
struct watcher *watcher_start(bool progress, struct k3_error *err);
void watcher_stop(struct watcher *w); /* NULL is fine */

const atomic_bool *watcher_cancelled(const struct watcher *w);
/* The engine to cancel and to draw figures of; NULL before it is closed. */
void watcher_set_engine(struct watcher *w, k3_engine *engine);
void watcher_set_recorder(struct watcher *w, struct recorder *rec); /* to be ticked; or NULL */

void watcher_loading(struct watcher *w, const char *what, uint64_t done, uint64_t total);
void watcher_reading(struct watcher *w, uint64_t tokens);
/* Generating: `token` tokens are done of at most `most`. */
void watcher_generating(struct watcher *w, uint32_t token, uint32_t most, double mean_seconds);
/* Nothing is drawn from here on, and what is there is wiped away. */
void watcher_quiet(struct watcher *w);

#endif
