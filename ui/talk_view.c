/* talk_view.c - the window onto the conversation (see talk_view.h). */
#include <config.h>

#include "talk_view.h"

#include "talk_find.h"

struct place {
    size_t entry, row;
};

void talk_view_init(struct talk_view *v)
{
    *v = (struct talk_view){.follow = true, .area = {0, 0, 20, 80}};
}

static unsigned width_of(const struct talk_view *v)
{
    return v->area.cols > 1 ? (unsigned)v->area.cols : 1;
}

/* Rows of an entry, the blank one behind it included. */
static size_t height(const struct talk_view *v, struct talk *t, size_t entry)
{
    struct entry *e = t->entries[entry];
    entry_layout(t, e, width_of(v), v->open, v->now);
    const bool notes = e->kind >= ENTRY_NOTICE && entry + 1 < t->n &&
                       t->entries[entry + 1]->kind == e->kind;
    return e->rows.n + (notes ? 0 : 1);
}

void talk_view_clamp(struct talk_view *v, const struct talk *t)
{
    if (v->entry >= t->n) {
        v->entry = t->n > 0 ? t->n - 1 : 0;
        v->offset = 0;
        v->blank = false;
    }
    if (t->n == 0)
        v->follow = true;
    if (v->held_entry >= t->n)
        v->held_entry = t->n > 0 ? t->n - 1 : 0;
}

/* The place where the end of the conversation is at the bottom of the window. */
static struct place end_place(const struct talk_view *v, struct talk *t)
{
    struct place p = {0, 0};
    size_t need = v->area.rows > 0 ? (size_t)v->area.rows : 1;
    bool last = true;
    for (size_t i = t->n; i-- > 0;) {
        size_t h = height(v, t, i);
        if (last && h > 0)
            h--; /* no blank row below the last entry */
        last = false;
        if (h >= need)
            return (struct place){i, h - need};
        need -= h;
    }
    return p;
}

static struct place held_place(const struct talk_view *v, struct talk *t)
{
    struct place p = {v->entry, 0};
    if (t->n == 0)
        return p;
    height(v, t, p.entry);
    const struct entry *e = t->entries[p.entry];
    const long at = (long)e->body + v->offset;
    p.row = wrapped_find(&e->rows, at > 0 ? (size_t)at : 0) + v->blank;
    return p;
}

static bool before(struct place a, struct place b)
{
    return a.entry < b.entry || (a.entry == b.entry && a.row < b.row);
}

static struct place move_up(const struct talk_view *v, struct talk *t, struct place p,
                            size_t rows)
{
    while (rows > p.row) {
        if (p.entry == 0)
            return (struct place){0, 0};
        rows -= p.row + 1;
        p.entry--;
        p.row = height(v, t, p.entry);
        p.row -= p.row > 0;
    }
    p.row -= rows;
    return p;
}

static struct place move_down(const struct talk_view *v, struct talk *t,
                              struct place p, size_t rows)
{
    while (p.entry < t->n) {
        const size_t left = height(v, t, p.entry) - p.row;
        if (rows < left || p.entry + 1 == t->n) {
            p.row += rows;
            return p;
        }
        rows -= left;
        p.entry++;
        p.row = 0;
    }
    return p;
}

static void hold(struct talk_view *v, struct talk *t, struct place p)
{
    const struct entry *e = t->entries[p.entry];
    const struct wrapped *w = &e->rows;
    height(v, t, p.entry);
    if (v->follow) {
        v->held_entry = t->n - t->n_queued;
        v->held_entry -= v->held_entry > 0;
        v->held_rows = height(v, t, v->held_entry);
    }
    v->follow = false;
    v->entry = p.entry;
    v->blank = p.row >= w->n && w->n > 0;
    const size_t row = v->blank ? w->n - 1 : p.row;
    v->offset = w->n > 0 ? (long)w->rows[row].start - (long)e->body : 0;
}

void talk_view_scroll(struct talk_view *v, struct talk *t, long rows)
{
    if (t->n == 0)
        return;
    const struct place end = end_place(v, t);
    const struct place at = v->follow ? end : held_place(v, t);
    const struct place to = rows < 0 ? move_up(v, t, at, (size_t)-rows)
                                     : move_down(v, t, at, (size_t)rows);
    if (before(to, end))
        hold(v, t, to);
    else
        v->follow = true;
}

void talk_view_top(struct talk_view *v, struct talk *t)
{
    if (t->n == 0)
        return;
    const struct place end = end_place(v, t);
    if (end.entry > 0 || end.row > 0)
        hold(v, t, (struct place){0, 0});
}

void talk_view_end(struct talk_view *v)
{
    v->follow = true;
}

size_t talk_view_new_rows(struct talk_view *v, struct talk *t)
{
    size_t rows = 0;
    if (v->follow || t->n == 0)
        return 0;
    for (size_t i = v->held_entry; i < t->n - t->n_queued; i++)
        rows += height(v, t, i);
    return rows > v->held_rows ? rows - v->held_rows : 0;
}

void talk_view_toggle_thinking(struct talk_view *v, struct talk *t)
{
    /* offsets move when the folds open: keep the entry, not the place in it */
    if (!v->follow && v->entry < t->n)
        v->offset = 0, v->blank = false;
    v->open = !v->open;
}

void talk_view_go(struct talk_view *v, struct talk *t, size_t entry, size_t at)
{
    const struct place end = end_place(v, t);
    struct place p = {entry, wrapped_find(&t->entries[entry]->rows, at)};
    p = move_up(v, t, p, v->area.rows > 6 ? 2 : 0); /* with a little of what stands before it */
    if (before(p, end))
        hold(v, t, p);
    else
        v->follow = true;
}

static void draw_row(const struct talk_view *v, const struct entry *e, size_t row, struct grid *g,
                     const struct rect *r, int y)
{
    rich_draw_row(&e->rich, &e->rows, row, g, r, y);
    if (v->find[0])
        find_mark(v->find, &e->rich, &e->rows, row, g, r, y);
}

void talk_view_draw(struct talk_view *v, struct talk *t, struct grid *g,
                          const struct rect *r)
{
    v->area = *r;
    talk_view_clamp(v, t);
    if (t->n == 0)
        return;
    struct place p = end_place(v, t);
    if (!v->follow) {
        const struct place held = held_place(v, t);
        if (before(held, p))
            p = held;
        else
            v->follow = true;
    }
    for (int y = 0; y < r->rows && p.entry < t->n; y++) {
        const struct entry *e = t->entries[p.entry];
        if (p.row < e->rows.n)
            draw_row(v, e, p.row, g, r, y);
        if (++p.row >= height(v, t, p.entry)) {
            p.entry++;
            p.row = 0;
        }
    }
}
