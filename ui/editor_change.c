/* editor_change.c - changes of the text, undo and redo (see editor_change.h). */
#include <config.h>

#include "editor_change.h"

#include <string.h>

#include "grow.h"
#include "text.h"

#define UNDO_BYTES (64u << 20) /* older changes are forgotten beyond this */

static void free_change(struct editor *e, struct editor_change *c)
{
    e->undo_bytes -= c->n_removed + c->n_added;
    free(c->removed);
    free(c->added);
}

void editor_forget_changes(struct editor *e)
{
    for (size_t i = 0; i < e->n_undo; i++)
        free_change(e, &e->undo[i]);
    e->n_undo = e->undo_at = 0;
}

void editor_stop_typing(struct editor *e)
{
    if (e->undo_at > 0)
        e->undo[e->undo_at - 1].typed = false;
}

/* A mark or joiner may have merged with the cluster before the cursor. */
static void to_boundary(struct editor *e)
{
    if (e->cursor == 0 || e->cursor >= e->len)
        return;
    const size_t prev = text_prev(e->text, e->len, e->cursor);
    const size_t next = text_next(e->text, e->len, prev);
    if (next > e->cursor)
        e->cursor = next;
}

static bool splice(struct editor *e, size_t at, size_t n_removed, const char *added,
                   size_t n_added)
{
    if (!GROW(e->text, e->cap, e->len - n_removed + n_added + 1)) {
        e->failed = true;
        return false;
    }
    memmove(e->text + at + n_added, e->text + at + n_removed, e->len - at - n_removed);
    if (n_added > 0)
        memcpy(e->text + at, added, n_added);
    e->len = e->len - n_removed + n_added;
    e->cursor = at + n_added;
    to_boundary(e);
    e->rows_good = false;
    return true;
}

static char *copy_of(const char *s, size_t n)
{
    char *c = n > 0 ? malloc(n) : NULL;
    if (c)
        memcpy(c, s, n);
    return c;
}

/* Lengthens the last record by what was typed or pasted behind it. */
static bool extend_last(struct editor *e, size_t at, const char *added, size_t n_added)
{
    if (e->undo_at == 0 || e->undo_at != e->n_undo)
        return false;
    struct editor_change *c = &e->undo[e->undo_at - 1];
    if (!c->typed || at != c->at + c->n_added)
        return false;
    char *more = realloc(c->added, c->n_added + n_added);
    if (!more)
        return false;
    memcpy(more + c->n_added, added, n_added);
    c->added = more;
    c->n_added += n_added;
    e->undo_bytes += n_added;
    return true;
}

static void drop_oldest(struct editor *e)
{
    size_t n = 0;
    while (n + 1 < e->undo_at && e->undo_bytes > UNDO_BYTES)
        free_change(e, &e->undo[n++]);
    memmove(e->undo, e->undo + n, (e->n_undo - n) * sizeof *e->undo);
    e->n_undo -= n;
    e->undo_at -= n;
}

static bool record(struct editor *e, const struct editor_change *c)
{
    while (e->n_undo > e->undo_at) /* a new change ends what could be redone */
        free_change(e, &e->undo[--e->n_undo]);
    if (!GROW(e->undo, e->cap_undo, e->n_undo + 1))
        return false;
    e->undo[e->n_undo++] = *c;
    e->undo_at = e->n_undo;
    e->undo_bytes += c->n_removed + c->n_added;
    drop_oldest(e);
    return true;
}

void editor_replace(struct editor *e, size_t at, size_t n_removed, const char *added,
                    size_t n_added, bool typed)
{
    if (n_removed == 0 && n_added == 0)
        return;
    /* then the splices below cannot fail */
    if (!GROW(e->text, e->cap, e->len - n_removed + n_added + 1)) {
        e->failed = true;
        return;
    }
    struct editor_change c = {.at = at, .n_removed = n_removed, .n_added = n_added,
                              .cursor_before = e->cursor, .typed = typed};
    if (typed && n_removed == 0 && extend_last(e, at, added, n_added)) {
        splice(e, at, 0, added, n_added);
        return;
    }
    c.removed = copy_of(e->text + at, n_removed);
    c.added = copy_of(added, n_added);
    if ((n_removed > 0 && !c.removed) || (n_added > 0 && !c.added) ||
        !splice(e, at, n_removed, added, n_added) || !record(e, &c)) {
        e->failed = true;
        free(c.removed);
        free(c.added);
    }
}

void editor_undo(struct editor *e)
{
    editor_stop_typing(e);
    e->has_goal = e->killing = false;
    if (e->undo_at == 0)
        return;
    const struct editor_change *c = &e->undo[e->undo_at - 1];
    if (!splice(e, c->at, c->n_added, c->removed, c->n_removed))
        return;
    e->undo_at--;
    e->cursor = c->cursor_before;
}

void editor_redo(struct editor *e)
{
    editor_stop_typing(e);
    e->has_goal = e->killing = false;
    if (e->undo_at == e->n_undo)
        return;
    const struct editor_change *c = &e->undo[e->undo_at];
    if (splice(e, c->at, c->n_removed, c->added, c->n_added))
        e->undo_at++;
}
