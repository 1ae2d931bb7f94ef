/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* record_json.c - fuzz target: text into records.
 *
 * The first byte chooses the record and whether fields may be missing; the rest is JSON. What is
 * taken must be valid and come back from JSON and from bytes as it was; what is refused must leave
 * nothing behind. A text that is not JSON at all must not be taken. */
#define REC_SPEC "fuzz/record_fuzz.rec"
#include <detent/rec/declare.h>

#include <stdlib.h>
#include <string.h>

#include "record/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

/* Whether the text is JSON. Along the way, strings without escapes are never longer. */
static bool is_json(const char *text, size_t size)
{
    struct det_error error = { 0 };
    struct det_json_token token;
    struct det_json_scanner json;

    det_json_scanner_init(&json, text, size);
    do {
        if (det_json_scan(&json, &token, &error) < 0) {
            require(error.code < 0 && error.offset <= size);
            return false;
        }
        require(token.offset <= size);
        require(det_json_unescape(token.text, NULL, 0) <= token.text.size);
    } while (token.kind != DET_JSON_END);
    return true;
}

static void check_value(const struct det_record *record, const void *value)
{
    static uint8_t bytes[8192], again[4096];
    static char text[65536];
    int64_t size;
    size_t length;

    require(record->size <= sizeof again);
    require(det_record_validate(record, value, NULL) == 0);
    length = det_record_to_json(record, value, DET_TEXT_REVEAL, text, sizeof text);
    require(length < sizeof text && is_json(text, length));
    require(det_record_from_json(record, text, length, 0, again, NULL) == 0);
    require(det_record_equal(record, value, again));
    size = det_record_encode(record, value, bytes, sizeof bytes, NULL);
    require(size > 0);
    require(det_record_decode(record, bytes, (size_t)size, again, NULL) == 0);
    require(det_record_equal(record, value, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t value[4096], zero[4096];
    const struct det_record *records[] = { fuzz_numbers_record(), fuzz_line_record(),
                                           fuzz_order_record() };
    const struct det_record *record;
    struct det_error error = { 0 };
    const char *text;
    unsigned flags;

    if (size == 0)
        return 0;
    record = records[(data[0] >> 1) % 3];
    flags = data[0] & 1 ? DET_TEXT_PARTIAL : 0;
    text = (const char *)data + 1;
    memset(value, 0x5a, sizeof value);
    if (det_record_from_json(record, text, size - 1, flags, value, &error) < 0) {
        require(error.code < 0 && error.text[0] && error.offset <= size - 1);
        require(memcmp(value, zero, record->size) == 0);
        (void)is_json(text, size - 1);
        return 0;
    }
    require(is_json(text, size - 1));
    check_value(record, value);
    return 0;
}
