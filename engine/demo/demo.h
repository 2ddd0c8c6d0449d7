/* demo.h - the model that is there when none is named: noise in the released layout.
 *
 * It is generated into the user's cache the first time it is needed (about 10 MB, well under a
 * second) and checked byte by byte at every later start. */
#ifndef K3_DEMO_H
#define K3_DEMO_H

#include <stddef.h>

#include "../k3_error.h"

/* Puts the path of the demo checkpoint into dir[cap]: $XDG_CACHE_HOME/k3chat/demo-N, or
 * ~/.cache/k3chat/demo-N when the variable is unset or not absolute. Creates it when it is absent,
 * makes it anew when it is damaged. Two programs may do so at once. K3_FAILED names the folder and
 * the reason; nothing half-written stays under the final name. */
enum k3_status k3_demo_prepare(char *dir, size_t cap, struct k3_error *err);

#endif
