/* vocab.h - inside of the tokenizer, shared by its loader, its encoder and their tests. */
#ifndef K3_VOCAB_H
#define K3_VOCAB_H

#include "tokenizer.h"

#define K3_NO_RANK UINT32_MAX

struct k3_slot {
    uint32_t tag;  /* upper bits of the hash */
    uint32_t rank; /* K3_NO_RANK = free */
};

struct k3_tokenizer {
    uint32_t n;                /* ranks; ids n .. n+255 are special */
    unsigned char *arena;      /* the bytes of all ids */
    uint32_t *at;              /* [n+256] where an id begins in the arena */
    uint16_t *len;             /* [n+256] */
    size_t arena_bytes;
    struct k3_slot *slots;     /* open addressing over the ranks' bytes; mask+1 of them */
    uint32_t mask;
    uint32_t longest;          /* bytes of the longest rank */
    uint32_t byte_rank[256];   /* the one-byte tokens */
    uint8_t by_name[K3_SPECIALS]; /* specials (id - n) in the byte order of their names */
    bool name_start[256];      /* first bytes of the names */
    bool stripped[K3_SPECIALS];
};

/* The rank whose bytes are p[0..len), or K3_NO_RANK. */
uint32_t k3_vocab_find(const struct k3_tokenizer *t, const char *p, size_t len);
/* Puts `rank`, whose bytes are in the arena, into the table. Returns K3_NO_RANK, or the rank that
 * already has these bytes. */
uint32_t k3_vocab_insert(struct k3_tokenizer *t, uint32_t rank);
/* Index of the special whose name is the longest prefix of p[0..len), or -1. */
int k3_vocab_special_at(const struct k3_tokenizer *t, const char *p, size_t len);

/* The texts of the two files, in this order; `path` is for messages only. Each fills its part of *t
 * (zero at first); k3_tokenizer_close() frees what a failure leaves. Special names go behind the
 * ranks in arena, at and len. */
enum k3_status k3_vocab_parse(struct k3_tokenizer *t, const char *path, const char *text,
                              size_t size, struct k3_error *err);
enum k3_status k3_specials_parse(struct k3_tokenizer *t, const char *path, const char *text,
                                 size_t size, struct k3_error *err);

/* ---- merging (bpe.c) --------------------------------------------------------------------- */

struct k3_part;
struct k3_pair;
struct k3_bpe { /* zero-initialise; free with k3_bpe_free(); memory is kept between pieces */
    struct k3_part *parts;
    size_t parts_cap;
    struct k3_pair *heap;
    size_t heap_n, heap_cap;
    uint64_t lookups, moves; /* work done so far: table lookups, steps inside the heap */
};
/* Appends the ids of one piece, len >= 1. */
enum k3_status k3_bpe_encode(const struct k3_tokenizer *t, struct k3_bpe *s, const char *piece,
                             size_t len, struct k3_ids *out, struct k3_error *err);
void k3_bpe_free(struct k3_bpe *s);

#endif
