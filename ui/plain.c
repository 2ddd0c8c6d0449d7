/* plain.c - the chat as lines of text (see plain.h). */
#include <config.h>

#include "plain.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "format.h"
#include "plain_orders.h"
#include "restore.h"
#include "screen.h"
#include "text.h"

#define PASTE_ON "\033[?2004h"
#define PASTE_OFF "\033[?2004l"

/* ---- output ------------------------------------------------------------------------------ */

static void put_char(struct plain *p, uint32_t cp)
{
    char b[4];
    fwrite(b, 1, text_encode(cp, b), stdout);
    p->at_line_start = cp == '\n';
}

/* Text from anywhere: line breaks and tabs as they are, nothing else can command the terminal. */
static void put_text(struct plain *p, const char *s, size_t len)
{
    struct glyph g;
    for (size_t at = 0; glyph_next(s + at, len - at, &g); at += g.bytes) {
        if (g.kind == GLYPH_NEWLINE || g.kind == GLYPH_TAB) {
            put_char(p, g.first);
            continue;
        }
        if (g.kind == GLYPH_CONTROL) {
            put_char(p, '^');
            put_char(p, g.first ^ 0x40);
            continue;
        }
        for (size_t k = 0; k < g.bytes;) {
            uint32_t cp = 0, shown = 0;
            const bool first = k == 0;
            k += text_decode(s + at + k, g.bytes - k, &cp);
            text_shown(cp, first, &shown);
            if (shown != 0)
                put_char(p, shown);
        }
    }
}

static void fresh_line(struct plain *p)
{
    if (!p->at_line_start || p->prompted)
        put_char(p, '\n');
    p->prompted = false;
}

/* A line of the program's own. */
void plain_say(struct plain *p, const char *fmt, ...)
{
    char b[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b, sizeof b, fmt, ap);
    va_end(ap);
    fresh_line(p);
    put_text(p, b, strlen(b));
    put_char(p, '\n');
}

static void say_text(struct plain *p, const char *who, const char *s, size_t len)
{
    fresh_line(p);
    put_text(p, who, strlen(who));
    put_text(p, s ? s : "", len);
    put_char(p, '\n');
}

static void prompt(struct plain *p)
{
    const enum session_phase phase = p->model.st.phase;
    if (!p->tty || p->prompted ||
        (phase != PHASE_IDLE && phase != PHASE_ASKING && phase != PHASE_VIEWING))
        return;
    fresh_line(p);
    fputs("> ", stdout);
    p->prompted = true;
    p->at_line_start = false;
}

/* ---- events ------------------------------------------------------------------------------ */

static void show_message(struct plain *p, const struct session_event *ev)
{
    if (ev->sent) {
        p->own -= p->own > 0;
        return;
    }
    say_text(p, ev->role == ROLE_USER ? "User: " : ev->role == ROLE_SYSTEM ? "System: "
                                                                          : "Assistant: ",
             ev->text, ev->len);
}

static void show_end(struct plain *p, const struct session_event *ev)
{
    static const char *const words[] = {
        [FINISH_STOP] = "End of the answer", [FINISH_LENGTH] = "Stopped at the length limit",
        [FINISH_CANCELLED] = "Cancelled", [FINISH_ERROR] = "Broken off by an error",
    };
    char took[32];
    plain_say(p, "%s: %u tokens in %s.", words[ev->finish], ev->tokens,
        fmt_about(took, sizeof took, ev->seconds));
}

/* From a pipe nobody answers: it is read. */
static void ask(struct plain *p)
{
    char took[32];
    const struct session_status *st = &p->model.st;
    session_get_status(p->session, &p->model.st);
    plain_say(p, "%u tokens to read again, about %s%s%s", st->reread_tokens,
        fmt_about(took, sizeof took, st->reread_seconds), st->reread_planned ? " by the plan" : "",
        p->tty ? ": read, or only view? (read/view)" : ".");
    if (!p->tty)
        session_decide(p->session, true);
}

static void show_phase(struct plain *p, enum session_phase phase)
{
    if (phase == p->told)
        return;
    p->told = phase;
    if (phase == PHASE_LOADING && p->model.st.plan.total == 0)
        plain_say(p, "Loading the model.");
    else if (phase == PHASE_READING)
        plain_say(p, "Reading the prompt. /status tells how far.");
    else if (phase == PHASE_CANCELLING)
        plain_say(p, "Stopping.");
    else if (phase == PHASE_ASKING)
        ask(p);
    else if (phase == PHASE_VIEWING)
        p->own = 0; /* what was queued comes back */
}

static void speak(struct plain *p, const struct session_event *ev)
{
    if (!p->speaking) {
        fresh_line(p);
        put_text(p, "Assistant: ", 11);
    }
    p->speaking = true;
    put_text(p, ev->text, ev->len);
}

static void take_event(struct plain *p, const struct session_event *ev)
{
    switch (ev->kind) {
    case EVENT_PHASE: show_phase(p, ev->phase); break;
    case EVENT_MESSAGE: show_message(p, ev); break;
    case EVENT_ANSWER: p->thought = p->speaking = false; break;
    case EVENT_REASONING:
        if (!p->thought)
            plain_say(p, "The model is thinking.");
        p->thought = true;
        break;
    case EVENT_CONTENT: speak(p, ev); break;
    case EVENT_STEP: case EVENT_PREFILL: model_step(&p->model, p->session, ev); break;
    case EVENT_ANSWER_END: show_end(p, ev); break;
    case EVENT_DROPPED: plain_say(p, "What follows takes the place of the last messages."); break;
    case EVENT_WITHDRAWN:
        say_text(p, "Taken back before the first word: ", ev->text, ev->len);
        break;
    case EVENT_OPENED:
        session_get_status(p->session, &p->model.st);
        if (!p->model.st.temporary) /* which a note tells */
            plain_say(p, "Session %s.", p->model.st.session_name);
        break;
    case EVENT_NOTICE: say_text(p, "Note: ", ev->text, ev->len); break;
    case EVENT_ERROR: say_text(p, "Error: ", ev->text, ev->len); break;
    }
}

static void take_events(struct plain *p)
{
    struct session_event ev;
    while (session_next_event(p->session, &ev)) {
        take_event(p, &ev);
        session_event_free(&ev);
    }
    session_get_status(p->session, &p->model.st);
    prompt(p);
    fflush(stdout);
}

/* ---- input ------------------------------------------------------------------------------- */

/* True when the line answers the question that waits. */
static bool take_decision(struct plain *p, const char *s)
{
    session_get_status(p->session, &p->model.st);
    if (p->model.st.phase != PHASE_ASKING)
        return false;
    if (strcmp(s, "view") == 0)
        plain_only_view(p);
    else if (strcmp(s, "read") == 0)
        session_decide(p->session, true);
    else
        return false;
    return true;
}

static void take_message(struct plain *p)
{
    struct k3_error err = {0};
    const char *s = p->input.text.s ? p->input.text.s : "";
    const size_t len = strlen(s); /* a zero byte in a message has no meaning */
    p->prompted = false;
    p->at_line_start = true;
    p->asked = false;
    if (p->input.failed)
        plain_say(p, "Error: there is no memory for this message.");
    else if (take_decision(p, s))
        ;
    else if (s[0] == '/' && s[1] != '/')
        plain_order(p, s);
    else if (strspn(s, " \t\r\n") < len) {
        const size_t skip = s[0] == '/' ? 1 : 0;
        if (session_send(p->session, s + skip, len - skip, &err) == K3_OK)
            p->own++;
        else
            plain_say(p, "Error: %s", err.message);
    }
    plain_input_clear(&p->input);
    session_get_status(p->session, &p->model.st);
    prompt(p);
    fflush(stdout);
}

/* The end of the input: from a person it means to leave, from a pipe to leave when all is done. */
static void input_ends(struct plain *p)
{
    session_get_status(p->session, &p->model.st);
    if (!p->tty)
        p->ended = true;
    else if (phase_is_busy(p->model.st.phase) && !p->asked) {
        p->asked = true;
        plain_say(p, "An answer is running. Ctrl+D again stops it and leaves.");
        fflush(stdout);
    } else
        p->quit = true;
}

static void read_input(struct plain *p)
{
    char buf[65536];
    const ssize_t n = read(STDIN_FILENO, buf, sizeof buf);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    for (ssize_t i = 0; i < n; i++)
        if (plain_input_byte(&p->input, buf[i]))
            take_message(p);
    if (n > 0)
        return;
    if (n == 0 && p->input.text.len > 0) /* a last line without its end */
        take_message(p);
    if (n == 0)
        input_ends(p);
    else
        p->quit = true;
}

/* ---- signals ----------------------------------------------------------------------------- */

/* Pastes are marked; the marks are echoed as they are, which shows nothing, instead of ^[[200~. */
static void set_modes(struct plain *p)
{
    struct termios t;
    if (p->pastes && tcgetattr(STDIN_FILENO, &t) == 0) {
        t.c_lflag &= ~(tcflag_t)ECHOCTL;
        tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
        fputs(PASTE_ON, stdout);
        fflush(stdout);
    }
    restore_set_bytes(p->pastes ? PASTE_OFF : "");
    restore_arm(true);
}

static void interrupt(struct plain *p)
{
    session_get_status(p->session, &p->model.st);
    if (phase_is_busy(p->model.st.phase) && p->model.st.phase != PHASE_CANCELLING)
        session_cancel(p->session);
    else if (p->model.st.phase == PHASE_ASKING)
        plain_only_view(p);
    else if (p->asked)
        p->quit = true;
    else {
        p->asked = true;
        plain_say(p, "Ctrl+C again leaves.");
        prompt(p);
        fflush(stdout);
    }
}

static void take_signals(struct plain *p)
{
    const unsigned got = screen_take_signals();
    if (got & SCREEN_QUIT) {
        p->quit = true;
        p->status = K3_CANCELLED;
    } else if (got & SCREEN_INTERRUPT)
        interrupt(p);
    if (got & SCREEN_STOP) {
        restore_now();
        restore_stop();
        set_modes(p);
    }
}

/* ---- the loop ---------------------------------------------------------------------------- */

static bool all_done(struct plain *p)
{
    session_get_status(p->session, &p->model.st);
    const enum session_phase ph = p->model.st.phase;
    return p->ended && (ph >= PHASE_FAILED || (ph == PHASE_IDLE && p->own == 0 &&
                                               session_queued(p->session) == 0));
}

static void loop(struct plain *p)
{
    while (!p->quit && !all_done(p)) {
        struct pollfd fds[3] = {
            {.fd = p->ended ? -1 : STDIN_FILENO, .events = POLLIN},
            {.fd = session_fd(p->session), .events = POLLIN},
            {.fd = screen_signal_fd(), .events = POLLIN},
        };
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            break;
        if (fds[2].revents)
            take_signals(p);
        if (fds[1].revents)
            take_events(p);
        if (fds[0].revents)
            read_input(p);
        if (ferror(stdout))
            p->quit = true;
    }
}

int plain_run(struct session *s, const struct ui_config *cfg, struct k3_error *err)
{
    const char *term = getenv("TERM");
    struct plain p = {.session = s, .at_line_start = true, .told = PHASE_IDLE};
    (void)cfg;
    setlocale(LC_CTYPE, "");
    text_set_ascii(strcmp(nl_langinfo(CODESET), "UTF-8") != 0);
    p.tty = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    p.pastes = p.tty && term && *term && strcmp(term, "dumb") != 0;
    if (!restore_install(true, err))
        return err->status;
    model_init(&p.model);
    set_modes(&p);
    plain_say(&p, "k3chat. Type a message; /help lists the commands.");
    take_events(&p);
    loop(&p);
    fresh_line(&p);
    const bool lost = fflush(stdout) != 0 || ferror(stdout);
    restore_now();
    restore_remove();
    session_get_status(s, &p.model.st);
    if (p.status == K3_OK && p.model.st.phase == PHASE_FAILED)
        p.status = k3_fail(err, K3_FAILED, "%s", p.model.st.detail);
    else if (p.status != K3_OK)
        k3_fail(err, K3_CANCELLED, "interrupted");
    else if (lost)
        p.status = k3_fail(err, K3_FAILED, "stdout cannot be written: %s", strerror(errno));
    model_free(&p.model);
    plain_input_free(&p.input);
    return p.status;
}
