/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* print_tasks_test.c - spans, states and reasons, as people read them. */
#include "inspect/print_tasks.h"

#include "terminal/output_test.h"

static void spans_have_at_most_two_units(void **state)
{
    static const struct {
        det_time span;
        const char *text;
    } cases[] = {
        { -DET_SECOND, "0s" },
        { 0, "0s" },
        { 99 * DET_MILLISECOND, "0s" },
        { 400 * DET_MILLISECOND, "0.4s" },
        { 1650 * DET_MILLISECOND, "1.6s" },
        { 2 * DET_SECOND, "2s" },
        { 12700 * DET_MILLISECOND, "12s" },
        { 59 * DET_SECOND, "59s" },
        { 2 * DET_MINUTE, "2m" },
        { 90 * DET_SECOND, "1m30s" },
        { 11 * DET_MINUTE + 30 * DET_SECOND, "11m" },
        { 3 * DET_HOUR, "3h" },
        { 3 * DET_HOUR + 5 * DET_MINUTE, "3h5m" },
        { 23 * DET_HOUR, "23h" },
        { 5 * DET_DAY + DET_HOUR, "5d1h" },
        { 3650 * DET_DAY, "3650d" },
    };
    char text[SHOW_SPAN_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(show_span(cases[i].span, text), cases[i].text);
}

static void expect_state(
    struct show_state (*look)(const json_t *object), const char *text, const char *word,
    enum cli_style style)
{
    json_t *object = json_loads(text, 0, NULL);
    struct show_state shown;

    assert_non_null(object);
    shown = look(object);
    assert_string_equal(shown.word, word);
    assert_int_equal(shown.style, style);
    json_decref(object);
}

static void a_task_that_runs_may_not_be_ready(void **state)
{
    (void)state;
    expect_state(
        show_task_state, "{\"state\":\"running\",\"ready\":false,\"healthy\":false}", "starting",
        CLI_YELLOW);
    expect_state(
        show_task_state, "{\"state\":\"running\",\"ready\":true,\"healthy\":false}", "unhealthy",
        CLI_RED);
    expect_state(
        show_task_state, "{\"state\":\"running\",\"ready\":true,\"healthy\":true}", "running",
        CLI_GREEN);
    expect_state(show_task_state, "{\"state\":\"running\"}", "running", CLI_GREEN);
}

static void states_have_words_and_colors(void **state)
{
    (void)state;
    expect_state(show_task_state, "{\"state\":\"backoff\"}", "backoff", CLI_RED);
    expect_state(show_task_state, "{\"state\":\"cancelling\"}", "stopping", CLI_YELLOW);
    expect_state(show_task_state, "{\"state\":\"recycling\"}", "restarting", CLI_YELLOW);
    expect_state(show_task_state, "{\"state\":\"of the future\"}", "of the future", CLI_PLAIN);
    expect_state(show_task_state, "{\"state\":5}", "", CLI_PLAIN);
    expect_state(show_group_state, "{\"state\":\"paused\"}", "restarting", CLI_YELLOW);
    expect_state(show_group_state, "{\"state\":\"failed\"}", "failed", CLI_RED);
    expect_state(show_slot_state, "{\"state\":\"terminating\"}", "stopping", CLI_YELLOW);
    expect_state(show_slot_state, "{}", "", CLI_PLAIN);
}

static void a_task_that_is_done_says_how(void **state)
{
    (void)state;
    expect_state(show_task_state, "{\"state\":\"done\"}", "done", CLI_FAINT);
    expect_state(
        show_task_state, "{\"state\":\"done\",\"last\":{\"outcome\":\"completed\"}}", "completed",
        CLI_GREEN);
    expect_state(
        show_task_state, "{\"state\":\"done\",\"last\":{\"outcome\":\"fatal\"}}", "failed",
        CLI_RED);
}

#define NOW ((det_time)1769853600 * DET_SECOND)

/* Prints the cells of one task. */
static void expect_cells(const char *text, const char *wanted)
{
    static const struct table_column columns[] = { { "for", 0, true },
                                                   { "next", 0, true },
                                                   { "why", 0, false } };
    json_t *task = json_loads(text, 0, NULL);
    struct caught caught;
    struct table table;

    assert_non_null(task);
    catch_output(&caught);
    table_init(&table, &caught.cli, columns, 3);
    show_age_cell(&table, task, NOW);
    show_next_cell(&table, task, NOW);
    show_why_cell(&table, task);
    table_print(&table, 0);
    table_deinit(&table);
    json_decref(task);
    expect_output(&caught, wanted);
}

static void cells_tell_when_and_why(void **state)
{
    (void)state;
    expect_cells("{}", "for\n\n");
    expect_cells(
        "{\"since\":\"2026-01-31T09:58:00Z\",\"next_at\":\"2026-01-31T10:00:01.6Z\","
        "\"state\":\"backoff\",\"reason\":\"exit code 1\"}",
        "for     next  why\n 2m  in 1.6s  exit code 1\n");
    expect_cells(
        "{\"since\":\"2026-01-31T09:59:58.2Z\",\"next_at\":\"2026-01-31T10:00:00Z\","
        "\"state\":\"running\",\"failures\":2,\"reason\":\"exit code 1\"}",
        "for  next  why\n 1s   now  before: exit code 1\n");
    /* The streak is over: it has been restarted by hand, or has run for long enough. */
    expect_cells(
        "{\"since\":\"2026-01-31T09:59:58Z\",\"state\":\"running\",\"failures\":0,"
        "\"reason\":\"exit code 1\"}",
        "for\n 2s\n");
    expect_cells(
        "{\"since\":\"2026-02-01T00:00:00Z\",\"next_at\":null,\"state\":\"held\","
        "\"reason\":\"exit code 1\",\"waits_for\":\"database\"}",
        "for  why\n 0s  waits for database\n");
    expect_cells("{\"state\":\"cancelling\",\"reason\":\"exit code 1\"}", "for\n\n");
    expect_cells("{\"since\":\"yesterday\",\"next_at\":5,\"reason\":[]}", "for\n\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_have_at_most_two_units),
        cmocka_unit_test(a_task_that_runs_may_not_be_ready),
        cmocka_unit_test(states_have_words_and_colors),
        cmocka_unit_test(a_task_that_is_done_says_how),
        cmocka_unit_test(cells_tell_when_and_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
