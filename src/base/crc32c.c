/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* crc32c.c - CRC-32C (Castagnoli): polynomial 0x1EDC6F41, reflected, all ones in and out.
 *
 * The processor's instruction, if it has one, handles eight bytes at a time; otherwise a table does
 * the same. A crc is linear, so each table entry is the sum of the entries of its bits, and the
 * compiler computes the table from eight numbers. */
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

__attribute__((target("sse4.2"))) static uint32_t crc32c_hardware(
    uint32_t crc, const unsigned char *bytes, size_t size)
{
    uint64_t running = ~crc;
    uint64_t word;

    for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        running = __builtin_ia32_crc32di(running, word);
    }
    for (; size > 0; size--, bytes++)
        running = __builtin_ia32_crc32qi((uint32_t)running, *bytes);
    return ~(uint32_t)running;
}

uint32_t det_crc32c(uint32_t crc, const void *data, size_t size)
{
    if (__builtin_cpu_supports("sse4.2"))
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
