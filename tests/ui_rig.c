/* ui_rig.c - the screen on a pty (see ui_rig.h). */
#include <config.h>

#include "ui_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rig *rig_launch(const struct rig_options *opt)
{
    struct rig *r = calloc(1, sizeof *r);
    int in[2], out[2];
    char path[4096];
    const char *build = getenv("K3_BUILDDIR");
    if (!r || pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
        free(r);
        return NULL;
    }
    snprintf(path, sizeof path, "%s/ui_fake", build ? build : ".");
    const char *argv[] = {path, opt->arg, NULL};
    const struct vt_options vo = {
        .argv = argv, .env = opt->env, .term = opt->term, .locale = opt->locale,
        .rows = opt->rows ? opt->rows : 24, .cols = opt->cols ? opt->cols : 80,
        .zero_size = opt->zero_size, .job_control = opt->job_control,
        .control = in[0], .report = out[1],
    };
    r->vt = vt_start(&vo);
    close(in[0]);
    close(out[1]);
    r->control = in[1];
    r->report = out[0];
    fcntl(r->report, F_SETFL, O_NONBLOCK);
    return r;
}

struct rig *rig_start(const struct rig_options *opt)
{
    struct rig *r = rig_launch(opt);
    if (!r || !r->vt || !vt_wait_text(r->vt, "loading")) {
        rig_free(r);
        return NULL;
    }
    vt_settle(r->vt);
    return r;
}

void rig_free(struct rig *r)
{
    if (!r)
        return;
    vt_free(r->vt);
    close(r->control);
    close(r->report);
    free(r->heard);
    free(r);
}

void rig_say(struct rig *r, const char *fmt, ...)
{
    char *line = NULL;
    va_list ap;
    va_start(ap, fmt);
    const int n = vasprintf(&line, fmt, ap);
    va_end(ap);
    if (n < 0)
        abort();
    line[n] = '\n'; /* in place of the NUL */
    for (int at = 0; at <= n;) {
        const ssize_t w = write(r->control, line + at, (size_t)(n + 1 - at));
        if (w < 0 && errno != EINTR)
            break;
        at += w > 0 ? (int)w : 0;
    }
    free(line);
}

static void listen_now(struct rig *r)
{
    char buf[65536];
    ssize_t n;
    while ((n = read(r->report, buf, sizeof buf)) > 0) {
        r->heard = realloc(r->heard, r->n_heard + (size_t)n + 1);
        if (!r->heard)
            abort();
        memcpy(r->heard + r->n_heard, buf, (size_t)n);
        r->n_heard += (size_t)n;
        r->heard[r->n_heard] = '\0';
    }
}

const char *rig_hear(struct rig *r, const char *start)
{
    for (int tries = 0; tries < VT_DEADLINE_MS / 10; tries++) {
        listen_now(r);
        char *nl;
        while (r->passed < r->n_heard && (nl = strchr(r->heard + r->passed, '\n'))) {
            char *line = r->heard + r->passed;
            *nl = '\0';
            r->passed = (size_t)(nl + 1 - r->heard);
            if (strncmp(line, start, strlen(start)) == 0)
                return line;
        }
        vt_pump(r->vt, 10);
    }
    fprintf(stderr, "# no report: %s\n", start);
    vt_dump(r->vt);
    return NULL;
}

/* The 60 steps behind the graphs. */
static void play_steps(struct rig *r)
{
    for (int i = 0; i < 60; i++) {
        const double t = 23.2 + 0.3 * (i * 7 % 5) + (i == 20 ? 8 : 0);
        const int resident = 150 + 5 * (i * 11 % 23);
        rig_say(r, "step 1 %.2f %.2f %.2f %.2f 98000000000 39200000000 1472 %d %d 309", t, t * 0.78,
                t * 0.15, t * 0.95, resident, 1472 - 309 - resident);
    }
}

void rig_play_scene(struct rig *r)
{
    static const char *const lines[] = {
        "set session rust-lifetimes", "set profile laptop", "set model kimi-k3",
        "set thinking low", "set budget 8000000000", "set anon 7600000000", "set rss 7620000000", "set peak 7700000000",
        "set page_cache 12300000000", "set context 8192", "set position 512",
        "set plan_total 7900000000", "set plan_experts 4900000000",
        "set plan_residents 1500000000", "set plan_ring 200000000", "set plan_state 510000000",
        "set plan_latent 450000000", "set plan_layers 93", "set layers 93",
        "set expert_bytes 4700000000", "layers 1 16 12",
        "message user 0 0 Explain lifetimes in Rust with one example.", "answer 0",
        "set reasoning_tokens 61",
        "think The user wants a short explanation with one example: the longest function.",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        rig_say(r, "%s", lines[i]);
    play_steps(r);
    rig_say(r, "say A **lifetime** names how long a reference stays valid:\\n\\n```rust\\n"
               "fn longest<'a>(x: &'a str, y: &'a str) -> &'a str {\\n"
               "    if x.len() > y.len() { x } else { y }\\n}\\n```\\n\\n"
               "- `'a` is the *shorter* of both lifetimes;\\n"
               "- the result may live **no longer** than that, and the compiler checks it\\n"
               "  wherever `longest` is called.\\n\\n"
               "> Nothing is kept alive by a lifetime: it only describes.");
    rig_say(r, "set running 1");
    rig_say(r, "set layer 61");
    rig_say(r, "set last 24.1");
    rig_say(r, "set mean 23.7");
    rig_say(r, "set p95 25.9");
    rig_say(r, "set answer_tokens 98");
    rig_say(r, "set step_seconds 14.2");
    rig_say(r, "phase answering");
}

void rig_make_idle(struct rig *r)
{
    rig_say(r, "set session notes");
    rig_say(r, "set context 8192");
    rig_say(r, "set position 812");
    rig_say(r, "set thinking low");
    rig_say(r, "set budget 8000000000");
    rig_say(r, "set rss 7600000000");
    rig_say(r, "phase idle");
    vt_wait_text(r->vt, "idle");
    vt_settle(r->vt);
}
