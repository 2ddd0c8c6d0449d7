/* grow.h - growing arrays: one checked realloc for all of them. */
#ifndef K3CHAT_UI_GROW_H
#define K3CHAT_UI_GROW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Makes room for `need` items of `size` bytes in *p, whose capacity in items is *cap. *p is
 * unchanged on failure. */
static inline bool grow_to(void **p, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return true;
    size_t want = *cap ? *cap : 16;
    while (want < need) {
        if (want > SIZE_MAX / 2)
            return false;
        want *= 2;
    }
    if (want > SIZE_MAX / size)
        return false;
    void *q = realloc(*p, want * size);
    if (!q)
        return false;
    *p = q;
    *cap = want;
    return true;
}

#define GROW(array, cap, need) grow_to((void **)&(array), &(cap), (need), sizeof *(array))

#endif
