/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_claim_test.c - what becomes of claims: which count, and which are never ended. */
#include "task/durable_test.h"

#include <detent/loop.h>

#include "task/durable.h"

static void unknown_work_waits_for_a_process_that_knows_it(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 7, 1);
    start(&world, 0);
    assert_int_equal(
        det_durable_submit(
            world.processes[0].durable,
            &(struct det_durable_submission){ .id = "other", .work = "unknown" }, NULL, NULL),
        0);
    pass(&world, DET_SECOND);
    assert_int_equal(find(&world, "other").row.state, DET_JOB_DELAYED);
    pass(&world, DET_HOUR);
    assert_int_equal(find(&world, "other").row.state, DET_JOB_DELAYED);
    assert_string_equal(find(&world, "other").reason, "this process has no work of that name");
    close_world(&world);
}

static void work_completes_despite_repeated_stops(void **state)
{
    struct world world;

    (void)state;
    open_at_work(&world, 4);
    for (int i = 0; i < 25; i++) {
        pass(&world, DET_MINUTE);
        stop(&world, 0);
        start(&world, 0);
    }
    pass(&world, DET_HOUR + DET_MINUTE);
    assert_int_equal(world.ledger.begun[0], 26);
    assert_int_equal(world.ledger.done[0], 1);
    assert_int_equal(find(&world, "job-0").row.lost, 0);
    close_world(&world);
}

/* Perhaps it is what kills them. */
static void job_that_outlives_no_process_fails(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 13, 1);
    world.ledger.takes = DET_HOUR;
    for (unsigned i = 0; i < 25; i++) {
        start(&world, 0);
        if (i == 0)
            assert_int_equal(submit_to(&world.processes[0], 0, 0), 0);
        pass(&world, 2 * LEASE);
        det_shared_kill(world.processes[0].store);
        stop(&world, 0);
    }
    assert_int_equal(world.ledger.begun[0], 20);
    assert_int_equal(find(&world, "job-0").row.lost, 20);
    assert_int_equal(find(&world, "job-0").row.state, DET_JOB_FAILED);
    assert_string_equal(
        find(&world, "job-0").reason, "too many of its attempts were lost before they ended");
    close_world(&world);
}

static void old_ended_jobs_are_removed_even_under_constant_load(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 14, 1);
    world.kept = DET_HOUR;
    world.ledger.takes = 10 * DET_MINUTE;
    start(&world, 0);
    for (int i = 0; i < JOBS_MAX; i++)
        assert_int_equal(submit_to(&world.processes[0], i, 0), 0);
    pass(&world, 5 * DET_HOUR);
    assert_int_equal(world.ledger.running, 1);
    assert_int_equal(find(&world, "job-0").count, 0);
    assert_int_equal(find(&world, "job-28").count, 1);
    close_world(&world);
}

/* A store that records no end: the number of attempts, and its answer. */
static struct deaf {
    struct det_store_ops ops;
    struct det_job_ops jobs;
    int (*apply)(struct det_store *store, struct det_job_batch *batch);
    unsigned ends;
    int code;
    bool is_lost;
} deaf;

static int deaf_apply(struct det_store *store, struct det_job_batch *batch)
{
    if (!batch->end_count || !deaf.code)
        return deaf.apply(store, batch);
    deaf.ends++;
    return deaf.code;
}

static bool deaf_is_lost(struct det_store *store)
{
    (void)store;
    return deaf.is_lost;
}

static void make_deaf(struct det_store *store)
{
    deaf.ops = *store->ops;
    deaf.jobs = *store->ops->jobs;
    deaf.apply = deaf.jobs.apply;
    deaf.jobs.apply = deaf_apply;
    deaf.ops.jobs = &deaf.jobs;
    deaf.ops.is_lost = deaf_is_lost;
    store->ops = &deaf.ops;
}

static void open_deaf(struct world *world, int code, bool is_lost)
{
    open_world(world, 15, 1);
    deaf = (struct deaf){ .code = code, .is_lost = is_lost };
    world->wrap = make_deaf;
    start(world, 0);
    assert_int_equal(submit_to(&world->processes[0], 0, 0), 0);
}

static void job_end_is_resent_only_after_transient_errors(void **state)
{
    static const struct {
        int code;
        bool is_lost;
        unsigned least, most;
    } cases[] = { { DET_ERR_IO, false, 4, 8 },
                  { DET_ERR_BUSY, false, 4, 8 },
                  { DET_ERR_NO_MEMORY, false, 4, 8 },
                  { DET_ERR_NO_SPACE, false, 4, 8 },
                  { DET_ERR_READ_ONLY, false, 4, 8 },
                  { DET_ERR_IO, true, 1, 1 },
                  /* Without the claim that is in the same batch it may be another matter. */
                  { DET_ERR_CORRUPT, false, 2, 2 },
                  { DET_ERR_CLOSED, false, 2, 2 } };
    struct world world;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_deaf(&world, cases[i].code, cases[i].is_lost);
        pass(&world, LEASE / 2);
        assert_int_equal(world.ledger.done[0], 1);
        assert_in_range(deaf.ends, cases[i].least, cases[i].most);
        close_world(&world);
    }
}

/* Also while the claim of other jobs would succeed: a claim never overtakes an end. */
static void a_job_that_ended_during_a_long_outage_is_not_run_again(void **state)
{
    static const int codes[] = { DET_ERR_IO, DET_ERR_NO_SPACE, DET_ERR_READ_ONLY };
    struct world world;

    (void)state;
    for (size_t i = 0; i < 2 * sizeof codes / sizeof *codes; i++) {
        bool is_failed = i % 2;

        open_world(&world, 19, 2);
        world.ledger.fails = is_failed;
        deaf = (struct deaf){ .code = codes[i / 2] };
        world.wrap = make_deaf;
        start(&world, 0);
        assert_int_equal(submit_to(&world.processes[0], 0, 0), 0);
        pass(&world, 5 * LEASE);
        assert_int_equal(submit_to(&world.processes[0], 1, 0), 0);
        pass(&world, 5 * LEASE);
        assert_int_equal(find(&world, "job-0").row.state, DET_JOB_RUNNING);
        deaf.code = 0;
        pass(&world, 5 * LEASE);
        assert_int_equal(world.ledger.begun[0], 1);
        assert_int_equal(
            find(&world, "job-0").row.state, is_failed ? DET_JOB_FAILED : DET_JOB_DONE);
        assert_int_equal(world.ledger.begun[1], 1);
        close_world(&world);
    }
}

/* A store that notes which claims leave what is due. */
static struct noted {
    struct det_store_ops ops;
    struct det_job_ops jobs;
    int (*apply)(struct det_store *store, struct det_job_batch *batch);
    unsigned looks, leaves;
    det_time last, longest; /* look, and between two of them */
    bool check_wanted;      /* the one before has left it and found too little */
} noted;

static int note_apply(struct det_store *store, struct det_job_batch *batch)
{
    det_time now = store->ops->now(store);
    int r = noted.apply(store, batch);

    if (!batch->wanted)
        return r;
    if (batch->leaves_due) {
        assert_false(noted.check_wanted);
        noted.leaves++;
    } else {
        if (noted.leaves && now - noted.last > noted.longest)
            noted.longest = now - noted.last;
        noted.last = now;
        noted.looks++;
    }
    noted.check_wanted = batch->leaves_due && batch->claimed < batch->wanted;
    return r;
}

static void make_noted(struct det_store *store)
{
    noted.ops = *store->ops;
    noted.jobs = *store->ops->jobs;
    noted.apply = noted.jobs.apply;
    noted.jobs.apply = note_apply;
    noted.ops.jobs = &noted.jobs;
    store->ops = &noted.ops;
}

static void due_jobs_are_polled_even_under_constant_load(void **state)
{
    struct world world;

    (void)state;
    noted = (struct noted){ 0 };
    open_world(&world, 21, 1);
    world.ledger.takes = 10 * DET_MILLISECOND;
    world.wrap = make_noted;
    start(&world, 0);
    for (int i = 0; i < JOBS_MAX; i++)
        assert_int_equal(submit_to(&world.processes[0], i, 0), 0);
    pass(&world, JOBS_MAX * 11 * DET_MILLISECOND);
    assert_int_equal(world.ledger.done[JOBS_MAX - 1], 1);
    assert_false(noted.check_wanted);
    assert_true(noted.leaves > JOBS_MAX / 2);
    assert_true(noted.looks > JOBS_MAX / 8);
    assert_true(noted.longest <= 75 * DET_MILLISECOND);
    close_world(&world);
}

static void sparse_jobs_check_for_due_jobs_at_each_claim(void **state)
{
    struct world world;

    (void)state;
    noted = (struct noted){ 0 };
    open_world(&world, 22, 1);
    world.ledger.takes = DET_MILLISECOND;
    world.wrap = make_noted;
    start(&world, 0);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(submit_to(&world.processes[0], i, 0), 0);
        pass(&world, 20 * DET_MILLISECOND);
        assert_int_equal(world.ledger.done[i], 1);
    }
    assert_int_equal(noted.leaves, 0);
    close_world(&world);
}

static void unreachable_store_does_not_block_close(void **state)
{
    struct world world;
    det_time before;

    (void)state;
    open_deaf(&world, DET_ERR_IO, false);
    world.ledger.takes = DET_HOUR;
    pass(&world, DET_MINUTE);
    assert_int_equal(world.ledger.running, 1);
    before = det_world_now(world.world, DET_CLOCK_MONOTONIC);
    stop(&world, 0);
    assert_true(det_world_now(world.world, DET_CLOCK_MONOTONIC) - before < DET_SECOND / 2);
    assert_int_equal(deaf.ends, 1);
    close_world(&world);
    /* Also an end that is repeated already. */
    open_deaf(&world, DET_ERR_IO, false);
    pass(&world, DET_SECOND + 50 * DET_MILLISECOND);
    assert_in_range(deaf.ends, 1, 2);
    before = det_world_now(world.world, DET_CLOCK_MONOTONIC);
    stop(&world, 0);
    assert_true(det_world_now(world.world, DET_CLOCK_MONOTONIC) - before < DET_SECOND / 2);
    close_world(&world);
}

/* The first renewal is due long before any other check. */
static void a_short_lease_is_renewed_from_its_first_moment_on(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 16, 2);
    world.lease = DET_SECOND / 2;
    world.ledger.takes = DET_MINUTE;
    start(&world, 0);
    start(&world, 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(submit_to(&world.processes[i % 2], i, 0), 0);
    pass(&world, 3 * DET_MINUTE);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(world.ledger.begun[i], 1);
        assert_int_equal(world.ledger.done[i], 1);
    }
    close_world(&world);
}

/* The thread that watches the leases last saw a short job, or nothing. */
static void short_lease_is_abandoned_in_time_during_an_outage(void **state)
{
    struct world world;

    (void)state;
    for (int i = 0; i < 2; i++) {
        open_world(&world, 22, 1);
        world.lease = 400 * DET_MILLISECOND;
        world.ledger.takes = DET_MILLISECOND;
        start(&world, 0);
        assert_int_equal(submit_to(&world.processes[0], 0, 0), 0);
        pass(&world, i ? 3 * DET_SECOND : 50 * DET_MILLISECOND);
        assert_int_equal(world.ledger.done[0], 1);
        world.ledger.takes = DET_HOUR;
        assert_int_equal(submit_to(&world.processes[0], 1, 0), 0);
        pass(&world, 20 * DET_MILLISECOND);
        assert_int_equal(world.ledger.running, 1);
        det_shared_pause(world.processes[0].store, true);
        pass(&world, 3 * world.lease / 4);
        assert_int_equal(world.ledger.running, 0);
        det_shared_pause(world.processes[0].store, false);
        close_world(&world);
    }
}

static void job_id_with_other_content_is_refused(void **state)
{
    struct world world;
    struct det_error error;
    bool is_new = true;

    (void)state;
    open_at_work(&world, 17);
    assert_int_equal(
        det_durable_submit(
            world.processes[0].durable,
            &(struct det_durable_submission){
                .id = "job-0", .work = "work", .body = "x", .size = 1 },
            &is_new, &error),
        0);
    assert_false(is_new);
    assert_int_equal(
        det_durable_submit(
            world.processes[0].durable,
            &(struct det_durable_submission){
                .id = "job-0", .work = "work", .body = "y", .size = 1 },
            NULL, &error),
        DET_ERR_CONFLICT);
    assert_non_null(strstr(error.text, "queue q: id job-0 was submitted at 20"));
    close_world(&world);
}

/* A batch is in the hands of a process that is stopped before it has begun any of it: the loop of
 * its tasks is not turned. */
static void claimed_but_unstarted_job_costs_no_attempt(void **state)
{
    struct det_loop *loop;
    struct process process = { 0 };
    struct world world;

    (void)state;
    open_world(&world, 18, 4);
    assert_int_equal(det_loop_open(world.world, NULL, &loop), 0);
    process.store = det_shared_node(world.shared);
    assert_int_equal(
        det_tasks_open(
            &(struct det_tasks_options){ .world = world.world, .loop = loop }, &process.tasks,
            NULL),
        0);
    assert_int_equal(
        det_durable_open(
            &(struct det_durable_options){ .tasks = process.tasks,
                                           .store = process.store,
                                           .queue = "q",
                                           .width = 4,
                                           .works = works,
                                           .work_count = 1,
                                           .lease = LEASE },
            &process.durable, NULL),
        0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(submit_to(&process, i, 0), 0);
    pass(&world, DET_MINUTE);
    assert_int_equal(find(&world, "job-3").row.state, DET_JOB_RUNNING);
    det_durable_stop(process.durable);
    assert_int_equal(det_tasks_shutdown(process.tasks, NULL), 0);
    det_durable_close(process.durable);
    det_tasks_close(process.tasks);
    det_store_close(process.store);
    det_loop_close(loop);
    for (int i = 0; i < 6; i++) {
        char id[16];

        snprintf(id, sizeof id, "job-%d", i);
        assert_int_equal(find(&world, id).row.state, DET_JOB_QUEUED);
        assert_int_equal(find(&world, id).row.attempts, 0);
        assert_int_equal(find(&world, id).row.lost, 0);
    }
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_work_waits_for_a_process_that_knows_it),
        cmocka_unit_test(work_completes_despite_repeated_stops),
        cmocka_unit_test(job_that_outlives_no_process_fails),
        cmocka_unit_test(old_ended_jobs_are_removed_even_under_constant_load),
        cmocka_unit_test(job_end_is_resent_only_after_transient_errors),
        cmocka_unit_test(a_job_that_ended_during_a_long_outage_is_not_run_again),
        cmocka_unit_test(due_jobs_are_polled_even_under_constant_load),
        cmocka_unit_test(sparse_jobs_check_for_due_jobs_at_each_claim),
        cmocka_unit_test(unreachable_store_does_not_block_close),
        cmocka_unit_test(a_short_lease_is_renewed_from_its_first_moment_on),
        cmocka_unit_test(short_lease_is_abandoned_in_time_during_an_outage),
        cmocka_unit_test(job_id_with_other_content_is_refused),
        cmocka_unit_test(claimed_but_unstarted_job_costs_no_attempt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
