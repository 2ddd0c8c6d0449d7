/* helper.c - see helper.h. */
#include <config.h>

#include "helper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "paths.h"

#define HELPER "k3chat-files"

/* Beside the program (a build folder), else where make install puts it - also when the whole tree has
 * been moved since. */
static char *place(int i, const char *dir, struct k3_error *err)
{
    if (i == 0)
        return path_format(err, "%s/" HELPER, dir);
    if (i == 1)
        return path_format(err, "%s/../libexec/k3chat/" HELPER, dir);
    return path_format(err, "%s/" HELPER, K3_LIBEXEC_DIR);
}

int helper_run(int argc, char **argv)
{
    struct k3_error err = {0};
    char **words = calloc((size_t)argc + 2, sizeof *words);
    char *dir = path_program_dir(&err);
    if (words == NULL || dir == NULL) {
        k3_fail(&err, K3_FAILED, "where this program lies cannot be told: is /proc mounted?");
        free(words);
        free(dir);
        return report_error(&err);
    }
    memcpy(words + 1, argv, (size_t)argc * sizeof *words);
    for (int i = 0; i < 3; i++) {
        char *path = place(i, dir, &err);
        words[0] = path;
        if (path != NULL)
            execv(path, words);
        free(path);
    }
    k3_fail(&err, K3_FAILED,
            "%s is done by the program " HELPER ", which is neither beside this one (%s) nor in %s: "
            "install both", argv[0], dir, K3_LIBEXEC_DIR);
    free(words);
    free(dir);
    return report_error(&err);
}
