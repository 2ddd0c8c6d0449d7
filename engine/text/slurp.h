/* slurp.h - a small text file as one string. */
#ifndef K3_SLURP_H
#define K3_SLURP_H

#include "../k3.h"

/* The largest file k3_slurp() takes. */
#define K3_SLURP_MAX (UINT64_C(256) << 20)

/* The bytes of a regular file, malloc'ed, with a zero byte behind them; NULL with K3_FAILED and a
 * message that names the file. */
char *k3_slurp(const char *path, size_t *size, struct k3_error *err);

#endif
