/* disk_rate.h - the disk's own rate for a checkpoint, as `k3chat bench io` measured it last: kept
 * beside the sessions, for the screen to compare with. */
#ifndef K3CHAT_DISK_RATE_H
#define K3CHAT_DISK_RATE_H

#include <stdint.h>

#include "../engine/k3_error.h"

/* Keeps bytes per second for this checkpoint folder, in place of what was kept for it before. */
enum k3_status disk_rate_keep(const char *model_dir, double rate, struct k3_error *err);
/* The rate kept, 0 = none (or it cannot be read: then it has to be measured again). */
double disk_rate_kept(const char *model_dir);

#endif
