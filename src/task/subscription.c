/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* subscription.c - one subscriber of a bus: a queue of sequences with one writer and one reader.
 *
 *     publisher: queue[tail] = sequence, tail + 1        reader: sequence = queue[head], head + 1,
 *       full: dropped + 1, and nothing else                event from the ring, or lagged + 1
 *
 * Invariants
 *   1. tail - head is at most `capacity`. Each event offered is queued, delivered, lagged or
 *      dropped, and is counted as such once.
 *   2. The thread sets `is_asleep` and then checks the queue; the publisher fills the queue and
 *      then checks `is_asleep`. One of them sees the other, and a thread is woken once per drain.
 *   3. The last reference frees the memory: the bus's, or that of a detached thread. */
#include "task/subscription.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"

#define CAPACITY_DEFAULT          16384
#define CAPACITY_LOSSLESS_DEFAULT 65536

bool det_task_event_is_diagnostic(enum det_task_event_kind kind)
{
    return kind == DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED ||
           kind == DET_TASK_EVENT_SUBSCRIBER_FAILED || kind == DET_TASK_EVENT_RUNTIME_FAILURE;
}

/* Under the mutex. Never backwards. */
static void set_state(struct det_subscription *subscription, enum det_subscription_state state)
{
    if (state <= det_subscription_state(subscription))
        return;
    atomic_store(&subscription->state, (int)state);
    det_condition_broadcast(subscription->world, subscription->changed);
}

/* Sleeps until there is work. Wakes threads that wait for room first. */
static void sleep_for_more(struct det_subscription *subscription)
{
    struct det_world *world = subscription->world;

    det_mutex_lock(world, subscription->mutex);
    for (;;) {
        atomic_store(&subscription->is_asleep, true);
        det_thread_preempt(world);
        atomic_thread_fence(memory_order_seq_cst);
        if (!det_subscription_is_empty(subscription) ||
            det_subscription_state(subscription) != DET_SUBSCRIPTION_LIVE)
            break;
        if (atomic_load(&subscription->has_lost))
            det_bus_want_turn(subscription->bus);
        (void)det_condition_wait(world, subscription->changed, subscription->mutex, DET_NEVER);
    }
    atomic_store(&subscription->is_asleep, false);
    det_mutex_unlock(world, subscription->mutex);
}

/* One event, or a sleep. False: time to end. The state is read before the queue, so that events
 * queued before the end began are seen. */
static bool go_on(struct det_subscription *subscription)
{
    enum det_subscription_state state = det_subscription_state(subscription);
    bool is_delivered;

    if (det_subscription_is_empty(subscription)) {
        if (state == DET_SUBSCRIPTION_LIVE)
            sleep_for_more(subscription);
        return state == DET_SUBSCRIPTION_LIVE;
    }
    if (!det_subscription_enter(subscription, DET_SUBSCRIPTION_DRAINING))
        return false;
    is_delivered = det_subscription_next(subscription);
    det_assert(is_delivered);
    det_subscription_exit(subscription);
    return true;
}

static void drop_one(struct det_subscription *subscription)
{
    if (subscription->is_lossless)
        det_subscription_take_kept(subscription, &subscription->event);
    else
        (void)det_subscription_take(subscription);
}

/* Events that are still queued are dropped. */
static void end(struct det_subscription *subscription)
{
    const struct det_subscriber *subscriber = &subscription->subscriber;

    for (; !det_subscription_is_empty(subscription); drop_one(subscription))
        atomic_fetch_add(&subscription->dropped, 1);
    if (subscriber->on_close)
        subscriber->on_close(subscriber->user);
    det_mutex_lock(subscription->world, subscription->mutex);
    atomic_store(&subscription->is_calling, false);
    set_state(subscription, DET_SUBSCRIPTION_ENDED);
    det_mutex_unlock(subscription->world, subscription->mutex);
}

static void thread_main(void *argument)
{
    struct det_subscription *subscription = argument;

    atomic_store(&subscription->reader, det_thread_self(subscription->world));
    while (go_on(subscription))
        continue;
    atomic_store(&subscription->is_calling, true);
    end(subscription);
    det_subscription_release(subscription);
}

static int open_queue(struct det_subscription *subscription)
{
    uint64_t rounded = 1;

    while (rounded < subscription->queue.capacity)
        rounded *= 2;
    subscription->queue.mask = rounded - 1;
    subscription->queue.attention = subscription->queue.capacity / 2;
    subscription->queue.sequences = DET_NEW_ARRAY(subscription->allocator, rounded, uint64_t);
    return subscription->queue.sequences ? 0 : DET_ERR_NO_MEMORY;
}

static int open_thread(struct det_subscription *subscription)
{
    int r;

    atomic_fetch_add(&subscription->references, 1);
    r = det_thread_start(
        subscription->world, "det-subscriber", thread_main, subscription, &subscription->thread);
    if (r < 0)
        atomic_fetch_sub(&subscription->references, 1);
    return r;
}

static void init(
    struct det_subscription *subscription, struct det_bus *bus, struct det_bus_ring *ring,
    const struct det_subscriber *subscriber)
{
    const char *name = subscriber->name ? subscriber->name : "subscriber";

    subscription->world = ring->world;
    subscription->ring = ring;
    subscription->bus = bus;
    subscription->subscriber = *subscriber;
    subscription->delivery = subscriber->delivery;
    subscription->is_lossless =
        subscriber->is_lossless && subscriber->delivery != DET_DELIVER_LOSSLESS;
    subscription->queue.capacity = subscriber->capacity;
    if (!subscription->queue.capacity)
        subscription->queue.capacity =
            subscription->is_lossless ? CAPACITY_LOSSLESS_DEFAULT : CAPACITY_DEFAULT;
    (void)det_text_copy(subscription->name, sizeof subscription->name, name);
    subscription->subscriber.name = subscription->name;
    atomic_init(&subscription->references, 1);
    det_list_init(&subscription->node);
    det_bus_keep(bus);
}

int det_subscription_open(
    struct det_bus *bus, struct det_bus_ring *ring, const struct det_allocator *allocator,
    const struct det_subscriber *subscriber, struct det_subscription **ret)
{
    struct det_subscription *subscription;
    int r = 0;

    subscription = DET_NEW(allocator, struct det_subscription);
    if (!subscription)
        return DET_ERR_NO_MEMORY;
    subscription->allocator = allocator;
    det_event_queue_init(&subscription->kept, allocator);
    init(subscription, bus, ring, subscriber);
    if (subscriber->delivery != DET_DELIVER_LOSSLESS && !subscription->is_lossless)
        r = open_queue(subscription);
    if (r == 0)
        r = det_mutex_open(ring->world, &subscription->mutex);
    if (r == 0)
        r = det_condition_open(ring->world, &subscription->changed);
    if (r == 0 && subscriber->delivery == DET_DELIVER_THREAD)
        r = open_thread(subscription);
    if (r < 0) {
        det_subscription_release(subscription);
        return r;
    }
    *ret = subscription;
    return 0;
}

void det_subscription_release(struct det_subscription *subscription)
{
    const struct det_allocator *allocator = subscription->allocator;
    struct det_bus *bus = subscription->bus;

    if (atomic_fetch_sub(&subscription->references, 1) > 1)
        return;
    det_condition_close(subscription->world, subscription->changed);
    det_mutex_close(subscription->world, subscription->mutex);
    det_event_queue_deinit(&subscription->kept);
    if (subscription->queue.sequences)
        DET_DELETE_ARRAY(allocator, subscription->queue.sequences, subscription->queue.mask + 1);
    DET_DELETE(allocator, subscription);
    det_bus_release(bus);
}

static void wake_thread(struct det_subscription *subscription)
{
    if (!atomic_load(&subscription->is_asleep) || !atomic_exchange(&subscription->is_asleep, false))
        return;
    det_subscription_add(&subscription->wakes, 1);
    /* The thread may be about to sleep, holding the mutex; it takes the mutex when it wakes. */
    det_mutex_lock(subscription->world, subscription->mutex);
    det_mutex_unlock(subscription->world, subscription->mutex);
    det_condition_broadcast(subscription->world, subscription->changed);
}

/* Wakes a sleeping thread now, not at the end of the turn: a long turn would fill the rest. */
void det_subscription_offer_more(
    struct det_subscription *subscription, uint64_t sequence, bool is_diagnostic)
{
    uint64_t tail = atomic_load_explicit(&subscription->queue.tail, memory_order_relaxed);

    subscription->queue.head_seen = atomic_load_explicit(&subscription->head, memory_order_acquire);
    if (tail - subscription->queue.head_seen < subscription->queue.capacity) {
        det_subscription_push(subscription, tail, sequence);
    } else {
        atomic_fetch_add(&subscription->dropped, 1);
        det_bus_count_lost(subscription->bus, 1);
        if (!is_diagnostic) {
            subscription->lost++;
            atomic_store(&subscription->has_lost, true);
        }
    }
    if (subscription->delivery == DET_DELIVER_THREAD &&
        tail - subscription->queue.head_seen >= subscription->queue.attention)
        wake_thread(subscription);
}

/* Under the mutex, like all of its conditions: a publisher that finds the queue full and a reader
 * that empties it meanwhile agree on the order. An ending subscription gets no more events, so no
 * work waits for it. */
static void press(struct det_subscription *subscription)
{
    if (det_subscription_state(subscription) == DET_SUBSCRIPTION_LIVE &&
        !atomic_exchange(&subscription->is_pressing, true))
        det_bus_press(subscription->bus, true);
}

void det_subscription_relieve(struct det_subscription *subscription)
{
    if (atomic_exchange(&subscription->is_pressing, false) && !subscription->is_left)
        det_bus_press(subscription->bus, false);
}

/* Without a limit: the work that would make more events waits instead. An event is lost only
 * without memory. */
void det_subscription_keep(
    struct det_subscription *subscription, const struct det_task_event *event, bool is_diagnostic)
{
    uint64_t tail = atomic_load_explicit(&subscription->queue.tail, memory_order_relaxed);
    int r;

    det_mutex_lock(subscription->world, subscription->mutex);
    r = det_event_queue_put(&subscription->kept, event);
    if (r == 0) {
        atomic_store_explicit(&subscription->queue.tail, tail + 1, memory_order_release);
        if (!det_subscription_has_room(subscription))
            press(subscription);
    }
    det_mutex_unlock(subscription->world, subscription->mutex);
    if (r < 0) {
        atomic_fetch_add(&subscription->dropped, 1);
        det_bus_count_lost(subscription->bus, 1);
        subscription->lost += !is_diagnostic;
    }
}

bool det_subscription_has_room(const struct det_subscription *subscription)
{
    return atomic_load_explicit(&subscription->queue.tail, memory_order_relaxed) -
               atomic_load_explicit(&subscription->head, memory_order_acquire) <
           subscription->queue.capacity;
}

void det_subscription_wake(struct det_subscription *subscription)
{
    if (!det_subscription_is_empty(subscription))
        wake_thread(subscription);
}

void det_subscription_begin_end(struct det_subscription *subscription, bool is_dropping)
{
    det_mutex_lock(subscription->world, subscription->mutex);
    set_state(subscription, is_dropping ? DET_SUBSCRIPTION_DROPPING : DET_SUBSCRIPTION_DRAINING);
    det_subscription_relieve(subscription);
    det_mutex_unlock(subscription->world, subscription->mutex);
}

/* Waits until the thread has ended, at most until the deadline; then it may not start another call.
 * A thread outside of a call ends by itself. */
static int finish_thread(struct det_subscription *subscription, det_time deadline)
{
    struct det_world *world = subscription->world;
    bool is_calling;
    int r = 0;

    det_mutex_lock(world, subscription->mutex);
    while (det_subscription_state(subscription) != DET_SUBSCRIPTION_ENDED && r == 0)
        r = det_condition_wait(world, subscription->changed, subscription->mutex, deadline);
    set_state(subscription, DET_SUBSCRIPTION_DROPPING);
    is_calling = atomic_load(&subscription->is_calling);
    det_mutex_unlock(world, subscription->mutex);
    if (is_calling)
        return DET_ERR_TIMEOUT;
    det_thread_join(world, subscription->thread);
    subscription->thread = NULL;
    return 0;
}

/* Waits for a call on the loop's thread, if this is another one. */
static int wait_for_call(struct det_subscription *subscription, det_time deadline)
{
    struct det_world *world = subscription->world;
    int r = 0;

    det_mutex_lock(world, subscription->mutex);
    while (atomic_load(&subscription->is_calling) && r == 0)
        r = det_condition_wait(world, subscription->changed, subscription->mutex, deadline);
    if (!atomic_load(&subscription->is_calling))
        r = 0;
    det_mutex_unlock(world, subscription->mutex);
    return r;
}

/* Delivers what the loop will not deliver any longer. */
static void drain_until(struct det_subscription *subscription, det_time deadline)
{
    struct det_world *world = subscription->world;

    while (det_subscription_state(subscription) == DET_SUBSCRIPTION_DRAINING &&
           det_world_now(world, DET_CLOCK_MONOTONIC) < deadline &&
           det_subscription_next(subscription))
        continue;
}

int det_subscription_finish_end(struct det_subscription *subscription, det_time deadline)
{
    const struct det_subscriber *subscriber = &subscription->subscriber;
    int r;

    if (subscription->delivery == DET_DELIVER_THREAD)
        return finish_thread(subscription, deadline);
    r = wait_for_call(subscription, deadline);
    if (r < 0)
        return DET_ERR_TIMEOUT;
    if (subscription->delivery == DET_DELIVER_LOOP)
        drain_until(subscription, deadline);
    else if (subscriber->on_turn)
        subscription->last_turn = subscriber->on_turn(subscriber->user);
    end(subscription);
    return 0;
}

void det_subscription_leave(struct det_subscription *subscription)
{
    det_mutex_lock(subscription->world, subscription->mutex);
    subscription->is_left = true;
    det_mutex_unlock(subscription->world, subscription->mutex);
    det_subscription_release(subscription);
}

struct det_subscription_counts det_subscription_counts(const struct det_subscription *subscription)
{
    return (struct det_subscription_counts){
        .delivered = atomic_load_explicit(&subscription->delivered, memory_order_relaxed),
        .dropped = atomic_load_explicit(&subscription->dropped, memory_order_relaxed),
        .lagged = atomic_load_explicit(&subscription->lagged, memory_order_relaxed),
        .failed = atomic_load_explicit(&subscription->failed, memory_order_relaxed),
        .wakes = atomic_load_explicit(&subscription->wakes, memory_order_relaxed),
    };
}
