/* ckfiles.h - which files a checkpoint consists of. */
#ifndef K3CHAT_CKFILES_H
#define K3CHAT_CKFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../engine/k3_error.h"

#define CKFILES_INDEX "model.safetensors.index.json"
#define CKFILES_SINGLE "model.safetensors"

/* What the program reads besides index and shards. */
struct ckfile {
    const char *name;
    bool needed; /* the model cannot be opened without it */
};
extern const struct ckfile ckfiles_small[];
extern const size_t n_ckfiles_small;

struct ckfiles { /* zero-initialise */
    char **shards;       /* names, sorted */
    size_t n;
    uint64_t total_size; /* bytes of all tensors, as the index has it; 0 = it does not say */
    bool index;          /* false: one shard, without an index */
};

/* The shards that the folder's index names, or the single shard when there is no index. Names that
 * are no plain file names ending in .safetensors are refused. */
enum k3_status ckfiles_read(struct ckfiles *f, const char *dir, struct k3_error *err);
void ckfiles_free(struct ckfiles *f);

#endif
