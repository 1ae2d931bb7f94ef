/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus_thread_test.c - the bus with threads that really run at once. */
/* test: threads */
#include "task/bus_test.h"

#define EVENTS 20000

/* Checks what it sees instead of keeping it. */
struct checker {
    uint64_t last;
    atomic_uint_least64_t seen, lagged, lost_reported;
    bool is_wrong;
};

static int check_event(void *user, const struct det_task_event *event)
{
    struct checker *checker = user;

    if (event->kind == DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED) {
        if (strcmp(event->reason, "lagged") == 0)
            atomic_fetch_add(&checker->lagged, event->count);
        return 0;
    }
    if (event->sequence <= checker->last || event->id != event->count ||
        event->id != strtoull(event->name, NULL, 10) ||
        event->id != strtoull(event->reason, NULL, 10))
        checker->is_wrong = true;
    checker->last = event->sequence;
    atomic_fetch_add(&checker->seen, 1);
    return 0;
}

static void publish_checked(struct bus_fixture *fixture, uint64_t number)
{
    struct det_task_event event = {
        .kind = DET_TASK_EVENT_ATTEMPT_STARTING,
        .id = number,
        .count = number,
    };

    snprintf(
        event.name, sizeof event.name, "%0*llu", (int)(number % 60 + 1),
        (unsigned long long)number);
    snprintf(
        event.reason, sizeof event.reason, "%0*llu", (int)(number % 90 + 1),
        (unsigned long long)number);
    det_bus_publish(fixture->bus, &event);
}

/* A ring of 16 and queues of 8 to 1024: overwritten, lost and delivered at once. */
static void threads_see_whole_events_in_order_and_every_loss_is_counted(void **state)
{
    static struct checker checkers[4];
    struct det_subscription *subscriptions[4];
    struct bus_fixture fixture;

    (void)state;
    memset(checkers, 0, sizeof checkers);
    fixture_open(&fixture, 0, 16);
    for (uint32_t i = 0; i < 4; i++) {
        struct det_subscriber subscriber = {
            .on_event = check_event,
            .user = &checkers[i],
            .capacity = 8u << 2 * i,
        };

        assert_int_equal(0, det_bus_subscribe(fixture.bus, &subscriber, &subscriptions[i], NULL));
    }
    for (uint64_t i = 1; i <= EVENTS; i++) {
        publish_checked(&fixture, i);
        if (i % 7 == 0)
            assert_true(det_loop_turn(fixture.loop, 0) >= 0);
    }
    while (det_loop_turn(fixture.loop, 0) > 0)
        continue;
    for (int i = 0; i < 4; i++) {
        uint64_t offered = det_bus_newest(fixture.bus);

        assert_int_equal(0, det_subscription_stop(subscriptions[i], DET_NEVER));
        assert_adds_up(subscriptions[i], offered);
        assert_int_equal(
            atomic_load(&checkers[i].lagged), det_subscription_counts(subscriptions[i]).lagged);
        assert_false(checkers[i].is_wrong);
    }
    fixture_close(&fixture);
}

struct reading {
    struct det_bus *bus;
    atomic_bool stop_wanted;
    uint64_t seen, lost;
    bool is_wrong;
};

static void read_on(void *argument)
{
    struct reading *reading = argument;
    struct checker checker = { 0 };
    struct det_task_event event;
    uint64_t cursor = 0, lost;

    while (!atomic_load(&reading->stop_wanted) || cursor < det_bus_newest(reading->bus)) {
        if (!det_bus_read(reading->bus, &cursor, &event, &lost))
            continue;
        (void)check_event(&checker, &event);
        reading->seen++;
        reading->lost += lost;
    }
    reading->is_wrong = checker.is_wrong;
}

static void readers_see_whole_events_while_they_are_overwritten(void **state)
{
    struct bus_fixture fixture;
    struct det_thread *threads[2];
    struct reading readings[2];

    (void)state;
    fixture_open(&fixture, 0, 2);
    publish_checked(&fixture, 1);
    for (int i = 0; i < 2; i++) {
        readings[i] = (struct reading){ .bus = fixture.bus };
        assert_int_equal(
            0, det_thread_start(fixture.world, "reader", read_on, &readings[i], &threads[i]));
    }
    for (uint64_t i = 2; i <= EVENTS; i++)
        publish_checked(&fixture, i);
    for (int i = 0; i < 2; i++) {
        atomic_store(&readings[i].stop_wanted, true);
        det_thread_join(fixture.world, threads[i]);
        assert_false(readings[i].is_wrong);
        assert_true(readings[i].seen > 0);
        assert_true(readings[i].seen + readings[i].lost <= EVENTS);
    }
    fixture_close(&fixture);
}

struct coming {
    struct bus_fixture *fixture;
    enum det_delivery delivery;
    atomic_uint *busy;
};

/* Subscribes and ends repeatedly beside a loop that publishes. */
static void come_and_go(void *argument)
{
    struct coming *coming = argument;

    for (int i = 0; i < 200; i++) {
        struct checker *checker = calloc(1, sizeof *checker);
        struct det_subscriber subscriber = {
            .on_event = check_event,
            .user = checker,
            .delivery = coming->delivery,
            .capacity = 4,
        };
        struct det_subscription *subscription;

        assert_non_null(checker);
        assert_int_equal(
            0, det_bus_subscribe(coming->fixture->bus, &subscriber, &subscription, NULL));
        assert_int_equal(0, det_subscription_stop(subscription, DET_NEVER));
        assert_false(checker->is_wrong);
        free(checker);
    }
    atomic_fetch_sub(coming->busy, 1);
}

static void subscribers_come_and_go_while_the_loop_publishes(void **state)
{
    struct bus_fixture fixture;
    struct det_thread *threads[3];
    struct coming coming[3];
    atomic_uint busy = 3;
    uint64_t number = 1;

    (void)state;
    fixture_open(&fixture, 0, 0);
    for (int i = 0; i < 3; i++) {
        coming[i] = (struct coming){ &fixture, (enum det_delivery)i, &busy };
        assert_int_equal(
            0, det_thread_start(fixture.world, "coming", come_and_go, &coming[i], &threads[i]));
    }
    while (atomic_load(&busy) > 0) {
        for (int i = 0; i < 10; i++)
            publish_checked(&fixture, number++);
        assert_true(det_loop_turn(fixture.loop, 0) >= 0);
    }
    for (int i = 0; i < 3; i++)
        det_thread_join(fixture.world, threads[i]);
    fixture_close(&fixture);
}

/* One turn, one wake, however many events it published. */
static void burst_of_events_wakes_a_thread_once(void **state)
{
    static struct watcher watcher;
    struct det_subscription *subscription;
    struct det_subscription_counts counts;
    struct bus_fixture fixture;

    (void)state;
    memset(&watcher, 0, sizeof watcher);
    fixture_open(&fixture, 0, 0);
    watcher_block(&watcher, fixture.world);
    subscription = subscribe(&fixture, &watcher, "one", DET_DELIVER_THREAD, 0);
    publish_many(&fixture, 1);
    assert_true(det_loop_turn(fixture.loop, 0) >= 0);
    watcher_await(&watcher);
    for (int turn = 0; turn < 10; turn++) {
        publish_many(&fixture, 40);
        assert_true(det_loop_turn(fixture.loop, 0) >= 0);
    }
    counts = det_subscription_counts(subscription);
    assert_true(counts.wakes <= 1);
    watcher_unblock(&watcher);
    assert_int_equal(0, det_subscription_stop(subscription, DET_NEVER));
    assert_int_equal(401, atomic_load(&watcher.count));
    assert_in_order(&watcher);
    watcher_forget(&watcher);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_see_whole_events_in_order_and_every_loss_is_counted),
        cmocka_unit_test(readers_see_whole_events_while_they_are_overwritten),
        cmocka_unit_test(subscribers_come_and_go_while_the_loop_publishes),
        cmocka_unit_test(burst_of_events_wakes_a_thread_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
