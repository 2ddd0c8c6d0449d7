/* test_ui_keys.c - from bytes to keys, from keys to actions, and lines of plain input. */
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

#include "../ui/keymap.h"
#include "../ui/keys.h"
#include "../ui/plain_input.h"
#include "../ui/text.h"
#include "ui_random.h"

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
    expect_lines("one\r\n\r\n/quit\r\na\033[200~b\r\n\r\nc\r\033[201~\n", "<one><></quit><ab\n\nc\n>");
    expect_lines("\033[200\033[20x\n", "<\033[200\033[20x>");
    expect_lines("\033[200~\033[201\033[200~\n\033[201~\n", "<\033[201\033[200~\n>");
}

int main(void)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        setlocale(LC_CTYPE, "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_key_garbage),
        cmocka_unit_test(test_pastes),
        cmocka_unit_test(test_key_fuzz),
        cmocka_unit_test(test_key_names),
        cmocka_unit_test(test_keymap),
        cmocka_unit_test(test_own_keys),
        cmocka_unit_test(test_plain_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
