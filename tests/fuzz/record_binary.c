/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* record_binary.c - fuzz target: bytes into records.
 *
 * The first byte chooses the record and whether the rest is a whole encoding or only a body, around
 * which a frame with the right checksum is put; random bytes would never get past it. What decodes
 * must be valid, equal to what comes back from bytes and from JSON, and, when it is of the current
 * version, have exactly the bytes it was read from. */
#define REC_SPEC "fuzz/record_fuzz.rec"
#include <detent/rec/declare.h>

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define BODY_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

/* What was decoded can be written in every form, and comes back. */
static void check_value(const struct det_record *record, const void *value)
{
    static uint8_t again[4096];
    static char text[65536];
    size_t length;

    require(record->size <= sizeof again);
    require(det_record_validate(record, value, NULL) == 0);
    length = det_record_to_json(record, value, DET_TEXT_REVEAL, text, sizeof text);
    require(length < sizeof text);
    /* A float that JSON does not have is written as null, which does not come back. */
    if (!strstr(text, "null")) {
        require(det_record_from_json(record, text, length, 0, again, NULL) == 0);
        require(det_record_equal(record, value, again));
    }
    require(det_record_print(record, value, DET_TEXT_INDENT, text, sizeof text) < sizeof text);
}

/* Bytes of the current version are what we write; the nested ones of an order may be older. */
static void check_bytes(
    const struct det_record *record, const void *value, const uint8_t *data, size_t size)
{
    static uint8_t bytes[BODY_MAX + 32], again[4096];
    int64_t written = det_record_encode(record, value, bytes, sizeof bytes, NULL);

    require(written > 0 && (size_t)written <= det_record_encoded_max(record));
    require(det_record_decode(record, bytes, (size_t)written, again, NULL) == 0);
    require(det_record_equal(record, value, again));
    if (record != fuzz_order_record() && data[1] == record->version)
        require((size_t)written == size && memcmp(bytes, data, size) == 0);
}

static void decode(const struct det_record *record, const uint8_t *data, size_t size)
{
    static uint8_t value[4096], zero[4096];
    struct det_error error = { 0 };

    require(record->size <= sizeof value);
    memset(value, 0x5a, sizeof value);
    if (det_record_decode(record, data, size, value, &error) == 0) {
        check_value(record, value);
        check_bytes(record, value, data, size);
        return;
    }
    require(error.code < 0 && error.text[0] && error.offset <= size);
    require(memcmp(value, zero, record->size) == 0);
}

/* A frame of the given version around a body; returns its size. */
static size_t frame(uint32_t version, const uint8_t *body, size_t size, uint8_t *target)
{
    size_t used = 0;
    uint32_t crc;

    target[used++] = 1;
    target[used++] = (uint8_t)version;
    if (size >= 128)
        target[used++] = (uint8_t)(size | 0x80);
    target[used++] = (uint8_t)(size >= 128 ? size >> 7 : size);
    if (size)
        memcpy(target + used, body, size);
    used += size;
    crc = det_crc32c(0, target, used);
    for (unsigned i = 0; i < 4; i++)
        target[used++] = (uint8_t)(crc >> (8 * i));
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[BODY_MAX + 32];
    const struct det_record *records[] = { fuzz_numbers_record(), fuzz_line_record(),
                                           fuzz_order_record() };
    const struct det_record *record;

    if (size == 0 || size > BODY_MAX)
        return 0;
    record = records[(data[0] >> 4) % 3];
    if (data[0] & 8)
        decode(record, data + 1, size - 1);
    else
        decode(record, bytes, frame(data[0] & 7, data + 1, size - 1, bytes));
    return 0;
}
