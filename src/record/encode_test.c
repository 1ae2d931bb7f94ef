/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* encode_test.c - the bytes of every type, golden, and what cannot be encoded. */
#include <detent/record.h>

#include <float.h>
#include <math.h>

#include "base/hash.h"
#include "lib/test.h"

/* One field of each kind for the value of a test, at offset 0 or after the presence. */
static const struct det_enum_value colors[] = { { "red", 0 }, { "dark-blue", -7 } };
static const struct det_enum color = { "color", colors, 2 };

/* The body of a record with the one field `field`, which is at `field.offset` in `value`. */
static void expect_body(
    struct det_field field, const void *value, uint32_t size, const char *body, size_t body_size)
{
    struct det_record record = { "one", 0, size, &field, 1 };
    uint8_t bytes[600];
    int64_t length;
    uint32_t crc;

    field.name = "x";
    assert_int_equal(det_record_check(&record, NULL), 0);
    length = det_record_encode(&record, value, bytes, sizeof bytes, NULL);
    assert_int_equal(length, 3 + body_size + 4);
    assert_true((size_t)length <= det_record_encoded_max(&record));
    assert_memory_equal(bytes, ((uint8_t[]){ 1, 1, (uint8_t)body_size }), 3);
    assert_memory_equal(bytes + 3, body, body_size);
    crc = det_crc32c(0, bytes, 3 + body_size);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(bytes[3 + body_size + i], crc >> (8 * i) & 255);
}

#define FIELD_OF(KIND, type, ...) \
    ((struct det_field){ .kind = DET_KIND_##KIND, .size = sizeof(type), __VA_ARGS__ })
#define EXPECT(field, type, number, body) \
    expect_body(field, &(type){ number }, sizeof(type), body, sizeof body - 1)

static void unsigned_numbers_are_short(void **state)
{
    (void)state;
    EXPECT(FIELD_OF(UNSIGNED, uint8_t, 0), uint8_t, 0, "\x00");
    EXPECT(FIELD_OF(UNSIGNED, uint8_t, 0), uint8_t, 255, "\xff");
    EXPECT(FIELD_OF(UNSIGNED, uint16_t, 0), uint16_t, 0, "\x00");
    EXPECT(FIELD_OF(UNSIGNED, uint16_t, 0), uint16_t, 127, "\x7f");
    EXPECT(FIELD_OF(UNSIGNED, uint16_t, 0), uint16_t, 128, "\x80\x01");
    EXPECT(FIELD_OF(UNSIGNED, uint16_t, 0), uint16_t, UINT16_MAX, "\xff\xff\x03");
    EXPECT(FIELD_OF(UNSIGNED, uint32_t, 0), uint32_t, UINT32_MAX, "\xff\xff\xff\xff\x0f");
    EXPECT(FIELD_OF(UNSIGNED, uint64_t, 0), uint64_t, 1999, "\xcf\x0f");
    EXPECT(
        FIELD_OF(UNSIGNED, uint64_t, 0), uint64_t, UINT64_MAX,
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

static void signed_numbers_are_zigzag(void **state)
{
    (void)state;
    EXPECT(FIELD_OF(SIGNED, int8_t, 0), int8_t, -1, "\xff");
    EXPECT(FIELD_OF(SIGNED, int8_t, 0), int8_t, INT8_MIN, "\x80");
    EXPECT(FIELD_OF(SIGNED, int16_t, 0), int16_t, -1, "\x01");
    EXPECT(FIELD_OF(SIGNED, int16_t, 0), int16_t, 1, "\x02");
    EXPECT(FIELD_OF(SIGNED, int16_t, 0), int16_t, INT16_MIN, "\xff\xff\x03");
    EXPECT(FIELD_OF(SIGNED, int32_t, 0), int32_t, INT32_MAX, "\xfe\xff\xff\xff\x0f");
    EXPECT(
        FIELD_OF(SIGNED, int64_t, 0), int64_t, INT64_MIN,
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    EXPECT(
        FIELD_OF(SIGNED, int64_t, 0), int64_t, INT64_MAX,
        "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

static void floats_are_their_bits_and_nans_are_one(void **state)
{
    (void)state;
    EXPECT(FIELD_OF(FLOAT, double, 0), double, 0.0, "\0\0\0\0\0\0\0\0");
    EXPECT(FIELD_OF(FLOAT, double, 0), double, -0.0, "\0\0\0\0\0\0\0\x80");
    EXPECT(FIELD_OF(FLOAT, double, 0), double, 1.0, "\0\0\0\0\0\0\xf0\x3f");
    EXPECT(FIELD_OF(FLOAT, double, 0), double, INFINITY, "\0\0\0\0\0\0\xf0\x7f");
    EXPECT(FIELD_OF(FLOAT, double, 0), double, NAN, "\0\0\0\0\0\0\xf8\x7f");
    EXPECT(FIELD_OF(FLOAT, double, 0), double, -NAN, "\0\0\0\0\0\0\xf8\x7f");
}

static void bools_and_times_have_a_fixed_size(void **state)
{
    (void)state;
    EXPECT(FIELD_OF(BOOL, bool, 0), bool, true, "\x01");
    EXPECT(FIELD_OF(BOOL, bool, 0), bool, false, "\x00");
    EXPECT(FIELD_OF(TIME, det_time, 0), det_time, 258, "\x02\x01\0\0\0\0\0\0");
    EXPECT(FIELD_OF(TIME, det_time, 0), det_time, -1, "\xff\xff\xff\xff\xff\xff\xff\xff");
}

static void texts_bytes_and_enums_have_a_length(void **state)
{
    DET_BYTES(3) bytes = { 2, { 0, 255, 9 } };
    int number = -7;

    (void)state;
    expect_body(FIELD_OF(TEXT, char[6], .capacity = 5), "", 6, "\0", 1);
    expect_body(FIELD_OF(TEXT, char[6], .capacity = 5), "a\xc3\xa4\0x", 6, "\3a\xc3\xa4", 4);
    expect_body(FIELD_OF(BYTES, bytes, .capacity = 3), &bytes, sizeof bytes, "\2\0\xff", 3);
    expect_body(
        FIELD_OF(ENUM, int, .enumeration.enumeration = &color), &number, sizeof number,
        "\x09"
        "dark-blue",
        10);
}

static void optional_fields_have_a_presence_byte(void **state)
{
    struct {
        uint16_t x;
        bool has_x;
    } value = { 300, true };
    struct det_field field = FIELD_OF(
        UNSIGNED, uint16_t, .flags = DET_FIELD_OPTIONAL,
        .presence = offsetof(__typeof__(value), has_x));

    (void)state;
    expect_body(field, &value, sizeof value, "\1\xac\2", 3);
    value.has_x = false;
    expect_body(field, &value, sizeof value, "\0", 1);
}

static void arrays_have_a_count(void **state)
{
    struct {
        uint32_t count;
        uint8_t x[4];
    } value = { 3, { 7, 8, 9, 10 } };
    struct det_field field =
        FIELD_OF(UNSIGNED, uint8_t, .flags = DET_FIELD_ARRAY, .offset = 4, .count_max = 4);

    (void)state;
    expect_body(field, &value, sizeof value, "\3\7\10\11", 4);
    value.count = 0;
    expect_body(field, &value, sizeof value, "\0", 1);
}

static void nested_records_have_their_version_once(void **state)
{
    static const struct det_field part_fields[] = { { .name = "y", .size = 1 } };
    static const struct det_record part = { "part", 200, 1, part_fields, 1 };
    struct {
        uint32_t count;
        uint8_t x[2];
    } value = { 2, { 5, 6 } };
    struct det_field field = { .kind = DET_KIND_RECORD, .size = 1, .record.record = &part };

    (void)state;
    expect_body(field, "\5", 1, "\xc8\1\5", 3);
    field = (struct det_field){ .kind = DET_KIND_RECORD,
                                .flags = DET_FIELD_ARRAY,
                                .offset = 4,
                                .size = 1,
                                .count_max = 2,
                                .record.record = &part };
    expect_body(field, &value, sizeof value, "\2\xc8\1\5\6", 5);
    value.count = 0;
    expect_body(field, &value, sizeof value, "\0", 1);
}

static void the_example_of_the_format_is_right(void **state)
{
    struct {
        uint64_t cents;
        char card[25], note[81];
        bool has_note;
    } value = { 1999, "4242", "", false };
    const struct det_field fields[] = {
        { .name = "card", .kind = DET_KIND_TEXT, .offset = 8, .size = 25, .capacity = 24 },
        { .name = "cents", .kind = DET_KIND_UNSIGNED, .size = 8 },
        { .name = "note",
          .kind = DET_KIND_TEXT,
          .flags = DET_FIELD_OPTIONAL,
          .offset = 33,
          .size = 81,
          .capacity = 80,
          .presence = 114 },
    };
    const struct det_record payment = { "payment", 2, sizeof value, fields, 3 };
    uint8_t bytes[64];

    (void)state;
    assert_int_equal(det_record_check(&payment, NULL), 0);
    assert_int_equal(det_record_encode(&payment, &value, bytes, sizeof bytes, NULL), 15);
    assert_memory_equal(bytes, "\x01\x02\x08\x04\x34\x32\x34\x32\xcf\x0f\x00\x0a\xc1\x69\xbf", 15);
}

static void empty_record_is_encoded_as_a_frame(void **state)
{
    uint8_t bytes[7];

    (void)state;
    assert_int_equal(det_record_encoded_max(det_empty_record()), 7);
    assert_int_equal(
        det_record_encode(det_empty_record(), &(struct det_empty){ 0 }, bytes, 7, NULL), 7);
    assert_memory_equal(bytes, "\1\1\0", 3);
}

/* A text of 300 bytes needs two bytes of length, which moves the body. */
static const struct det_field wide_fields[] = {
    { .name = "x", .kind = DET_KIND_TEXT, .size = 301, .capacity = 300 },
};
static const struct det_record wide = { "wide", 300, 301, wide_fields, 1 };

static void long_bodies_have_long_lengths(void **state)
{
    char value[301] = "";
    uint8_t bytes[400];

    (void)state;
    memset(value, 'v', 300);
    assert_int_equal(det_record_encoded_max(&wide), 1 + 2 + 2 + 302 + 4);
    assert_int_equal(det_record_encode(&wide, value, bytes, sizeof bytes, NULL), 311);
    assert_memory_equal(bytes, "\1\xac\2\xae\2\xac\2vvv", 10);
    assert_int_equal(bytes[306], 'v');
}

static void every_capacity_that_is_too_small_is_a_limit(void **state)
{
    struct det_error error;
    char value[301] = "";
    uint8_t whole[311];

    (void)state;
    memset(value, 'v', 300);
    for (size_t capacity = 0; capacity < 311; capacity++) {
        uint8_t *exact = malloc(capacity + 1);

        assert_int_equal(det_record_encode(&wide, value, exact, capacity, &error), DET_ERR_LIMIT);
        assert_int_equal(error.actual, 311);
        assert_int_equal(det_record_encode(&wide, value, exact, capacity, NULL), DET_ERR_LIMIT);
        free(exact);
    }
    assert_int_equal(det_record_encode(&wide, value, whole, 311, &error), 311);
}

static void values_that_are_not_valid_are_refused(void **state)
{
    struct det_error error;
    char value[301];
    uint8_t bytes[400];

    (void)state;
    memset(value, 'v', sizeof value);
    assert_int_equal(det_record_encode(&wide, value, bytes, sizeof bytes, &error), DET_ERR_RANGE);
    assert_string_equal(error.text, "wide.x: the text has no final NUL");
    memcpy(value, "\xff", 2);
    assert_int_equal(
        det_record_encode(&wide, value, bytes, sizeof bytes, &error), DET_ERR_MALFORMED);
}

static void encoded_size_bound_does_not_overflow(void **state)
{
    struct det_field fields[3][1];
    struct det_record records[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        fields[i][0] =
            (struct det_field){ .name = "x",
                                .kind = DET_KIND_RECORD,
                                .size = 1,
                                .flags = DET_FIELD_ARRAY,
                                .count_max = UINT32_MAX,
                                .record.record = i < 2 ? &records[i + 1] : det_empty_record() };
        records[i] = (struct det_record){ "huge", 1, 8, fields[i], 1 };
    }
    assert_true(det_record_encoded_max(&records[0]) == SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsigned_numbers_are_short),
        cmocka_unit_test(signed_numbers_are_zigzag),
        cmocka_unit_test(floats_are_their_bits_and_nans_are_one),
        cmocka_unit_test(bools_and_times_have_a_fixed_size),
        cmocka_unit_test(texts_bytes_and_enums_have_a_length),
        cmocka_unit_test(optional_fields_have_a_presence_byte),
        cmocka_unit_test(arrays_have_a_count),
        cmocka_unit_test(nested_records_have_their_version_once),
        cmocka_unit_test(the_example_of_the_format_is_right),
        cmocka_unit_test(empty_record_is_encoded_as_a_frame),
        cmocka_unit_test(long_bodies_have_long_lengths),
        cmocka_unit_test(every_capacity_that_is_too_small_is_a_limit),
        cmocka_unit_test(values_that_are_not_valid_are_refused),
        cmocka_unit_test(encoded_size_bound_does_not_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
