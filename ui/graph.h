/* graph.h - little graphs of characters: braille, blocks or ASCII. */
#ifndef K3CHAT_UI_GRAPH_H
#define K3CHAT_UI_GRAPH_H

#include "../src/run_config.h"
#include "grid.h"

/* What `asked` means on this terminal: never UI_GRAPH_AUTO, never more than it can show. */
enum ui_graph graph_choose(enum ui_graph asked, bool utf8, const char *term);

int graph_samples_per_cell(enum ui_graph set); /* 2 with braille, else 1 */
int graph_levels(enum ui_graph set);           /* steps a cell is high: 4, 8 or 3 */
/* The character for two columns of 0..levels steps (one, if samples_per_cell is 1: left). */
uint32_t graph_cell(int left, int right, enum ui_graph set);

/* Draws samples, newest at the right edge of r; 0..max over the height of r. Zero is drawn as the
 * lowest step, so that time is seen to pass; negative is unknown and stays blank. */
void graph_draw(struct grid *g, const struct rect *r, enum ink ink, enum ui_graph set,
                const double *samples, size_t n, double max);
size_t graph_capacity(const struct rect *r, enum ui_graph set); /* samples that r shows */

/* The least of 1, 2, 5, 10, 20, ... that is not below v, so that a scale seldom changes. */
double graph_nice_max(double v);

/* A bar of cols columns: first, then second share in 0..1 of the whole. */
void graph_bar(struct grid *g, const struct rect *r, int row, int col, int cols, enum ui_graph set,
               double first, enum ink ink, double second, enum ink ink2);

#endif
