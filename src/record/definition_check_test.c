/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* definition_check_test.c - definitions that are not sound, each wrong in one place. */
#include <detent/record.h>

#include "lib/test.h"

static const struct det_enum_value good_values[] = { { "red", 0 }, { "green", 7 } };
static const struct det_enum good_enum = { "color", good_values, 2 };
static const struct det_field inner_fields[] = { { .name = "x", .size = 8 } };
static const struct det_record inner = { "inner", 1, 8, inner_fields, 1 };

/* A sound record of three fields for each test to spoil. */
struct fixture {
    struct det_field fields[3];
    struct det_record record;
};

static struct fixture make(void)
{
    return (struct fixture){
        .fields = {
            { .name = "a", .kind = DET_KIND_UNSIGNED, .offset = 0, .size = 4 },
            { .name = "b", .kind = DET_KIND_TEXT, .flags = DET_FIELD_OPTIONAL, .offset = 4,
                .size = 4, .capacity = 3, .presence = 8 },
            { .name = "c", .kind = DET_KIND_ENUM, .flags = DET_FIELD_ARRAY, .offset = 12,
                .size = 4, .presence = 20, .count_max = 2,
                .enumeration = { .enumeration = &good_enum } },
        },
        .record = { "thing", 2, 24, NULL, 3 },
    };
}

static void expect(struct fixture *fixture, int code, const char *words)
{
    struct det_error error = { 0 };

    if (!fixture->record.fields)
        fixture->record.fields = fixture->fields;
    assert_int_equal(det_record_check(&fixture->record, &error), code);
    assert_int_equal(det_record_check(&fixture->record, NULL), code);
    if (code < 0) {
        assert_int_equal(error.code, code);
        if (!strstr(error.text, words))
            fail_msg("'%s' does not say '%s'", error.text, words);
    }
}

static void a_sound_definition_passes(void **state)
{
    struct fixture fixture = make();

    (void)state;
    expect(&fixture, 0, "");
}

static void a_record_needs_a_valid_name_a_size_and_fields(void **state)
{
    struct fixture fixture = make();
    struct det_error error;

    (void)state;
    assert_int_equal(det_record_check(NULL, &error), DET_ERR_DEFINITION);
    fixture.record.name = NULL;
    expect(&fixture, DET_ERR_DEFINITION, "no valid name");
    fixture.record.name = "a b";
    expect(&fixture, DET_ERR_DEFINITION, "no valid name");
    fixture = make();
    fixture.record.size = 0;
    expect(&fixture, DET_ERR_DEFINITION, "no size or no fields");
    fixture = make();
    fixture.record.fields = NULL;
    assert_int_equal(det_record_check(&fixture.record, &error), DET_ERR_DEFINITION);
}

static void sizes_and_counts_have_limits(void **state)
{
    struct fixture fixture = make();

    (void)state;
    fixture.record.size = DET_RECORD_SIZE_MAX;
    expect(&fixture, 0, "");
    fixture.record.size = DET_RECORD_SIZE_MAX + 1;
    expect(&fixture, DET_ERR_LIMIT, "more than 262144");
    fixture = make();
    fixture.record.field_count = DET_RECORD_FIELD_MAX + 1;
    expect(&fixture, DET_ERR_LIMIT, "more than 256");
}

static void names_of_fields_are_valid_and_differ(void **state)
{
    struct fixture fixture = make();

    (void)state;
    fixture.fields[1].name = NULL;
    expect(&fixture, DET_ERR_DEFINITION, "field 2 has no valid name");
    fixture.fields[1].name = "";
    expect(&fixture, DET_ERR_DEFINITION, "field 2 has no valid name");
    fixture.fields[1].name = "a";
    expect(&fixture, DET_ERR_DEFINITION, "thing.a: duplicate name");
}

static void flags_are_known_and_do_not_contradict(void **state)
{
    struct fixture fixture = make();

    (void)state;
    fixture.fields[0].flags = 8;
    expect(&fixture, DET_ERR_DEFINITION, "thing.a: it has an unknown flag");
    fixture = make();
    fixture.fields[1].flags |= DET_FIELD_ARRAY;
    expect(&fixture, DET_ERR_DEFINITION, "optional and an array");
    fixture = make();
    fixture.fields[2].count_max = 0;
    expect(&fixture, DET_ERR_DEFINITION, "an array of 0");
}

static void every_kind_has_its_size(void **state)
{
    static const struct {
        enum det_kind kind;
        uint32_t wrong, right, capacity;
    } cases[] = {
        { DET_KIND_UNSIGNED, 3, 2, 0 }, { DET_KIND_SIGNED, 0, 1, 0 }, { DET_KIND_FLOAT, 4, 8, 0 },
        { DET_KIND_TIME, 4, 8, 0 },     { DET_KIND_BOOL, 4, 1, 0 },   { DET_KIND_TEXT, 5, 6, 5 },
        { DET_KIND_TEXT, 1, 2, 1 },     { DET_KIND_BYTES, 9, 12, 5 }, { DET_KIND_BYTES, 8, 12, 8 },
        { DET_KIND_ENUM, 8, 4, 0 },     { DET_KIND_RECORD, 7, 8, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture fixture = make();

        fixture.record.field_count = 1;
        fixture.fields[0] = (struct det_field){ .name = "a",
                                                .kind = cases[i].kind,
                                                .size = cases[i].right,
                                                .capacity = cases[i].capacity,
                                                .record.record = &inner,
                                                .enumeration.enumeration = &good_enum };
        expect(&fixture, 0, "");
        fixture.fields[0].size = cases[i].wrong;
        expect(&fixture, DET_ERR_DEFINITION, "its kind or its size is not valid");
    }
}

static void unknown_kinds_and_capacities_of_0_are_refused(void **state)
{
    struct fixture fixture = make();
    int number = 99;

    (void)state;
    memcpy(&fixture.fields[0].kind, &number, sizeof number);
    expect(&fixture, DET_ERR_DEFINITION, "its kind or its size is not valid");
    fixture = make();
    fixture.fields[1].capacity = 0;
    fixture.fields[1].size = 1;
    expect(&fixture, DET_ERR_DEFINITION, "its kind or its size is not valid");
    fixture = make();
    fixture.fields[0].kind = DET_KIND_BYTES;
    expect(&fixture, DET_ERR_DEFINITION, "its kind or its size is not valid");
    fixture = make();
    fixture.fields[0].kind = DET_KIND_RECORD;
    expect(&fixture, DET_ERR_DEFINITION, "its kind or its size is not valid");
}

static void fields_must_lie_inside_and_not_overlap(void **state)
{
    struct fixture fixture = make();

    (void)state;
    fixture.fields[2].count_max = 4;
    expect(&fixture, DET_ERR_DEFINITION, "thing.c: it is outside its struct");
    fixture.fields[2].count_max = UINT32_MAX;
    expect(&fixture, DET_ERR_DEFINITION, "it is outside its struct");
    fixture = make();
    fixture.fields[2].presence = 21;
    expect(&fixture, DET_ERR_DEFINITION, "it is outside its struct");
    fixture = make();
    fixture.fields[1].presence = 24;
    expect(&fixture, DET_ERR_DEFINITION, "it is outside its struct");
    fixture = make();
    fixture.fields[2].presence = 16;
    expect(&fixture, DET_ERR_DEFINITION, "it overlaps its own presence");
}

static void fields_do_not_overlap(void **state)
{
    struct fixture fixture = make();

    (void)state;
    fixture.fields[1].offset = 3;
    expect(&fixture, DET_ERR_DEFINITION, "thing.b: it overlaps another field");
    fixture = make();
    fixture.fields[1].presence = 3;
    expect(&fixture, DET_ERR_DEFINITION, "thing.b: it overlaps another field");
    fixture = make();
    fixture.fields[2].offset = 8;
    expect(&fixture, DET_ERR_DEFINITION, "thing.c: it overlaps another field");
    fixture = make();
    fixture.fields[2].presence = 8;
    fixture.fields[2].offset = 16;
    expect(&fixture, DET_ERR_DEFINITION, "thing.c: it overlaps another field");
}

static void a_field_is_not_newer_than_its_record(void **state)
{
    struct fixture fixture = make();

    (void)state;
    fixture.fields[0].since = 2;
    expect(&fixture, 0, "");
    fixture.fields[0].since = 3;
    expect(&fixture, DET_ERR_DEFINITION, "newer than its record");
    fixture.fields[0].since = 2;
    fixture.record.version = 0;
    expect(&fixture, DET_ERR_DEFINITION, "newer than its record");
}

static void enums_have_distinct_names_and_a_zero(void **state)
{
    struct det_enum_value values[] = { { "red", 0 }, { "green", 7 } };
    struct det_enum enumeration = { "color", values, 2 };
    struct fixture fixture = make();

    (void)state;
    fixture.fields[2].enumeration.enumeration = &enumeration;
    expect(&fixture, 0, "");
    values[1].name = "red";
    expect(&fixture, DET_ERR_DEFINITION, "duplicate name");
    values[1] = (struct det_enum_value){ "green", 0 };
    expect(&fixture, DET_ERR_DEFINITION, "duplicate name");
    values[1] = (struct det_enum_value){ "gr en", 7 };
    expect(&fixture, DET_ERR_DEFINITION, "no valid name");
    values[0].value = 1;
    values[1].name = "green";
    expect(&fixture, DET_ERR_DEFINITION, "no value 0");
    enumeration.value_count = DET_ENUM_VALUE_MAX + 1;
    expect(&fixture, DET_ERR_DEFINITION, "no values or more than 1024");
    enumeration = (struct det_enum){ "color", NULL, 0 };
    expect(&fixture, DET_ERR_DEFINITION, "no values");
    enumeration.name = NULL;
    expect(&fixture, DET_ERR_DEFINITION, "no definition or no valid name");
    fixture.fields[2].enumeration.enumeration = NULL;
    expect(&fixture, DET_ERR_DEFINITION, "no definition or no valid name");
}

/* A chain of `depth` records, each the only field of the one before. */
static int check_chain(unsigned depth, bool closed, struct det_error *reterr)
{
    struct det_field fields[DET_RECORD_DEPTH_MAX + 1];
    struct det_record records[DET_RECORD_DEPTH_MAX + 1];

    for (unsigned i = 0; i < depth; i++) {
        fields[i] = (struct det_field){ .name = "next",
                                        .kind = DET_KIND_RECORD,
                                        .size = 8,
                                        .record.record = &records[i + 1 < depth ? i + 1 : 0] };
        records[i] = (struct det_record){ "link", 1, 8, &fields[i], 1 };
    }
    if (!closed)
        fields[depth - 1] = inner_fields[0];
    return det_record_check(&records[0], reterr);
}

static void records_nest_as_deep_as_the_limit(void **state)
{
    struct det_error error;

    (void)state;
    assert_int_equal(check_chain(DET_RECORD_DEPTH_MAX, false, &error), 0);
    assert_int_equal(check_chain(DET_RECORD_DEPTH_MAX + 1, false, &error), DET_ERR_LIMIT);
    assert_non_null(strstr(error.text, "deeper than 8"));
}

static void a_record_is_not_inside_itself(void **state)
{
    struct det_error error;

    (void)state;
    assert_int_equal(check_chain(1, true, &error), DET_ERR_DEFINITION);
    assert_int_equal(check_chain(3, true, &error), DET_ERR_DEFINITION);
    assert_string_equal(error.text, "link.next.next.next: the record contains itself");
}

static void nested_records_are_checked_too(void **state)
{
    struct det_record nested = inner;
    struct fixture fixture = make();

    (void)state;
    fixture.fields[0] = (struct det_field){
        .name = "a", .kind = DET_KIND_RECORD, .size = 8, .record.record = &nested
    };
    fixture.record.field_count = 1;
    expect(&fixture, 0, "");
    nested.name = "";
    expect(&fixture, DET_ERR_DEFINITION, "no valid name");
    nested = inner;
    nested.size = 0;
    fixture.fields[0].size = 0;
    expect(&fixture, DET_ERR_DEFINITION, "no size");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_definition_passes),
        cmocka_unit_test(a_record_needs_a_valid_name_a_size_and_fields),
        cmocka_unit_test(sizes_and_counts_have_limits),
        cmocka_unit_test(names_of_fields_are_valid_and_differ),
        cmocka_unit_test(flags_are_known_and_do_not_contradict),
        cmocka_unit_test(every_kind_has_its_size),
        cmocka_unit_test(unknown_kinds_and_capacities_of_0_are_refused),
        cmocka_unit_test(fields_must_lie_inside_and_not_overlap),
        cmocka_unit_test(fields_do_not_overlap),
        cmocka_unit_test(a_field_is_not_newer_than_its_record),
        cmocka_unit_test(enums_have_distinct_names_and_a_zero),
        cmocka_unit_test(records_nest_as_deep_as_the_limit),
        cmocka_unit_test(a_record_is_not_inside_itself),
        cmocka_unit_test(nested_records_are_checked_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
