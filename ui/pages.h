/* pages.h - texts over the whole window: help, the profile and its plan, figures. */
#ifndef K3CHAT_UI_PAGES_H
#define K3CHAT_UI_PAGES_H

#include "app.h"

struct page {
    const char *title;
    void (*build)(const struct app *a, struct rich *r);
};

extern const struct page page_help, page_plan, page_figures, page_branches;

#endif
