/* screen.c - take the terminal over, show pictures, give it back (see screen.h). */
#include <config.h>

#include "screen.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "restore.h"
#include "stray.h"
#include "text.h"
#include "theme.h"

static SCREEN *curses;
static struct grid shown;   /* what the terminal shows */
static bool repaint;
static bool away;           /* left for a while */
static bool utf8;
static bool ansi;           /* takes CSI and OSC sequences */
static bool titled;
static bool mouse;          /* reports are asked for, whenever the terminal is ours */

void screen_set_theme(enum ui_theme theme)
{
    theme_init(theme);
    repaint = true;
}

bool screen_utf8(void)
{
    return utf8;
}

int screen_input_fd(void)
{
    return STDIN_FILENO;
}

/* ---- bytes past curses ------------------------------------------------------------------- */

static void write_all(const char *s, size_t n)
{
    while (n > 0) {
        const ssize_t w = write(STDOUT_FILENO, s, n);
        if (w < 0 && errno != EINTR && errno != EAGAIN)
            return;
        if (w > 0) {
            s += w;
            n -= (size_t)w;
        }
    }
}

static void write_str(const char *s)
{
    write_all(s, strlen(s));
}

#define MODES_ON "\033[?2004h\033[?1004h"
#define MODES_OFF "\033[?2004l\033[?1004l"
#define MOUSE_ON "\033[?1000h\033[?1006h" /* buttons and wheel, reports in decimals */
#define MOUSE_OFF "\033[?1006l\033[?1000l"

static const char *capability(const char *name)
{
    const char *s = tigetstr(name);
    return s && s != (const char *)-1 ? s : "";
}

/* What a signal handler must write when there is no time for curses. */
static void prepare_restore(void)
{
    char buf[256];
    snprintf(buf, sizeof buf, "%s%s%s%s%s", ansi ? MOUSE_OFF MODES_OFF : "", titled ? "\033[23;2t" : "",
             capability("sgr0"), capability("cnorm"), capability("rmcup"));
    restore_set_bytes(buf);
}

/* ---- modes of the tty -------------------------------------------------------------------- */

/* Keys as they come, Ctrl+\ kept as the way out of a program that hangs. */
static void set_tty_modes(void)
{
    raw();
    noecho();
    nonl();
    struct termios t;
    if (tcgetattr(STDIN_FILENO, &t) != 0)
        return;
    t.c_lflag |= ISIG;
    t.c_cc[VINTR] = _POSIX_VDISABLE;
    t.c_cc[VSUSP] = _POSIX_VDISABLE;
#ifdef VDSUSP
    t.c_cc[VDSUSP] = _POSIX_VDISABLE;
#endif
    t.c_cc[VMIN] = 1;
    t.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &t);
    def_prog_mode();
}

/* What is typed or pasted but not read must not run as commands of the shell. */
static void discard_input(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    char buf[4096];
    for (int i = 0; i < 256 && poll(&p, 1, i == 0 ? 0 : 10) > 0 && (p.revents & POLLIN); i++)
        if (read(STDIN_FILENO, buf, sizeof buf) <= 0)
            break;
    tcflush(STDIN_FILENO, TCIFLUSH);
}

static void learn_terminal(void)
{
    const char *term = getenv("TERM");
    const char *cup = capability("cup");
    ansi = cup[0] == '\033' && cup[1] == '[';
    titled = ansi && term && (strncmp(term, "xterm", 5) == 0 || strncmp(term, "tmux", 4) == 0 ||
                              strncmp(term, "screen", 6) == 0 || strncmp(term, "rxvt", 4) == 0);
    utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    text_set_ascii(!utf8);
}

bool screen_open(const struct ui_config *cfg, struct k3_error *err)
{
    setlocale(LC_CTYPE, "");
    if (!restore_install(false, err))
        return false;
    use_env(FALSE);
    use_tioctl(TRUE);
    curses = newterm(NULL, stdout, stdin);
    if (!curses) {
        restore_remove();
        k3_fail(err, K3_FAILED, "the terminal (TERM=%s) cannot be opened; use --plain or --batch",
                getenv("TERM") ? getenv("TERM") : "");
        return false;
    }
    learn_terminal();
    theme_init(cfg->theme);
    set_tty_modes();
    leaveok(stdscr, FALSE);
    scrollok(stdscr, FALSE);
    prepare_restore();
    restore_arm(true);
    if (titled)
        write_str("\033[22;2t");
    if (ansi)
        write_str(MODES_ON);
    stray_catch();
    repaint = true;
    away = false;
    return true;
}

void screen_close(void)
{
    if (!curses)
        return;
    if (!away)
        screen_leave();
    restore_arm(false);
    delscreen(curses);
    curses = NULL;
    grid_free(&shown);
    restore_remove();
}

void screen_leave(void)
{
    if (away)
        return;
    away = true;
    if (mouse)
        write_str(MOUSE_OFF);
    if (ansi)
        write_str(MODES_OFF);
    if (titled)
        write_str("\033[23;2t");
    curs_set(1);
    discard_input();
    endwin();
    restore_tty();
    stray_release();
    restore_arm(false);
}

void screen_enter(void)
{
    if (!away)
        return;
    away = false;
    reset_prog_mode();
    stray_catch();
    restore_arm(true);
    if (titled)
        write_str("\033[22;2t");
    if (ansi)
        write_str(MODES_ON);
    if (mouse)
        write_str(MOUSE_ON);
    int rows, cols;
    screen_size(&rows, &cols);
    repaint = true;
}

void screen_set_mouse(bool on)
{
    on = on && ansi;
    if (!curses || away || mouse == on)
        return;
    mouse = on;
    write_str(on ? MOUSE_ON : MOUSE_OFF);
}

bool screen_is_away(void)
{
    return away;
}

bool screen_in_foreground(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void screen_stop(void)
{
    restore_stop();
}

/* ---- size and picture -------------------------------------------------------------------- */

void screen_size(int *rows, int *cols)
{
    struct winsize ws = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) != 0 || ws.ws_row == 0 || ws.ws_col == 0) {
        ws.ws_row = 24;
        ws.ws_col = 80;
    }
    *rows = ws.ws_row > 1000 ? 1000 : ws.ws_row;
    *cols = ws.ws_col > 1000 ? 1000 : ws.ws_col;
    if (curses && !away && (LINES != *rows || COLS != *cols)) {
        resizeterm(*rows, *cols);
        repaint = true;
    }
}

void screen_redraw(void)
{
    repaint = true;
}

/* After characters about whose width the terminal may be of another mind, only a whole new row is
 * sure to look right. */
static bool is_doubtful(const struct cell *c, int cols)
{
    for (int i = 0; i < cols; i++)
        if (c[i].marks[0] || (c[i].cols == 2 && c[i].cp >= 0x1F000))
            return true;
    return false;
}

static void show_row(const struct grid *g, int row)
{
    const struct cell *c = grid_row(g, row);
    for (int x = 0; x < g->cols; x++) {
        if (c[x].cols == 0)
            continue;
        wchar_t w[1 + GRID_MARKS + 1] = {(wchar_t)c[x].cp};
        for (int m = 0; m < GRID_MARKS && c[x].marks[m]; m++)
            w[m + 1] = (wchar_t)c[x].marks[m];
        cchar_t cc;
        if (setcchar(&cc, w, (attr_t)theme_attr(c[x].ink), theme_pair(c[x].ink), NULL) == OK)
            mvadd_wch(row, x, &cc);
    }
}

static void place_cursor(const struct grid *g)
{
    const bool hidden = g->cursor_row < 0;
    if (repaint || hidden != (shown.cursor_row < 0))
        curs_set(hidden ? 0 : 1);
    if (hidden)
        move(g->rows > 0 ? g->rows - 1 : 0, g->cols > 0 ? g->cols - 1 : 0);
    else
        move(g->cursor_row, g->cursor_col);
}

void screen_show(const struct grid *g)
{
    if (!curses || away || (!repaint && grid_equal(g, &shown)))
        return;
    if (ansi)
        write_str("\033[?2026h"); /* the terminal shows the frame when it is whole */
    const bool all = repaint || g->rows != shown.rows || g->cols != shown.cols;
    if (all)
        clearok(stdscr, TRUE);
    for (int y = 0; y < g->rows && y < LINES; y++) {
        const size_t bytes = (size_t)g->cols * sizeof(struct cell);
        if (!all && memcmp(grid_row(g, y), grid_row(&shown, y), bytes) == 0)
            continue;
        show_row(g, y);
        if (!all && (is_doubtful(grid_row(g, y), g->cols) ||
                     is_doubtful(grid_row(&shown, y), shown.cols)))
            wredrawln(stdscr, y, 1);
    }
    place_cursor(g);
    refresh();
    if (ansi)
        write_str("\033[?2026l");
    repaint = !grid_copy(&shown, g);
}

/* ---- words to the terminal itself -------------------------------------------------------- */

static void write_osc(const char *intro, const char *text)
{
    char buf[512];
    size_t n = (size_t)snprintf(buf, sizeof buf, "\033]%s", intro);
    for (const char *p = text; *p && n < sizeof buf - 5;) {
        uint32_t cp = 0;
        char b[4];
        p += text_decode(p, strlen(p), &cp);
        if (cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || (cp >= 0x80 && !utf8))
            continue;
        const size_t k = text_encode(cp, b);
        memcpy(buf + n, b, k);
        n += k;
    }
    buf[n++] = '\007';
    write_all(buf, n);
}

void screen_bell(void)
{
    if (curses && !away)
        write_str("\007");
}

void screen_notify(const char *intro, const char *text)
{
    if (curses && !away && ansi)
        write_osc(intro, text);
}

void screen_set_title(const char *text)
{
    if (curses && !away && titled)
        write_osc("2;", text);
}

bool screen_copy(const char *s, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = (const unsigned char *)s;
    if (!curses || away || !ansi || len > 74994) /* xterm's limit, in base64 100,000 bytes */
        return false;
    char *out = malloc(4 * ((len + 2) / 3) + 16);
    if (!out)
        return false;
    size_t n = (size_t)sprintf(out, "\033]52;c;");
    for (size_t i = 0; i < len; i += 3) {
        const uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < len ? (uint32_t)p[i + 1] << 8 : 0) |
                           (i + 2 < len ? p[i + 2] : 0);
        out[n++] = digits[v >> 18];
        out[n++] = digits[v >> 12 & 63];
        out[n++] = i + 1 < len ? digits[v >> 6 & 63] : '=';
        out[n++] = i + 2 < len ? digits[v & 63] : '=';
    }
    out[n++] = '\007';
    write_all(out, n);
    free(out);
    return true;
}
