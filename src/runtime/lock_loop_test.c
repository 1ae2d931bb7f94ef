/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lock_loop_test.c - locks and what the loop does: timers and products that meet one, a loop of the
 * user's, a runtime that closes around one, one that lapses during the send that it was taken
 * for. */
#include "runtime/nodes_test.h"

static const struct det_lock_options hourly = { .span = DET_HOUR };

static unsigned state_of(struct nodes *n, const char *id)
{
    struct det_instance instance;

    assert_int_equal(det_runtime_get(n->runtime[0], n->order, id, &instance, NULL, NULL), 0);
    return instance.state;
}

static void a_timer_of_a_locked_instance_fires_later_without_an_incident(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ 0 });
    struct det_lock *lock;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &hourly);
    pass(n, 40 * DET_MINUTE);
    assert_int_equal(state_of(n, "o-1"), PENDING);
    det_lock_close(lock);
    pass(n, DET_SECOND);
    assert_int_equal(state_of(n, "o-1"), CANCELLED);
    assert_int_equal(node_counts(n, 0).timeouts_fired, 1);
    assert_int_equal(n->control.incidents, 0);
    nodes_close(n);
}

static void timer_cleared_under_the_lock_does_not_fire(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ 0 });
    struct det_lock *lock;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &hourly);
    pass(n, 40 * DET_MINUTE);
    assert_int_equal(lock_kind(n, lock, TOUCH), 0);
    det_lock_close(lock);
    pass(n, DET_MINUTE);
    assert_int_equal(state_of(n, "o-1"), PENDING);
    assert_int_equal(node_counts(n, 0).timeouts_fired, 0);
    nodes_close(n);
}

static void a_product_that_meets_a_lock_is_taken_when_it_is_free(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ 0 });
    struct order_event event = { .kind = PAY, .as.pay = { .cents = 100, .card = "4242" } };
    struct det_lock *lock;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &hourly);
    assert_int_equal(det_lock_send(lock, &event, NULL, NULL, NULL), 0);
    pass(n, 9 * DET_MINUTE);
    assert_int_equal(n->control.effects, 1);
    assert_int_equal(state_of(n, "o-1"), CHARGING);
    det_lock_close(lock);
    pass(n, DET_SECOND);
    assert_int_equal(state_of(n, "o-1"), PAID);
    assert_int_equal(n->control.effects, 1);
    assert_int_equal(n->control.incidents, 0);
    nodes_close(n);
}

/* A caller on the loop's own thread turns it as needed; requesting the lock needs no turn. */
static void user_loop_needs_no_turn_to_acquire_a_lock(void **unused)
{
    struct nodes *n = nodes_open(0, (struct det_runtime_options){ 0 });
    struct det_world *world = det_sim_world(n->sim);
    struct det_runtime_options options = { .world = world, .user = &n->control };
    struct det_lock *lock;

    (void)unused;
    assert_int_equal(det_loop_open(world, NULL, &options.loop), 0);
    n->store[0] = det_shared_node(n->shared);
    assert_int_equal(det_runtime_open(n->store[0], &options, &n->runtime[0], &n->error), 0);
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    for (int i = 0; i < 3; i++) {
        lock = node_lock(n, 0, "o-1", NULL);
        assert_int_equal(lock_kind(n, lock, PING), 0);
        if (i == 1)
            assert_true(det_loop_turn(options.loop, 0) >= 0);
        det_lock_close(lock);
    }
    node_close(n, 0);
    det_loop_close(options.loop);
    nodes_close(n);
}

static void passive_runtime_can_lock(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ .is_passive = true });
    struct det_lock *lock;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", NULL);
    assert_int_equal(lock_kind(n, lock, PING), 0);
    det_lock_close(lock);
    assert_int_equal(try_lock(n, 0, "o-1", -1), 0);
    nodes_close(n);
}

static void count_done(struct det_send *send)
{
    ++*(unsigned *)send->user;
}

static int submit(struct nodes *n, unsigned i)
{
    unsigned done = 0;
    struct order_event event = { .kind = PING };
    struct det_send send = {
        .machine = n->order, .instance = "o-1", .event = &event, .done = count_done, .user = &done
    };

    assert_int_equal(det_runtime_submit(n->runtime[i], &send), 0);
    pass(n, DET_SECOND);
    assert_int_equal(done, 1);
    return send.result;
}

static void submissions_do_not_wait_for_a_lock(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ 0 });
    struct det_lock *lock;

    (void)unused;
    n->options.locking = DET_LOCKING_LEASE;
    node_open(n, 1);
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(submit(n, 0), 0);
    assert_int_equal(submit(n, 1), 0);
    lock = node_lock(n, 0, "o-1", &hourly);
    assert_int_equal(det_lock_fence(lock), 2);
    assert_int_equal(submit(n, 0), DET_ERR_LOCKED);
    det_lock_close(lock);
    assert_int_equal(submit(n, 0), 0);
    nodes_close(n);
}

static void leave_one_open(void *argument)
{
    struct nodes *n = argument;

    (void)node_lock(n, 0, "o-1", NULL);
    det_runtime_close(n->runtime[0]);
}

static void closing_a_runtime_with_an_open_lock_aborts(void **unused)
{
    struct nodes *n = nodes_open(1, (struct det_runtime_options){ 0 });

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_true(det_test_aborts(leave_one_open, n, "opened"));
    nodes_close(n);
}

/* The wall clock has no effect here. */
static void clock_change_neither_ends_nor_prolongs_a_lock(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    struct det_lock_options options = { .span = 10 * DET_SECOND };
    struct det_lock *lock;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", &options);
    det_sim_jump_wall(n->sim, DET_HOUR);
    pass(n, DET_MINUTE);
    det_sim_jump_wall(n->sim, -10 * DET_HOUR);
    pass(n, DET_MINUTE);
    assert_true(det_lock_is_held(lock));
    assert_int_equal(try_lock(n, 1, "o-1", -1), DET_ERR_LOCKED);
    assert_int_equal(lock_kind(n, lock, PING), 0);
    det_shared_pause(n->store[0], true);
    pass(n, 10 * DET_SECOND);
    assert_int_equal(try_lock(n, 1, "o-1", -1), 0);
    det_shared_pause(n->store[0], false);
    det_lock_close(lock);
    nodes_close(n);
}

/* A guard that takes longer than the lock lasts, so often. */
struct sloth {
    struct nodes *nodes;
    unsigned times;
};

static void outlast(void *context)
{
    struct sloth *sloth = context;

    if (sloth->times == 0)
        return;
    sloth->times--;
    wait_in(det_sim_world(sloth->nodes->sim), 2 * det_lock_fast.span);
}

static int send_slowly(struct nodes *n, unsigned times)
{
    struct sloth sloth = { n, times };
    int r;

    n->control.guards = 0;
    n->control.in_guard = outlast;
    n->control.context = &sloth;
    r = node_send(n, 0, "o-1", PAY);
    n->control.in_guard = NULL;
    return r;
}

static void send_that_loses_its_own_lock_is_retried_once(void **unused)
{
    struct nodes *n = nodes_open(
        2, (struct det_runtime_options){ .locking = DET_LOCKING_LEASE,
                                         .lock = &det_lock_fast,
                                         .hook_deadline = DET_NEVER,
                                         .node = { .lease = DET_HOUR } });

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    assert_int_equal(send_slowly(n, 2), DET_ERR_LOCK_LOST);
    assert_int_equal(n->control.guards, 2);
    assert_int_equal(send_slowly(n, 1), 0);
    assert_int_equal(n->control.guards, 2);
    assert_int_equal(n->sent.sequence, 1);
    nodes_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_of_a_locked_instance_fires_later_without_an_incident),
        cmocka_unit_test(timer_cleared_under_the_lock_does_not_fire),
        cmocka_unit_test(a_product_that_meets_a_lock_is_taken_when_it_is_free),
        cmocka_unit_test(user_loop_needs_no_turn_to_acquire_a_lock),
        cmocka_unit_test(passive_runtime_can_lock),
        cmocka_unit_test(submissions_do_not_wait_for_a_lock),
        cmocka_unit_test(closing_a_runtime_with_an_open_lock_aborts),
        cmocka_unit_test(clock_change_neither_ends_nor_prolongs_a_lock),
        cmocka_unit_test(send_that_loses_its_own_lock_is_retried_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
