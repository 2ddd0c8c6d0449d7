/* fuzz_file.c - see fuzz_file.h. */
#include <config.h>

#include "fuzz_file.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[1024], file[1200];

static int remove_one(const char *path, const struct stat *sb, int kind, struct FTW *at)
{
    (void)sb;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_folder(void)
{
    if (folder[0] != '\0')
        return folder;
    const char *tmp = getenv("TMPDIR");
    const int n = snprintf(folder, sizeof folder, "%s/k3fuzz-XXXXXX",
                           tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    if (n < 0 || (size_t)n >= sizeof folder || mkdtemp(folder) == NULL || atexit(remove_folder) != 0)
        abort();
    return folder;
}

const char *fuzz_write(const char *name, const uint8_t *data, size_t size)
{
    const int n = snprintf(file, sizeof file, "%s/%s", fuzz_folder(), name);
    FILE *f = n > 0 && (size_t)n < sizeof file ? fopen(file, "wb") : NULL;
    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        abort();
    return file;
}
