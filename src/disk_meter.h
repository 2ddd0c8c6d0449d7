/* disk_meter.h - how fast files give the reads of the trunk and of the experts: through the engine's
 * own queue and into its own kind of buffers, so that the figure is what a run can get at most. */
#ifndef K3CHAT_DISK_METER_H
#define K3CHAT_DISK_METER_H

#include "../engine/storage/io.h"

#define DISK_EXPERT_BYTES 17547264u       /* of the released model */
#define DISK_IN_FLIGHT_MAX (300u << 20)   /* bytes of buffers: more than the engine ever has */
#define DISK_DEPTH_MAX 32u

struct disk_reads {
    uint64_t bytes;
    bool scattered; /* anywhere, as experts are; else in order, as the tape is */
};

struct disk_meter {
    const struct k3_checkpoint *files; /* only the shards are looked at */
    enum k3_io_kind kind;
    uint8_t *buffers;                  /* DISK_IN_FLIGHT_MAX or as much as is asked for */
    uint64_t seed, at;                 /* of the next read: random state, place */
    char name[96];                     /* backend of the last measurement, without the depth */
};

uint64_t disk_bytes(const struct k3_checkpoint *files); /* of all files together */
/* Places for reads of this size over all files together. */
uint64_t disk_places(const struct k3_checkpoint *files, uint64_t bytes);
/* Buffers that so many requests of this size need. */
uint64_t disk_buffers(uint64_t bytes, uint32_t depth);

/* Keeps `depth` requests (at most DISK_DEPTH_MAX) under way for so long. The files should be out of
 * the page cache: it asks the system for that, which counts for buffered reads. *rate: bytes/s. */
enum k3_status disk_measure(struct disk_meter *m, const struct disk_reads *reads, uint32_t depth,
                            double seconds, double *rate, struct k3_error *err);

#endif
