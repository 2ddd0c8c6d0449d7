/* fuzz_replay.c - runs a fuzz target over stored inputs, without libFuzzer: for make check.
 *
 *   fuzz_NAME [FILE or FOLDER]...      default: $K3_SRCDIR/tests/data/corpus/NAME
 *
 * Each input is one line of TAP. It is run as it is, cut off at every length (at most 400, spread
 * evenly), and with bytes changed, always in the same way. */
#include <config.h>

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

enum { CUTS = 400, CHANGES = 200, PATH_SIZE = 4096 };

static int done, failed;

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* A copy of its own for each run, so that reading behind the end is seen. */
static bool run_copy(const uint8_t *data, size_t size, size_t changes, uint64_t *seed)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        return false;
    if (size)
        memcpy(copy, data, size);
    for (size_t i = 0; size && i < changes; i++) {
        const size_t at = next_random(seed) % size;
        const uint32_t how = next_random(seed);
        if (how & 1)
            copy[at] = data[next_random(seed) % size];
        else
            copy[at] = (uint8_t)(how >> 8);
    }
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return true;
}

static bool run_input(const uint8_t *data, size_t size)
{
    uint64_t seed = size;
    bool ok = run_copy(data, size, 0, &seed);
    const size_t step = size / CUTS + 1;
    for (size_t n = 0; ok && n < size; n += step)
        ok = run_copy(data, n, 0, &seed);
    for (size_t i = 0; ok && i < CHANGES; i++)
        ok = run_copy(data, size, 1 + i % 4, &seed);
    return ok;
}

static void run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    uint8_t *data = NULL;
    bool ok = false;
    if (f && fstat(fileno(f), &st) == 0 && st.st_size >= 0) {
        const size_t size = (size_t)st.st_size;
        data = malloc(size + 1);
        ok = data && fread(data, 1, size, f) == size && run_input(data, size);
    }
    if (f)
        fclose(f);
    free(data);
    const char *slash = strrchr(path, '/');
    printf("%s %d - %s\n", ok ? "ok" : "not ok", ++done, slash ? slash + 1 : path);
    fflush(stdout);
    failed += !ok;
}

static void run_path(const char *path)
{
    struct dirent **list;
    const int n = scandir(path, &list, NULL, alphasort);
    if (n < 0) {
        run_file(path);
        return;
    }
    for (int i = 0; i < n; i++) {
        char file[PATH_SIZE];
        const int len = snprintf(file, sizeof file, "%s/%s", path, list[i]->d_name);
        if (list[i]->d_name[0] != '.' && len > 0 && len < PATH_SIZE)
            run_file(file);
        free(list[i]);
    }
    free(list);
}

/* The part of the program's name behind "fuzz_". */
static const char *target_name(const char *program)
{
    const char *name = program, *at;
    while ((at = strstr(name, "fuzz_")))
        name = at + strlen("fuzz_");
    return name;
}

int main(int argc, char **argv)
{
    char path[PATH_SIZE];
    for (int i = 1; i < argc; i++)
        run_path(argv[i]);
    if (argc < 2) {
        const char *src = getenv("K3_SRCDIR");
        snprintf(path, sizeof path, "%s/tests/data/corpus/%s", src ? src : ".",
                 target_name(argv[0]));
        run_path(path);
    }
    if (done == 0)
        printf("not ok %d - there is no input\n", ++done);
    printf("1..%d\n", done);
    return failed || done == 0;
}
