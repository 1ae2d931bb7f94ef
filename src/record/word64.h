/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* word64.h - processes eight bytes at a time: little-endian numbers, and the ASCII prefix of a
 * text. */
#ifndef DET_RECORD_WORD64_H
#define DET_RECORD_WORD64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DET_WORD_LOWS  UINT64_C(0x0101010101010101)
#define DET_WORD_HIGHS UINT64_C(0x8080808080808080)

static inline uint64_t det_word_swapped(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(word);
#else
    return word;
#endif
}

static inline uint64_t det_word_load(const uint8_t *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return det_word_swapped(word);
}

static inline void det_word_store(uint8_t *bytes, uint64_t word)
{
    word = det_word_swapped(word);
    memcpy(bytes, &word, sizeof word);
}

/* Returns nonzero if a byte of the word is 0 or above 7f. */
static inline uint64_t det_word_not_plain(uint64_t word)
{
    return ((word - DET_WORD_LOWS) | word) & DET_WORD_HIGHS;
}

/* Copies, and returns whether all bytes are nonzero ASCII. More than eight bytes end with a word
 * that overlaps the previous one. */
static inline bool det_copy_plain(uint8_t *target, const uint8_t *source, size_t size)
{
    uint64_t word, odd = 0;
    size_t at = 0;

    if (size < 8) {
        for (; at < size; at++) {
            target[at] = source[at];
            odd |= ((source[at] - 1u) | source[at]) & ~0x7fu;
        }
        return odd == 0;
    }
    for (; at + 8 < size; at += 8) {
        word = det_word_load(source + at);
        odd |= det_word_not_plain(word);
        det_word_store(target + at, word);
    }
    word = det_word_load(source + size - 8);
    det_word_store(target + size - 8, word);
    return (odd | det_word_not_plain(word)) == 0;
}

#endif
