/* theme.c - inks to attributes and colours (see theme.h). */
#include <config.h>

#include "theme.h"

#include <curses.h>
#include <stdlib.h>

struct look {
    short c256, c8; /* foreground; -1 = the terminal's own */
    attr_t attr;
    attr_t mono;    /* instead of attr where there is no colour */
};

/* Colours that can be read on a dark and on a light background alike: accents only, the text
 * itself keeps the terminal's own colours. */
static const struct look looks[N_INKS] = {
    [INK_TEXT] = {-1, -1, A_NORMAL, A_NORMAL},
    [INK_DIM] = {244, -1, A_NORMAL, A_DIM},
    [INK_RULE] = {244, -1, A_NORMAL, A_DIM},
    [INK_TITLE] = {-1, -1, A_BOLD, A_BOLD},
    [INK_USER] = {31, COLOR_CYAN, A_BOLD, A_BOLD},
    [INK_MODEL] = {71, COLOR_GREEN, A_BOLD, A_BOLD},
    [INK_THINK] = {244, -1, A_NORMAL, A_DIM},
    [INK_STRONG] = {-1, -1, A_BOLD, A_BOLD},
    [INK_EMPH] = {-1, -1, A_ITALIC, A_UNDERLINE},
    [INK_HEADING] = {31, COLOR_CYAN, A_BOLD, A_BOLD},
    [INK_CODE] = {136, COLOR_YELLOW, A_NORMAL, A_NORMAL},
    [INK_LINK] = {31, COLOR_CYAN, A_UNDERLINE, A_UNDERLINE},
    [INK_LABEL] = {244, -1, A_NORMAL, A_NORMAL},
    [INK_VALUE] = {-1, -1, A_BOLD, A_BOLD},
    [INK_GOOD] = {71, COLOR_GREEN, A_NORMAL, A_NORMAL},
    [INK_WARN] = {172, COLOR_YELLOW, A_BOLD, A_BOLD},
    [INK_BAD] = {160, COLOR_RED, A_BOLD, A_BOLD | A_UNDERLINE},
    [INK_GRAPH] = {31, COLOR_CYAN, A_NORMAL, A_NORMAL},
    [INK_GRAPH2] = {172, COLOR_YELLOW, A_NORMAL, A_NORMAL},
    [INK_STATUS] = {-1, -1, A_NORMAL, A_NORMAL},
    [INK_KEY] = {31, COLOR_CYAN, A_NORMAL, A_BOLD},
    [INK_CONTROL] = {172, COLOR_YELLOW, A_NORMAL, A_UNDERLINE},
    [INK_MATCH] = {-1, -1, A_REVERSE, A_REVERSE},
};

static bool coloured;

void theme_init(enum ui_theme theme)
{
    const char *no_color = getenv("NO_COLOR");
    coloured = false;
    if (theme == UI_THEME_MONO || (no_color && *no_color) || !has_colors())
        return;
    if (start_color() != OK || use_default_colors() != OK || COLORS < 8 || COLOR_PAIRS <= N_INKS)
        return;
    for (short i = 0; i < N_INKS; i++)
        if (init_pair((short)(i + 1), COLORS >= 256 ? looks[i].c256 : looks[i].c8, -1) != OK)
            return;
    coloured = true;
}

unsigned long theme_attr(enum ink ink)
{
    return coloured ? looks[ink].attr : looks[ink].mono;
}

short theme_pair(enum ink ink)
{
    return coloured ? (short)(ink + 1) : 0;
}
