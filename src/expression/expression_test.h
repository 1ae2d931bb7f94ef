/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* expression_test.h - what the suites share: a row, and expressions over it, text in and text
 * out. */
#ifndef DET_EXPRESSION_EXPRESSION_TEST_H
#define DET_EXPRESSION_EXPRESSION_TEST_H

#include "lib/test.h"

#define REC_SPEC "expression/row.rec"
#include <detent/rec/declare.h>

#include <inttypes.h>

#include <detent/expression.h>

#include "base/text.h"
#include "record/number.h"

#define TEST_TEXT 40000

/* What the expressions of a test read: the fields of the row, without a name and as `row`; `now`,
 * 2026-01-31T10:00:00Z; and `key`, a text. */
struct test_inputs {
    struct row row;
    det_time now;
    struct det_expression_text key;
    struct det_expression_scratch scratch;
    char result[TEST_TEXT]; /* of the last evaluation */
};

static inline struct row test_row(void)
{
    return (
        struct row){ .a = 200,
                     .b = 60000,
                     .c = 7,
                     .d = UINT64_MAX,
                     .e = -5,
                     .f = -300,
                     .g = 70000,
                     .h = INT64_MIN,
                     .x = 2.5,
                     .y = -0.5,
                     .yes = true,
                     .at = INT64_C(1769853600250000000),
                     .title = "Hello",
                     .tone = HUE_GREEN,
                     .piece = { .label = "bolt", .pieces = 3, .tone = HUE_BLUE },
                     .blob = { .size = 2, .data = { 0xAB, 0x01 } },
                     .has_note = true,
                     .note = "r\xc3\xa9sum\xc3\xa9",
                     .pieces_count = 2,
                     .pieces = { { .label = "one", .pieces = 1, .has_weight = true, .weight = 1.5 },
                                 { .label = "two", .pieces = 2 } },
                     .words_count = 2,
                     .words = { "ab", "cd" },
                     .numbers_count = 3,
                     .numbers = { 10, -20, INT64_MAX },
                     .tones_count = 1,
                     .tones = { HUE_BLUE },
                     .ratios_count = 1,
                     .ratios = { 0.5 },
                     .in = 9 };
}

/* In static memory; the row is that of test_row(). */
static inline struct test_inputs *test_inputs(void)
{
    static struct test_inputs inputs;

    inputs.row = test_row();
    inputs.now = INT64_C(1769853600000000000);
    inputs.key = (struct det_expression_text){ "k-1", 3 };
    return &inputs;
}

static inline struct det_expression_options test_options(void)
{
    static struct det_expression_input declared[4];

    declared[0] = (struct det_expression_input){ .record = row_record() };
    declared[1] = (struct det_expression_input){ .name = "row", .record = row_record() };
    declared[2] = (struct det_expression_input){ .name = "now", .kind = DET_KIND_TIME };
    declared[3] = (struct det_expression_input){ .name = "key", .kind = DET_KIND_TEXT };
    return (
        struct det_expression_options){ .inputs = declared, .input_count = 4, .is_optional = true };
}

static inline void test_print(struct test_inputs *inputs, const struct det_expression_value *value)
{
    char *to = inputs->result, number[DET_DOUBLE_TEXT];
    const char *type = det_expression_type_name(value->type);

    if (value->is_absent)
        snprintf(to, TEST_TEXT, "absent");
    else if (value->type == DET_EXPRESSION_INT && value->is_unsigned)
        snprintf(to, TEST_TEXT, "int %" PRIu64, value->natural);
    else if (value->type == DET_EXPRESSION_FLOAT)
        snprintf(to, TEST_TEXT, "float %s", det_format_double(value->number, number));
    else if (value->type == DET_EXPRESSION_BOOL)
        snprintf(to, TEST_TEXT, "%s", value->truth ? "true" : "false");
    else if (value->type == DET_EXPRESSION_TEXT)
        snprintf(to, TEST_TEXT, "'%.*s'", (int)value->text.size, value->text.data);
    else
        snprintf(to, TEST_TEXT, "%s %" PRId64, type, value->integer);
}

/* Evaluates a text: "int 5", "'abc'", "true", "absent", "RANGE: column 3: ..." of an evaluation, or
 * "refused TYPE: column 1: ..." by the compiler. */
static inline const char *test_evaluate(struct test_inputs *inputs, const char *text)
{
    const void *pointers[] = { &inputs->row, &inputs->row, &inputs->now, &inputs->key };
    struct det_expression_options options = test_options();
    struct det_expression_value value;
    struct det_expression *expression;
    struct det_error error;
    int r = det_expression_open(text, strlen(text), &options, &expression, &error);

    if (r < 0) {
        snprintf(inputs->result, TEST_TEXT, "refused %s: %s", det_error_name(r), error.text);
        return inputs->result;
    }
    r = det_expression_value(expression, pointers, &inputs->scratch, &value, &error);
    if (r < 0)
        snprintf(inputs->result, TEST_TEXT, "%s: %s", det_error_name(r), error.text);
    else
        test_print(inputs, &value);
    det_expression_close(expression);
    return inputs->result;
}

/* Stores the result in a field of the row: "stored", or an error as above. */
static inline const char *test_store(
    struct test_inputs *inputs, const char *text, const char *field)
{
    const void *pointers[] = { &inputs->row, &inputs->row, &inputs->now, &inputs->key };
    struct det_expression_options options = test_options();
    struct det_expression *expression;
    struct det_error error;
    int r;

    options.target = row_record();
    options.field = field;
    options.is_optional = false;
    r = det_expression_open(text, strlen(text), &options, &expression, &error);
    if (r < 0) {
        snprintf(inputs->result, TEST_TEXT, "refused %s: %s", det_error_name(r), error.text);
        return inputs->result;
    }
    r = det_expression_store(expression, pointers, &inputs->scratch, &inputs->row, &error);
    snprintf(
        inputs->result, TEST_TEXT, "%s%s%s", r < 0 ? det_error_name(r) : "stored",
        r < 0 ? ": " : "", r < 0 ? error.text : "");
    det_expression_close(expression);
    return inputs->result;
}

struct test_case {
    const char *text, *expected;
};

static inline void test_cases(const struct test_case *cases, size_t count)
{
    struct test_inputs *inputs = test_inputs();

    for (size_t i = 0; i < count; i++) {
        const char *got = test_evaluate(inputs, cases[i].text);

        if (strcmp(got, cases[i].expected) != 0)
            print_error("%s\n", cases[i].text);
        assert_string_equal(got, cases[i].expected);
    }
}
#define TEST_CASES(cases) test_cases((cases), sizeof(cases) / sizeof(cases)[0])

#endif
