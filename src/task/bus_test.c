/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus_test.c - the bus in virtual time: order, losses, failures, isolation, the end. */
#include "task/bus_test.h"

#define SEEDS 40

static const enum det_delivery deliveries[] = {
    DET_DELIVER_THREAD,
    DET_DELIVER_LOOP,
    DET_DELIVER_LOSSLESS,
};

static void every_subscriber_sees_every_event_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct watcher watchers[3];
        struct det_subscription *subscriptions[3];
        struct bus_fixture fixture;

        memset(watchers, 0, sizeof watchers);
        fixture_open(&fixture, seed, 64);
        assert_int_equal(1, publish(&fixture, DET_TASK_EVENT_TASK_ADD_REQUESTED));
        for (int i = 0; i < 3; i++)
            subscriptions[i] = subscribe(&fixture, &watchers[i], "all", deliveries[i], 0);
        for (int turn = 0; turn < 20; turn++) {
            publish_many(&fixture, 10);
            settle(&fixture);
        }
        for (int i = 0; i < 3; i++) {
            assert_int_equal(200, atomic_load(&watchers[i].count));
            assert_int_equal(2, watchers[i].seen[0].sequence);
            assert_int_equal(201, watchers[i].seen[199].sequence);
            assert_in_order(&watchers[i]);
            assert_adds_up(subscriptions[i], 200);
        }
        assert_int_equal(0, det_bus_end(fixture.bus, DET_NEVER));
        for (int i = 0; i < 3; i++)
            assert_int_equal(1, atomic_load(&watchers[i].closed));
        fixture_close(&fixture);
    }
}

static void an_event_arrives_as_it_was_published(void **state)
{
    struct bus_fixture fixture;
    struct det_task_event event = { 0 }, read;
    uint64_t cursor = 0, lost = 9;

    (void)state;
    fixture_open(&fixture, 1, 0);
    event = (struct det_task_event){
        .at = 11,
        .id = 12,
        .kind = DET_TASK_EVENT_BACKOFF_SCHEDULED,
        .attempt = UINT32_MAX,
        .delay = -1,
        .timeout = INT64_MAX,
        .duration = 15,
        .count = UINT64_MAX,
        .exit_code = -3,
        .signal = 255,
        .outcome = DET_TASK_OUTCOME_REJECTED,
        .rejection = DET_REJECTION_FAILED,
        .source = DET_BACKOFF_AFTER_SUCCESS,
        .has_exit_code = true,
    };
    for (size_t name = 0; name <= DET_TASK_NAME_MAX; name++) {
        size_t reason = (name * 7) % (DET_TASK_REASON_MAX + 1);

        memset(event.name, 0, sizeof event.name);
        memset(event.reason, 0, sizeof event.reason);
        memset(event.name, 'n', name);
        memset(event.reason, 'r', reason);
        det_bus_publish(fixture.bus, &event);
        memset(&read, 0, sizeof read);
        assert_int_equal(1, det_bus_read(fixture.bus, &cursor, &read, &lost));
        assert_int_equal(0, lost);
        assert_memory_equal(&event, &read, sizeof event);
    }
    assert_int_equal(0, det_bus_read(fixture.bus, &cursor, &read, &lost));
    fixture_close(&fixture);
}

static void bus_works_without_subscribers(void **state)
{
    struct bus_fixture fixture;
    struct det_task_event event;
    uint64_t cursor = 0, lost;

    (void)state;
    fixture_open(&fixture, 1, 1);
    assert_int_equal(0, det_bus_newest(fixture.bus));
    assert_int_equal(0, det_bus_read(fixture.bus, &cursor, &event, &lost));
    publish_many(&fixture, 5);
    assert_int_equal(5, det_bus_newest(fixture.bus));
    assert_int_equal(DET_NEVER, det_loop_deadline(fixture.loop));
    assert_int_equal(1, det_bus_read(fixture.bus, &cursor, &event, &lost));
    assert_int_equal(5, cursor);
    assert_int_equal(0, lost);
    fixture_close(&fixture);
}

static void slow_reader_gets_the_number_of_lost_events(void **state)
{
    struct bus_fixture fixture;
    struct det_task_event event;
    uint64_t cursor = 0, lost;

    (void)state;
    fixture_open(&fixture, 1, 5);
    publish_many(&fixture, 3);
    assert_int_equal(1, det_bus_read(fixture.bus, &cursor, &event, &lost));
    assert_int_equal(1, event.sequence);
    publish_many(&fixture, 17);
    /* Five became eight: 13 to 20 are there. */
    assert_int_equal(1, det_bus_read(fixture.bus, &cursor, &event, &lost));
    assert_int_equal(13, event.sequence);
    assert_int_equal(13, cursor);
    assert_int_equal(11, lost);
    assert_int_equal(1, det_bus_read(fixture.bus, &cursor, &event, &lost));
    assert_int_equal(14, event.sequence);
    assert_int_equal(0, lost);
    cursor = 20;
    assert_int_equal(0, det_bus_read(fixture.bus, &cursor, &event, &lost));
    fixture_close(&fixture);
}

static void full_queue_drops_new_events_and_reports_how_many(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        static struct watcher small, other;
        struct det_subscription *subscription;
        struct bus_fixture fixture;

        memset(&small, 0, sizeof small);
        memset(&other, 0, sizeof other);
        fixture_open(&fixture, 3, 0);
        if (deliveries[i] == DET_DELIVER_THREAD)
            watcher_block(&small, fixture.world);
        subscription = subscribe(&fixture, &small, "small", deliveries[i], 1);
        subscribe(&fixture, &other, "other", DET_DELIVER_LOOP, 0);
        if (deliveries[i] == DET_DELIVER_THREAD) {
            (void)publish(&fixture, DET_TASK_EVENT_TASK_ADDED);
            settle(&fixture);
            watcher_await(&small);
        }
        publish_many(&fixture, 6);
        settle(&fixture);
        if (deliveries[i] == DET_DELIVER_THREAD) {
            /* There is no room as long as it is blocked, so there is no news either. */
            assert_int_equal(0, count_kind(&other, DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED));
            watcher_unblock(&small);
        }
        settle(&fixture);
        assert_int_equal(1, count_kind(&other, DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED));
        assert_string_equal("small", other.seen[atomic_load(&other.count) - 1].name);
        assert_string_equal("queue full", other.seen[atomic_load(&other.count) - 1].reason);
        assert_int_equal(5, other.seen[atomic_load(&other.count) - 1].count);
        assert_int_equal(5, det_subscription_counts(subscription).dropped);
        assert_int_equal(1, count_kind(&small, DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED));
        assert_in_order(&small);
        /* A second episode is a second event. */
        publish_many(&fixture, 3);
        settle(&fixture);
        assert_int_equal(2, count_kind(&other, DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED));
        assert_int_equal(0, det_bus_end(fixture.bus, DET_NEVER));
        if (small.mutex)
            watcher_forget(&small);
        fixture_close(&fixture);
    }
}

static void a_lost_diagnostic_causes_no_further_one(void **state)
{
    static const enum det_task_event_kind kinds[] = {
        DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED,
        DET_TASK_EVENT_SUBSCRIBER_FAILED,
        DET_TASK_EVENT_RUNTIME_FAILURE,
    };
    static struct watcher small;
    struct det_subscription *subscription;
    struct bus_fixture fixture;

    (void)state;
    memset(&small, 0, sizeof small);
    fixture_open(&fixture, 1, 0);
    small.fail = DET_ERR_IO;
    subscription = subscribe(&fixture, &small, "small", DET_DELIVER_LOOP, 1);
    for (int i = 0; i < 3; i++) {
        (void)publish(&fixture, kinds[i]);
        (void)publish(&fixture, kinds[i]);
        settle(&fixture);
    }
    assert_int_equal(6, det_bus_newest(fixture.bus));
    assert_int_equal(3, det_subscription_counts(subscription).dropped);
    assert_int_equal(3, det_subscription_counts(subscription).failed);
    fixture_close(&fixture);
}

static void loss_is_reported_at_the_end_at_the_latest(void **state)
{
    static struct watcher small, other;
    struct bus_fixture fixture;

    (void)state;
    memset(&small, 0, sizeof small);
    memset(&other, 0, sizeof other);
    fixture_open(&fixture, 1, 0);
    subscribe(&fixture, &small, "small", DET_DELIVER_LOOP, 2);
    subscribe(&fixture, &other, "audit", DET_DELIVER_LOSSLESS, 0);
    publish_many(&fixture, 5);
    assert_int_equal(0, det_bus_end(fixture.bus, DET_NEVER));
    assert_int_equal(2, atomic_load(&small.count));
    assert_int_equal(1, count_kind(&other, DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED));
    assert_int_equal(3, other.seen[5].count);
    fixture_close(&fixture);
}

static void failing_subscriber_is_reported_and_continues(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        static struct watcher bad, good, audit;
        struct bus_fixture fixture;

        memset(&bad, 0, sizeof bad);
        memset(&good, 0, sizeof good);
        memset(&audit, 0, sizeof audit);
        fixture_open(&fixture, 5, 0);
        bad.fail = DET_ERR_IO;
        subscribe(&fixture, &bad, "bad", deliveries[i], 0);
        subscribe(&fixture, &good, "good", DET_DELIVER_THREAD, 0);
        subscribe(&fixture, &audit, "audit", DET_DELIVER_LOSSLESS, 0);
        publish_many(&fixture, 3);
        settle(&fixture);
        assert_int_equal(6, atomic_load(&bad.count));
        assert_int_equal(6, atomic_load(&good.count));
        assert_int_equal(6, atomic_load(&audit.count));
        assert_int_equal(3, count_kind(&good, DET_TASK_EVENT_SUBSCRIBER_FAILED));
        assert_in_order(&bad);
        assert_in_order(&good);
        assert_in_order(&audit);
        assert_string_equal("bad", good.seen[5].name);
        assert_string_equal("input or output failed", good.seen[5].reason);
        fixture_close(&fixture);
    }
}

static void failures_of_one_turn_are_merged_into_fewer_events(void **state)
{
    static struct watcher bad, good;
    struct bus_fixture fixture;
    uint64_t sum = 0;

    (void)state;
    memset(&bad, 0, sizeof bad);
    memset(&good, 0, sizeof good);
    fixture_open(&fixture, 1, 0);
    bad.fail = DET_ERR_TIMEOUT;
    subscribe(&fixture, &bad, "bad", DET_DELIVER_LOOP, 0);
    subscribe(&fixture, &good, "good", DET_DELIVER_LOOP, 0);
    publish_many(&fixture, 100);
    settle(&fixture);
    assert_int_equal(16, count_kind(&good, DET_TASK_EVENT_SUBSCRIBER_FAILED));
    for (unsigned i = 100; i < 116; i++)
        sum += good.seen[i].count;
    assert_int_equal(100, sum);
    fixture_close(&fixture);
}

static void subscriber_overtaken_by_the_ring_resumes_at_the_oldest(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct watcher slow, other;
        struct bus_fixture fixture;

        memset(&slow, 0, sizeof slow);
        memset(&other, 0, sizeof other);
        fixture_open(&fixture, seed, 4);
        watcher_block(&slow, fixture.world);
        subscribe(&fixture, &slow, "slow", DET_DELIVER_THREAD, 64);
        subscribe(&fixture, &other, "other", DET_DELIVER_LOSSLESS, 0);
        (void)publish(&fixture, DET_TASK_EVENT_TASK_ADDED);
        settle(&fixture);
        watcher_await(&slow);
        publish_many(&fixture, 10);
        watcher_unblock(&slow);
        assert_int_equal(0, det_bus_end(fixture.bus, DET_NEVER));
        assert_int_equal(6, atomic_load(&slow.count));
        assert_int_equal(DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED, slow.seen[1].kind);
        assert_string_equal("lagged", slow.seen[1].reason);
        assert_string_equal("slow", slow.seen[1].name);
        assert_int_equal(6, slow.seen[1].count);
        assert_int_equal(8, slow.seen[2].sequence);
        assert_int_equal(11, slow.seen[5].sequence);
        assert_in_order(&slow);
        assert_int_equal(11, atomic_load(&other.count));
        watcher_forget(&slow);
        fixture_close(&fixture);
    }
}

/* All that was queued is overwritten: there is nothing to go on at. */
static void subscriber_overtaken_completely_gets_the_loss(void **state)
{
    static struct watcher slow;
    struct det_subscription *subscription;
    struct bus_fixture fixture;

    (void)state;
    memset(&slow, 0, sizeof slow);
    fixture_open(&fixture, 1, 2);
    subscription = subscribe(&fixture, &slow, "slow", DET_DELIVER_LOOP, 2);
    publish_many(&fixture, 9);
    settle(&fixture);
    assert_int_equal(2, det_subscription_counts(subscription).lagged);
    assert_int_equal(7, det_subscription_counts(subscription).dropped);
    assert_string_equal("lagged", slow.seen[0].reason);
    assert_int_equal(2, slow.seen[0].count);
    assert_int_equal(2, slow.seen[0].sequence);
    assert_string_equal("queue full", slow.seen[1].reason);
    fixture_close(&fixture);
}

static void failing_turn_is_reported_once_until_it_succeeds(void **state)
{
    static const int results[] = { 0, DET_ERR_IO, DET_ERR_IO, 0, DET_ERR_NO_SPACE, 0 };
    static struct watcher audit, other;
    struct bus_fixture fixture;

    (void)state;
    memset(&audit, 0, sizeof audit);
    memset(&other, 0, sizeof other);
    fixture_open(&fixture, 1, 0);
    subscribe(&fixture, &audit, "audit", DET_DELIVER_LOSSLESS, 0);
    subscribe(&fixture, &other, "other", DET_DELIVER_LOOP, 0);
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        audit.turn_result = results[i];
        publish_many(&fixture, 2);
        settle(&fixture);
    }
    assert_int_equal(2, count_kind(&audit, DET_TASK_EVENT_RUNTIME_FAILURE));
    assert_int_equal(2, count_kind(&other, DET_TASK_EVENT_RUNTIME_FAILURE));
    assert_string_equal("audit", other.seen[4].name);
    assert_string_equal("input or output failed", other.seen[4].reason);
    fixture_close(&fixture);
}

static void publish_again(void *argument)
{
    struct bus_fixture *fixture = argument;

    (void)publish(fixture, DET_TASK_EVENT_TASK_ADDED);
}

static int publish_inside(void *user, const struct det_task_event *event)
{
    (void)event;
    publish_again(user);
    return 0;
}

static void publish_from_an_audit(void *argument)
{
    struct bus_fixture *fixture = argument;
    struct det_subscriber subscriber = {
        .delivery = DET_DELIVER_LOSSLESS,
        .on_event = publish_inside,
        .user = fixture,
    };

    assert_int_equal(0, det_bus_subscribe(fixture->bus, &subscriber, NULL, NULL));
    publish_again(fixture);
}

static void a_lossless_subscriber_must_not_publish(void **state)
{
    struct bus_fixture fixture;

    (void)state;
    fixture_open(&fixture, 1, 0);
    assert_true(det_test_aborts(publish_from_an_audit, &fixture, "!bus->is_publishing"));
    fixture_close(&fixture);
}

/* In one turn the queue fills up to its half, and from there the thread need not wait. */
static void a_thread_is_woken_once_a_turn_and_when_its_queue_is_half_full(void **state)
{
    static struct watcher watcher;
    struct det_subscription *subscription;
    struct bus_fixture fixture;
    uint64_t wakes;

    (void)state;
    memset(&watcher, 0, sizeof watcher);
    fixture_open(&fixture, 7, 0);
    subscription = subscribe(&fixture, &watcher, "one", DET_DELIVER_THREAD, 64);
    settle(&fixture);
    assert_int_equal(0, det_sim_settle(fixture.sim));
    assert_int_equal(0, det_subscription_counts(subscription).wakes);
    for (unsigned i = 1; i <= 10; i++) {
        wakes = det_subscription_counts(subscription).wakes;
        publish_many(&fixture, 20);
        settle(&fixture);
        assert_int_equal(20 * i, atomic_load(&watcher.count));
        assert_int_equal(wakes + 1, det_subscription_counts(subscription).wakes);
    }
    publish_many(&fixture, 31);
    wakes = det_subscription_counts(subscription).wakes;
    publish_many(&fixture, 2);
    assert_int_equal(wakes + 1, det_subscription_counts(subscription).wakes);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_subscriber_sees_every_event_in_order),
        cmocka_unit_test(an_event_arrives_as_it_was_published),
        cmocka_unit_test(bus_works_without_subscribers),
        cmocka_unit_test(slow_reader_gets_the_number_of_lost_events),
        cmocka_unit_test(full_queue_drops_new_events_and_reports_how_many),
        cmocka_unit_test(a_lost_diagnostic_causes_no_further_one),
        cmocka_unit_test(loss_is_reported_at_the_end_at_the_latest),
        cmocka_unit_test(failing_subscriber_is_reported_and_continues),
        cmocka_unit_test(failures_of_one_turn_are_merged_into_fewer_events),
        cmocka_unit_test(subscriber_overtaken_by_the_ring_resumes_at_the_oldest),
        cmocka_unit_test(subscriber_overtaken_completely_gets_the_loss),
        cmocka_unit_test(failing_turn_is_reported_once_until_it_succeeds),
        cmocka_unit_test(a_lossless_subscriber_must_not_publish),
        cmocka_unit_test(a_thread_is_woken_once_a_turn_and_when_its_queue_is_half_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
