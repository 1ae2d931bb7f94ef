/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* crc32c.c - CRC-32C (Castagnoli): polynomial 0x1EDC6F41, reflected, all ones in and out.
 *
 * The processor's instruction, if it has one, handles eight bytes at a time; otherwise a table does
 * the same. A crc is linear, so each table entry is the sum of the entries of its bits, and the
 * compiler computes the table from eight numbers.
 *
 * The instruction takes three cycles, and a processor begins one in each: so three parts of the
 * input are computed at the same time. The crc of the first part is then moved over the others, by
 * a multiplication without carries with x^(8n - 33) for n bytes; the instruction reduces the
 * product together with the next eight bytes.
 *
 *     | first: size bytes | second: size | third: size | 8 bytes, with the products |  */
#include <string.h>

#include "base/hash.h"

#if defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

#define BIT(n, bit, entry) (((n) & (bit)) != 0 ? (entry) : 0u)
#define ENTRY(n)                                                                         \
    (BIT(n, 0x01, 0xF26B8303u) ^ BIT(n, 0x02, 0xE13B70F7u) ^ BIT(n, 0x04, 0xC79A971Fu) ^ \
     BIT(n, 0x08, 0x8AD958CFu) ^ BIT(n, 0x10, 0x105EC76Fu) ^ BIT(n, 0x20, 0x20BD8EDEu) ^ \
     BIT(n, 0x40, 0x417B1DBCu) ^ BIT(n, 0x80, 0x82F63B78u))
#define ENTRIES_4(n)  ENTRY(n), ENTRY((n) + 1), ENTRY((n) + 2), ENTRY((n) + 3)
#define ENTRIES_16(n) ENTRIES_4(n), ENTRIES_4((n) + 4), ENTRIES_4((n) + 8), ENTRIES_4((n) + 12)
#define ENTRIES_64(n) \
    ENTRIES_16(n), ENTRIES_16((n) + 16), ENTRIES_16((n) + 32), ENTRIES_16((n) + 48)

static const uint32_t table[256] = { ENTRIES_64(0), ENTRIES_64(64), ENTRIES_64(128),
                                     ENTRIES_64(192) };

uint32_t det_crc32c_portable(uint32_t crc, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    crc = ~crc;
    for (size_t i = 0; i < size; i++)
        crc = (crc >> 8) ^ table[(crc ^ bytes[i]) & 0xFF];
    return ~crc;
}

#if defined(__x86_64__)

#include <emmintrin.h>
#include <wmmintrin.h>

#define HARDWARE __attribute__((target("sse4.2,pclmul")))

static inline uint64_t load_word(const unsigned char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

/* Three parts of `size` bytes, a multiple of 8, and how far the first two are moved. */
struct crc_parts {
    size_t size;
    uint32_t first, second; /* x^(8 (2 size + 8) - 33), x^(8 (size + 8) - 33), reflected */
};
static const struct crc_parts large_parts = { 1024, 0xF7506984u, 0xFE314258u };
static const struct crc_parts small_parts = { 80, 0x1B3D8F29u, 0x083A6EECu };

HARDWARE static inline uint64_t multiply(uint64_t crc, uint32_t factor)
{
    return (uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(
        _mm_cvtsi64_si128((long long)crc), _mm_cvtsi64_si128((long long)factor), 0));
}

/* The crc over 3 size + 8 bytes. */
HARDWARE static inline uint64_t crc_of_parts(
    uint64_t crc, const unsigned char *bytes, const struct crc_parts *parts)
{
    const unsigned char *second = bytes + parts->size, *third = second + parts->size;
    uint64_t second_crc = 0, third_crc = 0, moved;

    for (size_t i = 0; i < parts->size; i += 8) {
        crc = __builtin_ia32_crc32di(crc, load_word(bytes + i));
        second_crc = __builtin_ia32_crc32di(second_crc, load_word(second + i));
        third_crc = __builtin_ia32_crc32di(third_crc, load_word(third + i));
    }
    moved = multiply(crc, parts->first) ^ multiply(second_crc, parts->second);
    return __builtin_ia32_crc32di(third_crc, load_word(third + parts->size) ^ moved);
}

HARDWARE static uint32_t crc32c_hardware(uint32_t crc, const unsigned char *bytes, size_t size)
{
    const size_t large = 3 * large_parts.size + 8, small = 3 * small_parts.size + 8;
    uint64_t running = ~crc;

    for (; size >= large; size -= large, bytes += large)
        running = crc_of_parts(running, bytes, &large_parts);
    for (; size >= small; size -= small, bytes += small)
        running = crc_of_parts(running, bytes, &small_parts);
    for (; size >= 8; size -= 8, bytes += 8)
        running = __builtin_ia32_crc32di(running, load_word(bytes));
    for (; size > 0; size--, bytes++)
        running = __builtin_ia32_crc32qi((uint32_t)running, *bytes);
    return ~(uint32_t)running;
}

uint32_t det_crc32c(uint32_t crc, const void *data, size_t size)
{
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
        return crc32c_hardware(crc, data, size);
    return det_crc32c_portable(crc, data, size);
}

#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)

uint32_t det_crc32c(uint32_t crc, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t word;

    crc = ~crc;
    for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        crc = __crc32cd(crc, word);
    }
    for (; size > 0; size--, bytes++)
        crc = __crc32cb(crc, *bytes);
    return ~crc;
}

#else

uint32_t det_crc32c(uint32_t crc, const void *data, size_t size)
{
    return det_crc32c_portable(crc, data, size);
}

#endif
