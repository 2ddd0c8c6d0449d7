/* fuzz_config.c - fuzz target: config.json, and the memory plan of what it describes. make fuzz builds
 * and runs it with libFuzzer. */
#include <config.h>

#include <stdlib.h>

#include "../engine/model/model_config.h"
#include "fuzz.h"
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct k3_config c;
    struct k3_error err = {0};
    struct k3_options opt;
    struct k3_plan plan;
    fuzz_write("config.json", data, size);
    if (k3_config_read(fuzz_folder(), &c, &err) != K3_OK) {
        if (err.message[0] == '\0')
            abort();
        return 0;
    }
    if (c.layers > 64 || c.experts > 256) /* a plan lists every tensor: true, but slow */
        return 0;
    k3_options_init(&opt);
    opt.model_dir = fuzz_folder();
    opt.budget = UINT64_C(1) << 40;
    opt.threads = 1;
    if (k3_plan_config(&opt, &plan, &err) == K3_OK && plan.total > plan.budget)
        abort();
    return 0;
}
