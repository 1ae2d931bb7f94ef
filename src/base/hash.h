/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* hash.h - hashes of bytes: crc32c for formats, a fast keyed one for maps and traces. */
#ifndef DET_BASE_HASH_H
#define DET_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli) of `size` bytes continuing from `crc` (start with 0). Uses the processor's
 * instruction if available; the result is the same everywhere. */
uint32_t det_crc32c(uint32_t crc, const void *data, size_t size);
/* Portable variant: the fallback of det_crc32c(), and its reference in tests. */
uint32_t det_crc32c_portable(uint32_t crc, const void *data, size_t size);
/* Non-cryptographic 64-bit hash; the seed makes maps unpredictable to attackers. */
uint64_t det_hash64(const void *data, size_t size, uint64_t seed);
/* Mixes one number into a running hash; order matters. */
uint64_t det_hash_mix(uint64_t hash, uint64_t value);

#endif
