/* fuzz.h - what every fuzz target defines; libFuzzer's own, or fuzz_replay.c, calls it. */
#ifndef K3_FUZZ_H
#define K3_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Looks at one input; aborts when something that must hold does not. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
