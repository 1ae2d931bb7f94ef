/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* node_failure_test.c - a node that lacks memory, or whose store lacks leases: it reports that, and
 * what it has at the server it gives back. */
#include "runtime/nodes_test.h"

static int lock_and_lead(struct det_runtime *runtime, struct nodes *n)
{
    struct det_lease *lease;
    struct det_lock *lock;
    int r;

    r = det_lock_open(runtime, n->order, "o-1", NULL, &lock, NULL);
    if (r < 0)
        return r;
    det_lock_close(lock);
    r = det_lease_open(runtime, "leader", NULL, &lease, NULL);
    if (r < 0)
        return r;
    det_lease_close(lease);
    return 0;
}

/* A node comes, sends under its lock, which is when it begins to serve, and goes. */
static int live_poorly(struct det_test_memory *memory, void *argument)
{
    struct nodes *n = argument;
    struct det_runtime_options options = n->options;
    struct order_event event = { .kind = PING };
    struct det_runtime *runtime = NULL;
    struct det_store *store = det_shared_node(n->shared);
    int r;

    options.world = det_sim_world(n->sim);
    options.allocator = &memory->allocator;
    options.user = options.observer = &n->control;
    r = det_runtime_open(store, &options, &runtime, NULL);
    if (r == 0)
        r = det_runtime_send(runtime, n->order, "o-1", &event, NULL, NULL, NULL);
    if (r == 0)
        r = lock_and_lead(runtime, n);
    det_runtime_close(runtime);
    det_store_close(store);
    return r;
}

static void a_node_without_memory_leaves_nothing(void **unused)
{
    struct nodes *n = nodes_open(
        1, (struct det_runtime_options){ .locking = DET_LOCKING_LEASE, .lock = &det_lock_fast });
    struct det_store_lease lease = { 0 };

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    det_test_each_failure(live_poorly, n);
    assert_true(!det_shared_lease(n->shared, "leader", &lease) || !lease.owner[0]);
    assert_int_equal(try_lock(n, 0, "o-1", -1), 0);
    assert_int_equal(node_send(n, 0, "o-1", PING), 0);
    nodes_close(n);
}

static void an_instance_locked_by_another_holder_is_not_stopped(void **unused)
{
    static const struct det_lock_options hasty = { .span = DET_MINUTE, .wait = 1 };
    struct nodes *n =
        nodes_open(2, (struct det_runtime_options){ .locking = DET_LOCKING_LEASE, .lock = &hasty });
    struct det_lock *lock;
    struct det_instance instance;

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    lock = node_lock(n, 0, "o-1", NULL);
    assert_int_equal(
        det_runtime_cancel(n->runtime[1], n->order, "o-1", "enough", NULL, &n->sent, &n->error),
        DET_ERR_LOCKED);
    assert_true(n->error.text[0]);
    det_lock_close(lock);
    assert_int_equal(det_runtime_get(n->runtime[1], n->order, "o-1", &instance, NULL, NULL), 0);
    assert_false(instance.is_stopped);
    nodes_close(n);
}

/* The store in memory, without what this one does not have. */
static void a_store_without_leases_has_no_locks_either(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    const struct det_store_ops *before = f->store->ops;
    struct det_store_ops ops = *before;
    struct det_runtime_options options = { .world = det_sim_world(f->sim) };
    struct det_lease *lease;
    struct det_lock *lock;

    (void)unused;
    ops.lease = NULL;
    ops.lock = NULL;
    det_runtime_close(f->runtime);
    f->store->ops = &ops;
    assert_int_equal(det_runtime_open(f->store, &options, &f->runtime, &f->error), 0);
    assert_int_equal(
        det_lease_open(f->runtime, "leader", NULL, &lease, &f->error), DET_ERR_UNSUPPORTED);
    assert_int_equal(
        det_lock_open(f->runtime, f->order, "o-1", NULL, &lock, &f->error), DET_ERR_UNSUPPORTED);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    f->store->ops = before;
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_without_memory_leaves_nothing),
        cmocka_unit_test(an_instance_locked_by_another_holder_is_not_stopped),
        cmocka_unit_test(a_store_without_leases_has_no_locks_either),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
