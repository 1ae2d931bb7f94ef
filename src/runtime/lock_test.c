/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lock_test.c - locks of instances: acquisition, waiting, loss and fencing. */
#include "runtime/nodes_test.h"

#define NOT_AT_ALL (-1)

static const struct det_lock_options brief = { .span = 10 * DET_SECOND, .wait = 5 * DET_SECOND };

static void taken_lock_reports_its_holder_and_end(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    struct det_lock *lock;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &brief);
    assert_true(det_lock_is_held(lock));
    assert_int_equal(det_lock_fence(lock), 1);
    assert_int_equal(try_lock(n, 1, "o-1", NOT_AT_ALL), DET_ERR_LOCKED);
    assert_int_equal(strncmp(n->error.holder, n->store[0]->owner, 32), 0);
    assert_int_equal(n->error.until, det_shared_now(n->shared) + brief.span);
    assert_non_null(strstr(n->error.text, "order o-1 is locked by"));
    det_lock_close(lock);
    assert_int_equal(try_lock(n, 1, "o-1", NOT_AT_ALL), 0);
    nodes_close(n);
}

/* The owner of a lock is the lock handle, not the node. */
static void two_locks_of_one_node_have_different_owners(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    struct det_lock *lock;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &brief);
    assert_int_equal(try_lock(n, 0, "o-1", NOT_AT_ALL), DET_ERR_LOCKED);
    assert_true(det_lock_is_held(lock));
    assert_int_equal(lock_kind(n, lock, PING), 0);
    assert_int_equal(try_lock(n, 1, "o-1", NOT_AT_ALL), DET_ERR_LOCKED);
    det_lock_close(lock);
    nodes_close(n);
}

static void lapsed_lock_is_granted_to_others(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    struct det_lock *lock, *next;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &brief);
    det_shared_pause(n->store[0], true);
    pass(n, brief.span - 1);
    assert_int_equal(try_lock(n, 1, "o-1", NOT_AT_ALL), DET_ERR_LOCKED);
    pass(n, 1);
    next = node_lock(n, 1, "o-1", &brief);
    assert_int_equal(det_lock_fence(next), 2);
    det_shared_pause(n->store[0], false);
    det_lock_close(lock);
    assert_true(det_lock_is_held(next));
    det_lock_close(next);
    nodes_close(n);
}

static void a_lock_needs_an_instance_and_sane_options(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ 0 });
    static const struct det_lock_options bad[] = {
        { .span = -1 },
        { .wait = -2 },
        { .retry = -1 },
        { .renewal = -1 },
        { .span = DET_SECOND, .renewal = DET_SECOND },
        { .jitter_percent = 91 },
    };
    struct det_lock *lock;

    (void)unused;
    assert_int_equal(try_lock(n, 0, "o-1", NOT_AT_ALL), DET_ERR_NOT_FOUND);
    assert_string_equal(n->error.text, "order o-1 does not exist; start it first");
    assert_int_equal(try_lock(n, 0, "o 1", NOT_AT_ALL), DET_ERR_INVALID);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(
            det_lock_open(n->runtime[0], n->order, "o-1", &bad[i], &lock, &n->error),
            DET_ERR_INVALID);
    det_lock_close(NULL);
    nodes_close(n);
}

/* A holder that releases a lock after a while. */
struct later {
    struct nodes *nodes;
    struct det_lock *lock;
    det_time span;
};

static void close_later(void *argument)
{
    struct later *later = argument;

    wait_in(det_sim_world(later->nodes->sim), later->span);
    det_lock_close(later->lock);
}

static void a_waiter_gets_the_lock_as_soon_as_it_is_released(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    struct det_world *world = det_sim_world(n->sim);
    struct later later = { n, NULL, 3 * DET_SECOND };
    struct det_thread *thread;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    for (unsigned who = 0; who < 2; who++) {
        det_time began = now_of(n);

        later.lock = node_lock(n, 0, "o-1", &brief);
        assert_int_equal(det_thread_start(world, "later", close_later, &later, &thread), 0);
        assert_int_equal(try_lock(n, who, "o-1", 5 * DET_SECOND), 0);
        assert_int_equal(now_of(n) - began, later.span);
        det_thread_join(world, thread);
    }
    nodes_close(n);
}

static void a_failed_wait_names_the_holder(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    struct det_lock *lock;
    det_time began;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &brief);
    began = now_of(n);
    assert_int_equal(try_lock(n, 1, "o-1", 25 * DET_SECOND), DET_ERR_LOCKED);
    assert_int_equal(now_of(n) - began, 25 * DET_SECOND);
    assert_string_not_equal(n->error.holder, "");
    assert_true(n->error.until > det_shared_now(n->shared));
    assert_true(det_lock_is_held(lock));
    det_lock_close(lock);
    nodes_close(n);
}

static void under_a_lock_no_other_sender_interferes(void **unused)
{
    struct nodes *n = nodes_open(
        2, (struct det_runtime_options){ .lock = &(struct det_lock_options){ .wait = -1 } });
    struct det_instance instance;
    struct det_lock *lock;
    struct order_event event = { .kind = PING };
    const void *const two[] = { &event, &event };

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 1, "o-1", &brief);
    assert_int_equal(lock_kind(n, lock, PING), 0);
    assert_int_equal(det_lock_get(lock, &instance, NULL, NULL), 0);
    assert_int_equal(instance.sequence, 1);
    assert_int_equal(node_send(n, 0, "o-1", PING), DET_ERR_LOCKED);
    assert_int_equal(strncmp(n->error.holder, n->store[1]->owner, 32), 0);
    assert_int_equal(node_send(n, 1, "o-1", PING), DET_ERR_LOCKED);
    assert_int_equal(
        det_runtime_cancel(n->runtime[0], n->order, "o-1", "no", NULL, NULL, NULL), DET_ERR_LOCKED);
    assert_int_equal(det_lock_send_all(lock, two, 2, NULL, &n->sent, NULL), 0);
    assert_int_equal(n->sent.sequence, 3);
    /* Earlier sends stay valid when a later one fails, and the lock is released. */
    assert_int_equal(lock_kind(n, lock, SHIP), DET_ERR_UNHANDLED);
    det_lock_close(lock);
    assert_int_equal(node_send(n, 0, "o-1", PING), 0);
    assert_int_equal(n->sent.sequence, 4);
    nodes_close(n);
}

static void a_send_to_a_locked_instance_waits_as_long_as_its_options_say(void **unused)
{
    struct nodes *n = nodes_open(
        2, (struct det_runtime_options){
               .lock = &(struct det_lock_options){ .wait = 4 * DET_SECOND } });
    struct det_world *world = det_sim_world(n->sim);
    struct later later = { n, NULL, 3 * DET_SECOND };
    struct det_thread *thread;
    struct det_lock *lock;
    det_time began;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &brief);
    began = now_of(n);
    assert_int_equal(node_send(n, 1, "o-1", PING), DET_ERR_LOCKED);
    assert_int_equal(now_of(n) - began, 4 * DET_SECOND);
    assert_true(n->error.until > 0);
    later.lock = lock;
    assert_int_equal(det_thread_start(world, "later", close_later, &later, &thread), 0);
    began = now_of(n);
    assert_int_equal(node_send(n, 1, "o-1", PING), 0);
    assert_int_equal(now_of(n) - began, 3 * DET_SECOND);
    det_thread_join(world, thread);
    nodes_close(n);
}

/* The store of node 1: the lock is released while node 1 reads its holder. */
struct given_up {
    const struct det_store_ops *inner;
    struct det_store_ops ops;
    struct det_lock *lock;
};
static struct given_up given_up;

static int given_up_lock(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret)
{
    if (change->verb == DET_LEASE_READ) {
        det_lock_close(given_up.lock);
        given_up.lock = NULL;
    }
    return given_up.inner->lock(store, machine, change, ret);
}

static void a_lock_that_is_released_before_the_wait_costs_no_time(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ 0 });
    det_time began = now_of(n);

    (void)unused;
    n->store[1] = det_shared_node(n->shared);
    given_up = (struct given_up){ n->store[1]->ops, *n->store[1]->ops, NULL };
    given_up.ops.lock = given_up_lock;
    n->store[1]->ops = &given_up.ops;
    node_open_on(n, 1);
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    given_up.lock = node_lock(n, 0, "o-1", NULL);
    assert_int_equal(node_send(n, 1, "o-1", PING), 0);
    assert_null(given_up.lock);
    assert_int_equal(n->sent.sequence, 1);
    assert_int_equal(now_of(n), began);
    nodes_close(n);
}

/* The fence is compared within the commit, not when the lock is acquired. */
static void a_former_holder_cannot_write_with_an_old_fence(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    struct det_lock *zombie, *next;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    zombie = node_lock(n, 0, "o-1", &brief);
    /* It sleeps: nothing on it runs, and its monotonic clock stops. */
    det_shared_pause(n->store[0], true);
    det_sim_suspend(n->sim, brief.span);
    next = node_lock(n, 1, "o-1", &brief);
    assert_int_equal(det_lock_fence(next), 2);
    assert_int_equal(lock_kind(n, next, PING), 0);
    det_shared_pause(n->store[0], false);
    assert_false(det_lock_is_held(zombie));
    assert_int_equal(lock_kind(n, zombie, PING), DET_ERR_LOCK_LOST);
    det_lock_close(zombie);
    assert_true(det_lock_is_held(next));
    det_lock_close(next);
    nodes_close(n);
}

struct sender {
    struct nodes *nodes;
    struct det_lock *lock;
    int result;
};

static void send_ping(void *argument)
{
    struct sender *sender = argument;
    struct order_event event = { .kind = PING };

    sender->result = det_lock_send(sender->lock, &event, NULL, NULL, NULL);
}

/* The same when it was stopped between the check of the lock and the commit. */
static void the_store_checks_the_fence_inside_the_commit(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    struct det_world *world = det_sim_world(n->sim);
    struct sender sender = { .nodes = n };
    struct det_instance instance;
    struct det_thread *thread;
    struct det_lock *next;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    sender.lock = node_lock(n, 0, "o-1", &brief);
    det_shared_pause(n->store[0], true);
    assert_int_equal(det_thread_start(world, "zombie", send_ping, &sender, &thread), 0);
    pass(n, brief.span);
    /* The commit is about to reach the store when another holder acquires the lock. */
    next = node_lock(n, 1, "o-1", &brief);
    det_shared_pause(n->store[0], false);
    det_thread_join(world, thread);
    assert_int_equal(sender.result, DET_ERR_LOCK_LOST);
    assert_int_equal(det_shared_counts(n->shared).fenced, 1);
    assert_int_equal(det_lock_get(next, &instance, NULL, NULL), 0);
    assert_int_equal(instance.sequence, 0);
    det_lock_close(sender.lock);
    det_lock_close(next);
    nodes_close(n);
}

/* Acquiring a lock reloads the instance. */
static void the_next_holder_sees_the_commits_of_the_previous_one(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    struct det_instance instance;
    struct det_lock *lock;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(node_send(n, 1, "o-1", PING), 0);
    assert_int_equal(node_send(n, 0, "o-1", CANCEL), 0);
    lock = node_lock(n, 1, "o-1", &brief);
    assert_int_equal(det_lock_get(lock, &instance, NULL, NULL), 0);
    assert_int_equal(instance.state, CANCELLED);
    assert_int_equal(lock_kind(n, lock, PING), DET_ERR_UNHANDLED);
    assert_string_equal(n->error.state, "CANCELLED");
    det_lock_close(lock);
    nodes_close(n);
}

static void a_grant_whose_answer_was_lost_is_found_again(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ .node = { .lease = DET_HOUR } });
    struct det_lock *lock;
    det_time began = now_of(n);

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    det_shared_fail(n->store[0], 1, false);
    lock = node_lock(n, 0, "o-1", &brief);
    assert_int_equal(det_lock_fence(lock), 1);
    assert_true(now_of(n) - began < DET_SECOND);
    assert_int_equal(lock_kind(n, lock, PING), 0);
    det_lock_close(lock);
    nodes_close(n);
}

static void a_store_that_fails_all_the_time_ends_the_wait_with_its_error(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ .node = { .lease = DET_HOUR } });

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    det_shared_fail(n->store[0], 1000, true);
    assert_int_equal(try_lock(n, 0, "o-1", 5 * DET_SECOND), DET_ERR_IO);
    assert_non_null(strstr(n->error.text, "order o-1 cannot be locked"));
    det_shared_fail(n->store[0], 0, true);
    nodes_close(n);
}

static void runtime_locking_gives_each_send_its_own_fence(void **unused)
{
    struct nodes *n = nodes_open(
        2, (struct det_runtime_options){ .locking = DET_LOCKING_LEASE, .lock = &det_lock_fast });
    struct det_lock *lock;
    det_time began;

    (void)unused;
    assert_int_equal(node_send(n, 0, "o-1", PING), DET_ERR_NOT_FOUND);
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(node_send(n, i % 2, "o-1", PING), 0);
        assert_int_equal(n->sent.sequence, i + 1);
    }
    assert_int_equal(node_counts(n, 0).conflicts + node_counts(n, 1).conflicts, 0);
    lock = node_lock(n, 0, "o-1", &brief);
    assert_int_equal(det_lock_fence(lock), 7);
    began = now_of(n);
    assert_int_equal(node_send(n, 1, "o-1", PING), DET_ERR_LOCKED);
    assert_int_equal(now_of(n) - began, det_lock_fast.wait);
    assert_int_equal(lock_kind(n, lock, PING), 0);
    det_lock_close(lock);
    assert_int_equal(
        det_runtime_cancel(n->runtime[1], n->order, "o-1", "enough", NULL, &n->sent, NULL), 0);
    assert_int_equal(node_send(n, 0, "o-1", PING), DET_ERR_STOPPED);
    nodes_close(n);
}

struct waiter {
    struct nodes *nodes;
    int result;
};

static void wait_for_lock(void *argument)
{
    struct waiter *waiter = argument;
    struct det_lock_options options = { .wait = DET_NEVER };
    struct det_lock *lock;

    waiter->result = det_lock_open(
        waiter->nodes->runtime[1], waiter->nodes->order, "o-1", &options, &lock, NULL);
}

static void a_waiter_for_a_lock_ends_when_the_runtime_closes(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    struct det_world *world = det_sim_world(n->sim);
    struct waiter waiter = { n, 0 };
    struct det_thread *thread;
    struct det_lock *lock;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &brief);
    assert_int_equal(det_thread_start(world, "waiter", wait_for_lock, &waiter, &thread), 0);
    pass(n, DET_HOUR);
    node_close(n, 1);
    det_thread_join(world, thread);
    assert_int_equal(waiter.result, DET_ERR_CLOSED);
    det_lock_close(lock);
    nodes_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_lock_reports_its_holder_and_end),
        cmocka_unit_test(two_locks_of_one_node_have_different_owners),
        cmocka_unit_test(lapsed_lock_is_granted_to_others),
        cmocka_unit_test(a_lock_needs_an_instance_and_sane_options),
        cmocka_unit_test(a_waiter_gets_the_lock_as_soon_as_it_is_released),
        cmocka_unit_test(a_failed_wait_names_the_holder),
        cmocka_unit_test(under_a_lock_no_other_sender_interferes),
        cmocka_unit_test(a_send_to_a_locked_instance_waits_as_long_as_its_options_say),
        cmocka_unit_test(a_lock_that_is_released_before_the_wait_costs_no_time),
        cmocka_unit_test(a_former_holder_cannot_write_with_an_old_fence),
        cmocka_unit_test(the_store_checks_the_fence_inside_the_commit),
        cmocka_unit_test(the_next_holder_sees_the_commits_of_the_previous_one),
        cmocka_unit_test(a_grant_whose_answer_was_lost_is_found_again),
        cmocka_unit_test(a_store_that_fails_all_the_time_ends_the_wait_with_its_error),
        cmocka_unit_test(runtime_locking_gives_each_send_its_own_fence),
        cmocka_unit_test(a_waiter_for_a_lock_ends_when_the_runtime_closes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
