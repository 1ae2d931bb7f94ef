/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* subscription_call.c - from the queue of a subscription to its callbacks, and their failures.
 *
 * Invariants
 *   1. User code is called with `is_calling` set and the state read after that; the ending thread
 *      sets the state and then reads `is_calling`. So at DROPPING either the end knows about the
 *      call or the call does not happen.
 *   2. Each sequence taken out of the queue is delivered or lagged, and counted once. */
#include "base/assert.h"
#include "base/text.h"
#include "os/os.h"
#include "task/subscription.h"

void det_subscription_exit(struct det_subscription *subscription)
{
    atomic_store(&subscription->is_calling, false);
    det_thread_preempt(subscription->world);
    if (det_subscription_state(subscription) == DET_SUBSCRIPTION_LIVE)
        return;
    det_mutex_lock(subscription->world, subscription->mutex);
    det_condition_broadcast(subscription->world, subscription->changed);
    det_mutex_unlock(subscription->world, subscription->mutex);
}

bool det_subscription_enter(struct det_subscription *subscription, enum det_subscription_state last)
{
    atomic_store(&subscription->is_calling, true);
    det_thread_preempt(subscription->world);
    if (det_subscription_state(subscription) <= last)
        return true;
    det_subscription_exit(subscription);
    return false;
}

/* A thread publishes through the loop, which takes failures from here. */
static void queue_failure(struct det_subscription *subscription, int code)
{
    unsigned count;

    det_mutex_lock(subscription->world, subscription->mutex);
    count = subscription->failures.count;
    if (count < DET_SUBSCRIPTION_FAILURES)
        subscription->failures.all[subscription->failures.count++] =
            (struct det_subscription_failure){ code, 1 };
    else
        subscription->failures.all[count - 1].count++;
    if (!subscription->is_left)
        det_bus_want_turn(subscription->bus);
    det_mutex_unlock(subscription->world, subscription->mutex);
}

bool det_subscription_take_failure(
    struct det_subscription *subscription, struct det_subscription_failure *ret)
{
    bool is_there;

    det_mutex_lock(subscription->world, subscription->mutex);
    is_there = subscription->failures.count > 0;
    if (is_there) {
        *ret = subscription->failures.all[0];
        subscription->failures.count--;
        for (unsigned i = 0; i < subscription->failures.count; i++)
            subscription->failures.all[i] = subscription->failures.all[i + 1];
    }
    det_mutex_unlock(subscription->world, subscription->mutex);
    return is_there;
}

static void call(struct det_subscription *subscription, const struct det_task_event *event)
{
    const struct det_subscriber *subscriber = &subscription->subscriber;
    int r;

    r = subscriber->on_event(subscriber->user, event);
    if (r >= 0)
        return;
    det_subscription_add(&subscription->failed, 1);
    if (!det_task_event_is_diagnostic(event->kind))
        queue_failure(subscription, r);
}

/* Reports to a reader that was too slow, and to it alone; with the sequence of the last event that
 * it missed. */
static void call_lagged(struct det_subscription *subscription, uint64_t sequence, uint64_t count)
{
    struct det_task_event event = {
        .sequence = sequence,
        .at = det_world_now(subscription->world, DET_CLOCK_WALL),
        .kind = DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED,
        .count = count,
        .reason = "lagged",
    };

    det_subscription_add(&subscription->lagged, count);
    det_bus_count_lost(subscription->bus, count);
    (void)det_text_copy(event.name, sizeof event.name, subscription->name);
    call(subscription, &event);
}

uint64_t det_subscription_take(struct det_subscription *subscription)
{
    uint64_t head = atomic_load_explicit(&subscription->head, memory_order_relaxed);
    uint64_t sequence = subscription->queue.sequences[head & subscription->queue.mask];

    atomic_store_explicit(&subscription->head, head + 1, memory_order_release);
    return sequence;
}

void det_subscription_take_kept(struct det_subscription *subscription, struct det_task_event *ret)
{
    uint64_t head = atomic_load_explicit(&subscription->head, memory_order_relaxed) + 1;
    bool is_there;

    det_mutex_lock(subscription->world, subscription->mutex);
    is_there = det_event_queue_take(&subscription->kept, ret);
    det_assert(is_there);
    atomic_store_explicit(&subscription->head, head, memory_order_release);
    if (atomic_load_explicit(&subscription->queue.tail, memory_order_relaxed) - head <=
        subscription->queue.capacity / 2)
        det_subscription_relieve(subscription);
    det_mutex_unlock(subscription->world, subscription->mutex);
}

static bool call_kept(struct det_subscription *subscription)
{
    if (det_subscription_is_empty(subscription))
        return false;
    det_subscription_take_kept(subscription, &subscription->event);
    det_subscription_add(&subscription->delivered, 1);
    call(subscription, &subscription->event);
    return true;
}

bool det_subscription_next(struct det_subscription *subscription)
{
    struct det_task_event *event = &subscription->event;
    uint64_t sequence = 0, lost = 0;
    bool is_there = false;

    if (subscription->is_lossless)
        return call_kept(subscription);
    while (!is_there && !det_subscription_is_empty(subscription)) {
        lost += sequence > 0;
        sequence = det_subscription_take(subscription);
        is_there = det_bus_ring_read(subscription->ring, sequence, event);
    }
    if (sequence == 0)
        return false;
    lost += !is_there;
    if (lost > 0)
        call_lagged(subscription, is_there ? event->sequence - 1 : sequence, lost);
    if (is_there) {
        det_subscription_add(&subscription->delivered, 1);
        call(subscription, event);
    }
    return true;
}

void det_subscription_call(
    struct det_subscription *subscription, const struct det_task_event *event, bool is_diagnostic)
{
    const struct det_subscriber *subscriber = &subscription->subscriber;
    int r;

    if (!det_subscription_enter(subscription, DET_SUBSCRIPTION_LIVE))
        return;
    r = subscriber->on_event(subscriber->user, event);
    det_subscription_add(&subscription->delivered, 1);
    if (r < 0) {
        det_subscription_add(&subscription->failed, 1);
        subscription->failure = is_diagnostic ? 0 : r;
    }
    det_subscription_exit(subscription);
}

int det_subscription_turn(struct det_subscription *subscription)
{
    const struct det_subscriber *subscriber = &subscription->subscriber;
    int r;

    if (!subscriber->on_turn || !det_subscription_enter(subscription, DET_SUBSCRIPTION_LIVE))
        return 0;
    r = subscriber->on_turn(subscriber->user);
    det_subscription_exit(subscription);
    return r;
}

void det_subscription_drain(struct det_subscription *subscription)
{
    uint64_t tail = atomic_load_explicit(&subscription->queue.tail, memory_order_relaxed);

    if (det_subscription_is_empty(subscription) ||
        !det_subscription_enter(subscription, DET_SUBSCRIPTION_LIVE))
        return;
    det_subscription_add(&subscription->wakes, 1);
    while (atomic_load_explicit(&subscription->head, memory_order_relaxed) < tail)
        (void)det_subscription_next(subscription);
    det_subscription_exit(subscription);
}
