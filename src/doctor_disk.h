/* doctor_disk.h - the disk under a folder: what it is, what room it has, how fast it reads what a
 * run reads. */
#ifndef K3CHAT_DOCTOR_DISK_H
#define K3CHAT_DOCTOR_DISK_H

#include <stdio.h>

#include "disk_meter.h"

#define DOCTOR_SECONDS 1.0 /* for each of the two kinds of reads */

/* What is read, and with what. */
struct doctor_reads {
    uint64_t block, expert;  /* bytes of a trunk block and of an expert; expert 0 = there are none */
    uint32_t depth;
    enum k3_io_kind io;
};

struct doctor_rates {
    double trunk, experts;   /* bytes per second; 0 = not measured */
};

/* One line: device, file system, free space. For a folder that is not there yet, the one it would be
 * made in. */
void doctor_print_disk(FILE *out, const char *dir);

/* Measures with the shards that lie in dir, or with `bytes` > 0 with a temporary file of that size
 * there, which is gone afterwards in every case. Prints what was measured, or why nothing was; only
 * a read or a write that fails is a failure. */
enum k3_status doctor_measure(FILE *out, const char *dir, uint64_t bytes,
                              const struct doctor_reads *reads, struct doctor_rates *rates,
                              struct k3_error *err);

#endif
