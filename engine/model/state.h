/* state.h - what identifies a model, and the carried state on disk and in memory. The functions that
 * callers see are in k3.h. */
#ifndef K3_STATE_H
#define K3_STATE_H

#include "engine.h"

/* fingerprint.c: fills e->fingerprint from config.json and the open shards. */
enum k3_status k3_fingerprint_make(struct k3_engine *e, struct k3_error *err);

/* Floats of one KDA layer's state: matrices, then the three convolution histories, in one piece. */
size_t k3_kda_floats(const struct k3_config *c);

/* keep.c: bytes of one kept position, rounded to a cache line. */
uint64_t k3_keep_bytes(const struct k3_config *c);
enum k3_status k3_keep_allocate(struct k3_engine *e, struct k3_error *err);
void k3_keep_free(struct k3_engine *e);

/* True when the state is that of k3_position() exactly: no chunk has run its first layer. */
static inline bool k3_at_rest(const struct k3_engine *e)
{
    return !e->broken && (e->chunk_n == 0 || e->chunk_layer == 0);
}

/* Gives up a suspended chunk. */
void k3_abandon_chunk(struct k3_engine *e);

#endif
