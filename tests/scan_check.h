/* scan_check.h - the scanner of a checkpoint's JSON beside jansson. */
#ifndef K3_SCAN_CHECK_H
#define K3_SCAN_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* Reads text[0..n) with both. True when both take it and read the same values, or both refuse it, or
 * it holds a zero byte and the scanner refuses it; else *why says what differs, in static storage.
 * *taken: both take it. */
bool scan_check(const char *text, size_t n, bool *taken, const char **why);

#endif
