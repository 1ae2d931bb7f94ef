/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_test.c - what <detent/rec/declare.h> makes of rows. */
#define REC_SPEC "record/template_test.rec"
#include <detent/rec/declare.h>

#define REC_SPEC "record/template_more_test.rec"
#include <detent/rec/declare.h>

#include "lib/test.h"

#if defined(REC_SPEC) || defined(RECORD) || defined(FIELD) || defined(OPTIONAL) || \
    defined(ARRAY) || defined(ENUM) || defined(VALUE) || defined(END)
#error "the template leaves a macro defined"
#endif

/* The records are types like any other: their members have the types they should. */
_Static_assert(sizeof(((struct every *)0)->l) == 6, "str(5) is char[6]");
_Static_assert(sizeof(((struct every *)0)->words) == 8, "an array of str(3)");
_Static_assert(sizeof(((struct every *)0)->m.data) == 7, "bytes(7) has 7 bytes");
_Static_assert(every_record_version == 3 && line_record_version == 1, "versions are constants");
_Static_assert(color_count == 3, "the number of values is a constant");

static void templates_make_sound_definitions(void **state)
{
    (void)state;
    assert_int_equal(det_record_check(line_record(), NULL), 0);
    assert_int_equal(det_record_check(every_record(), NULL), 0);
    assert_int_equal(det_record_check(order_record(), NULL), 0);
    assert_int_equal(det_record_check(det_empty_record(), NULL), 0);
}

static void a_record_knows_its_name_version_size_and_fields(void **state)
{
    const struct det_record *record = every_record();

    (void)state;
    assert_string_equal(record->name, "every");
    assert_int_equal(record->version, 3);
    assert_int_equal(record->size, sizeof(struct every));
    assert_int_equal(record->field_count, 23);
    assert_string_equal(record->fields[0].name, "a");
    assert_string_equal(record->fields[22].name, "colors");
    assert_int_equal(line_record()->version, 1);
}

static void an_enum_knows_its_names_and_numbers(void **state)
{
    const struct det_enum *enumeration = color_enum();

    (void)state;
    assert_string_equal(enumeration->name, "color");
    assert_int_equal(enumeration->value_count, 3);
    assert_string_equal(enumeration->values[2].name, "dark-blue");
    assert_int_equal(enumeration->values[2].value, COLOR_BLUE);
}

static void every_type_has_its_kind_and_size(void **state)
{
    static const struct {
        enum det_kind kind;
        uint32_t size, capacity;
    } expected[] = {
        { DET_KIND_UNSIGNED, 1, 0 },
        { DET_KIND_UNSIGNED, 2, 0 },
        { DET_KIND_UNSIGNED, 4, 0 },
        { DET_KIND_UNSIGNED, 8, 0 },
        { DET_KIND_SIGNED, 1, 0 },
        { DET_KIND_SIGNED, 2, 0 },
        { DET_KIND_SIGNED, 4, 0 },
        { DET_KIND_SIGNED, 8, 0 },
        { DET_KIND_FLOAT, 8, 0 },
        { DET_KIND_BOOL, 1, 0 },
        { DET_KIND_TIME, 8, 0 },
        { DET_KIND_TEXT, 6, 5 },
        { DET_KIND_BYTES, 12, 7 },
        { DET_KIND_ENUM, sizeof(enum color), 0 },
        { DET_KIND_RECORD, sizeof(struct line), 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const struct det_field *field = &every_record()->fields[i];

        assert_int_equal(field->kind, expected[i].kind);
        assert_int_equal(field->size, expected[i].size);
        assert_int_equal(field->capacity, expected[i].capacity);
        assert_int_equal(field->flags, 0);
        assert_int_equal(field->since, 0);
    }
}

static void flags_come_in_any_order(void **state)
{
    const struct det_field *when = det_record_field(every_record(), "when");
    const struct det_field *lines = det_record_field(every_record(), "lines");

    (void)state;
    assert_int_equal(det_record_field(every_record(), "secret")->flags, DET_FIELD_SENSITIVE);
    assert_int_equal(when->flags, DET_FIELD_OPTIONAL | DET_FIELD_SENSITIVE);
    assert_int_equal(when->since, 3);
    assert_int_equal(lines->flags, DET_FIELD_ARRAY | DET_FIELD_SENSITIVE);
    assert_int_equal(lines->since, 2);
}

static void offsets_are_those_of_the_members(void **state)
{
    const struct det_field *note = det_record_field(every_record(), "note");
    const struct det_field *lines = det_record_field(every_record(), "lines");

    (void)state;
    assert_int_equal(note->offset, offsetof(struct every, note));
    assert_int_equal(note->presence, offsetof(struct every, has_note));
    assert_int_equal(lines->offset, offsetof(struct every, lines));
    assert_int_equal(lines->presence, offsetof(struct every, lines_count));
    assert_int_equal(lines->count_max, 4);
    assert_int_equal(lines->size, sizeof(struct line));
}

static void rows_refer_to_other_records_and_enums(void **state)
{
    (void)state;
    assert_ptr_equal(det_record_of(order_record()->fields[0].record), line_record());
    assert_ptr_equal(det_enum_of(order_record()->fields[1].enumeration), color_enum());
    assert_ptr_equal(det_enum_of(det_record_field(every_record(), "n")->enumeration), color_enum());
}

static void an_unknown_field_is_not_found(void **state)
{
    (void)state;
    assert_null(det_record_field(every_record(), "z"));
    assert_null(det_record_field(det_empty_record(), "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_make_sound_definitions),
        cmocka_unit_test(a_record_knows_its_name_version_size_and_fields),
        cmocka_unit_test(an_enum_knows_its_names_and_numbers),
        cmocka_unit_test(every_type_has_its_kind_and_size),
        cmocka_unit_test(flags_come_in_any_order),
        cmocka_unit_test(offsets_are_those_of_the_members),
        cmocka_unit_test(rows_refer_to_other_records_and_enums),
        cmocka_unit_test(an_unknown_field_is_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
