/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* durable_sim_test.c - durable queues through random stories: whatever becomes of the processes,
 * nothing is lost, and nothing is done twice at the same time. */
#include "task/durable_test.h"

/* One step of a random story. */
static void disturb(struct world *world, unsigned *submitted, bool *is_paused)
{
    unsigned number = (unsigned)det_sim_random_below(world->sim, PROCESS_MAX);
    struct process *process = &world->processes[number];

    switch (det_sim_random_below(world->sim, 8)) {
    case 0: /* it dies, and another one comes */
        det_shared_pause(process->store, false);
        is_paused[number] = false;
        det_shared_kill(process->store);
        stop(world, number);
        start(world, number);
        return;
    case 1: /* it is cut off, and another one comes only later */
        if (det_sim_chance(world->sim, 300000))
            det_shared_kill(process->store);
        return;
    case 2: /* nothing of it is answered for a while */
        is_paused[number] = !is_paused[number];
        det_shared_pause(process->store, is_paused[number]);
        return;
    case 3:
        det_shared_fail(
            process->store, 1 + (unsigned)det_sim_random_below(world->sim, 3),
            det_sim_chance(world->sim, 500000));
        return;
    default:
        if (*submitted >= JOBS_MAX || is_paused[number])
            return;
        /* Only what is acknowledged counts; the rest is submitted again. */
        if (submit_to(process, (int)*submitted, 0) == 0)
            ++*submitted;
        return;
    }
}

static uint64_t print_story(uint64_t seed)
{
    bool is_paused[PROCESS_MAX] = { false };
    unsigned submitted = 0;
    struct world world;
    uint64_t hash;

    open_world(&world, seed, seed % 2 ? 1 : 2);
    world.ledger.is_ordered = world.ledger.width == 1;
    for (unsigned i = 0; i < PROCESS_MAX; i++)
        start(&world, i);
    for (int i = 0; i < 120; i++) {
        world.ledger.takes = (det_time)det_sim_random_below(world.sim, 5000) * DET_MILLISECOND;
        disturb(&world, &submitted, is_paused);
        pass(&world, (det_time)det_sim_random_below(world.sim, 6000) * DET_MILLISECOND);
    }
    for (unsigned i = 0; i < PROCESS_MAX; i++) {
        det_shared_pause(world.processes[i].store, false);
        stop(&world, i);
        start(&world, i);
    }
    pass(&world, DET_HOUR);
    for (unsigned i = 0; i < submitted; i++)
        assert_true(world.ledger.done[i] >= 1);
    hash = det_sim_hash(world.sim);
    close_world(&world);
    return hash;
}

static void dying_processes_lose_no_job_and_run_none_concurrently(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t hash = print_story(seed);

        if (seed % 20 == 0)
            assert_true(print_story(seed) == hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dying_processes_lose_no_job_and_run_none_concurrently),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
