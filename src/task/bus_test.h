/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus_test.h - a bus on a loop in either world, and a subscriber that keeps what it sees. */
#ifndef DET_TASK_BUS_TEST_H
#define DET_TASK_BUS_TEST_H

#include <stdatomic.h>

#include <detent/sim.h>

#include "lib/test.h"
#include "os/os.h"
#include "task/bus.h"

struct bus_fixture {
    struct det_test_memory memory;
    struct det_sim *sim; /* NULL in the real world */
    struct det_world *world;
    struct det_loop *loop;
    struct det_bus *bus;
};

static inline void fixture_open(struct bus_fixture *fixture, uint64_t seed, uint32_t capacity)
{
    *fixture = (struct bus_fixture){ .world = det_world_real() };
    det_test_memory_init(&fixture->memory);
    if (seed > 0) {
        struct det_sim_options options = { .seed = seed };

        assert_int_equal(0, det_sim_open(&options, &fixture->sim, NULL));
        fixture->world = det_sim_world(fixture->sim);
    }
    assert_int_equal(0, det_loop_open(fixture->world, &fixture->memory.allocator, &fixture->loop));
    assert_int_equal(
        0, det_bus_open(fixture->loop, &fixture->memory.allocator, capacity, &fixture->bus));
}

static inline void fixture_close(struct bus_fixture *fixture)
{
    det_bus_close(fixture->bus);
    det_loop_close(fixture->loop);
    det_sim_close(fixture->sim);
    det_test_memory_deinit(&fixture->memory);
}

#define SEEN_MAX 4096

/* The events of one subscriber. `fail` is its return value for each event. */
struct watcher {
    atomic_uint count;
    struct {
        uint64_t sequence, count;
        enum det_task_event_kind kind;
        char name[24], reason[24];
    } seen[SEEN_MAX];
    int fail;
    atomic_uint closed, turns;
    int turn_result;
    /* Blocks in a callback while this is set. */
    struct det_world *world;
    struct det_mutex *mutex;
    struct det_condition *changed;
    bool is_blocked, is_inside;
};

static inline void watcher_wait(struct watcher *watcher)
{
    det_mutex_lock(watcher->world, watcher->mutex);
    watcher->is_inside = true;
    det_condition_broadcast(watcher->world, watcher->changed);
    while (watcher->is_blocked)
        (void)det_condition_wait(watcher->world, watcher->changed, watcher->mutex, DET_NEVER);
    watcher->is_inside = false;
    det_mutex_unlock(watcher->world, watcher->mutex);
}

static inline int watcher_event(void *user, const struct det_task_event *event)
{
    struct watcher *watcher = user;
    unsigned at = atomic_load(&watcher->count);

    assert_true(at < SEEN_MAX);
    watcher->seen[at].sequence = event->sequence;
    watcher->seen[at].count = event->count;
    watcher->seen[at].kind = event->kind;
    snprintf(watcher->seen[at].name, sizeof watcher->seen[at].name, "%.23s", event->name);
    snprintf(watcher->seen[at].reason, sizeof watcher->seen[at].reason, "%.23s", event->reason);
    atomic_store(&watcher->count, at + 1);
    if (watcher->mutex)
        watcher_wait(watcher);
    return watcher->fail;
}

static inline int watcher_turn(void *user)
{
    struct watcher *watcher = user;

    atomic_fetch_add(&watcher->turns, 1);
    return watcher->turn_result;
}

static inline void watcher_close(void *user)
{
    struct watcher *watcher = user;

    atomic_fetch_add(&watcher->closed, 1);
}

static inline struct det_subscription *subscribe(
    struct bus_fixture *fixture, struct watcher *watcher, const char *name,
    enum det_delivery delivery, uint32_t capacity)
{
    struct det_subscriber subscriber = {
        .name = name,
        .capacity = capacity,
        .delivery = delivery,
        .on_event = watcher_event,
        .on_turn = watcher_turn,
        .on_close = watcher_close,
        .user = watcher,
    };
    struct det_subscription *subscription = NULL;

    assert_int_equal(0, det_bus_subscribe(fixture->bus, &subscriber, &subscription, NULL));
    return subscription;
}

static inline void watcher_block(struct watcher *watcher, struct det_world *world)
{
    watcher->world = world;
    assert_int_equal(0, det_mutex_open(world, &watcher->mutex));
    assert_int_equal(0, det_condition_open(world, &watcher->changed));
    watcher->is_blocked = true;
}

/* Until the callback is inside. */
static inline void watcher_await(struct watcher *watcher)
{
    det_mutex_lock(watcher->world, watcher->mutex);
    while (!watcher->is_inside)
        (void)det_condition_wait(watcher->world, watcher->changed, watcher->mutex, DET_NEVER);
    det_mutex_unlock(watcher->world, watcher->mutex);
}

static inline void watcher_unblock(struct watcher *watcher)
{
    det_mutex_lock(watcher->world, watcher->mutex);
    watcher->is_blocked = false;
    det_condition_broadcast(watcher->world, watcher->changed);
    det_mutex_unlock(watcher->world, watcher->mutex);
}

static inline void watcher_forget(struct watcher *watcher)
{
    det_condition_close(watcher->world, watcher->changed);
    det_mutex_close(watcher->world, watcher->mutex);
    watcher->mutex = NULL;
    watcher->changed = NULL;
}

/* Publishes one event about the task "t". */
static inline uint64_t publish(struct bus_fixture *fixture, enum det_task_event_kind kind)
{
    struct det_task_event event = { .kind = kind, .id = 7, .name = "t", .at = 1 };

    det_bus_publish(fixture->bus, &event);
    return event.sequence;
}

static inline void publish_many(struct bus_fixture *fixture, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        (void)publish(fixture, DET_TASK_EVENT_TASK_ADDED);
}

/* Everything that the loop and the threads have to do now. */
static inline void settle(struct bus_fixture *fixture)
{
    int r;

    do {
        r = det_loop_turn(fixture->loop, 0);
        assert_true(r >= 0);
        if (fixture->sim)
            assert_int_equal(0, det_sim_settle(fixture->sim));
    } while (r > 0 || det_loop_deadline(fixture->loop) == 0);
}

static inline det_time now_of(struct bus_fixture *fixture)
{
    return det_world_now(fixture->world, DET_CLOCK_MONOTONIC);
}

static inline unsigned count_kind(const struct watcher *watcher, enum det_task_event_kind kind)
{
    unsigned count = 0;

    for (unsigned i = 0; i < atomic_load(&watcher->count); i++)
        count += watcher->seen[i].kind == kind;
    return count;
}

static inline void assert_in_order(const struct watcher *watcher)
{
    for (unsigned i = 1; i < atomic_load(&watcher->count); i++)
        assert_true(watcher->seen[i - 1].sequence < watcher->seen[i].sequence);
}

static inline void assert_adds_up(const struct det_subscription *subscription, uint64_t offered)
{
    struct det_subscription_counts counts = det_subscription_counts(subscription);

    assert_int_equal(offered, counts.delivered + counts.dropped + counts.lagged);
}

#endif
