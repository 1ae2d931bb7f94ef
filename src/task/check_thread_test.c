/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check_thread_test.c - checks in the real world: functions on separate threads, processes that are
 * killed or outlive the thread that added them, and requests to a tree from other threads. */
/* test: threads */
#include <stdatomic.h>

#include <detent/task.h>

#include "lib/test.h"
#include "os/os.h"

static atomic_int checks_run;

static int serve(struct det_task_context *context, void *argument)
{
    (void)argument;
    return det_task_wait(context, DET_NEVER);
}

static int check(struct det_task_context *context, void *argument)
{
    (void)argument;
    atomic_fetch_add(&checks_run, 1);
    return det_task_is_cancelled(context) ? DET_ERR_CANCELLED : 0;
}

/* Is over when what it depends on is healthy. */
static int finish(struct det_task_context *context, void *argument)
{
    (void)context;
    (void)argument;
    return 0;
}

static struct det_tasks *open_tasks(void)
{
    struct det_tasks *tasks;

    assert_int_equal(det_tasks_open(NULL, &tasks, NULL), 0);
    assert_int_equal(
        det_tasks_add_group(
            tasks,
            &(struct det_task_group_spec){ .name = "g", .strategy = DET_STRATEGY_ALL_FOR_ONE },
            NULL),
        0);
    return tasks;
}

static void wait_for_healthy(struct det_tasks *tasks, const char *name)
{
    struct det_dependency need = { .name = name, .when = DET_WHEN_HEALTHY };
    struct det_task_spec spec = {
        .name = "finish", .function = finish, .depends_on = &need, .depends_on_count = 1
    };
    struct det_waiter *waiter;
    struct det_task_end end;

    assert_int_equal(det_tasks_add(tasks, &spec, &waiter, NULL, NULL), 0);
    assert_int_equal(det_waiter_wait(waiter, DET_NEVER, &end), 0);
    assert_int_equal(end.outcome, DET_TASK_OUTCOME_COMPLETED);
    det_waiter_close(waiter);
}

static void a_function_is_checked_by_functions_until_it_stops(void **state)
{
    struct det_tasks *tasks = open_tasks();
    struct det_task_spec spec = {
        .name = "serve",
        .function = serve,
        .group = "g",
        .readiness = { .by = DET_READY_BY_CHECK,
                       .check = { .run = check, .every = DET_MILLISECOND } },
    };

    (void)state;
    assert_int_equal(det_tasks_add(tasks, &spec, NULL, NULL, NULL), 0);
    for (int i = 0; i < 5; i++)
        wait_for_healthy(tasks, "serve");
    assert_int_equal(det_tasks_group_cancel(tasks, "g"), 1);
    assert_int_equal(det_tasks_group_start(tasks, "g"), 1);
    wait_for_healthy(tasks, "serve");
    det_tasks_close(tasks);
    assert_true(atomic_load(&checks_run) > 0);
}

static void a_process_is_checked_by_processes_that_end_with_it(void **state)
{
    static const char *const sleep_long[] = { "sleep", "1000", NULL };
    static const char *const pass[] = { "true", NULL };
    struct det_tasks *tasks = open_tasks();
    struct det_process_spec process = { .argv = sleep_long };
    struct det_task_spec spec = {
        .name = "sleep",
        .process = &process,
        .group = "g",
        .readiness = { .by = DET_READY_BY_CHECK, .check = { .argv = pass } },
    };

    (void)state;
    assert_int_equal(det_tasks_add(tasks, &spec, NULL, NULL, NULL), 0);
    wait_for_healthy(tasks, "sleep");
    /* A check that hangs is detached from its attempt, and killed. */
    spec.name = "hang";
    spec.readiness = (struct det_readiness){ .by = DET_READY_BY_CHECK,
                                             .check = { .argv = sleep_long, .timeout = DET_HOUR } };
    assert_int_equal(det_tasks_add(tasks, &spec, NULL, NULL, NULL), 0);
    assert_int_equal(det_tasks_shutdown(tasks, NULL), 0);
    det_tasks_close(tasks);
}

#define ADDERS 20

struct adder {
    struct det_tasks *tasks;
    struct det_task_spec spec;
    struct det_waiter *waiter;
    int result;
};

static void add_task(void *argument)
{
    struct adder *adder = argument;
    struct det_task_end end;

    adder->result = det_tasks_add(adder->tasks, &adder->spec, &adder->waiter, NULL, NULL);
    if (adder->result == 0)
        adder->result = det_waiter_wait(
            adder->waiter, det_world_now(NULL, DET_CLOCK_MONOTONIC) + 20 * DET_MILLISECOND, &end);
}

/* A thread that waits for an end runs the loop meanwhile, and may start the process. */
static void process_outlives_the_thread_that_added_it(void **state)
{
    static const char *const until_reported[] = { "sh", "-c",
                                                  "until [ -e told ]; do sleep 0.02; done", NULL };
    struct det_world *world = det_world_real();
    char *folder = det_test_folder(), path[600], names[ADDERS][16];
    struct det_process_spec process = { .argv = until_reported,
                                        .folder = folder,
                                        .ends_with_us = true };
    struct adder adders[ADDERS];
    struct det_tasks *tasks = open_tasks();
    struct det_thread *thread;
    struct det_task_end end;

    (void)state;
    for (int i = 0; i < ADDERS; i++) {
        snprintf(names[i], sizeof names[i], "waits-%d", i);
        adders[i] =
            (struct adder){ .tasks = tasks, .spec = { .name = names[i], .process = &process } };
        assert_int_equal(det_thread_start(world, "adder", add_task, &adders[i], &thread), 0);
        det_thread_join(world, thread);
        assert_int_equal(adders[i].result, DET_ERR_TIMEOUT);
    }
    snprintf(path, sizeof path, "%s/told", folder);
    det_test_write_file(path, "", 0);
    for (int i = 0; i < ADDERS; i++) {
        assert_int_equal(det_waiter_wait(adders[i].waiter, DET_NEVER, &end), 0);
        assert_int_equal(end.outcome, DET_TASK_OUTCOME_COMPLETED);
        assert_int_equal(end.attempts, 1);
        det_waiter_close(adders[i].waiter);
    }
    det_tasks_close(tasks);
    det_test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_is_checked_by_functions_until_it_stops),
        cmocka_unit_test(a_process_is_checked_by_processes_that_end_with_it),
        cmocka_unit_test(process_outlives_the_thread_that_added_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
