/* size.h - byte counts as people write them: 8GB = 8e9, 8GiB = 8 * 2^30, 500MB, plain bytes. */
#ifndef K3CHAT_SIZE_H
#define K3CHAT_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Accepts digits, up to six decimals when a unit follows ("1.5 GB"), and one of B, kB, MB, GB, TB,
 * KiB, MiB, GiB, TiB in any case. False on anything else, bare "8G" included (it means two things),
 * and on what does not fit 64 bits; *why then names the reason, a string constant. */
bool size_parse(const char *text, uint64_t *bytes, const char **why);

/* "7.6 GB", "512 MB", "0 B": three digits at most and a decimal unit. Returns buf. */
char *size_format(char *buf, size_t cap, uint64_t bytes);

#endif
