/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lex_test.c - the tokens of a spec file and their places. */
#include "lib/test.h"

#include "machine/lex.h"

/* Returns a kind as a letter: n name, 1 number, s string, ( ) , # c comment, ! bad. */
static char letter(enum det_token_kind kind)
{
    static const char letters[] = ".n1s(),#c!";

    return letters[kind];
}

/* The kinds of all tokens of a text; the buffer lives until the next call. */
static const char *kinds(const char *text, bool with_comments)
{
    static char found[64];
    struct det_lexer lexer;
    size_t count = 0;

    det_lexer_init(&lexer, text, (uint32_t)strlen(text));
    for (;;) {
        struct det_token token =
            with_comments ? det_lexer_next_any(&lexer) : det_lexer_next(&lexer);

        assert_true(count + 1 < sizeof found);
        found[count++] = letter(token.kind);
        if (token.kind == DET_TOKEN_END)
            break;
    }
    found[count] = '\0';
    return found;
}

/* The token with this number, from 0. */
static struct det_token token_at(const char *text, unsigned number)
{
    struct det_token token;
    struct det_lexer lexer;

    det_lexer_init(&lexer, text, (uint32_t)strlen(text));
    do
        token = det_lexer_next(&lexer);
    while (number-- > 0);
    return token;
}

static void text_is_cut_into_tokens(void **state)
{
    (void)state;
    assert_string_equal(kinds("ON(A, B_2, \"x\", 30)", false), "n(n,n,s,1).");
    assert_string_equal(kinds("#define X Y", false), "#nnn.");
    assert_string_equal(kinds("", false), ".");
    assert_string_equal(kinds(" \t\r\n", false), ".");
    assert_string_equal(kinds("-5 0 10", false), "111.");
}

static void comments_are_skipped_or_kept(void **state)
{
    (void)state;
    assert_string_equal(kinds("A /* x */ B // y\nC /* z\n */", false), "nnn.");
    assert_string_equal(kinds("A /* x */ B // y\nC /* z\n */", true), "ncncnc.");
    assert_string_equal(kinds("/**/ /***/ //", true), "ccc.");
    assert_string_equal(kinds("/* /* */ A", true), "cn.");
}

static void hash_must_begin_its_line(void **state)
{
    (void)state;
    assert_string_equal(kinds("  #include", false), "#n.");
    assert_string_equal(kinds("/* x */ #include", false), "#n.");
    assert_string_equal(kinds("/* x */ #include", true), "c#n.");
    assert_string_equal(kinds("A #include", false), "n!n.");
    assert_string_equal(kinds("A /* \n */ #include", true), "nc!n.");
}

static void tokens_that_c_reads_differently_are_refused(void **state)
{
    (void)state;
    assert_string_equal(kinds("010", false), "!.");
    assert_non_null(strstr(token_at("010", 0).problem, "octal"));
    assert_string_equal(kinds("10L 0x1F 1.5 2e3", false), "!!!!.");
    assert_string_equal(kinds("; \\ ' { } [ ] * / + - < é", false), "!!!!!!!!!!!!!.");
}

static void string_token_must_end_on_its_line(void **state)
{
    (void)state;
    assert_string_equal(kinds("\"a\\\"b\\\\\" \"\\n\\t\"", false), "ss.");
    assert_string_equal(kinds("\"open\nA", false), "!n.");
    assert_string_equal(kinds("\"open", false), "!.");
    assert_string_equal(kinds("\"a\\", false), "!.");
    assert_non_null(strstr(token_at("\"a\\q\"", 0).problem, "invalid escape"));
}

static void a_comment_that_does_not_end_is_bad(void **state)
{
    (void)state;
    assert_string_equal(kinds("A /* B", false), "n!.");
    assert_string_equal(kinds("/*", true), "!.");
    assert_string_equal(kinds("/*/", true), "!.");
}

static void tokens_have_their_line_and_column(void **state)
{
    const char *text = "A\r\n  BB(\n\n\tC /* \n */ D";
    struct det_token token = token_at(text, 1);

    (void)state;
    assert_int_equal(token.line, 2);
    assert_int_equal(token.column, 3);
    assert_int_equal(token.length, 2);
    assert_true(token.starts_line);
    assert_false(token.after_blank_line);
    token = token_at(text, 3);
    assert_int_equal(token.line, 4);
    assert_int_equal(token.column, 2);
    assert_true(token.after_blank_line);
    token = token_at(text, 4);
    assert_int_equal(token.line, 5);
    assert_int_equal(token.column, 5);
    assert_false(token.starts_line);
    token = token_at(text, 5);
    assert_int_equal(token.kind, DET_TOKEN_END);
    assert_int_equal(token.offset, strlen(text));
}

static void a_bad_character_is_one_token_however_wide(void **state)
{
    struct det_token token = token_at("A é B", 1);

    (void)state;
    assert_int_equal(token.kind, DET_TOKEN_BAD);
    assert_int_equal(token.length, 2);
}

static struct det_text_problem check(const char *text, size_t size)
{
    return det_lexer_check(text, (uint32_t)size);
}

static void a_text_is_utf8_without_control_characters(void **state)
{
    struct det_text_problem found = check("a\nb\xff", 4);

    (void)state;
    assert_null(check("", 0).problem);
    assert_null(check("\tA é\r\n", 7).problem);
    assert_true(found.problem != NULL && found.is_encoding);
    assert_int_equal(found.token.line, 2);
    assert_int_equal(found.token.column, 2);
    assert_non_null(check("a\0b", 3).problem);
    assert_non_null(check("\x1b", 1).problem);
    assert_non_null(check("\x7f", 1).problem);
    assert_non_null(check("a\rb", 3).problem);
    assert_non_null(check("a\r", 2).problem);
    /* The first of two problems is reported. */
    assert_int_equal(check("\x01\xff", 2).token.offset, 0);
}

static void a_backslash_does_not_join_lines(void **state)
{
    (void)state;
    assert_non_null(check("a \\\nb", 5).problem);
    assert_false(check("a \\\nb", 5).is_encoding);
    assert_non_null(check("a \\  \r\nb", 8).problem);
    assert_non_null(check("a \\", 3).problem);
    assert_null(check("\"\\n\"\n", 5).problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_cut_into_tokens),
        cmocka_unit_test(comments_are_skipped_or_kept),
        cmocka_unit_test(hash_must_begin_its_line),
        cmocka_unit_test(tokens_that_c_reads_differently_are_refused),
        cmocka_unit_test(string_token_must_end_on_its_line),
        cmocka_unit_test(a_comment_that_does_not_end_is_bad),
        cmocka_unit_test(tokens_have_their_line_and_column),
        cmocka_unit_test(a_bad_character_is_one_token_however_wide),
        cmocka_unit_test(a_text_is_utf8_without_control_characters),
        cmocka_unit_test(a_backslash_does_not_join_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
