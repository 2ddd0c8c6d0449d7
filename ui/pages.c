/* pages.c - texts over the whole window (see pages.h). */
#include <config.h>

#include "pages.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "format.h"
#include "text.h"

#define LEFT_COLS 24
#define NARROW_COLS 3 /* in a narrow window the right side stands below the left one */

static void line_at(struct rich *r, unsigned cols, enum ink ink, const char *left, const char *right)
{
    unsigned at = text_width(left, strlen(left));
    rich_puts(r, ink, left);
    if (at >= cols) {
        rich_end_line(r, (struct rich_style){0});
        at = 0;
    }
    while (at++ < cols)
        rich_puts(r, INK_TEXT, " ");
    rich_puts(r, INK_TEXT, right);
    rich_end_line(r, (struct rich_style){.hang = cols});
}

static void line(struct rich *r, enum ink ink, const char *left, const char *right)
{
    line_at(r, LEFT_COLS, ink, left, right);
}

static void heading(struct rich *r, const char *s)
{
    if (r->n_lines > 0)
        rich_end_line(r, (struct rich_style){0});
    rich_puts(r, INK_HEADING, s);
    rich_end_line(r, (struct rich_style){0});
}

/* ---- help -------------------------------------------------------------------------------- */

static void build_help(const struct app *a, struct rich *r)
{
    char b[256];
    const unsigned cols = a->grid.cols < 60 ? NARROW_COLS : LEFT_COLS;
    for (size_t i = 0; i < n_actions; i++) {
        if (actions[i].action == ACT_NONE)
            heading(r, actions[i].help);
        else if (actions[i].help)
            line_at(r, cols, INK_KEY, keymap_keys(actions[i].action, b, sizeof b), actions[i].help);
    }
    heading(r, "Commands");
    for (size_t i = 0; i < n_slash_commands; i++) {
        snprintf(b, sizeof b, "/%s %s", slash_commands[i].name, slash_commands[i].args);
        line_at(r, cols, INK_KEY, b, slash_commands[i].help);
    }
    line_at(r, cols, INK_KEY, "//...", "send a message that begins with /");
}

const struct page page_help = {"help", build_help};

/* ---- profile and plan -------------------------------------------------------------------- */

static void field(struct rich *r, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void field(struct rich *r, const char *name, const char *fmt, ...)
{
    char b[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b, sizeof b, fmt, ap);
    va_end(ap);
    line(r, INK_LABEL, name, b);
}

static void part(struct rich *r, const char *name, uint64_t bytes, const char *what)
{
    char b[32];
    if (bytes > 0)
        field(r, name, "%9s  %s", fmt_bytes(b, sizeof b, (double)bytes), what);
}

static void add_parts(struct rich *r, const struct k3_plan *p)
{
    part(r, "program", p->program, "code, libraries, tokenizer, the screen");
    part(r, "index", p->index, "where each tensor stands");
    part(r, "vectors", p->vectors, "norms and other small tensors");
    part(r, "state", p->state, "of the linear-attention layers");
    part(r, "latents", p->latent, "of the full-attention layers, for the whole context");
    part(r, "activations", p->activations, "for one chunk of the prompt");
    part(r, "ring", p->ring, "trunk blocks on their way");
    part(r, "expert staging", p->staging, "experts on their way");
    part(r, "checkpoints", p->checkpoints, "earlier positions, to go back to");
    part(r, "resident trunk", p->residents, "trunk that stays in memory");
    part(r, "resident experts", p->experts, "experts that stay in memory");
    part(r, "together", p->total, "");
}

static void build_plan(const struct app *a, struct rich *r)
{
    const struct session_status *st = &a->model.st;
    const struct k3_plan *p = &st->plan;
    char b[32], c[32];
    heading(r, "Profile");
    field(r, "profile", "%s", st->profile_name[0] ? st->profile_name : "none");
    field(r, "model", "%s%s", st->model_name[0] ? st->model_name : "not loaded",
          st->demo ? " (built in; knows only k3chat)" : "");
    field(r, "thinking", "%s (/think changes it)", st->thinking);
    if (p->total == 0)
        return;
    field(r, "kernels", "%s, %u threads, chunks of %u tokens", p->isa ? p->isa : "-", p->threads,
          p->chunk);
    field(r, "reading", "%s", p->io);
    field(r, "context", "%u positions, %u used", p->context, st->position);
    heading(r, "Memory");
    field(r, "budget", "%9s  a ceiling; another one takes a new start: k3chat --budget SIZE",
          fmt_bytes(b, sizeof b, (double)p->budget));
    part(r, "least budget", p->floor, "that this model and context can do with");
    field(r, "in use now", "%9s  peak %s", fmt_bytes(b, sizeof b, (double)st->rss),
          fmt_bytes(c, sizeof c, (double)st->peak_rss));
    heading(r, "Plan");
    add_parts(r, p);
    heading(r, "A token reads");
    part(r, "trunk", p->trunk_per_token, "");
    part(r, "experts", p->experts_per_token, "at most, when none of the chosen is in memory");
}

const struct page page_plan = {"profile and plan", build_plan};

/* ---- figures ----------------------------------------------------------------------------- */

static void build_figures(const struct app *a, struct rich *r)
{
    const struct session_status *st = &a->model.st;
    const struct step_stats *t = &st->totals;
    const double bytes = (double)(t->bytes_trunk + t->bytes_experts);
    char b[32], c[32], d[32];
    heading(r, "Tokens generated since the start");
    field(r, "tokens", "%s in %s", fmt_count(b, sizeof b, t->tokens),
          fmt_about(c, sizeof c, t->seconds));
    if (t->tokens == 0)
        return;
    field(r, "a token", "%s on average, last %s, 95 %% within %s",
          fmt_seconds(b, sizeof b, st->mean_step_seconds),
          fmt_seconds(c, sizeof c, st->last_step_seconds),
          fmt_seconds(d, sizeof d, st->p95_step_seconds));
    field(r, "disk wait", "%s of the time: trunk %s, experts %s",
          fmt_percent(b, sizeof b, step_wait(t)), fmt_percent(c, sizeof c, step_wait_trunk(t)),
          fmt_percent(d, sizeof d, step_wait_experts(t)));
    field(r, "read", "%s, %s a token", fmt_bytes(b, sizeof b, bytes),
          fmt_bytes(c, sizeof c, bytes / t->tokens));
    field(r, "read rate", "%s on average, disk busy %s of the time",
          fmt_rate(b, sizeof b, t->seconds > 0 ? bytes / t->seconds : -1),
          fmt_percent(c, sizeof c, step_device_busy(t)));
    field(r, "TRUE resident hit rate", "%s of %s expert requests",
          fmt_percent1(b, sizeof b, step_hit_rate(t)), fmt_count(c, sizeof c, t->requests));
    field(r, "prefetched, waited", "%s, %s", fmt_percent1(b, sizeof b, step_prefetched(t)),
          fmt_percent1(c, sizeof c, step_waited(t)));
    field(r, "memory", "%s in use, peak %s, budget %s", fmt_bytes(b, sizeof b, (double)st->rss),
          fmt_bytes(c, sizeof c, (double)st->peak_rss),
          fmt_bytes(d, sizeof d, (double)st->plan.budget));
}

const struct page page_figures = {"figures", build_figures};

/* ---- branches ---------------------------------------------------------------------------- */

/* What was cut at any byte ends with its last whole word. */
static const char *excerpt(char *buf, size_t size, const char *text, size_t most)
{
    const size_t n = strlen(text);
    const char *end = n < most ? NULL : strrchr(text, ' ');
    snprintf(buf, size, "%.*s%s", end ? (int)(end - text) : (int)n, text, end ? " ..." : "");
    return buf;
}

static void build_branches(const struct app *a, struct rich *r)
{
    char left[64], when[32], text[sizeof a->branches->answer + 8];
    rich_puts(r, INK_LABEL, "/branch N goes to one; what is said there goes on from its end");
    rich_end_line(r, (struct rich_style){0});
    rich_end_line(r, (struct rich_style){0});
    for (size_t i = 0; i < a->n_branches; i++) {
        const struct saved_branch *b = &a->branches[i];
        snprintf(left, sizeof left, "%c %2zu  %s", b->current ? '*' : ' ', i + 1,
                 fmt_when(when, sizeof when, b->time, a->model.now));
        line(r, b->current ? INK_GOOD : INK_KEY, left,
             excerpt(text, sizeof text, b->question, sizeof b->question - 1));
        snprintf(left, sizeof left, "     %zu messages", b->messages);
        line(r, INK_DIM, left, excerpt(text, sizeof text, b->answer, sizeof b->answer - 1));
    }
}

const struct page page_branches = {"branches", build_branches};
