/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* subscription.h - one subscriber of a bus: its queue, its thread, its end.
 *
 *     LIVE ---> DRAINING ---> ENDED          each move is forward and goes through one function
 *        \         |           ^
 *         \        v           |
 *          +--> DROPPING ------+             LIVE, DRAINING: the queue is delivered
 *
 * Who may call back: the thread of a THREAD subscription until it is DROPPING; the loop while the
 * subscription is LIVE; whoever ends a LOOP or LOSSLESS one, after that. */
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

/* Failures of a thread's callback that wait for the loop; those beyond go into the last one. */
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
    uint64_t attention; /* from this many on the publisher looks more closely: half of them */
    uint64_t mask;
    uint64_t *sequences;
    _Atomic(uint64_t) tail;
    uint64_t head_seen;
};

struct det_subscription {
    /* What the publisher looks at in each publish, and writes alone. */
    enum det_delivery delivery;
    bool is_lossless; /* `kept` instead of `queue` */
    struct det_sequence_queue queue;
    uint64_t lost; /* since the last SUBSCRIBER_OVERFLOWED about it */
    _Atomic(uint64_t) dropped, wakes;
    int failure;      /* LOSSLESS: of the event that is being published */
    bool turn_failed; /* the last turn; that is told again only after one that did not */
    int last_turn;    /* what the turn at its end returned */
    char unused[64];  /* the two sides do not share a line of memory */

    /* What whoever calls back writes. */
    _Atomic(uint64_t) head;
    _Atomic(uint64_t) delivered, lagged, failed;
    atomic_bool is_asleep;  /* set by the thread, taken back by who wakes it */
    atomic_bool is_calling; /* user code runs, or is about to */
    struct det_task_event event;

    atomic_bool has_lost; /* `lost` is not 0: the thread tells the loop when it has made room */
    _Atomic(int) state;   /* enum det_subscription_state */
    atomic_uint references;
    struct det_subscriber subscriber; /* its name is below */
    char name[DET_TASK_NAME_MAX + 1];
    struct det_bus *bus; /* which it keeps */
    struct det_bus_ring *ring;
    struct det_world *world;
    const struct det_allocator *allocator;
    unsigned slot;
    struct det_list node; /* in a list of the bus, under the bus's mutex */
    struct det_thread *thread;

    struct det_mutex *mutex; /* for what follows, and for each change of `state` */
    struct det_condition *changed;
    bool is_left;            /* behind: the loop may be gone */
    atomic_bool is_pressing; /* as many are kept as it may have: new work waits */
    struct det_event_queue kept;
    _Atomic(const void *) reader; /* who calls back on a thread of its own; NULL: not yet */
    struct det_subscription_failures failures;
};

/* With one reference for the bus; a THREAD subscription runs and has one more. */
DET_MUST_CHECK int det_subscription_open(
    struct det_bus *bus, struct det_bus_ring *ring, const struct det_allocator *allocator,
    const struct det_subscriber *subscriber, struct det_subscription **ret);
void det_subscription_release(struct det_subscription *subscription);

/* The publisher's side. */

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

/* Lossless, but not by LOSSLESS delivery: keeps a copy. */
void det_subscription_keep(
    struct det_subscription *subscription, const struct det_task_event *event, bool is_diagnostic);
/* LOSSLESS: calls back at once. A failure is left in `failure`. */
void det_subscription_call(
    struct det_subscription *subscription, const struct det_task_event *event, bool is_diagnostic);
/* LOSSLESS: after a turn. 0, or the callback's error. */
int det_subscription_turn(struct det_subscription *subscription);
bool det_subscription_has_room(const struct det_subscription *subscription);
/* Wakes the thread if it sleeps and there is something to do. */
void det_subscription_wake(struct det_subscription *subscription);
/* LOOP: delivers what is queued now; what is queued meanwhile stays. */
void det_subscription_drain(struct det_subscription *subscription);
/* Takes the oldest failure that was not published yet; false when there is none. */
bool det_subscription_take_failure(
    struct det_subscription *subscription, struct det_subscription_failure *ret);

/* The end. */

/* No new events from here on; `is_dropping`: the queued ones are not delivered either. */
void det_subscription_begin_end(struct det_subscription *subscription, bool is_dropping);
/* Waits until all is delivered, at the deadline drops the rest. 0: it has ended, on_close() was
 * called, its thread was joined. DET_ERR_TIMEOUT: a callback still runs; may be called again. */
DET_MUST_CHECK int det_subscription_finish_end(
    struct det_subscription *subscription, det_time deadline);
/* For one that did not finish: it never touches the loop again. */
void det_subscription_leave(struct det_subscription *subscription);

/* Its parts among themselves. */

/* Whether user code may be called: yes up to the state `last`, and then det_subscription_exit()
 * must follow. */
DET_MUST_CHECK bool det_subscription_enter(
    struct det_subscription *subscription, enum det_subscription_state last);
void det_subscription_exit(struct det_subscription *subscription);
/* Calls back with the next event that is still there, and before it with the news of those that are
 * not. False when the queue is empty. */
bool det_subscription_next(struct det_subscription *subscription);
/* Takes the next sequence out of the queue, which has one; its room is free from here on. */
uint64_t det_subscription_take(struct det_subscription *subscription);
/* The same of a lossless one, with its event. */
void det_subscription_take_kept(struct det_subscription *subscription, struct det_task_event *ret);
/* It does not press any more, if it did. Under the mutex. */
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

/* For a counter that has one writer at a time; others only look. */
static inline void det_subscription_add(_Atomic(uint64_t) *counter, uint64_t count)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, value + count, memory_order_relaxed);
}

/* The bus's. */

/* Counts those that subscribers will not see; from any thread. */
void det_bus_count_lost(struct det_bus *bus, uint64_t count);
/* One subscriber more, or less, that cannot keep up. */
void det_bus_press(struct det_bus *bus, bool is_pressed);
/* Asks for a turn of the bus; from any thread. */
void det_bus_want_turn(struct det_bus *bus);
void det_bus_keep(struct det_bus *bus);
void det_bus_release(struct det_bus *bus);
/* Diagnostics of the bus itself, whose loss or failure causes no further one. */
bool det_task_event_is_diagnostic(enum det_task_event_kind kind);

#endif
