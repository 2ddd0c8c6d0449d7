/* fuzz_state.c - fuzz target: the reader of state files, with a small engine behind it.
 *
 * Input: a byte of flags, then the file. Flag 1 puts right what nearly no change of bytes leaves
 * right: the fingerprint of the model and the header's checksum. Whatever is refused leaves the engine
 * where it was. make fuzz builds and runs it with libFuzzer. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "../engine/demo/synth.h"
#include "../engine/k3.h"
#include "fuzz.h"
#include "fuzz_file.h"

enum { HEADER = 80, MODEL_AT = 16, CHECK_AT = 72 };

static k3_engine *engine;

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void close_engine(void)
{
    k3_close(engine);
}

/* One token has been read: a state worth keeping. */
static void open_engine(void)
{
    struct k3_synth tiny = {0};
    struct k3_options opt;
    struct k3_error err;
    char dir[1100];
    const int32_t id = 1;
    snprintf(dir, sizeof dir, "%s/model", fuzz_folder());
    must(k3_synth_preset("tiny", &tiny) && k3_synth_write(&tiny, dir, NULL, NULL, &err) == K3_OK);
    k3_options_init(&opt);
    opt.model_dir = dir;
    opt.budget = UINT64_C(4000000000);
    opt.context = 64;
    opt.threads = 1;
    opt.io = K3_IO_BUFFERED;
    engine = k3_open(&opt, NULL, NULL, &err);
    must(engine != NULL && atexit(close_engine) == 0);
    must(k3_start(engine, NULL, NULL, &err) == K3_OK);
    must(k3_feed(engine, &id, 1, K3_WANT_LAST, NULL, NULL, &err) == K3_OK);
}

static void put_right(uint8_t *file, size_t size)
{
    const struct k3_fingerprint f = k3_get_fingerprint(engine);
    if (size < HEADER)
        return;
    memcpy(file + MODEL_AT, &f.high, sizeof f.high);
    memcpy(file + MODEL_AT + 8, &f.low, sizeof f.low);
    const uint64_t check = XXH3_64bits(file, CHECK_AT);
    memcpy(file + CHECK_AT, &check, sizeof check);
}

static void load(const char *path)
{
    struct k3_state_info info;
    struct k3_error err = {0};
    const uint32_t before = k3_position(engine);
    if (k3_state_read_info(path, &info, &err) != K3_OK) {
        must(err.message[0] != '\0' && info.ids == NULL);
        return;
    }
    must(info.position > 0 && info.ids != NULL);
    if (k3_state_load(engine, path, info.ids, info.position, &err) == K3_OK)
        must(k3_position(engine) == info.position && k3_has_logits(engine) == info.has_logits);
    else
        must(err.message[0] != '\0' && k3_position(engine) == before);
    k3_state_info_free(&info);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (engine == NULL)
        open_engine();
    if (size < 1)
        return 0;
    uint8_t *file = malloc(size);
    must(file != NULL);
    memcpy(file, data + 1, size - 1);
    if (data[0] & 1)
        put_right(file, size - 1);
    char path[1200];
    snprintf(path, sizeof path, "%s", fuzz_write("a.k3s", file, size - 1));
    free(file);
    load(path);
    return 0;
}
