/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* subscription.h - one subscriber of a bus: its queue, its thread, its end.
 *
 *     LIVE ---> DRAINING ---> ENDED          each move is forward and goes through one function
 *        \         |           ^
 *         \        v           |
 *          +--> DROPPING ------+             LIVE, DRAINING: the queue is delivered
 *
 * Callbacks run on the thread of a THREAD subscription until it is DROPPING; on the loop while the
 * subscription is LIVE; and on the thread that ends a LOOP or LOSSLESS one, after that. */
#ifndef DET_TASK_SUBSCRIPTION_H
#define DET_TASK_SUBSCRIPTION_H

#include <stdatomic.h>

#include <detent/bus.h>

#include "base/list.h"
#include "task/bus_ring.h"
#include "task/event_queue.h"

enum det_subscription_state {
    DET_SUBSCRIPTION_LIVE,
    DET_SUBSCRIPTION_DRAINING,
    DET_SUBSCRIPTION_DROPPING,
    DET_SUBSCRIPTION_ENDED,
};

/* Failures of a thread's callback that wait for the loop; further ones replace the last. */
#define DET_SUBSCRIPTION_FAILURES 16

struct det_subscription_failure {
    int code;
    uint64_t count;
};

struct det_subscription_failures {
    unsigned count;
    struct det_subscription_failure all[DET_SUBSCRIPTION_FAILURES];
};

/* The publisher's side of a queue of sequences. */
struct det_sequence_queue {
    uint32_t capacity;
    uint64_t attention; /* threshold for a closer check by the publisher: half of the capacity */
    uint64_t mask;
    uint64_t *sequences;
    _Atomic(uint64_t) tail;
    uint64_t head_seen;
};

struct det_subscription {
    /* Fields that the publisher reads in each publish, and writes alone. */
    enum det_delivery delivery;
    bool is_lossless; /* uses `kept` instead of `queue` */
    struct det_sequence_queue queue;
    uint64_t lost; /* since the last SUBSCRIBER_OVERFLOWED about it */
    _Atomic(uint64_t) dropped, wakes;
    int failure;      /* LOSSLESS: of the event under publication */
    bool turn_failed; /* the last turn failed; reported again only after a successful one */
    int last_turn;    /* return value of the last turn at its end */
    char unused[64];  /* keeps the two sides in different cache lines */

    /* Fields that the reader writes. */
    _Atomic(uint64_t) head;
    _Atomic(uint64_t) delivered, lagged, failed;
    atomic_bool is_asleep;  /* set by the thread, cleared by its waker */
    atomic_bool is_calling; /* user code runs, or is about to */
    struct det_task_event event;

    atomic_bool has_lost; /* `lost` is not 0: the thread notifies the loop when there is room */
    _Atomic(int) state;   /* enum det_subscription_state */
    atomic_uint references;
    struct det_subscriber subscriber; /* its name is below */
    char name[DET_TASK_NAME_MAX + 1];
    struct det_bus *bus; /* referenced */
    struct det_bus_ring *ring;
    struct det_world *world;
    const struct det_allocator *allocator;
    unsigned slot;
    struct det_list node; /* in a list of the bus, under the bus's mutex */
    struct det_thread *thread;

    struct det_mutex *mutex; /* for the following fields, and for each change of `state` */
    struct det_condition *changed;
    bool is_left;            /* detached: the loop may be gone */
    atomic_bool is_pressing; /* `capacity` events are kept: new work waits */
    struct det_event_queue kept;
    _Atomic(const void *) reader; /* the subscriber's thread; NULL: not yet */
    struct det_subscription_failures failures;
};

/* With one reference for the bus; a THREAD subscription runs and has one more. */
DET_MUST_CHECK int det_subscription_open(
    struct det_bus *bus, struct det_bus_ring *ring, const struct det_allocator *allocator,
    const struct det_subscriber *subscriber, struct det_subscription **ret);
void det_subscription_release(struct det_subscription *subscription);

/* Called by the publisher. */

static inline void det_subscription_push(
    struct det_subscription *subscription, uint64_t tail, uint64_t sequence)
{
    subscription->queue.sequences[tail & subscription->queue.mask] = sequence;
    atomic_store_explicit(&subscription->queue.tail, tail + 1, memory_order_release);
}

/* For a queue that seems half full. */
void det_subscription_offer_more(
    struct det_subscription *subscription, uint64_t sequence, bool is_diagnostic);

/* Puts the sequence into the queue, or counts it as dropped. */
static inline void det_subscription_offer(
    struct det_subscription *subscription, uint64_t sequence, bool is_diagnostic)
{
    uint64_t tail = atomic_load_explicit(&subscription->queue.tail, memory_order_relaxed);

    if (tail - subscription->queue.head_seen < subscription->queue.attention)
        det_subscription_push(subscription, tail, sequence);
    else
        det_subscription_offer_more(subscription, sequence, is_diagnostic);
}

/* Lossless, except DET_DELIVER_LOSSLESS: keeps a copy. */
void det_subscription_keep(
    struct det_subscription *subscription, const struct det_task_event *event, bool is_diagnostic);
/* LOSSLESS: calls back at once. Stores an error in `failure`. */
void det_subscription_call(
    struct det_subscription *subscription, const struct det_task_event *event, bool is_diagnostic);
/* LOSSLESS: called after a turn. 0, or the callback's error. */
int det_subscription_turn(struct det_subscription *subscription);
bool det_subscription_has_room(const struct det_subscription *subscription);
/* Wakes the thread if it sleeps and there is work. */
void det_subscription_wake(struct det_subscription *subscription);
/* LOOP: delivers the events queued now; later ones stay. */
void det_subscription_drain(struct det_subscription *subscription);
/* Takes the oldest unpublished failure; false: none. */
bool det_subscription_take_failure(
    struct det_subscription *subscription, struct det_subscription_failure *ret);

/* The end. */

/* Refuses new events from now on; `is_dropping`: queued ones are dropped, too. */
void det_subscription_begin_end(struct det_subscription *subscription, bool is_dropping);
/* Waits until everything is delivered; at the deadline drops the rest. 0: ended, on_close() was
 * called, the thread was joined. DET_ERR_TIMEOUT: a callback still runs; may be called again. */
DET_MUST_CHECK int det_subscription_finish_end(
    struct det_subscription *subscription, det_time deadline);
/* Detaches a subscription that did not finish: it never accesses the loop again. */
void det_subscription_leave(struct det_subscription *subscription);

/* Internal functions. */

/* True if user code may be called, which is the case up to the state `last`;
 * det_subscription_exit() must follow. */
DET_MUST_CHECK bool det_subscription_enter(
    struct det_subscription *subscription, enum det_subscription_state last);
void det_subscription_exit(struct det_subscription *subscription);
/* Calls back with the next available event, and before it with the report of lost ones. False: the
 * queue is empty. */
bool det_subscription_next(struct det_subscription *subscription);
/* Takes the next sequence out of the queue, which must not be empty; its room is free from now
 * on. */
uint64_t det_subscription_take(struct det_subscription *subscription);
/* Takes the next event of a lossless subscription. */
void det_subscription_take_kept(struct det_subscription *subscription, struct det_task_event *ret);
/* Ends its pressure on new work, if any. Under the mutex. */
void det_subscription_relieve(struct det_subscription *subscription);

static inline enum det_subscription_state det_subscription_state(
    const struct det_subscription *subscription)
{
    return (enum det_subscription_state)atomic_load(&subscription->state);
}

static inline bool det_subscription_is_empty(const struct det_subscription *subscription)
{
    return atomic_load_explicit(&subscription->head, memory_order_relaxed) ==
           atomic_load_explicit(&subscription->queue.tail, memory_order_acquire);
}

/* For a counter with one writer at a time; other threads only read it. */
static inline void det_subscription_add(_Atomic(uint64_t) *counter, uint64_t count)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, value + count, memory_order_relaxed);
}

/* Functions of the bus. */

/* Counts events that subscribers will not get; any thread. */
void det_bus_count_lost(struct det_bus *bus, uint64_t count);
/* Counts a subscriber that cannot keep up, or one that has caught up. */
void det_bus_press(struct det_bus *bus, bool is_pressed);
/* Requests a turn of the bus; any thread. */
void det_bus_want_turn(struct det_bus *bus);
void det_bus_keep(struct det_bus *bus);
void det_bus_release(struct det_bus *bus);
/* True for diagnostics of the bus itself, whose loss or failure causes no further event. */
bool det_task_event_is_diagnostic(enum det_task_event_kind kind);

#endif
