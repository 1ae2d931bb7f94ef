/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lock_thread_test.c - locks and leases with real threads, and without memory. */
/* test: threads */
#include <detent/lock.h>

#include "runtime/node.h"
#include "runtime/runtime_test.h"

#define THREADS 4
#define ROUNDS  25

struct crowd {
    struct det_runtime *runtime;
    struct det_machine *order;
    unsigned inside; /* guarded by the lock itself */
};

/* No event of another thread is between the two of one round. */
static void take_turns(void *argument)
{
    struct crowd *crowd = argument;
    struct det_lock_options options = { .wait = DET_NEVER, .retry = 20 * DET_MILLISECOND };
    struct order_event event = { .kind = PING };

    for (int i = 0; i < ROUNDS; i++) {
        struct det_sent first, second;
        struct det_instance between;
        struct det_lock *lock;

        assert_int_equal(
            det_lock_open(crowd->runtime, crowd->order, "o-1", &options, &lock, NULL), 0);
        assert_int_equal(crowd->inside++, 0);
        assert_int_equal(det_lock_send(lock, &event, NULL, &first, NULL), 0);
        assert_int_equal(det_lock_get(lock, &between, NULL, NULL), 0);
        assert_int_equal(between.sequence, first.sequence);
        assert_int_equal(det_lock_send(lock, &event, NULL, &second, NULL), 0);
        assert_int_equal(second.sequence, first.sequence + 1);
        crowd->inside--;
        det_lock_close(lock);
    }
}

static void run_crowd(struct crowd *crowd, void (*run)(void *argument))
{
    struct det_world *world = det_world_real();
    struct det_thread *threads[THREADS];

    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(det_thread_start(world, "crowd", run, crowd, &threads[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        det_thread_join(world, threads[i]);
}

static void in_crowd(enum det_locking locking, void (*run)(void *argument), uint64_t expected)
{
    struct order_control control = { 0 };
    struct crowd crowd = { .order = order_machine(true) };
    struct det_runtime_options options = { .locking = locking, .user = &control };
    struct det_lock_options patient = { .wait = DET_NEVER, .retry = 20 * DET_MILLISECOND };
    struct det_instance instance;
    struct det_store *store;

    options.lock = &patient;
    assert_int_equal(det_store_open("memory:", &store, NULL), 0);
    assert_int_equal(det_runtime_open(store, &options, &crowd.runtime, NULL), 0);
    assert_int_equal(
        det_runtime_start(crowd.runtime, crowd.order, "o-1", NULL, NULL, NULL, NULL), 0);
    run_crowd(&crowd, run);
    assert_int_equal(det_runtime_get(crowd.runtime, crowd.order, "o-1", &instance, NULL, NULL), 0);
    assert_int_equal(instance.sequence, expected);
    det_runtime_close(crowd.runtime);
    det_store_close(store);
    det_machine_close(crowd.order);
}

static void one_at_a_time_has_the_lock(void **unused)
{
    (void)unused;
    in_crowd(DET_LOCKING_OPTIMISTIC, take_turns, UINT64_C(2) * THREADS * ROUNDS);
}

/* Sends without a lock wait for its holders. */
static void send_plainly(void *argument)
{
    struct crowd *crowd = argument;
    struct order_event event = { .kind = PING };

    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(
            det_runtime_send(crowd->runtime, crowd->order, "o-1", &event, NULL, NULL, NULL), 0);
}

static void mix(void *argument)
{
    take_turns(argument);
    send_plainly(argument);
}

static void plain_sends_come_between_locks_and_never_inside(void **unused)
{
    (void)unused;
    in_crowd(DET_LOCKING_OPTIMISTIC, mix, UINT64_C(3) * THREADS * ROUNDS);
}

static void runtime_locking_serializes_sends(void **unused)
{
    (void)unused;
    in_crowd(DET_LOCKING_LEASE, send_plainly, UINT64_C(1) * THREADS * ROUNDS);
}

/* Candidates open and close on several threads, and are called on another. */
struct candidate {
    struct det_mutex *mutex;
    struct det_condition *changed;
    bool is_leader;
};

static void lead(void *user, bool is_held, uint64_t token)
{
    struct candidate *candidate = user;

    (void)token;
    det_mutex_lock(det_world_real(), candidate->mutex);
    candidate->is_leader = is_held;
    det_condition_broadcast(det_world_real(), candidate->changed);
    det_mutex_unlock(det_world_real(), candidate->mutex);
}

static void lead_once(struct crowd *crowd, struct candidate *candidate)
{
    struct det_world *world = det_world_real();
    struct det_lease_options options = {
        .span = DET_MINUTE, .renewal = 10 * DET_MILLISECOND, .changed = lead, .user = candidate
    };
    struct det_lease *lease;

    candidate->is_leader = false;
    assert_int_equal(det_lease_open(crowd->runtime, "leader", &options, &lease, NULL), 0);
    det_mutex_lock(world, candidate->mutex);
    while (!candidate->is_leader)
        (void)det_condition_wait(world, candidate->changed, candidate->mutex, DET_NEVER);
    det_mutex_unlock(world, candidate->mutex);
    assert_true(det_lease_is_held(lease, NULL));
    assert_int_equal(crowd->inside++, 0);
    crowd->inside--;
    det_lease_close(lease);
}

static void come_and_go(void *argument)
{
    struct det_world *world = det_world_real();
    struct candidate candidate = { 0 };

    assert_int_equal(det_mutex_open(world, &candidate.mutex), 0);
    assert_int_equal(det_condition_open(world, &candidate.changed), 0);
    for (int i = 0; i < ROUNDS; i++)
        lead_once(argument, &candidate);
    det_condition_close(world, candidate.changed);
    det_mutex_close(world, candidate.mutex);
}

static void leaders_follow_each_other(void **unused)
{
    (void)unused;
    in_crowd(DET_LOCKING_OPTIMISTIC, come_and_go, 0);
}

static int with_lock(struct det_runtime *runtime, const struct det_machine *order)
{
    struct order_event event = { .kind = PING };
    struct det_lock *lock;
    int r;

    r = det_lock_open(runtime, order, "o-1", NULL, &lock, NULL);
    if (r < 0)
        return r;
    assert_true(det_lock_is_held(lock));
    r = det_lock_send(lock, &event, NULL, NULL, NULL);
    det_lock_close(lock);
    return r;
}

static int with_lease(struct poor *poor)
{
    struct det_lease *lease;
    int r;

    r = det_lease_open(poor->runtime, "leader", NULL, &lease, NULL);
    if (r < 0)
        return r;
    while (!det_lease_is_held(lease, NULL))
        assert_true(det_loop_turn(poor->loop, DET_NEVER) >= 0);
    det_lease_close(lease);
    return 0;
}

static int lock_poorly(struct det_test_memory *memory, void *argument)
{
    struct order_control control = { 0 };
    struct poor poor;
    int r;

    r = poor_open(&poor, memory, &control);
    if (r == 0)
        r = det_runtime_start(poor.runtime, argument, "o-1", NULL, NULL, NULL, NULL);
    if (r == 0)
        r = with_lock(poor.runtime, argument);
    if (r == 0 && !memory->fail_at)
        r = with_lease(&poor);
    poor_close(&poor);
    return r;
}

static void lock_survives_every_failed_allocation(void **unused)
{
    struct det_machine *order = order_machine(true);

    (void)unused;
    det_test_each_failure(lock_poorly, order);
    det_machine_close(order);
}

/* Another holder has the lock, so all of them wait. */
static void wait_in_vain(void *argument)
{
    struct crowd *crowd = argument;
    struct det_lock_options options = { .wait = DET_NEVER };
    struct order_event event = { .kind = PING };
    struct det_lock *lock;
    int r;

    if (__atomic_fetch_add(&crowd->inside, 1, __ATOMIC_RELAXED) % 2)
        r = det_lock_open(crowd->runtime, crowd->order, "o-1", &options, &lock, NULL);
    else
        r = det_runtime_send(crowd->runtime, crowd->order, "o-1", &event, NULL, NULL, NULL);
    assert_int_equal(r, DET_ERR_CLOSED);
}

static void close_when_all_wait(struct crowd *crowd)
{
    struct det_world *world = det_world_real();
    struct det_node *node = crowd->runtime->node;
    size_t count = 0;

    while (count < THREADS) {
        (void)!det_world_sleep(world, 100 * DET_MICROSECOND);
        count = 0;
        det_mutex_lock(world, node->mutex);
        DET_LIST_EACH(link, &node->lock_waiters)
        count++;
        det_mutex_unlock(world, node->mutex);
    }
    det_runtime_close(crowd->runtime);
}

static void close_around(struct crowd *crowd, struct det_store *store)
{
    struct det_lock_options patient = { .wait = DET_NEVER };
    struct det_runtime_options options = { .locking = DET_LOCKING_LEASE, .lock = &patient };
    struct order_control control = { 0 };
    struct det_thread *threads[THREADS];
    struct det_world *world = det_world_real();
    struct det_store_lease lease;

    options.user = &control;
    assert_int_equal(det_runtime_open(store, &options, &crowd->runtime, NULL), 0);
    assert_int_equal(
        det_runtime_start(crowd->runtime, crowd->order, "o-1", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(
        store->ops->lock(
            store, crowd->order,
            &(struct det_store_lease_change){ .verb = DET_LEASE_ACQUIRE,
                                              .name = "o-1",
                                              .owner = "another holder",
                                              .span = DET_DAY },
            &lease),
        0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(det_thread_start(world, "crowd", wait_in_vain, crowd, &threads[i]), 0);
    close_when_all_wait(crowd);
    for (size_t i = 0; i < THREADS; i++)
        det_thread_join(world, threads[i]);
}

static void a_runtime_closes_after_the_waiters_for_its_locks(void **unused)
{
    (void)unused;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        struct crowd crowd = { .order = order_machine(true) };
        struct det_store *store;

        assert_int_equal(det_store_open("memory:", &store, NULL), 0);
        close_around(&crowd, store);
        det_store_close(store);
        det_machine_close(crowd.order);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_at_a_time_has_the_lock),
        cmocka_unit_test(plain_sends_come_between_locks_and_never_inside),
        cmocka_unit_test(runtime_locking_serializes_sends),
        cmocka_unit_test(leaders_follow_each_other),
        cmocka_unit_test(a_runtime_closes_after_the_waiters_for_its_locks),
        cmocka_unit_test(lock_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
