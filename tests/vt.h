/* vt.h - a program on a terminal of our own: spawned on a pty, its output read by libvterm. The
 * only file that knows libvterm. Nothing here sleeps: every wait is for output, with a deadline. */
#ifndef K3CHAT_TESTS_VT_H
#define K3CHAT_TESTS_VT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

#define VT_DEADLINE_MS 60000

struct vt;

struct vt_options {
    const char *const *argv;
    const char *const *env; /* "NAME=value", NULL-terminated: all that the program gets beside
                               TERM, LC_ALL, PATH and a private HOME */
    const char *term;       /* NULL = xterm-256color */
    const char *locale;     /* NULL = C.UTF-8 */
    int rows, cols;
    bool zero_size;         /* the terminal does not know its size */
    int control, report;    /* become descriptors 3 and 4; -1 = none */
    bool job_control;       /* a small shell of our own stands between, see vt_foreground() */
};

/* NULL when the program could not be started. */
struct vt *vt_start(const struct vt_options *opt);
void vt_free(struct vt *vt); /* kills what still runs */
const char *vt_home(const struct vt *vt);
pid_t vt_pid(const struct vt *vt);

/* Reads what comes within ms; returns its bytes. */
size_t vt_pump(struct vt *vt, int ms);
bool vt_wait_text(struct vt *vt, const char *text); /* anywhere on the screen */
bool vt_wait_gone(struct vt *vt, const char *text);
void vt_settle(struct vt *vt); /* until nothing has come for 30 ms */
void vt_send(struct vt *vt, const char *keys);
void vt_send_bytes(struct vt *vt, const char *s, size_t n);
void vt_paste(struct vt *vt, const char *s, size_t n);
void vt_resize(struct vt *vt, int rows, int cols);
void vt_signal(struct vt *vt, int sig);

/* The exit status as waitpid() tells it; -1 when it does not end in time. */
int vt_wait_exit(struct vt *vt);
/* With job_control: true once the program is stopped; then it can be let go on. */
bool vt_wait_stopped(struct vt *vt);
void vt_foreground(struct vt *vt);
void vt_background(struct vt *vt);

bool vt_has(const struct vt *vt, const char *text);
const char *vt_row(struct vt *vt, int row);      /* without trailing blanks; until the next call */
int vt_find_row(struct vt *vt, const char *text); /* -1 = on none */
void vt_dump(struct vt *vt);                      /* to stderr */
void vt_cursor(const struct vt *vt, int *row, int *col);
bool vt_coloured(const struct vt *vt);            /* any cell with a colour of its own */
bool vt_alternate(const struct vt *vt);
bool vt_cursor_visible(const struct vt *vt);
bool vt_bracketed_paste(const struct vt *vt);
bool vt_mouse_reports(const struct vt *vt);       /* the program asked for them */
/* What the terminal sends for the wheel: nothing unless reports were asked for. */
void vt_wheel(struct vt *vt, bool up);
unsigned vt_bells(const struct vt *vt);
const char *vt_title(const struct vt *vt);
/* Everything written so far: is this in it? */
bool vt_wrote(const struct vt *vt, const char *bytes);
size_t vt_written(const struct vt *vt);
size_t vt_count_written(const struct vt *vt, const char *bytes);
bool vt_wrote_only_ascii(const struct vt *vt);
int vt_unread_input(const struct vt *vt);         /* bytes that the program left in the tty */
void vt_modes(const struct vt *vt, struct termios *t); /* of the tty now */
bool vt_modes_restored(const struct vt *vt);           /* as they were before the start */

#endif
