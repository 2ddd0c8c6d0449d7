/* keys.c - from bytes to keys (see keys.h). */
#include <config.h>

#include "keys.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "text.h"

enum { ST_GROUND, ST_UTF8, ST_ESC, ST_CSI, ST_SS3, ST_STRING, ST_STRING_ESC, ST_PASTE, ST_MOUSE };

#define ESC_MS 25        /* a lone ESC: longer than any terminal takes between the bytes of a key */
#define INTRO_MS 100     /* ESC [ and the like could be Alt with that character */
#define SEQUENCE_MS 500  /* the rest of a sequence over a slow line */
#define PASTE_MS 10000   /* a paste that stays silent has lost its end */

static const char paste_end[] = "\033[201~";

void keys_init(struct keys *k, key_event_fn fn, void *ud)
{
    *k = (struct keys){.fn = fn, .ud = ud};
}

static void emit(struct keys *k, uint32_t key)
{
    const struct key_event ev = {.kind = KEY_PRESS, .key = key};
    k->fn(k->ud, &ev);
}

static void emit_kind(struct keys *k, enum key_event_kind kind)
{
    const struct key_event ev = {.kind = kind};
    k->fn(k->ud, &ev);
}

static uint32_t control_key(unsigned char c)
{
    switch (c) {
    case '\r': return KEYS_ENTER;
    case '\t': return KEYS_TAB;
    case 0x1B: return KEYS_ESCAPE;
    case 0x7F:
    case 0x08: return KEYS_BACKSPACE;
    case 0x00: return ' ' | MOD_CTRL;
    default: return (c <= 26 ? (uint32_t)c + 'a' - 1 : (uint32_t)c + '@') | MOD_CTRL;
    }
}

/* ---- CSI and SS3 ------------------------------------------------------------------------- */

static uint32_t letter_key(unsigned char c)
{
    switch (c) {
    case 'A': return KEYS_UP;
    case 'B': return KEYS_DOWN;
    case 'C': return KEYS_RIGHT;
    case 'D': return KEYS_LEFT;
    case 'F': return KEYS_END;
    case 'H': return KEYS_HOME;
    case 'P': return KEYS_F1;
    case 'Q': return KEYS_F2;
    case 'R': return KEYS_F3;
    case 'S': return KEYS_F4;
    case 'Z': return KEYS_TAB | MOD_SHIFT;
    case 'a': return KEYS_UP | MOD_CTRL;   /* rxvt */
    case 'b': return KEYS_DOWN | MOD_CTRL;
    case 'c': return KEYS_RIGHT | MOD_CTRL;
    case 'd': return KEYS_LEFT | MOD_CTRL;
    default: return 0;
    }
}

static uint32_t number_key(unsigned n)
{
    static const uint32_t keys[] = {
        [1] = KEYS_HOME,  [2] = KEYS_INSERT,  [3] = KEYS_DELETE, [4] = KEYS_END,
        [5] = KEYS_PAGE_UP, [6] = KEYS_PAGE_DOWN, [7] = KEYS_HOME, [8] = KEYS_END,
        [11] = KEYS_F1,   [12] = KEYS_F2,     [13] = KEYS_F3,    [14] = KEYS_F4,
        [15] = KEYS_F5,   [17] = KEYS_F6,     [18] = KEYS_F7,    [19] = KEYS_F8,
        [20] = KEYS_F9,   [21] = KEYS_F10,    [23] = KEYS_F11,   [24] = KEYS_F12,
    };
    return n < sizeof keys / sizeof *keys ? keys[n] : 0;
}

/* xterm's modifier parameter: 1 + shift 1 + alt 2 + ctrl 4 (+ meta 8, taken for alt). */
static uint32_t modifiers(unsigned param)
{
    const unsigned bits = param > 0 ? param - 1 : 0;
    return (bits & 1 ? MOD_SHIFT : 0) | (bits & (2 | 8) ? MOD_ALT : 0) | (bits & 4 ? MOD_CTRL : 0);
}

/* A key given by its code point and a modifier parameter. */
static uint32_t coded_key(unsigned cp, unsigned param)
{
    uint32_t mods = modifiers(param), key = cp;
    if (cp == 13)
        key = KEYS_ENTER;
    else if (cp == 9)
        key = KEYS_TAB;
    else if (cp == 27)
        key = KEYS_ESCAPE;
    else if (cp == 127 || cp == 8)
        key = KEYS_BACKSPACE;
    else if (cp < 0x20 || cp > 0x10FFFF)
        return 0;
    else if (cp < 0x7F && (mods & MOD_CTRL) && cp >= 'A' && cp <= 'Z')
        key = cp + 'a' - 'A';
    if (key == cp)
        mods &= ~MOD_SHIFT; /* it is in the character */
    return key | mods;
}

/* Reads up to 3 numeric parameters; sub-parameters after ':' are passed over. */
static unsigned read_params(const unsigned char *s, size_t n, unsigned out[3])
{
    unsigned count = 0;
    bool sub = false;
    out[0] = out[1] = out[2] = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] >= '0' && s[i] <= '9') {
            if (!sub && count < 3 && out[count] < 10000000)
                out[count] = out[count] * 10 + (unsigned)(s[i] - '0');
        } else if (s[i] == ':')
            sub = true;
        else if (s[i] == ';') {
            count++;
            sub = false;
        } else
            return 0;
    }
    return count + 1;
}

/* ---- mouse ------------------------------------------------------------------------------- */

/* Modifiers and motion make no other button of it. */
static void mouse_report(struct keys *k, unsigned button, bool press)
{
    button &= ~(4u | 8u | 16u | 32u);
    if (press && (button == 64 || button == 65))
        emit_kind(k, button == 64 ? KEY_WHEEL_UP : KEY_WHEEL_DOWN);
}

/* CSI M and three bytes: from terminals that do not know the mode with decimals. */
static void in_mouse(struct keys *k, unsigned char c)
{
    k->seq[k->n++] = c;
    if (k->n < 3)
        return;
    k->state = ST_GROUND;
    k->n = 0;
    if (k->seq[0] >= 32)
        mouse_report(k, k->seq[0] - 32u, true);
}

static void finish_csi(struct keys *k)
{
    const unsigned char final = k->seq[k->n - 1];
    unsigned p[3];
    const bool mouse = k->seq[0] == '<'; /* CSI < BUTTON ; COLUMN ; ROW M, or m for a release */
    const unsigned count = read_params(k->seq + mouse, k->n - 1 - mouse, p);
    const size_t n = k->n;
    k->state = ST_GROUND;
    k->n = 0;
    if (mouse && count == 3)
        mouse_report(k, p[0], final == 'M');
    if (count == 0 || mouse)
        return;
    uint32_t key = 0;
    if (final == '~' && p[0] == 200) {
        k->state = ST_PASTE;
        k->out_len = 0;
        k->paste_cr = false;
        emit_kind(k, KEY_PASTE_BEGIN);
        return;
    } else if (final == '~' && p[0] == 27 && count == 3)
        key = coded_key(p[2], p[1]);
    else if (final == '~' || final == '^' || final == '$')
        key = number_key(p[0]) | (final == '^' ? MOD_CTRL : 0) | (final == '$' ? MOD_SHIFT : 0);
    else if (final == 'u')
        key = coded_key(p[0], p[1]);
    else if (n == 1 && (final == 'I' || final == 'O'))
        emit_kind(k, final == 'I' ? KEY_FOCUS_IN : KEY_FOCUS_OUT);
    else if (count < 2 || (p[0] <= 1 && p[1] <= 16)) /* else a report, as of the cursor */
        key = letter_key(final);
    if ((key & ~MOD_MASK) == 0)
        return;
    if (count >= 2 && final != 'u' && !(final == '~' && p[0] == 27))
        key |= modifiers(p[1]);
    emit(k, key | (k->meta ? MOD_ALT : 0));
}

/* The Linux console's F1 to F5: ESC [ [ A .. E. */
static void finish_console(struct keys *k)
{
    const unsigned char c = k->seq[1];
    k->state = ST_GROUND;
    k->n = 0;
    if (c >= 'A' && c <= 'E')
        emit(k, KEYS_F1 + (uint32_t)(c - 'A'));
}

static void in_csi(struct keys *k, unsigned char c)
{
    if (c < 0x20 || c >= 0x7F) { /* broken off: what follows counts for itself */
        k->state = ST_GROUND;
        k->n = 0;
        if (c == 0x18 || c == 0x1A)
            return;
        keys_feed(k, &c, 1);
        return;
    }
    if (k->n < sizeof k->seq)
        k->seq[k->n++] = c;
    else
        k->seq[0] = '?'; /* too long to be a key: swallow to its end */
    if (k->n == 1 && c == '[')
        return;
    if (k->n == 1 && c == 'M') {
        k->state = ST_MOUSE;
        k->n = 0;
        return;
    }
    if (k->n == 2 && k->seq[0] == '[')
        finish_console(k);
    else if (c >= 0x40) {
        k->seq[k->n - 1] = c;
        finish_csi(k);
    }
}

static void in_ss3(struct keys *k, unsigned char c)
{
    uint32_t mods = 0;
    if (c >= '1' && c <= '8' && k->n == 0) { /* old xterm: ESC O 5 P */
        k->seq[k->n++] = c;
        return;
    }
    if (k->n == 1)
        mods = modifiers((unsigned)(k->seq[0] - '0'));
    k->state = ST_GROUND;
    k->n = 0;
    if (c < 0x20 || c >= 0x7F) {
        keys_feed(k, &c, 1);
        return;
    }
    uint32_t key = c == 'M' ? KEYS_ENTER : letter_key(c); /* CSI M would be a mouse report */
    if (c >= 'j' && c <= 'y') /* keypad in application mode: * + , - . / 0..9 */
        key = (uint32_t)c - 'j' + '*';
    if (key)
        emit(k, key | mods | (k->meta ? MOD_ALT : 0));
}

/* ---- characters and ESC ------------------------------------------------------------------ */

static size_t utf8_length(unsigned char c)
{
    return c >= 0xC2 && c <= 0xDF ? 2 : c >= 0xE0 && c <= 0xEF ? 3 : c >= 0xF0 && c <= 0xF4 ? 4 : 0;
}

static void in_utf8(struct keys *k, unsigned char c)
{
    const uint32_t alt = k->seq[0] == 0x1B ? MOD_ALT : 0;
    const size_t from = alt ? 1 : 0;
    if ((c & 0xC0) != 0x80) { /* cut off */
        k->state = ST_GROUND;
        k->n = 0;
        emit(k, TEXT_BAD);
        keys_feed(k, &c, 1);
        return;
    }
    k->seq[k->n++] = c;
    if (k->n - from < utf8_length(k->seq[from]))
        return;
    uint32_t cp = TEXT_BAD;
    if (text_decode((const char *)k->seq + from, k->n - from, &cp) != k->n - from)
        cp = TEXT_BAD;
    k->state = ST_GROUND;
    k->n = 0;
    emit(k, cp | alt);
}

static void in_ground(struct keys *k, unsigned char c, uint32_t alt)
{
    k->state = ST_GROUND;
    k->n = 0;
    k->meta = false;
    if (c == 0x1B)
        k->state = ST_ESC;
    else if (c < 0x20 || c == 0x7F)
        emit(k, control_key(c) | alt);
    else if (c < 0x80)
        emit(k, c | alt);
    else if (utf8_length(c) == 0)
        emit(k, TEXT_BAD);
    else {
        if (alt)
            k->seq[k->n++] = 0x1B;
        k->seq[k->n++] = c;
        k->state = ST_UTF8;
    }
}

static void in_esc(struct keys *k, unsigned char c)
{
    const bool meta = k->meta; /* ESC ESC so far: rxvt's Alt before a sequence, or two keys */
    k->n = 0;
    k->meta = meta && (c == '[' || c == 'O');
    if (meta && !k->meta)
        emit(k, KEYS_ESCAPE);
    switch (c) {
    case '[': k->state = ST_CSI; break;
    case 'O': k->state = ST_SS3; break;
    case ']': case 'P': case '_': case '^': case 'X':
        k->state = ST_STRING;
        k->seq[0] = c;
        break;
    case 0x1B: k->meta = true; break;
    default: in_ground(k, c, MOD_ALT);
    }
}

/* A report of the terminal: to be swallowed up to BEL or ESC \. */
static void in_string(struct keys *k, unsigned char c)
{
    k->n = 1; /* more than its first byte has come */
    if (k->state == ST_STRING_ESC && c != '\\') {
        k->state = ST_ESC;
        in_esc(k, c);
    } else if (c == 0x07 || c == 0x18 || k->state == ST_STRING_ESC)
        k->state = ST_GROUND;
    else if (c == 0x1B)
        k->state = ST_STRING_ESC;
}

/* ---- paste ------------------------------------------------------------------------------- */

/* Hands on what is whole: not the first bytes of a character, unless `all`. */
static void flush_paste(struct keys *k, bool all)
{
    size_t at = 0, good = 0;
    char clean[3 * sizeof k->out];
    while (at < k->out_len) {
        uint32_t cp = 0;
        const size_t need = utf8_length((unsigned char)k->out[at]);
        if (!all && need > k->out_len - at)
            break;
        at += text_decode(k->out + at, k->out_len - at, &cp);
        good += text_encode(cp, clean + good);
    }
    memmove(k->out, k->out + at, k->out_len - at);
    k->out_len -= at;
    if (good == 0)
        return;
    const struct key_event ev = {.kind = KEY_PASTE_TEXT, .text = clean, .len = good};
    k->fn(k->ud, &ev);
}

static void paste_byte(struct keys *k, unsigned char c)
{
    const bool after_cr = k->paste_cr;
    k->paste_cr = c == '\r';
    if (c == '\n' && after_cr)
        return;
    k->out[k->out_len++] = c == '\r' ? '\n' : (char)c;
    if (k->out_len == sizeof k->out)
        flush_paste(k, false);
}

static void end_paste(struct keys *k)
{
    flush_paste(k, true);
    k->state = ST_GROUND;
    k->n = 0;
    emit_kind(k, KEY_PASTE_END);
}

/* The end mark has its first byte nowhere else: a mismatch can only start it anew. */
static void in_paste(struct keys *k, unsigned char c)
{
    if (k->n > 0 && c != (unsigned char)paste_end[k->n]) {
        for (size_t i = 0; i < k->n; i++)
            paste_byte(k, k->seq[i]);
        k->n = 0;
    }
    if (c != (unsigned char)paste_end[k->n]) {
        paste_byte(k, c);
        return;
    }
    k->seq[k->n++] = c;
    if (k->n == sizeof paste_end - 1)
        end_paste(k);
}

/* ---- driving ----------------------------------------------------------------------------- */

void keys_feed(struct keys *k, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        switch (k->state) {
        case ST_GROUND: in_ground(k, p[i], 0); break;
        case ST_UTF8: in_utf8(k, p[i]); break;
        case ST_ESC: in_esc(k, p[i]); break;
        case ST_CSI: in_csi(k, p[i]); break;
        case ST_SS3: in_ss3(k, p[i]); break;
        case ST_PASTE: in_paste(k, p[i]); break;
        case ST_MOUSE: in_mouse(k, p[i]); break;
        default: in_string(k, p[i]);
        }
    }
    if (k->state == ST_PASTE)
        flush_paste(k, false);
}

int keys_wait_ms(const struct keys *k)
{
    switch (k->state) {
    case ST_GROUND: return -1;
    case ST_ESC: return ESC_MS;
    case ST_PASTE: return PASTE_MS;
    default: return k->n == 0 ? INTRO_MS : SEQUENCE_MS;
    }
}

void keys_timeout(struct keys *k)
{
    const int state = k->state;
    const size_t n = k->n;
    if (state == ST_PASTE) {
        for (size_t i = 0; i < n; i++)
            paste_byte(k, k->seq[i]);
        end_paste(k);
        return;
    }
    k->state = ST_GROUND;
    k->n = 0;
    if (k->meta || state == ST_ESC)
        emit(k, KEYS_ESCAPE);
    if (k->meta && state == ST_ESC)
        emit(k, KEYS_ESCAPE);
    k->meta = false;
    if (state == ST_ESC)
        return;
    if (state == ST_CSI && n == 0)
        emit(k, '[' | MOD_ALT);
    else if (state == ST_SS3 && n == 0)
        emit(k, 'O' | MOD_ALT);
    else if (state == ST_STRING && n == 0)
        emit(k, k->seq[0] | MOD_ALT);
    else if (state == ST_UTF8)
        emit(k, TEXT_BAD);
}

/* ---- names ------------------------------------------------------------------------------- */

static const char *const names[] = {
    "Enter", "Tab", "Esc", "Backspace", "Up", "Down", "Left", "Right", "Home", "End", "PgUp",
    "PgDn", "Insert", "Delete", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10",
    "F11", "F12",
};
_Static_assert(sizeof names / sizeof *names == KEYS_NAMES_END - KEYS_ENTER, "a key has no name");

const char *key_to_name(uint32_t key, char *buf, size_t size)
{
    const uint32_t base = key & ~MOD_MASK;
    char ch[8] = {0};
    const char *name = ch;
    if (base >= KEYS_ENTER && base < KEYS_NAMES_END)
        name = names[base - KEYS_ENTER];
    else if (base == ' ')
        name = "Space";
    else if (base >= 'a' && base <= 'z' && (key & (MOD_CTRL | MOD_ALT)))
        ch[0] = (char)(base - 'a' + 'A');
    else
        text_encode(base, ch);
    snprintf(buf, size, "%s%s%s%s", key & MOD_CTRL ? "Ctrl+" : "", key & MOD_ALT ? "Alt+" : "",
             key & MOD_SHIFT ? "Shift+" : "", name);
    return buf;
}

static bool take_prefix(const char **s, size_t *len, const char *prefix)
{
    const size_t n = strlen(prefix);
    if (*len <= n || strncasecmp(*s, prefix, n) != 0)
        return false;
    *s += n;
    *len -= n;
    return true;
}

uint32_t key_from_name(const char *name, size_t len)
{
    uint32_t mods = 0;
    for (;;) {
        if (take_prefix(&name, &len, "Ctrl+"))
            mods |= MOD_CTRL;
        else if (take_prefix(&name, &len, "Alt+"))
            mods |= MOD_ALT;
        else if (take_prefix(&name, &len, "Shift+"))
            mods |= MOD_SHIFT;
        else
            break;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == len && strncasecmp(names[i], name, len) == 0)
            return (KEYS_ENTER + (uint32_t)i) | mods;
    if (len == 5 && strncasecmp(name, "space", 5) == 0)
        return ' ' | mods;
    uint32_t cp = 0;
    if (len == 0 || text_decode(name, len, &cp) != len || cp < 0x20)
        return 0;
    if (mods && cp >= 'A' && cp <= 'Z')
        cp += 'a' - 'A';
    return cp | mods;
}
