/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* format_test.c - the format of specs. */
#include "lib/test.h"

#include <detent/tool/spec.h>

/* Formats twice and compares; formatting `expected` must not change it. */
static void becomes(const char *text, const char *expected)
{
    char target[2048], again[2048];
    struct det_error error;
    int64_t length = det_spec_format(text, strlen(text), target, sizeof target, &error);

    if (length < 0)
        fail_msg("%s", error.text);
    assert_string_equal(target, expected);
    assert_int_equal(length, strlen(expected));
    assert_int_equal(det_spec_format(text, strlen(text), NULL, 0, NULL), length);
    assert_int_equal(det_spec_format(target, (size_t)length, again, sizeof again, &error), length);
    assert_string_equal(again, expected);
}

static void fails(const char *text, uint64_t offset, const char *part)
{
    struct det_error error;

    assert_int_equal(det_spec_format(text, strlen(text), NULL, 0, &error), DET_ERR_MALFORMED);
    assert_int_equal(det_spec_format(text, strlen(text), NULL, 0, NULL), DET_ERR_MALFORMED);
    assert_int_equal(error.code, DET_ERR_MALFORMED);
    assert_int_equal(error.offset, offset);
    if (strstr(error.text, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.text, part);
}

static void rows_stand_on_lines_of_their_own(void **state)
{
    (void)state;
    becomes("STAY(A,B)  ON( A ,B,\n C )", "STAY(A, B)\nON(A, B, C)\n");
    becomes("GROUP(a,ANY(B,C),D)", "GROUP(a, ANY(B, C), D)\n");
    becomes("", "");
    becomes(" \n\n ", "");
}

static void neighbours_of_a_kind_are_aligned(void **state)
{
    (void)state;
    becomes(
        "STATE(A,a,INITIAL)\nSTATE(LONG,long_one)\n", "STATE(A,    a, INITIAL)\n"
                                                      "STATE(LONG, long_one)\n");
    becomes(
        "ON(A,BB,C,DO(x))\nON(AAA,B,CCC,IF(y))", "ON(A,   BB, C,   DO(x))\n"
                                                 "ON(AAA, B,  CCC, IF(y))\n");
    /* Another kind, an empty line and a comment end the run. */
    becomes(
        "GUARD(a)\nSTATE(A,a)\n\nSTATE(BB,b)\n// x\nSTATE(CCC,c)",
        "GUARD(a)\nSTATE(A, a)\n\nSTATE(BB, b)\n// x\nSTATE(CCC, c)\n");
    /* A very wide argument does not widen its column. */
    becomes(
        "ON(ANY(AAAAAAAA,BBBBBBBB,CCCCCCCC),E,T)\nON(A,E,T)",
        "ON(ANY(AAAAAAAA, BBBBBBBB, CCCCCCCC), E, T)\nON(A, E, T)\n");
}

static void rows_of_a_choice_are_aligned_together(void **state)
{
    (void)state;
    becomes(
        "ON(A,E,LONG,IF(g))ELSE(A,E,B)\nELSE (A,EE,B,IF(h)) // x\n",
        "ON  (A, E,  LONG, IF(g))\nELSE(A, E,  B)\nELSE(A, EE, B,    IF(h)) // x\n");
    becomes("ELSE(A,E,B)\n\nON  (A,E,B)", "ELSE(A, E, B)\n\nON(A, E, B)\n");
    becomes(
        "STAY(A,E)ELSE_STAY(AA,E,IF(g))ELSE_STAY(A,E)",
        "STAY(A, E)\nELSE_STAY(AA, E, IF(g))\nELSE_STAY(A,  E)\n");
}

static void a_row_that_is_too_long_is_aligned_with_its_neighbours(void **state)
{
    (void)state;
    becomes(
        "ON(A, E, B)\nELSE(STATE_WITH_A_NAME, EVENT_WITH_A_NAME, TARGET_WITH_A_NAME, "
        "IF(guard_with_a_name), CALL(some_hook))",
        "ON  (A,                 E,                 B)\n"
        "ELSE(STATE_WITH_A_NAME, EVENT_WITH_A_NAME, TARGET_WITH_A_NAME, "
        "IF(guard_with_a_name),\n    CALL(some_hook))\n");
    /* It would fit, were it not aligned. */
    becomes(
        "ON(STATE_WITH_A_NAME,E,B)\nON(A,EVENT_WITH_A_NAME,TARGET_WITH_A_NAME,IF(guard_with_a_name)"
        ","
        "CALL(a_hook_with_a_name)) // x\nON(B,E,B) // y",
        "ON(STATE_WITH_A_NAME, E,                 B)\n"
        "ON(A,                 EVENT_WITH_A_NAME, TARGET_WITH_A_NAME, IF(guard_with_a_name),\n"
        "    CALL(a_hook_with_a_name)) // x\n"
        "ON(B,                 E,                 B) // y\n");
    /* No line ends with blanks, and after a break nothing is aligned. */
    becomes(
        "ON(ANY(STATE_NUMBER_ONE,STATE_NUMBER_TWO,STATE_NUMBER_THREE),E,"
        "TARGET_WITH_A_VERY_LONG_NAME_INDEED,DO(x))\nON(A,EVENT_WITH_A_NAME,B,DO(x))",
        "ON(ANY(STATE_NUMBER_ONE, STATE_NUMBER_TWO, STATE_NUMBER_THREE), E,\n"
        "    TARGET_WITH_A_VERY_LONG_NAME_INDEED, DO(x))\n"
        "ON(A, EVENT_WITH_A_NAME, B, DO(x))\n");
    /* Comments inside are not aligned. */
    becomes("ON(A, /* to */ E, B)\nON(LONGER, E, B)\n", "ON(A, /* to */ E, B)\nON(LONGER, E, B)\n");
}

static void adjacent_strings_are_on_lines_of_their_own(void **state)
{
    (void)state;
    becomes(
        "SINK(a,b,USE(csv,\"{path:\"\n\n  \" a.csv}\" ))\nSINK(long_one, b)",
        "SINK(a,        b, USE(csv, \"{path:\"\n    \" a.csv}\"))\nSINK(long_one, b)\n");
    becomes("SINK(a, \"x\" \"y\" /* z */ \"w\")", "SINK(a, \"x\"\n    \"y\" /* z */ \"w\")\n");
}

static void comments_are_kept_where_they_stand(void **state)
{
    (void)state;
    becomes(
        "/* head */\nSTATE(A,a) // one\nSTATE(BB,bb)/* two */ /* three */\n// end",
        "/* head */\nSTATE(A,  a)  // one\nSTATE(BB, bb) /* two */ /* three */\n// end\n");
    becomes("/* x */ STATE(A, a)", "/* x */\nSTATE(A, a)\n");
    becomes("/* a  \n   b\t\n*/", "/* a\n   b\n*/\n");
    becomes("ON(A, /* in */ B, // first\n C)", "ON(A, /* in */ B, // first\n    C)\n");
    becomes("ON /* x */ (A /* y */, B)", "ON /* x */ (A /* y */, B)\n");
    becomes("ON(A, B // last\n)", "ON(A, B // last\n    )\n");
}

static void empty_lines_are_kept_but_not_doubled(void **state)
{
    (void)state;
    becomes("\n\nSTAY(A,B)\n\n\n\nSTOP(A,B)\r\n\r\n", "STAY(A, B)\n\nSTOP(A, B)\n");
}

static void directives_are_formatted(void **state)
{
    (void)state;
    becomes("#  define  L   A ,B,  C // list", "#define L A, B, C // list\n");
    becomes("#include   \"x.fsm\"/* y */", "#include \"x.fsm\" /* y */\n");
    becomes("/* x */ #define A 5", "/* x */\n#define A 5\n");
    becomes("#define A /* x */ B", "#define A /* x */ B\n");
}

static void records_are_indented(void **state)
{
    (void)state;
    becomes(
        "RECORD(a,2)FIELD(x,u8)OPTIONAL(yy,str(8),SENSITIVE)/* in */END STATE(A,a)",
        "RECORD(a, 2)\n    FIELD(x, u8)\n    OPTIONAL(yy, str(8), SENSITIVE) /* in */\nEND\n"
        "STATE(A, a)\n");
    becomes(
        "ENUM(a)\n// in\nVALUE(X,x)\nVALUE(YY,y)\nEND // out",
        "ENUM(a)\n    // in\n    VALUE(X,  x)\n    VALUE(YY, y)\nEND // out\n");
}

static void long_rows_are_broken_after_commas(void **state)
{
    (void)state;
    becomes(
        "ON_EACH(EVENT_WITH_A_NAME, TARGET_WITH_A_NAME, STATE_NUMBER_ONE, STATE_NUMBER_TWO, "
        "STATE_NUMBER_THREE, STATE_NUMBER_FOUR) // long",
        "ON_EACH(EVENT_WITH_A_NAME, TARGET_WITH_A_NAME, STATE_NUMBER_ONE, STATE_NUMBER_TWO,\n"
        "    STATE_NUMBER_THREE, STATE_NUMBER_FOUR) // long\n");
    /* A call stays together where it fits on a line. */
    becomes(
        "ON(STATE_WITH_A_NAME, EVENT_WITH_A_NAME, TARGET_WITH_A_NAME, IF(guard_with_a_name), "
        "WITHIN(SECONDS(30), TIMEOUT))",
        "ON(STATE_WITH_A_NAME, EVENT_WITH_A_NAME, TARGET_WITH_A_NAME, IF(guard_with_a_name),\n"
        "    WITHIN(SECONDS(30), TIMEOUT))\n");
}

static void mistakes_are_reported_with_their_offset(void **state)
{
    (void)state;
    fails("STATE(A a)", 8, "a comma or a closing bracket");
    fails("STATE(A, )", 9, "expected an argument");
    fails("STATE(A", 7, "a comma or a closing bracket");
    fails("STATE(A(B(C(D(E)))))", 13, "too deep");
    fails("STATE A", 6, "expected (");
    fails("(", 0, "a row, a comment");
    fails("STATE(A, a);", 11, ";");
    fails("#ifdef A", 1, "#define and #include");
    fails("#define", 7, "expected a name after");
    fails("#define A", 9, "names separated by commas");
    fails("#define A\nB", 10, "names separated by commas");
    fails("#define A(x) B", 8, "without arguments");
    fails("#define A B C", 12, "a comma is missing");
    fails("#include x", 9, "file name");
    fails("#include \"x\" y", 13, "expected the end of the line");
    fails("STAY(A, B)\n\xff", 11, "2:1: the text is not UTF-8");
    fails("/* x", 0, "does not end");
}

static void small_target_gets_a_truncated_text(void **state)
{
    char target[8];

    (void)state;
    memset(target, 'x', sizeof target);
    assert_int_equal(det_spec_format("STAY(A,B)", 9, target, sizeof target, NULL), 11);
    assert_string_equal(target, "STAY(A,");
    assert_int_equal(det_spec_format("STAY(A,B)", 9, target, 1, NULL), 11);
    assert_string_equal(target, "");
}

static void a_text_that_is_too_large_is_refused(void **state)
{
    size_t size = DET_SPEC_SIZE_MAX + 1;
    char *text = malloc(size);
    struct det_error error;

    (void)state;
    assert_non_null(text);
    memset(text, '\n', size);
    assert_int_equal(det_spec_format(text, size, NULL, 0, &error), DET_ERR_LIMIT);
    assert_int_equal(det_spec_format(text, size - 1, NULL, 0, &error), 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_stand_on_lines_of_their_own),
        cmocka_unit_test(neighbours_of_a_kind_are_aligned),
        cmocka_unit_test(rows_of_a_choice_are_aligned_together),
        cmocka_unit_test(a_row_that_is_too_long_is_aligned_with_its_neighbours),
        cmocka_unit_test(adjacent_strings_are_on_lines_of_their_own),
        cmocka_unit_test(comments_are_kept_where_they_stand),
        cmocka_unit_test(empty_lines_are_kept_but_not_doubled),
        cmocka_unit_test(directives_are_formatted),
        cmocka_unit_test(records_are_indented),
        cmocka_unit_test(long_rows_are_broken_after_commas),
        cmocka_unit_test(mistakes_are_reported_with_their_offset),
        cmocka_unit_test(small_target_gets_a_truncated_text),
        cmocka_unit_test(a_text_that_is_too_large_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
