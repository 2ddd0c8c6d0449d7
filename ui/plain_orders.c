/* plain_orders.c - the commands of plain mode: one table with their help. */
#include <config.h>

#include "plain_orders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/saved.h"
#include "format.h"
#include "history.h"

static void tell_step(struct plain *p)
{
    char a[32], b[32];
    const struct step_stats *last = history_back(&p->model.steps, 0);
    if (!last)
        return;
    plain_say(p, "Disk wait %s of the last token, true resident hit rate %s.",
        fmt_percent(a, sizeof a, step_wait(last)), fmt_percent1(b, sizeof b, step_hit_rate(last)));
}

static void run_status(struct plain *p, const char *args)
{
    const struct session_status *st = &p->model.st;
    char a[32], b[32];
    (void)args;
    session_get_status(p->session, &p->model.st);
    plain_say(p, "%s%s%s.", session_phase_name(st->phase), st->detail[0] ? ": " : "", st->detail);
    if (st->phase == PHASE_READING && st->prompt_total > 0)
        plain_say(p, "%llu of %llu tokens of the prompt; about %s to go.",
            (unsigned long long)st->prompt_done, (unsigned long long)st->prompt_total,
            fmt_about(a, sizeof a, st->prompt_eta_s));
    if (phase_is_busy(st->phase) && st->metrics.running)
        plain_say(p, "Layer %u of %u.", st->metrics.layer, st->metrics.layers);
    if (st->mean_step_seconds > 0)
        plain_say(p, "%u tokens of the answer, %s per token; 100 tokens take about %s.",
            st->answer_tokens, fmt_seconds(a, sizeof a, st->last_step_seconds),
            fmt_about(b, sizeof b, 100 * st->mean_step_seconds));
    tell_step(p);
    plain_say(p, "Memory %s of %s. Context %u of %u tokens.", fmt_bytes(a, sizeof a, (double)st->rss),
        fmt_bytes(b, sizeof b, (double)st->plan.budget), st->position, st->context);
}

static void run_think(struct plain *p, const char *args)
{
    static const char *const efforts[] = {"off", "low", "high", "max"};
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++) {
        if (strcmp(args, efforts[i]) == 0) {
            session_set_thinking(p->session, args);
            plain_say(p, "Thinking %s from the next message on.", args);
            return;
        }
    }
    plain_say(p, "/think takes off, low, high or max; now it is %s.", p->model.st.thinking);
}

void plain_only_view(struct plain *p)
{
    size_t len = 0;
    char *text;
    while ((text = session_unqueue(p->session, &len)) != NULL) {
        plain_say(p, "Taken back: %s", text);
        p->own -= p->own > 0;
        free(text);
    }
    session_decide(p->session, false);
}

static void run_stop(struct plain *p, const char *args)
{
    (void)args;
    session_get_status(p->session, &p->model.st);
    if (p->model.st.phase == PHASE_ASKING)
        plain_only_view(p);
    else
        session_cancel(p->session);
}

static void run_continue(struct plain *p, const char *args)
{
    struct k3_error err = {0};
    (void)args;
    if (session_continue(p->session, &err) != K3_OK)
        plain_say(p, "Error: %s", err.message);
}

static void run_regen(struct plain *p, const char *args)
{
    struct k3_error err = {0};
    (void)args;
    if (session_regenerate(p->session, &err) != K3_OK)
        plain_say(p, "Error: %s", err.message);
}

#define LISTED 20

static void run_sessions(struct plain *p, const char *args)
{
    struct saved_session *list;
    struct k3_error err = {0};
    size_t n = 0;
    (void)args;
    if (saved_list(&list, &n, &err) != K3_OK) {
        plain_say(p, "Error: %s", err.message);
        return;
    }
    plain_say(p, "%zu sessions%s", n, n > LISTED ? ", the latest:" : ".");
    for (size_t i = 0; i < n && i < LISTED; i++) {
        char title[128] = "";
        size_t messages = 0;
        if (saved_read(list[i].name, &messages, title, sizeof title, &err) == K3_OK)
            plain_say(p, "%s: %zu messages, %s", list[i].name, messages, title);
        else
            plain_say(p, "%s: cannot be read.", list[i].name);
    }
    free(list);
}

/* NULL = a new one that is temporary */
static void go_to(struct plain *p, const char *name)
{
    struct k3_error err = {0};
    session_get_status(p->session, &p->model.st);
    if (phase_is_busy(p->model.st.phase))
        plain_say(p, "An answer is running; /stop stops it.");
    else if (session_switch(p->session, name, false, &err) != K3_OK)
        plain_say(p, "Error: %s", err.message);
}

static void run_resume(struct plain *p, const char *args)
{
    char title[8];
    size_t n = 0;
    struct k3_error err = {0};
    session_get_status(p->session, &p->model.st);
    if (*args == '\0' && p->model.st.phase == PHASE_VIEWING)
        go_to(p, p->model.st.session_name);
    else if (*args == '\0')
        plain_say(p, "/resume takes the name of a session; /sessions lists them.");
    else if (saved_read(args, &n, title, sizeof title, &err) != K3_OK)
        plain_say(p, "Error: %s", err.message);
    else
        go_to(p, args);
}

static void run_new(struct plain *p, const char *args)
{
    char title[8];
    size_t n = 0;
    struct k3_error unused;
    if (*args != '\0' && saved_read(args, &n, title, sizeof title, &unused) == K3_OK)
        plain_say(p, "There is a session %s; /resume opens it.", args);
    else
        go_to(p, args);
}

static void run_temporary(struct plain *p, const char *args)
{
    (void)args;
    go_to(p, NULL);
}

static void run_quit(struct plain *p, const char *args)
{
    (void)args;
    p->quit = true;
}

static void run_help(struct plain *p, const char *args);

static const struct {
    const char *name, *help;
    void (*run)(struct plain *p, const char *args);
} orders[] = {
    {"help", "these commands", run_help},
    {"status", "what is going on, in words", run_status},
    {"stop", "stop the running answer (Ctrl+C too)", run_stop},
    {"continue", "go on with the last answer, when it was cut off", run_continue},
    {"regen", "another answer to the last message", run_regen},
    {"think", "off, low, high or max: how long the model thinks", run_think},
    {"sessions", "the saved sessions", run_sessions},
    {"resume", "go to a session, by its name", run_resume},
    {"new", "begin another session; a name may follow", run_new},
    {"temporary", "begin a session that is written nowhere", run_temporary},
    {"quit", "leave (Ctrl+D too)", run_quit},
};
#define N_ORDERS (sizeof orders / sizeof *orders)

static void run_help(struct plain *p, const char *args)
{
    (void)args;
    plain_say(p, "A line is a message; a paste of several lines is one. Commands:");
    for (size_t i = 0; i < N_ORDERS; i++)
        plain_say(p, "/%s: %s", orders[i].name, orders[i].help);
    plain_say(p, "A message that begins with a slash is written with two.");
}

void plain_order(struct plain *p, const char *text)
{
    const size_t len = strcspn(text + 1, " ");
    for (size_t i = 0; i < N_ORDERS; i++) {
        if (strlen(orders[i].name) == len && memcmp(orders[i].name, text + 1, len) == 0) {
            orders[i].run(p, text + 1 + len + strspn(text + 1 + len, " "));
            return;
        }
    }
    plain_say(p, "There is no command /%.*s; /help tells which there are.", (int)(len < 40 ? len : 40),
        text + 1);
}
