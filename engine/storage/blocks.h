/* blocks.h - the list of block digests of a checkpoint, and reads checked against it.
 *
 * A checkpoint's SHA-256 list tells of whole files and is of no use for a read of a few megabytes.
 * K3_BLOCKS_FILE, written once by `k3chat verify --write-blocks`, has a digest (XXH3, 64 bits) of every
 * block of K3_BLOCKS_BYTES of every shard. A read is checked by the blocks that lie wholly within it.
 *
 * The file: a line "k3chat-blocks 1 262144", a line "NAME BYTES" for each shard, an empty line, then the
 * digests as 64-bit little-endian numbers, shard after shard in the order of the lines. */
#ifndef K3_BLOCKS_H
#define K3_BLOCKS_H

#include <stdint.h>

#include "checkpoint.h"

#define K3_BLOCKS_FILE "k3chat.blocks"
#define K3_BLOCKS_BYTES 262144u

struct k3_blocks;

/* The list in the checkpoint's folder. It must name every shard with its size: a list of other files
 * is an error, not a reason to leave out the check. The checkpoint outlives it. NULL on failure. */
struct k3_blocks *k3_blocks_open(const struct k3_checkpoint *c, struct k3_error *err);
void k3_blocks_close(struct k3_blocks *b);

/* Whether `data`, read from `offset` of a shard, is what the list says. If not, *at is where the block
 * begins that differs or whose digest cannot be read. Any thread. */
bool k3_blocks_check(struct k3_blocks *b, uint32_t shard, uint64_t offset, uint64_t bytes,
                     const uint8_t *data, uint64_t *at);
uint64_t k3_blocks_checked(const struct k3_blocks *b); /* bytes so far */

/* Reads every shard and writes the list, whole or not at all. */
enum k3_status k3_blocks_write(const struct k3_checkpoint *c, k3_progress_fn progress, void *ud,
                               struct k3_error *err);

#endif
