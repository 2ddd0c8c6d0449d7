/* ui_random.h - the same arbitrary numbers at every run. */
#ifndef K3CHAT_TESTS_UI_RANDOM_H
#define K3CHAT_TESTS_UI_RANDOM_H

static inline unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16 & 0x7FFF;
}

#endif
