/* talk_find.c - finding text in the conversation, and marking it where it is shown. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "talk_find.h"
#include "text.h"

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c);
}

static bool matches(const char *s, const char *what, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (lower(s[i]) != lower(what[i]))
            return false;
    return true;
}

size_t find_first(const char *s, size_t len, const char *what, size_t from)
{
    const size_t n = strlen(what);
    for (size_t i = from; n > 0 && i + n <= len; i++)
        if (matches(s + i, what, n))
            return i;
    return FIND_NONE;
}

size_t find_last(const char *s, size_t len, const char *what, size_t before)
{
    const size_t n = strlen(what);
    if (n == 0 || n > len)
        return FIND_NONE;
    for (size_t i = before < len - n + 1 ? before : len - n + 1; i-- > 0;)
        if (matches(s + i, what, n))
            return i;
    return FIND_NONE;
}

void find_mark(const char *what, const struct rich *rich, const struct wrapped *w, size_t i,
               struct grid *g, const struct rect *r, int y)
{
    const struct row *row = &w->rows[i];
    const struct rich_style *st = &rich->lines[row->line].style;
    const int indent = row->first ? st->indent : st->hang;
    const char *s = rich->text + row->start;
    const size_t len = row->end - row->start, n = strlen(what);
    for (size_t at = 0; (at = find_first(s, len, what, at)) != FIND_NONE; at += n) {
        const int col = indent + (int)text_width(s, at);
        grid_ink(g, r, y, col, (int)text_width(s + at, n), INK_MATCH);
    }
}

/* Could the picture of e hold it? Saves making pictures of what does not. */
static bool may_hold(const struct entry *e, const char *what)
{
    return find_first(e->text.s, e->text.len, what, 0) != FIND_NONE ||
           find_first(e->reasoning.s, e->reasoning.len, what, 0) != FIND_NONE;
}

static bool find_in(struct talk_view *v, struct talk *t, size_t entry, bool backwards, size_t from)
{
    struct entry *e = t->entries[entry];
    if (!may_hold(e, v->find))
        return false;
    entry_layout(t, e, v->area.cols > 1 ? (unsigned)v->area.cols : 1, v->open, v->now);
    const struct rich *r = &e->rich;
    const size_t at = backwards ? find_last(r->text, r->len, v->find, from)
                                : find_first(r->text, r->len, v->find, from);
    if (at == FIND_NONE)
        return false;
    v->found_entry = entry;
    v->found_at = at;
    talk_view_go(v, t, entry, at);
    return true;
}

bool talk_view_find(struct talk_view *v, struct talk *t, const char *what, bool backwards)
{
    const bool again = v->find[0] && strcmp(v->find, what) == 0 && v->found_entry < t->n;
    snprintf(v->find, sizeof v->find, "%s", what);
    if (t->n == 0 || (!again && !backwards))
        return false;
    size_t entry = again ? v->found_entry : t->n - 1;
    size_t from = again ? v->found_at + !backwards : SIZE_MAX;
    for (;;) {
        if (find_in(v, t, entry, backwards, from))
            return true;
        if (backwards ? entry == 0 : entry + 1 >= t->n)
            return false;
        entry += backwards ? (size_t)-1 : 1;
        from = backwards ? SIZE_MAX : 0;
    }
}

bool talk_view_find_in(struct talk_view *v, struct talk *t, const char *what, int64_t index)
{
    snprintf(v->find, sizeof v->find, "%s", what);
    for (size_t i = 0; i < t->n; i++) {
        if (t->entries[i]->index != index)
            continue;
        if (!find_in(v, t, i, false, 0)) {
            entry_layout(t, t->entries[i], v->area.cols > 1 ? (unsigned)v->area.cols : 1, v->open,
                         v->now);
            v->found_entry = i;
            v->found_at = 0;
            talk_view_go(v, t, i, 0);
        }
        return true;
    }
    return false;
}
