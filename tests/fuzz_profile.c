/* fuzz_profile.c - fuzz target: a YAML profile. make fuzz builds and runs it with libFuzzer. */
#include <config.h>

#include <stdlib.h>

#include "../src/profile.h"
#include "fuzz.h"
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct request r;
    struct k3_error err = {0};
    request_init(&r);
    const enum k3_status status = profile_load(&r, fuzz_write("fuzz.yaml", data, size), &err);
    if (status != K3_OK && (status != K3_USAGE || err.message[0] == '\0'))
        abort();
    request_free(&r);
    return 0;
}
