/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* output_queue_test.c - output to a reader that reads, does not read, or is gone. */
#include "daemon/output_queue.h"

#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define LARGE (1 << 20)

struct stage {
    struct cli cli;
    struct up_output output;
    struct det_loop *loop;
    int reader;
};

static int open_stage(void **state)
{
    static struct stage stage;
    struct sigaction ignored = { .sa_handler = SIG_IGN };
    int ends[2];

    sigaction(SIGPIPE, &ignored, NULL);
    stage = (struct stage){ .cli = { .world = det_world_real(), .err = stderr } };
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    stage.reader = ends[0];
    stage.cli.out = fdopen(ends[1], "w");
    assert_non_null(stage.cli.out);
    assert_int_equal(det_loop_open(NULL, NULL, &stage.loop), 0);
    assert_int_equal(up_output_open(&stage.output, &stage.cli), 0);
    up_output_attach(&stage.output, stage.loop);
    *state = &stage;
    return 0;
}

static int close_stage(void **state)
{
    struct stage *stage = *state;

    up_output_close(&stage->output);
    det_loop_close(stage->loop);
    (void)fclose(stage->cli.out);
    if (stage->reader >= 0)
        close(stage->reader);
    return 0;
}

static void print_large(struct stage *stage, size_t size)
{
    for (size_t i = 0; i < size; i += 16)
        cli_print(&stage->output.cli, "%015zu\n", i);
    up_output_flush(&stage->output);
}

/* Reads what is available; returns how much. */
static size_t read_some(struct stage *stage)
{
    char part[65536];
    ssize_t count = read(stage->reader, part, sizeof part);

    assert_true(count > 0 || errno == EAGAIN);
    for (ssize_t i = 15; i < count; i += 16)
        assert_int_equal(part[i], '\n');
    return count > 0 ? (size_t)count : 0;
}

static void output_is_written_at_once_to_a_ready_reader(void **state)
{
    struct stage *stage = *state;

    print_large(stage, 64);
    assert_int_equal(read_some(stage), 64);
    assert_false(det_watch_is_set(&stage->output.watch));
    assert_true(up_output_has_room(&stage->output));
    assert_int_equal(up_output_take_hidden(&stage->output, true), 0);
}

static void blocked_output_is_kept_and_written_completely(void **state)
{
    struct stage *stage = *state;
    size_t size = 0;

    print_large(stage, LARGE);
    assert_true(det_watch_is_set(&stage->output.watch));
    while (size < LARGE) {
        size += read_some(stage);
        if (det_watch_is_set(&stage->output.watch))
            assert_true(det_loop_turn(stage->loop, DET_NEVER) > 0);
        up_output_flush(&stage->output);
    }
    assert_int_equal(size, LARGE);
    assert_false(det_watch_is_set(&stage->output.watch));
}

static void output_over_the_limit_is_dropped_and_counted(void **state)
{
    struct stage *stage = *state;

    stage->output.limit = LARGE / 2;
    print_large(stage, LARGE);
    assert_false(up_output_has_room(&stage->output));
    assert_false(up_output_has_room(&stage->output));
    assert_int_equal(up_output_take_hidden(&stage->output, false), 0);
    for (size_t size = 0; size < LARGE; up_output_flush(&stage->output))
        size += read_some(stage);
    assert_true(up_output_has_room(&stage->output));
    assert_int_equal(up_output_take_hidden(&stage->output, false), 2);
    assert_int_equal(up_output_take_hidden(&stage->output, true), 0);
}

static void a_reader_that_is_gone_is_an_error(void **state)
{
    struct stage *stage = *state;

    print_large(stage, LARGE);
    close(stage->reader);
    stage->reader = -1;
    assert_true(det_loop_turn(stage->loop, DET_NEVER) > 0);
    up_output_flush(&stage->output);
    assert_int_equal(stage->output.cli.out_error, EPIPE);
    assert_int_equal(stage->cli.out_error, EPIPE);
    /* From then on all output is discarded. */
    print_large(stage, LARGE);
    assert_int_equal(stage->output.buffer.size, 0);
    assert_false(det_watch_is_set(&stage->output.watch));
}

static void write_error_can_be_cleared_and_affects_no_other_line(void **state)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC), before;
    struct stage *stage = *state;
    char got[64];

    before = stage->output.watch.descriptor;
    assert_true(full >= 0);
    stage->output.watch.descriptor = full;
    cli_print(&stage->output.cli, "one\ntwo\n");
    up_output_flush(&stage->output);
    assert_int_equal(stage->output.cli.out_error, ENOSPC);
    cli_print(&stage->output.cli, "three\n");
    up_output_flush(&stage->output);
    assert_int_equal(up_output_forgive(&stage->output), 3);
    assert_int_equal(up_output_forgive(&stage->output), 0);
    assert_int_equal(stage->cli.out_error, 0);
    /* A line that was written in part. */
    stage->output.watch.descriptor = before;
    stage->output.is_torn = true;
    cli_print(&stage->output.cli, "four\n");
    up_output_flush(&stage->output);
    assert_int_equal(read(stage->reader, got, sizeof got), 6);
    assert_memory_equal(got, "\nfour\n", 6);
    close(full);
}

static void output_before_the_loop_is_written_synchronously(void **state)
{
    struct stage *stage = *state;

    up_output_attach(&stage->output, NULL);
    print_large(stage, 4096);
    assert_int_equal(read_some(stage), 4096);
}

static int print_once(struct det_test_memory *memory, void *argument)
{
    struct cli cli = { .world = det_world_real(), .allocator = &memory->allocator };
    struct up_output output;
    char *text = NULL;
    size_t size = 0;

    (void)argument;
    cli.out = open_memstream(&text, &size);
    assert_non_null(cli.out);
    assert_int_equal(up_output_open(&output, &cli), 0);
    cli_print(&output.cli, "some words\n");
    up_output_flush(&output);
    up_output_close(&output);
    (void)fclose(cli.out);
    assert_string_equal(text, memory->failed ? "" : "some words\n");
    free(text);
    assert_true(cli.has_failed == memory->failed);
    return memory->failed ? DET_ERR_NO_MEMORY : 0;
}

static void allocation_failure_is_recorded_in_the_run(void **state)
{
    (void)state;
    det_test_each_failure(print_once, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(output_is_written_at_once_to_a_ready_reader),
        TEST(blocked_output_is_kept_and_written_completely),
        TEST(output_over_the_limit_is_dropped_and_counted),
        TEST(a_reader_that_is_gone_is_an_error),
        TEST(write_error_can_be_cleared_and_affects_no_other_line),
        TEST(output_before_the_loop_is_written_synchronously),
        cmocka_unit_test(allocation_failure_is_recorded_in_the_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
