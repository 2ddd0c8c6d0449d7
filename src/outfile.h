/* outfile.h - result files that appear whole or not at all: written beside their name, renamed at
 * the end. What is there already and is no regular file (a pipe, /dev/null) is written directly. */
#ifndef K3CHAT_OUTFILE_H
#define K3CHAT_OUTFILE_H

#include <stdio.h>

#include "../engine/k3_error.h"

struct outfile { /* zero-initialise */
    FILE *f;
    char *path, *temp; /* temp NULL: path itself is being written */
};

enum k3_status outfile_open(struct outfile *o, const char *path, struct k3_error *err);
/* A temporary name for a file that somebody else writes; f stays NULL. */
enum k3_status outfile_reserve(struct outfile *o, const char *path, struct k3_error *err);
/* The name to hand on to that somebody. */
const char *outfile_name(const struct outfile *o);
/* Flushes, closes, renames. Nothing is left behind on failure. A zero struct is fine. */
enum k3_status outfile_commit(struct outfile *o, struct k3_error *err);
void outfile_abort(struct outfile *o); /* also after a commit */

/* Removes every temporary file of the process; for a signal that ends it at once. */
void outfile_remove_all(void);

#endif
