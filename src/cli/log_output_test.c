/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_output_test.c - a log whose reader is slow, gone, or has a full disk. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include "lib/test.h"

#include "cli/log_output.h"
#include "observe/log.h"

static void lines_get_out_as_they_are(void **state)
{
    struct log_output output;
    int ends[2];
    char got[64];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    output = (struct log_output){ .descriptor = ends[1] };
    assert_int_equal(log_output_write(&output, "one\n", 4), 0);
    assert_int_equal(log_output_write(&output, "two\n", 4), 0);
    assert_int_equal(read(ends[0], got, sizeof got), 8);
    assert_memory_equal(got, "one\ntwo\n", 8);
    close(ends[0]);
    close(ends[1]);
}

/* Reads all there is. */
static size_t drain(int descriptor, char *target, size_t capacity)
{
    size_t used = 0;
    ssize_t count;

    assert_int_equal(fcntl(descriptor, F_SETFL, O_NONBLOCK), 0);
    while ((count = read(descriptor, target + used, capacity - used)) > 0)
        used += (size_t)count;
    return used;
}

static void a_reader_that_sleeps_holds_up_nobody_and_no_line_spoils_another(void **state)
{
    static char line[3 * PIPE_BUF], got[1 << 18];
    struct log_output output;
    unsigned whole = 0;
    size_t size;
    int ends[2];

    (void)state;
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    output = (struct log_output){ .descriptor = ends[1] };
    /* A pipe has 16 pages: five lines of three, and a part of the sixth. */
    while (log_output_write(&output, line, sizeof line) == 0)
        whole++;
    assert_true(whole >= 1 && output.is_torn);
    assert_int_equal(log_output_write(&output, "lost\n", 5), DET_ERR_BUSY);
    size = drain(ends[0], got, sizeof got);
    assert_true(size > whole * sizeof line && size < (whole + 1) * sizeof line);
    assert_int_equal(log_output_write(&output, "next\n", 5), 0);
    size = drain(ends[0], got, sizeof got);
    assert_int_equal(size, 6);
    assert_memory_equal(got, "\nnext\n", 6);
    close(ends[0]);
    close(ends[1]);
}

static void a_reader_that_is_gone_is_an_error(void **state)
{
    struct log_output output;
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    output = (struct log_output){ .descriptor = ends[1] };
    close(ends[0]);
    assert_int_equal(log_output_write(&output, "one\n", 4), DET_ERR_IO);
    close(ends[1]);
    assert_int_equal(log_output_write(&output, "one\n", 4), DET_ERR_IO);
    assert_false(output.is_torn);
}

/* All of the way: what cannot be written is counted, and later lines get out. */
static void a_full_disk_is_counted(void **state)
{
    struct log_output output = { .descriptor = open("/dev/full", O_WRONLY | O_CLOEXEC) };
    struct det_metrics *metrics;
    struct det_log_line line;
    struct det_logger *log;

    (void)state;
    assert_true(output.descriptor >= 0);
    assert_int_equal(log_output_write(&output, "one\n", 4), DET_ERR_NO_SPACE);
    assert_int_equal(det_metrics_open(&(struct det_metrics_options){ 0 }, &metrics), 0);
    assert_int_equal(
        det_logger_open(
            &(struct det_logger_options){
                .write = log_output_write, .user = &output, .metrics = metrics },
            &log),
        0);
    det_log_line_begin(log, &line, DET_LOG_ERROR, "store", "disk full");
    det_log_line_end(&line);
    close(output.descriptor);
    output.descriptor = open("/dev/null", O_WRONLY | O_CLOEXEC);
    det_log_line_begin(log, &line, DET_LOG_ERROR, "store", "disk full");
    det_log_line_end(&line);
    assert_int_equal(atomic_load(&det_metrics_only(metrics, DET_METRIC_LOG_DROPPED)->value), 1);
    det_logger_close(log);
    det_metrics_close(metrics);
    close(output.descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_get_out_as_they_are),
        cmocka_unit_test(a_reader_that_sleeps_holds_up_nobody_and_no_line_spoils_another),
        cmocka_unit_test(a_reader_that_is_gone_is_an_error),
        cmocka_unit_test(a_full_disk_is_counted),
    };
    struct sigaction ignored = { .sa_handler = SIG_IGN };

    sigaction(SIGPIPE, &ignored, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
