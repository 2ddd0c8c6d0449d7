/* screen.h - the terminal: taken over, drawn on, and given back on every path.
 *
 * One at a time (a process has one terminal). Only this module and theme.c know curses. Keys are
 * not read through curses: the caller polls screen_input_fd() and reads bytes. */
#ifndef K3CHAT_UI_SCREEN_H
#define K3CHAT_UI_SCREEN_H

#include "../src/run_config.h"
#include "grid.h"

/* Takes the terminal over: own modes, alternate screen, bracketed paste, focus reports, signal
 * handlers. False with a message; the terminal is then as it was. */
bool screen_open(const struct ui_config *cfg, struct k3_error *err);
/* Gives it back; keys that were not read are discarded. Safe to call twice. */
void screen_close(void);

int screen_input_fd(void);
int screen_signal_fd(void); /* readable when screen_take_signals() has news */

enum {
    SCREEN_RESIZED = 1,
    SCREEN_STOP = 2,      /* SIGTSTP: suspend, please */
    SCREEN_CONTINUED = 4,
    SCREEN_QUIT = 8,      /* SIGTERM, SIGHUP or SIGINT */
    SCREEN_INTERRUPT = 16, /* SIGINT, where it does not ask to end: see restore.h */
};
unsigned screen_take_signals(void);

/* The size asked from the terminal now; 24 x 80 when it does not know. Tells curses. */
void screen_size(int *rows, int *cols);
/* Makes the terminal show g. Writes nothing when it shows that already. */
void screen_show(const struct grid *g);
void screen_redraw(void); /* the next show paints everything */

/* Gives the terminal back for a while (stop, external program) and takes it again. */
void screen_leave(void);
void screen_enter(void);
bool screen_is_away(void);
/* Stops the process group as Ctrl+Z does; the terminal must have been left. Returns when it goes
 * on. */
void screen_stop(void);
bool screen_in_foreground(void);

/* Asks the terminal for the wheel, or leaves the mouse to it. While it is asked for, the terminal selects
 * text only with Shift held. */
void screen_set_mouse(bool on);
void screen_set_theme(enum ui_theme theme);
bool screen_utf8(void);
void screen_bell(void);
void screen_notify(const char *intro, const char *text); /* OSC INTRO TEXT, without control characters */
void screen_set_title(const char *text); /* likewise; put back by screen_close() */
/* Puts text on the clipboard by OSC 52; false when the terminal takes no such sequences or the
 * text is too long for one. */
bool screen_copy(const char *s, size_t len);

#endif
