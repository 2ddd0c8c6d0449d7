/* chooser.c - the list of saved sessions (see chooser.h); its picture is in chooser_draw.c. */
#include <config.h>

#include "chooser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "keys.h"
#include "talk_find.h"
#include "text.h"

#define FILTER_READS 200 /* transcripts that a filter reads for their first words */
#define HITS_MAX 2000

/* A transcript is read when its row is looked at, not before. */
void chooser_read_row(struct chooser_row *r)
{
    struct k3_error err = {0};
    if (r->read)
        return;
    r->read = true;
    r->damaged = saved_read(r->saved.name, &r->messages, r->title, sizeof r->title, &err) != K3_OK;
    if (r->damaged)
        snprintf(r->title, sizeof r->title, "%.*s", (int)sizeof r->title - 1, err.message);
}

static bool fits(struct chooser *c, size_t i)
{
    struct chooser_row *r = &c->rows[i];
    if (c->filter[0] == '\0' ||
        find_first(r->saved.name, strlen(r->saved.name), c->filter, 0) != FIND_NONE)
        return true;
    if (i < FILTER_READS)
        chooser_read_row(r);
    return r->read && find_first(r->title, strlen(r->title), c->filter, 0) != FIND_NONE;
}

static void drop_hits(struct chooser *c)
{
    for (size_t i = 0; i < c->n_hits; i++)
        free(c->hits[i].excerpt);
    c->n_hits = c->searched = 0;
}

static void apply_filter(struct chooser *c)
{
    c->mode = CHOOSER_LIST;
    drop_hits(c);
    c->n_shown = c->at = c->top = 0;
    for (size_t i = 0; i < c->n; i++)
        if (fits(c, i))
            c->shown[c->n_shown++] = i;
}

static bool read_list(struct chooser *c, struct k3_error *err)
{
    struct saved_session *list;
    size_t n;
    if (saved_list(&list, &n, err) != K3_OK)
        return false;
    free(c->rows);
    free(c->shown);
    c->rows = calloc(n + 1, sizeof *c->rows);
    c->shown = calloc(n + 1, sizeof *c->shown);
    c->n = 0;
    if (!c->rows || !c->shown) {
        free(list);
        k3_fail_memory(err, "the list of sessions", n * sizeof *c->rows);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        c->rows[i].saved = list[i];
    free(list);
    c->n = n;
    apply_filter(c);
    return true;
}

bool chooser_open(struct chooser *c, struct k3_error *err)
{
    chooser_close(c);
    c->height = 10;
    c->open = read_list(c, err);
    if (!c->open)
        chooser_close(c);
    return c->open;
}

void chooser_close(struct chooser *c)
{
    drop_hits(c);
    free(c->hits);
    free(c->rows);
    free(c->shown);
    *c = (struct chooser){0};
}

bool chooser_reload(struct chooser *c, struct k3_error *err)
{
    const size_t at = c->at, top = c->top;
    if (!read_list(c, err)) {
        chooser_close(c);
        return false;
    }
    c->at = at < c->n_shown ? at : c->n_shown > 0 ? c->n_shown - 1 : 0;
    c->top = top < c->at ? top : c->at;
    return true;
}

const struct chooser_hit *chooser_hit(const struct chooser *c)
{
    return c->mode == CHOOSER_HITS && c->at < c->n_hits ? &c->hits[c->at] : NULL;
}

const char *chooser_name(const struct chooser *c)
{
    if (c->mode == CHOOSER_HITS)
        return c->at < c->n_hits ? c->rows[c->hits[c->at].row].saved.name : NULL;
    return c->at < c->n_shown ? c->rows[c->shown[c->at]].saved.name : NULL;
}

/* ---- searching in all of them ------------------------------------------------------------ */

void chooser_search(struct chooser *c, const char *what)
{
    drop_hits(c);
    if (what != c->filter)
        snprintf(c->filter, sizeof c->filter, "%s", what);
    c->mode = CHOOSER_HITS;
    c->at = c->top = 0;
}

bool chooser_searching(const struct chooser *c)
{
    return c->open && c->mode == CHOOSER_HITS && c->searched < c->n && c->n_hits < HITS_MAX;
}

static void add_hit(void *ud, const struct saved_hit *hit)
{
    struct chooser *c = ud;
    if (c->n_hits == HITS_MAX || !GROW(c->hits, c->hits_cap, c->n_hits + 1))
        return;
    struct chooser_hit *h = &c->hits[c->n_hits];
    *h = (struct chooser_hit){.row = c->searched, .message = hit->message};
    h->excerpt = strdup(hit->excerpt);
    snprintf(h->role, sizeof h->role, "%s", hit->role);
    c->n_hits += h->excerpt != NULL;
}

void chooser_work(struct chooser *c)
{
    struct k3_error unused = {0}; /* what cannot be read is told in the list */
    if (!chooser_searching(c))
        return;
    saved_search(c->rows[c->searched].saved.name, c->filter, add_hit, c, &unused);
    c->searched++;
}

/* ---- keys -------------------------------------------------------------------------------- */

static void move(struct chooser *c, long rows)
{
    const size_t n = c->mode == CHOOSER_HITS ? c->n_hits : c->n_shown;
    const long last = n > 0 ? (long)n - 1 : 0;
    const long to = (long)c->at + rows;
    c->at = (size_t)(to < 0 ? 0 : to > last ? last : to);
}

/* Adds a character to a text of that size, or takes the last one away (key 0). */
static void type(char *text, size_t size, uint32_t key)
{
    char b[4];
    const size_t len = strlen(text), n = key != 0 ? text_encode(key, b) : 0;
    if (key == 0)
        text[text_prev(text, len, len)] = '\0';
    else if (len + n < size) {
        memcpy(text + len, b, n);
        text[len + n] = '\0';
    }
}

static bool types(enum action action, uint32_t key)
{
    return action == ACT_NONE && (key & MOD_MASK) == 0 && key < 0x110000 && key >= 0x20;
}

static enum chooser_wish delete_key(struct chooser *c, uint32_t key)
{
    c->mode = CHOOSER_LIST;
    return key == 'y' || key == 'Y' ? CHOOSER_DO_DELETE : CHOOSER_NOTHING;
}

static enum chooser_wish rename_key(struct chooser *c, enum action action, uint32_t key)
{
    if (types(action, key))
        type(c->input, sizeof c->input, key);
    else if (action == ACT_BACKSPACE)
        type(c->input, sizeof c->input, 0);
    else if (action == ACT_KILL_TO_START)
        c->input[0] = '\0';
    else if (action == ACT_SEND) {
        c->mode = CHOOSER_LIST;
        return c->input[0] ? CHOOSER_DO_RENAME : CHOOSER_NOTHING;
    } else if (action != ACT_NONE)
        c->mode = CHOOSER_LIST;
    return CHOOSER_NOTHING;
}

static bool moves(struct chooser *c, enum action action)
{
    const long page = c->height > 1 ? (long)c->height - 1 : 1;
    switch (action) {
    case ACT_UP: case ACT_ROW_UP: case ACT_OLDER: move(c, -1); return true;
    case ACT_DOWN: case ACT_ROW_DOWN: case ACT_NEWER: move(c, 1); return true;
    case ACT_PAGE_UP: move(c, -page); return true;
    case ACT_PAGE_DOWN: move(c, page); return true;
    case ACT_HOME: case ACT_TOP: move(c, -(long)(c->n + c->n_hits)); return true;
    case ACT_END: case ACT_BOTTOM: move(c, (long)(c->n + c->n_hits)); return true;
    default: return false;
    }
}

/* Asks about the session under the cursor. */
static void begin(struct chooser *c, enum chooser_mode mode)
{
    if (c->mode != CHOOSER_LIST || !chooser_name(c))
        return;
    c->mode = mode;
    snprintf(c->input, sizeof c->input, "%s", chooser_name(c));
}

enum chooser_wish chooser_key(struct chooser *c, enum action action, uint32_t key)
{
    if (c->mode == CHOOSER_DELETE)
        return delete_key(c, key);
    if (c->mode == CHOOSER_RENAME)
        return rename_key(c, action, key);
    if (moves(c, action))
        return CHOOSER_NOTHING;
    if (types(action, key) || action == ACT_BACKSPACE) {
        type(c->filter, sizeof c->filter, action == ACT_BACKSPACE ? 0 : key);
        apply_filter(c);
        return CHOOSER_NOTHING;
    }
    switch (action) {
    case ACT_SEND: return chooser_name(c) ? CHOOSER_OPEN : CHOOSER_NOTHING;
    case ACT_DELETE: begin(c, CHOOSER_DELETE); break;
    case ACT_PRESET: begin(c, CHOOSER_RENAME); break;
    case ACT_COMPLETE:
        if (c->mode == CHOOSER_LIST && c->filter[0])
            chooser_search(c, c->filter);
        else
            apply_filter(c);
        break;
    case ACT_NONE: break;
    default:
        if (c->mode == CHOOSER_HITS)
            apply_filter(c); /* back to the list first */
        else
            c->open = false;
    }
    return CHOOSER_NOTHING;
}
