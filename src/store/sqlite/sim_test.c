/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sim_test.c - the store in a simulated world: its clock, its threads in any order, its
 * locks. The file itself is a real one. */
#include "store/sqlite/senders_cases.h"

#include <detent/sim.h>

static void every_commit_is_stored_once_in_any_thread_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct shelf shelf;
        struct det_sim *sim;

        assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = seed }, &sim, NULL), 0);
        shelf_init(&shelf);
        assert_int_equal(
            shelf_open_with(
                &shelf,
                &(struct det_store_options){ .world = det_sim_world(sim), .connections = 1 }),
            0);
        run_senders(&shelf, det_sim_world(sim));
        shelf_deinit(&shelf);
        det_sim_close(sim);
    }
}

static void store_uses_the_clock_and_locks_of_its_world(void **state)
{
    struct det_store_lease_change change = {
        .verb = DET_LEASE_ACQUIRE, .name = "leader", .owner = "me", .span = DET_MINUTE
    };
    struct det_store_options options = { 0 };
    struct det_store_lease lease;
    struct det_store *store = NULL;
    struct shelf shelf;
    struct det_sim *sim;

    (void)state;
    assert_int_equal(det_sim_open(NULL, &sim, NULL), 0);
    options.world = det_sim_world(sim);
    shelf_init(&shelf);
    assert_int_equal(shelf_open_with(&shelf, &options), 0);
    assert_int_equal(det_store_open_with(shelf.url, &options, &store, NULL), DET_ERR_BUSY);
    store = shelf.pad.store;
    assert_int_equal(store->ops->now(store), det_world_now(options.world, DET_CLOCK_WALL));
    assert_int_equal(store->ops->lease(store, &change, &lease), 0);
    assert_int_equal(lease.expires_at, store->ops->now(store) + DET_MINUTE);
    assert_int_equal(store->ops->lease(store, &change, &lease), DET_ERR_LOCKED);
    assert_string_equal(lease.owner, "me");
    assert_int_equal(det_sim_advance(sim, DET_MINUTE), 0);
    change.span = DET_NEVER;
    assert_int_equal(store->ops->lease(store, &change, &lease), 0);
    assert_int_equal(lease.token, 2);
    assert_int_equal(lease.expires_at, DET_NEVER);
    shelf_deinit(&shelf);
    det_sim_close(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_commit_is_stored_once_in_any_thread_order),
        cmocka_unit_test(store_uses_the_clock_and_locks_of_its_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
