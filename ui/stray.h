/* stray.h - what libraries write to stderr while the screen is up: caught, so that it does not spoil
 * the picture, and handed out line by line. Nothing is caught when stderr is no terminal. */
#ifndef K3CHAT_UI_STRAY_H
#define K3CHAT_UI_STRAY_H

#include <stdbool.h>
#include <stddef.h>

void stray_catch(void);
/* stderr is what it was; what was not handed out goes there. Async-signal-safe. */
void stray_release(void);
int stray_fd(void); /* readable when stray_next() may have a line; -1 = nothing is caught */
/* The next whole line (cut to fit size), without its end; false = none yet. */
bool stray_next(char *line, size_t size);

#endif
