/* checkpoint_internal.h - between checkpoint.c (files), checkpoint_index.c (names and table) and
 * checkpoint_header.c (the headers of shards). */
#ifndef K3_CHECKPOINT_INTERNAL_H
#define K3_CHECKPOINT_INTERNAL_H

#include "checkpoint.h"
#include "scan.h"

#define K3_CKPT_TEAM 8                  /* threads that read headers at most */
#define K3_CKPT_SIDE_BY_SIDE (4u << 20) /* a larger header is read alone; the released ones have
                                         * 0.8 MB */
#define K3_CKPT_NAME_SHOWN 200          /* of a name in a message, when it is too long to be true */
#define K3_CKPT_AGAIN "the file is damaged or incomplete: fetch it again"

#define K3_CKPT_INDEX "model.safetensors.index.json"
#define K3_CKPT_SINGLE "model.safetensors"

struct stat;

/* ---- checkpoint.c ------------------------------------------------------------------------ */

/* "dir/name", malloc'ed; NULL without memory. */
char *k3_ckpt_join(const char *dir, const char *name);
/* Opens without ever blocking (a FIFO would), and takes regular files only; -1 and errno, EINVAL
 * meaning "not a regular file". */
int k3_ckpt_open_regular(const char *path, struct stat *sb);

/* ---- checkpoint_index.c ------------------------------------------------------------------ */

/* Makes shards (names only) and the table of tensors (names and shards only) of the checkpoint in
 * c->dir, from its index or, when there is none, from the header of its single file. */
enum k3_status k3_ckpt_index(struct k3_checkpoint *c, struct k3_error *err);

/* Index of the tensor called `name`, SIZE_MAX when there is none. `hint` is tried first: headers
 * and table are in nearly the same order. */
size_t k3_ckpt_search(const struct k3_checkpoint *c, const char *name, size_t hint);

/* ---- checkpoint_header.c ----------------------------------------------------------------- */

/* Enters every tensor of the shard's header into c->tensors, where the index has put the names, and
 * checks it. Any thread, one per shard. */
enum k3_status k3_ckpt_enter(struct k3_checkpoint *c, uint32_t shard, struct k3_error *err);

/* Length of the header of an open shard; its text begins at byte 8. */
enum k3_status k3_ckpt_header_length(const struct k3_shard *s, uint64_t *length,
                                     struct k3_error *err);
/* Reads n bytes at `offset`; `what` ("header") is for the message. */
enum k3_status k3_ckpt_read_text(int fd, uint64_t offset, char *text, size_t n, const char *file,
                                 const char *what, struct k3_error *err);

/* Refuses names that are empty, over 1000 bytes or hold control characters. */
enum k3_status k3_ckpt_check_name(const char *file, const char *name, struct k3_error *err);
/* A copy without control characters, for messages. */
void k3_ckpt_clean(char *out, size_t cap, const char *text);

#endif
