/* test_ui_text.c - widths, clusters and wrapping of text. */
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

#include "../ui/grid.h"
#include "../ui/rich.h"
#include "../ui/text.h"
#include "ui_random.h"

static unsigned width(const char *s)
{
    return text_width(s, strlen(s));
}

static void test_widths(void **state)
{
    (void)state;
    assert_int_equal(width(""), 0);
    assert_int_equal(width("abc"), 3);
    assert_int_equal(width("\xe6\x97\xa5\xe6\x9c\xac"), 4);       /* two kanji */
    assert_int_equal(width("\xf0\x9f\x99\x82"), 2);               /* a face */
    assert_int_equal(width("e\xcc\x81"), 1);                      /* e with a combining accent */
    assert_int_equal(width("\x1b[31m"), 6);                       /* ^[ and what follows */
    assert_int_equal(width("\xff\xfe"), 2);                       /* two wrong bytes */
    assert_int_equal(width("a\tb"), 5);
    assert_int_equal(width("\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7"), 4); /* joined: apart */
    assert_int_equal(width("\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd"), 2); /* skin tone left out */
    assert_int_equal(width("\xe2\x80\xae"), 1); /* right-to-left override: shown */
}

static void test_clusters(void **state)
{
    (void)state;
    const char *s = "ae\xcc\x81\xe6\x97\xa5\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7z";
    const size_t len = strlen(s), stops[] = {0, 1, 4, 7, 18, 19};
    for (size_t i = 0; i + 1 < 6; i++) {
        assert_int_equal(text_next(s, len, stops[i]), stops[i + 1]);
        assert_int_equal(text_prev(s, len, stops[i + 1]), stops[i]);
    }
    assert_int_equal(text_next(s, len, len), len);
    assert_int_equal(text_prev(s, len, 0), 0);
    assert_int_equal(text_fit(s, len, 3), 4);
    assert_int_equal(text_fit(s, len, 4), 7);
}

/* Whatever the bytes: glyphs cover them all, and nothing of a picture could command a terminal. */
static void test_garbage_is_safe(void **state)
{
    (void)state;
    unsigned seed = 1;
    struct grid g = {0};
    assert_true(grid_resize(&g, 4, 40));
    const struct rect r = {1, 5, 2, 30};
    for (int round = 0; round < 3000; round++) {
        char s[64];
        const size_t len = next_random(&seed) % sizeof s;
        for (size_t i = 0; i < len; i++)
            s[i] = (char)(next_random(&seed) % 3 ? next_random(&seed) : next_random(&seed) % 128);
        size_t at = 0;
        struct glyph gl;
        while (glyph_next(s + at, len - at, &gl)) {
            assert_true(gl.bytes > 0 && at + gl.bytes <= len && gl.cols <= TEXT_MAX_COLS);
            at += gl.bytes;
            assert_int_equal(text_prev(s, len, at), at - gl.bytes);
        }
        assert_int_equal(at, len);
        grid_clear(&g);
        assert_true(grid_put(&g, &r, 0, (int)(next_random(&seed) % 30), INK_TEXT, s, len) <= 30);
        for (int y = 0; y < 4; y++)
            for (int x = 0; x < 40; x++) {
                const struct cell *c = grid_at(&g, y, x);
                const bool inside = y == 1 && x >= 5 && x < 35;
                assert_true(inside || (c->cp == ' ' && c->marks[0] == 0));
                assert_true(c->cols == 0 || (c->cp >= 0x20 && (c->cp < 0x7F || c->cp >= 0xA0)));
                assert_true(c->cols != 2 || grid_at(&g, y, x + 1)->cols == 0);
                assert_true(c->cols != 0 || (x > 0 && grid_at(&g, y, x - 1)->cols == 2));
            }
    }
    grid_free(&g);
}

/* Drawing over half of a wide character takes the other half away. */
static void test_halves(void **state)
{
    (void)state;
    struct grid g = {0};
    char row[64];
    assert_true(grid_resize(&g, 1, 8));
    const struct rect r = grid_all(&g);
    grid_puts(&g, &r, 0, 0, INK_TEXT, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e");
    grid_set(&g, &r, 0, 1, INK_TEXT, 'x');
    grid_set(&g, &r, 0, 2, INK_TEXT, 'y');
    grid_row_text(&g, 0, row, sizeof row);
    assert_string_equal(row, " xy \xe8\xaa\x9e");
    grid_clear(&g);
    grid_puts(&g, &r, 0, 7, INK_TEXT, "\xe6\x97\xa5"); /* does not fit: nothing of it */
    grid_row_text(&g, 0, row, sizeof row);
    assert_string_equal(row, "");
    grid_put_cut(&g, &r, 0, 0, 5, INK_TEXT, "abcdefgh", 8);
    grid_row_text(&g, 0, row, sizeof row);
    assert_string_equal(row, "abcd\xe2\x80\xa6");
    grid_free(&g);
}

static void test_ascii_only(void **state)
{
    (void)state;
    struct grid g = {0};
    char row[64];
    text_set_ascii(true);
    assert_true(grid_resize(&g, 1, 20));
    const struct rect r = grid_all(&g);
    grid_puts(&g, &r, 0, 0, INK_TEXT, "caf\xc3\xa9 e\xcc\x81 \xe6\x97\xa5|\xff|\xe2\x80\xae|");
    grid_row_text(&g, 0, row, sizeof row);
    text_set_ascii(false);
    assert_string_equal(row, "caf? e ? |?|?|");
    grid_free(&g);
}

static void expect_rows(const char *s, unsigned cols, const char *expected)
{
    struct rich r = {0};
    struct wrapped w = {0};
    char got[1024] = "";
    rich_add_lines(&r, INK_TEXT, (struct rich_style){0}, s, strlen(s));
    assert_true(wrap_rich(&r, cols, &w));
    for (size_t i = 0; i < w.n; i++) {
        const size_t n = strlen(got);
        snprintf(got + n, sizeof got - n, "%s%.*s", i > 0 ? "/" : "",
                 (int)(w.rows[i].end - w.rows[i].start), r.text + w.rows[i].start);
    }
    assert_string_equal(got, expected);
    rich_free(&r);
    wrapped_free(&w);
}

static void test_wrapping(void **state)
{
    (void)state;
    expect_rows("one two three", 7, "one two/three");
    expect_rows("one two three", 100, "one two three");
    expect_rows("one   two", 4, "one/two");
    expect_rows("abcdefghij", 4, "abcd/efgh/ij");
    expect_rows("a abcdefghij", 4, "a ab/cdef/ghij"); /* no row would hold it */
    expect_rows("a abcd", 4, "a/abcd");
    expect_rows("a\n\nb", 4, "a//b");
    expect_rows("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 4, "\xe6\x97\xa5\xe6\x9c\xac/\xe8\xaa\x9e");
    expect_rows("\xe6\x97\xa5\xe6\x9c\xac\xe3\x80\x82", 4, "\xe6\x97\xa5/\xe6\x9c\xac\xe3\x80\x82");
    expect_rows("\xe6\x97\xa5", 1, "\xe6\x97\xa5"); /* wider than the room: still goes on */
    expect_rows("", 5, "");
}

/* Rows cover the text in order, and none is wider than the room. */
static void test_wrap_random(void **state)
{
    (void)state;
    static const char *const words[] = {"a", "word", " ", "  ", "\n", "\xe6\x97\xa5", "e\xcc\x81",
                                        "\t", "\x1b", "longer-words-than-that"};
    unsigned seed = 5;
    struct wrapped w = {0};
    for (int round = 0; round < 2000; round++) {
        char s[400] = "";
        for (int i = 0; i < 30 && strlen(s) < 350; i++)
            strcat(s, words[next_random(&seed) % (sizeof words / sizeof *words)]);
        const unsigned cols = 2 + next_random(&seed) % 30;
        assert_true(wrap_plain(s, strlen(s), cols, &w));
        size_t at = 0;
        for (size_t i = 0; i < w.n; i++) {
            const struct row *r = &w.rows[i];
            assert_true(r->start >= at && r->end >= r->start && r->end <= strlen(s));
            for (; at < r->start; at++)
                assert_true(s[at] == '\n');
            assert_true(text_width(s + r->start, r->end - r->start) <= cols + TEXT_TAB);
            assert_int_equal(wrapped_find(&w, r->start), i);
            at = r->end;
        }
        assert_int_equal(at, strlen(s));
    }
    wrapped_free(&w);
}

int main(void)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        setlocale(LC_CTYPE, "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_garbage_is_safe),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_ascii_only),
        cmocka_unit_test(test_wrapping),
        cmocka_unit_test(test_wrap_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
