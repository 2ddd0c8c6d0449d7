/* test_experts_shard.h - a temporary shard full of small experts with known bytes, and a driver for
 * the store over it. Every function asserts by itself. */
#ifndef TEST_EXPERTS_SHARD_H
#define TEST_EXPERTS_SHARD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../engine/storage/experts.h"

enum shard_layout {
    SHARD_PACKED, /* MXFP4, the six tensors of an expert follow each other */
    SHARD_APART,  /* MXFP4, all scales before all weights, matrices in odd orders, gaps */
    SHARD_BF16,
};

struct shard {
    char dir[256], path[300];
    int fd;
    struct k3_shard file;
    struct k3_checkpoint c;
    struct k3_expert_shape shape;
    struct k3_expert_place *places;
    uint32_t *layer_numbers; /* 1, 2, ... */
    uint32_t layers, n_experts;
};

/* rows x columns of w1 and w3; w2 is columns x rows. MXFP4: both multiples of 32. */
void shard_make(struct shard *s, enum shard_layout layout, uint32_t layers, uint32_t n_experts,
                uint32_t rows, uint32_t columns);
void shard_remove(struct shard *s);

/* Byte i of a part of an expert (part 0 weights, 1 scales; a scale is never 255). */
uint8_t shard_byte(uint32_t layer, uint32_t expert, uint32_t matrix, uint32_t part, uint64_t i);
/* Overwrites bytes of the file. */
void shard_poke(struct shard *s, uint64_t at, const void *bytes, size_t n);

/* All bytes that a job hands out are those of this expert; w2 is NULL in a job without `out`. */
void shard_check_job(const struct shard *s, uint32_t layer, uint32_t expert,
                     const struct k3_expert_job *job);

/* A store over the shard; everything else in cfg as given. */
struct k3_experts *shard_store(const struct shard *s, struct k3_io *io, uint32_t slots,
                               uint32_t staging, enum k3_policy policy);

/* Runs a step to its end: every job once, in and out in order, contents checked, jobs taken in
 * groups of at most `max`. */
void shard_step(const struct shard *s, struct k3_experts *store, uint32_t layer,
                const struct k3_expert_use *uses, size_t n, size_t max);

/* requests = resident + prefetched + waited; layers add up to the whole. */
void shard_check_counters(const struct shard *s, const struct k3_experts *store);

/* Deterministic random numbers (xorshift). */
uint64_t shard_random(uint64_t *state);

#endif
