/* embedded.h - the demo model inside the program: a plain ustar archive of the checkpoint's files. */
#ifndef K3_EMBEDDED_H
#define K3_EMBEDDED_H

#include <stdint.h>

extern const unsigned char k3_demo_tar[];
extern const uint64_t k3_demo_tar_size;

#endif
