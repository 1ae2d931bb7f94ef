/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compile_test.c - what the compiler refuses, with the column and the remedy; its limits. */
#include "expression/expression_test.h"

static void the_grammar_is_checked_with_columns(void **state)
{
    static const struct test_case cases[] = {
        { "", "refused MALFORMED: column 1: the expression ends too early: a value is missing" },
        { "1 +", "refused MALFORMED: column 4: the expression ends too early: a value is missing" },
        { "(1", "refused MALFORMED: column 3: the expression ends too early: `)` is missing" },
        { "1)", "refused MALFORMED: column 2: `(` is missing before ')'" },
        { "1 2", "refused MALFORMED: column 3: an operator is missing before '2'" },
        { "* 2", "refused MALFORMED: column 1: a value is missing before '*'" },
        { "a in [1, 2", "refused MALFORMED: column 11: the expression ends too early: `]` is "
                        "missing" },
        { "[1]", "refused MALFORMED: column 1: a list is only on the right side of `in`" },
        { "if yes then 1",
          "refused MALFORMED: column 14: the expression ends too early: `else` is missing" },
        { "if yes",
          "refused MALFORMED: column 7: the expression ends too early: `then` is missing" },
        { "1 else 2", "refused MALFORMED: column 3: `else` without `if`; write `if a then b else "
                      "c`" },
        { "min(1, 2",
          "refused MALFORMED: column 9: the expression ends too early: `)` is missing" },
        { "1, 2", "refused MALFORMED: column 2: an operator is missing before ','" },
        { "a < b < c",
          "refused MALFORMED: column 7: comparisons are not chained; write `a < b and b "
          "< c`" },
        { "a && b", "refused MALFORMED: column 3: '&&' is not an operator here; write `and`" },
        { "!yes", "refused MALFORMED: column 1: '!' is not an operator here; write `not`" },
        { "a <> b", "refused MALFORMED: column 3: '<>' is not an operator here; write `!=`" },
        { "'abc", "refused MALFORMED: column 1: the text has no closing '" },
        { "'a\\x'",
          "refused MALFORMED: column 3: invalid escape; valid are \\', \\\", \\\\, \\n and "
          "\\t" },
        { "007", "refused MALFORMED: column 1: a number does not begin with 0" },
        { "1.", "refused MALFORMED: column 1: a float has digits after its point: 1.0" },
        { "5sec", "refused MALFORMED: column 1: not a number or a duration; write 1500, 2.5, 90s, "
                  "1h30m (d h m s ms us ns)" },
        { "99999999d", "refused OVERFLOW: column 1: the duration is longer than 292 years" },
        { "a \x01", "refused MALFORMED: column 3: the expression has a control character" },
        { "'\xff'", "refused MALFORMED: column 2: the expression is not UTF-8" },
        { "a @ b", "refused MALFORMED: column 3: unexpected character" },
        { "row.", "refused MALFORMED: column 5: the expression ends too early: the name of a field "
                  "is missing" },
    };

    (void)state;
    TEST_CASES(cases);
}

static void names_and_types_are_checked_with_remedies(void **state)
{
    static const struct test_case cases[] = {
        { "titel", "refused NOT_FOUND: column 1: 'titel' is not a field or an input; did you mean "
                   "'title'?" },
        { "row.titel", "refused NOT_FOUND: column 5: 'titel' is not a field of row; did you mean "
                       "'title'?" },
        { "uper(title)",
          "refused NOT_FOUND: column 1: 'uper' is not a function; did you mean upper(text)?" },
        { "tone == 'gren'",
          "refused TYPE: column 9: 'gren' is not a value of hue; did you mean 'green'?" },
        { "tone == title",
          "refused TYPE: column 6: == is not possible with enum hue and text; convert the enum: "
          "text(x)" },
        { "title == 3", "refused TYPE: column 7: == is not possible with text and int; convert the "
                        "other side: text(x)" },
        { "title + a", "refused TYPE: column 7: + is not possible with text and int; convert the "
                       "other side: text(x)" },
        { "now + 5", "refused TYPE: column 5: + is not possible with time and int; make a duration "
                     "of a number: x * 1s" },
        { "yes > yes", "refused TYPE: column 5: > is not possible with bool and bool; only == and "
                       "!= are" },
        { "piece == piece",
          "refused TYPE: column 7: == is not possible with record part and record "
          "part; compare their fields" },
        { "a and yes", "refused TYPE: column 1: and needs a bool, this is int" },
        { "not a", "refused TYPE: column 5: not needs a bool, this is int" },
        { "if a then 1 else 2", "refused TYPE: column 4: if needs a bool, this is int" },
        { "if yes then 1 else 'x'", "refused TYPE: column 20: this is text, the value before it is "
                                    "int; both must be of one type" },
        { "limit + 1", "refused TYPE: column 1: 'limit' may be absent; write `limit or_else 0` or "
                       "test it: `has(limit) and ...`" },
        { "has(limit) or limit > 3",
          "refused TYPE: column 15: 'limit' may be absent; write `limit or_else 0` or test it: "
          "`has(limit) and ...`" },
        { "spare.label + 'x'",
          "refused TYPE: column 1: 'spare.label' may be absent; write `spare.label or_else '...'` "
          "or test it: `has(spare.label) and ...`" },
        { "title or_else 'x'",
          "refused TYPE: column 1: 'title' is always present; remove what replaces it" },
        { "none + 1",
          "refused TYPE: column 1: `none` is only a result that is stored in an optional "
          "field" },
        { "x % 2", "refused TYPE: column 3: % is for integers and durations; convert with int(x)" },
        { "-title", "refused TYPE: column 1: - is for numbers and durations, this is text" },
        { "title.x", "refused TYPE: column 7: only a record has fields; this is a text" },
        { "pieces.label",
          "refused TYPE: column 8: only a record has fields; this is an array: take "
          "an element, lines[0].name" },
        { "title[0]", "refused TYPE: column 1: only an array has elements; this is a text" },
        { "words['a']", "refused TYPE: column 7: an index is an int; this is a text" },
        { "a in [1, 'x']", "refused TYPE: column 10: the left side is int, this element is text" },
        { "a in [1, b]",
          "refused TYPE: column 10: the elements of a list are constants; write `x == "
          "a or x == b`" },
        { "length(a)", "refused TYPE: column 8: length(x) does not take int" },
        { "length(words)",
          "refused TYPE: column 8: length(x) does not take array; use count(array)" },
        { "int('5')", "refused TYPE: column 5: this function needs a number, this is text; use "
                      "parse_int(text)" },
        { "upper(title, title)", "refused TYPE: column 1: 2 arguments for upper(text)" },
        { "upper()", "refused TYPE: column 1: 0 arguments for upper(text)" },
        { "min(a)", "refused TYPE: column 1: 1 argument for min(a, b, ...)" },
        { "has(a + 1)",
          "refused TYPE: column 5: has asks for a path such as note or lines[0].name" },
    };

    (void)state;
    TEST_CASES(cases);
}

static void constants_are_evaluated_by_the_compiler(void **state)
{
    static const struct test_case cases[] = {
        { "a / 0", "refused RANGE: column 3: division by zero" },
        { "a / (1 - 1)", "refused RANGE: column 3: division by zero" },
        { "18446744073709551615 + 1",
          "refused OVERFLOW: column 22: the result is never between -2^63 and 2^64-1" },
        { "18446744073709551616", "refused OVERFLOW: column 1: the number is larger than 2^64-1" },
        { "1e999", "refused RANGE: column 1: the number exceeds the largest float" },
        { "time('2026-02-30T00:00:00Z')",
          "refused MALFORMED: column 1: the text is not a time such "
          "as 2026-01-31T10:00:00Z" },
        { "a in [1 + 1, 2 * 100]", "true" },
    };

    (void)state;
    TEST_CASES(cases);
}

/* Appends a part `count` times. */
static void append(char *text, const char *part, unsigned count)
{
    size_t size = strlen(text), length = strlen(part);

    for (unsigned i = 0; i < count; i++, size += length)
        memcpy(text + size, part, length + 1);
}

static void limits_are_refused_with_a_sentence(void **state)
{
    struct test_inputs *inputs = test_inputs();
    static char text[2 * DET_EXPRESSION_SIZE_MAX];

    (void)state;
    memset(text, '(', 100);
    assert_non_null(strstr(test_evaluate(inputs, text), "more than 96 operators and brackets"));
    memset(text, 0, sizeof text);
    append(text, "not ", 60);
    append(text, "yes", 1);
    assert_string_equal(test_evaluate(inputs, text), "true");
    text[0] = '\0';
    append(text, "1 + (", 40);
    assert_non_null(strstr(test_evaluate(inputs, text), "more than 32 values wait"));
    text[0] = '\0';
    append(text, "a in [0", 1);
    append(text, ", 1", 256);
    append(text, "]", 1);
    assert_non_null(strstr(test_evaluate(inputs, text), "a list has at most 256 elements"));
    memset(text, ' ', DET_EXPRESSION_SIZE_MAX + 1);
    assert_string_equal(
        test_evaluate(inputs, text),
        "refused LIMIT: an expression has at most 4096 bytes, this one has 4097");
    memset(text, 0, sizeof text);
    append(text, "1", 1);
    append(text, " +c", 1000);
    assert_string_equal(test_evaluate(inputs, text), "int 7001");
}

static void a_nul_is_a_control_character(void **state)
{
    struct det_expression_options options = test_options();
    struct det_expression *expression = NULL;
    struct det_error error;

    (void)state;
    assert_int_equal(
        det_expression_open("a \0 b", 5, &options, &expression, &error), DET_ERR_MALFORMED);
    assert_int_equal(error.offset, 2);
    assert_null(expression);
}

static void invalid_options_are_refused(void **state)
{
    struct det_expression_input inputs[DET_EXPRESSION_INPUT_MAX + 1] = { { .name = "x" } };
    struct det_expression_options options = { .inputs = inputs, .input_count = 17 };
    struct det_expression *expression = NULL;
    struct det_record unsound = { .name = "unsound" };

    (void)state;
    assert_int_equal(det_expression_open("x", 1, &options, &expression, NULL), DET_ERR_LIMIT);
    options.input_count = 1;
    inputs[0].name = NULL;
    assert_int_equal(det_expression_open("x", 1, &options, &expression, NULL), DET_ERR_INVALID);
    inputs[0].record = &unsound;
    assert_int_equal(det_expression_open("x", 1, &options, &expression, NULL), DET_ERR_DEFINITION);
    options.input_count = 0;
    options.field = "x";
    assert_int_equal(det_expression_open("x", 1, &options, &expression, NULL), DET_ERR_INVALID);
    options.field = NULL;
    options.reserved[3] = 1;
    assert_int_equal(det_expression_open("x", 1, &options, &expression, NULL), DET_ERR_VERSION);
}

static void the_type_of_the_result_is_as_wanted(void **state)
{
    struct det_expression_options options = test_options();
    struct det_expression *expression = NULL;
    struct det_error error;

    (void)state;
    options.type = DET_EXPRESSION_FLOAT;
    options.is_optional = false;
    assert_int_equal(det_expression_open("a", 1, &options, &expression, &error), 0);
    assert_int_equal(det_expression_type(expression), DET_EXPRESSION_FLOAT);
    det_expression_close(expression);
    options.type = DET_EXPRESSION_BOOL;
    assert_int_equal(det_expression_open("a", 1, &options, &expression, &error), DET_ERR_TYPE);
    assert_string_equal(error.text, "column 1: this must be a bool, it is int");
    assert_int_equal(
        det_expression_open("limit > 1", 9, &options, &expression, &error), DET_ERR_TYPE);
    options.type = DET_EXPRESSION_INT;
    assert_int_equal(det_expression_open("limit", 5, &options, &expression, &error), DET_ERR_TYPE);
}

static int open_and_evaluate(struct det_test_memory *memory, void *argument)
{
    static const char text[] =
        "coalesce(note, pieces[c % 2].label, 'a' + 'b') in ['x', 'y'] and tone in ['red'] or "
        "if has(limit) and limit > 3 then text(d) == '1' else row.title < 'z'";
    struct det_expression_options options = test_options();
    struct test_inputs *inputs = test_inputs();
    struct det_expression *expression = NULL;
    const void *pointers[] = { &inputs->row, &inputs->row, &inputs->now, &inputs->key };
    struct det_error error;
    int r;

    (void)argument;
    options.allocator = &memory->allocator;
    r = det_expression_open(text, sizeof text - 1, &options, &expression, &error);
    if (r < 0) {
        assert_int_equal(error.code, DET_ERR_NO_MEMORY);
        assert_null(expression);
        return r;
    }
    assert_int_equal(det_expression_test(expression, pointers, &inputs->scratch, NULL), 1);
    det_expression_close(expression);
    return 0;
}

static void each_failed_allocation_leaves_nothing(void **state)
{
    (void)state;
    det_test_each_failure(open_and_evaluate, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_grammar_is_checked_with_columns),
        cmocka_unit_test(names_and_types_are_checked_with_remedies),
        cmocka_unit_test(constants_are_evaluated_by_the_compiler),
        cmocka_unit_test(limits_are_refused_with_a_sentence),
        cmocka_unit_test(a_nul_is_a_control_character),
        cmocka_unit_test(invalid_options_are_refused),
        cmocka_unit_test(the_type_of_the_result_is_as_wanted),
        cmocka_unit_test(each_failed_allocation_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
