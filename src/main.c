/* main.c - k3chat: reads the command line and starts the chat, a batch run or a command. */
#include <config.h>

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "../ui/ui.h"
#include "batch.h"
#include "man.h"
#include "options.h"
#include "session.h"
#include "teams.h"

static int run_chat(const struct request *r)
{
    struct k3_error err = {0};
    if (!r->run.ui.plain && !ui_terminal_ok(&err))
        return report_error(&err);
    struct session *s = session_open(&r->run, &err);
    if (s == NULL)
        return report_error(&err);
    const int status = ui_run(s, &r->run.ui, &err);
    struct k3_error unsaved;
    const bool saved = session_stop(s, &unsaved) == K3_OK;
    session_close(s);
    if (status != 0 && err.message[0] != '\0')
        fprintf(stderr, "k3chat: %s\n", err.message);
    if (saved)
        return status;
    report_error(&unsaved);
    return status != 0 ? status : K3_FAILED;
}

static int run_command(int argc, char **argv)
{
    const struct command *c = command_find(argv[0]);
    if (c != NULL)
        return c->run(argc, argv);
    struct k3_error err;
    k3_fail(&err, K3_USAGE, "unknown command '%s'; see k3chat --help", argv[0]);
    return report_error(&err);
}

int main(int argc, char **argv)
{
    teams_block_when_idle(argv);
    setlocale(LC_CTYPE, ""); /* and nothing else: numbers are written and read with a point */
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is a write error like a full disk */
    if (argc > 1 && argv[1][0] != '-')
        return run_command(argc - 1, argv + 1);
    if (argc == 2 && strcmp(argv[1], "--print-man") == 0) { /* for the build, not for people */
        man_print(stdout);
        return fflush(stdout) == 0 ? K3_OK : K3_FAILED;
    }
    struct request r;
    struct k3_error err = {0};
    int status = 0;
    switch (options_parse(argc, argv, FOR_BOTH, &r, &err)) {
    case OPTIONS_HELP:
        help_print(stdout);
        break;
    case OPTIONS_VERSION:
        version_print(stdout);
        break;
    case OPTIONS_ERROR:
        status = report_error(&err);
        break;
    case OPTIONS_RUN:
        status = !ui_check(&r.run.ui, &err) ? report_error(&err)
                 : r.batch                 ? batch_run(&r)
                                           : run_chat(&r);
        break;
    }
    request_free(&r);
    return status;
}
