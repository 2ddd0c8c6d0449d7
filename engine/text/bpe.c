/* bpe.c - byte-pair merging of one piece: of all adjacent pairs whose bytes are a token, the one of
 * the lowest rank, the leftmost of equals, until none is left.
 *
 * The parts of a piece are a linked list over its bytes. Every pair that is a token stands in a
 * heap of (rank, place); a merge puts in at most two new pairs, and entries whose parts have
 * changed are skipped when they come up. A piece of n bytes so costs at most 3n lookups and O(n log
 * n) steps. */
#include <stdlib.h>
#include <string.h>

#include "vocab.h"

struct k3_part { /* the part that begins at this byte of the piece */
    uint32_t end;  /* where it ends; 0 = no part begins here any more */
    uint32_t prev; /* where the part before it begins */
    uint32_t rank;
};

struct k3_pair {
    uint32_t rank, left; /* what orders the heap */
    uint32_t len;        /* bytes of both parts */
};

static bool before(const struct k3_pair *a, const struct k3_pair *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->left < b->left;
}

static bool heap_push(struct k3_bpe *s, struct k3_pair pair)
{
    if (s->heap_n == s->heap_cap) {
        const size_t cap = s->heap_cap ? s->heap_cap * 2 : 64;
        struct k3_pair *v = realloc(s->heap, cap * sizeof *v);
        if (!v)
            return false;
        s->heap = v;
        s->heap_cap = cap;
    }
    size_t i = s->heap_n++;
    while (i > 0 && before(&pair, &s->heap[(i - 1) / 2])) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
        s->moves++;
    }
    s->heap[i] = pair;
    return true;
}

static struct k3_pair heap_pop(struct k3_bpe *s)
{
    const struct k3_pair top = s->heap[0], last = s->heap[--s->heap_n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= s->heap_n)
            break;
        if (child + 1 < s->heap_n && before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!before(&s->heap[child], &last))
            break;
        s->heap[i] = s->heap[child];
        i = child;
        s->moves++;
    }
    s->heap[i] = last;
    return top;
}

/* Puts the pair of the part at `left` and the one behind it into the heap if it is a token. */
static bool consider(const struct k3_tokenizer *t, struct k3_bpe *s, const char *piece,
                     uint32_t left, size_t len)
{
    const uint32_t mid = s->parts[left].end;
    if (mid >= len)
        return true;
    const uint32_t both = s->parts[mid].end - left;
    s->lookups++;
    const uint32_t rank = k3_vocab_find(t, piece + left, both);
    return rank == K3_NO_RANK || heap_push(s, (struct k3_pair){rank, left, both});
}

/* Merges the pair at the top of the heap, unless it is stale. */
static bool merge_next(const struct k3_tokenizer *t, struct k3_bpe *s, const char *piece,
                       size_t len)
{
    const struct k3_pair pair = heap_pop(s);
    struct k3_part *left = &s->parts[pair.left];
    if (left->end == 0 || left->end >= len)
        return true;
    struct k3_part *right = &s->parts[left->end];
    if (right->end - pair.left != pair.len)
        return true;
    left->end = right->end;
    left->rank = pair.rank;
    right->end = 0;
    if (left->end < len)
        s->parts[left->end].prev = pair.left;
    if (!consider(t, s, piece, pair.left, len))
        return false;
    return pair.left == 0 || consider(t, s, piece, left->prev, len);
}

static bool begin_piece(const struct k3_tokenizer *t, struct k3_bpe *s, const char *piece,
                        size_t len)
{
    if (len > s->parts_cap) {
        size_t cap = s->parts_cap ? s->parts_cap : 128;
        while (cap < len)
            cap *= 2;
        struct k3_part *v = realloc(s->parts, cap * sizeof *v);
        if (!v)
            return false;
        s->parts = v;
        s->parts_cap = cap;
    }
    for (uint32_t i = 0; i < len; i++)
        s->parts[i] = (struct k3_part){i + 1, i ? i - 1 : 0, t->byte_rank[(unsigned char)piece[i]]};
    s->heap_n = 0;
    for (uint32_t i = 0; i + 1 < len; i++)
        if (!consider(t, s, piece, i, len))
            return false;
    return true;
}

enum k3_status k3_bpe_encode(const struct k3_tokenizer *t, struct k3_bpe *s, const char *piece,
                             size_t len, struct k3_ids *out, struct k3_error *err)
{
    s->lookups++;
    const uint32_t whole = k3_vocab_find(t, piece, len);
    if (whole != K3_NO_RANK)
        return k3_ids_push(out, (int32_t)whole, err);
    bool ok = begin_piece(t, s, piece, len);
    while (ok && s->heap_n > 0)
        ok = merge_next(t, s, piece, len);
    if (!ok)
        return k3_fail_memory(err, "encoding a text", len * sizeof(struct k3_pair));
    enum k3_status st = K3_OK;
    for (uint32_t i = 0; st == K3_OK && i < len; i = s->parts[i].end)
        st = k3_ids_push(out, (int32_t)s->parts[i].rank, err);
    return st;
}

void k3_bpe_free(struct k3_bpe *s)
{
    free(s->parts);
    free(s->heap);
    *s = (struct k3_bpe){0};
}
