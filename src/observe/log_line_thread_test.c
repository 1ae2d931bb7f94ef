/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_line_thread_test.c - threads that really log at once. */
/* test: threads */
#include "lib/test.h"

#include "observe/log_line.h"
#include "os/os.h"

#define THREADS 3
#define LINES   500

/* Not atomic: one line comes after the other. */
struct seen {
    unsigned count;
    bool is_wrong;
};

struct logger {
    struct det_logger *log;
    struct det_thread *thread;
};

static int see(void *user, const char *line, size_t size)
{
    struct seen *seen = user;

    seen->count++;
    seen->is_wrong = seen->is_wrong || line[0] != '{' || line[size - 1] != '\n';
    return 0;
}

static void log_many(void *argument)
{
    struct logger *logger = argument;

    for (int i = 0; i < LINES; i++) {
        struct det_log_line line;

        det_log_line_begin(logger->log, &line, DET_LOG_INFO, "x", "m %d", i);
        det_log_line_end(&line);
    }
}

static void lines_of_threads_come_one_at_a_time(void **state)
{
    struct det_world *world = det_world_real();
    struct logger loggers[THREADS];
    struct seen seen = { 0 };
    struct det_logger *log;

    (void)state;
    assert_int_equal(
        det_logger_open(&(struct det_logger_options){ .write = see, .user = &seen }, &log), 0);
    for (size_t i = 0; i < THREADS; i++) {
        loggers[i].log = log;
        assert_int_equal(
            det_thread_start(world, "log", log_many, &loggers[i], &loggers[i].thread), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        det_thread_join(world, loggers[i].thread);
    assert_int_equal(seen.count, THREADS * LINES);
    assert_false(seen.is_wrong);
    det_logger_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_threads_come_one_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
