/* files_main.c - k3chat-files: the commands about a checkpoint's files. Started by k3chat; see
 * helper.h. */
#include <config.h>

#include <curl/curl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd_fetch.h"
#include "cmd_verify.h"
#include "options.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} own[] = {{"fetch", cmd_fetch}, {"verify", cmd_verify}};

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is a write error like a full disk */
    signal(SIGPIPE, SIG_IGN); /* and a connection that is gone is an error of its own */
    for (size_t i = 0; argc > 1 && i < sizeof own / sizeof own[0]; i++)
        if (strcmp(argv[1], own[i].name) == 0)
            return own[i].run(argc - 1, argv + 1);
    fputs("k3chat-files: a part of k3chat; type k3chat fetch or k3chat verify\n", stderr);
    return K3_USAGE;
}
