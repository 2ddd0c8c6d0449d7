/* keys.h - from the bytes of a terminal to keys. Pure: bytes in, events out, no clock.
 *
 * Understands UTF-8, the control bytes, CSI and SS3 sequences with modifiers as xterm, VTE, tmux,
 * the Linux console and rxvt send them, CSI-u keys, Alt as a leading ESC, bracketed paste, reports of
 * focus and of the mouse wheel (other mouse reports are swallowed). Sequences may arrive in any pieces. Unknown ones are swallowed whole. */
#ifndef K3CHAT_UI_KEYS_H
#define K3CHAT_UI_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A key is a code point or one of these, with modifiers added. */
enum key_name {
    KEYS_ENTER = 0x110000, KEYS_TAB, KEYS_ESCAPE, KEYS_BACKSPACE,
    KEYS_UP, KEYS_DOWN, KEYS_LEFT, KEYS_RIGHT,
    KEYS_HOME, KEYS_END, KEYS_PAGE_UP, KEYS_PAGE_DOWN, KEYS_INSERT, KEYS_DELETE,
    KEYS_F1, KEYS_F2, KEYS_F3, KEYS_F4, KEYS_F5, KEYS_F6,
    KEYS_F7, KEYS_F8, KEYS_F9, KEYS_F10, KEYS_F11, KEYS_F12,
    KEYS_NAMES_END
};
#define MOD_SHIFT 0x1000000u
#define MOD_ALT 0x2000000u
#define MOD_CTRL 0x4000000u
#define MOD_MASK 0x7000000u

enum key_event_kind {
    KEY_PRESS,
    KEY_PASTE_BEGIN,
    KEY_PASTE_TEXT, /* a piece of it: valid UTF-8, line breaks as LF */
    KEY_PASTE_END,
    KEY_FOCUS_IN,
    KEY_FOCUS_OUT,
    KEY_WHEEL_UP,   /* of the mouse, when reports were asked for */
    KEY_WHEEL_DOWN,
};

struct key_event {
    enum key_event_kind kind;
    uint32_t key;     /* KEY_PRESS */
    const char *text; /* KEY_PASTE_TEXT; valid during the call */
    size_t len;
};
typedef void (*key_event_fn)(void *ud, const struct key_event *ev);

struct keys {
    key_event_fn fn;
    void *ud;
    unsigned char seq[64]; /* bytes of a sequence or character under way */
    size_t n;
    int state;
    bool meta;             /* ESC ESC has come */
    bool paste_cr;         /* a paste's last byte was CR */
    char out[4096];        /* paste text on its way */
    size_t out_len;
};

void keys_init(struct keys *k, key_event_fn fn, void *ud);
void keys_feed(struct keys *k, const void *bytes, size_t n);
/* How long to wait for more bytes before calling keys_timeout(): milliseconds, -1 = nothing is
 * open. A lone ESC is settled quickly, a paste without its end slowly. */
int keys_wait_ms(const struct keys *k);
void keys_timeout(struct keys *k);

/* "Ctrl+X", "Alt+Enter", "F1" ... into buf; returns buf. */
const char *key_to_name(uint32_t key, char *buf, size_t size);
/* The reverse; 0 = not a key. */
uint32_t key_from_name(const char *name, size_t len);

#endif
