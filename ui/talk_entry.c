/* talk_entry.c - the picture of one entry of the conversation: who, when, reasoning folded to one
 * line or open, the text, and how it ended. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "format.h"
#include "keymap.h"
#include "markdown.h"
#include "text.h"
#include "talk.h"

static const struct rich_style flat = {0};

static void add_symbol(struct rich *r, enum ink ink, enum symbol s)
{
    char b[4];
    rich_add(r, ink, b, text_encode(symbol(s), b));
}

static void build_header(const struct entry *e, struct rich *r, int64_t now)
{
    char b[32];
    if (e->kind == ENTRY_SYSTEM)
        rich_puts(r, INK_LABEL, "system");
    else if (e->kind == ENTRY_USER)
        rich_puts(r, e->queued ? INK_LABEL : INK_USER, "you");
    else
        rich_puts(r, INK_MODEL, "k3");
    if (e->queued) {
        rich_puts(r, INK_WARN, "  queued ");
        rich_puts(r, INK_WARN, fmt_count(b, sizeof b, e->place));
    }
    if (e->time > 0) {
        rich_puts(r, INK_DIM, "  ");
        rich_puts(r, INK_DIM, fmt_when(b, sizeof b, e->time, now));
    }
    if (e->kind == ENTRY_ASSISTANT && !e->running && e->tokens > 0) {
        rich_puts(r, INK_DIM, "  ");
        rich_puts(r, INK_DIM, fmt_count(b, sizeof b, e->tokens));
        rich_puts(r, INK_DIM, " tok");
        if (e->seconds > 0) {
            rich_puts(r, INK_DIM, "  ");
            rich_puts(r, INK_DIM, fmt_about(b, sizeof b, e->seconds));
        }
    }
    rich_end_line(r, flat);
}

/* The last words of a thought under way, so that the fold shows that it moves. */
static void add_tail(const struct entry *e, struct rich *r, unsigned room)
{
    const char *s = e->reasoning.s;
    size_t from = e->reasoning.len;
    unsigned cols = 2;
    while (from > 0) {
        const size_t prev = text_prev(s, e->reasoning.len, from);
        const unsigned w = text_width(s + prev, from - prev);
        if (s[prev] == '\n' || cols + w > room)
            break;
        cols += w;
        from = prev;
    }
    if (room < 12 || from == e->reasoning.len)
        return;
    rich_puts(r, INK_THINK, "  ");
    rich_add(r, INK_THINK, s + from, e->reasoning.len - from);
}

static void build_thinking(struct entry *e, struct rich *r, unsigned width, bool open)
{
    const bool now = e->running && e->text.len == 0;
    const size_t before = r->len;
    char b[32];
    add_symbol(r, INK_LABEL, open ? SYM_OPEN : SYM_CLOSED);
    rich_puts(r, INK_LABEL, now ? " thinking" : " thought");
    if (e->reasoning_tokens > 0) {
        rich_puts(r, INK_DIM, "  ");
        rich_puts(r, INK_DIM, fmt_count(b, sizeof b, e->reasoning_tokens));
        rich_puts(r, INK_DIM, " tok");
    }
    if (e->reasoning_seconds > 0 && e->reasoning_steps + 1 >= e->reasoning_tokens) {
        rich_puts(r, INK_DIM, "  ");
        rich_puts(r, INK_DIM, fmt_about(b, sizeof b, e->reasoning_seconds));
    }
    const unsigned used = text_width(r->text + before, r->len - before);
    if (now && !open && width > used)
        add_tail(e, r, width - used);
    else if (!open && keymap_key(ACT_THINKING)[0] && width > used + 16) {
        rich_puts(r, INK_DIM, "  ");
        rich_puts(r, INK_DIM, keymap_key(ACT_THINKING));
        rich_puts(r, INK_DIM, " opens");
    }
    rich_end_line(r, flat);
    e->body = r->len;
    const struct rich_style quoted = {.indent = 2, .hang = 2, .bars = 1};
    if (open)
        rich_add_lines(r, INK_THINK, quoted, e->reasoning.s, e->reasoning.len);
}

static void build_end(const struct entry *e, struct rich *r)
{
    static const char *const words[] = {
        [FINISH_LENGTH] = "[the length limit is reached]",
        [FINISH_CANCELLED] = "[cancelled]",
        [FINISH_ERROR] = "[broken off by an error]",
    };
    if (e->kind != ENTRY_ASSISTANT || e->running)
        return;
    if (e->finish == FINISH_STOP) {
        if (e->text.len > 0)
            return;
        rich_puts(r, INK_LABEL, "[no answer after the thinking]");
        rich_end_line(r, flat);
        return;
    }
    rich_puts(r, e->finish == FINISH_ERROR ? INK_BAD : INK_WARN, words[e->finish]);
    rich_end_line(r, flat);
}

static void build(const struct talk *t, struct entry *e, unsigned width, bool open,
                  int64_t now)
{
    struct rich *r = &e->rich;
    rich_clear(r);
    e->body = 0;
    if (e->kind == ENTRY_NOTICE || e->kind == ENTRY_ERROR) {
        const struct rich_style note = {.indent = 0, .hang = t->bare ? 0 : 2};
        if (!t->bare) {
            add_symbol(r, e->kind == ENTRY_ERROR ? INK_BAD : INK_LABEL, SYM_BULLET);
            rich_puts(r, INK_LABEL, " ");
        }
        rich_add_lines(r, e->kind == ENTRY_ERROR ? INK_BAD : INK_LABEL, note, e->text.s,
                       e->text.len);
        return;
    }
    build_header(e, r, now);
    e->body = r->len;
    if (t->bare && open)
        rich_add_lines(r, INK_THINK, flat, e->reasoning.s, e->reasoning.len);
    else if (!t->bare && e->reasoning.len > 0)
        build_thinking(e, r, width, open);
    if (e->kind == ENTRY_ASSISTANT && t->markdown && !t->bare)
        markdown_add(r, e->text.s, e->text.len);
    else
        rich_add_lines(r, e->queued ? INK_LABEL : INK_TEXT, flat, e->text.s, e->text.len);
    build_end(e, r);
}

bool entry_layout(struct talk *t, struct entry *e, unsigned width, bool open, int64_t now)
{
    if (!e->stale && e->built_width == width && e->built_open == open && e->built_bare == t->bare)
        return true;
    build(t, e, width, open, now);
    t->pictures++;
    e->built_width = width;
    e->built_open = open;
    e->built_bare = t->bare;
    e->stale = !wrap_rich(&e->rich, width, &e->rows) || e->rich.short_of_memory;
    return !e->stale;
}
