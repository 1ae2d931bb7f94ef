/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* text_transforms_test.c - the transforms parse and explode. */
#include "connectors/harness_test.h"

static const struct det_stage parse_stage = { .in = { .get = tagged_record },
                                              .out = { .get = sale_record } };

static struct tagged input_of(const char *text)
{
    struct tagged in = { .id = 7 };

    (void)snprintf(in.text, sizeof in.text, "%s", text);
    return in;
}

/* Processes one text and returns the row; NULL: it was rejected. */
static const struct sale *parse_one(struct harness *harness, const char *text)
{
    struct tagged in = input_of(text);

    harness->row_count = harness->error_count = 0;
    if (harness->connector->functions.process(&harness->call, &in) < 0) {
        assert_int_equal(harness->error_count, 1);
        assert_int_equal(harness->last_rejection, DET_REJECT_DESERIALIZATION);
        return NULL;
    }
    assert_int_equal(harness->row_count, 1);
    return harness_row(harness, 0);
}

static void json_becomes_fields(void **state)
{
    struct harness harness;
    const struct sale *sale;

    (void)state;
    harness_open(&harness, &parse_transform, parse_stage, "{field: text, partial: true}");
    sale = parse_one(&harness, "{\"number\":5,\"x\":[1],\"note\":\"n\"}");
    assert_non_null(sale);
    assert_int_equal(sale->number, 5);
    assert_string_equal(sale->note, "n");
    assert_null(parse_one(&harness, "{\"number\":5"));
    assert_non_null(strstr(harness.errors[0], "text: "));
    harness_deinit(&harness);
}

static void a_row_of_csv_becomes_fields(void **state)
{
    struct harness harness;
    const struct sale *sale;

    (void)state;
    harness_open(
        &harness, &parse_transform, parse_stage,
        "{field: text, as: csv, delimiter: ';', columns: [number, '', name], keep: [text]}");
    sale = parse_one(&harness, "5;ignored;\"a;b\"");
    assert_non_null(sale);
    assert_int_equal(sale->number, 5);
    assert_string_equal(sale->name, "a;b");
    assert_string_equal(sale->text, "5;ignored;\"a;b\"");
    assert_null(parse_one(&harness, "5;x"));
    assert_string_equal(harness.errors[0], "text: it has 2 columns, expected 3");
    assert_null(parse_one(&harness, "x;y;z"));
    assert_string_equal(harness.errors[0], "text, number: is not a whole number");
    assert_null(parse_one(&harness, ""));
    assert_null(parse_one(&harness, "5;x;\"a"));
    harness_deinit(&harness);
}

static void pairs_become_fields(void **state)
{
    struct harness harness;
    const struct sale *sale;

    (void)state;
    harness_open(&harness, &parse_transform, parse_stage, "{field: text, as: pairs}");
    sale = parse_one(&harness, " number=5 name=\"a \\\"b\\\"\" total=1.5  amount=-2 level=info ");
    assert_non_null(sale);
    assert_int_equal(sale->number, 5);
    assert_string_equal(sale->name, "a \"b\"");
    assert_true(sale->total == 1.5);
    assert_int_equal(sale->amount, -2);
    assert_false(sale->has_note);
    assert_null(parse_one(&harness, "number=5"));
    assert_string_equal(harness.errors[0], "text, name: the key is missing");
    assert_null(parse_one(&harness, "number"));
    assert_string_equal(harness.errors[0], "text: expected key=value");
    assert_null(parse_one(&harness, "name=\"open"));
    assert_string_equal(harness.errors[0], "text, name: a quote is not closed");
    harness_deinit(&harness);
    harness_open(
        &harness, &parse_transform, parse_stage,
        "{field: text, as: pairs, delimiter: ',', strict: true, partial: true}");
    assert_non_null(parse_one(&harness, "name=a b,number=1"));
    assert_null(parse_one(&harness, "level=info"));
    assert_string_equal(harness.errors[0], "text, level: there is no such field");
    harness_deinit(&harness);
}

static void each_element_of_a_list_is_a_row(void **state)
{
    static const struct det_stage stage = { .in = { .get = tagged_record },
                                            .out = { .get = tag_record } };
    const struct tagged in = { .id = 7, .tags_count = 3, .tags = { "a", "", "c" } };
    const struct tagged none = { .id = 8 };
    struct harness harness;
    const struct tag *row;

    (void)state;
    harness_open(&harness, &explode_transform, stage, "{field: tags, into: tag, index: place}");
    assert_int_equal(harness.connector->functions.process(&harness.call, &in), 0);
    assert_int_equal(harness.connector->functions.process(&harness.call, &none), 0);
    assert_int_equal(harness.row_count, 3);
    row = harness_row(&harness, 2);
    assert_int_equal(row->id, 7);
    assert_string_equal(row->tag, "c");
    assert_int_equal(row->place, 2);
    harness_deinit(&harness);
}

static void each_part_of_a_text_is_a_row(void **state)
{
    static const struct det_stage stage = { .in = { .get = tagged_record },
                                            .out = { .get = counted_record } };
    struct tagged in = input_of("1; 2 ;;-3");
    struct harness harness;

    (void)state;
    harness_open(
        &harness, &explode_transform, stage,
        "{field: text, into: number, separator: ';', skip_empty: true}");
    assert_int_equal(harness.connector->functions.process(&harness.call, &in), 0);
    assert_int_equal(harness.row_count, 3);
    assert_int_equal(((const struct counted *)harness_row(&harness, 1))->number, 2);
    assert_int_equal(((const struct counted *)harness_row(&harness, 2))->number, -3);
    in = input_of("1;x");
    assert_true(harness.connector->functions.process(&harness.call, &in) < 0);
    assert_string_equal(harness.errors[0], "text, part 1: is not a whole number");
    harness_deinit(&harness);
}

static void wrong_settings_are_refused(void **state)
{
    static const struct det_stage explode = { .in = { .get = tagged_record },
                                              .out = { .get = tag_record } };

    (void)state;
    harness_refuses(&parse_transform, parse_stage, "{}", "field is missing: add it");
    harness_refuses(&parse_transform, parse_stage, "{field: id}", "'id' of tagged is not a text");
    harness_refuses(
        &parse_transform, parse_stage, "{field: text, as: csv}", "columns: with as: csv");
    harness_refuses(
        &parse_transform, parse_stage, "{field: text, as: csv, columns: [nam]}",
        "did you mean 'name'");
    harness_refuses(&parse_transform, parse_stage, "{field: text, keep: [id]}", "no field 'id'");
    harness_refuses(&explode_transform, explode, "{field: tags}", "into is missing");
    harness_refuses(
        &explode_transform, explode, "{field: numbers, into: tag}", "not of the type of tag");
    harness_refuses(
        &explode_transform, explode, "{field: tags, into: tag, index: id}",
        "the field 'place' of tag gets no value");
}

static int parse_once(struct det_test_memory *memory, void *argument)
{
    const struct tagged in = input_of("5;x;y");
    struct harness harness;
    int r;

    harness_init(&harness, &parse_transform, parse_stage, argument);
    harness.call.allocator = &memory->allocator;
    r = harness_start(&harness);
    if (r == 0)
        r = harness.connector->functions.process(&harness.call, &in);
    harness_deinit(&harness);
    return r;
}

static void every_failing_allocation_is_reported(void **state)
{
    static char settings[] = "{field: text, as: csv, delimiter: ';', columns: [number, '', name]}";

    (void)state;
    det_test_each_failure(parse_once, settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_becomes_fields),
        cmocka_unit_test(a_row_of_csv_becomes_fields),
        cmocka_unit_test(pairs_become_fields),
        cmocka_unit_test(each_element_of_a_list_is_a_row),
        cmocka_unit_test(each_part_of_a_text_is_a_row),
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
