/* meter.h - how far a long piece of work is: one line that is redrawn on a terminal, plain lines
 * elsewhere. All on stderr. */
#ifndef K3CHAT_METER_H
#define K3CHAT_METER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../engine/k3_error.h"

#define METER_SAMPLES 64

struct meter {
    const char *verb;                 /* "fetching" */
    atomic_uint_fast64_t done, total; /* bytes; total 0 = files alone are counted */
    atomic_uint files_done;
    unsigned files;
    /* the meter's own */
    pthread_mutex_t lock;
    bool terminal, drawn;
    double when[METER_SAMPLES];
    uint64_t was[METER_SAMPLES];
    unsigned samples;
};

void meter_init(struct meter *m);
/* Another piece of work begins; the counts start at zero. */
void meter_begin(struct meter *m, const char *verb, uint64_t total, unsigned files);
/* Draws if stderr is a terminal; to be called a few times a second. */
void meter_draw(struct meter *m);
void meter_wipe(struct meter *m);
/* A line of its own, above the one that is redrawn. Any thread. */
void meter_say(struct meter *m, const char *fmt, ...) K3_PRINTF(2, 3);
/* The same, for what a terminal need not be told because the redrawn line shows it. */
void meter_note(struct meter *m, const char *fmt, ...) K3_PRINTF(2, 3);
/* No draw and no line after this. */
void meter_end(struct meter *m);

/* The line: "fetching 12.3 GB of 1.56 TB (0.7 %), 95.0 MB/s, 4:31:10 left, 3 of 96 files", or for fewer
 * columns "0.7 %, 95.0 MB/s, 4:31:10 left". rate < 0 = not known yet. Returns buf. */
char *meter_text(const struct meter *m, double rate, int columns, char *buf, size_t cap);

#endif
