/* terminal.c - can this terminal carry the screen? */
#include <config.h>

#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#include "ui.h"

static bool has_capability(const char *name)
{
    const char *s = tigetstr(name);
    return s && s != (const char *)-1 && *s;
}

bool ui_terminal_ok(struct k3_error *err)
{
    const char *term = getenv("TERM");
    int code = 0;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        k3_fail(err, K3_USAGE, "the chat needs a terminal on stdin and stdout; "
                               "without one use --plain or --batch");
        return false;
    }
    if (!term || !*term || strcmp(term, "dumb") == 0) {
        k3_fail(err, K3_USAGE, "TERM is %s, which says nothing about the terminal; "
                               "set it (TERM=xterm-256color), or use --plain or --batch",
                term && *term ? term : "not set");
        return false;
    }
    if (setupterm(term, STDOUT_FILENO, &code) != OK) {
        k3_fail(err, K3_USAGE, "TERM=%s is not known on this machine; "
                               "set it to a known one (TERM=xterm-256color), or use --plain or "
                               "--batch", term);
        return false;
    }
    const bool ok = has_capability("cup") && has_capability("clear");
    del_curterm(cur_term);
    if (!ok)
        k3_fail(err, K3_USAGE, "the terminal (TERM=%s) cannot place its cursor, which the chat "
                               "needs; use --plain or --batch", term);
    return ok;
}
