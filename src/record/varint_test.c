/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* varint_test.c - numbers of every size into bytes and out, at the end of what is there too. */
#include "record/varint.h"

#include "lib/test.h"

/* The smallest and the largest number of each size, and the size of those. */
static uint64_t smallest(size_t size)
{
    return size > 1 ? (uint64_t)1 << (7 * (size - 1)) : 0;
}

static uint64_t largest(size_t size)
{
    return size < DET_VARINT_MAX ? smallest(size + 1) - 1 : UINT64_MAX;
}

static void expect(uint64_t number, size_t size)
{
    uint8_t bytes[DET_VARINT_MAX + 8];
    struct det_varint read;

    assert_int_equal(det_varint_size(number), size);
    for (size_t capacity = 0; capacity <= sizeof bytes; capacity++) {
        struct det_byte_space space = { bytes, capacity };

        memset(bytes, 0x5a, sizeof bytes);
        assert_int_equal(det_put_varint(space, 0, number), size);
        assert_true(bytes[capacity >= size ? size : 0] == 0x5a);
        if (capacity < size)
            continue;
        struct det_byte_source source = { .data = bytes, .size = capacity };

        read = det_get_varint(&source, 0);
        assert_int_equal(read.end, size);
        assert_true(read.number == number);
    }
}

static void varints_of_every_size_round_trip(void **state)
{
    (void)state;
    for (size_t size = 1; size <= DET_VARINT_MAX; size++) {
        expect(smallest(size), size);
        expect(largest(size), size);
        expect(smallest(size) + (largest(size) - smallest(size)) / 3, size);
    }
}

static void expect_failure(const uint8_t *bytes, size_t size, int code, size_t offset)
{
    struct det_byte_source source = { .data = bytes, .size = size };

    assert_true(det_get_varint(&source, 1).end == DET_NOWHERE);
    assert_int_equal(source.error, code);
    assert_int_equal(source.error_offset, offset);
}

static void truncated_and_overlong_varints_are_refused(void **state)
{
    uint8_t bytes[16];

    (void)state;
    memset(bytes, 0xff, sizeof bytes);
    for (size_t size = 1; size <= DET_VARINT_MAX; size++)
        expect_failure(bytes, size, DET_ERR_TRUNCATED, size);
    expect_failure(bytes, sizeof bytes, DET_ERR_MALFORMED, 1);
    for (size_t last = 2; last <= DET_VARINT_MAX; last++) {
        bytes[last] = 0;
        expect_failure(bytes, sizeof bytes, DET_ERR_MALFORMED, 1);
        bytes[last] = 0xff;
    }
}

static void zigzag_round_trips(void **state)
{
    const int64_t numbers[] = { 0, 1, -1, 2, -2, INT64_MAX, INT64_MIN };

    (void)state;
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        assert_true(det_unzigzag(det_zigzag(numbers[i])) == numbers[i]);
    assert_int_equal(det_zigzag(-3), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_of_every_size_round_trip),
        cmocka_unit_test(truncated_and_overlong_varints_are_refused),
        cmocka_unit_test(zigzag_round_trips),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
