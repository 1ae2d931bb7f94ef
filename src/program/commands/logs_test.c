/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* logs_test.c - `detent logs`: lines with the names of their tasks. */
/* test: threads */
#include "commands/remote_test.h"

#define TASKS                                                     \
    "{\"kind\":\"task\",\"name\":\"web\",\"group\":\"front\"}\n"  \
    "{\"kind\":\"task\",\"name\":\"mail\",\"group\":\"front\"}\n" \
    "{\"kind\":\"task\",\"name\":\"database\",\"group\":null}\n."
#define LINE(name, stream, text)                                             \
    "{\"kind\":\"line\",\"at\":\"2026-01-31T10:00:00.25Z\",\"name\":\"" name \
    "\",\"stream\":\"" stream "\",\"text\":\"" text "\",\"cut\":false,\"dropped\":0}\n"

static void lines_have_the_names_of_their_tasks(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", TASKS);
    answer_to(
        fake, "GET /v1/lines",
        LINE("web", "output", "hello") LINE("database", "error", "oh\\u0007") ".");
    assert_int_equal(run(fake, WORDS("logs")), CLI_OK);
    assert_string_equal(fake->out, "web      | hello\ndatabase ! oh\\x07\n");
    assert_string_equal(
        det_buffer_text(&fake->received), "GET /v1/tasks\nGET /v1/lines?lines=100\n");
}

static void column_width_considers_only_named_tasks(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", TASKS);
    answer_to(fake, "GET /v1/lines", LINE("web", "output", "hello") ".");
    assert_int_equal(run(fake, WORDS("logs", "web", "-n", "5", "--times")), CLI_OK);
    assert_string_equal(fake->out, "2026-01-31T10:00:00.250Z web | hello\n");
    assert_string_equal(
        det_buffer_text(&fake->received), "GET /v1/tasks\nGET /v1/lines?lines=5&task=web\n");
}

static void dropped_lines_are_reported(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", TASKS);
    answer_to(
        fake, "GET /v1/lines",
        "{\"kind\":\"line\",\"name\":\"web\",\"text\":\"a\",\"cut\":true,\"dropped\":12,"
        "\"missed\":3}\n.");
    assert_int_equal(run(fake, WORDS("logs", "web")), CLI_OK);
    assert_string_equal(
        fake->out, "web = 3 earlier lines are no longer stored\n"
                   "web = 12 bytes of output were dropped: it wrote too fast\n"
                   "web | a\\\n");
}

static void following_reports_the_end_of_the_daemon(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", TASKS);
    answer_to(fake, "GET /v1/lines", LINE("web", "output", "hello") "x");
    assert_int_equal(run(fake, WORDS("logs", "-f", "-n", "0", "web")), CLI_OK);
    assert_string_equal(fake->out, "web | hello\n");
    assert_string_equal(fake->err, "The running detent has exited.\n");
    assert_non_null(strstr(det_buffer_text(&fake->received), "?lines=0&follow=true&task=web"));
    assert_int_equal(run(fake, WORDS("logs", "web")), CLI_FAILURE);
    assert_string_equal(
        fake->err, "detent logs: the running detent has exited or closed the connection\n");
}

static void json_output_is_passed_through(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", TASKS);
    answer_to(fake, "GET /v1/lines", LINE("web", "output", "x") ".");
    assert_int_equal(run(fake, WORDS("logs", "--json")), CLI_OK);
    assert_string_equal(
        fake->out, "{\"kind\":\"line\",\"at\":\"2026-01-31T10:00:00.25Z\",\"name\":\"web\","
                   "\"stream\":\"output\",\"text\":\"x\",\"cut\":false,\"dropped\":0}\n");
    assert_string_equal(
        det_buffer_text(&fake->received), "GET /v1/tasks\n"
                                          "GET /v1/lines?lines=100\n");
}

static void group_name_selects_its_members(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", TASKS);
    answer_to(fake, "GET /v1/lines", LINE("web", "output", "x") ".");
    assert_int_equal(run(fake, WORDS("logs", "front", "database")), CLI_OK);
    assert_non_null(strstr(det_buffer_text(&fake->received), "&task=web,mail,database\n"));
    answer_to(
        fake, "GET /v1/tree",
        "{\"kind\":\"group\",\"name\":\"all\",\"parent\":null}\n"
        "{\"kind\":\"group\",\"name\":\"front\",\"parent\":\"all\"}\n" TASKS);
    assert_int_equal(run(fake, WORDS("logs", "all")), CLI_OK);
    assert_non_null(strstr(det_buffer_text(&fake->received), "&task=web,mail\n"));
}

static void unknown_name_gets_the_nearest(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", TASKS);
    answer_to(fake, "GET /v1/lines", LINE("job", "output", "x") ".");
    answer_to(fake, "GET /v1/lines", "x");
    answer_to(fake, "GET /v1/tree", TASKS);
    /* A job that has ended has left lines. */
    assert_int_equal(run(fake, WORDS("logs", "wbe", "job")), CLI_NOT_FOUND);
    assert_string_equal(fake->err, "detent logs: there is no task 'wbe'; did you mean 'web'?\n");
    assert_string_equal(fake->out, "job | x\n");
    assert_int_equal(run(fake, WORDS("logs", "-f", "wbe")), CLI_OK);
    assert_string_equal(
        fake->err, "detent logs: there is no task 'wbe' yet; did you mean 'web'?\n"
                   "The running detent has exited.\n");
}

static void failures_have_their_exit_codes(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", TASKS);
    answer_to(fake, "GET /v1/tasks", "!BUSY later");
    answer_to(fake, "GET /v1/lines", "!LIMIT too many");
    assert_int_equal(run(fake, WORDS("logs", "web")), CLI_REFUSED);
    assert_string_equal(fake->err, "detent logs: too many\n");
    assert_int_equal(run(fake, WORDS("logs", "web")), CLI_REFUSED);
    assert_string_equal(fake->err, "detent logs: later\n");
    assert_int_equal(run(fake, WORDS("logs", "-n", "-1")), CLI_USAGE);
    assert_non_null(strstr(fake->err, "--lines must be a whole number from 0 to"));
}

static void a_line_may_have_a_zero(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", TASKS);
    answer_to(fake, "GET /v1/lines", LINE("web", "output", "a\\u0000b") ".");
    assert_int_equal(run(fake, WORDS("logs", "web")), CLI_OK);
    assert_string_equal(fake->out, "web | a\\x00b\n");
}

static void slow_reader_is_told_why_the_stream_ended(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", TASKS);
    answer_to(fake, "GET /v1/lines", "^");
    assert_int_equal(run(fake, WORDS("logs", "-f")), CLI_FAILURE);
    assert_string_equal(
        fake->err, "detent logs: the daemon closed the stream: it was not read fast enough\n");
}

static int run_failing(struct det_test_memory *memory, void *argument)
{
    return run_with(argument, memory, WORDS("logs", "web"));
}

static void command_survives_every_failed_allocation(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", TASKS);
    answer_to(fake, "GET /v1/lines", LINE("web", "output", "hello") ".");
    det_test_each_failure(run_failing, fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_have_the_names_of_their_tasks),
        TEST(column_width_considers_only_named_tasks),
        TEST(dropped_lines_are_reported),
        TEST(following_reports_the_end_of_the_daemon),
        TEST(json_output_is_passed_through),
        TEST(group_name_selects_its_members),
        TEST(unknown_name_gets_the_nearest),
        TEST(failures_have_their_exit_codes),
        TEST(a_line_may_have_a_zero),
        TEST(slow_reader_is_told_why_the_stream_ended),
        TEST(command_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
