/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_claim_test.c - what becomes of claims: which count, and which are never ended. */
#include "task/durable_test.h"

static void work_that_nobody_knows_waits_for_who_does(void **state)
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
    assert_string_equal(find(&world, "other").reason, "there is no such work here");
    close_world(&world);
}

static void however_often_a_process_is_stopped_its_work_is_done_in_the_end(void **state)
{
    struct world world;

    (void)state;
    open_world(&world, 4, 1);
    world.ledger.takes = DET_HOUR;
    start(&world, 0);
    assert_int_equal(submit_to(&world.processes[0], 0, 0), 0);
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
static void work_that_its_process_never_outlives_has_failed(void **state)
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
    assert_string_equal(find(&world, "job-0").reason, "it was begun too often and has never ended");
    close_world(&world);
}

static void what_ended_long_ago_is_forgotten_also_when_there_is_always_something_to_do(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_that_nobody_knows_waits_for_who_does),
        cmocka_unit_test(however_often_a_process_is_stopped_its_work_is_done_in_the_end),
        cmocka_unit_test(work_that_its_process_never_outlives_has_failed),
        cmocka_unit_test(
            what_ended_long_ago_is_forgotten_also_when_there_is_always_something_to_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
