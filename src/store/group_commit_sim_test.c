/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* group_commit_sim_test.c - group commit with the thread orders of many seeds. */
#include "store/group_commit_cases.h"

#include <detent/driver/world.h>

#include "os/sim/seeds_cases.h"

static void every_commit_is_written_once_under_every_seed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= seeds_count(60); seed++) {
        struct desk desk = { .writers = 1 + (unsigned)(seed % 3), .items_max = 16 };
        uint64_t hashes[2];

        for (int i = 0; i < 2; i++) {
            assert_int_equal(
                det_sim_open(&(struct det_sim_options){ .seed = seed }, &desk.sim, NULL), 0);
            desk.world = det_sim_world(desk.sim);
            atomic_store(&desk.written, 0);
            atomic_store(&desk.batches, 0);
            run_senders(&desk);
            hashes[i] = det_sim_hash(desk.sim);
            det_sim_close(desk.sim);
        }
        assert_int_equal(hashes[0], hashes[1]);
        /* While one batch is written the other calls form the next one. */
        assert_true(atomic_load(&desk.batches) < THREADS * CALLS);
    }
}

static void send_gated(void *argument)
{
    struct sender *sender = argument;
    struct det_store_commit commit = { .expected = 5 };
    struct det_store_commit *const one = &commit;

    assert_int_equal(det_group_commit(sender->desk->group, &one, 1), sender->desk->result);
    assert_int_equal(commit.actual, 1);
}

static void open_gate(struct desk *desk)
{
    det_mutex_lock(desk->world, desk->mutex);
    desk->is_open = true;
    det_mutex_unlock(desk->world, desk->mutex);
    det_condition_broadcast(desk->world, desk->gate);
}

/* Ninety calls arrive while the first batch waits. */
static void call_during_a_batch_joins_the_next_and_shares_its_error(void **state)
{
    struct desk desk = { .writers = 1, .is_gated = true, .result = DET_ERR_IO };
    struct sender senders[90];

    (void)state;
    assert_int_equal(det_sim_open(NULL, &desk.sim, NULL), 0);
    desk.world = det_sim_world(desk.sim);
    assert_int_equal(det_mutex_open(desk.world, &desk.mutex), 0);
    assert_int_equal(det_condition_open(desk.world, &desk.gate), 0);
    assert_int_equal(desk_open(&desk, NULL), 0);
    for (unsigned i = 0; i < 90; i++) {
        senders[i] = (struct sender){ &desk, i, NULL };
        assert_int_equal(
            det_thread_start(desk.world, "sender", send_gated, &senders[i], &senders[i].thread), 0);
    }
    assert_int_equal(det_sim_advance(desk.sim, DET_SECOND), 0);
    open_gate(&desk);
    for (unsigned i = 0; i < 90; i++)
        det_thread_join(desk.world, senders[i].thread);
    assert_int_equal(atomic_load(&desk.batches), 2);
    assert_int_equal(atomic_load(&desk.largest), 89);
    det_group_close(desk.group);
    det_condition_close(desk.world, desk.gate);
    det_mutex_close(desk.world, desk.mutex);
    det_sim_close(desk.sim);
}

static void unserved_call_ends_with_the_simulation(void **state)
{
    struct desk desk = { .writers = 1, .is_gated = true };
    struct sender sender = { &desk, 0, NULL };
    struct det_store_commit commit = { .expected = 5 };
    struct det_store_commit *const one = &commit;

    (void)state;
    assert_int_equal(det_sim_open(NULL, &desk.sim, NULL), 0);
    desk.world = det_sim_world(desk.sim);
    assert_int_equal(det_mutex_open(desk.world, &desk.mutex), 0);
    assert_int_equal(det_condition_open(desk.world, &desk.gate), 0);
    assert_int_equal(desk_open(&desk, NULL), 0);
    assert_int_equal(
        det_thread_start(desk.world, "sender", send_gated, &sender, &sender.thread), 0);
    assert_int_equal(det_sim_advance(desk.sim, DET_SECOND), 0);
    assert_int_equal(det_group_commit(desk.group, &one, 1), DET_ERR_DEADLOCK);
    assert_int_equal(commit.actual, 0);
    open_gate(&desk);
    det_thread_join(desk.world, sender.thread);
    det_group_close(desk.group);
    det_condition_close(desk.world, desk.gate);
    det_mutex_close(desk.world, desk.mutex);
    det_sim_close(desk.sim);
}

/* The second sender needs a condition; without memory for it the call has no effect. */
struct scarce {
    struct desk *desk;
    int result;
};

static void send_scarce(void *argument)
{
    struct scarce *scarce = argument;
    struct det_store_commit commit = { .expected = 5 };
    struct det_store_commit *const one = &commit;

    scarce->result = det_group_commit(scarce->desk->group, &one, 1);
    assert_int_equal(commit.actual, scarce->result == 0);
}

static int send_without_memory(struct det_test_memory *memory, void *argument)
{
    struct desk desk = { .writers = 2, .sim = argument, .world = det_sim_world(argument) };
    struct scarce scarce[3] = { { &desk, 0 }, { &desk, 0 }, { &desk, 0 } };
    struct det_thread *threads[3];
    int r;

    r = desk_open(&desk, &memory->allocator);
    if (r < 0)
        return r;
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            det_thread_start(desk.world, "sender", send_scarce, &scarce[i], &threads[i]), 0);
    for (int i = 0; i < 3; i++) {
        det_thread_join(desk.world, threads[i]);
        if (scarce[i].result < 0)
            r = scarce[i].result;
    }
    assert_true(atomic_load(&desk.written) >= 2);
    det_group_close(desk.group);
    return r;
}

static void allocation_failure_refuses_only_its_own_call(void **state)
{
    struct det_sim *sim;

    (void)state;
    assert_int_equal(det_sim_open(NULL, &sim, NULL), 0);
    det_test_each_failure(send_without_memory, sim);
    det_sim_close(sim);
}

static int refuse_condition(struct det_world *world, struct det_condition **ret)
{
    (void)world;
    (void)ret;
    return DET_ERR_LIMIT;
}

/* Sends three calls while the first one waits; returns the number of refused ones. */
static unsigned send_three(struct desk *desk, struct det_sim *sim)
{
    struct scarce scarce[3] = { { desk, 0 }, { desk, 0 }, { desk, 0 } };
    struct det_thread *threads[3];
    unsigned refused = 0;

    desk->is_open = false;
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            det_thread_start(desk->world, "sender", send_scarce, &scarce[i], &threads[i]), 0);
    assert_int_equal(det_sim_advance(sim, DET_SECOND), 0);
    open_gate(desk);
    for (int i = 0; i < 3; i++) {
        det_thread_join(desk->world, threads[i]);
        assert_true(scarce[i].result == 0 || scarce[i].result == DET_ERR_NO_MEMORY);
        refused += scarce[i].result < 0;
    }
    return refused;
}

static void call_without_a_condition_is_refused_alone(void **state)
{
    struct desk desk = { .writers = 1, .is_gated = true };
    const struct det_world_ops *before;
    struct det_world_ops ops;
    struct det_sim *sim;

    (void)state;
    assert_int_equal(det_sim_open(NULL, &sim, NULL), 0);
    desk.world = det_sim_world(sim);
    assert_int_equal(det_mutex_open(desk.world, &desk.mutex), 0);
    assert_int_equal(det_condition_open(desk.world, &desk.gate), 0);
    assert_int_equal(desk_open(&desk, NULL), 0);
    before = desk.world->ops;
    ops = *before;
    ops.condition_open = refuse_condition;
    desk.world->ops = &ops;
    assert_int_equal(send_three(&desk, sim), 2);
    assert_int_equal(atomic_load(&desk.written), 1);
    desk.world->ops = before;
    assert_int_equal(send_three(&desk, sim), 0);
    assert_int_equal(atomic_load(&desk.written), 4);
    det_group_close(desk.group);
    det_condition_close(desk.world, desk.gate);
    det_mutex_close(desk.world, desk.mutex);
    det_sim_close(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_commit_is_written_once_under_every_seed),
        cmocka_unit_test(call_during_a_batch_joins_the_next_and_shares_its_error),
        cmocka_unit_test(unserved_call_ends_with_the_simulation),
        cmocka_unit_test(allocation_failure_refuses_only_its_own_call),
        cmocka_unit_test(call_without_a_condition_is_refused_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
