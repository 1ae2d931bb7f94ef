/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* decode_test.c - reading bytes back: versions, and everything the writer cannot have written. */
#define REC_SPEC "record/template_test.rec"
#include <detent/rec/declare.h>

#include "base/hash.h"
#include "lib/test.h"

/* A frame around a body, with a checksum that is right. */
static size_t frame(uint32_t version, const char *body, size_t size, uint8_t *target)
{
    uint32_t crc;

    assert_true(size < 128 && version < 128);
    target[0] = 1;
    target[1] = (uint8_t)version;
    target[2] = (uint8_t)size;
    memcpy(target + 3, body, size);
    crc = det_crc32c(0, target, size + 3);
    for (unsigned i = 0; i < 4; i++)
        target[size + 3 + i] = (uint8_t)(crc >> (8 * i));
    return size + 7;
}

/* Decodes from memory that ends exactly where the bytes do, so that reading on is found. */
static int decode(
    const struct det_record *record, const void *bytes, size_t size, void *value,
    struct det_error *reterr)
{
    uint8_t *exact = malloc(size ? size : 1);
    int r;

    memcpy(exact, bytes, size);
    r = det_record_decode(record, exact, size, value, reterr);
    free(exact);
    return r;
}

static bool is_zero(const void *value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((const uint8_t *)value)[i])
            return false;
    return true;
}

/* Decoding fails so, and leaves the value all zero. */
static void expect_failure(
    const struct det_record *record, const void *bytes, size_t size, int code, size_t offset)
{
    uint8_t value[1024];
    struct det_error error = { 0 };
    int r;

    assert_true(record->size <= sizeof value);
    memset(value, 0x5a, sizeof value);
    r = decode(record, bytes, size, value, &error);
    if (r != code || error.code != code || error.offset != offset)
        fail_msg(
            "%s at %zu expected, not %s at %zu: %s", det_error_name(code), offset,
            det_error_name(r), (size_t)error.offset, error.text);
    assert_int_equal(decode(record, bytes, size, value, NULL), code);
    assert_true(is_zero(value, record->size));
    assert_int_equal(value[record->size], 0x5a);
}

/* A body of a record with one field is refused so; the offset counts from the body's start. */
static void expect_body(
    struct det_field field, const char *body, size_t size, int code, size_t offset)
{
    struct det_record record = { "one", 1, field.size, &field, 1 };
    uint8_t bytes[160];

    field.name = "x";
    if (field.flags & DET_FIELD_ARRAY)
        record.size = 4 + field.size * field.count_max;
    else if (field.flags & DET_FIELD_OPTIONAL)
        record.size = field.size + 1;
    assert_int_equal(det_record_check(&record, NULL), 0);
    expect_failure(&record, bytes, frame(1, body, size, bytes), code, 3 + offset);
}

#define BODY(field, text, code, offset) \
    expect_body(field, text, sizeof text - 1, DET_ERR_##code, offset)
#define FIELD_OF(KIND, type, ...) \
    ((struct det_field){ .kind = DET_KIND_##KIND, .size = sizeof(type), __VA_ARGS__ })

static struct every full(void)
{
    struct every value = {
        .a = 255,
        .b = UINT16_MAX,
        .c = UINT32_MAX,
        .d = UINT64_MAX,
        .e = INT8_MIN,
        .f = INT16_MIN,
        .g = INT32_MIN,
        .h = INT64_MIN,
        .i = -1e300,
        .j = true,
        .k = DET_NEVER,
        .l = "\xf0\x9f\x98\x80",
        .m = { 7, { 1, 2, 3, 4, 5, 6, 7 } },
        .n = COLOR_BLUE,
        .o = { "\xe2\x82\xac", 12 },
        .secret = "4242424242424242",
        .has_note = true,
        .note = "a note",
        .has_when = true,
        .when = 13,
        .lines_count = 4,
        .lines = { { "one", 1 }, { "two", 2 }, { "", 3 }, { "x", 4 } },
        .words_count = 2,
        .words = { "abc", "" },
        .flags_count = 3,
        .flags = { true, false, true },
        .blobs_count = 2,
        .blobs = { { 1, { 7 } }, { 2, { 8, 9 } } },
        .colors_count = 5,
        .colors = { COLOR_RED, COLOR_BLUE, COLOR_GREEN, COLOR_GREEN, COLOR_RED },
    };

    return value;
}

static void full_record_round_trips(void **state)
{
    struct every value = full(), again;
    uint8_t bytes[512], twice[512];
    int64_t size, size_twice;

    (void)state;
    size = det_record_encode(every_record(), &value, bytes, sizeof bytes, NULL);
    assert_true(size > 0);
    memset(&again, 0x5a, sizeof again);
    assert_int_equal(decode(every_record(), bytes, (size_t)size, &again, NULL), 0);
    assert_true(det_record_equal(every_record(), &value, &again));
    size_twice = det_record_encode(every_record(), &again, twice, sizeof twice, NULL);
    assert_int_equal(size_twice, size);
    assert_memory_equal(bytes, twice, (size_t)size);
}

static void absent_and_unused_memory_is_zero(void **state)
{
    struct every value = { .l = "ab", .lines_count = 1 }, again;
    uint8_t bytes[512];
    int64_t size;

    (void)state;
    memset(value.note, 'x', sizeof value.note);
    memset(&value.lines[1], 'x', sizeof value.lines[1]);
    value.l[4] = 'x';
    size = det_record_encode(every_record(), &value, bytes, sizeof bytes, NULL);
    assert_true(size > 0);
    memset(&again, 0x5a, sizeof again);
    assert_int_equal(decode(every_record(), bytes, (size_t)size, &again, NULL), 0);
    assert_true(is_zero(again.note, sizeof again.note));
    assert_true(is_zero(&again.lines[1], sizeof again.lines[1]));
    assert_true(is_zero(again.l + 2, 4));
}

static void every_truncation_is_found(void **state)
{
    struct every value = full();
    uint8_t bytes[512];
    int64_t size = det_record_encode(every_record(), &value, bytes, sizeof bytes, NULL);

    (void)state;
    assert_true(size > 128);
    for (size_t cut = 0; cut < (size_t)size; cut++)
        expect_failure(every_record(), bytes, cut, DET_ERR_TRUNCATED, cut);
}

static void every_flipped_bit_is_found(void **state)
{
    struct every value = full(), again;
    uint8_t bytes[512];
    int64_t size = det_record_encode(every_record(), &value, bytes, sizeof bytes, NULL);

    (void)state;
    for (size_t bit = 0; bit < (size_t)size * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_true(decode(every_record(), bytes, (size_t)size, &again, NULL) < 0);
        assert_true(is_zero(&again, sizeof again));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_int_equal(decode(every_record(), bytes, (size_t)size, &again, NULL), 0);
}

static void frame_is_checked_before_the_body(void **state)
{
    const struct det_record *empty = det_empty_record();
    uint8_t bytes[64];
    size_t size = frame(1, "", 0, bytes);
    struct det_empty value;
    struct det_error error;

    (void)state;
    assert_int_equal(decode(empty, bytes, size, &value, NULL), 0);
    bytes[size] = 0;
    expect_failure(empty, bytes, size + 1, DET_ERR_MALFORMED, size);
    bytes[6] ^= 1;
    expect_failure(empty, bytes, size, DET_ERR_CORRUPT, 3);
    expect_failure(empty, "\0\1\0    ", 7, DET_ERR_MALFORMED, 0);
    expect_failure(empty, "\1\x81\0\0    ", 8, DET_ERR_MALFORMED, 1);
    expect_failure(empty, "\1\xff\xff\xff\xff\x1f\0    ", 11, DET_ERR_MALFORMED, 1);
    expect_failure(empty, "\1\1\x80\0    ", 8, DET_ERR_MALFORMED, 2);
    expect_failure(
        empty, "\1\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\2    ", 16, DET_ERR_MALFORMED, 2);
    expect_failure(
        empty, "\1\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\1    ", 16, DET_ERR_TRUNCATED, 16);
    expect_failure(empty, "\2\1\0    ", 7, DET_ERR_VERSION, 0);
    assert_int_equal(decode(empty, "\2\1\0    ", 7, &value, &error), DET_ERR_VERSION);
    assert_int_equal(error.expected, 1);
    assert_int_equal(error.actual, 2);
    expect_failure(empty, bytes, frame(0, "", 0, bytes), DET_ERR_MALFORMED, 1);
    expect_failure(empty, bytes, frame(1, "x", 1, bytes), DET_ERR_MALFORMED, 3);
    assert_int_equal(det_record_decode(empty, NULL, 0, &value, NULL), DET_ERR_TRUNCATED);
}

static void numbers_have_one_form(void **state)
{
    (void)state;
    BODY(FIELD_OF(UNSIGNED, uint64_t, 0), "\x80\x00", MALFORMED, 0);
    BODY(FIELD_OF(UNSIGNED, uint64_t, 0), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", MALFORMED, 0);
    BODY(FIELD_OF(UNSIGNED, uint64_t, 0), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81", MALFORMED, 0);
    BODY(FIELD_OF(SIGNED, int64_t, 0), "\x81\x80\x00", MALFORMED, 0);
    BODY(FIELD_OF(FLOAT, double, 0), "\1\0\0\0\0\0\xf8\x7f", MALFORMED, 0);
    BODY(FIELD_OF(FLOAT, double, 0), "\0\0\0\0\0\0\xf8\xff", MALFORMED, 0);
    BODY(FIELD_OF(BOOL, bool, 0), "\2", MALFORMED, 0);
}

static void numbers_fit_their_fields(void **state)
{
    (void)state;
    BODY(FIELD_OF(UNSIGNED, uint16_t, 0), "\x80\x80\x04", RANGE, 0);
    BODY(FIELD_OF(UNSIGNED, uint32_t, 0), "\x80\x80\x80\x80\x10", RANGE, 0);
    BODY(FIELD_OF(SIGNED, int16_t, 0), "\x80\x80\x04", RANGE, 0);
    BODY(FIELD_OF(SIGNED, int16_t, 0), "\x81\x80\x04", RANGE, 0);
    BODY(FIELD_OF(SIGNED, int32_t, 0), "\x80\x80\x80\x80\x10", RANGE, 0);
}

static void a_body_that_ends_early_is_malformed(void **state)
{
    (void)state;
    BODY(FIELD_OF(UNSIGNED, uint8_t, 0), "", MALFORMED, 0);
    BODY(FIELD_OF(UNSIGNED, uint64_t, 0), "\x80", MALFORMED, 1);
    BODY(FIELD_OF(FLOAT, double, 0), "1234567", MALFORMED, 7);
    BODY(FIELD_OF(TIME, det_time, 0), "1234567", MALFORMED, 7);
    BODY(FIELD_OF(BOOL, bool, 0), "", MALFORMED, 0);
    BODY(FIELD_OF(TEXT, char[6], .capacity = 5), "", MALFORMED, 0);
    BODY(FIELD_OF(TEXT, char[6], .capacity = 5), "\3ab", MALFORMED, 3);
    BODY(FIELD_OF(BYTES, char[12], .capacity = 7), "\3ab", MALFORMED, 3);
    BODY(FIELD_OF(ENUM, int, .enumeration.get = color_enum), "\3re", MALFORMED, 3);
    BODY(FIELD_OF(BOOL, bool, .flags = DET_FIELD_OPTIONAL, .presence = 1), "", MALFORMED, 0);
    BODY(
        FIELD_OF(BOOL, bool, .flags = DET_FIELD_ARRAY, .offset = 4, .count_max = 2), "", MALFORMED,
        0);
    BODY(FIELD_OF(RECORD, struct line, .record.get = line_record), "", MALFORMED, 0);
}

static void a_body_that_continues_is_malformed(void **state)
{
    (void)state;
    BODY(FIELD_OF(UNSIGNED, uint8_t, 0), "ab", MALFORMED, 1);
}

static void texts_are_utf8_without_zero_and_fit(void **state)
{
    struct det_field field = FIELD_OF(TEXT, char[6], .capacity = 5);

    (void)state;
    BODY(field, "\6abcdef", RANGE, 0);
    BODY(field, "\3ab\xff", MALFORMED, 3);
    BODY(field, "\3a\0b", MALFORMED, 2);
    BODY(field, "\3\xed\xa0\x80", MALFORMED, 1);
    BODY(field, "\2\xc0\x80", MALFORMED, 1);
    BODY(FIELD_OF(BYTES, char[12], .capacity = 7), "\x08xxxxxxxx", RANGE, 0);
}

static void invalid_enums_presences_and_counts_are_rejected(void **state)
{
    (void)state;
    BODY(FIELD_OF(ENUM, int, .enumeration.get = color_enum), "\4grey", RANGE, 0);
    BODY(FIELD_OF(ENUM, int, .enumeration.get = color_enum), "\x81\1", RANGE, 0);
    BODY(FIELD_OF(BOOL, bool, .flags = DET_FIELD_OPTIONAL, .presence = 1), "\2\1", MALFORMED, 0);
    BODY(
        FIELD_OF(BOOL, bool, .flags = DET_FIELD_ARRAY, .offset = 4, .count_max = 2), "\3\1\1\1",
        RANGE, 0);
    BODY(
        FIELD_OF(BOOL, bool, .flags = DET_FIELD_ARRAY, .offset = 4, .count_max = 2), "\x80\0",
        MALFORMED, 0);
}

/* Three versions of one record, as three programs know it. */
struct growing {
    uint8_t a, b, c;
};
static const struct det_field growing_fields[] = {
    { .name = "c", .size = 1, .offset = 2, .since = 3 },
    { .name = "a", .size = 1, .offset = 0, .since = 1 },
    { .name = "b", .size = 1, .offset = 1, .since = 2 },
};
static const struct det_record growing[] = {
    { "growing", 1, 3, growing_fields + 1, 1 },
    { "growing", 2, 3, growing_fields + 1, 2 },
    { "growing", 3, 3, growing_fields, 3 },
};

static void older_versions_are_read_and_new_fields_are_zero(void **state)
{
    const struct growing value = { 1, 2, 3 };
    struct growing again;
    uint8_t bytes[16];
    int64_t size;

    (void)state;
    for (unsigned writer = 0; writer < 3; writer++) {
        assert_int_equal(det_record_check(&growing[writer], NULL), 0);
        size = det_record_encode(&growing[writer], &value, bytes, sizeof bytes, NULL);
        assert_int_equal(size, 7 + writer + 1);
        for (unsigned reader = writer; reader < 3; reader++) {
            memset(&again, 0x5a, sizeof again);
            assert_int_equal(decode(&growing[reader], bytes, (size_t)size, &again, NULL), 0);
            assert_int_equal(again.a, 1);
            assert_int_equal(again.b, writer >= 1 ? 2 : 0);
            assert_int_equal(again.c, writer >= 2 ? 3 : 0);
        }
    }
}

static void newer_versions_are_refused(void **state)
{
    const struct growing value = { 1, 2, 3 };
    struct growing again;
    struct det_error error;
    uint8_t bytes[16];
    int64_t size = det_record_encode(&growing[2], &value, bytes, sizeof bytes, NULL);

    (void)state;
    expect_failure(&growing[0], bytes, (size_t)size, DET_ERR_VERSION, 1);
    assert_int_equal(decode(&growing[0], bytes, (size_t)size, &again, &error), DET_ERR_VERSION);
    assert_int_equal(error.expected, 1);
    assert_int_equal(error.actual, 3);
}

/* The record that holds growing ones, with the version of them that a program knows. */
static struct det_record holder_of(const struct det_record *part, struct det_field *field)
{
    *field = (struct det_field){ .name = "parts",
                                 .kind = DET_KIND_RECORD,
                                 .flags = DET_FIELD_ARRAY,
                                 .offset = 4,
                                 .size = 3,
                                 .count_max = 2,
                                 .record.record = part };
    return (struct det_record){ "holder", 1, 10, field, 1 };
}

static void nested_records_have_versions_of_their_own(void **state)
{
    struct {
        uint32_t count;
        struct growing parts[2];
        uint8_t padding[2];
    } value = { 2, { { 1, 2, 3 }, { 4, 5, 6 } }, { 0 } }, again;
    struct det_field old_field, new_field;
    struct det_record old = holder_of(&growing[1], &old_field);
    struct det_record new = holder_of(&growing[2], &new_field);
    struct det_error error;
    uint8_t bytes[32];
    int64_t size;

    (void)state;
    size = det_record_encode(&old, &value, bytes, sizeof bytes, NULL);
    assert_int_equal(size, 7 + 2 + 2 * 2);
    assert_int_equal(decode(&new, bytes, (size_t)size, &again, NULL), 0);
    assert_int_equal(again.parts[1].b, 5);
    assert_int_equal(again.parts[1].c, 0);
    size = det_record_encode(&new, &value, bytes, sizeof bytes, NULL);
    expect_failure(&old, bytes, (size_t)size, DET_ERR_VERSION, 4);
    assert_int_equal(decode(&old, bytes, (size_t)size, &again, &error), DET_ERR_VERSION);
    assert_int_equal(error.expected, 2);
    assert_int_equal(error.actual, 3);
    expect_failure(&new, bytes, frame(1, "\1\0\1", 3, bytes), DET_ERR_MALFORMED, 4);
}

static void errors_name_the_field_and_the_byte(void **state)
{
    struct det_error error;
    struct growing value;
    struct line line;
    uint8_t bytes[32];

    (void)state;
    assert_int_equal(
        decode(line_record(), bytes, frame(1, "\1\xff\0", 3, bytes), &line, &error),
        DET_ERR_MALFORMED);
    assert_string_equal(error.text, "line.name: the bytes are not of the canonical form at byte 4");
    assert_int_equal(
        decode(&growing[1], bytes, frame(2, "\1", 1, bytes), &value, &error), DET_ERR_MALFORMED);
    assert_string_equal(error.text, "growing.b: the body ends inside it at byte 4");
}

/* The place in the text, whatever is wrong there. */
static void expect_place(
    const struct det_record *record, const char *body, size_t size, int code, const char *place)
{
    struct det_error error;
    uint8_t bytes[160], value[1024];

    assert_int_equal(decode(record, bytes, frame(1, body, size, bytes), value, &error), code);
    assert_memory_equal(error.text, place, strlen(place));
}

static void errors_name_the_element(void **state)
{
    struct det_field field = { .name = "x", .flags = DET_FIELD_ARRAY, .count_max = 3, .offset = 4 };
    struct det_record record = { "one", 1, 4 + 3 * sizeof(struct line), &field, 1 };

    (void)state;
    field.kind = DET_KIND_BOOL;
    field.size = 1;
    expect_place(&record, "\4", 1, DET_ERR_RANGE, "one.x: ");
    expect_place(&record, "\3\1\1\2", 4, DET_ERR_MALFORMED, "one.x[2]: ");
    field.kind = DET_KIND_RECORD;
    field.size = sizeof(struct line);
    field.record.get = line_record;
    expect_place(&record, "\2\2\1a\1\1b\1", 8, DET_ERR_VERSION, "one.x: ");
    expect_place(&record, "\2\1\1a\1\1b\x80", 8, DET_ERR_MALFORMED, "one.x[1].pieces: ");
    expect_place(&record, "\2\1\1a\1", 5, DET_ERR_MALFORMED, "one.x[1].name: ");
    field.flags = 0;
    expect_place(&record, "\1\1\0\1", 4, DET_ERR_MALFORMED, "one.x.name: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_record_round_trips),
        cmocka_unit_test(absent_and_unused_memory_is_zero),
        cmocka_unit_test(every_truncation_is_found),
        cmocka_unit_test(every_flipped_bit_is_found),
        cmocka_unit_test(frame_is_checked_before_the_body),
        cmocka_unit_test(numbers_have_one_form),
        cmocka_unit_test(numbers_fit_their_fields),
        cmocka_unit_test(a_body_that_ends_early_is_malformed),
        cmocka_unit_test(a_body_that_continues_is_malformed),
        cmocka_unit_test(texts_are_utf8_without_zero_and_fit),
        cmocka_unit_test(invalid_enums_presences_and_counts_are_rejected),
        cmocka_unit_test(older_versions_are_read_and_new_fields_are_zero),
        cmocka_unit_test(newer_versions_are_refused),
        cmocka_unit_test(nested_records_have_versions_of_their_own),
        cmocka_unit_test(errors_name_the_field_and_the_byte),
        cmocka_unit_test(errors_name_the_element),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
