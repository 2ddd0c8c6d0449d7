/* checkpoint_internal.h - between checkpoint.c (files, tables) and checkpoint_header.c (JSON). */
#ifndef K3_CHECKPOINT_INTERNAL_H
#define K3_CHECKPOINT_INTERNAL_H

#include <jansson.h>

#include "checkpoint.h"

#define K3_CKPT_TEAM 8                  /* threads that read headers at most */
#define K3_CKPT_SIDE_BY_SIDE (2u << 20) /* a larger header is read alone; the released ones have
                                         * 0.8 MB */

/* What the index says: this tensor stands in that shard. */
struct k3_ckpt_ref {
    const char *name; /* lives in the JSON tree it came from */
    uint32_t shard;
};

/* Parses `bytes` bytes at `offset` of fd as one JSON object without holding the text in memory.
 * `file` and `what` ("header") are for the message. NULL on failure. */
json_t *k3_ckpt_json(int fd, uint64_t offset, uint64_t bytes, const char *file, const char *what,
                     struct k3_error *err);

/* The header of an open shard as JSON; *data is where its tensors begin. NULL on failure. */
json_t *k3_ckpt_header(const struct k3_shard *s, uint64_t *data, struct k3_error *err);

/* Enters every tensor of the shard's header into c->tensors, where the index has put the names, and
 * checks it. */
enum k3_status k3_ckpt_enter(struct k3_checkpoint *c, uint32_t shard, struct k3_error *err);

/* Refuses names that are empty, over 1000 bytes or hold control characters. */
enum k3_status k3_ckpt_check_name(const char *file, const char *name, struct k3_error *err);

/* Index of the tensor called `name`, SIZE_MAX when there is none. `hint` is tried first: headers
 * and table are in nearly the same order. */
size_t k3_ckpt_search(const struct k3_checkpoint *c, const char *name, size_t hint);

#endif
