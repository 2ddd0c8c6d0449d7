/* pretoken.h - how a text is cut before byte pairs are merged: hard cuts, then the split pattern.
 * All texts here are well-formed UTF-8. */
#ifndef K3_PRETOKEN_H
#define K3_PRETOKEN_H

#include <stddef.h>
#include <stdint.h>

/* Class bits of a code point. UP and LO are the two letter classes of the pattern (Lm, Lo and marks
 * are in both, Han in none). None of L, N, S = punctuation. */
enum {
    K3_CH_HAN = 1,
    K3_CH_UP = 2,
    K3_CH_LO = 4,
    K3_CH_L = 8,
    K3_CH_N = 16,
    K3_CH_S = 32
};
unsigned k3_char_class(uint32_t cp); /* cp <= 0x10FFFF */

/* The length in bytes of the first piece of text[0..len) under the split pattern, len >= 1. What
 * stands before the text never matters; its end is the end for every look-ahead. */
size_t k3_next_piece(const char *text, size_t len);

/* The length in bytes of the first hard piece of text[0..len), len >= 1. *chunk_used is the state
 * between calls on one text: 0 before the first. */
size_t k3_next_hard_piece(const char *text, size_t len, size_t *chunk_used);

#endif
