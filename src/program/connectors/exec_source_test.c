/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* exec_source_test.c - commands: their lines, their ends, restarts, and that none is left. */
#include <sys/syscall.h>

#include "connectors/harness_test.h"

static const struct det_stage stage = { .out = { .get = text_row_record } };

static const char *text_of(const struct harness *harness, size_t index)
{
    return ((const struct text_row *)harness_row(harness, index))->text;
}

static void each_line_of_the_output_is_a_row(void **state)
{
    struct harness harness;

    (void)state;
    harness_open(&harness, &exec_source, stage, "{argv: [sh, -c, 'echo one; echo two; printf 3']}");
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 3);
    assert_string_equal(text_of(&harness, 0), "one");
    assert_string_equal(text_of(&harness, 2), "3");
    harness_deinit(&harness);
}

static void many_lines_arrive_in_order(void **state)
{
    struct harness harness;

    (void)state;
    harness_open(&harness, &exec_source, stage, "{argv: [seq, 20000]}");
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 20000);
    for (size_t i = 0; i < 20000; i += 997)
        assert_int_equal(strtol(text_of(&harness, i), NULL, 10), i + 1);
    harness_deinit(&harness);
}

static void an_exit_code_fails_the_stage(void **state)
{
    struct harness harness;

    (void)state;
    harness_open(&harness, &exec_source, stage, "{argv: [sh, -c, 'echo one; exit 3']}");
    assert_int_equal(harness_run(&harness), DET_ERR_IO);
    assert_int_equal(harness.row_count, 1);
    assert_string_equal(
        harness.failure.text, "sh ended with exit code 3: correct it, or set restart");
    harness_deinit(&harness);
    harness_open(&harness, &exec_source, stage, "{argv: [sh, -c, 'kill -9 $$']}");
    assert_int_equal(harness_run(&harness), DET_ERR_IO);
    assert_string_equal(
        harness.failure.text, "sh was ended by signal 9 (Killed): correct it, or set restart");
    harness_deinit(&harness);
}

static void a_failed_command_is_restarted_and_knows_its_lines(void **state)
{
    struct harness harness;

    (void)state;
    harness_open(
        &harness, &exec_source, stage,
        "{argv: [sh, -c, 'echo $DETENT_LINES; exit $((DETENT_LINES < 2))'], restart: on_failure, "
        "delay: 1ms}");
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 3);
    assert_string_equal(text_of(&harness, 2), "2");
    assert_int_equal(harness.error_count, 2);
    assert_string_equal(harness.errors[0], "sh ended with exit code 1; it is started again");
    harness_deinit(&harness);
}

static void a_command_that_closes_its_output_is_awaited(void **state)
{
    struct harness harness;

    (void)state;
    harness_open(
        &harness, &exec_source, stage, "{argv: [sh, -c, 'echo x; exec >&-; sleep 0.05; exit 4']}");
    assert_int_equal(harness_run(&harness), DET_ERR_IO);
    assert_non_null(strstr(harness.failure.text, "exit code 4"));
    harness_deinit(&harness);
}

/* A stop does not wait for the command, nor for its children. */
static void a_stop_ends_the_command_and_its_children(void **state)
{
    struct pollfd child = { .events = POLLIN };
    struct harness harness;
    long pid;

    (void)state;
    harness_open(&harness, &exec_source, stage, "{argv: [sh, -c, 'sleep 1000 & echo $!; wait']}");
    (void)harness_run_until(&harness, 1);
    assert_int_equal(harness.row_count, 1);
    pid = strtol(text_of(&harness, 0), NULL, 10);
    assert_true(pid > 0);
    child.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    assert_true(child.fd >= 0);
    harness_deinit(&harness);
    assert_int_equal(poll(&child, 1, (int)(DET_TEST_HANG / DET_MILLISECOND)), 1);
    (void)close(child.fd);
}

static void a_command_that_does_not_exist_fails_the_stage(void **state)
{
    struct harness harness;

    (void)state;
    harness_open(&harness, &exec_source, stage, "{argv: [/none/such]}");
    assert_true(harness_run(&harness) < 0);
    assert_non_null(strstr(harness.failure.text, "/none/such cannot be started"));
    harness_deinit(&harness);
}

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    harness_refuses(&exec_source, stage, "{}", "argv is missing: add it");
    harness_refuses(&exec_source, stage, "{argv: [a], delay: soon}", "delay is not a duration");
    harness_refuses(&exec_source, stage, "{argv: [a], restart: maybe}", "restart: unknown");
    harness_refuses(
        &exec_source, stage, "{argv: [a], as: json, field: text}", "field is for a text");
}

static int run_command(struct det_test_memory *memory, void *argument)
{
    struct harness harness;
    int r;

    harness_init(&harness, &exec_source, stage, argument);
    harness.call.allocator = &memory->allocator;
    r = harness_start(&harness);
    if (r == 0)
        r = harness_run(&harness);
    harness_deinit(&harness);
    return r == DET_SOURCE_DONE ? 0 : r;
}

static void every_failing_allocation_is_reported(void **state)
{
    static char settings[] = "{argv: [echo, x]}";

    (void)state;
    det_test_each_failure(run_command, settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_of_the_output_is_a_row),
        cmocka_unit_test(many_lines_arrive_in_order),
        cmocka_unit_test(an_exit_code_fails_the_stage),
        cmocka_unit_test(a_failed_command_is_restarted_and_knows_its_lines),
        cmocka_unit_test(a_command_that_closes_its_output_is_awaited),
        cmocka_unit_test(a_stop_ends_the_command_and_its_children),
        cmocka_unit_test(a_command_that_does_not_exist_fails_the_stage),
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
