/* verify_sums.h - the contents of a checkpoint's files against a list of SHA-256 sums. */
#ifndef K3CHAT_VERIFY_SUMS_H
#define K3CHAT_VERIFY_SUMS_H

#include "settings.h"

/* Reads every file of the checkpoint (of those that an earlier run has read, only what has changed
 * since), compares with the list or writes one, prints what is wrong and how to fetch it again. */
enum k3_status verify_sums(const char *dir, const struct verify_request *ask, struct k3_error *err);

/* Without reading: prints which files of the checkpoint in the folder are missing, and the command that
 * fetches what is missing or wrong, as far as the source is known. */
void verify_print_missing(const char *dir);

#endif
