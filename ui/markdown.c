/* markdown.c - Markdown as styled text, parsed by cmark (see markdown.h). */
#include <config.h>

#include "markdown.h"

#include <cmark.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define MAX_BYTES (1u << 20) /* longer texts are shown as their source */
#define MAX_DEPTH 12         /* nesting of quotes and lists that is still shown as such */
#define MAX_INDENT 24

struct painter {
    struct rich *r;
    const char *src;
    size_t len;
    int indent;          /* columns; always even */
    uint16_t bars;
    char marker[16];     /* of a list item, before its first line */
    int marker_cols;
    bool any;            /* something was painted in this container: a blank line goes between */
    bool tight;
    int depth;
};

static void paint_children(struct painter *p, cmark_node *node);

/* ---- lines ------------------------------------------------------------------------------- */

static void begin_line(struct painter *p)
{
    if (p->marker_cols > 0)
        rich_puts(p->r, INK_LABEL, p->marker);
}

static void end_line(struct painter *p, bool verbatim)
{
    const int lead = p->indent - p->marker_cols;
    rich_end_line(p->r, (struct rich_style){.indent = (uint8_t)(lead > 0 ? lead : 0),
                                            .hang = (uint8_t)p->indent,
                                            .bars = p->bars,
                                            .verbatim = verbatim});
    p->marker_cols = 0;
    p->any = true;
}

static void begin_block(struct painter *p)
{
    if (!p->any || p->tight)
        return;
    const int marker = p->marker_cols;
    p->marker_cols = 0;
    end_line(p, false);
    p->marker_cols = marker;
}

/* A marker whose item does not begin with text stands alone. */
static void flush_marker(struct painter *p)
{
    if (p->marker_cols == 0)
        return;
    begin_line(p);
    end_line(p, false);
    p->any = false;
}

/* ---- inlines ----------------------------------------------------------------------------- */

struct inlines {
    int strong, emph, link;
    enum ink base;
};

static enum ink inline_ink(const struct inlines *in)
{
    return in->link > 0 ? INK_LINK : in->strong > 0 ? INK_STRONG : in->emph > 0 ? INK_EMPH
                                                                               : in->base;
}

static const char *str(const char *s)
{
    return s ? s : "";
}

/* A link's target stands behind it, unless it is what was shown. */
static void end_link(struct painter *p, cmark_node *node, bool image)
{
    const char *url = str(cmark_node_get_url(node));
    cmark_node *first = cmark_node_first_child(node);
    if (image)
        rich_puts(p->r, INK_DIM, "]");
    if (*url == '\0' || (first && strcmp(str(cmark_node_get_literal(first)), url) == 0))
        return;
    rich_puts(p->r, INK_DIM, " (");
    rich_puts(p->r, INK_DIM, url);
    rich_puts(p->r, INK_DIM, ")");
}

static void enter_inline(struct painter *p, cmark_node *node, struct inlines *in, int step)
{
    switch (cmark_node_get_type(node)) {
    case CMARK_NODE_STRONG: in->strong += step; break;
    case CMARK_NODE_EMPH: in->emph += step; break;
    case CMARK_NODE_LINK:
        in->link += step;
        if (step < 0)
            end_link(p, node, false);
        break;
    case CMARK_NODE_IMAGE:
        if (step > 0)
            rich_puts(p->r, INK_DIM, "[image: ");
        else
            end_link(p, node, true);
        break;
    case CMARK_NODE_TEXT:
        rich_puts(p->r, inline_ink(in), str(cmark_node_get_literal(node)));
        break;
    case CMARK_NODE_CODE:
    case CMARK_NODE_HTML_INLINE:
        rich_puts(p->r, INK_CODE, str(cmark_node_get_literal(node)));
        break;
    case CMARK_NODE_SOFTBREAK: rich_puts(p->r, in->base, " "); break;
    case CMARK_NODE_LINEBREAK:
        end_line(p, false);
        begin_line(p);
        break;
    default: break;
    }
}

static void paint_inlines(struct painter *p, cmark_node *block, enum ink base)
{
    struct inlines in = {.base = base};
    cmark_iter *it = cmark_iter_new(block); /* cmark ends the program when memory is out */
    cmark_event_type ev;
    begin_block(p);
    begin_line(p);
    while ((ev = cmark_iter_next(it)) != CMARK_EVENT_DONE) {
        cmark_node *node = cmark_iter_get_node(it);
        if (node != block)
            enter_inline(p, node, &in, ev == CMARK_EVENT_ENTER ? 1 : -1);
    }
    cmark_iter_free(it);
    end_line(p, false);
}

/* ---- tables ------------------------------------------------------------------------------ */

/* The source from the start of line `first` to the end of line `last`, counted from 1. */
static const char *source_lines(const struct painter *p, int first, int last, size_t *n)
{
    const char *s = p->src, *end = p->src + p->len;
    for (int line = 1; line < first && s < end; line++) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        s = nl ? nl + 1 : end;
    }
    const char *e = s;
    for (int line = first; line <= last && e < end; line++) {
        const char *nl = memchr(e, '\n', (size_t)(end - e));
        e = nl ? nl + 1 : end;
    }
    *n = (size_t)(e - s);
    return s;
}

/* Two lines with bars, the second of which is the rule of a table. */
static bool is_table(const char *s, size_t n)
{
    const char *second = memchr(s, '\n', n);
    if (!second || !memchr(s, '|', (size_t)(second - s)))
        return false;
    bool dash = false;
    for (second++; second < s + n && *second != '\n'; second++) {
        if (!strchr(" \t|:-\r", *second))
            return false;
        dash |= *second == '-';
    }
    return dash;
}

static void paint_lines(struct painter *p, enum ink ink, const char *s, size_t n)
{
    begin_block(p);
    while (n > 0) {
        const char *nl = memchr(s, '\n', n);
        const size_t k = nl ? (size_t)(nl - s) : n;
        begin_line(p);
        rich_add(p->r, ink, s, k > 0 && s[k - 1] == '\r' ? k - 1 : k);
        end_line(p, true);
        s += nl ? k + 1 : k;
        n -= nl ? k + 1 : k;
    }
}

static void paint_paragraph(struct painter *p, cmark_node *node)
{
    size_t n = 0;
    const char *s = source_lines(p, cmark_node_get_start_line(node), cmark_node_get_end_line(node),
                                 &n);
    if (is_table(s, n))
        paint_lines(p, INK_TEXT, s, n);
    else
        paint_inlines(p, node, INK_TEXT);
}

/* ---- blocks ------------------------------------------------------------------------------ */

static void paint_code(struct painter *p, cmark_node *node)
{
    const char *code = str(cmark_node_get_literal(node));
    const char *info = str(cmark_node_get_fence_info(node));
    flush_marker(p);
    begin_block(p);
    const bool tight = p->tight;
    const int indent = p->indent;
    p->indent = indent < MAX_INDENT ? indent + 2 : indent;
    p->tight = true;
    if (*info) {
        rich_puts(p->r, INK_DIM, info);
        end_line(p, false);
    }
    paint_lines(p, INK_CODE, code, strlen(code));
    p->indent = indent;
    p->tight = tight;
}

static void paint_rule(struct painter *p)
{
    char b[4];
    begin_block(p);
    begin_line(p);
    for (int i = 0; i < 16; i++)
        rich_add(p->r, INK_RULE, b, text_encode(symbol(SYM_HLINE), b));
    end_line(p, false);
}

/* Paints the content of a quote or an item, moved in by `cols`. */
static void paint_inner(struct painter *p, cmark_node *node, int cols, bool tight)
{
    struct painter in = *p;
    if (in.indent + cols <= MAX_INDENT)
        in.indent += cols;
    in.depth++;
    in.tight = tight;
    in.any = false;
    paint_children(&in, node);
    flush_marker(&in);
    p->any = true;
    p->marker_cols = 0;
}

static void paint_quote(struct painter *p, cmark_node *node)
{
    flush_marker(p);
    begin_block(p);
    const uint16_t bars = p->bars;
    if (p->indent / 2 < 16)
        p->bars |= (uint16_t)(1u << p->indent / 2);
    paint_inner(p, node, 2, false);
    p->bars = bars;
}

static void paint_list(struct painter *p, cmark_node *list)
{
    const bool ordered = cmark_node_get_list_type(list) == CMARK_ORDERED_LIST;
    const bool tight = cmark_node_get_list_tight(list);
    int number = cmark_node_get_list_start(list);
    flush_marker(p);
    begin_block(p);
    bool first = true;
    for (cmark_node *item = cmark_node_first_child(list); item; item = cmark_node_next(item)) {
        if (!first && !tight)
            begin_block(p);
        first = false;
        if (ordered) {
            snprintf(p->marker, sizeof p->marker, "%d. ", number++ % 1000000);
            if (strlen(p->marker) % 2)
                strcat(p->marker, " ");
            p->marker_cols = (int)strlen(p->marker);
        } else {
            p->marker[text_encode(symbol(SYM_BULLET), p->marker)] = '\0';
            strcat(p->marker, " ");
            p->marker_cols = 2;
        }
        paint_inner(p, item, p->marker_cols, tight);
    }
}

/* What is nested too deeply to be shown as such: its words. */
static void paint_flat(struct painter *p, cmark_node *node)
{
    cmark_iter *it = cmark_iter_new(node);
    begin_line(p);
    while (cmark_iter_next(it) != CMARK_EVENT_DONE) {
        const char *s = cmark_node_get_literal(cmark_iter_get_node(it));
        if (s && cmark_iter_get_event_type(it) == CMARK_EVENT_ENTER) {
            rich_puts(p->r, INK_TEXT, s);
            rich_puts(p->r, INK_TEXT, " ");
        }
    }
    cmark_iter_free(it);
    end_line(p, false);
}

static void paint_block(struct painter *p, cmark_node *node)
{
    const char *s;
    switch (cmark_node_get_type(node)) {
    case CMARK_NODE_PARAGRAPH: paint_paragraph(p, node); break;
    case CMARK_NODE_HEADING: paint_inlines(p, node, INK_HEADING); break;
    case CMARK_NODE_CODE_BLOCK: paint_code(p, node); break;
    case CMARK_NODE_HTML_BLOCK:
        s = str(cmark_node_get_literal(node));
        paint_lines(p, INK_CODE, s, strlen(s));
        break;
    case CMARK_NODE_THEMATIC_BREAK: paint_rule(p); break;
    case CMARK_NODE_BLOCK_QUOTE: paint_quote(p, node); break;
    case CMARK_NODE_LIST: paint_list(p, node); break;
    default: paint_flat(p, node);
    }
}

static void paint_children(struct painter *p, cmark_node *node)
{
    if (p->depth > MAX_DEPTH) {
        paint_flat(p, node);
        return;
    }
    for (cmark_node *c = cmark_node_first_child(node); c; c = cmark_node_next(c))
        paint_block(p, c);
}

void markdown_add(struct rich *r, const char *s, size_t len)
{
    if (len == 0)
        return;
    cmark_node *doc = len <= MAX_BYTES ? cmark_parse_document(s, len, CMARK_OPT_DEFAULT) : NULL;
    if (!doc) {
        rich_add_lines(r, INK_TEXT, (struct rich_style){0}, s, len);
        return;
    }
    struct painter p = {.r = r, .src = s, .len = len};
    paint_children(&p, doc);
    cmark_node_free(doc);
}

char *markdown_code(const char *s, size_t len, size_t n, size_t *code_len)
{
    if (len == 0)
        return NULL;
    cmark_node *doc = cmark_parse_document(s, len, CMARK_OPT_DEFAULT);
    if (!doc)
        return NULL;
    cmark_iter *it = cmark_iter_new(doc);
    char *found = NULL;
    size_t seen = 0;
    while (cmark_iter_next(it) != CMARK_EVENT_DONE) {
        cmark_node *node = cmark_iter_get_node(it);
        if (cmark_node_get_type(node) != CMARK_NODE_CODE_BLOCK || (++seen != n && n != 0))
            continue;
        free(found);
        found = strdup(str(cmark_node_get_literal(node)));
        *code_len = found ? strlen(found) : 0;
    }
    cmark_iter_free(it);
    cmark_node_free(doc);
    return found;
}
