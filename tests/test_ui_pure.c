/* test_ui_pure.c - the parts of the screen that need no terminal: text, keys, editor, wrapping,
 * layout, graphs, figures. */
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
#include "../ui/keymap.h"
#include "../ui/keys.h"
#include "../ui/layout.h"
#include "../ui/pane.h"
#include "../ui/plain_input.h"
#include "../ui/rich.h"
#include "../ui/status.h"
#include "../ui/text.h"

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16 & 0x7FFF;
}

/* ---- text -------------------------------------------------------------------------------- */

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

/* ---- keys -------------------------------------------------------------------------------- */

struct heard {
    char text[65536]; /* keys by name, pastes in brackets */
    size_t n;
};

static void hear(void *ud, const struct key_event *ev)
{
    struct heard *h = ud;
    char b[32];
    const size_t room = sizeof h->text - h->n;
    if (ev->kind == KEY_PRESS)
        h->n += (size_t)snprintf(h->text + h->n, room, "%s ", key_to_name(ev->key, b, sizeof b));
    else if (ev->kind == KEY_PASTE_TEXT)
        h->n += (size_t)snprintf(h->text + h->n, room, "%.*s", (int)ev->len, ev->text);
    else
        h->n += (size_t)snprintf(h->text + h->n, room, "%s",
                                 ev->kind == KEY_PASTE_BEGIN ? "["
                                 : ev->kind == KEY_PASTE_END ? "] "
                                 : ev->kind == KEY_WHEEL_UP ? "wheel-up "
                                 : ev->kind == KEY_WHEEL_DOWN ? "wheel-down "
                                 : ev->kind == KEY_FOCUS_IN ? "in " : "out ");
    assert_true(h->n < sizeof h->text);
}

/* The same whatever pieces the bytes come in. */
static void expect_keys(const char *bytes, size_t n, const char *expected)
{
    static struct heard h;
    static struct keys k;
    for (size_t piece = 1; piece <= n; piece = piece < 3 ? piece + 1 : n + (piece == n)) {
        h.n = 0;
        h.text[0] = '\0';
        keys_init(&k, hear, &h);
        for (size_t at = 0; at < n; at += piece)
            keys_feed(&k, bytes + at, n - at < piece ? n - at : piece);
        if (keys_wait_ms(&k) >= 0)
            keys_timeout(&k);
        assert_int_equal(keys_wait_ms(&k), -1);
        assert_string_equal(h.text, expected);
    }
}

#define KEYS(bytes, expected) expect_keys(bytes, sizeof(bytes) - 1, expected)

static void test_keys(void **state)
{
    (void)state;
    KEYS("aB \xc3\xa9\xf0\x9f\x99\x82", "a B Space \xc3\xa9 \xf0\x9f\x99\x82 ");
    KEYS("\r\n\t\x7f\x08\x01\x1a\x1c\x1f\0", "Enter Ctrl+J Tab Backspace Backspace Ctrl+A Ctrl+Z "
                                            "Ctrl+\\ Ctrl+_ Ctrl+Space ");
    KEYS("\033", "Esc ");
    KEYS("\033\033", "Esc Esc ");
    KEYS("\033x\033\r\033\x7f\033\xc3\xa9", "Alt+X Alt+Enter Alt+Backspace Alt+\xc3\xa9 ");
    KEYS("\033[A\033OB\033[1;5C\033[1;3D\033[H\033OF", "Up Down Ctrl+Right Alt+Left Home End ");
    KEYS("\033[1~\033[4~\033[7~\033[8~\033[3~\033[5~\033[6;5~", "Home End Home End Delete PgUp "
                                                             "Ctrl+PgDn ");
    KEYS("\033OP\033[11~\033[[A\033[24~\033[1;2P", "F1 F1 F1 F12 Shift+F1 ");
    KEYS("\033Oa\033Od\033[3^\033\033[A", "Ctrl+Up Ctrl+Left Ctrl+Delete Alt+Up ");
    KEYS("\033[Z\033[13;3u\033[27;5;13~\033[97;5u", "Shift+Tab Alt+Enter Ctrl+Enter Ctrl+A ");
    KEYS("\033[Ia\033[Ob", "in a out b ");
    KEYS("\033[<64;10;5M\033[<65;10;5M\033[<80;200;5M\033[<64;1;1mx", "wheel-up wheel-down wheel-up x ");
    KEYS("\033[<0;10;5M\033[<0;10;5m\033[<35;9;9Mx\033[<64Mx", "x x "); /* no wheel: swallowed */
    KEYS("\033[M`!!a\033[Ma!!b\033[M !!c", "wheel-up a wheel-down b c "); /* in bytes */
    KEYS("\033[", "Alt+[ ");
    KEYS("\033O", "Alt+O ");
    KEYS("\033]", "Alt+] ");
}

static void test_key_garbage(void **state)
{
    (void)state;
    KEYS("h\xffz\xc3q", "h \xef\xbf\xbd z \xef\xbf\xbd q ");
    KEYS("\xe6\x97", "\xef\xbf\xbd ");
    KEYS("\033[?1;2c\033[12;40R" "a", "a "); /* reports */
    KEYS("\033]10;rgb:0/0/0\033\\a\033]11;x\007b\033P1$r\033\\c", "a b c ");
    KEYS("\033[<0;1;1Ma\033[999999999999~b", "a b ");
    KEYS("\033[1;5\x18" "a", "a ");
    KEYS("\033[1\033[A", "Up ");
    char longer[300] = "\033[";
    memset(longer + 2, '1', sizeof longer - 5);
    memcpy(longer + sizeof longer - 3, "Aq", 3);
    expect_keys(longer, sizeof longer - 1, "q ");
}

static void test_pastes(void **state)
{
    (void)state;
    KEYS("a\033[200~one\r\ntwo\rthree\nfour\033[201~b", "a [one\ntwo\nthree\nfour] b ");
    KEYS("\033[200~\033[A\x03\033[20\033[201\033\033[201~", "[\033[A\x03\033[20\033[201\033] ");
    KEYS("\033[200~\xe6\x97\xa5\xff\033[201~", "[\xe6\x97\xa5\xef\xbf\xbd] ");
    KEYS("\033[200~never ended", "[never ended] ");
    KEYS("\033[200~half\033[20", "[half\033[20] ");
}

static void ignore_key(void *ud, const struct key_event *ev)
{
    size_t *n = ud;
    if (ev->kind == KEY_PASTE_TEXT)
        for (size_t at = 0; at < ev->len;) { /* always whole characters */
            uint32_t cp = 0;
            const size_t k = text_decode(ev->text + at, ev->len - at, &cp);
            assert_true(k > 1 || (unsigned char)ev->text[at] < 0x80);
            at += k;
        }
    (*n)++;
}

static void test_key_fuzz(void **state)
{
    (void)state;
    static const char *const pieces[] = {"\033", "[", "O", "200~", "201~", "\033[200~", "\033[201~",
                                         "1;5", "A", "\xe6", "\x97\xa5", "]", "\007", "\xff", "x"};
    unsigned seed = 3;
    struct keys k;
    size_t events = 0;
    keys_init(&k, ignore_key, &events);
    for (int i = 0; i < 200000; i++) {
        const char *p = pieces[next_random(&seed) % (sizeof pieces / sizeof *pieces)];
        keys_feed(&k, p, strlen(p));
        if (next_random(&seed) % 50 == 0)
            keys_timeout(&k);
    }
    assert_true(events > 10000);
}

static void test_key_names(void **state)
{
    (void)state;
    static const char *const good[] = {"Enter", "Ctrl+X", "Alt+Enter", "Ctrl+Alt+Left", "F12",
                                       "Alt+<", "Space", "Ctrl+_", "a", "\xc3\xa9"};
    char b[32];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const uint32_t key = key_from_name(good[i], strlen(good[i]));
        assert_true(key != 0);
        assert_string_equal(key_to_name(key, b, sizeof b), good[i]);
    }
    assert_int_equal(key_from_name("Ctrl+", 5), 0);
    assert_int_equal(key_from_name("Nonsense", 8), 0);
    assert_int_equal(key_from_name("", 0), 0);
}

/* Every binding of the table can be typed, and no key has two meanings. */
static void test_keymap(void **state)
{
    (void)state;
    size_t bound = 0;
    keymap_init(NULL);
    for (size_t i = 0; i < n_actions; i++) {
        const char *s = actions[i].keys;
        if (actions[i].action == ACT_NONE) {
            assert_non_null(actions[i].help);
            continue;
        }
        while (s && *s) {
            const char *end = strstr(s, ", ");
            const size_t n = end ? (size_t)(end - s) : strlen(s);
            const char *space = memchr(s, ' ', n);
            const size_t n1 = space ? (size_t)(space - s) : n;
            const uint32_t k1 = key_from_name(s, n1);
            assert_true(k1 != 0);
            if (space) {
                const uint32_t k2 = key_from_name(space + 1, n - n1 - 1);
                assert_int_equal(keymap_find(0, k1), ACT_PREFIX);
                assert_int_equal(keymap_find(k1, k2), actions[i].action);
            } else
                assert_int_equal(keymap_find(0, k1), actions[i].action);
            bound++;
            s = end ? end + 2 : NULL;
        }
    }
    assert_true(bound > 50);
    assert_int_equal(keymap_find(0, 'a'), ACT_NONE);
}

static struct ui_config keys_of(size_t n, const struct ui_key *keys)
{
    struct ui_config cfg = {.n_keys = n};
    memcpy(cfg.keys, keys, n * sizeof *keys);
    return cfg;
}

static void expect_bad_keys(size_t n, const struct ui_key *keys, const char *place,
                            const char *word)
{
    struct k3_error err = {0};
    const struct ui_config cfg = keys_of(n, keys);
    assert_false(keymap_check(&cfg, &err));
    assert_int_equal(err.status, K3_USAGE);
    assert_int_equal(strncmp(err.message, place, strlen(place)), 0);
    if (!strstr(err.message, word))
        fail_msg("%s: %s", word, err.message);
}

/* Keys of the profile: in place of the table's, and what they take away. */
static void test_own_keys(void **state)
{
    (void)state;
    char b[128];
    struct k3_error err = {0};
    static const struct ui_key good[] = {
        {"help", "F5", "p:1:1"}, {"help", "Alt+H", "p:1:2"}, {"cancel", "Ctrl+G", "p:2:1"},
        {"bare", "none", "p:3:1"}, {"find", "Ctrl+X Ctrl+F", "p:4:1"},
    };
    const struct ui_config cfg = keys_of(5, good);
    assert_true(keymap_check(&cfg, &err));
    keymap_init(&cfg);
    assert_string_equal(keymap_key(ACT_HELP), "F5");
    assert_string_equal(keymap_keys(ACT_HELP, b, sizeof b), "F5, Alt+H");
    assert_int_equal(keymap_find(0, KEYS_F1), ACT_NONE);
    assert_int_equal(keymap_find(0, 'g' | MOD_CTRL), ACT_CANCEL);
    assert_int_equal(keymap_find(0, KEYS_ESCAPE), ACT_NONE);
    assert_string_equal(keymap_keys(ACT_BARE, b, sizeof b), "none");
    assert_string_equal(keymap_key(ACT_BARE), "");
    assert_int_equal(keymap_find(0, 'x' | MOD_CTRL), ACT_PREFIX); /* beside Ctrl+X Ctrl+E */
    assert_int_equal(keymap_find('x' | MOD_CTRL, 'f' | MOD_CTRL), ACT_FIND);
    assert_int_equal(keymap_find('x' | MOD_CTRL, 'e' | MOD_CTRL), ACT_EXTERNAL);
    static const struct ui_key takes_all[] = {{"redraw", "Ctrl+X", "p:1:1"}};
    const struct ui_config other = keys_of(1, takes_all);
    keymap_init(&other); /* a sequence that begins with it is gone; its other key stays */
    assert_int_equal(keymap_find(0, 'x' | MOD_CTRL), ACT_REDRAW);
    assert_string_equal(keymap_keys(ACT_EXTERNAL, b, sizeof b), "Alt+E");
    keymap_init(NULL);
    assert_string_equal(keymap_key(ACT_HELP), "F1");

    expect_bad_keys(1, (const struct ui_key[]){{"hlep", "F5", "p:7:3"}}, "p:7:3: ", "'hlep'");
    expect_bad_keys(1, (const struct ui_key[]){{"help", "Ctl+X", "p:7:3"}}, "p:7:3: ", "'Ctl+X'");
    expect_bad_keys(1, (const struct ui_key[]){{"help", "h", "p:7:3"}}, "p:7:3: ", "types text");
    expect_bad_keys(1, (const struct ui_key[]){{"help", "Ctrl+I", "p:7:3"}}, "p:7:3: ", "Tab");
    expect_bad_keys(1, (const struct ui_key[]){{"send", "none", "p:7:3"}}, "p:7:3: ", "send");
    expect_bad_keys(2, (const struct ui_key[]){{"help", "F5", "p:1:1"}, {"quit", "F5", "p:2:1"}},
                    "p:2:1: ", "'help' already (p:1:1)");
    expect_bad_keys(2, (const struct ui_key[]){{"help", "F5", "p:1:1"},
                                               {"quit", "F5 F6", "p:2:1"}},
                    "p:2:1: ", "already");
}

static void expect_lines(const char *bytes, const char *expected)
{
    struct plain_input in = {0};
    char got[512] = "";
    for (const char *c = bytes; *c; c++) {
        if (!plain_input_byte(&in, *c))
            continue;
        snprintf(got + strlen(got), sizeof got - strlen(got), "<%s>", in.text.s ? in.text.s : "");
        plain_input_clear(&in);
    }
    snprintf(got + strlen(got), sizeof got - strlen(got), "%s", in.text.s ? in.text.s : "");
    assert_string_equal(got, expected);
    plain_input_free(&in);
}

static void test_plain_lines(void **state)
{
    (void)state;
    expect_lines("one\ntwo\n\nthree", "<one><two><>three");
    expect_lines("a \033[200~b\nc\rd\033[201~ e\n", "<a b\nc\nd e>");
    expect_lines("\033[200\033[20x\n", "<\033[200\033[20x>");
    expect_lines("\033[200~\033[201\033[200~\n\033[201~\n", "<\033[201\033[200~\n>");
}

/* ---- editor ------------------------------------------------------------------------------ */

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

/* ---- wrapping ---------------------------------------------------------------------------- */

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

/* ---- layout ------------------------------------------------------------------------------ */

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
    expect_in_memory_pane(&m, 0, "anon 7.5 GB of 8.0 GB  peak 7.7 GB");
    expect_in_memory_pane(&m, 2, "expert cache 4.7 GB of 4.9 GB");
    expect_in_memory_pane(&m, 3, "page cache 12.3 GB (not ours)");
    expect_in_memory_pane(&m, 4, "trunk        1.5 GB  ring         200 MB");
    m.st.rss_anon = 0; /* an old kernel */
    m.st.page_cache = 0;
    expect_in_memory_pane(&m, 0, "anon 7.6 GB of 8.0 GB  peak 7.7 GB");
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

/* ---- graphs and figures ------------------------------------------------------------------ */

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
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_garbage_is_safe),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_ascii_only),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_key_garbage),
        cmocka_unit_test(test_pastes),
        cmocka_unit_test(test_key_fuzz),
        cmocka_unit_test(test_key_names),
        cmocka_unit_test(test_keymap),
        cmocka_unit_test(test_own_keys),
        cmocka_unit_test(test_plain_lines),
        cmocka_unit_test(test_editor_motion),
        cmocka_unit_test(test_editor_kills),
        cmocka_unit_test(test_editor_undo),
        cmocka_unit_test(test_editor_random),
        cmocka_unit_test(test_editor_rows),
        cmocka_unit_test(test_editor_history),
        cmocka_unit_test(test_wrapping),
        cmocka_unit_test(test_wrap_random),
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
