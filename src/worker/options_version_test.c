/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* options_version_test.c - every function with options refuses an option of a newer version, in the
 * place of a reserved field of this version. */
#include <detent/durable.h>
#include <detent/lock.h>
#include <detent/sim.h>
#include <detent/slot.h>
#include <detent/supervise.h>
#include <detent/tool/store.h>
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

static void handles_on_a_store_refuse_newer_options(void **state)
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

static int no_work(struct det_task_context *context, void *argument)
{
    (void)context;
    (void)argument;
    return 0;
}

static int no_event(void *user, const struct det_task_event *event)
{
    (void)user;
    (void)event;
    return 0;
}

static void added_specs_refuse_newer_fields(void **state)
{
    static const char *const argv[] = { "true", NULL };
    const struct det_process_spec process = { .argv = argv, .reserved = NEWER };
    struct det_workers *workers = NULL;
    struct det_tasks *tasks = NULL;

    (void)state;
    assert_int_equal(det_tasks_open(NULL, &tasks, &error), 0);
    assert_refused(
        det_tasks_add(
            tasks, &(struct det_task_spec){ .name = "t", .function = no_work, .reserved = NEWER },
            NULL, NULL, &error),
        "a task: ");
    assert_refused(
        det_tasks_add(
            tasks, &(struct det_task_spec){ .name = "t", .process = &process }, NULL, NULL, &error),
        "a process: ");
    assert_refused(
        det_tasks_add_group(
            tasks, &(struct det_task_group_spec){ .name = "g", .reserved = NEWER }, &error),
        "a group: ");
    assert_refused(
        det_slot_configure(tasks, "s", &(struct det_slot_options){ .reserved = NEWER }, &error),
        "a slot: ");
    assert_refused(
        det_bus_subscribe(
            det_tasks_bus(tasks),
            &(struct det_subscriber){ .on_event = no_event, .reserved = NEWER }, NULL, &error),
        "a subscriber: ");
    det_tasks_close(tasks);
    assert_int_equal(det_workers_open(&(struct det_workers_options){ 0 }, &workers, &error), 0);
    assert_refused(
        det_workers_upsert(
            workers, NULL,
            &(struct det_child_spec){ .name = "w", .kind = "application", .reserved = NEWER },
            &error),
        "a worker: ");
    det_workers_close(workers);
}

static int visit_nothing(void *context, const struct det_listed_instance *row)
{
    (void)context;
    (void)row;
    return 0;
}

static int visit_no_row(void *context, const struct det_store_logged *row)
{
    (void)context;
    (void)row;
    return 0;
}

static void sends_and_queries_refuse_a_newer_field(void **state)
{
    static const struct det_machine machine = { .name = "order" };
    struct det_runtime *runtime = NULL;
    struct det_store *store = NULL;
    uint64_t next = 77;

    (void)state;
    assert_int_equal(det_store_open("memory:", &store, &error), 0);
    assert_int_equal(det_runtime_open(store, NULL, &runtime, &error), 0);
    assert_refused(
        det_runtime_start(
            runtime, &machine, "o-1", NULL, &(struct det_send_options){ .reserved = NEWER }, NULL,
            &error),
        "a send: ");
    assert_refused(
        det_runtime_query(
            runtime, &machine, &(struct det_instance_query){ .reserved = NEWER }, visit_nothing,
            NULL, &error),
        "a query of instances: ");
    assert_int_equal(
        det_store_log(
            store, &(struct det_store_log_query){ .reserved = NEWER }, visit_no_row, NULL, &next),
        DET_ERR_VERSION);
    assert_int_equal(next, 77);
    det_runtime_close(runtime);
    det_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(supervisors_and_worlds_refuse_a_newer_option),
        cmocka_unit_test(handles_on_a_store_refuse_newer_options),
        cmocka_unit_test(added_specs_refuse_newer_fields),
        cmocka_unit_test(sends_and_queries_refuse_a_newer_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
