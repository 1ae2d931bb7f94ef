/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* wrap_test.c - lines fit the terminal. */
#include <locale.h>

#include "terminal/output_test.h"

static void expect_lines(
    unsigned columns, size_t used, size_t indent, const char *text, const char *lines)
{
    struct caught caught;

    catch_output(&caught);
    caught.cli.out_columns = columns;
    cli_print_wrapped(&caught.cli, used, indent, text);
    expect_output(&caught, lines);
}

static void lines_are_broken_between_words(void **state)
{
    (void)state;
    expect_lines(21, 0, 0, "one two three four five", "one two three four\nfive\n");
    expect_lines(20, 0, 0, "one two three four five", "one two three four\nfive\n");
    expect_lines(19, 0, 0, "one two three four five", "one two three four\nfive\n");
    expect_lines(18, 0, 0, "one two three four five", "one two three\nfour five\n");
    expect_lines(3, 0, 0, "one two", "one\ntwo\n");
    expect_lines(1, 0, 0, "one two", "one\ntwo\n");
    expect_lines(30, 0, 0, "", "");
    expect_lines(
        12, 0, 0, "a\xc3\xa4\xc3\xb6 \xc3\xbc\xc3\xbc\xc3\xbc bbb",
        "a\xc3\xa4\xc3\xb6 \xc3\xbc\xc3\xbc\xc3\xbc bbb\n");
}

static void continuation_lines_are_indented(void **state)
{
    (void)state;
    expect_lines(20, 6, 6, "one two three four", "one two three\n      four\n");
    expect_lines(20, 0, 6, "one two three four", "      one two three\n      four\n");
}

static void lines_of_a_paragraph_are_joined(void **state)
{
    (void)state;
    expect_lines(80, 0, 0, "one\ntwo\n", "one two\n");
    expect_lines(80, 0, 0, "one\n\ntwo\n", "one\n\ntwo\n");
    expect_lines(80, 0, 2, "one:\n    eval x\ntwo", "  one:\n      eval x\n  two\n");
}

/* Sixty words of four letters, with a newline after every `count` of them. */
static void put_words(char *target, size_t count)
{
    for (size_t i = 0; i < 60; i++) {
        memcpy(target + 5 * i, "word ", 5);
        if (count && ((i + 1) % count == 0 || i == 59))
            target[5 * i + 4] = '\n';
    }
    target[300] = '\0';
}

static void lines_are_never_very_long(void **state)
{
    char text[301], lines[301];

    (void)state;
    put_words(text, 0);
    put_words(lines, 20);
    expect_lines(300, 0, 0, text, lines);
    put_words(lines, 16);
    expect_lines(0, 0, 0, text, lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_broken_between_words),
        cmocka_unit_test(continuation_lines_are_indented),
        cmocka_unit_test(lines_of_a_paragraph_are_joined),
        cmocka_unit_test(lines_are_never_very_long),
    };

    setlocale(LC_CTYPE, "C.UTF-8"); /* NOLINT(concurrency-mt-unsafe): one thread */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
