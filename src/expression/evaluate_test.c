/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* evaluate_test.c - what expressions mean. tests/expression compares many more with a model. */
#include "expression/expression_test.h"

static void integers_are_exact_from_the_least_to_the_largest(void **state)
{
    static const struct test_case cases[] = {
        { "a + b * c", "int 420200" },
        { "d", "int 18446744073709551615" },
        { "h", "int -9223372036854775808" },
        { "-9223372036854775808", "int -9223372036854775808" },
        { "-h", "int 9223372036854775808" },
        { "h + d", "int 9223372036854775807" },
        { "d - d", "int 0" },
        { "d - 1 - d", "int -1" },
        { "numbers[2] + 1", "int 9223372036854775808" },
        { "d + 1", "OVERFLOW: column 3: the result is not between -2^63 and 2^64-1" },
        { "h - 1", "OVERFLOW: column 3: the result is not between -2^63 and 2^64-1" },
        { "d * -1", "OVERFLOW: column 3: the result is not between -2^63 and 2^64-1" },
        { "d * d / d", "OVERFLOW: column 3: the result is not between -2^63 and 2^64-1" },
        { "-d", "OVERFLOW: column 1: the result is not between -2^63 and 2^64-1" },
        { "h * -1", "int 9223372036854775808" },
        { "h / -1", "int 9223372036854775808" },
        { "h % -1", "int 0" },
        { "abs(h)", "int 9223372036854775808" },
        { "7 / 2", "int 3" },
        { "-7 / 2", "int -3" },
        { "-7 % 2", "int -1" },
        { "7 % -2", "int 1" },
        { "d / e", "int -3689348814741910323" },
        { "1_000_000 * 3", "int 3000000" },
        { "min(e, f, a)", "int -300" },
        { "max(d, h, 0)", "int 18446744073709551615" },
        { "a / (c - 7)", "RANGE: column 3: division by zero" },
        { "a % (c - 7)", "RANGE: column 3: division by zero" },
    };

    (void)state;
    TEST_CASES(cases);
}

static void floats_are_finite(void **state)
{
    static const struct test_case cases[] = {
        { "x * 2", "float 5" },
        { "1 / 2.0", "float 0.5" },
        { "x / (y + 0.5)", "RANGE: column 3: division by zero" },
        { "x * 1e307 * 100", "OVERFLOW: column 11: the result exceeds the largest float" },
        { "round(x)", "int 3" },
        { "round(-x)", "int -3" },
        { "round(0.49999999999999994)", "int 0" },
        { "floor(y)", "int -1" },
        { "ceil(y)", "int 0" },
        { "int(-2.9)", "int -2" },
        { "int(1e19)", "int 10000000000000000000" },
        { "int(x * 1e300)", "OVERFLOW: column 1: the result is not between -2^63 and 2^64-1" },
        { "float(d)", "float 1.8446744073709552e+19" },
        { "d == 18446744073709551616.0", "false" },
        { "d < 18446744073709551616.0", "true" },
        { "9007199254740993 == 9007199254740992.0", "false" },
        { "x in [1, 2.5]", "true" },
        { "0.5 in ratios", "true" },
        { "1e3", "float 1000" },
        { "min(1, 2.5, a)", "float 1" },
    };

    (void)state;
    TEST_CASES(cases);
}

static void a_field_that_is_not_finite_is_an_error_when_it_is_read(void **state)
{
    struct test_inputs *inputs = test_inputs();

    (void)state;
    inputs->row.x = 1e308 * 10;
    assert_string_equal(
        test_evaluate(inputs, "y + x"), "RANGE: column 5: the field is not a finite number");
    inputs->row.x -= inputs->row.x;
    assert_string_equal(
        test_evaluate(inputs, "x == x"), "RANGE: column 1: the field is not a finite number");
    assert_string_equal(test_evaluate(inputs, "yes or x == x"), "true");
}

static void conditions_evaluate_only_what_decides(void **state)
{
    static const struct test_case cases[] = {
        { "yes or 1 / (c - 7) == 1", "true" },
        { "not yes and 1 / (c - 7) == 1", "false" },
        { "yes and 1 / (c - 7) == 1", "RANGE: column 11: division by zero" },
        { "if yes then 1 else 1 / (c - 7)", "int 1" },
        { "1 < 2 and 2 < 1 or a == 200 and not (a != 200)", "true" },
        { "a > 3 or b < 2 and c == 0", "true" },
        { "(a > 300 or b < 2) and c == 7", "false" },
        { "not a > 3", "false" },
        { "yes == not yes", "false" },
        { "yes != (a > 300 or c > 300)", "true" },
        { "(a > 300 or c == 7) == yes", "true" },
        { "if a > 300 then 1 else if b > 2 then 2 else 3", "int 2" },
        { "1 + if yes then 1 else 2 + 10", "int 2" },
        { "if yes then 1 else 2.5", "float 1" },
        { "if not yes then 1 else 2.5", "float 2.5" },
        { "if not yes then 1.5 else c", "float 7" },
        { "if not yes then -1 else d", "int 18446744073709551615" },
        { "a in [1, 200]", "true" },
        { "a not in [1, 200]", "false" },
        { "not a in [1, 200]", "false" },
        { "'cd' in words and -20 in numbers and 20 not in numbers", "true" },
        { "'dark-blue' in tones", "true" },
    };

    (void)state;
    TEST_CASES(cases);
}

static void an_absent_value_is_replaced_or_asked_for(void **state)
{
    static const struct test_case cases[] = {
        { "limit", "absent" },
        { "limit or_else -1", "int -1" },
        { "note or_else 'x'", "'r\xc3\xa9sum\xc3\xa9'" },
        { "limit or_else spare.pieces or_else a", "int 200" },
        { "coalesce(limit, spare.pieces, a)", "int 200" },
        { "has(limit)", "false" },
        { "has(note)", "true" },
        { "has(title)", "true" },
        { "has(pieces[1].weight) or has(pieces[2])", "false" },
        { "has(pieces[0].weight) and pieces[0].weight == 1.5", "true" },
        { "if has(spare.label) then spare.label else 'none'", "'none'" },
        { "not has(limit) or limit > 3", "true" },
        { "if not has(limit) then 0 else limit", "int 0" },
        { "has(spare) and spare.pieces == 3", "false" },
        { "pieces[1].pieces", "int 2" },
        { "pieces[2].pieces", "absent" },
        { "pieces[e].pieces or_else 7", "int 7" },
        { "pieces[2].pieces + 1", "RANGE: column 8: the index is out of bounds" },
        { "pieces[-1].pieces + 1", "RANGE: column 8: the index is out of bounds" },
        { "pieces[d].pieces + 1", "RANGE: column 8: the index is out of bounds" },
        { "row.pieces[count(pieces) - 1].label", "'two'" },
        { "parse_int(title) or_else 5", "int 5" },
        { "parse_int('12') + 1", "int 13" },
        { "parse_int(title) + 1", "MALFORMED: column 1: the text is not an int" },
        { "parse_int('-9223372036854775808')", "int -9223372036854775808" },
        { "time(title) or_else now", "time 1769853600000000000" },
        { "none", "absent" },
        { "if yes then none else 3", "absent" },
        { "if yes then limit else 3", "absent" },
        { "has(limit) and limit or_else 3 == 3", "false" },
    };

    (void)state;
    TEST_CASES(cases);
}

static void texts_are_utf8(void **state)
{
    static const struct test_case cases[] = {
        { "title + ', ' + piece.label + \"'\"", "'Hello, bolt''" },
        { "length(note or_else '')", "int 6" },
        { "substring('r\xc3\xa9sum\xc3\xa9', 1, 2)", "'\xc3\xa9s'" },
        { "substring(title, 3)", "'lo'" },
        { "substring(title, 99)", "''" },
        { "substring(title, e)", "RANGE: column 1: a position and a count are not negative" },
        { "upper('stra\xc3\x9f"
          "e 1') + lower('ABC')",
          "'STRA\xc3\x9f"
          "E 1abc'" },
        { "trim(' a b\t')", "'a b'" },
        { "replace('a.b.c', '.', '--')", "'a--b--c'" },
        { "replace('aaa', 'aa', 'b')", "'ba'" },
        { "replace('abc', '', 'x')", "'abc'" },
        { "starts_with(title, 'He') and ends_with(title, 'lo') and contains(title, 'll')", "true" },
        { "contains(title, '')", "true" },
        { "title < 'Hellp' and 'a' > 'Z' and '' < 'a' and 'a' < 'ab'", "true" },
        { "text(d) + text(x) + text(yes) + text(1h30m) + text(tone)",
          "'184467440737095516152.5true1h30mgreen'" },
        { "text(at)", "'2026-01-31T10:00:00.25Z'" },
        { "hex(blob)", "'ab01'" },
        { "length(blob)", "int 2" },
        { "blob == row.blob", "true" },
        { "key + '!'", "'k-1!'" },
        { "max('b', 'abc', title)", "'b'" },
        { "hash('abc') == hash('ab' + 'c')", "true" },
        { "hash('')", "int 17280346270528514342" },
        { "hash(1)", "int 5348651604043249702" },
        { "'\\n' + '\\t' + '\\\\' + '\\''", "'\n\t\\''" },
    };

    (void)state;
    TEST_CASES(cases);
}

static void times_and_durations_have_their_own_arithmetic(void **state)
{
    static const struct test_case cases[] = {
        { "at - now", "duration 250000000" },
        { "now + 1h30m - now == 90m", "true" },
        { "1h + now > now", "true" },
        { "(at - now) / 1ms", "int 250" },
        { "(at - now) % 100ms", "duration 50000000" },
        { "3 * 5s", "duration 15000000000" },
        { "-5s / 2", "duration -2500000000" },
        { "abs(-5s)", "duration 5000000000" },
        { "start_of(at, 1h) == now", "true" },
        { "start_of(time('1969-12-31T23:59:59Z'), 1d)", "time -86400000000000" },
        { "start_of(now, 0s)", "RANGE: column 1: start_of needs a duration of more than 0" },
        { "time('2026-01-31T10:00:00Z') == now", "true" },
        { "text(year(now)) + '-' + text(month(now)) + '-' + text(day(now))", "'2026-1-31'" },
        { "weekday(now) * 10000 + hour(at) * 100 + minute(at)", "int 61000" },
        { "second(at + 59s)", "int 59" },
        { "weekday(time('2026-02-01T00:00:00Z'))", "int 7" },
        { "hour(time('1969-12-31T23:59:59Z'))", "int 23" },
        { "now + 106751d + 106751d",
          "OVERFLOW: column 5: the result is beyond the years 1677 to 2262" },
        { "5s * d", "OVERFLOW: column 4: the result is beyond the years 1677 to 2262" },
        { "5s / (c - 7)", "RANGE: column 4: division by zero" },
        { "max(at, now) == at", "true" },
        { "now in [time('2026-01-31T10:00:00Z')]", "true" },
    };

    (void)state;
    TEST_CASES(cases);
}

static void an_enum_is_compared_with_its_names(void **state)
{
    static const struct test_case cases[] = {
        { "tone == 'green'", "true" },
        { "'green' != tone", "false" },
        { "tone in ['red', 'dark-blue']", "false" },
        { "tone == piece.tone", "false" },
        { "if yes then 'red' else tone", "enum 0" },
        { "if yes then tone else 'red'", "enum 1" },
        { "shade or_else 'dark-blue'", "enum 2" },
        { "tone == if yes then 'green' else 'red'", "true" },
    };

    (void)state;
    TEST_CASES(cases);
}

static void a_name_is_a_field_before_it_is_an_input(void **state)
{
    static const struct test_case cases[] = {
        { "row.a + a", "int 400" },
        { "`in` + row.in", "int 18" },
        { "row.`in`", "int 9" },
        { "now == now", "true" },
    };
    struct det_expression_input inputs[] = { { .record = row_record() },
                                             { .name = "a", .kind = DET_KIND_TIME } };
    struct det_expression_options options = { .inputs = inputs, .input_count = 2 };
    struct det_expression *expression = NULL;

    (void)state;
    TEST_CASES(cases);
    assert_int_equal(det_expression_open("a", 1, &options, &expression, NULL), 0);
    assert_int_equal(det_expression_type(expression), DET_EXPRESSION_INT);
    det_expression_close(expression);
}

static void texts_of_an_evaluation_are_limited(void **state)
{
    struct test_inputs *inputs = test_inputs();
    char text[400] = "title";

    (void)state;
    /* Each doubles the text: 20 bytes become 20,480. */
    for (unsigned i = 0; i < 10; i++) {
        char longer[400];

        snprintf(longer, sizeof longer, "replace(%s, 'x', 'xx')", text);
        memcpy(text, longer, sizeof text);
    }
    memset(inputs->row.title, 'x', 20);
    assert_string_equal(
        test_evaluate(inputs, text),
        "LIMIT: column 9: the texts of this evaluation are larger than 16384 bytes");
}

static void any_bytes_in_a_row_are_read_safely(void **state)
{
    static const char *const texts[] = { "title + piece.label",
                                         "count(pieces) + count(words)",
                                         "words[2] + pieces[2].label",
                                         "'x' in words or 3 in numbers",
                                         "length(note or_else '')",
                                         "substring(title, 3, 2) + upper(title)",
                                         "text(tone)",
                                         "hex(blob)",
                                         "yes and has(spare) and spare.pieces > 3" };
    struct test_inputs *inputs = test_inputs();

    (void)state;
    for (unsigned fill = 0; fill < 256; fill++) {
        memset(&inputs->row, (int)fill, sizeof inputs->row);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            assert_null(strstr(test_evaluate(inputs, texts[i]), "refused"));
    }
    memset(&inputs->row, 0xff, sizeof inputs->row);
    assert_string_equal(test_evaluate(inputs, "count(pieces)"), "int 3");
    assert_string_equal(test_evaluate(inputs, "length(blob)"), "int 8");
    assert_string_equal(
        test_evaluate(inputs, "text(tone)"),
        "RANGE: column 1: the field holds none of the values of its enum");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_exact_from_the_least_to_the_largest),
        cmocka_unit_test(floats_are_finite),
        cmocka_unit_test(a_field_that_is_not_finite_is_an_error_when_it_is_read),
        cmocka_unit_test(conditions_evaluate_only_what_decides),
        cmocka_unit_test(an_absent_value_is_replaced_or_asked_for),
        cmocka_unit_test(texts_are_utf8),
        cmocka_unit_test(times_and_durations_have_their_own_arithmetic),
        cmocka_unit_test(an_enum_is_compared_with_its_names),
        cmocka_unit_test(a_name_is_a_field_before_it_is_an_input),
        cmocka_unit_test(texts_of_an_evaluation_are_limited),
        cmocka_unit_test(any_bytes_in_a_row_are_read_safely),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
