/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reason_test.c - real processes that die of our own signal: the reason names its cause. */
#include <detent/task.h>

#include "lib/test.h"

static struct det_task_end run_and_remove(const struct det_task_spec *spec, bool remove_wanted)
{
    DET_SCOPED(tasks) tasks = NULL;
    struct det_waiter *waiter = NULL;
    struct det_task_end end;
    det_task_id id;

    assert_int_equal(det_tasks_open(NULL, &tasks, NULL), 0);
    assert_int_equal(det_tasks_add(tasks, spec, &waiter, &id, NULL), 0);
    if (remove_wanted) {
        uint64_t cursor = 0, lost;
        struct det_task_event event = { .kind = DET_TASK_EVENT_TASK_ADDED };

        while (event.kind != DET_TASK_EVENT_TASK_READY)
            (void)det_bus_read(det_tasks_bus(tasks), &cursor, &event, &lost);
        assert_int_equal(det_tasks_remove(tasks, id), 1);
    }
    assert_int_equal(det_waiter_wait(waiter, DET_NEVER, &end), 0);
    det_waiter_close(waiter);
    return end;
}

static void readiness_timeout_is_the_reason_of_the_end(void **state)
{
    const struct det_process_spec process = { .argv =
                                                  (const char *const[]){ "sleep", "60", NULL } };
    const struct det_task_spec spec = {
        .name = "slow",
        .process = &process,
        .policy = { .restart = DET_RESTART_NEVER },
        .readiness = { .by = DET_READY_BY_CHECK,
                       .within = 50 * DET_MILLISECOND,
                       .check = { .argv = (const char *const[]){ "false", NULL } } },
    };
    struct det_task_end end = run_and_remove(&spec, false);

    (void)state;
    assert_int_equal(end.outcome, DET_TASK_OUTCOME_FAILED);
    assert_non_null(strstr(end.reason, "not ready within 50ms"));
}

static void ignored_stop_signal_is_the_reason_of_the_end(void **state)
{
    const struct det_process_spec process = {
        .argv = (const char *const[]){ "sh", "-c",
                                       "trap '' TERM; touch \"$0\"; while :; do sleep 1; done",
                                       NULL, NULL }
    };
    char *folder = det_test_folder(), mark[512];
    const char *argv[] = { process.argv[0], process.argv[1], process.argv[2], mark, NULL };
    const struct det_process_spec marked = { .argv = argv };
    const struct det_task_spec spec = {
        .name = "deaf",
        .process = &marked,
        .policy = { .grace = 50 * DET_MILLISECOND },
        .readiness = { .by = DET_READY_BY_CHECK,
                       .check = { .argv = (const char *const[]){ "test", "-e", mark, NULL },
                                  .every = 10 * DET_MILLISECOND,
                                  .fails_max = 10000,
                                  .only_readiness = true } },
    };
    struct det_task_end end;

    (void)state;
    snprintf(mark, sizeof mark, "%s/mark", folder);
    end = run_and_remove(&spec, true);
    assert_int_equal(end.outcome, DET_TASK_OUTCOME_FORCE_ABORTED);
    assert_string_equal(end.reason, "did not stop within 50ms");
    assert_int_equal(end.signal, 9);
    det_test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readiness_timeout_is_the_reason_of_the_end),
        cmocka_unit_test(ignored_stop_signal_is_the_reason_of_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
