/* options.h - the command line: options from a table of settings, commands from another. */
#ifndef K3CHAT_OPTIONS_H
#define K3CHAT_OPTIONS_H

#include <stdio.h>

#include "settings.h"

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_ERROR };

/* Reads argv[1..] with the options that `modes` allows, loads the profile (the one named, else the
 * user's "default", else - without a model - "demo"), and lays the options over it. Words that are
 * no options are refused, but for the two of k3chat fetch. After OPTIONS_ERROR err is set (K3_USAGE); the request is to be freed in
 * every case. */
enum options_result options_parse(int argc, char **argv, unsigned modes, struct request *r,
                                  struct k3_error *err);

/* The rows of the table for these modes, wrapped for a terminal of 80 columns; those that are also
 * for `skip` are left out. */
void options_print(FILE *out, unsigned modes, unsigned skip);

/* ---- commands ---------------------------------------------------------------------------- */

struct command {
    const char *name;
    const char *usage;    /* what stands behind "k3chat " */
    const char *help;     /* one line */
    int (*run)(int argc, char **argv); /* argv[0] is the command; returns an exit status */
};

extern const struct command commands[]; /* ends with a NULL name */
const struct command *command_find(const char *name);

void help_print(FILE *out);    /* the whole program */
void version_print(FILE *out);

/* "k3chat: message" on stderr; returns the error's status. */
int report_error(const struct k3_error *err);

#endif
