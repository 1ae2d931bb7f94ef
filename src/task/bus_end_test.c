/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus_end_test.c - the end of subscriptions: drained, dropped, late, detached, without memory. */
#include "task/bus_test.h"

#define SEEDS 40

static void the_end_delivers_what_is_queued(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct watcher thread, loop, audit;
        struct bus_fixture fixture;

        memset(&thread, 0, sizeof thread);
        memset(&loop, 0, sizeof loop);
        memset(&audit, 0, sizeof audit);
        fixture_open(&fixture, seed, 0);
        subscribe(&fixture, &thread, "thread", DET_DELIVER_THREAD, 0);
        subscribe(&fixture, &loop, "loop", DET_DELIVER_LOOP, 0);
        subscribe(&fixture, &audit, "audit", DET_DELIVER_LOSSLESS, 0);
        publish_many(&fixture, 30);
        assert_int_equal(0, det_bus_end(fixture.bus, now_of(&fixture) + DET_SECOND));
        assert_int_equal(30, atomic_load(&thread.count));
        assert_int_equal(30, atomic_load(&loop.count));
        assert_int_equal(30, atomic_load(&audit.count));
        assert_int_equal(1, atomic_load(&audit.turns));
        assert_int_equal(1, atomic_load(&thread.closed));
        publish_many(&fixture, 1);
        settle(&fixture);
        assert_int_equal(30, atomic_load(&audit.count));
        assert_int_equal(31, det_bus_newest(fixture.bus));
        fixture_close(&fixture);
    }
}

static void a_deadline_of_0_drops_what_is_queued(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct watcher thread, loop;
        struct det_subscription *subscription;
        struct bus_fixture fixture;

        memset(&thread, 0, sizeof thread);
        memset(&loop, 0, sizeof loop);
        fixture_open(&fixture, seed, 0);
        subscribe(&fixture, &thread, "thread", DET_DELIVER_THREAD, 0);
        subscription = subscribe(&fixture, &loop, "loop", DET_DELIVER_LOOP, 0);
        publish_many(&fixture, 30);
        assert_int_equal(0, det_subscription_stop(subscription, 0));
        assert_int_equal(0, atomic_load(&loop.count));
        assert_int_equal(1, atomic_load(&loop.closed));
        /* It may be in the middle of one, which is not waited for. */
        assert_true(det_bus_end(fixture.bus, 0) <= 1);
        assert_int_equal(0, det_sim_settle(fixture.sim));
        assert_int_equal(1, atomic_load(&thread.closed));
        fixture_close(&fixture);
    }
}

static void subscribe_is_refused_after_the_end(void **state)
{
    static struct watcher watcher;
    struct det_subscriber late = { .on_event = watcher_event, .user = &watcher };
    struct det_subscription *subscription;
    struct det_error error;
    struct bus_fixture fixture;

    (void)state;
    for (unsigned delivery = 0; delivery <= DET_DELIVER_LOSSLESS; delivery++) {
        fixture_open(&fixture, 1, 0);
        assert_int_equal(0, det_bus_end(fixture.bus, 0));
        late.delivery = (enum det_delivery)delivery;
        late.on_close = watcher_close;
        assert_int_equal(
            DET_ERR_CLOSED, det_bus_subscribe(fixture.bus, &late, &subscription, &error));
        assert_string_equal("the bus has ended", error.text);
        assert_int_equal(0, atomic_load(&watcher.closed));
        fixture_close(&fixture);
    }
}

static void invalid_subscriber_is_refused(void **state)
{
    static struct watcher watcher;
    struct det_subscriber subscriber = { .user = &watcher, .delivery = DET_DELIVER_LOOP };
    struct det_error error;
    struct bus_fixture fixture;

    (void)state;
    fixture_open(&fixture, 1, 0);
    assert_int_equal(DET_ERR_INVALID, det_bus_subscribe(fixture.bus, &subscriber, NULL, &error));
    assert_string_equal("a subscriber needs on_event", error.text);
    subscriber.on_event = watcher_event;
    subscriber.capacity = DET_SUBSCRIBER_CAPACITY_MAX + 1;
    assert_int_equal(DET_ERR_INVALID, det_bus_subscribe(fixture.bus, &subscriber, NULL, &error));
    subscriber.capacity = 1;
    subscriber.delivery = (enum det_delivery)(DET_DELIVER_LOSSLESS + 1);
    assert_int_equal(DET_ERR_INVALID, det_bus_subscribe(fixture.bus, &subscriber, NULL, &error));
    subscriber.delivery = DET_DELIVER_LOOP;
    for (int i = 0; i < DET_SUBSCRIBERS_MAX; i++)
        assert_int_equal(0, det_bus_subscribe(fixture.bus, &subscriber, NULL, &error));
    assert_int_equal(DET_ERR_LIMIT, det_bus_subscribe(fixture.bus, &subscriber, NULL, &error));
    assert_string_equal("the bus has the maximum number of subscribers", error.text);
    fixture_close(&fixture);
}

static void ended_subscription_frees_its_place(void **state)
{
    static struct watcher watcher, last;
    struct det_subscription *subscription;
    struct bus_fixture fixture;

    (void)state;
    memset(&watcher, 0, sizeof watcher);
    memset(&last, 0, sizeof last);
    fixture_open(&fixture, 1, 0);
    for (unsigned i = 0; i < 3 * DET_SUBSCRIBERS_MAX; i++) {
        subscription = subscribe(&fixture, &watcher, "one", (enum det_delivery)(i % 3), 0);
        (void)publish(&fixture, DET_TASK_EVENT_TASK_ADDED);
        assert_int_equal(0, det_subscription_stop(subscription, DET_NEVER));
        assert_int_equal(i + 1, atomic_load(&watcher.closed));
        assert_int_equal(i + 1, atomic_load(&watcher.count));
        settle(&fixture);
    }
    subscribe(&fixture, &last, NULL, DET_DELIVER_LOOP, 0);
    (void)publish(&fixture, DET_TASK_EVENT_TASK_ADDED);
    settle(&fixture);
    assert_int_equal(1, atomic_load(&last.count));
    fixture_close(&fixture);
}

/* The one that blocks costs the deadline, and all the others have been delivered by then. */
static void blocked_callback_is_abandoned_at_the_common_deadline(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct watcher stuck[2], good;
        struct bus_fixture fixture;
        det_time began;

        memset(stuck, 0, sizeof stuck);
        memset(&good, 0, sizeof good);
        fixture_open(&fixture, seed, 0);
        for (int i = 0; i < 2; i++) {
            watcher_block(&stuck[i], fixture.world);
            subscribe(&fixture, &stuck[i], "stuck", DET_DELIVER_THREAD, 0);
        }
        subscribe(&fixture, &good, "good", DET_DELIVER_THREAD, 0);
        publish_many(&fixture, 3);
        settle(&fixture);
        for (int i = 0; i < 2; i++)
            watcher_await(&stuck[i]);
        publish_many(&fixture, 3);
        began = now_of(&fixture);
        assert_int_equal(2, det_bus_end(fixture.bus, began + 5 * DET_SECOND));
        assert_int_equal(began + 5 * DET_SECOND, now_of(&fixture));
        assert_int_equal(6, atomic_load(&good.count));
        for (int i = 0; i < 2; i++) {
            assert_int_equal(1, atomic_load(&stuck[i].count));
            assert_int_equal(0, atomic_load(&stuck[i].closed));
            watcher_unblock(&stuck[i]);
        }
        /* A thread that returns before the close is joined by it. */
        assert_int_equal(0, det_sim_settle(fixture.sim));
        for (int i = 0; i < 2; i++) {
            assert_int_equal(1, atomic_load(&stuck[i].count));
            assert_int_equal(1, atomic_load(&stuck[i].closed));
            watcher_forget(&stuck[i]);
        }
        fixture_close(&fixture);
    }
}

static void timed_out_subscription_can_be_stopped_again(void **state)
{
    static struct watcher stuck;
    struct det_subscription *subscription;
    struct bus_fixture fixture;

    (void)state;
    memset(&stuck, 0, sizeof stuck);
    fixture_open(&fixture, 9, 0);
    watcher_block(&stuck, fixture.world);
    subscription = subscribe(&fixture, &stuck, "stuck", DET_DELIVER_THREAD, 0);
    publish_many(&fixture, 2);
    settle(&fixture);
    watcher_await(&stuck);
    assert_int_equal(
        DET_ERR_TIMEOUT, det_subscription_stop(subscription, now_of(&fixture) + DET_SECOND));
    assert_int_equal(DET_ERR_TIMEOUT, det_subscription_stop(subscription, 0));
    watcher_unblock(&stuck);
    assert_int_equal(0, det_subscription_stop(subscription, DET_NEVER));
    assert_int_equal(1, atomic_load(&stuck.count));
    assert_int_equal(1, atomic_load(&stuck.closed));
    watcher_forget(&stuck);
    fixture_close(&fixture);
}

struct ender {
    struct watcher *watcher;
    struct det_subscription *subscription;
    int first, second;
};

/* Ends what the loop is just calling: once in vain, once with patience. */
static void end_twice(void *argument)
{
    struct ender *ender = argument;
    struct det_world *world = ender->watcher->world;

    watcher_await(ender->watcher);
    ender->first = det_subscription_stop(
        ender->subscription, det_world_now(world, DET_CLOCK_MONOTONIC) + DET_SECOND);
    watcher_unblock(ender->watcher);
    ender->second = det_subscription_stop(ender->subscription, DET_NEVER);
}

static void stop_from_another_thread_waits_for_a_loop_callback(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct watcher watcher;
        struct ender ender = { .watcher = &watcher };
        struct det_thread *thread;
        struct bus_fixture fixture;
        bool is_lossless = seed % 2;

        memset(&watcher, 0, sizeof watcher);
        fixture_open(&fixture, seed, 0);
        watcher_block(&watcher, fixture.world);
        ender.subscription = subscribe(
            &fixture, &watcher, "one", is_lossless ? DET_DELIVER_LOSSLESS : DET_DELIVER_LOOP, 0);
        assert_int_equal(0, det_thread_start(fixture.world, "ender", end_twice, &ender, &thread));
        publish_many(&fixture, 3);
        settle(&fixture);
        det_thread_join(fixture.world, thread);
        assert_int_equal(DET_ERR_TIMEOUT, ender.first);
        assert_int_equal(0, ender.second);
        /* The queued ones of the loop are delivered; a lossless one sees no more. */
        assert_int_equal(is_lossless ? 1 : 3, atomic_load(&watcher.count));
        assert_int_equal(1, atomic_load(&watcher.closed));
        publish_many(&fixture, 1);
        settle(&fixture);
        assert_int_equal(is_lossless ? 1 : 3, atomic_load(&watcher.count));
        watcher_forget(&watcher);
        fixture_close(&fixture);
    }
}

static void end_patiently(void *argument)
{
    struct ender *ender = argument;

    ender->first = det_subscription_stop(ender->subscription, DET_NEVER);
}

/* Ended at any moment of a publish or of a turn: after its on_close() nothing is called. */
static void subscription_may_end_during_a_publish(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= (uint64_t)10 * SEEDS; seed++) {
        static struct watcher watcher;
        struct ender ender = { .watcher = &watcher };
        struct det_thread *thread;
        struct bus_fixture fixture;
        unsigned count;

        memset(&watcher, 0, sizeof watcher);
        fixture_open(&fixture, seed, 0);
        ender.subscription = subscribe(
            &fixture, &watcher, "one", seed % 2 ? DET_DELIVER_LOSSLESS : DET_DELIVER_LOOP, 0);
        assert_int_equal(
            0, det_thread_start(fixture.world, "ender", end_patiently, &ender, &thread));
        while (atomic_load(&watcher.closed) == 0) {
            publish_many(&fixture, 3);
            assert_true(det_loop_turn(fixture.loop, 0) >= 0);
        }
        count = atomic_load(&watcher.count);
        publish_many(&fixture, 3);
        settle(&fixture);
        assert_int_equal(count, atomic_load(&watcher.count));
        det_thread_join(fixture.world, thread);
        assert_int_equal(0, ender.first);
        assert_in_order(&watcher);
        fixture_close(&fixture);
    }
}

/* Threads are stored, so that the test can join those that the library can no longer join. */
static struct det_thread *started[4];
static unsigned started_count;
static const struct det_world_ops *ops_below;

static int start_and_remember(
    struct det_world *world, const char *name, det_thread_fn *run, void *argument,
    struct det_thread **ret)
{
    int r;

    r = ops_below->thread_start(world, name, run, argument, ret);
    if (r == 0)
        started[started_count++] = *ret;
    return r;
}

static void a_callback_that_outlives_the_bus_keeps_what_it_uses(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct watcher stuck;
        struct det_world_ops ops;
        struct bus_fixture fixture;

        memset(&stuck, 0, sizeof stuck);
        fixture_open(&fixture, seed, 0);
        ops_below = fixture.world->ops;
        ops = *ops_below;
        ops.thread_start = start_and_remember;
        fixture.world->ops = &ops;
        started_count = 0;
        watcher_block(&stuck, fixture.world);
        stuck.fail = DET_ERR_IO;
        subscribe(&fixture, &stuck, "stuck", DET_DELIVER_THREAD, 0);
        publish_many(&fixture, 2);
        settle(&fixture);
        watcher_await(&stuck);
        det_bus_close(fixture.bus);
        det_loop_close(fixture.loop);
        assert_true(fixture.memory.live_blocks > 0);
        watcher_unblock(&stuck);
        assert_int_equal(1, started_count);
        det_thread_join(fixture.world, started[0]);
        assert_int_equal(1, atomic_load(&stuck.count));
        assert_int_equal(1, atomic_load(&stuck.closed));
        watcher_forget(&stuck);
        det_sim_close(fixture.sim);
        det_test_memory_deinit(&fixture.memory);
    }
}

static int use_all(struct det_test_memory *memory, void *argument)
{
    static struct watcher watchers[3];
    const struct det_sim_options options = { .seed = 1, .allocator = &memory->allocator };
    struct det_subscriber subscriber = { .on_event = watcher_event };
    struct det_sim *sim = NULL;
    struct det_loop *loop = NULL;
    struct det_bus *bus = NULL;
    struct det_error error = { 0 };
    int r;

    (void)argument;
    memset(watchers, 0, sizeof watchers);
    r = det_sim_open(&options, &sim, NULL);
    if (r == 0)
        r = det_loop_open(det_sim_world(sim), &memory->allocator, &loop);
    if (r == 0)
        r = det_bus_open(loop, &memory->allocator, 8, &bus);
    for (int i = 0; r == 0 && i < 3; i++) {
        subscriber.delivery = (enum det_delivery)i;
        subscriber.user = &watchers[i];
        r = det_bus_subscribe(bus, &subscriber, NULL, &error);
        assert_int_equal(r, error.code);
    }
    if (r == 0) {
        uint64_t calls = memory->calls;
        struct det_task_event event = { .kind = DET_TASK_EVENT_TASK_ADDED };

        for (int i = 0; i < 5; i++)
            det_bus_publish(bus, &event);
        assert_int_equal(calls, memory->calls);
        assert_int_equal(0, det_bus_end(bus, DET_NEVER));
        for (int i = 0; i < 3; i++)
            assert_int_equal(5, atomic_load(&watchers[i].count));
    }
    det_bus_close(bus);
    det_loop_close(loop);
    det_sim_close(sim);
    return r;
}

static void bus_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(use_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_delivers_what_is_queued),
        cmocka_unit_test(a_deadline_of_0_drops_what_is_queued),
        cmocka_unit_test(subscribe_is_refused_after_the_end),
        cmocka_unit_test(invalid_subscriber_is_refused),
        cmocka_unit_test(ended_subscription_frees_its_place),
        cmocka_unit_test(blocked_callback_is_abandoned_at_the_common_deadline),
        cmocka_unit_test(timed_out_subscription_can_be_stopped_again),
        cmocka_unit_test(stop_from_another_thread_waits_for_a_loop_callback),
        cmocka_unit_test(subscription_may_end_during_a_publish),
        cmocka_unit_test(a_callback_that_outlives_the_bus_keeps_what_it_uses),
        cmocka_unit_test(bus_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
