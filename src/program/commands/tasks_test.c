/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tasks_test.c - `detent tasks`, `tree` and `slots`: what is shown of what the other side says. */
/* test: threads */
#include "commands/remote_test.h"

#define WEB                                                                                     \
    "{\"kind\":\"task\",\"id\":1,\"name\":\"web\",\"group\":\"back\",\"slot\":null,"            \
    "\"type\":\"process\",\"state\":\"running\",\"ready\":true,\"healthy\":true,\"attempt\":2," \
    "\"failures\":1,\"restarts\":1,\"since\":\"2025-12-31T23:58:00Z\",\"next_at\":null,"        \
    "\"reason\":\"exit code 1\",\"process\":4242,\"waits_for\":null}\n"
#define FLAKY                                                                                \
    "{\"kind\":\"task\",\"id\":2,\"name\":\"flaky\",\"group\":null,\"slot\":null,"           \
    "\"state\":\"backoff\",\"attempt\":3,\"restarts\":3,\"since\":\"2025-12-31T23:59:59Z\"," \
    "\"next_at\":\"2026-01-01T00:00:01.65Z\",\"reason\":\"exit code 1\",\"process\":null}\n"
#define JOB                                                                           \
    "{\"kind\":\"task\",\"id\":3,\"name\":\"job\",\"group\":null,\"slot\":\"batch\"," \
    "\"state\":\"held\",\"waits_for\":\"web\",\"since\":\"2025-12-31T23:00:00Z\"}\n"
#define BACK                                                                               \
    "{\"kind\":\"group\",\"name\":\"back\",\"parent\":null,\"strategy\":\"rest-for-one\"," \
    "\"state\":\"running\",\"members\":1,\"restarts\":1,\"restarts_max\":5,"               \
    "\"window_ns\":10000000000,\"reason\":\"\"}\n"
#define INNER                                                                                  \
    "{\"kind\":\"group\",\"name\":\"inner\",\"parent\":\"back\",\"strategy\":\"one-for-one\"," \
    "\"state\":\"failed\",\"restarts\":6,\"restarts_max\":5,\"window_ns\":60000000000,"        \
    "\"reason\":\"too many restarts\"}\n"

#define HEAD "task   state    for  attempt  restarts  process     next  group  slot   why\n"

static void tasks_are_printed_as_a_table(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", WEB FLAKY JOB ".");
    assert_int_equal(run(fake, WORDS("tasks")), CLI_OK);
    assert_string_equal(
        fake->out,
        HEAD "web    running   2m        2         1     4242           back          "
             "before: exit code 1\n"
             "flaky  backoff   1s        3         3           in 1.6s                exit code 1\n"
             "job    held      1h        0         0                           batch  "
             "waits for web\n");
    assert_string_equal(fake->err, "");
    assert_string_equal(det_buffer_text(&fake->received), "GET /v1/tasks\n");
}

static void tasks_can_be_named_by_their_group_and_slot(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", WEB FLAKY JOB ".");
    answer_to(fake, "GET /v1/tree", BACK WEB FLAKY JOB ".");
    assert_int_equal(run(fake, WORDS("tasks", "flaky")), CLI_OK);
    assert_string_equal(
        fake->out, "task   state    for  attempt  restarts     next  why\n"
                   "flaky  backoff   1s        3         3  in 1.6s  exit code 1\n");
    assert_int_equal(run(fake, WORDS("tasks", "back", "batch", "--json")), CLI_OK);
    assert_non_null(strstr(fake->out, "\"web\""));
    assert_non_null(strstr(fake->out, "\"job\""));
    assert_null(strstr(fake->out, "\"flaky\""));
    assert_int_equal(run(fake, WORDS("tasks", "flakky", "web", "xyzzy")), CLI_NOT_FOUND);
    assert_string_equal(
        fake->err, "detent tasks: there is no task or group 'flakky'; did you mean 'flaky'?\n"
                   "detent tasks: there is no task or group 'xyzzy'\n");
    assert_non_null(strstr(fake->out, "web "));
}

#define ABOVE(name, parent) "{\"kind\":\"group\",\"name\":\"" name "\",\"parent\":" parent "}\n"

static void group_name_selects_its_nested_groups(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", WEB FLAKY ".");
    answer_to(
        fake, "GET /v1/tree",
        ABOVE("all", "null") ABOVE("back", "\"all\"") ABOVE("empty", "null")
            ABOVE("snake", "\"snake\"") WEB FLAKY ".");
    assert_int_equal(run(fake, WORDS("tasks", "all")), CLI_OK);
    assert_non_null(strstr(fake->out, "web "));
    assert_null(strstr(fake->out, "flaky "));
    assert_int_equal(run(fake, WORDS("tasks", "empty")), CLI_OK);
    assert_string_equal(fake->err, "There are no tasks.\n");
    assert_int_equal(run(fake, WORDS("tasks", "snake")), CLI_OK);
    assert_int_equal(run(fake, WORDS("tasks", "al")), CLI_NOT_FOUND);
    assert_string_equal(
        fake->err, "detent tasks: there is no task or group 'al'; did you mean 'all'?\n");
    assert_string_equal(fake->out, "");
}

static void json_output_is_passed_through(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", FLAKY ".");
    answer_to(fake, "GET /v1/slots", "{\"kind\":\"slot\",\"name\":\"batch\",\"new\":[1]}\n.");
    answer_to(fake, "GET /v1/tree", "{\"kind\":\"group\",\"name\":\"back\"}\n.");
    assert_int_equal(run(fake, WORDS("tasks", "--json")), CLI_OK);
    assert_ptr_equal(
        strstr(fake->out, "{\"kind\":\"task\",\"id\":2,\"name\":\"flaky\","), fake->out);
    assert_int_equal(run(fake, WORDS("slots", "--json")), CLI_OK);
    assert_string_equal(fake->out, "{\"kind\":\"slot\",\"name\":\"batch\",\"new\":[1]}\n");
    assert_int_equal(run(fake, WORDS("tree", "--json")), CLI_OK);
    assert_string_equal(fake->out, "{\"kind\":\"group\",\"name\":\"back\"}\n");
}

static void empty_lists_print_a_sentence(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", ".");
    answer_to(fake, "GET /v1/slots", ".");
    assert_int_equal(run(fake, WORDS("tasks")), CLI_OK);
    assert_string_equal(fake->err, "There are no tasks.\n");
    assert_int_equal(run(fake, WORDS("slots")), CLI_OK);
    assert_string_equal(fake->err, "There are no slots.\n");
    assert_string_equal(fake->out, "");
}

static void narrow_terminal_gets_the_important_columns(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", WEB FLAKY JOB ".");
    fake->cli.out_columns = 40;
    assert_int_equal(run(fake, WORDS("tasks")), CLI_OK);
    assert_string_equal(
        fake->out, "task   state       next  why\n"
                   "web    running           before: exit ..\n"
                   "flaky  backoff  in 1.6s  exit code 1\n"
                   "job    held              waits for web\n");
}

static void watching_shows_each_change(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", FLAKY ".");
    answer_to(fake, "GET /v1/tasks", WEB FLAKY ".x");
    answer_to(fake, "GET /v1/task-events", "{\"kind\":\"event\"}\n~");
    assert_int_equal(run(fake, WORDS("tasks", "--watch", "--json")), CLI_OK);
    assert_ptr_equal(strstr(fake->out, "{\"kind\":\"task\",\"id\":2"), fake->out);
    /* Unchanged tasks are not reported again. */
    assert_null(strstr(fake->out + 1, "{\"kind\":\"task\",\"id\":2"));
    assert_non_null(strstr(fake->out, "\n{\"kind\":\"task\",\"id\":1"));
    assert_non_null(
        strstr(det_buffer_text(&fake->received), "GET /v1/task-events?follow=true&new=true\n"));
}

static void watching_replaces_the_table_on_a_terminal(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", WEB FLAKY ".");
    answer_to(fake, "GET /v1/tasks", FLAKY ".x");
    answer_to(fake, "GET /v1/task-events", "{\"kind\":\"event\"}\n~");
    fake->cli.out_is_terminal = true;
    assert_int_equal(run(fake, WORDS("tasks", "--watch")), CLI_OK);
    assert_non_null(strstr(fake->out, "exit code 1\n\033[3A\033[Jtask   state "));
    fake->sayings[0].is_used = fake->sayings[1].is_used = false;
    fake->cli.out_is_terminal = false;
    assert_int_equal(run(fake, WORDS("tasks", "--watch")), CLI_OK);
    assert_non_null(strstr(fake->out, "exit code 1\n\ntask   state "));
}

static void watching_ends_with_the_daemon(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", FLAKY ".x");
    answer_to(fake, "GET /v1/task-events", "~");
    fake->cli.out_is_terminal = true;
    assert_int_equal(run(fake, WORDS("tasks", "-w")), CLI_OK);
    assert_non_null(strstr(fake->out, "in 1.6s"));
    assert_string_equal(fake->err, "The running detent has exited.\n");
}

static void slow_reader_is_told_why_the_stream_ended(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tasks", FLAKY ".");
    answer_to(fake, "GET /v1/task-events", "^");
    assert_int_equal(run(fake, WORDS("tasks", "-w")), CLI_FAILURE);
    assert_string_equal(
        fake->err, "detent tasks: the daemon closed the stream: it was not read fast enough\n");
}

static void tree_is_drawn_with_lines(void **state)
{
    struct fake *fake = *state;

    answer_to(fake, "GET /v1/tree", BACK INNER WEB FLAKY ".");
    assert_int_equal(run(fake, WORDS("tree")), CLI_OK);
    assert_non_null(strstr(fake->out, "  state    for  restarts     next  why\n"));
    assert_non_null(strstr(fake->out, "\n|- back "));
    assert_non_null(strstr(fake->out, "\n|  |- inner "));
    assert_non_null(strstr(fake->out, "\n|  `- web "));
    assert_non_null(strstr(fake->out, "\n`- flaky "));
    assert_non_null(strstr(fake->out, "1 of 5           rest-for-one, restarts within 10s\n"));
    assert_non_null(strstr(fake->out, "  6 of 5           too many restarts\n"));
    fake->cli.out_has_lines = true;
    assert_int_equal(run(fake, WORDS("tree")), CLI_OK);
    assert_non_null(strstr(fake->out, "\n\xE2\x94\x82  \xE2\x94\x94\xE2\x94\x80 web "));
    assert_non_null(strstr(fake->out, "\n\xE2\x94\x94\xE2\x94\x80 flaky "));
}

static void slots_are_printed_as_a_table(void **state)
{
    struct fake *fake = *state;

    answer_to(
        fake, "GET /v1/slots",
        "{\"kind\":\"slot\",\"name\":\"batch\",\"state\":\"running\",\"width\":2,\"depth\":3,"
        "\"depth_max\":10,\"owners\":1,\"owner\":7,\"owner_name\":\"report\","
        "\"since\":\"2025-12-31T23:50:00Z\",\"started\":12,\"rejected\":1,\"replaced\":0}\n"
        "{\"kind\":\"slot\",\"name\":\"mail\",\"state\":\"idle\",\"width\":1}\n.");
    assert_int_equal(run(fake, WORDS("slots")), CLI_OK);
    assert_string_equal(
        fake->out, "slot   state    for  running  waiting  started  replaced  rejected  runs\n"
                   "batch  running  10m   1 of 2  3 of 10       12         0         1  report\n"
                   "mail   idle           0 of 1   0 of 0        0         0         0\n");
}

static void error_codes_map_to_exit_codes(void **state)
{
    static const struct {
        const char *lines, *text;
        int code;
    } cases[] = {
        { "!NOT_FOUND a", "a", CLI_NOT_FOUND },
        { "!EXISTS b", "b", CLI_CONFLICT },
        { "!CONFLICT b", "b", CLI_CONFLICT },
        { "!TIMEOUT c", "c", CLI_TIMEOUT },
        { "!REFUSED d", "d", CLI_REFUSED },
        { "!LIMIT e", "e", CLI_REFUSED },
        { "!BUSY f", "f", CLI_REFUSED },
        { "!INVALID g", "g", CLI_USAGE },
        { "!CANCELLED h", "h", CLI_INTERRUPTED },
        { "!IO i", "i", CLI_FAILURE },
        { "!NEW_ONE j", "j", CLI_FAILURE },
        { "x", "the running detent has exited or closed the connection", CLI_FAILURE },
    };
    struct fake *fake = *state;
    char wanted[256];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake->saying_count = 0;
        answer_to(fake, "GET /v1/tree", cases[i].lines);
        assert_int_equal(run(fake, WORDS("tree")), cases[i].code);
        snprintf(wanted, sizeof wanted, "detent tree: %s\n", cases[i].text);
        assert_string_equal(fake->err, wanted);
    }
    assert_int_equal(run(fake, WORDS("slots")), CLI_NOT_FOUND);
    assert_string_equal(fake->err, "detent slots: nothing was put into its mouth\n");
}

static void commands_fail_without_a_daemon(void **state)
{
    static const char *const words[][2] = {
        { "tree", NULL }, { "tasks", NULL }, { "slots", NULL },
        { "logs", NULL }, { "stop", NULL },  { "drain", NULL },
    };
    struct fake *fake = *state;
    struct cli cli = fake->cli;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        forget_run(fake);
        cli.out = open_memstream(&fake->out, &fake->out_size);
        cli.err = open_memstream(&fake->err, &fake->err_size);
        assert_int_equal(run_command_of(fake, &cli, words[i]), CLI_NOT_FOUND);
        fclose(cli.out);
        fclose(cli.err);
        assert_non_null(strstr(fake->err, "start it with `detent up`"));
    }
}

struct case_of {
    struct fake *fake;
    const char *const *words;
};

static int run_failing(struct det_test_memory *memory, void *argument)
{
    struct case_of *one = argument;

    return run_with(one->fake, memory, one->words);
}

static void command_survives_every_failed_allocation(void **state)
{
    struct fake *fake = *state;
    struct case_of cases[] = {
        { fake, WORDS("tasks", "web", "wob") },
        { fake, WORDS("tree") },
        { fake, WORDS("slots", "--json") },
    };

    answer_to(fake, "GET /v1/tasks", WEB FLAKY ".");
    answer_to(fake, "GET /v1/tree", BACK INNER WEB FLAKY ".");
    answer_to(fake, "GET /v1/slots", "{\"kind\":\"slot\",\"name\":\"batch\"}\n.");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        det_test_each_failure(run_failing, &cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tasks_are_printed_as_a_table),
        TEST(tasks_can_be_named_by_their_group_and_slot),
        TEST(group_name_selects_its_nested_groups),
        TEST(json_output_is_passed_through),
        TEST(empty_lists_print_a_sentence),
        TEST(narrow_terminal_gets_the_important_columns),
        TEST(watching_shows_each_change),
        TEST(watching_replaces_the_table_on_a_terminal),
        TEST(watching_ends_with_the_daemon),
        TEST(slow_reader_is_told_why_the_stream_ended),
        TEST(tree_is_drawn_with_lines),
        TEST(slots_are_printed_as_a_table),
        TEST(error_codes_map_to_exit_codes),
        TEST(commands_fail_without_a_daemon),
        TEST(command_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
