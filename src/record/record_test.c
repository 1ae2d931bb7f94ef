/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* record_test.c - which values are valid, and which are equal. */
#define REC_SPEC "record/template_test.rec"
#include <detent/rec/declare.h>

#include <math.h>

#include "lib/test.h"
#include "record/field_value.h"

/* Validating says so, and encoding the same. */
static void expect(const struct every *value, int code, size_t offset, const char *text)
{
    struct det_error errors[2] = { 0 };
    uint8_t bytes[1024];
    int64_t size;

    assert_int_equal(det_record_validate(every_record(), value, &errors[0]), code);
    assert_int_equal(det_record_validate(every_record(), value, NULL), code);
    size = det_record_encode(every_record(), value, bytes, sizeof bytes, &errors[1]);
    assert_int_equal(size < 0 ? size : 0, code);
    for (unsigned i = 0; i < 2 && code < 0; i++) {
        assert_int_equal(errors[i].code, code);
        assert_int_equal(errors[i].offset, offset);
        assert_string_equal(errors[i].text, text);
    }
}

static void zero_is_valid(void **state)
{
    struct every value = { 0 };

    (void)state;
    expect(&value, 0, 0, NULL);
    assert_int_equal(det_record_validate(det_empty_record(), &value, NULL), 0);
}

static void unterminated_text_is_invalid(void **state)
{
    struct every value = { .l = "abcde" };

    (void)state;
    expect(&value, 0, 0, NULL);
    value.l[5] = 'f';
    expect(&value, DET_ERR_RANGE, offsetof(struct every, l), "every.l: the text has no final NUL");
}

static void a_text_is_utf8(void **state)
{
    struct every value = { .l = "a\xc3" };

    (void)state;
    expect(&value, DET_ERR_MALFORMED, offsetof(struct every, l), "every.l: the text is not UTF-8");
    memcpy(value.l, "\xf0\x9f\x98\x80", 5);
    expect(&value, 0, 0, NULL);
}

static void a_bool_is_0_or_1(void **state)
{
    struct every value = { 0 };
    const size_t j = offsetof(struct every, j), presence = offsetof(struct every, has_note);

    (void)state;
    memset((char *)&value + j, 2, 1);
    expect(&value, DET_ERR_RANGE, j, "every.j: the bool is neither 0 nor 1");
    memset((char *)&value + j, 0, 1);
    memset((char *)&value + presence, 2, 1);
    expect(&value, DET_ERR_RANGE, presence, "every.note: the presence is neither 0 nor 1");
}

static void counts_and_sizes_are_in_range(void **state)
{
    struct every value = { .lines_count = 4, .m.size = 7 };

    (void)state;
    expect(&value, 0, 0, NULL);
    value.lines_count = 5;
    expect(
        &value, DET_ERR_RANGE, offsetof(struct every, lines_count),
        "every.lines: the count exceeds the maximum");
    value.lines_count = UINT32_MAX;
    value.m.size = 8;
    expect(
        &value, DET_ERR_RANGE, offsetof(struct every, m), "every.m: the size exceeds the capacity");
}

static void an_enum_has_one_of_its_values(void **state)
{
    struct every value = { .n = COLOR_BLUE };

    (void)state;
    expect(&value, 0, 0, NULL);
    value.n = (enum color)3;
    expect(&value, DET_ERR_RANGE, offsetof(struct every, n), "every.n: the enum has no such value");
}

static void the_place_of_an_error_is_named_in_full(void **state)
{
    struct every value = { .lines_count = 3 };

    (void)state;
    memset(value.lines[2].name, 'x', sizeof value.lines[2].name);
    expect(
        &value, DET_ERR_RANGE, offsetof(struct every, lines[2].name),
        "every.lines[2].name: the text has no final NUL");
}

static void bytes_of_absent_fields_may_be_invalid(void **state)
{
    struct every value = { .lines_count = 2 };

    (void)state;
    memset(value.note, 'x', sizeof value.note);
    memset(value.lines[2].name, 'x', sizeof value.lines[2].name);
    memset(value.colors, 0x55, sizeof value.colors);
    expect(&value, 0, 0, NULL);
}

static void a_place_that_is_too_long_is_cut(void **state)
{
    static char long_name[DET_ERROR_TEXT_MAX];
    char value[1] = { 2 };
    struct det_error error;

    (void)state;
    memset(long_name, 'n', 128);
    const struct det_field leaf[] = { { .name = long_name, .kind = DET_KIND_BOOL, .size = 1 } };
    const struct det_record low = { "low", 1, 1, leaf, 1 };
    const struct det_field middle[] = {
        { .name = long_name, .kind = DET_KIND_RECORD, .size = 1, .record.record = &low }
    };
    const struct det_record high = { "high", 1, 1, middle, 1 };
    assert_int_equal(det_record_check(&high, NULL), 0);
    assert_int_equal(det_record_validate(&high, value, &error), DET_ERR_RANGE);
    assert_non_null(strstr(error.text, "high.nnn"));
    assert_non_null(strstr(error.text, "nnn: the bool is neither 0 nor 1"));
}

/* A value with something in every field. */
static struct every full(void)
{
    struct every value = {
        .a = 1,
        .b = 2,
        .c = 3,
        .d = 4,
        .e = -5,
        .f = -6,
        .g = -7,
        .h = -8,
        .i = 0.5,
        .j = true,
        .k = 9,
        .l = "ten",
        .m = { 2, { 1, 1 } },
        .n = COLOR_GREEN,
        .o = { "pen", 12 },
        .secret = "4242",
        .has_note = true,
        .note = "a note",
        .has_when = true,
        .when = 13,
        .lines_count = 2,
        .lines = { { "one", 1 }, { "two", 2 } },
        .words_count = 2,
        .words = { "ab", "cd" },
        .flags_count = 1,
        .flags = { true },
        .blobs_count = 1,
        .blobs = { { 1, { 7 } } },
        .colors_count = 2,
        .colors = { COLOR_RED, COLOR_BLUE },
    };

    return value;
}

static void values_are_equal_field_by_field(void **state)
{
    struct every a = full(), b = full();

    (void)state;
    assert_true(det_record_equal(every_record(), &a, &b));
    assert_true(det_record_equal(det_empty_record(), "a", "b"));
}

static void every_field_makes_a_difference(void **state)
{
    const struct every original = full();
    const struct det_record *record = every_record();

    (void)state;
    for (size_t i = 0; i < record->field_count; i++) {
        const struct det_field *field = &record->fields[i];
        struct every a = original, b = original;

        /* One bit of the value; in bytes, of the data after the size. */
        ((char *)&b)[field->offset + (field->kind == DET_KIND_BYTES ? 4 : 0)] ^= 1;
        assert_false(det_record_equal(record, &a, &b));
        b = original;
        if (field->flags & (DET_FIELD_OPTIONAL | DET_FIELD_ARRAY)) {
            ((char *)&b)[field->presence] ^= 1;
            assert_false(det_record_equal(record, &a, &b));
        }
    }
}

static void absent_values_and_bytes_after_an_end_do_not_count(void **state)
{
    struct every a = full(), b = full();

    (void)state;
    b.l[5] = 'x';
    b.m.data[6] = 9;
    b.lines[3].pieces = 77;
    a.has_note = b.has_note = false;
    b.note[0] = 'z';
    assert_true(det_record_equal(every_record(), &a, &b));
    assert_true(det_record_equal(every_record(), &b, &a));
}

static void all_nans_are_equal_and_zeros_are_not(void **state)
{
    struct every a = { .i = NAN }, b = { .i = -NAN };

    (void)state;
    assert_true(det_record_equal(every_record(), &a, &b));
    a.i = 0.0;
    b.i = -0.0;
    assert_false(det_record_equal(every_record(), &a, &b));
}

static void comparing_what_is_not_valid_stays_inside_the_struct(void **state)
{
    struct every a, b;

    (void)state;
    memset(&a, 0xff, sizeof a);
    memset(&b, 0xff, sizeof b);
    assert_true(det_record_equal(every_record(), &a, &b));
}

/* Fields in the order of the struct, and in the opposite one. */
static void copy_copies_only_used_bytes(void **state)
{
    static struct {
        uint64_t before;
        char text[4000];
        uint64_t between;
        char other[2000];
        uint64_t behind;
    } from, to;
    struct det_field fields[] = {
        { .name = "text", .kind = DET_KIND_TEXT, .offset = 8, .size = 4000, .capacity = 3999 },
        { .name = "other", .kind = DET_KIND_TEXT, .offset = 4016, .size = 2000, .capacity = 1999 },
    };
    struct det_record record = {
        .name = "long", .version = 1, .size = sizeof from, .fields = fields, .field_count = 2
    };

    (void)state;
    for (int i = 0; i < 2; i++) {
        memset(&from, 0, sizeof from);
        memset(&to, 'x', sizeof to);
        from.before = from.between = from.behind = 7;
        memcpy(from.text, "used", 5);
        memset(from.other, 'y', sizeof from.other - 1);
        det_record_copy(&record, &to, &from);
        assert_true(to.before == 7 && to.between == 7 && to.behind == 7);
        assert_string_equal(to.text, "used");
        assert_string_equal(to.other, from.other);
        /* Unused parts are not accessed, so they cost nothing. */
        assert_int_equal(to.text[3999], i == 0 ? 'x' : 0);
        fields[0].offset = 4016;
        fields[0].size = 2000;
        fields[1].offset = 8;
        fields[1].size = 4000;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_is_valid),
        cmocka_unit_test(unterminated_text_is_invalid),
        cmocka_unit_test(a_text_is_utf8),
        cmocka_unit_test(a_bool_is_0_or_1),
        cmocka_unit_test(counts_and_sizes_are_in_range),
        cmocka_unit_test(an_enum_has_one_of_its_values),
        cmocka_unit_test(the_place_of_an_error_is_named_in_full),
        cmocka_unit_test(bytes_of_absent_fields_may_be_invalid),
        cmocka_unit_test(a_place_that_is_too_long_is_cut),
        cmocka_unit_test(values_are_equal_field_by_field),
        cmocka_unit_test(every_field_makes_a_difference),
        cmocka_unit_test(absent_values_and_bytes_after_an_end_do_not_count),
        cmocka_unit_test(all_nans_are_equal_and_zeros_are_not),
        cmocka_unit_test(comparing_what_is_not_valid_stays_inside_the_struct),
        cmocka_unit_test(copy_copies_only_used_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
