/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_threads_sim_test.c - a thread pool in the simulated world: all cases over many seeds, each
 * crowd twice, and every want of memory. */
#include "os/sim/seeds_cases.h"
#include "worker/worker_threads_random_cases.h"

static uint64_t seed = 7;

static int world_setup(void **state)
{
    static struct world_fixture fixture;

    fixture = (struct world_fixture){ 0 };
    if (det_sim_open(&(struct det_sim_options){ .seed = seed }, &fixture.sim, NULL) < 0)
        return -1;
    fixture.world = det_sim_world(fixture.sim);
    *state = &fixture;
    return 0;
}

static int world_teardown(void **state)
{
    struct world_fixture *fixture = *state;

    det_sim_close(fixture->sim);
    return 0;
}

static const struct CMUnitTest cases[] = { CREW_CASES };

static void every_case_holds_for_every_seed(void **state)
{
    uint64_t count = seeds_count(50);

    for (seed = 1; seed <= count; seed++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            assert_int_equal(0, cases[i].setup_func(state));
            cases[i].test_func(state);
            assert_int_equal(0, cases[i].teardown_func(state));
        }
    seed = 0;
}

static uint64_t crowd_hash(struct crowd *crowd)
{
    struct det_sim_options options = { .seed = seed, .preempt = 300000 };
    struct det_sim *sim;
    uint64_t hash;

    assert_int_equal(0, det_sim_open(&options, &sim, NULL));
    crowd_run(crowd, det_sim_world(sim), seed, 400);
    hash = det_sim_hash(sim);
    det_sim_close(sim);
    return hash;
}

static void a_crowd_holds_for_every_seed(void **state)
{
    uint64_t count = seeds_count(100);
    static struct crowd crowd;
    unsigned late = 0, dropped = 0;

    (void)state;
    for (seed = 1; seed <= count; seed++) {
        assert_true(crowd_hash(&crowd) == crowd_hash(&crowd));
        late += crowd.late;
        dropped += crowd.dropped;
    }
    seed = 0;
    assert_true(late > count && dropped > 0);
}

/* What took long before it began does not count for its timeout. */
static void the_start_is_when_it_runs(void **state)
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

/* Each of the two jobs gets a thread if it can, and they are given up if they can. */
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
            results[i] = det_worker_threads_give_up(pool, &poors[i].job);
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

static void want_of_memory_loses_no_job(void **state)
{
    (void)state;
    det_test_each_failure(open_use_close, NULL);
}

static int tell_seed(void **state)
{
    (void)state;
    if (seed)
        print_message("the last seed was %llu\n", (unsigned long long)seed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_holds_for_every_seed),
        cmocka_unit_test(a_crowd_holds_for_every_seed),
        WORLD_CASE(the_start_is_when_it_runs),
        cmocka_unit_test(want_of_memory_loses_no_job),
    };
    int failed = cmocka_run_group_tests_name("one seed", cases, NULL, NULL);

    return failed + cmocka_run_group_tests_name("seeds", tests, NULL, tell_seed);
}
