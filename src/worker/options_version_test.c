/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* options_version_test.c - whatever is opened with options refuses an option of a newer version,
 * which stands where this version has a reserved field. */
#include <detent/durable.h>
#include <detent/lock.h>
#include <detent/sim.h>
#include <detent/supervise.h>
#include <detent/workers.h>
#include <string.h>

#include "lib/test.h"

static struct det_error error;

/* The last reserved field is the one that an incomplete check would miss. */
#define NEWER                          \
    {                                  \
        [DET_OPTIONS_RESERVED - 1] = 1 \
    }

static void assert_refused(int r, const char *what)
{
    assert_int_equal(r, DET_ERR_VERSION);
    assert_int_equal(error.code, DET_ERR_VERSION);
    assert_int_equal(strncmp(error.text, what, strlen(what)), 0);
    memset(&error, 0, sizeof error);
}

static void supervisors_and_worlds_refuse_a_newer_option(void **state)
{
    struct det_executor *executor = NULL;
    struct det_workers *workers = NULL;
    struct det_tasks *tasks = NULL;
    struct det_loop *loop = NULL;
    struct det_sim *sim = NULL;

    (void)state;
    assert_refused(
        det_tasks_open(&(struct det_tasks_options){ .reserved = NEWER }, &tasks, &error),
        "a supervisor of tasks: ");
    assert_refused(
        det_workers_open(&(struct det_workers_options){ .reserved = NEWER }, &workers, &error),
        "a supervisor of workers: ");
    assert_refused(
        det_sim_open(&(struct det_sim_options){ .reserved = NEWER }, &sim, &error),
        "a simulation: ");
    assert_int_equal(det_loop_open(NULL, NULL, &loop), 0);
    assert_refused(
        det_executor_open(
            loop, &(struct det_executor_options){ .reserved = NEWER }, &executor, &error),
        "an executor: ");
    det_loop_close(loop);
}

static void what_stands_on_a_store_refuses_a_newer_option(void **state)
{
    static const struct det_machine machine = { .name = "order" };
    struct det_durable *durable = NULL;
    struct det_runtime *runtime = NULL;
    struct det_lease *lease = NULL;
    struct det_store *store = NULL;
    struct det_lock *lock = NULL;

    (void)state;
    assert_int_equal(det_store_open("memory:", &store, &error), 0);
    assert_refused(
        det_runtime_open(
            store, &(struct det_runtime_options){ .reserved = NEWER }, &runtime, &error),
        "a runtime: ");
    assert_refused(
        det_durable_open(
            &(struct det_durable_options){ .store = store, .queue = "mail", .reserved = NEWER },
            &durable, &error),
        "a durable queue: ");
    assert_int_equal(det_runtime_open(store, NULL, &runtime, &error), 0);
    assert_refused(
        det_lock_open(
            runtime, &machine, "o-1", &(struct det_lock_options){ .reserved = NEWER }, &lock,
            &error),
        "a lock: ");
    assert_refused(
        det_lease_open(
            runtime, "leader", &(struct det_lease_options){ .reserved = NEWER }, &lease, &error),
        "a lease: ");
    det_runtime_close(runtime);
    det_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(supervisors_and_worlds_refuse_a_newer_option),
        cmocka_unit_test(what_stands_on_a_store_refuses_a_newer_option),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
