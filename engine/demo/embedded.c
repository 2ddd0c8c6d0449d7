/* embedded.c - the demo model's archive (engine/demo/model/demo.tar), put into the program by the
 * assembler as it is. Page-aligned, so that pages of it can be given back once they are read. */
#include "embedded.h"

#ifndef K3_DEMO_TAR
#error "K3_DEMO_TAR must be the path of the demo model's archive"
#endif

__asm__(".pushsection .rodata.k3_demo,\"a\",%progbits\n"
        ".balign 4096\n"
        ".globl k3_demo_tar\n"
        "k3_demo_tar:\n"
        ".incbin \"" K3_DEMO_TAR "\"\n"
        "1:\n"
        ".balign 8\n"
        ".globl k3_demo_tar_size\n"
        "k3_demo_tar_size:\n"
        ".quad 1b - k3_demo_tar\n"
        ".popsection\n");
