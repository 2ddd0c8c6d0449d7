/* markdown.h - Markdown as styled text. The source stays what is kept and copied; this is only how
 * it looks. */
#ifndef K3CHAT_UI_MARKDOWN_H
#define K3CHAT_UI_MARKDOWN_H

#include "rich.h"

/* Adds the picture of s, which may be cut off anywhere (an answer under way). Very long texts are
 * added as they are. */
void markdown_add(struct rich *r, const char *s, size_t len);

/* The n-th fenced or indented code block (from 1; 0 = the last one), malloc'ed; NULL = none. */
char *markdown_code(const char *s, size_t len, size_t n, size_t *code_len);

#endif
