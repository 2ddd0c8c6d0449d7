/* shown.c - see shown.h. */
#include <config.h>

#include "shown.h"

#include <stdbool.h>
#include <unistd.h>

static bool is_control(unsigned char c)
{
    return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
}

static bool is_c1(const char *s, size_t len)
{
    return len > 1 && (unsigned char)s[0] == 0xC2 && (unsigned char)s[1] >= 0x80 &&
           (unsigned char)s[1] < 0xA0;
}

void shown_put(FILE *out, const char *s, size_t len)
{
    if (isatty(fileno(out)) == 0) {
        fwrite(s, 1, len, out);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)s[i];
        if (c == '\r' && i + 1 < len && s[i + 1] == '\n')
            continue; /* a line break of other systems */
        if (is_c1(s + i, len - i)) {
            fputs("\xEF\xBF\xBD", out);
            i++;
        } else if (is_control(c)) {
            putc('^', out);
            putc(c ^ 0x40, out);
        } else
            putc(c, out);
    }
}
