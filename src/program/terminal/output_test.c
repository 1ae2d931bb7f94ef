/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* output_test.c - output cannot control the terminal. */
#include <errno.h>
#include <locale.h>

#include "terminal/output_test.h"

#include "terminal/report.h"
#include "json/reader.h"
#include "json/writer.h"

static void control_characters_are_escaped(void **state)
{
    struct caught caught;

    (void)state;
    catch_output(&caught);
    cli_print(&caught.cli, "%s\n", "a\033[31mb\rc\x7f\td");
    expect_output(&caught, "a\\x1b[31mb\\x0dc\\x7f\td\n");
}

static void text_that_turns_its_direction_is_escaped(void **state)
{
    struct caught caught;

    (void)state;
    catch_output(&caught);
    /* NOLINTNEXTLINE(misc-misleading-bidirectional): on purpose */
    cli_print_error(&caught.cli, "%s", "x\xe2\x80\xaey \xc2\x9b \xef\xbb\xbf");
    expect_output(&caught, "x\\u{202e}y \\u{9b} \\u{feff}");
}

static void bytes_that_are_no_characters_are_escaped(void **state)
{
    struct caught caught;

    (void)state;
    catch_output(&caught);
    cli_print(
        &caught.cli, "%s",
        "\xff"
        "a\xc3");
    expect_output(
        &caught, "\\xff"
                 "a\\xc3");
}

static void printable_characters_are_unchanged(void **state)
{
    struct caught caught;

    (void)state;
    catch_output(&caught);
    cli_print(&caught.cli, "%s", "für 日本 🚀 ~");
    expect_output(&caught, "für 日本 🚀 ~");
}

static void color_is_used_only_where_it_is_wanted(void **state)
{
    struct caught caught;

    (void)state;
    catch_output(&caught);
    cli_print_in(&caught.cli, CLI_RED, "no");
    cli_set_color(&caught.cli, "auto");
    cli_print_in(&caught.cli, CLI_RED, "no");
    cli_set_color(&caught.cli, "always");
    cli_print_in(&caught.cli, CLI_RED, "yes\033");
    cli_set_color(&caught.cli, "never");
    cli_print_in(&caught.cli, CLI_RED, "no");
    expect_output(&caught, "nono\033[1;31myes\\x1b\033[0mno");
}

static void widths_are_those_of_what_is_shown(void **state)
{
    (void)state;
    assert_int_equal(cli_width("abc", 3), 3);
    assert_int_equal(cli_width("für", 4), 3);
    assert_int_equal(cli_width("日本", 6), 4);
    assert_int_equal(cli_width("\033", 1), 4);
    assert_int_equal(cli_width("\xff", 1), 4);
    /* NOLINTNEXTLINE(misc-misleading-bidirectional): on purpose */
    assert_int_equal(cli_width("\xe2\x80\xae", 3), 8);
    assert_int_equal(cli_width("\xc2\x9b", 2), 6);
    assert_int_equal(cli_width("\t", 1), 1);
}

static void json_is_one_line_and_takes_any_bytes(void **state)
{
    struct det_json_writer json;
    struct caught caught;

    (void)state;
    catch_output(&caught);
    cli_json_begin(&caught.cli, &json, "file");
    det_json_text(&json, "path", "a\xff\n");
    cli_json_end(&caught.cli, &json);
    expect_output(&caught, "{\"type\":\"file\",\"path\":\"a\\\\xff\\n\"}\n");
}

static void json_value_is_printed_on_one_line(void **state)
{
    const struct det_json_value *value = NULL;
    struct det_arena arena;
    struct caught caught;

    (void)state;
    catch_output(&caught);
    det_arena_init(&arena, NULL);
    assert_int_equal(
        det_json_read(&arena, det_view_text("{ \"a\" :\n[1.50, \"\\u001b\"] }"), &value, NULL), 0);
    cli_print_value(&caught.cli, value);
    det_arena_deinit(&arena);
    expect_output(&caught, "{\"a\":[1.50,\"\\u001b\"]}\n");
}

static void json_without_memory_is_a_failure_of_the_run(void **state)
{
    struct det_json_writer json;
    struct caught caught;

    (void)state;
    catch_output(&caught);
    cli_json_begin(&caught.cli, &json, "file");
    json.text.error = DET_ERR_NO_MEMORY;
    cli_json_end(&caught.cli, &json);
    assert_true(caught.cli.has_failed);
    caught.cli.has_failed = false;
    expect_output(&caught, "");
}

/* Writes nothing if there is a reason to fail. */
static ssize_t write_unless(void *cookie, const char *data, size_t size)
{
    (void)data;
    errno = *(const int *)cookie;
    return errno ? -1 : (ssize_t)size;
}

static FILE *open_failing(const int *reason, int mode, char *buffer, size_t size)
{
    FILE *stream = fopencookie(
        (void *)(uintptr_t)reason, "w", (cookie_io_functions_t){ .write = write_unless });

    assert_non_null(stream);
    setvbuf(stream, buffer, mode, size);
    return stream;
}

/* fwrite() of glibc succeeds if the bytes that it could not write are still in its buffer. */
static void the_reason_of_a_failed_write_is_kept(void **state)
{
    static const size_t sizes[] = { 1, 63, 64, 65, 200 };
    static const int modes[] = { _IOFBF, _IOLBF, _IONBF };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes * 3; i++) {
        struct cli cli = { .world = det_world_real(), .err = stderr };
        char data[200], buffer[64];
        size_t size = sizes[i / 3];
        int reason = 0;

        memset(data, 'x', sizeof data);
        data[size - 1] = '\n';
        cli.out = open_failing(&reason, modes[i % 3], buffer, sizeof buffer);
        cli_write(&cli, data, size);
        assert_int_equal(cli.out_error, 0);
        reason = ENOSPC;
        cli_write(&cli, data, size);
        if (!ferror(cli.out))
            cli_flush(&cli);
        assert_int_equal(cli.out_error, ENOSPC);
        reason = 0;
        cli_write(&cli, data, size);
        cli_flush(&cli);
        assert_int_equal(cli.out_error, ENOSPC);
        fclose(cli.out);
    }
}

static void error_messages_name_the_command(void **state)
{
    struct caught caught;

    (void)state;
    catch_output(&caught);
    cli_report_error(&caught.cli, "what is %s?", "this");
    caught.cli.command = "check";
    cli_report_error(&caught.cli, "no");
    expect_output(&caught, "detent: what is this?\ndetent check: no\n");
}

static void progress_is_shown_only_on_terminals_after_a_while(void **state)
{
    struct caught caught;

    (void)state;
    catch_output(&caught);
    cli_progress(&caught.cli, "seeds", 1, 10);
    caught.cli.err_is_terminal = true;
    cli_progress(&caught.cli, "seeds", 1, 10);
    fflush(caught.cli.out);
    assert_int_equal(caught.size, 0);
    /* As if a second had passed. */
    caught.cli.progress_next = 1;
    cli_progress(&caught.cli, "seeds", 5, 10);
    assert_true(caught.cli.progress_is_shown);
    cli_progress_end(&caught.cli);
    expect_output(&caught, "\r\033[Kseeds [###############               ] 5/10\r\033[K");
}

static void progress_bar_is_cleared_before_output(void **state)
{
    struct caught caught;

    (void)state;
    catch_output(&caught);
    caught.cli.err_is_terminal = true;
    caught.cli.progress_from = 1;
    caught.cli.progress_next = 1;
    cli_progress(&caught.cli, "seeds", 10, 10);
    cli_print(&caught.cli, "not taken\n");
    cli_print_error(&caught.cli, "ok\n");
    expect_output(
        &caught, "\r\033[Kseeds [##############################] 10/10\r\033[Knot taken\nok\n");
}

static void secondary_output_goes_to_the_error_stream(void **state)
{
    struct caught caught, errors;
    struct cli aside;

    (void)state;
    catch_output(&caught);
    catch_output(&errors);
    caught.cli.err = errors.cli.out;
    cli_print(&caught.cli, "data\n");
    aside = cli_aside(&caught.cli);
    cli_print(&aside, "result\n");
    cli_print_error(&aside, "talk\n");
    aside.has_failed = true;
    cli_aside_end(&caught.cli, &aside);
    assert_true(caught.cli.has_failed);
    caught.cli.has_failed = false;
    expect_output(&caught, "data\n");
    expect_output(&errors, "result\ntalk\n");
}

static void a_problem_shows_its_line_and_points_at_the_column(void **state)
{
    static const char given_text[] = "first\nfür\tx: y\n";
    struct cli_problem problem = {
        .path = "a.yaml",
        .text = given_text,
        .size = sizeof given_text - 1,
        .line = 2,
        .column = 5,
        .column_is_characters = true,
    };
    struct caught caught;

    (void)state;
    catch_output(&caught);
    cli_report_problem(&caught.cli, &problem, "no %s", "good");
    expect_output(&caught, "a.yaml:2:5: error: no good\n    2 | für\tx: y\n      |    \t^\n");
}

static void a_long_line_is_cut_around_the_place(void **state)
{
    char text[1000];
    struct cli_problem problem = { "a", text, sizeof text, 1, 500, false };
    struct caught caught;

    (void)state;
    memset(text, 'a', sizeof text);
    catch_output(&caught);
    cli_report_problem(&caught.cli, &problem, "here");
    fclose(caught.cli.out);
    assert_non_null(strstr(caught.text, "    1 | ...aaa"));
    assert_non_null(strstr(caught.text, "aaa...\n"));
    assert_true(caught.size < 400);
    free(caught.text);
}

static void narrow_terminal_shows_a_shorter_excerpt(void **state)
{
    static const char text[] =
        "ON(WORKING, FALED, WAITING, CALL(a_hook), DO(an_effect_that_is_long))";
    struct cli_problem problem = { "x", text, sizeof text - 1, 1, 13, false };
    struct caught caught;

    (void)state;
    catch_output(&caught);
    caught.cli.err_columns = 60;
    cli_report_problem(&caught.cli, &problem, "here");
    problem.column = 68;
    cli_report_problem(&caught.cli, &problem, "here");
    problem.column = 40;
    caught.cli.err_columns = 10;
    cli_report_problem(&caught.cli, &problem, "here");
    caught.cli.err_columns = 80;
    cli_report_problem(&caught.cli, &problem, "here");
    expect_output(
        &caught, "x:1:13: error: here\n"
                 "    1 | ON(WORKING, FALED, WAITING, CALL(a_hook), DO(a...\n"
                 "      |             ^\n"
                 "x:1:68: error: here\n"
                 "    1 | ...ING, CALL(a_hook), DO(an_effect_that_is_long))\n"
                 "      |                                                ^\n"
                 "x:1:40: error: here\n"
                 "    1 | ...LL(a_hook), DO(an_...\n"
                 "      |             ^\n"
                 "x:1:40: error: here\n"
                 "    1 | ON(WORKING, FALED, WAITING, CALL(a_hook), DO(an_effect_that_is_long))\n"
                 "      |                                        ^\n");
}

static int print_scenario(struct det_test_memory *memory, void *argument)
{
    struct cli cli = { .allocator = &memory->allocator, .out = argument };

    cli.err = cli.out;
    cli_print_in(&cli, CLI_RED, "%s %d\n", "text", 7);
    return cli.has_failed ? DET_ERR_NO_MEMORY : 0;
}

static void printing_survives_every_failed_allocation(void **state)
{
    FILE *nowhere = fopen("/dev/null", "w");

    (void)state;
    assert_non_null(nowhere);
    det_test_each_failure(print_scenario, nowhere);
    fclose(nowhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_are_escaped),
        cmocka_unit_test(text_that_turns_its_direction_is_escaped),
        cmocka_unit_test(bytes_that_are_no_characters_are_escaped),
        cmocka_unit_test(printable_characters_are_unchanged),
        cmocka_unit_test(color_is_used_only_where_it_is_wanted),
        cmocka_unit_test(widths_are_those_of_what_is_shown),
        cmocka_unit_test(json_is_one_line_and_takes_any_bytes),
        cmocka_unit_test(json_value_is_printed_on_one_line),
        cmocka_unit_test(json_without_memory_is_a_failure_of_the_run),
        cmocka_unit_test(the_reason_of_a_failed_write_is_kept),
        cmocka_unit_test(error_messages_name_the_command),
        cmocka_unit_test(progress_is_shown_only_on_terminals_after_a_while),
        cmocka_unit_test(progress_bar_is_cleared_before_output),
        cmocka_unit_test(secondary_output_goes_to_the_error_stream),
        cmocka_unit_test(a_problem_shows_its_line_and_points_at_the_column),
        cmocka_unit_test(a_long_line_is_cut_around_the_place),
        cmocka_unit_test(narrow_terminal_shows_a_shorter_excerpt),
        cmocka_unit_test(printing_survives_every_failed_allocation),
    };

    setlocale(LC_CTYPE, "C.UTF-8"); /* NOLINT(concurrency-mt-unsafe): one thread */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
