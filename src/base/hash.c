/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* hash.c - a keyed 64-bit hash made of 64 x 64 -> 128 bit products.
 *
 * A product folded onto itself mixes every bit of both factors. Each factor is first hidden by a
 * number made from the seed, so that an attacker cannot choose bytes that make a factor zero. Keys
 * of up to 16 bytes take two (possibly overlapping) reads and two products. The bytes are read as
 * little endian: a hash in a trace is the same on every processor. */
#include "base/hash.h"

#include <string.h>

#include "base/checked.h"

#define KEY_A UINT64_C(0x9E3779B97F4A7C15)
#define KEY_B UINT64_C(0xD1B54A32D192ED03)
#define KEY_C UINT64_C(0xAEF17502108EF2D9)

static inline uint64_t rotate_left(uint64_t value, unsigned int bits)
{
    return (value << bits) | (value >> (64 - bits));
}

static inline uint64_t fold_product(uint64_t a, uint64_t b)
{
    det_u128 product = (det_u128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t read_8(const unsigned char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline uint64_t read_4(const unsigned char *bytes)
{
    uint32_t word;

    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap32(word);
#endif
    return word;
}

/* One to three bytes: reads the first, the middle and the last. */
static inline uint64_t read_few(const unsigned char *bytes, size_t size)
{
    return ((uint64_t)bytes[0] << 16) | ((uint64_t)bytes[size / 2] << 8) | bytes[size - 1];
}

uint64_t det_hash64(const void *data, size_t size, uint64_t seed)
{
    const unsigned char *bytes = data;
    uint64_t hidden_a = seed ^ KEY_A;
    uint64_t hidden_b = rotate_left(seed, 32) ^ KEY_B;
    uint64_t a = 0, b = 0;

    if (size > 16) {
        size_t left = size;

        for (; left > 16; left -= 16, bytes += 16)
            hidden_b = fold_product(read_8(bytes) ^ hidden_a, read_8(bytes + 8) ^ hidden_b) + KEY_C;
        a = read_8(bytes + left - 16);
        b = read_8(bytes + left - 8);
    } else if (size >= 8) {
        a = read_8(bytes);
        b = read_8(bytes + size - 8);
    } else if (size >= 4) {
        a = read_4(bytes);
        b = read_4(bytes + size - 4);
    } else if (size > 0) {
        a = read_few(bytes, size);
    }
    return fold_product(
        fold_product(a ^ hidden_a, b ^ hidden_b) ^ hidden_a, (uint64_t)size ^ KEY_C);
}

/* For a given value this is a bijection of the hash, and vice versa, so a long run of mixes loses
 * no information. */
uint64_t det_hash_mix(uint64_t hash, uint64_t value)
{
    hash = (rotate_left(hash, 23) + KEY_A) ^ value;
    hash = (hash ^ (hash >> 32)) * KEY_B;
    hash = (hash ^ (hash >> 29)) * KEY_C;
    return hash ^ (hash >> 32);
}
