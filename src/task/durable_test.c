/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_test.c - durable queues in the simulator: several processes on one shared store. */
#include "task/durable_test.h"
#include "base/text.h"

static void durable_jobs_run_once_in_order(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 1, 1);
    world.ledger.is_ordered = true;
    start(&world, 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(submit_to(&world.processes[0], i, 0), 0);
        assert_int_equal(submit_to(&world.processes[0], i, 0), 0);
    }
    pass(&world, 11 * DET_SECOND);
    for (int i = 0; i < 10; i++)
        assert_int_equal(world.ledger.done[i], 1);
    assert_int_equal(find(&world, "job-9").row.state, DET_JOB_DONE);
    close_world(&world);
}

static void delayed_job_waits_for_its_time(void **state)
{
    struct world world;
    det_time now;

    (void)state;
    open_world(&world, 1, 1);
    start(&world, 0);
    now = det_world_now(world.world, DET_CLOCK_WALL);
    assert_int_equal(submit_to(&world.processes[0], 0, now + DET_MINUTE), 0);
    pass(&world, DET_MINUTE - DET_MILLISECOND);
    assert_int_equal(world.ledger.begun[0], 0);
    pass(&world, 10 * DET_MILLISECOND);
    assert_int_equal(world.ledger.begun[0], 1);
    close_world(&world);
}

static void run_ends_when_the_queue_is_empty(void **state)
{
    struct world world;
    det_time now;

    (void)state;
    open_world(&world, 5, 2);
    start(&world, 0);
    now = det_world_now(world.world, DET_CLOCK_WALL);
    for (int i = 0; i < 5; i++)
        assert_int_equal(submit_to(&world.processes[0], i, i == 4 ? now + DET_HOUR : 0), 0);
    assert_int_equal(det_tasks_run(world.processes[0].tasks, NULL), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(world.ledger.done[i], 1);
    assert_true(det_world_now(world.world, DET_CLOCK_WALL) >= now + DET_HOUR);
    stop(&world, 0);
    /* Jobs that another process submitted or runs are waited for, too. */
    world.ledger.takes = DET_MINUTE;
    start(&world, 0);
    assert_int_equal(submit_to(&world.processes[0], 5, 0), 0);
    start(&world, 1);
    assert_int_equal(det_tasks_run(world.processes[1].tasks, NULL), 0);
    assert_int_equal(world.ledger.done[5], 1);
    close_world(&world);
}

static void run_ends_at_once_with_an_empty_queue(void **state)
{
    struct world world;
    det_time now;

    (void)state;
    open_world(&world, 6, 2);
    start(&world, 0);
    now = det_world_now(world.world, DET_CLOCK_WALL);
    assert_int_equal(det_tasks_run(world.processes[0].tasks, NULL), 0);
    assert_true(det_world_now(world.world, DET_CLOCK_WALL) < now + DET_SECOND);
    close_world(&world);
}

static void run_on_a_loop_of_the_users_ends_when_the_queue_is_empty(void **state)
{
    struct det_durable_options options = { .queue = "q", .works = works, .work_count = 1 };
    struct det_loop *loop;
    struct world world;

    (void)state;
    open_world(&world, 7, 1);
    assert_int_equal(det_loop_open(world.world, NULL, &loop), 0);
    options.store = det_shared_node(world.shared);
    assert_int_equal(
        det_tasks_open(&(struct det_tasks_options){ .loop = loop }, &options.tasks, NULL), 0);
    assert_int_equal(det_durable_open(&options, &world.processes[2].durable, NULL), 0);
    assert_int_equal(submit_to(&world.processes[2], 0, 0), 0);
    assert_int_equal(det_tasks_run(options.tasks, NULL), 0);
    assert_int_equal(world.ledger.done[0], 1);
    det_durable_close(world.processes[2].durable);
    world.processes[2].durable = NULL;
    det_tasks_close(options.tasks);
    det_loop_close(loop);
    det_store_close(options.store);
    close_world(&world);
}

/* Before its first turn a loop has no owner: threads of the queue must not become its owner. */
static void no_job_starts_before_the_user_loop_runs(void **state)
{
    struct det_durable_options options = { .queue = "q", .works = works, .work_count = 1 };
    struct process *process;
    struct det_loop *loop;
    struct world world;

    (void)state;
    open_world(&world, 9, 1);
    process = &world.processes[2];
    assert_int_equal(det_loop_open(world.world, NULL, &loop), 0);
    options.store = det_shared_node(world.shared);
    assert_int_equal(
        det_tasks_open(&(struct det_tasks_options){ .loop = loop }, &options.tasks, NULL), 0);
    assert_int_equal(det_durable_open(&options, &process->durable, NULL), 0);
    assert_int_equal(submit_to(process, 0, 0), 0);
    pass(&world, DET_SECOND);
    assert_int_equal(find(&world, "job-0").row.state, DET_JOB_RUNNING);
    assert_int_equal(det_tasks_counts(options.tasks).registered, 0);
    assert_int_equal(det_tasks_run(options.tasks, NULL), 0);
    assert_int_equal(world.ledger.done[0], 1);
    det_durable_close(process->durable);
    process->durable = NULL;
    det_tasks_close(options.tasks);
    det_loop_close(loop);
    det_store_close(options.store);
    close_world(&world);
}

static void run_does_not_wait_for_a_submit_only_queue(void **state)
{
    struct det_durable_options options = { .queue = "q" };
    struct world world;
    struct det_durable *durable;

    (void)state;
    open_world(&world, 8, 1);
    options.store = det_shared_node(world.shared);
    assert_int_equal(
        det_tasks_open(&(struct det_tasks_options){ .world = world.world }, &options.tasks, NULL),
        0);
    assert_int_equal(det_durable_open(&options, &durable, NULL), 0);
    assert_int_equal(submit_to(&(struct process){ .durable = durable }, 0, 0), 0);
    assert_int_equal(det_tasks_run(options.tasks, NULL), 0);
    assert_int_equal(find(&world, "job-0").row.state, DET_JOB_QUEUED);
    det_durable_close(durable);
    det_tasks_close(options.tasks);
    det_store_close(options.store);
    close_world(&world);
}

static void queue_width_holds_over_all_processes(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 2, 2);
    for (unsigned i = 0; i < PROCESS_MAX; i++)
        start(&world, i);
    for (int i = 0; i < 30; i++)
        assert_int_equal(submit_to(&world.processes[i % PROCESS_MAX], i, 0), 0);
    pass(&world, 2 * DET_MINUTE);
    for (int i = 0; i < 30; i++)
        assert_int_equal(world.ledger.done[i], 1);
    assert_int_equal(world.ledger.peak, 2);
    close_world(&world);
}

static void job_of_a_dead_process_reruns_after_its_claim_lapsed(void **state)
{
    struct world world;

    (void)state;
    open_at_work(&world, 3);
    pass(&world, DET_MINUTE);
    assert_int_equal(world.ledger.begun[0], 1);
    det_shared_kill(world.processes[0].store);
    world.ledger.takes = DET_SECOND;
    start(&world, 1);
    pass(&world, LEASE / 3);
    assert_int_equal(world.ledger.begun[0], 1);
    pass(&world, 2 * LEASE);
    assert_int_equal(world.ledger.done[0], 1);
    assert_int_equal(world.ledger.attempt[0], 2);
    close_world(&world);
}

static void long_work_keeps_its_claim_and_a_closed_process_gives_it_back_at_once(void **state)
{
    struct world world;

    (void)state;
    open_at_work(&world, 4);
    start(&world, 1);
    pass(&world, DET_HOUR / 2);
    assert_int_equal(world.ledger.begun[0], 1);
    stop(&world, 0);
    stop(&world, 1);
    assert_int_equal(find(&world, "job-0").row.state, DET_JOB_QUEUED);
    assert_string_equal(find(&world, "job-0").reason, "stopped with the process");
    start(&world, 0);
    pass(&world, DET_HOUR + DET_MINUTE);
    assert_int_equal(world.ledger.done[0], 1);
    close_world(&world);
}

/* The clock of the store continues while the machine sleeps, so the claim is lost then. */
static void suspended_machine_abandons_its_running_job(void **state)
{
    struct world world;

    (void)state;
    open_at_work(&world, 12);
    pass(&world, LEASE / 12);
    assert_int_equal(world.ledger.running, 1);
    det_shared_pause(world.processes[0].store, true);
    det_sim_suspend(world.sim, DET_HOUR);
    pass(&world, DET_SECOND + DET_MILLISECOND);
    assert_int_equal(world.ledger.running, 0);
    assert_int_equal(world.ledger.done[0], 0);
    det_shared_pause(world.processes[0].store, false);
    start(&world, 1);
    pass(&world, 2 * DET_HOUR);
    assert_int_equal(world.ledger.done[0], 1);
    assert_int_equal(world.ledger.attempt[0], 2);
    close_world(&world);
}

static void task_shutdown_returns_the_claimed_job(void **state)
{
    struct world world;

    (void)state;
    open_at_work(&world, 4);
    pass(&world, DET_MINUTE);
    assert_int_equal(det_tasks_shutdown(world.processes[0].tasks, NULL), 0);
    pass(&world, DET_HOUR);
    assert_int_equal(find(&world, "job-0").row.state, DET_JOB_QUEUED);
    assert_true(find(&world, "job-0").row.attempts <= 2);
    stop(&world, 0);
    close_world(&world);
}

static void failed_job_keeps_its_reason_and_the_queue_continues(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 5, 1);
    world.ledger.fails = 1;
    start(&world, 0);
    assert_int_equal(submit_to(&world.processes[0], 0, 0), 0);
    pass(&world, DET_MINUTE);
    world.ledger.fails = 0;
    assert_int_equal(submit_to(&world.processes[0], 1, 0), 0);
    pass(&world, DET_MINUTE);
    assert_int_equal(world.ledger.begun[0], 1);
    assert_int_equal(find(&world, "job-0").row.state, DET_JOB_FAILED);
    assert_non_null(strstr(find(&world, "job-0").reason, "not this time"));
    assert_int_equal(world.ledger.done[1], 1);
    close_world(&world);
}

static void manually_cancelled_job_has_failed(void **state)
{
    struct world world;
    det_task_id id;

    (void)state;
    open_at_work(&world, 6);
    pass(&world, DET_SECOND);
    id = det_tasks_find(world.processes[0].tasks, "work#1");
    assert_int_equal(det_tasks_remove(world.processes[0].tasks, id), 1);
    pass(&world, DET_SECOND);
    assert_int_equal(find(&world, "job-0").row.state, DET_JOB_FAILED);
    close_world(&world);
}

static void work_may_be_created_per_job_and_failure_fails_the_job(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 7, 1);
    world.is_made = true;
    finished = 0;
    start(&world, 0);
    assert_int_equal(submit_to(&world.processes[0], 0, 0), 0);
    assert_int_equal(
        det_durable_submit(
            world.processes[0].durable,
            &(struct det_durable_submission){
                .id = "other", .work = "work", .body = "bad", .size = 3 },
            NULL, NULL),
        0);
    pass(&world, DET_MINUTE);
    assert_int_equal(world.ledger.done[0], 1);
    assert_int_equal(finished, 1);
    assert_int_equal(find(&world, "other").row.state, DET_JOB_FAILED);
    assert_string_equal(find(&world, "other").reason, "that is no work");
    close_world(&world);
}

static void schedule_submits_each_time_once(void **state)
{
    static const struct det_durable_schedule schedule = { .name = "tick",
                                                          .schedule = { .every = DET_MINUTE },
                                                          .work = "unknown" };
    struct world world;

    (void)state;
    open_world(&world, 8, 1);
    world.schedules = &schedule;
    world.schedule_count = 1;
    for (unsigned i = 0; i < PROCESS_MAX; i++)
        start(&world, i);
    pass(&world, 10 * DET_MINUTE + DET_SECOND);
    assert_int_equal(find(&world, NULL).count, 10);
    close_world(&world);
}

/* By the clock of the store, each minute; the n-th of its times that are to come. */
static det_time minute_to_come(struct world *world, int n)
{
    det_time now = det_world_now(world->world, DET_CLOCK_WALL);

    return (now / DET_MINUTE + n) * DET_MINUTE;
}

static void scheduled_job_id_contains_its_due_time(void **state)
{
    static const struct det_durable_schedule schedule = { .name = "tick",
                                                          .schedule = { .cron = "* * * * *" },
                                                          .work = "unknown" };
    char first[64], second[64], time[DET_TIME_TEXT];
    struct world world;

    (void)state;
    open_world(&world, 8, 1);
    world.schedules = &schedule;
    world.schedule_count = 1;
    for (int i = 1; i <= 2; i++)
        snprintf(
            i == 1 ? first : second, sizeof first, "tick:%s",
            det_format_time_basic(minute_to_come(&world, i), time, sizeof time));
    start(&world, 0);
    pass(&world, 2 * DET_MINUTE + DET_SECOND);
    assert_int_equal(find(&world, NULL).count, 2);
    assert_int_equal(find(&world, first).count, 1);
    assert_int_equal(find(&world, second).count, 1);
    assert_int_equal(strlen(first), strlen("tick:20260131T100000Z"));
    close_world(&world);
}

/* Before, the time was in nanoseconds; such a job may have been imported. */
static void a_time_that_has_a_job_with_an_id_of_before_is_not_put_again(void **state)
{
    static const struct det_durable_schedule schedule = { .name = "tick",
                                                          .schedule = { .cron = "* * * * *" },
                                                          .work = "unknown" };
    struct det_job_place place;
    struct det_store *store;
    struct world world;
    char id[64];

    (void)state;
    open_world(&world, 8, 1);
    world.schedules = &schedule;
    world.schedule_count = 1;
    snprintf(id, sizeof id, "tick:%lld", (long long)minute_to_come(&world, 1));
    start(&world, 0);
    store = world.processes[0].store;
    assert_int_equal(
        store->ops->jobs->put(
            store, &(struct det_job_put){ .queue = "q", .id = id, .task = "unknown" }, 1, &place),
        0);
    assert_true(place.result == 0 && place.is_new);
    pass(&world, DET_MINUTE + DET_SECOND);
    assert_int_equal(find(&world, NULL).count, 1);
    pass(&world, DET_MINUTE);
    assert_int_equal(find(&world, NULL).count, 2);
    close_world(&world);
}

/* Down from half a minute after the first time to half a minute after the sixth. */
static unsigned put_after_a_gap(enum det_missed missed)
{
    struct det_durable_schedule schedule = { .name = "tick",
                                             .schedule = { .every = DET_MINUTE, .missed = missed },
                                             .work = "unknown" };
    struct world world;
    unsigned count;

    open_world(&world, 9, 1);
    world.schedules = &schedule;
    world.schedule_count = 1;
    start(&world, 0);
    pass(&world, 90 * DET_SECOND);
    stop(&world, 0);
    assert_int_equal(find(&world, NULL).count, 1);
    pass(&world, 5 * DET_MINUTE);
    start(&world, 0);
    pass(&world, 40 * DET_SECOND);
    count = find(&world, NULL).count;
    close_world(&world);
    return count;
}

static void missed_schedule_times_follow_the_missed_policy(void **state)
{
    (void)state;
    assert_int_equal(put_after_a_gap(DET_MISSED_SKIP), 1 + 1);
    assert_int_equal(put_after_a_gap(DET_MISSED_ONCE), 1 + 1 + 1);
    assert_int_equal(put_after_a_gap(DET_MISSED_ALL), 1 + 5 + 1);
}

static void invalid_queue_options_are_refused(void **state)
{
    static const char *const argv[] = { "x", NULL };
    static const struct det_process_spec process = { .argv = argv };
    static const struct det_task_spec bare = { .process = &process };
    const struct det_durable_work bad[] = { { .name = "", .spec = &spec },
                                            { .name = "bare", .spec = &bare } };
    const struct det_durable_schedule odd[] = { { .name = "a b", .schedule = { .every = DET_DAY } },
                                                { .name = "none" },
                                                { .name = "c", .schedule = { .cron = "x" } } };
    struct world world;
    struct det_durable_options options;
    struct det_durable *durable;
    struct det_error error;

    (void)state;
    open_world(&world, 10, 1);
    start(&world, 0);
    options = (struct det_durable_options){ .tasks = world.processes[0].tasks,
                                            .store = world.processes[0].store };
    assert_int_equal(det_durable_open(&options, &durable, &error), DET_ERR_INVALID);
    options.queue = "other";
    options.width = 1000;
    assert_int_equal(det_durable_open(&options, &durable, &error), DET_ERR_INVALID);
    options.width = 1;
    options.work_count = 1;
    for (size_t i = 0; i < 2; i++) {
        options.works = &bad[i];
        assert_int_equal(det_durable_open(&options, &durable, &error), DET_ERR_INVALID);
    }
    options.work_count = 0;
    options.schedule_count = 1;
    for (size_t i = 0; i < 3; i++) {
        options.schedules = &odd[i];
        assert_true(det_durable_open(&options, &durable, &error) < 0);
    }
    assert_int_equal(submit_to(&world.processes[0], 0, -1), DET_ERR_INVALID);
    close_world(&world);
}

static int open_and_close(struct det_test_memory *memory, void *argument)
{
    struct world *world = argument;
    struct det_store *store = det_shared_node(world->shared);
    struct det_durable_options options = {
        .store = store, .queue = "q", .width = 2, .works = works, .work_count = 1
    };
    struct det_durable *durable = NULL;
    struct det_error error;
    int r;

    r = det_tasks_open(
        &(struct det_tasks_options){ .world = world->world, .allocator = &memory->allocator },
        &options.tasks, &error);
    if (r == 0) {
        r = det_durable_open(&options, &durable, &error);
        det_durable_close(durable);
        det_tasks_close(options.tasks);
    }
    det_store_close(store);
    return r;
}

static void durable_queue_open_survives_failed_allocations(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 11, 1);
    det_test_each_failure(open_and_close, &world);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durable_jobs_run_once_in_order),
        cmocka_unit_test(delayed_job_waits_for_its_time),
        cmocka_unit_test(run_ends_when_the_queue_is_empty),
        cmocka_unit_test(run_ends_at_once_with_an_empty_queue),
        cmocka_unit_test(run_on_a_loop_of_the_users_ends_when_the_queue_is_empty),
        cmocka_unit_test(no_job_starts_before_the_user_loop_runs),
        cmocka_unit_test(run_does_not_wait_for_a_submit_only_queue),
        cmocka_unit_test(queue_width_holds_over_all_processes),
        cmocka_unit_test(job_of_a_dead_process_reruns_after_its_claim_lapsed),
        cmocka_unit_test(long_work_keeps_its_claim_and_a_closed_process_gives_it_back_at_once),
        cmocka_unit_test(suspended_machine_abandons_its_running_job),
        cmocka_unit_test(task_shutdown_returns_the_claimed_job),
        cmocka_unit_test(failed_job_keeps_its_reason_and_the_queue_continues),
        cmocka_unit_test(manually_cancelled_job_has_failed),
        cmocka_unit_test(work_may_be_created_per_job_and_failure_fails_the_job),
        cmocka_unit_test(schedule_submits_each_time_once),
        cmocka_unit_test(scheduled_job_id_contains_its_due_time),
        cmocka_unit_test(a_time_that_has_a_job_with_an_id_of_before_is_not_put_again),
        cmocka_unit_test(missed_schedule_times_follow_the_missed_policy),
        cmocka_unit_test(invalid_queue_options_are_refused),
        cmocka_unit_test(durable_queue_open_survives_failed_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
