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

static const struct det_json_value *read_text(struct det_arena *arena, const char *text)
{
    const struct det_json_value *value = NULL;

    det_arena_init(arena, NULL);
    assert_int_equal(det_json_read(arena, det_view_text(text), &value, NULL), 0);
    return value;
}

static void expect_state(
    struct show_state (*inspect)(const struct det_json_value *object), const char *text,
    const char *word, enum cli_style style)
{
    struct det_arena arena;
    struct show_state shown = inspect(read_text(&arena, text));

    assert_string_equal(shown.word, word);
    assert_int_equal(shown.style, style);
    det_arena_deinit(&arena);
}

static void running_task_that_is_not_ready_is_shown_as_starting(void **state)
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

static void finished_task_shows_its_outcome(void **state)
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
    struct det_arena arena;
    const struct det_json_value *task = read_text(&arena, text);
    struct caught caught;
    struct table table;

    catch_output(&caught);
    table_init(&table, &caught.cli, columns, 3);
    show_age_cell(&table, task, NOW);
    show_next_cell(&table, task, NOW);
    show_why_cell(&table, task);
    table_print(&table, 0);
    table_deinit(&table);
    det_arena_deinit(&arena);
    expect_output(&caught, wanted);
}

static void cells_show_duration_next_run_and_reason(void **state)
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
    /* The streak has ended: it was restarted manually, or has run long enough. */
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
        cmocka_unit_test(running_task_that_is_not_ready_is_shown_as_starting),
        cmocka_unit_test(states_have_words_and_colors),
        cmocka_unit_test(finished_task_shows_its_outcome),
        cmocka_unit_test(cells_show_duration_next_run_and_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
