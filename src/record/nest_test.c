/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* nest_test.c - the limit of nesting, both sides of it. */
#include <detent/record.h>

#include "lib/test.h"

/* Records in records, as deep as permitted; each has a byte before and after the two inside. */
struct deep {
    struct det_field fields[DET_RECORD_DEPTH_MAX][3];
    struct det_record records[DET_RECORD_DEPTH_MAX];
};

static void make_deep(struct deep *deep)
{
    for (size_t i = DET_RECORD_DEPTH_MAX; i-- > 0;) {
        struct det_record *record = &deep->records[i];
        uint32_t inside = i + 1 < DET_RECORD_DEPTH_MAX ? record[1].size : 1;

        deep->fields[i][0] = (struct det_field){ .name = "first", .size = 1 };
        deep->fields[i][1] =
            (struct det_field){ .name = "inside",
                                .kind = inside > 1 ? DET_KIND_RECORD : DET_KIND_BOOL,
                                .flags = DET_FIELD_ARRAY,
                                .offset = 8,
                                .size = inside,
                                .presence = 4,
                                .count_max = 2,
                                .record.record = inside > 1 ? record + 1 : NULL };
        deep->fields[i][2] = (struct det_field){ .name = "last", .size = 1, .offset = 1 };
        *record = (struct det_record){ "deep", 1, 8 + 2 * inside, deep->fields[i], 3 };
    }
}

/* Two bytes and two of the next level in every record of a level, and their counts. */
static void fill_deep(const struct det_record *record, uint8_t *value)
{
    uint8_t *end = value + record->size;
    const uint32_t two = 2;

    for (size_t at = 0; value + at < end; at++)
        value[at] = (uint8_t)(at * 7 + 1);
    for (size_t depth = 0; depth < DET_RECORD_DEPTH_MAX; depth++) {
        for (size_t number = 0; number < (size_t)1 << depth; number++) {
            size_t at = 0;

            for (size_t level = depth; level > 0; level--)
                at += 8 + (number >> (level - 1) & 1) * record[depth - level + 1].size;
            memcpy(value + at + 4, &two, sizeof two);
            if (depth + 1 == DET_RECORD_DEPTH_MAX)
                memset(value + at + 8, (int)(number & 1), 2);
        }
    }
}

static void records_nest_as_deep_as_they_may(void **state)
{
    static struct deep deep;
    static uint8_t value[8192], again[8192], bytes[8192];
    int64_t size;

    (void)state;
    make_deep(&deep);
    assert_int_equal(det_record_check(deep.records, NULL), 0);
    assert_true(deep.records[0].size <= sizeof value);
    fill_deep(deep.records, value);
    size = det_record_encode(deep.records, value, bytes, sizeof bytes, NULL);
    /* 255 records of two bytes and a count; 127 have a version before the two inside, and the 128
     * innermost ones have two bools. */
    assert_int_equal(size, 1 + 1 + 2 + 255 * 3 + 127 + 256 + 4);
    memset(again, 0x5a, sizeof again);
    assert_int_equal(det_record_decode(deep.records, bytes, (size_t)size, again, NULL), 0);
    assert_true(det_record_equal(deep.records, value, again));
}

/* A definition that was not checked, one level deeper. */
static void encode_too_deep(void *argument)
{
    struct deep *deep = argument;
    static uint8_t value[8192], bytes[8192];

    fill_deep(deep->records, value);
    (void)!det_record_encode(deep->records, value, bytes, sizeof bytes, NULL);
}

static void recursive_record_is_refused(void **state)
{
    static struct deep deep;
    struct det_field *innermost = &deep.fields[DET_RECORD_DEPTH_MAX - 1][1];

    (void)state;
    make_deep(&deep);
    innermost->kind = DET_KIND_RECORD;
    innermost->record.record = &deep.records[DET_RECORD_DEPTH_MAX - 1];
    assert_true(det_record_check(deep.records, NULL) < 0);
    assert_true(det_test_aborts(encode_too_deep, &deep, "depth"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_nest_as_deep_as_they_may),
        cmocka_unit_test(recursive_record_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
