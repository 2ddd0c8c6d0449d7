/* demo.h - the model that is there when none is named: a small trained one, part of the program.
 *
 * It is unpacked into the user's cache the first time it is needed (some MB, far less than a second)
 * and compared byte by byte at every later start. How it was trained: train/README.md. */
#ifndef K3_DEMO_H
#define K3_DEMO_H

#include <stddef.h>

#include "../k3_error.h"

/* Puts the path of the demo checkpoint into dir[cap]: $XDG_CACHE_HOME/k3chat/demo-DIGEST, or
 * ~/.cache/k3chat/demo-DIGEST when the variable is unset or not absolute. Creates it when it is
 * absent, makes it anew when it is damaged. Two programs may do so at once. K3_FAILED names the
 * folder and the reason; nothing half-written stays under the final name. The memory that the
 * program holds does not grow by the model's size. */
enum k3_status k3_demo_prepare(char *dir, size_t cap, struct k3_error *err);

#endif
