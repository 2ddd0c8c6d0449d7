/* synth_plan.h - inside of the generator: which tensors there are, their bytes, the text files. */
#ifndef K3_SYNTH_PLAN_H
#define K3_SYNTH_PLAN_H

#include <stddef.h>
#include <stdio.h>

#include "synth.h"

enum synth_dtype { SYNTH_F32, SYNTH_BF16, SYNTH_U8 };

enum synth_kind {
    SYNTH_MATRIX,  /* normal, `scale` its deviation, rows of different size */
    SYNTH_FLAT,    /* the same with all rows alike (router, residual projections, embedding) */
    SYNTH_HEAD,    /* lm_head: rows of words are larger than those of bytes and specials */
    SYNTH_NORM,    /* about 1 */
    SYNTH_CONV,    /* the current tap is the largest */
    SYNTH_A_LOG,   /* `heads` values, then zeros */
    SYNTH_DT,
    SYNTH_BIAS,
    SYNTH_CODES,   /* two E2M1 codes per byte */
    SYNTH_SCALES,  /* E8M0 around `scale` */
    SYNTH_EXPERT,  /* what codes and scales of the same key stand for */
};

struct synth_tensor {
    char *name;        /* as in the shard */
    uint64_t key;      /* of its random values: a function of seed and plain name */
    uint64_t order;    /* scattered: place in the shard */
    uint64_t begin, end; /* in the shard's data */
    uint32_t shape[3];
    uint32_t shard;
    float scale;       /* SYNTH_SCALES, SYNTH_EXPERT: the middle scale byte */
    uint8_t ndim, kind, dtype;
    bool rounded;      /* F32 that holds BF16 values */
};

struct synth_plan {
    struct synth_tensor *v; /* by shard, then by place in the shard */
    size_t n, cap;
    uint32_t shards;
    uint64_t bytes;
};

enum k3_status synth_plan_make(const struct k3_synth *s, struct synth_plan *p,
                               struct k3_error *err);
void synth_plan_free(struct synth_plan *p);

/* ---- values ---- */

uint64_t synth_mix(uint64_t x);
uint64_t synth_hash(const char *text);
/* Stored bytes of the elements [first, first + n) of a tensor (U8: bytes). */
void synth_fill(const struct k3_synth *s, const struct synth_tensor *t, uint64_t first, size_t n,
                void *out);

/* ---- text files: each returns false when the stream failed ---- */

bool synth_put_config(const struct k3_synth *s, FILE *f);
bool synth_put_generation_config(const struct k3_synth *s, FILE *f);
bool synth_put_tokenizer_config(const struct k3_synth *s, FILE *f);
bool synth_put_tiktoken(const struct k3_synth *s, FILE *f);
bool synth_put_index(const struct synth_plan *p, FILE *f);
/* Size of what synth_put_header() writes without its padding, and the header itself. */
bool synth_put_header(const struct synth_tensor *t, size_t n, FILE *f);
void synth_shard_name(char name[64], uint32_t shard, uint32_t shards);

bool synth_is_mla(const struct k3_synth *s, uint32_t layer); /* zero-based */

/* The vocabulary: single bytes, beginnings of words, words, then made-up syllables. Puts the ranks
 * of the first word and of the first syllable. */
void synth_words(const struct k3_synth *s, uint32_t *first, uint32_t *end);

#endif
