/* vt.c - a program on a terminal of our own (see vt.h). */
#include <config.h>

#include "vt.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vterm.h>

struct vt {
    VTerm *term;
    VTermScreen *screen;
    int master, slave;   /* the slave stays open here, so that its modes can be asked */
    pid_t pid;           /* the program, or with job_control the small shell */
    pid_t job;
    bool job_control;
    int events, orders;  /* pipes of the small shell */
    int status;          /* of the program once it has ended */
    bool ended;
    struct termios before;
    int rows, cols;
    bool alternate, visible, mouse;
    unsigned bells;
    char title[256];
    char *log;           /* all that was written */
    size_t n_log, cap_log;
    char home[64];
    char row[4096];
};

/* ---- what libvterm tells ----------------------------------------------------------------- */

static int on_prop(VTermProp prop, VTermValue *val, void *user)
{
    struct vt *vt = user;
    if (prop == VTERM_PROP_ALTSCREEN)
        vt->alternate = val->boolean;
    else if (prop == VTERM_PROP_CURSORVISIBLE)
        vt->visible = val->boolean;
    else if (prop == VTERM_PROP_MOUSE)
        vt->mouse = val->number != VTERM_PROP_MOUSE_NONE;
    else if (prop == VTERM_PROP_TITLE)
        snprintf(vt->title, sizeof vt->title, "%s", val->string);
    return 1;
}

static int on_bell(void *user)
{
    ((struct vt *)user)->bells++;
    return 1;
}

static const VTermScreenCallbacks callbacks = {.settermprop = on_prop, .bell = on_bell};

/* ---- the program's side ------------------------------------------------------------------ */

static void set_environment(const struct vt_options *opt, const char *home)
{
    static const char *const kept[] = {"PATH", "K3_SRCDIR", "K3_BUILDDIR", "TMPDIR", "ASAN_OPTIONS",
                                       "UBSAN_OPTIONS", "LSAN_OPTIONS", "OMP_WAIT_POLICY"};
    char *values[sizeof kept / sizeof *kept];
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *v = getenv(kept[i]);
        values[i] = v ? strdup(v) : NULL;
    }
    clearenv();
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (values[i])
            setenv(kept[i], values[i], 1);
    setenv("TERM", opt->term ? opt->term : "xterm-256color", 1);
    setenv("LC_ALL", opt->locale ? opt->locale : "C.UTF-8", 1);
    setenv("HOME", home, 1);
    for (const char *const *e = opt->env; e && *e; e++)
        putenv((char *)(uintptr_t)*e);
}

static void place_descriptor(int fd, int to)
{
    if (fd >= 0 && fd != to)
        dup2(fd, to);
    if (fd >= 0)
        fcntl(to, F_SETFD, 0);
}

static _Noreturn void run_program(const struct vt_options *opt)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    execv(opt->argv[0], (char *const *)(uintptr_t)opt->argv);
    _exit(127);
}

/* The least that a shell does: a job of its own in the foreground, stops and continues. */
static _Noreturn void run_shell(const struct vt_options *opt, int events, int orders)
{
    signal(SIGTTOU, SIG_IGN);
    struct termios modes;
    tcgetattr(STDIN_FILENO, &modes);
    const pid_t job = fork();
    if (job == 0) {
        setpgid(0, 0);
        tcsetpgrp(STDIN_FILENO, getpid());
        run_program(opt);
    }
    setpgid(job, job);
    tcsetpgrp(STDIN_FILENO, job);
    for (;;) {
        int news[3] = {0, (int)job, 0};
        if (waitpid(job, &news[2], WUNTRACED) < 0)
            _exit(1);
        news[0] = WIFSTOPPED(news[2]) ? 'S' : 'E';
        tcsetpgrp(STDIN_FILENO, getpgrp());
        if (write(events, news, sizeof news) != sizeof news || news[0] == 'E')
            _exit(0);
        char order = 0;
        if (read(orders, &order, 1) != 1) {
            kill(-job, SIGKILL);
            _exit(1);
        }
        if (order == 'f')
            tcsetpgrp(STDIN_FILENO, job);
        kill(-job, SIGCONT);
        if (order == 'b' && read(orders, &order, 1) == 1) /* then fg: it runs, so no signal, as bash */
            tcsetpgrp(STDIN_FILENO, job);
    }
}

static void child(const struct vt_options *opt, struct vt *vt, const int ev[2], const int ord[2])
{
    setsid();
    ioctl(vt->slave, TIOCSCTTY, 0);
    /* 3 and 4 last: they may be numbers of descriptors that are still needed */
    const int control = opt->control >= 0 ? fcntl(opt->control, F_DUPFD, 20) : -1;
    const int report = opt->report >= 0 ? fcntl(opt->report, F_DUPFD, 20) : -1;
    const int events = fcntl(ev[1], F_DUPFD, 20), orders = fcntl(ord[0], F_DUPFD, 20);
    const int tty = fcntl(vt->slave, F_DUPFD, 20);
    for (int fd = 0; fd < 3; fd++)
        dup2(tty, fd);
    for (int fd = 3; fd < 20; fd++)
        close(fd);
    close(tty);
    place_descriptor(control, 3);
    place_descriptor(report, 4);
    fcntl(control, F_SETFD, FD_CLOEXEC);
    fcntl(report, F_SETFD, FD_CLOEXEC);
    fcntl(events, F_SETFD, FD_CLOEXEC);
    fcntl(orders, F_SETFD, FD_CLOEXEC);
    set_environment(opt, vt->home);
    if (opt->job_control)
        run_shell(opt, events, orders);
    run_program(opt);
}

struct vt *vt_start(const struct vt_options *opt)
{
    struct vt *vt = calloc(1, sizeof *vt);
    if (!vt)
        return NULL;
    const struct winsize ws = {.ws_row = opt->zero_size ? 0 : (unsigned short)opt->rows,
                               .ws_col = opt->zero_size ? 0 : (unsigned short)opt->cols};
    const char *tmp = getenv("TMPDIR");
    snprintf(vt->home, sizeof vt->home, "%.40s/k3vt-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    int ev[2], ord[2];
    if (!mkdtemp(vt->home) || openpty(&vt->master, &vt->slave, NULL, NULL, &ws) != 0 ||
        pipe(ev) != 0 || pipe(ord) != 0) {
        free(vt);
        return NULL;
    }
    tcgetattr(vt->slave, &vt->before);
    vt->job_control = opt->job_control;
    vt->rows = opt->rows;
    vt->cols = opt->cols;
    vt->visible = true;
    vt->term = vterm_new(vt->rows, vt->cols);
    vterm_set_utf8(vt->term, 1);
    vt->screen = vterm_obtain_screen(vt->term);
    vterm_screen_set_callbacks(vt->screen, &callbacks, vt);
    vterm_screen_enable_altscreen(vt->screen, 1);
    vterm_screen_reset(vt->screen, 1);
    vt->pid = fork();
    if (vt->pid == 0)
        child(opt, vt, ev, ord);
    close(ev[1]);
    close(ord[0]);
    vt->events = ev[0];
    vt->orders = ord[1];
    for (int i = 0; i < 2; i++)
        fcntl(i ? vt->orders : vt->events, F_SETFD, FD_CLOEXEC);
    fcntl(vt->master, F_SETFD, FD_CLOEXEC);
    fcntl(vt->slave, F_SETFD, FD_CLOEXEC);
    return vt;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

void vt_free(struct vt *vt)
{
    if (!vt)
        return;
    if (!vt->ended) {
        if (vt->job > 0)
            kill(vt->job, SIGKILL);
        kill(vt->pid, SIGKILL);
        kill(vt->pid, SIGCONT);
        waitpid(vt->pid, NULL, 0);
    } else if (vt->job_control)
        waitpid(vt->pid, NULL, 0);
    close(vt->master);
    close(vt->slave);
    close(vt->events);
    close(vt->orders);
    vterm_free(vt->term);
    nftw(vt->home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(vt->log);
    free(vt);
}

const char *vt_home(const struct vt *vt)
{
    return vt->home;
}

pid_t vt_pid(const struct vt *vt)
{
    return vt->job > 0 ? vt->job : vt->pid;
}

/* ---- output ------------------------------------------------------------------------------ */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void take(struct vt *vt, const char *s, size_t n)
{
    if (vt->n_log + n > vt->cap_log) {
        vt->cap_log = 2 * (vt->n_log + n) + 65536;
        vt->log = realloc(vt->log, vt->cap_log);
        if (!vt->log)
            abort();
    }
    memcpy(vt->log + vt->n_log, s, n);
    vt->n_log += n;
    vterm_input_write(vt->term, s, n);
}

size_t vt_pump(struct vt *vt, int ms)
{
    char buf[65536];
    size_t got = 0;
    struct pollfd p = {.fd = vt->master, .events = POLLIN};
    while (poll(&p, 1, got > 0 ? 0 : ms) > 0 && (p.revents & POLLIN)) {
        const ssize_t n = read(vt->master, buf, sizeof buf);
        if (n <= 0)
            break;
        take(vt, buf, (size_t)n);
        got += (size_t)n;
    }
    return got;
}

static long last_written(const struct vt *vt, const char *bytes);

/* Half a frame has come: what is seen is neither the old picture nor the new one. */
static bool in_frame(const struct vt *vt)
{
    return last_written(vt, "\033[?2026h") > last_written(vt, "\033[?2026l");
}

static bool wait_text(struct vt *vt, const char *text, bool there)
{
    const int64_t deadline = now_ms() + VT_DEADLINE_MS;
    do {
        if (vt_has(vt, text) == there && !in_frame(vt))
            return true;
        vt_pump(vt, 20);
    } while (now_ms() < deadline);
    fprintf(stderr, "# waited in vain for %s: %s\n", there ? "text" : "the end of text", text);
    vt_dump(vt);
    return false;
}

bool vt_wait_text(struct vt *vt, const char *text)
{
    return wait_text(vt, text, true);
}

bool vt_wait_gone(struct vt *vt, const char *text)
{
    return wait_text(vt, text, false);
}

void vt_settle(struct vt *vt)
{
    const int64_t deadline = now_ms() + VT_DEADLINE_MS;
    while (vt_pump(vt, 30) > 0 && now_ms() < deadline) {
    }
}

/* ---- input ------------------------------------------------------------------------------- */

void vt_send_bytes(struct vt *vt, const char *s, size_t n)
{
    while (n > 0) {
        struct pollfd p = {.fd = vt->master, .events = POLLIN | POLLOUT};
        if (poll(&p, 1, VT_DEADLINE_MS) <= 0)
            return;
        if (p.revents & POLLIN)
            vt_pump(vt, 0);
        if (!(p.revents & POLLOUT))
            continue;
        const ssize_t w = write(vt->master, s, n < 1024 ? n : 1024);
        if (w <= 0)
            return;
        s += w;
        n -= (size_t)w;
    }
}

void vt_send(struct vt *vt, const char *keys)
{
    vt_send_bytes(vt, keys, strlen(keys));
}

void vt_paste(struct vt *vt, const char *s, size_t n)
{
    vt_send(vt, "\033[200~");
    vt_send_bytes(vt, s, n);
    vt_send(vt, "\033[201~");
}

void vt_resize(struct vt *vt, int rows, int cols)
{
    const struct winsize ws = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    vt_pump(vt, 0);
    if (rows > 0 && cols > 0)
        vterm_set_size(vt->term, rows, cols);
    vt->rows = rows > 0 ? rows : vt->rows;
    vt->cols = cols > 0 ? cols : vt->cols;
    ioctl(vt->master, TIOCSWINSZ, &ws);
}

void vt_signal(struct vt *vt, int sig)
{
    kill(vt_pid(vt), sig);
}

/* ---- its end, and stops ------------------------------------------------------------------ */

/* News of the small shell within ms: 'S', 'E' or 0. */
static int shell_news(struct vt *vt, int ms)
{
    struct pollfd p = {.fd = vt->events, .events = POLLIN};
    int news[3] = {0};
    if (poll(&p, 1, ms) <= 0 || read(vt->events, news, sizeof news) != sizeof news)
        return 0;
    vt->job = news[1];
    vt->status = news[2];
    return news[0];
}

int vt_wait_exit(struct vt *vt)
{
    const int64_t deadline = now_ms() + VT_DEADLINE_MS;
    do {
        vt_pump(vt, 10);
        vt->ended = vt->job_control ? shell_news(vt, 0) == 'E'
                          : waitpid(vt->pid, &vt->status, WNOHANG) == vt->pid;
        if (vt->ended) {
            vt_settle(vt);
            return vt->status;
        }
    } while (now_ms() < deadline);
    fprintf(stderr, "# the program does not end\n");
    vt_dump(vt);
    return -1;
}

bool vt_wait_stopped(struct vt *vt)
{
    const int64_t deadline = now_ms() + VT_DEADLINE_MS;
    do {
        vt_pump(vt, 10);
        if (shell_news(vt, 0) == 'S') {
            vt_settle(vt);
            return true;
        }
    } while (now_ms() < deadline);
    return false;
}

static void order(struct vt *vt, char c)
{
    if (write(vt->orders, &c, 1) != 1)
        fprintf(stderr, "# the shell is gone\n");
}

void vt_foreground(struct vt *vt)
{
    order(vt, 'f');
}

void vt_background(struct vt *vt)
{
    order(vt, 'b');
}

/* ---- what is seen ------------------------------------------------------------------------ */

const char *vt_row(struct vt *vt, int row)
{
    const VTermRect r = {row, row + 1, 0, vt->cols};
    size_t n = vterm_screen_get_text(vt->screen, vt->row, sizeof vt->row - 1, r);
    while (n > 0 && (vt->row[n - 1] == ' ' || vt->row[n - 1] == '\0'))
        n--;
    vt->row[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if (vt->row[i] == '\0')
            vt->row[i] = ' ';
    return vt->row;
}

int vt_find_row(struct vt *vt, const char *text)
{
    for (int y = 0; y < vt->rows; y++)
        if (strstr(vt_row(vt, y), text))
            return y;
    return -1;
}

bool vt_has(const struct vt *vt, const char *text)
{
    struct vt *v = (struct vt *)(uintptr_t)vt; /* only its scratch row changes */
    return vt_find_row(v, text) >= 0;
}

void vt_dump(struct vt *vt)
{
    for (int y = 0; y < vt->rows; y++)
        fprintf(stderr, "# |%s\n", vt_row(vt, y));
}

void vt_cursor(const struct vt *vt, int *row, int *col)
{
    VTermPos pos;
    vterm_state_get_cursorpos(vterm_obtain_state(vt->term), &pos);
    *row = pos.row;
    *col = pos.col;
}

bool vt_coloured(const struct vt *vt)
{
    for (int y = 0; y < vt->rows; y++)
        for (int x = 0; x < vt->cols; x++) {
            VTermScreenCell c;
            if (vterm_screen_get_cell(vt->screen, (VTermPos){y, x}, &c) &&
                !(VTERM_COLOR_IS_DEFAULT_FG(&c.fg) && VTERM_COLOR_IS_DEFAULT_BG(&c.bg)))
                return true;
        }
    return false;
}

bool vt_alternate(const struct vt *vt)
{
    return vt->alternate;
}

bool vt_cursor_visible(const struct vt *vt)
{
    return vt->visible;
}

/* The last place of bytes in the log; -1 = nowhere. */
static long last_written(const struct vt *vt, const char *bytes)
{
    const size_t n = strlen(bytes);
    for (size_t i = vt->n_log; i >= n && n > 0; i--)
        if (memcmp(vt->log + i - n, bytes, n) == 0)
            return (long)(i - n);
    return -1;
}

bool vt_bracketed_paste(const struct vt *vt)
{
    return last_written(vt, "\033[?2004h") > last_written(vt, "\033[?2004l");
}

bool vt_mouse_reports(const struct vt *vt)
{
    return vt->mouse;
}

void vt_wheel(struct vt *vt, bool up)
{
    char buf[256];
    while (vterm_output_read(vt->term, buf, sizeof buf) > 0) /* answers that nobody waits for */
        continue;
    vterm_mouse_move(vt->term, 5, 5, VTERM_MOD_NONE);
    vterm_mouse_button(vt->term, up ? 4 : 5, true, VTERM_MOD_NONE);
    vt_send_bytes(vt, buf, vterm_output_read(vt->term, buf, sizeof buf));
}

unsigned vt_bells(const struct vt *vt)
{
    return vt->bells;
}

const char *vt_title(const struct vt *vt)
{
    return vt->title;
}

bool vt_wrote(const struct vt *vt, const char *bytes)
{
    return last_written(vt, bytes) >= 0;
}

size_t vt_count_written(const struct vt *vt, const char *bytes)
{
    const size_t n = strlen(bytes);
    size_t count = 0;
    for (size_t i = 0; i + n <= vt->n_log; i++)
        count += memcmp(vt->log + i, bytes, n) == 0;
    return count;
}

bool vt_wrote_only_ascii(const struct vt *vt)
{
    for (size_t i = 0; i < vt->n_log; i++)
        if ((unsigned char)vt->log[i] >= 0x80)
            return false;
    return true;
}

int vt_unread_input(const struct vt *vt)
{
    int n = -1;
    ioctl(vt->slave, FIONREAD, &n);
    return n;
}

size_t vt_written(const struct vt *vt)
{
    return vt->n_log;
}

void vt_modes(const struct vt *vt, struct termios *t)
{
    tcgetattr(vt->slave, t);
}

bool vt_modes_restored(const struct vt *vt)
{
    struct termios t;
    vt_modes(vt, &t);
    return t.c_iflag == vt->before.c_iflag && t.c_oflag == vt->before.c_oflag &&
           t.c_cflag == vt->before.c_cflag && t.c_lflag == vt->before.c_lflag &&
           memcmp(t.c_cc, vt->before.c_cc, sizeof t.c_cc) == 0;
}
