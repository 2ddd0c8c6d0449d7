/* fuzz_safetensors.c - fuzz target: a checkpoint of one safetensors file. make fuzz builds and runs it
 * with libFuzzer. */
#include <config.h>

#include <stdlib.h>

#include "../engine/storage/checkpoint.h"
#include "fuzz.h"
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct k3_error err = {0};
    fuzz_write("model.safetensors", data, size);
    struct k3_checkpoint *c = k3_checkpoint_open(fuzz_folder(), NULL, NULL, &err);
    if (c == NULL && err.message[0] == '\0')
        abort();
    for (size_t i = 0; c != NULL && i < c->n_tensors; i++) {
        const struct k3_tensor *t = &c->tensors[i];
        if (t->offset > size || t->bytes > size - t->offset ||
            k3_checkpoint_find(c, t->name) != t)
            abort();
    }
    k3_checkpoint_close(c);
    return 0;
}
