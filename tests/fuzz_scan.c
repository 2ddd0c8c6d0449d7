/* fuzz_scan.c - fuzz target: the scanner of a checkpoint's JSON takes and reads what jansson does.
 * make fuzz builds and runs it with libFuzzer. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"
#include "scan_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool taken;
    const char *why;
    if (!scan_check((const char *)data, size, &taken, &why)) {
        fprintf(stderr, "%s\n", why);
        abort();
    }
    return 0;
}
