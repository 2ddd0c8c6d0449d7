/* test_ui_talk.c - what drawing the conversation costs, counted in pictures of messages that are made:
 * as many as fit on the screen, however long the conversation is. And the bare view. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ui/keymap.h"
#include "../ui/talk_view.h"

#define ROWS 40
#define COLS 100

struct scene {
    struct talk talk;
    struct talk_view view;
    struct grid grid;
};

static void say(struct scene *s, unsigned index, size_t bytes)
{
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    size_t n = (size_t)sprintf(text, "Message %u. ", index);
    while (n + 12 < bytes)
        n += (size_t)sprintf(text + n, n % 200 < 8 ? "*word*\n\n" : "word ");
    const struct session_event ev = {.kind = EVENT_MESSAGE, .index = index, .text = text, .len = n,
                                     .role = index % 2 ? ROLE_ASSISTANT : ROLE_USER};
    talk_apply(&s->talk, &ev);
    free(text);
}

static void begin(struct scene *s, unsigned messages, size_t bytes)
{
    memset(s, 0, sizeof *s);
    keymap_init(NULL);
    talk_init(&s->talk);
    talk_view_init(&s->view);
    for (unsigned i = 0; i < messages; i++)
        say(s, i, bytes);
}

static void end(struct scene *s)
{
    talk_free(&s->talk);
    grid_free(&s->grid);
}

/* Pictures made for one frame. */
static size_t frame(struct scene *s, int rows, int cols)
{
    const size_t before = s->talk.pictures;
    assert_true(grid_resize(&s->grid, rows, cols));
    const struct rect all = grid_all(&s->grid);
    talk_view_draw(&s->view, &s->talk, &s->grid, &all);
    return s->talk.pictures - before;
}

static size_t scroll(struct scene *s, long rows)
{
    const size_t before = s->talk.pictures;
    talk_view_scroll(&s->view, &s->talk, rows);
    frame(s, ROWS, COLS);
    return s->talk.pictures - before;
}

/* The same walk through a conversation: what each step costs. */
#define STEPS 12
static void walk(struct scene *s, size_t cost[STEPS])
{
    size_t i = 0;
    cost[i++] = frame(s, ROWS, COLS);
    cost[i++] = frame(s, ROWS, COLS);
    cost[i++] = scroll(s, -ROWS);
    cost[i++] = scroll(s, -1);
    cost[i++] = scroll(s, ROWS);
    cost[i++] = scroll(s, -5 * ROWS);
    cost[i++] = frame(s, ROWS, COLS - 17); /* a resize: what is seen is wrapped anew */
    cost[i++] = frame(s, ROWS, COLS);
    const size_t before = s->talk.pictures;
    talk_view_top(&s->view, &s->talk);
    frame(s, ROWS, COLS);
    cost[i++] = s->talk.pictures - before;
    cost[i++] = scroll(s, ROWS);
    talk_view_end(&s->view);
    cost[i++] = frame(s, ROWS, COLS);
    say(s, 999999, 1000);
    cost[i++] = frame(s, ROWS, COLS); /* one more comes: one more picture */
    assert_int_equal(i, STEPS);
}

static void test_cost_of_a_frame(void **state)
{
    (void)state;
    static struct scene few, many;
    size_t a[STEPS], b[STEPS];
    begin(&few, 100, 1000);
    begin(&many, 10000, 1000);
    walk(&few, a);
    walk(&many, b);
    for (size_t i = 0; i < STEPS; i++) {
        if (a[i] != b[i])
            fail_msg("step %zu makes %zu pictures of 100 messages, %zu of 10,000", i, a[i], b[i]);
        assert_true(b[i] <= ROWS);
    }
    assert_true(b[0] > 0);
    assert_int_equal(b[1], 0); /* nothing has changed: nothing is laid out */
    assert_int_equal(b[STEPS - 1], 1);
    end(&few);
    end(&many);
}

/* New rows below are counted without laying out what was there. */
static void test_cost_while_held(void **state)
{
    (void)state;
    static struct scene s;
    begin(&s, 10000, 1000);
    frame(&s, ROWS, COLS);
    scroll(&s, -3 * ROWS);
    assert_false(s.view.follow);
    const size_t before = s.talk.pictures;
    for (unsigned i = 0; i < 5; i++) {
        say(&s, 10000 + i, 1000);
        assert_true(talk_view_new_rows(&s.view, &s.talk) > 0);
        frame(&s, ROWS, COLS);
    }
    assert_true(s.talk.pictures - before <= 10);
    end(&s);
}

/* Of an answer that grows, it alone is made anew. */
static void test_cost_of_streaming(void **state)
{
    (void)state;
    static struct scene s;
    begin(&s, 10000, 1000);
    talk_apply(&s.talk, &(struct session_event){.kind = EVENT_ANSWER, .index = 10000});
    frame(&s, ROWS, COLS);
    for (int i = 0; i < 100; i++) {
        char piece[] = "word ";
        talk_apply(&s.talk, &(struct session_event){.kind = EVENT_CONTENT, .text = piece, .len = 5});
        assert_true(frame(&s, ROWS, COLS) <= 1);
    }
    end(&s);
}

static bool shows(const struct entry *e, const char *text)
{
    char *all = strndup(e->rich.text, e->rich.len);
    assert_non_null(all);
    const bool found = strstr(all, text) != NULL;
    free(all);
    return found;
}

/* The bare view has what was written, to be selected with the mouse, and no marks of the screen's own. */
static void test_bare(void **state)
{
    (void)state;
    static struct scene s;
    begin(&s, 0, 0);
    char text[] = "- one *word*\n\n> two\n";
    const struct session_event ev = {.kind = EVENT_MESSAGE, .text = text, .len = strlen(text),
                                     .role = ROLE_ASSISTANT};
    talk_apply(&s.talk, &ev);
    const struct entry *e = s.talk.entries[0];
    frame(&s, ROWS, COLS);
    assert_false(shows(e, "- one") || shows(e, "*word*"));
    s.talk.bare = true;
    frame(&s, ROWS, COLS);
    assert_true(shows(e, "- one *word*") && shows(e, "> two"));
    s.talk.bare = false;
    frame(&s, ROWS, COLS);
    assert_false(shows(e, "- one"));
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost_of_a_frame),
        cmocka_unit_test(test_cost_while_held),
        cmocka_unit_test(test_cost_of_streaming),
        cmocka_unit_test(test_bare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
