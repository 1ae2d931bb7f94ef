/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* expression_test.c - results stored in fields, rows, reads, the canonical form, the list of
 * functions in the documentation. */
#include "expression/expression_test.h"

static void results_are_stored_in_every_kind_of_field(void **state)
{
    static const struct {
        const char *text, *field, *check, *expected;
    } cases[] = {
        { "b / 300", "a", "a", "int 200" },
        { "e - 1", "e", "e", "int -6" },
        { "h + 1", "h", "h", "int -9223372036854775807" },
        { "d - 1", "d", "d", "int 18446744073709551614" },
        { "a", "x", "x", "float 200" },
        { "not yes", "yes", "yes", "false" },
        { "at + 1s", "at", "at - now", "duration 1250000000" },
        { "title + '!'", "title", "title", "'Hello!'" },
        { "substring(title, 1)", "title", "title", "'ello'" },
        { "'red'", "tone", "tone", "enum 0" },
        { "substring('a red', 2)", "tone", "tone", "enum 0" },
        { "piece.tone", "tone", "tone", "enum 2" },
        { "blob", "blob", "hex(blob)", "'ab01'" },
        { "pieces[1]", "piece", "piece.label", "'two'" },
        { "if has(pieces[1]) then pieces[1] else piece", "piece", "piece.label", "'two'" },
        { "words", "words", "words[1]", "'cd'" },
        { "5", "limit", "limit", "int 5" },
        { "none", "note", "note", "absent" },
        { "if yes then none else 'x'", "note", "note", "absent" },
        { "pieces[7].label", "note", "note", "absent" },
        { "parse_int(title)", "limit", "limit", "absent" },
        { "piece", "spare", "has(spare) and spare.label == 'bolt'", "true" },
        { "limit or_else 7", "piece.pieces", "piece.pieces", "int 7" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct test_inputs *inputs = test_inputs();

        assert_string_equal(test_store(inputs, cases[i].text, cases[i].field), "stored");
        assert_string_equal(test_evaluate(inputs, cases[i].check), cases[i].expected);
        assert_int_equal(det_record_validate(row_record(), &inputs->row, NULL), 0);
    }
}

static void what_does_not_fit_its_field_is_refused_or_leaves_it_unchanged(void **state)
{
    static const struct {
        const char *text, *field, *expected;
    } cases[] = {
        { "300", "a", "refused RANGE: column 1: this never fits the field 'a', which is u8" },
        { "b", "a", "RANGE: column 1: the result does not fit its field, which is u8" },
        { "b", "e", "RANGE: column 1: the result does not fit its field, which is i8" },
        { "-c", "d", "RANGE: column 1: the result does not fit its field, which is u64" },
        { "d", "h", "RANGE: column 1: the result does not fit its field, which is i64" },
        { "-1", "d", "refused RANGE: column 1: this never fits the field 'd', which is u64" },
        { "x", "a",
          "refused TYPE: column 1: the field 'a' takes int, this is float; convert it: "
          "round(x) or int(x)" },
        { "now - at", "h",
          "refused TYPE: column 1: the field 'h' takes int, this is duration; "
          "divide by a unit: x / 1s" },
        { "a", "title",
          "refused TYPE: column 1: the field 'title' takes text, this is int; convert "
          "it: text(x)" },
        { "'longer than twenty bytes'", "title",
          "refused RANGE: column 1: the field 'title' is str(20), this text is longer" },
        { "title + title + title + title + title", "title",
          "RANGE: column 1: the result is longer than its field" },
        { "'gren'", "tone",
          "refused TYPE: column 1: 'gren' is not a value of hue; did you mean 'green'?" },
        { "if yes then 'red' else 'gren'", "tone",
          "refused TYPE: column 24: 'gren' is not a value of hue; did you mean 'green'?" },
        { "pieces[2]", "piece", "RANGE: column 8: the index is out of bounds" },
        { "title", "tone", "RANGE: column 1: the result is not a value of the enum of its field" },
        { "numbers", "words",
          "refused TYPE: column 1: the field 'words' takes an array of the same "
          "elements, this is array" },
        { "limit", "a",
          "refused TYPE: column 1: 'limit' may be absent; write `limit or_else 0` or "
          "test it: `has(limit) and ...`" },
        { "a", "titel", "refused NOT_FOUND: 'titel' is not a field of row; did you mean 'title'?" },
        { "a", "spare.pieces",
          "refused NOT_FOUND: 'spare' is not a record that is always present; "
          "store in the whole field" },
        { "a", "", "refused NOT_FOUND: the target has no field" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct test_inputs *inputs = test_inputs();
        struct row before = inputs->row;

        assert_string_equal(test_store(inputs, cases[i].text, cases[i].field), cases[i].expected);
        assert_true(det_record_equal(row_record(), &inputs->row, &before));
    }
}

#define ROWS 100

static void rows_have_the_results_of_single_evaluations(void **state)
{
    static struct row rows[ROWS];
    static const char text[] = "1000 / (c % 5) > 300 or now < at";
    struct test_inputs *inputs = test_inputs();
    struct det_expression_options options = test_options();
    const void *pointers[] = { rows, rows, &inputs->now, &inputs->key };
    size_t strides[] = { sizeof rows[0], sizeof rows[0], 0, 0 }, errors = 0;
    struct det_expression_rows batch = { pointers, strides, ROWS };
    struct det_expression *expression = NULL;
    int8_t results[ROWS];

    (void)state;
    for (unsigned i = 0; i < ROWS; i++)
        rows[i] = (struct row){ .c = i, .at = (int64_t)(i % 3) * inputs->now };
    options.is_optional = false;
    options.type = DET_EXPRESSION_BOOL;
    assert_int_equal(det_expression_open(text, sizeof text - 1, &options, &expression, NULL), 0);
    assert_int_equal(
        det_expression_test_rows(expression, &batch, &inputs->scratch, results), ROWS / 5);
    for (unsigned i = 0; i < ROWS; i++) {
        const void *one[] = { &rows[i], &rows[i], &inputs->now, &inputs->key };

        assert_int_equal(results[i], det_expression_test(expression, one, &inputs->scratch, NULL));
        errors += results[i] < 0;
    }
    assert_int_equal(errors, ROWS / 5);
    batch.count = 0;
    assert_int_equal(det_expression_test_rows(expression, &batch, &inputs->scratch, results), 0);
    det_expression_close(expression);
}

static void rows_are_stored_and_an_error_skips_only_its_row(void **state)
{
    static struct row rows[ROWS];
    struct test_inputs *inputs = test_inputs();
    struct det_expression_options options = test_options();
    const void *pointers[] = { rows, rows, &inputs->now, &inputs->key };
    size_t strides[] = { sizeof rows[0], sizeof rows[0], 0, 0 };
    struct det_expression_rows batch = { pointers, strides, ROWS };
    struct det_expression *expression = NULL;
    int8_t results[ROWS];

    (void)state;
    for (unsigned i = 0; i < ROWS; i++)
        rows[i] = (struct row){ .c = i * 5, .a = 1 };
    options.target = row_record();
    options.field = "a";
    assert_int_equal(det_expression_open("c", 1, &options, &expression, NULL), 0);
    assert_int_equal(
        det_expression_store_rows(
            expression, &batch, &inputs->scratch, rows, sizeof rows[0], results),
        ROWS - 52);
    for (unsigned i = 0; i < ROWS; i++) {
        assert_int_equal(results[i], i * 5 < 256 ? 0 : DET_ERR_RANGE);
        assert_int_equal(rows[i].a, i * 5 < 256 ? i * 5 : 1);
    }
    det_expression_close(expression);
}

static void reads_are_listed_once_each(void **state)
{
    static const char text[] =
        "a + row.piece.pieces + a > 3 and has(spare.label) or key in words and now > at and "
        "pieces[c].pieces == 3";
    static const struct {
        size_t input;
        const char *path;
    } expected[] = { { 0, "a" },
                     { 1, "piece.pieces" },
                     { 0, "spare.label" },
                     { 3, "" },
                     { 0, "words" },
                     { 0, "at" },
                     { 2, "" },
                     { 0, "c" },
                     { 0, "pieces" },
                     { 0, "pieces.pieces" } };
    struct det_expression_options options = test_options();
    struct det_expression *expression = NULL;
    const struct det_expression_read *reads;
    size_t count;

    (void)state;
    assert_int_equal(det_expression_open(text, sizeof text - 1, &options, &expression, NULL), 0);
    reads = det_expression_reads(expression, &count);
    assert_int_equal(count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < count; i++) {
        bool is_found = false;

        for (size_t k = 0; k < count; k++)
            is_found |=
                reads[k].input == expected[i].input && strcmp(reads[k].path, expected[i].path) == 0;
        assert_true(is_found);
        assert_int_equal(reads[i].field == NULL, reads[i].path[0] == '\0');
    }
    det_expression_close(expression);
}

static void the_canonical_form_has_the_usual_blanks(void **state)
{
    static const struct test_case cases[] = {
        { " a+b*-c ", "a + b * -c" },
        { "a-1", "a - 1" },
        { "- ( a )", "-(a)" },
        { "a=1 and\n  not(b)", "a == 1 and not (b)" },
        { "min( a ,b )", "min(a, b)" },
        { "x [ 0 ] . y in[1,2]", "x[0].y in [1, 2]" },
        { "\"a\"+\"it's\"+'say \"it\\'s\"'", "'a' + \"it's\" + 'say \"it\\'s\"'" },
        { "'a\\n\\t\\\\'", "'a\\n\\t\\\\'" },
        { "90m + 1_000 * 1.50e3", "1h30m + 1000 * 1.50e3" },
        { "if a then(b)else[", "column 18: a bracket is not closed" },
        { "a)", "column 2: this bracket was not opened" },
        { "a or_else-1", "a or_else -1" },
        { "`in`+row.in", "`in` + row.in" },
        { "", "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct det_error error = { 0 };
        char text[200];
        int64_t size =
            det_expression_format(cases[i].text, strlen(cases[i].text), text, sizeof text, &error);

        assert_string_equal(size < 0 ? error.text : text, cases[i].expected);
        if (size < 0)
            continue;
        assert_int_equal(size, strlen(text));
        assert_int_equal(
            det_expression_format(cases[i].text, strlen(cases[i].text), NULL, 0, NULL), size);
        assert_int_equal(
            det_expression_format(cases[i].text, strlen(cases[i].text), text, 4, NULL), size);
        assert_true(strlen(text) <= 3);
    }
}

static void the_documentation_lists_every_function(void **state)
{
    static const char *const rows[] = {
#define FUNCTION(name, parameters, result, low, high, form, help) "| `" form "` | " help " |",
#define SPECIAL(name, least, most, form, help)                    "| `" form "` | " help " |",
#include "expression/functions.def"
#undef FUNCTION
#undef SPECIAL
    };
    size_t size;
    char *page = det_test_read_file(DET_SOURCE_DIR "/docs/formats/expression.md", &size);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!strstr(page, rows[i]))
            print_error("missing: %s\n", rows[i]);
        assert_non_null(strstr(page, rows[i]));
    }
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_stored_in_every_kind_of_field),
        cmocka_unit_test(what_does_not_fit_its_field_is_refused_or_leaves_it_unchanged),
        cmocka_unit_test(rows_have_the_results_of_single_evaluations),
        cmocka_unit_test(rows_are_stored_and_an_error_skips_only_its_row),
        cmocka_unit_test(reads_are_listed_once_each),
        cmocka_unit_test(the_canonical_form_has_the_usual_blanks),
        cmocka_unit_test(the_documentation_lists_every_function),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
