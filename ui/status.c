/* status.c - the title line and the status line (see status.h). */
#include <config.h>

#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "format.h"
#include "keymap.h"
#include "text.h"

#define MAX_SEGMENTS 12

struct segment {
    char text[192];
    enum ink ink;
    int rank;   /* the greatest is left out first */
    bool right; /* from the right edge inwards */
};

struct segments {
    struct segment list[MAX_SEGMENTS];
    size_t n;
    int gap; /* columns between two */
};

static void add(struct segments *s, int rank, enum ink ink, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void add(struct segments *s, int rank, enum ink ink, const char *fmt, ...)
{
    if (s->n == MAX_SEGMENTS)
        return;
    struct segment *g = &s->list[s->n];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(g->text, sizeof g->text, fmt, ap);
    va_end(ap);
    g->ink = ink;
    g->rank = rank;
    g->right = false;
    if (g->text[0])
        s->n++;
}

static void add_right(struct segments *s, int rank, enum ink ink, const char *text)
{
    const size_t n = s->n;
    add(s, rank, ink, "%s", text);
    if (s->n > n)
        s->list[n].right = true;
}

static int total_width(const struct segments *s)
{
    int w = 0;
    for (size_t i = 0; i < s->n; i++)
        w += (int)text_width(s->list[i].text, strlen(s->list[i].text)) + (i > 0 ? s->gap : 0);
    return w;
}

/* Leaves out segments until the rest fits; the first in rank stays and is cut. */
static void fit(struct segments *s, int cols)
{
    while (s->n > 1 && total_width(s) > cols) {
        size_t worst = 0;
        for (size_t i = 1; i < s->n; i++)
            if (s->list[i].rank >= s->list[worst].rank)
                worst = i;
        memmove(&s->list[worst], &s->list[worst + 1], (s->n - worst - 1) * sizeof *s->list);
        s->n--;
    }
}

static void draw(struct segments *s, struct grid *g, const struct rect *r, bool bars)
{
    const struct rect in = {r->row, r->col + 1, r->rows, r->cols > 2 ? r->cols - 2 : 0};
    fit(s, in.cols);
    int col = 0, end = in.cols;
    for (size_t i = s->n; i-- > 0;) {
        const struct segment *seg = &s->list[i];
        if (!seg->right)
            continue;
        grid_puts_right(g, &in, 0, end, seg->ink, seg->text);
        end -= (int)text_width(seg->text, strlen(seg->text)) + s->gap;
    }
    for (size_t i = 0; i < s->n; i++) {
        const struct segment *seg = &s->list[i];
        if (seg->right)
            continue;
        if (col > 0 && bars)
            grid_set(g, &in, 0, col + s->gap / 2, INK_RULE, symbol(SYM_VLINE));
        col += col > 0 ? s->gap : 0;
        col = grid_put_cut(g, &in, 0, col, in.cols - col, seg->ink, seg->text, strlen(seg->text));
    }
}

/* ---- the status line --------------------------------------------------------------------- */

static void add_memory(struct segments *s, const struct ui_model *m, int rank)
{
    char a[32], b[32];
    if (model_memory(m) == 0)
        return;
    const uint64_t own = model_memory(m), budget = m->st.plan.budget;
    if (budget == 0) {
        add(s, rank, INK_STATUS, "%s", fmt_bytes(a, sizeof a, (double)own));
        return;
    }
    fmt_bytes_of(a, b, sizeof a, (double)own, (double)budget);
    add(s, rank, m->st.rss > budget ? INK_BAD : INK_STATUS, "%s/%s", a, b);
}

static void add_layer(struct segments *s, const struct ui_model *m, int rank)
{
    if (m->st.metrics.running && m->st.metrics.layers > 0)
        add(s, rank, INK_STATUS, "layer %u/%u", m->st.metrics.layer, m->st.metrics.layers);
}

static void add_shares(struct segments *s, const struct ui_model *m, int rank)
{
    const struct step_stats *last = history_back(&m->steps, 0);
    char b[32];
    if (!last && m->prefill.tokens > 0)
        last = &m->prefill;
    if (!last)
        return;
    add(s, rank, INK_STATUS, "disk %s", fmt_percent(b, sizeof b, step_wait(last)));
    add(s, rank + 1, INK_STATUS, "hit %s", fmt_percent(b, sizeof b, step_hit_rate(last)));
}

static void add_context(struct segments *s, const struct ui_model *m, int rank)
{
    char a[32], b[32];
    if (m->st.context > 0)
        add(s, rank, INK_STATUS, "ctx %s/%s", fmt_count(a, sizeof a, m->st.position),
            fmt_count(b, sizeof b, m->st.context));
}

/* What the next message will cost before its answer begins. */
static void add_reread(struct segments *s, const struct ui_model *m, int rank)
{
    char a[32], b[32];
    if (m->st.reread_tokens == 0)
        return;
    fmt_count(a, sizeof a, m->st.reread_tokens);
    if (m->st.reread_seconds >= 0.05) /* less reads "0.0 s" */
        add(s, rank, INK_WARN, "first reads %s tok again, ~%s", a,
            fmt_about(b, sizeof b, m->st.reread_seconds));
    else
        add(s, rank, INK_WARN, "first reads %s tok again", a);
}

static void add_reading(struct segments *s, const struct ui_model *m)
{
    const struct session_status *st = &m->st;
    char a[32], b[32];
    if (st->prompt_total > 0)
        add(s, 1, INK_VALUE, "%s/%s tok %.0f %%", fmt_count(a, sizeof a, st->prompt_done),
            fmt_count(b, sizeof b, st->prompt_total),
            100.0 * (double)st->prompt_done / (double)st->prompt_total);
    add(s, 3, INK_STATUS, "%s", fmt_clock(a, sizeof a, st->phase_seconds));
    if (st->prompt_eta_s >= 0)
        add(s, 2, INK_STATUS, "ETA %s", fmt_about(a, sizeof a, st->prompt_eta_s));
}

static void add_answering(struct segments *s, const struct ui_model *m)
{
    const struct session_status *st = &m->st;
    char a[32];
    add(s, 1, INK_VALUE, "%u tok", st->answer_tokens);
    const double pace = st->last_step_seconds > 0 ? st->last_step_seconds : st->step_seconds;
    if (pace > 0)
        add(s, 2, INK_STATUS, "%s/tok", fmt_seconds(a, sizeof a, pace));
}

static void add_pace(struct segments *s, const struct ui_model *m, int rank)
{
    char a[32];
    if (m->st.mean_step_seconds > 0)
        add(s, rank, INK_DIM, "~%s per 100 tok",
            fmt_about(a, sizeof a, 100 * m->st.mean_step_seconds));
}

static void add_loading(struct segments *s, const struct ui_model *m)
{
    const struct session_status *st = &m->st;
    add(s, 1, INK_VALUE, "%s", st->detail);
    if (st->load_total > 0)
        add(s, 2, INK_STATUS, "%.0f %%", 100.0 * (double)st->load_done / (double)st->load_total);
}

static enum ink phase_ink(enum session_phase p)
{
    return p == PHASE_FAILED ? INK_BAD
         : p == PHASE_CANCELLING || p == PHASE_ASKING || p == PHASE_VIEWING ? INK_WARN
         : p == PHASE_IDLE ? INK_GOOD : INK_TITLE;
}

void status_draw(const struct ui_model *m, struct grid *g, const struct rect *r)
{
    struct segments s = {.gap = 3};
    const enum session_phase p = m->st.phase;
    if (p == PHASE_FAILED && m->st.detail[0])
        add(&s, 0, INK_BAD, "%s: %s", session_phase_name(p), m->st.detail);
    else
        add(&s, 0, phase_ink(p), "%s", session_phase_name(p));
    if (m->st.temporary)
        add(&s, 1, INK_WARN, "temporary");
    if (p == PHASE_LOADING)
        add_loading(&s, m);
    else if (p == PHASE_READING)
        add_reading(&s, m);
    else if (phase_is_busy(p))
        add_answering(&s, m);
    if (phase_is_busy(p))
        add_layer(&s, m, 4);
    if (p == PHASE_IDLE)
        add_reread(&s, m, 1);
    if (p == PHASE_IDLE || p == PHASE_ASKING || p == PHASE_SAVING)
        add_context(&s, m, 2);
    if (p != PHASE_LOADING && p < PHASE_FAILED)
        add_shares(&s, m, 5);
    add_memory(&s, m, 7);
    if (phase_is_busy(p))
        add_context(&s, m, 8);
    if (p != PHASE_LOADING && p != PHASE_READING)
        add_pace(&s, m, 9);
    if (m->queued > 0)
        add(&s, 3, INK_WARN, "queued %zu", m->queued);
    draw(&s, g, r, true);
}

void status_window_title(const struct ui_model *m, char *buf, size_t size)
{
    const struct session_status *st = &m->st;
    char a[32] = "";
    if (st->phase == PHASE_READING && st->prompt_total > 0)
        snprintf(a, sizeof a, " %.0f %%",
                 100.0 * (double)st->prompt_done / (double)st->prompt_total);
    else if (phase_is_busy(st->phase))
        snprintf(a, sizeof a, " %u tok", st->answer_tokens);
    snprintf(buf, size, "k3chat: %s%s%s%s", session_phase_name(st->phase), a,
             st->session_name[0] ? " - " : "", st->session_name);
}

/* ---- the title line ---------------------------------------------------------------------- */

static void add_profile(struct segments *s, const struct ui_model *m, int rank)
{
    char b[32], text[128];
    if (!m->st.profile_name[0] && !m->st.plan.budget)
        return;
    snprintf(text, sizeof text, "%s%s%s", m->st.profile_name,
             m->st.profile_name[0] && m->st.plan.budget ? " " : "",
             m->st.plan.budget ? fmt_size(b, sizeof b, (double)m->st.plan.budget) : "");
    add_right(s, rank, INK_LABEL, text);
}

void title_draw(const struct ui_model *m, struct grid *g, const struct rect *r)
{
    struct segments s = {.gap = 3};
    char b[64];
    add(&s, 5, INK_TITLE, "k3chat");
    if (m->st.temporary)
        add(&s, 3, INK_WARN, "temporary: not written");
    else
        add(&s, 3, INK_TEXT, "%s", m->st.session_name);
    if (m->st.demo)
        add(&s, 0, INK_WARN, "%s", r->cols >= 100 ? "demo model: knows only k3chat"
                                                  : "demo: knows only k3chat");
    else
        add(&s, 6, INK_LABEL, "%s", m->st.model_name);
    add_profile(&s, m, 7);
    if (m->st.thinking[0]) {
        snprintf(b, sizeof b, "thinking %s", m->st.thinking);
        add_right(&s, 4, INK_LABEL, b);
    }
    snprintf(b, sizeof b, "%s help", keymap_key(ACT_HELP)[0] ? keymap_key(ACT_HELP) : "/");
    add_right(&s, 1, INK_KEY, b);
    draw(&s, g, r, false);
}
