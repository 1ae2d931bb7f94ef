/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* race_sim_test.c - two senders on one instance, in simulated time. */
#include "runtime/runtime_test.h"

#include "runtime/history_test.h"

/* Two senders on one instance whose states exclude each other's events. */
struct race {
    struct det_sim *sim;
    struct det_runtime *runtime;
    struct det_machine *machine;
    unsigned answered;
};

/* Is sometimes slow, and sometimes refuses. */
static int hesitate(const struct det_move *move, const void *data, const void *event)
{
    const struct race *race = move->user;

    (void)data;
    (void)event;
    if (det_sim_chance(race->sim, 100000))
        wait_in(det_sim_world(race->sim), (det_time)det_sim_random_below(race->sim, 1000) * 1000);
    return det_sim_chance(race->sim, 50000) ? -1 : 0;
}

static struct det_machine *door_machine(void)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("door", NULL, &b), 0);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "SHUT", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "OPEN" });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "LOCKED" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "OPENS" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "SHUTS" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "LOCKS" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "UNLOCKS" });
    det_machine_builder_hook(b, "hook", hesitate);
    order_on(b, "SHUT", "OPENS", "OPEN");
    order_on(b, "OPEN", "SHUTS", "SHUT");
    order_on(b, "SHUT", "LOCKS", "LOCKED");
    order_on(b, "LOCKED", "UNLOCKS", "SHUT");
    det_machine_builder_entry(b, DET_LIST("OPEN"), "hook");
    return built(b);
}

static void racer(void *argument)
{
    struct race *race = argument;

    for (int i = 0; i < 12; i++) {
        unsigned event[8] = { (unsigned)det_sim_random_below(race->sim, 4) };
        int r;

        r = det_runtime_send(race->runtime, race->machine, "d", event, NULL, NULL, NULL);
        race->answered += r == 0;
        assert_true(r == 0 || r == DET_ERR_UNHANDLED || r == DET_ERR_ACTION_FAILED);
    }
}

static void race_once(uint64_t seed)
{
    struct race race = { .machine = door_machine() };
    struct det_thread *threads[2];
    struct det_store *store;
    struct det_world *world;

    assert_int_equal(
        det_sim_open(&(struct det_sim_options){ .seed = seed, .preempt = 500000 }, &race.sim, NULL),
        0);
    world = det_sim_world(race.sim);
    assert_int_equal(
        det_store_open_with("memory:", &(struct det_store_options){ .world = world }, &store, NULL),
        0);
    assert_int_equal(
        det_runtime_open(
            store, &(struct det_runtime_options){ .world = world, .user = &race }, &race.runtime,
            NULL),
        0);
    assert_int_equal(det_runtime_start(race.runtime, race.machine, "d", NULL, NULL, NULL, NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(det_thread_start(world, "racer", racer, &race, &threads[i]), 0);
    for (int i = 0; i < 2; i++)
        det_thread_join(world, threads[i]);
    assert_int_equal(check_history(race.runtime, race.machine, "d").sequence, race.answered);
    det_runtime_close(race.runtime);
    det_store_close(store);
    det_sim_close(race.sim);
    det_machine_close(race.machine);
}

static void concurrent_sends_record_only_valid_transitions(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++)
        race_once(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concurrent_sends_record_only_valid_transitions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
