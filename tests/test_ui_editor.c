/* test_ui_editor.c - the message editor without a screen. */
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
#include "../ui/rich.h"
#include "../ui/text.h"
#include "ui_random.h"

static void put(struct editor *e, const char *s)
{
    editor_insert(e, s, strlen(s));
}

static void type(struct editor *e, const char *s)
{
    for (size_t at = 0, len = strlen(s); at < len;) {
        uint32_t cp = 0;
        at += text_decode(s + at, len - at, &cp);
        editor_insert_char(e, cp);
    }
}

static void expect_text(const struct editor *e, const char *before, const char *after)
{
    char b[256];
    snprintf(b, sizeof b, "%.*s|%.*s", (int)e->cursor, e->text ? e->text : "",
             (int)(e->len - e->cursor), e->text ? e->text + e->cursor : "");
    char expected[256];
    snprintf(expected, sizeof expected, "%s|%s", before, after);
    assert_string_equal(b, expected);
}

static void test_editor_motion(void **state)
{
    (void)state;
    struct editor e;
    editor_init(&e);
    editor_left(&e);
    editor_backspace(&e);
    editor_delete(&e);
    editor_word_left(&e);
    editor_word_right(&e);
    editor_line_end(&e);
    expect_text(&e, "", "");
    put(&e, "one, t\xc3\xa9wo\nthe \xe6\x97\xa5 end");
    editor_word_left(&e);
    expect_text(&e, "one, t\xc3\xa9wo\nthe \xe6\x97\xa5 ", "end");
    editor_word_left(&e);
    editor_word_left(&e);
    expect_text(&e, "one, t\xc3\xa9wo\n", "the \xe6\x97\xa5 end");
    editor_left(&e);
    editor_line_start(&e);
    expect_text(&e, "", "one, t\xc3\xa9wo\nthe \xe6\x97\xa5 end");
    editor_word_right(&e);
    editor_word_right(&e);
    expect_text(&e, "one, t\xc3\xa9wo", "\nthe \xe6\x97\xa5 end");
    editor_right(&e);
    editor_line_end(&e);
    editor_left(&e);
    editor_left(&e);
    editor_left(&e);
    editor_left(&e);
    editor_backspace(&e);
    expect_text(&e, "one, t\xc3\xa9wo\nthe ", " end");
    editor_start(&e);
    editor_delete(&e);
    expect_text(&e, "", "ne, t\xc3\xa9wo\nthe  end");
    editor_end(&e);
    editor_right(&e);
    assert_int_equal(e.cursor, e.len);
    editor_free(&e);
}

static void test_editor_kills(void **state)
{
    (void)state;
    struct editor e;
    editor_init(&e);
    put(&e, "alpha beta gamma");
    editor_kill_word_left(&e);
    editor_kill_word_left(&e);
    expect_text(&e, "alpha ", "");
    editor_yank(&e);
    expect_text(&e, "alpha beta gamma", ""); /* kills in a row come back together */
    editor_line_start(&e);
    editor_kill_word_right(&e);
    editor_kill_word_right(&e);
    expect_text(&e, "", " gamma");
    editor_end(&e);
    editor_yank(&e);
    expect_text(&e, " gammaalpha beta", "");
    editor_kill_to_line_start(&e);
    expect_text(&e, "", "");
    put(&e, "x\ny");
    editor_start(&e);
    editor_kill_to_line_end(&e);
    editor_kill_to_line_end(&e);
    expect_text(&e, "", "y");
    editor_yank(&e);
    expect_text(&e, "x\n", "y");
    editor_free(&e);
}

static void test_editor_undo(void **state)
{
    (void)state;
    struct editor e;
    editor_init(&e);
    type(&e, "one two");
    editor_undo(&e);
    expect_text(&e, "one", "");
    editor_undo(&e);
    expect_text(&e, "", "");
    editor_undo(&e);
    editor_redo(&e);
    editor_redo(&e);
    expect_text(&e, "one two", "");
    editor_redo(&e);
    editor_begin_paste(&e);
    put(&e, " three");
    put(&e, " four");
    editor_end_paste(&e);
    editor_undo(&e);
    expect_text(&e, "one two", "");
    editor_redo(&e);
    expect_text(&e, "one two three four", "");
    editor_kill_word_left(&e);
    type(&e, "4");
    editor_undo(&e);
    editor_undo(&e);
    expect_text(&e, "one two three four", "");
    editor_free(&e);
}

/* Undoing everything gives the beginning back, redoing everything the end, whatever was done. */
static void test_editor_random(void **state)
{
    (void)state;
    static void (*const moves[])(struct editor *) = {
        editor_left, editor_right, editor_word_left, editor_word_right, editor_line_start,
        editor_line_end, editor_start, editor_end, editor_backspace, editor_delete,
        editor_kill_word_left, editor_kill_word_right, editor_kill_to_line_start,
        editor_kill_to_line_end, editor_yank, editor_undo, editor_redo,
    };
    static const char *const words[] = {"a", "word ", "\n", "\xe6\x97\xa5", "e\xcc\x81", "\xcc\x81",
                                        "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7",
                                        "\t", "\xff"};
    unsigned seed = 11;
    for (int round = 0; round < 60; round++) {
        struct editor e;
        editor_init(&e);
        for (int i = 0; i < 300; i++) {
            const unsigned pick = next_random(&seed);
            if (pick % 3 == 0)
                moves[pick / 3 % (sizeof moves / sizeof *moves)](&e);
            else if (pick % 3 == 1)
                put(&e, words[pick / 3 % (sizeof words / sizeof *words)]);
            else if (pick / 3 % 2)
                editor_row_up(&e, 5 + pick % 20);
            else
                editor_row_down(&e, 5 + pick % 20);
            assert_true(e.cursor <= e.len);
            assert_int_equal(e.cursor == 0 ? 0 : text_next(e.text, e.len,
                                                           text_prev(e.text, e.len, e.cursor)),
                             e.cursor);
        }
        const size_t len = e.len;
        char *end = malloc(len + 1);
        assert_non_null(end);
        memcpy(end, e.text, len);
        while (e.undo_at < e.n_undo)
            editor_redo(&e);
        const size_t steps = e.n_undo;
        for (size_t i = 0; i < steps; i++)
            editor_undo(&e);
        assert_int_equal(e.len, 0);
        free(end);
        editor_free(&e);
    }
}

static void test_editor_rows(void **state)
{
    (void)state;
    struct editor e;
    size_t row;
    unsigned col;
    editor_init(&e);
    put(&e, "one two three four\n\nfive");
    const struct wrapped *w = editor_rows(&e, 9);
    assert_int_equal(w->n, 5); /* one two/three/four//five */
    editor_start(&e);
    editor_cursor_pos(&e, 9, &row, &col);
    assert_int_equal(row, 0);
    assert_int_equal(col, 0);
    editor_line_end(&e);
    editor_cursor_pos(&e, 9, &row, &col);
    const size_t last = row;
    assert_true(editor_row_down(&e, 9));
    editor_cursor_pos(&e, 9, &row, &col);
    assert_int_equal(row, last + 1);
    assert_int_equal(col, 0);
    assert_true(editor_row_down(&e, 9));
    editor_cursor_pos(&e, 9, &row, &col);
    assert_int_equal(col, 4); /* the goal column is remembered over the empty line */
    assert_false(editor_row_down(&e, 9));
    while (editor_row_up(&e, 9)) {
    }
    editor_cursor_pos(&e, 9, &row, &col);
    assert_int_equal(row, 0);
    editor_free(&e);
}

static void test_editor_history(void **state)
{
    (void)state;
    struct editor e;
    size_t len = 0;
    editor_init(&e);
    assert_false(editor_past_older(&e));
    editor_remember(&e, "first", 5);
    editor_remember(&e, "second", 6);
    editor_remember(&e, "second", 6);
    editor_remember(&e, " \n", 2);
    put(&e, "draft");
    assert_true(editor_past_older(&e));
    expect_text(&e, "second", "");
    assert_true(editor_past_older(&e));
    expect_text(&e, "first", "");
    assert_false(editor_past_older(&e));
    assert_true(editor_past_newer(&e));
    assert_true(editor_past_newer(&e));
    expect_text(&e, "draft", "");
    assert_false(editor_past_newer(&e));
    char *s = editor_take(&e, &len);
    assert_string_equal(s, "draft");
    assert_int_equal(len, 5);
    assert_int_equal(e.len, 0);
    free(s);
    editor_remember(&e, "first", 5); /* becomes the newest */
    assert_int_equal(e.n_past, 2);
    assert_true(editor_past_older(&e));
    expect_text(&e, "first", "");
    assert_true(editor_past_older(&e));
    expect_text(&e, "second", "");
    assert_false(editor_past_older(&e));
    char b[16];
    for (int i = 0; i < EDITOR_PAST_MOST; i++)
        editor_remember(&e, b, (size_t)snprintf(b, sizeof b, "%d", i));
    assert_int_equal(e.n_past, EDITOR_PAST_MOST); /* the oldest are gone */
    assert_string_equal(e.past[0], "0");
    assert_string_equal(e.past[EDITOR_PAST_MOST - 1], "999");
    editor_free(&e);
}

int main(void)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        setlocale(LC_CTYPE, "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_editor_motion),
        cmocka_unit_test(test_editor_kills),
        cmocka_unit_test(test_editor_undo),
        cmocka_unit_test(test_editor_random),
        cmocka_unit_test(test_editor_rows),
        cmocka_unit_test(test_editor_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
