/* test_ui_panes.c - layout, panes, status line, graphs and figures, drawn into a grid. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ui/editor.h"
#include "../ui/format.h"
#include "../ui/graph.h"
#include "../ui/grid.h"
#include "../ui/layout.h"
#include "../ui/pane.h"
#include "../ui/status.h"

static void claim(char *map, const struct layout_in *in, const struct rect *r, char who)
{
    if (r->rows == 0 || r->cols == 0)
        return;
    assert_true(r->row >= 0 && r->col >= 0 && r->rows > 0 && r->cols > 0);
    assert_true(r->row + r->rows <= in->rows && r->col + r->cols <= in->cols);
    for (int y = r->row; y < r->row + r->rows; y++)
        for (int x = r->col; x < r->col + r->cols; x++) {
            char *c = &map[y * in->cols + x];
            assert_int_equal(*c, 0);
            *c = who;
        }
}

static void check_layout(const struct layout_in *in, char *map)
{
    struct layout l;
    layout_compute(in, &l);
    assert_int_equal(l.too_small, in->rows < LAYOUT_MIN_ROWS || in->cols < LAYOUT_MIN_COLS);
    if (l.too_small)
        return;
    memset(map, 0, (size_t)(in->rows * in->cols));
    claim(map, in, &l.title, 't');
    claim(map, in, &l.status, 's');
    claim(map, in, &l.transcript, 'c');
    claim(map, in, &l.editor_title, 'm');
    claim(map, in, &l.editor, 'e');
    claim(map, in, &l.rule, 'r');
    assert_true(l.transcript.rows >= 3 && l.transcript.cols >= 40);
    assert_true(l.editor.rows >= 1 && l.editor.cols == l.transcript.cols);
    assert_true(l.n_shown <= in->n_panes);
    for (size_t i = 0; i < l.n_shown; i++) {
        claim(map, in, &l.panes[i], 'p');
        assert_true(l.panes[i].rows >= in->panes[i].min_rows);
        assert_true(l.panes[i].rows <= in->panes[i].max_rows);
        assert_true(l.panes[i].cols >= in->panes[i].min_cols);
    }
}

static void test_layouts(void **state)
{
    (void)state;
    char *map = malloc(100 * 300);
    assert_non_null(map);
    struct layout_in in = {.n_panes = n_panes};
    for (size_t i = 0; i < n_panes; i++)
        in.panes[i] = panes[i].need;
    for (in.rows = 1; in.rows <= 100; in.rows++)
        for (in.cols = 1; in.cols <= 300; in.cols += in.cols < 130 ? 1 : 7) {
            in.preset = (enum layout_preset)((in.rows + in.cols) % LAYOUT_PRESETS);
            in.editor_rows = 1 + in.cols % 30;
            check_layout(&in, map);
        }
    free(map);
}

static void test_layout_promises(void **state)
{
    (void)state;
    struct layout l;
    struct layout_in in = {.rows = 24, .cols = 80, .editor_rows = 1, .n_panes = n_panes};
    for (size_t i = 0; i < n_panes; i++)
        in.panes[i] = panes[i].need;
    layout_compute(&in, &l);
    assert_int_equal(l.n_shown, n_panes); /* everything at 80x24 */
    in.rows = 12;
    in.cols = 40;
    layout_compute(&in, &l);
    assert_int_equal(l.n_shown, 0);
    assert_int_equal(l.transcript.rows, 8);
    in.rows = 16;
    in.cols = 80;
    layout_compute(&in, &l);
    assert_true(l.n_shown >= 3); /* the last ones go first */
    in.preset = LAYOUT_CHAT;
    layout_compute(&in, &l);
    assert_int_equal(l.n_shown, 0);
    assert_int_equal(l.transcript.cols, 80);
}

/* Every pane, at every size it may get, with and without figures, stays inside. */
static void draw_pane_at(const struct ui_model *m, const struct pane *p, int rows, int cols)
{
    struct grid g = {0};
    assert_true(grid_resize(&g, rows + 2, cols + 2));
    const struct rect r = {1, 1, rows, cols};
    p->draw(m, &g, &r);
    for (int y = 0; y < g.rows; y++)
        for (int x = 0; x < g.cols; x++)
            if (y == 0 || x == 0 || y == g.rows - 1 || x == g.cols - 1)
                assert_int_equal(grid_at(&g, y, x)->cp, ' ');
    grid_free(&g);
}

static void fill_model(struct ui_model *m)
{
    m->graph = UI_GRAPH_BRAILLE;
    m->st.plan = (struct k3_plan){.budget = 8000000000, .total = 7900000000, .experts = 4900000000,
                                  .residents = 1500000000, .ring = 200000000, .layers = 93};
    m->st.rss = 7600000000;
    m->st.peak_rss = 7700000000;
    m->st.metrics.running = true;
    m->st.metrics.layers = 93;
    m->st.metrics.layer = 61;
    m->st.last_step_seconds = 24.1;
    m->st.mean_step_seconds = 23.7;
    m->st.p95_step_seconds = 25.9;
    for (int i = 0; i < 100; i++)
        history_add(&m->steps, &(struct step_stats){1, 20 + i % 7, 15, 3, 17, 98000000000,
                                                    39000000000, 1472, (uint64_t)i * 10, 400, 72});
    m->n_layers = 93;
    m->layers = calloc(93, sizeof *m->layers);
    assert_non_null(m->layers);
    for (size_t i = 1; i < 93; i++)
        m->layers[i] = (struct layer_heat){true, {100, i, 12, 11}, 100, (double)i};
}

static void test_panes(void **state)
{
    (void)state;
    static struct ui_model m;
    for (int filled = 0; filled < 2; filled++) {
        model_init(&m);
        if (filled)
            fill_model(&m);
        for (size_t i = 0; i < n_panes; i++)
            for (int rows = panes[i].need.min_rows - 1; rows < panes[i].need.max_rows; rows++)
                for (int cols = panes[i].need.min_cols - 2; cols < 120; cols += 7)
                    draw_pane_at(&m, &panes[i], rows, cols);
        model_free(&m);
    }
    assert_null(pane_find("nonsense"));
    assert_ptr_equal(pane_find("hits"), &panes[2]);
}

static void expect_in_memory_pane(const struct ui_model *m, int row, const char *expected)
{
    struct grid g = {0};
    char b[512];
    assert_true(grid_resize(&g, 8, 40));
    const struct rect all = grid_all(&g);
    pane_find("memory")->draw(m, &g, &all);
    grid_row_text(&g, row, b, sizeof b);
    assert_string_equal(b, expected);
    grid_free(&g);
}

/* Three figures, and none of them counts what another one counts as something else. */
static void test_memory_pane(void **state)
{
    (void)state;
    static struct ui_model m;
    model_init(&m);
    fill_model(&m);
    m.st.rss_anon = 7500000000;
    m.st.metrics.expert_bytes_resident = 4700000000;
    m.st.page_cache = 12300000000;
    expect_in_memory_pane(&m, 0, "anon 7.5 of 8.0 GB  peak 7.7 GB");
    m.st.rss_anon = 950000000;
    expect_in_memory_pane(&m, 0, "anon 950 MB of 8.0 GB  peak 7.7 GB");
    m.st.rss_anon = 7500000000;
    expect_in_memory_pane(&m, 2, "expert cache 4.7 of 4.9 GB");
    expect_in_memory_pane(&m, 3, "page cache 12.3 GB (not ours)");
    expect_in_memory_pane(&m, 4, "trunk        1.5 GB  ring         200 MB");
    m.st.rss_anon = 0; /* an old kernel */
    m.st.page_cache = 0;
    expect_in_memory_pane(&m, 0, "anon 7.6 of 8.0 GB  peak 7.7 GB");
    expect_in_memory_pane(&m, 3, "trunk        1.5 GB  ring         200 MB");
    model_free(&m);
}

static void status_at(const struct ui_model *m, int cols, char *out, size_t size)
{
    struct grid g = {0};
    assert_true(grid_resize(&g, 1, cols));
    const struct rect r = grid_all(&g);
    status_draw(m, &g, &r);
    grid_row_text(&g, 0, out, size);
    grid_free(&g);
}

static void test_status_line(void **state)
{
    (void)state;
    static struct ui_model m;
    char b[512];
    model_init(&m);
    fill_model(&m);
    m.st.phase = PHASE_ANSWERING;
    m.st.answer_tokens = 37;
    status_at(&m, 120, b, sizeof b);
    assert_string_equal(b, " answering \xe2\x94\x82 37 tok \xe2\x94\x82 24.1 s/tok"
                           " \xe2\x94\x82 layer 61/93"
                           " \xe2\x94\x82 disk 86 % \xe2\x94\x82 hit 67 % \xe2\x94\x82 7.6/8.0 GB"
                           " \xe2\x94\x82 ~40 min per 100 tok");
    m.st.context = 8192;
    m.st.position = 1234;
    status_at(&m, 120, b, sizeof b); /* the context, and the pace where there is more room */
    assert_non_null(strstr(b, "7.6/8.0 GB \xe2\x94\x82 ctx 1234/8192"));
    assert_null(strstr(b, "per 100 tok"));
    status_at(&m, 121, b, sizeof b);
    assert_non_null(strstr(b, "7.6/8.0 GB \xe2\x94\x82 ctx 1234/8192 \xe2\x94\x82 ~40 min per 100 tok"));
    m.st.rss_anon = 7500000000; /* is what the budget is compared with, when it is known */
    status_at(&m, 121, b, sizeof b);
    assert_non_null(strstr(b, "7.5/8.0 GB"));
    status_at(&m, 40, b, sizeof b);
    assert_string_equal(b, " answering \xe2\x94\x82 37 tok \xe2\x94\x82 24.1 s/tok");
    m.st.phase = PHASE_READING;
    m.st.prompt_done = 120;
    m.st.prompt_total = 412;
    m.st.prompt_eta_s = 2040;
    status_at(&m, 140, b, sizeof b);
    assert_non_null(strstr(b, "ctx 1234/8192"));
    status_at(&m, 50, b, sizeof b);
    assert_string_equal(b, " reading prompt \xe2\x94\x82 120/412 tok 29 % \xe2\x94\x82 ETA 34 min");
    m.st.phase = PHASE_FAILED;
    snprintf(m.st.detail, sizeof m.st.detail, "config.json: no field num_experts, which is needed");
    status_at(&m, 40, b, sizeof b);
    assert_string_equal(b, " failed: config.json: no field num_exp\xe2\x80\xa6");
    for (int cols = 1; cols < 200; cols++)
        status_at(&m, cols, b, sizeof b);
    model_free(&m);
}

static void test_graphs(void **state)
{
    (void)state;
    assert_int_equal(graph_cell(0, 0, UI_GRAPH_BRAILLE), ' ');
    assert_int_equal(graph_cell(1, 4, UI_GRAPH_BRAILLE), 0x2800 + 0x40 + 0xB8);
    assert_int_equal(graph_cell(9, 9, UI_GRAPH_BRAILLE), 0x28FF);
    assert_int_equal(graph_cell(8, 0, UI_GRAPH_BLOCK), 0x2588);
    assert_int_equal(graph_cell(1, 0, UI_GRAPH_BLOCK), 0x2581);
    assert_int_equal(graph_cell(3, 0, UI_GRAPH_ASCII), '|');
    assert_int_equal(graph_choose(UI_GRAPH_AUTO, true, "xterm"), UI_GRAPH_BRAILLE);
    assert_int_equal(graph_choose(UI_GRAPH_AUTO, true, "linux"), UI_GRAPH_BLOCK);
    assert_int_equal(graph_choose(UI_GRAPH_BRAILLE, false, "xterm"), UI_GRAPH_ASCII);

    struct grid g = {0};
    char row[64];
    assert_true(grid_resize(&g, 2, 6));
    const struct rect r = grid_all(&g);
    const double samples[] = {-1, 0, 0.5, 1}; /* unknown, zero, half, all */
    graph_draw(&g, &r, INK_GRAPH, UI_GRAPH_ASCII, samples, 4, 1);
    grid_row_text(&g, 0, row, sizeof row);
    assert_string_equal(row, "     |");
    grid_row_text(&g, 1, row, sizeof row);
    assert_string_equal(row, "   .||");
    graph_bar(&g, &r, 0, 0, 6, UI_GRAPH_ASCII, 0.5, INK_GRAPH, 0.25, INK_GRAPH2);
    grid_row_text(&g, 0, row, sizeof row);
    assert_string_equal(row, "###==."); /* the bars belong to the graphs */
    grid_free(&g);
    assert_float_equal(graph_nice_max(24.1), 50, 1e-9);
    assert_float_equal(graph_nice_max(20), 20, 1e-9);
    assert_float_equal(graph_nice_max(0.013), 0.02, 1e-9);
    assert_true(graph_nice_max(0) > 0);
}

static void test_figures(void **state)
{
    (void)state;
    char b[32];
    assert_string_equal(fmt_seconds(b, 32, 0.085), "85 ms");
    assert_string_equal(fmt_seconds(b, 32, 0.9996), "1.00 s");
    assert_string_equal(fmt_seconds(b, 32, 24.12), "24.1 s");
    assert_string_equal(fmt_seconds(b, 32, 130), "130 s");
    assert_string_equal(fmt_seconds(b, 32, -1), "-");
    assert_string_equal(fmt_seconds(b, 32, 0.0 / 0.0), "-");
    assert_string_equal(fmt_about(b, 32, 0.28), "0.3 s");
    assert_string_equal(fmt_about(b, 32, 0.97), "1 s");
    assert_string_equal(fmt_about(b, 32, 2280), "38 min");
    assert_string_equal(fmt_about(b, 32, 8280), "2.3 h");
    assert_string_equal(fmt_about(b, 32, 268000), "3.1 d");
    assert_string_equal(fmt_clock(b, 32, 1450), "24:10");
    assert_string_equal(fmt_clock(b, 32, 3723), "1:02:03");
    assert_string_equal(fmt_bytes(b, 32, 7.6e9), "7.6 GB");
    assert_string_equal(fmt_bytes(b, 32, 137.2e9), "137 GB");
    assert_string_equal(fmt_bytes(b, 32, 999.6e6), "1.0 GB");
    assert_string_equal(fmt_bytes(b, 32, 0), "0 B");
    assert_string_equal(fmt_size(b, 32, 8e9), "8 GB");
    assert_string_equal(fmt_rate(b, 32, 5.7e9), "5.7 GB/s");
    assert_string_equal(fmt_percent(b, 32, 0.182), "18 %");
    assert_string_equal(fmt_percent1(b, 32, 0.182), "18.2 %");
    assert_string_equal(fmt_percent(b, 32, -1), "-");
    assert_string_equal(fmt_count(b, 32, 12345), "12.3k");
    assert_string_equal(fmt_when(b, 32, 0, 1000), "");
}

static void test_step_shares(void **state)
{
    (void)state;
    static struct history h;
    struct step_stats sum;
    double v[4];
    const struct step_stats s = {1, 10, 5, 2, 8, 0, 0, 100, 18, 61, 21};
    assert_null(history_back(&h, 0));
    assert_float_equal(step_hit_rate(&(struct step_stats){0}), -1, 0);
    history_add(&h, &s);
    assert_float_equal(step_hit_rate(&s), 0.18, 1e-12);
    assert_float_equal(step_raw_hit_rate(&s), 1, 1e-12);
    assert_float_equal(step_wait(&s), 0.7, 1e-12);
    assert_int_equal(history_sum(&h, 16, &sum), 1);
    assert_int_equal(sum.resident, 18);
    history_series(&h, step_seconds_of, v, 4);
    assert_float_equal(v[3], 10, 0);
    assert_float_equal(v[2], -1, 0);
    for (int i = 0; i < 3 * HISTORY_STEPS; i++)
        history_add(&h, &s);
    assert_int_equal(history_sum(&h, SIZE_MAX, &sum), HISTORY_STEPS);
}

int main(void)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        setlocale(LC_CTYPE, "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_layout_promises),
        cmocka_unit_test(test_panes),
        cmocka_unit_test(test_memory_pane),
        cmocka_unit_test(test_status_line),
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_step_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
