/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_threads_sim_test.c - a thread pool in the simulated world: all cases over many seeds, each
 * crowd twice, and every want of memory. */
#include "worker/sim_world_cases.h"
#include "worker/worker_threads_random_cases.h"

static const struct CMUnitTest cases[] = { WORKER_THREADS_CASES };

static void every_case_holds_for_every_seed(void **state)
{
    run_over_seeds(state, cases, sizeof cases / sizeof *cases, 50);
}

static uint64_t crowd_hash(struct crowd *crowd)
{
    struct det_sim_options options = { .seed = world_seed, .preempt = 300000 };
    struct det_sim *sim;
    uint64_t hash;

    assert_int_equal(0, det_sim_open(&options, &sim, NULL));
    crowd_run(crowd, det_sim_world(sim), world_seed, 400);
    hash = det_sim_hash(sim);
    det_sim_close(sim);
    return hash;
}

static void thread_pool_invariants_hold_under_every_seed(void **state)
{
    uint64_t count = seeds_count(100);
    static struct crowd crowd;
    unsigned late = 0, dropped = 0;

    (void)state;
    for (world_seed = 1; world_seed <= count; world_seed++) {
        assert_true(crowd_hash(&crowd) == crowd_hash(&crowd));
        late += crowd.late;
        dropped += crowd.dropped;
    }
    world_seed = 0;
    assert_true(late > count && dropped > 0);
}

/* The time before its start does not count for its timeout. */
static void job_start_time_excludes_the_queue(void **state)
{
    struct world_fixture *fixture = *state;
    struct work first, second;
    det_time submitted_at;
    struct yard yard;

    yard_init(&yard, fixture->world, 1, 0);
    first = work_of(&yard, 0, run_and_wait);
    second = work_of(&yard, 0, run_at_once);
    submitted_at = monotonic(fixture->world);
    first.wait_until = submitted_at + DET_HOUR;
    submit(&first);
    gate_wait(&yard.started, 1);
    submit(&second);
    turn_until_done(&second, 1);
    assert_true(first.job.started_at == submitted_at);
    assert_true(second.job.started_at == submitted_at + DET_HOUR);
    yard_deinit(&yard);
}

struct poor {
    struct det_worker_threads_job job;
    struct det_worker_threads *pool;
    bool has_run, is_done;
};

static void poor_run(void *argument)
{
    struct poor *poor = argument;

    poor->has_run = det_worker_threads_wait(poor->pool, &poor->job, DET_NEVER) == DET_ERR_CANCELLED;
}

static void poor_done(void *argument)
{
    struct poor *poor = argument;

    poor->is_done = true;
}

/* Each of the two jobs gets a thread if possible, and is abandoned if possible. */
static int use_threads(struct det_sim *sim, struct det_loop *loop, struct det_test_memory *memory)
{
    struct poor poors[2];
    struct det_worker_threads *pool;
    int r, results[2] = { 0 };

    r = det_worker_threads_open(&memory->allocator, loop, "crew", 2, 2, &pool);
    if (r < 0)
        return r;
    for (int i = 0; i < 2; i++) {
        poors[i] = (struct poor){ .pool = pool };
        poors[i].job = (struct det_worker_threads_job){ .run = poor_run,
                                                        .done = poor_done,
                                                        .argument = &poors[i] };
        det_worker_threads_submit(pool, &poors[i].job);
    }
    assert_int_equal(0, det_sim_settle(sim));
    assert_true(poors[0].job.is_started);
    for (int i = 0; i < 2; i++)
        if (poors[i].job.is_started)
            results[i] = det_worker_threads_abandon(pool, &poors[i].job);
    det_worker_threads_close(pool);
    while (!poors[0].is_done || !poors[1].is_done)
        assert_true(det_loop_turn(loop, DET_NEVER) > 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(poors[i].job.is_started, poors[i].has_run);
        assert_int_equal(!poors[i].job.is_started, poors[i].job.is_dropped);
        assert_int_equal(poors[i].has_run && results[i] == 0, poors[i].job.is_late);
    }
    return results[0] < 0 ? results[0] : results[1];
}

static int open_use_close(struct det_test_memory *memory, void *argument)
{
    struct det_sim_options options = { .seed = 3, .allocator = &memory->allocator };
    struct det_loop *loop;
    struct det_sim *sim;
    int r;

    (void)argument;
    r = det_sim_open(&options, &sim, NULL);
    if (r < 0)
        return r;
    r = det_loop_open(det_sim_world(sim), &memory->allocator, &loop);
    if (r == 0) {
        r = use_threads(sim, loop, memory);
        det_loop_close(loop);
    }
    det_sim_close(sim);
    return r;
}

static void allocation_failure_loses_no_job(void **state)
{
    (void)state;
    det_test_each_failure(open_use_close, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_holds_for_every_seed),
        cmocka_unit_test(thread_pool_invariants_hold_under_every_seed),
        WORLD_CASE(job_start_time_excludes_the_queue),
        cmocka_unit_test(allocation_failure_loses_no_job),
    };
    int failed = cmocka_run_group_tests_name("one seed", cases, NULL, NULL);

    return failed + cmocka_run_group_tests_name("seeds", tests, NULL, print_seed);
}
