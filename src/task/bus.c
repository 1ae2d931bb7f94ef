/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus.c - the bus: publishing, the turn after it, subscribing and the end.
 *
 *     publish: ring, each queue, LOSSLESS callbacks;     turn, posted to the loop by the first
 *              requests a turn                           publish since the last one:
 *                                                          failures and losses become events,
 *                                                          threads are woken, on_turn(),
 *                                                          queues of LOOP subscribers are drained
 *
 * Invariants
 *   1. Only the loop's thread publishes, so sequence, place in the ring and order in each queue are
 *      the same order.
 *   2. `slots` holds the subscriptions that get events. Any thread changes it under `mutex`, and
 *      the loop reads it without; a subscription that has left its slot is freed in a turn or at
 *      the close, when the loop does not use it.
 *   3. `live` has every subscription that was not joined; `retired` those that were joined and are
 *      not freed yet. Both change under `mutex`.
 *   4. The last reference frees the memory: the owner's, that of each subscription, and one for the
 *      turn while it is posted. */
#include <detent/driver/loop.h>

#include "task/bus.h"

#include <stdatomic.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "base/text.h"
#include "os/os.h"
#include "task/bus_ring.h"
#include "task/subscription.h"

#define CAPACITY_DEFAULT 16384

struct det_bus {
    struct det_bus_ring ring;
    struct det_world *world;
    struct det_loop *loop;
    const struct det_allocator *allocator;
    _Atomic(struct det_subscription *) slots[DET_SUBSCRIBERS_MAX];
    atomic_uint slots_count; /* one past the highest slot ever used */
    struct det_post turn;
    atomic_bool turn_wanted; /* the turn is posted */
    atomic_uint references;
    atomic_bool is_closed;
    bool is_publishing; /* a LOSSLESS callback runs: it must not publish */
    bool is_turning;
    uint64_t turn_sequence; /* the newest event at the last turn of LOSSLESS subscribers */
    uint64_t seen_sequence; /* the newest event at the last drain of the loop's queues */
    _Atomic(uint64_t) lost; /* by all subscribers */
    atomic_uint pressing;   /* number of subscribers that cannot keep up */
    bool was_pressed;       /* in the last turn */
    void (*on_relief)(void *user);
    void *user;

    struct det_mutex *mutex;
    struct det_condition *answered; /* the loop has executed a request of the thread that ends the
                                     * bus */
    bool is_ended;
    struct det_list live, retired;
};

void det_bus_keep(struct det_bus *bus)
{
    atomic_fetch_add(&bus->references, 1);
}

void det_bus_release(struct det_bus *bus)
{
    if (atomic_fetch_sub(&bus->references, 1) > 1)
        return;
    det_condition_close(bus->world, bus->answered);
    det_mutex_close(bus->world, bus->mutex);
    det_bus_ring_deinit(&bus->ring);
    DET_DELETE(bus->allocator, bus);
}

void det_bus_want_turn(struct det_bus *bus)
{
    if (atomic_load_explicit(&bus->turn_wanted, memory_order_relaxed) ||
        atomic_exchange(&bus->turn_wanted, true))
        return;
    det_bus_keep(bus);
    det_loop_post(bus->loop, &bus->turn);
}

void det_bus_count_lost(struct det_bus *bus, uint64_t count)
{
    atomic_fetch_add_explicit(&bus->lost, count, memory_order_relaxed);
}

uint64_t det_bus_lost(const struct det_bus *bus)
{
    return atomic_load_explicit(&bus->lost, memory_order_relaxed);
}

/* The turn after it reports to the waiting threads. */
void det_bus_press(struct det_bus *bus, bool is_pressed)
{
    if (is_pressed) {
        atomic_fetch_add(&bus->pressing, 1);
        bus->was_pressed = true;
    } else if (atomic_fetch_sub(&bus->pressing, 1) == 1) {
        det_bus_want_turn(bus);
    }
}

bool det_bus_is_pressed(const struct det_bus *bus)
{
    return atomic_load_explicit(&bus->pressing, memory_order_relaxed) > 0;
}

void det_bus_set_relief(struct det_bus *bus, void (*on_relief)(void *user), void *user)
{
    bus->on_relief = on_relief;
    bus->user = user;
}

static struct det_subscription *subscription_at(struct det_bus *bus, unsigned slot)
{
    return atomic_load_explicit(&bus->slots[slot], memory_order_acquire);
}

static unsigned slots_count(const struct det_bus *bus)
{
    return atomic_load_explicit(&bus->slots_count, memory_order_acquire);
}

/* LOSSLESS subscribers get the event itself. True if a callback failed. */
static bool call_lossless(
    struct det_bus *bus, struct det_subscription *subscription, const struct det_task_event *event,
    bool is_diagnostic)
{
    bus->is_publishing = true;
    det_subscription_call(subscription, event, is_diagnostic);
    bus->is_publishing = false;
    return subscription->failure < 0;
}

static bool hand_out(struct det_bus *bus, struct det_task_event *event)
{
    bool is_diagnostic = det_task_event_is_diagnostic(event->kind), has_failed = false;
    unsigned count = slots_count(bus);

    det_assert(!bus->is_publishing);
    det_bus_ring_write(&bus->ring, event);
    for (unsigned i = 0; i < count; i++) {
        struct det_subscription *subscription = subscription_at(bus, i);

        if (!subscription)
            continue;
        if (subscription->is_lossless)
            det_subscription_keep(subscription, event, is_diagnostic);
        else if (subscription->delivery != DET_DELIVER_LOSSLESS)
            det_subscription_offer(subscription, event->sequence, is_diagnostic);
        else if (call_lossless(bus, subscription, event, is_diagnostic))
            has_failed = true;
    }
    if (count > 0)
        det_bus_want_turn(bus);
    else
        bus->seen_sequence = event->sequence;
    return has_failed;
}

static void report(
    struct det_bus *bus, const struct det_subscription *subscription, enum det_task_event_kind kind,
    const char *reason, uint64_t count)
{
    struct det_task_event event = {
        .at = det_world_now(bus->world, DET_CLOCK_WALL),
        .kind = kind,
        .count = count,
    };

    (void)det_text_copy(event.name, sizeof event.name, subscription->name);
    (void)det_text_copy(event.reason, sizeof event.reason, reason);
    (void)hand_out(bus, &event);
}

/* After all subscribers got the event, so that each gets both in the same order. */
static void report_lossless(struct det_bus *bus)
{
    for (unsigned i = 0; i < slots_count(bus); i++) {
        struct det_subscription *subscription = subscription_at(bus, i);
        int code = subscription ? subscription->failure : 0;

        if (code == 0)
            continue;
        subscription->failure = 0;
        report(bus, subscription, DET_TASK_EVENT_SUBSCRIBER_FAILED, det_error_text(code), 1);
    }
}

void det_bus_publish(struct det_bus *bus, struct det_task_event *event)
{
    if (hand_out(bus, event))
        report_lossless(bus);
}

static void report_failures(struct det_bus *bus, struct det_subscription *subscription)
{
    struct det_subscription_failure failure;

    while (det_subscription_take_failure(subscription, &failure))
        report(
            bus, subscription, DET_TASK_EVENT_SUBSCRIBER_FAILED, det_error_text(failure.code),
            failure.count);
}

/* Losses are reported once there is room again, or at the end. */
static void report_losses(
    struct det_bus *bus, struct det_subscription *subscription, bool is_the_end)
{
    uint64_t lost = subscription->lost;

    if (lost == 0 || (!is_the_end && !det_subscription_has_room(subscription)))
        return;
    subscription->lost = 0;
    atomic_store(&subscription->has_lost, false);
    report(bus, subscription, DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED, "queue full", lost);
}

static void report_all(struct det_bus *bus, bool is_the_end)
{
    for (unsigned i = 0; i < slots_count(bus); i++) {
        struct det_subscription *subscription = subscription_at(bus, i);

        if (!subscription)
            continue;
        report_failures(bus, subscription);
        report_losses(bus, subscription, is_the_end);
    }
}

static void wake_threads(struct det_bus *bus)
{
    /* The queues are filled before this fence, and the sleep flags of their readers are read after
     * it. */
    atomic_thread_fence(memory_order_seq_cst);
    for (unsigned i = 0; i < slots_count(bus); i++) {
        struct det_subscription *subscription = subscription_at(bus, i);

        if (subscription && subscription->delivery == DET_DELIVER_THREAD)
            det_subscription_wake(subscription);
    }
}

/* A failure is reported once, not in each turn, since the report causes a turn. */
static void end_turn_of(struct det_bus *bus, struct det_subscription *subscription)
{
    int r;

    r = det_subscription_turn(subscription);
    if (r < 0 && !subscription->turn_failed)
        report(bus, subscription, DET_TASK_EVENT_RUNTIME_FAILURE, det_error_text(r), 0);
    subscription->turn_failed = r < 0;
}

static void end_turns(struct det_bus *bus)
{
    uint64_t newest = det_bus_newest(bus);

    if (newest == bus->turn_sequence)
        return;
    bus->turn_sequence = newest;
    for (unsigned i = 0; i < slots_count(bus); i++) {
        struct det_subscription *subscription = subscription_at(bus, i);

        if (subscription && subscription->delivery == DET_DELIVER_LOSSLESS)
            end_turn_of(bus, subscription);
    }
}

static void drain_loop_queues(struct det_bus *bus)
{
    for (unsigned i = 0; i < slots_count(bus); i++) {
        struct det_subscription *subscription = subscription_at(bus, i);

        if (!subscription || subscription->delivery != DET_DELIVER_LOOP)
            continue;
        det_subscription_drain(subscription);
        if (subscription->lost > 0)
            det_bus_want_turn(bus);
    }
}

/* Resumes work that waits for subscribers, once they have caught up. */
static void look_pressed(struct det_bus *bus)
{
    bool is_pressed = det_bus_is_pressed(bus);

    if (bus->was_pressed && !is_pressed && bus->on_relief)
        bus->on_relief(bus->user);
    bus->was_pressed = is_pressed;
}

static void free_retired(struct det_bus *bus)
{
    struct det_list retired, *node;

    det_list_init(&retired);
    det_mutex_lock(bus->world, bus->mutex);
    while ((node = det_list_take(&bus->retired)))
        det_list_append(&retired, node);
    det_mutex_unlock(bus->world, bus->mutex);
    while ((node = det_list_take(&retired)))
        det_subscription_release(DET_CONTAINER(node, struct det_subscription, node));
}

static void run_turn(void *argument)
{
    struct det_bus *bus = argument;

    atomic_store(&bus->turn_wanted, false);
    if (!atomic_load(&bus->is_closed)) {
        bus->is_turning = true;
        /* Subscriptions that ended with the bus stay readable until it is closed. */
        if (!bus->is_ended)
            free_retired(bus);
        report_all(bus, false);
        wake_threads(bus);
        end_turns(bus);
        drain_loop_queues(bus);
        bus->seen_sequence = det_bus_newest(bus);
        look_pressed(bus);
        bus->is_turning = false;
    }
    det_bus_release(bus);
}

int det_bus_open(
    struct det_loop *loop, const struct det_allocator *allocator, uint32_t capacity,
    struct det_bus **ret)
{
    struct det_world *world = det_loop_world(loop);
    struct det_bus *bus;
    int r;

    det_assert(capacity <= DET_BUS_CAPACITY_MAX);
    bus = DET_NEW(allocator, struct det_bus);
    if (!bus)
        return DET_ERR_NO_MEMORY;
    bus->world = world;
    bus->loop = loop;
    bus->allocator = allocator;
    bus->turn = (struct det_post){ .run = run_turn, .argument = bus };
    atomic_init(&bus->references, 1);
    det_list_init(&bus->live);
    det_list_init(&bus->retired);
    r = det_bus_ring_init(&bus->ring, world, allocator, capacity ? capacity : CAPACITY_DEFAULT);
    if (r == 0)
        r = det_mutex_open(world, &bus->mutex);
    if (r == 0)
        r = det_condition_open(world, &bus->answered);
    if (r < 0) {
        det_bus_release(bus);
        return r;
    }
    *ret = bus;
    return 0;
}

static int check(const struct det_subscriber *subscriber, struct det_error *reterr)
{
    if (!subscriber->on_event)
        return det_error_set(reterr, DET_ERR_INVALID, "a subscriber needs on_event");
    if (subscriber->capacity > DET_SUBSCRIBER_CAPACITY_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "a queue of %u events; at most %u can be queued",
            subscriber->capacity, DET_SUBSCRIBER_CAPACITY_MAX);
    if ((unsigned)subscriber->delivery > DET_DELIVER_LOSSLESS)
        return det_error_set(reterr, DET_ERR_INVALID, "unknown delivery");
    return det_reserved_check(subscriber->reserved, "a subscriber", reterr);
}

/* From now on the subscription gets events. */
static int take_slot(struct det_bus *bus, struct det_subscription *subscription)
{
    unsigned slot = 0;

    if (bus->is_ended)
        return DET_ERR_CLOSED;
    while (slot < DET_SUBSCRIBERS_MAX && subscription_at(bus, slot))
        slot++;
    if (slot == DET_SUBSCRIBERS_MAX)
        return DET_ERR_LIMIT;
    subscription->slot = slot;
    det_list_append(&bus->live, &subscription->node);
    atomic_store_explicit(&bus->slots[slot], subscription, memory_order_release);
    if (slot >= slots_count(bus))
        atomic_store_explicit(&bus->slots_count, slot + 1, memory_order_release);
    return 0;
}

/* Frees a subscription that never got an event: no other code uses it. */
static void take_back(struct det_subscription *subscription)
{
    int r;

    subscription->subscriber.on_close = NULL;
    det_subscription_begin_end(subscription, true);
    r = det_subscription_finish_end(subscription, DET_NEVER);
    det_assert(r == 0);
    det_subscription_release(subscription);
}

int det_bus_subscribe(
    struct det_bus *bus, const struct det_subscriber *subscriber, struct det_subscription **ret,
    struct det_error *reterr)
{
    struct det_subscription *subscription;
    int r;

    r = check(subscriber, reterr);
    if (r < 0)
        return r;
    r = det_subscription_open(bus, &bus->ring, bus->allocator, subscriber, &subscription);
    if (r < 0)
        return det_error_set(reterr, r, "cannot subscribe: %s", det_error_text(r));
    det_mutex_lock(bus->world, bus->mutex);
    r = take_slot(bus, subscription);
    det_mutex_unlock(bus->world, bus->mutex);
    if (r < 0) {
        take_back(subscription);
        return det_error_set(
            reterr, r,
            r == DET_ERR_CLOSED ? "the bus has ended"
                                : "the bus has the maximum number of subscribers");
    }
    if (ret)
        *ret = subscription;
    return 0;
}

static void leave_slot(struct det_bus *bus, struct det_subscription *subscription)
{
    det_mutex_lock(bus->world, bus->mutex);
    if (subscription_at(bus, subscription->slot) == subscription)
        atomic_store(&bus->slots[subscription->slot], NULL);
    det_mutex_unlock(bus->world, bus->mutex);
    det_subscription_relieve(subscription);
}

/* The loop may still use the subscription: the next turn frees it. */
static void retire(struct det_bus *bus, struct det_subscription *subscription)
{
    det_mutex_lock(bus->world, bus->mutex);
    det_list_remove(&subscription->node);
    det_list_append(&bus->retired, &subscription->node);
    det_mutex_unlock(bus->world, bus->mutex);
}

int det_subscription_stop(struct det_subscription *subscription, det_time deadline)
{
    struct det_bus *bus = subscription->bus;
    int r;

    /* The subscription ended with the bus. */
    if (det_subscription_state(subscription) == DET_SUBSCRIPTION_ENDED && !subscription->thread)
        return subscription->last_turn;
    leave_slot(bus, subscription);
    det_subscription_begin_end(subscription, deadline == 0);
    r = det_subscription_finish_end(subscription, deadline);
    if (r < 0)
        return r;
    r = subscription->last_turn;
    retire(bus, subscription);
    det_bus_want_turn(bus);
    return r;
}

/* The end of all subscriptions, in three parts: the loop starts it, the calling thread waits for
 * the subscribers' threads, the loop does the rest. So only the loop publishes, and it may publish
 * meanwhile, for example the end of a stuck task. */
struct bus_end {
    struct det_bus *bus;
    det_time deadline;
    int left; /* callbacks that still run */
    void (*run)(struct bus_end *end);
    bool is_answered;
};

static void begin_end(struct bus_end *end, bool is_lossless)
{
    struct det_bus *bus = end->bus;

    for (struct det_list *node = bus->live.next; node != &bus->live; node = node->next) {
        struct det_subscription *one = DET_CONTAINER(node, struct det_subscription, node);

        if ((one->delivery == DET_DELIVER_LOSSLESS) != is_lossless)
            continue;
        det_subscription_begin_end(one, end->deadline == 0);
        leave_slot(bus, one);
    }
}

static void begin_on_loop(struct bus_end *end)
{
    struct det_bus *bus = end->bus;

    det_assert(!bus->is_publishing && !bus->is_turning);
    det_mutex_lock(bus->world, bus->mutex);
    bus->is_ended = true;
    det_mutex_unlock(bus->world, bus->mutex);
    report_all(bus, true);
    wake_threads(bus);
    begin_end(end, false);
}

/* All until the same deadline. */
static void wait_for_threads(struct bus_end *end)
{
    struct det_bus *bus = end->bus;

    for (struct det_list *node = bus->live.next; node != &bus->live; node = node->next) {
        struct det_subscription *one = DET_CONTAINER(node, struct det_subscription, node);

        if (one->delivery == DET_DELIVER_THREAD)
            end->left += det_subscription_finish_end(one, end->deadline) < 0;
    }
}

static bool has_finished(struct bus_end *end, struct det_subscription *subscription)
{
    int r;

    if (subscription->delivery == DET_DELIVER_THREAD)
        return !subscription->thread;
    r = det_subscription_finish_end(subscription, end->deadline);
    end->left += r < 0;
    return r == 0;
}

static void finish_end(struct bus_end *end, bool is_lossless)
{
    struct det_bus *bus = end->bus;
    struct det_list *next;

    for (struct det_list *node = bus->live.next; node != &bus->live; node = next) {
        struct det_subscription *one = DET_CONTAINER(node, struct det_subscription, node);

        next = node->next;
        if ((one->delivery == DET_DELIVER_LOSSLESS) != is_lossless || !has_finished(end, one))
            continue;
        report_failures(bus, one);
        if (one->last_turn < 0 && !one->turn_failed)
            report(bus, one, DET_TASK_EVENT_RUNTIME_FAILURE, det_error_text(one->last_turn), 0);
        retire(bus, one);
    }
}

static void finish_on_loop(struct bus_end *end)
{
    finish_end(end, false);
    begin_end(end, true);
    finish_end(end, true);
}

static void run_posted(void *argument)
{
    struct bus_end *end = argument;
    struct det_bus *bus = end->bus;

    end->run(end);
    det_mutex_lock(bus->world, bus->mutex);
    end->is_answered = true;
    det_condition_broadcast(bus->world, bus->answered);
    det_mutex_unlock(bus->world, bus->mutex);
}

/* Runs a function on the loop and waits, unless this is the loop. */
static void run_on_loop(struct bus_end *end, void (*run)(struct bus_end *end))
{
    struct det_post post = { .run = run_posted, .argument = end };
    struct det_bus *bus = end->bus;
    int r = 0;

    if (det_loop_is_mine(bus->loop)) {
        run(end);
        return;
    }
    end->run = run;
    end->is_answered = false;
    det_loop_post(bus->loop, &post);
    det_mutex_lock(bus->world, bus->mutex);
    while (!end->is_answered && r == 0)
        r = det_condition_wait(bus->world, bus->answered, bus->mutex, DET_NEVER);
    det_mutex_unlock(bus->world, bus->mutex);
}

int det_bus_end(struct det_bus *bus, det_time deadline)
{
    struct bus_end end = { .bus = bus, .deadline = deadline };

    run_on_loop(&end, begin_on_loop);
    wait_for_threads(&end);
    run_on_loop(&end, finish_on_loop);
    return end.left;
}

bool det_bus_is_crowded(const struct det_bus *bus)
{
    return slots_count(bus) > 0 && det_bus_newest(bus) - bus->seen_sequence > bus->ring.mask / 2;
}

const char *det_bus_presser(struct det_bus *bus)
{
    for (unsigned i = 0; i < slots_count(bus); i++) {
        const struct det_subscription *subscription = subscription_at(bus, i);

        if (subscription && atomic_load(&subscription->is_pressing))
            return subscription->name;
    }
    return "a subscriber";
}

bool det_bus_is_reader(struct det_bus *bus)
{
    const void *self = det_thread_self(bus->world);

    for (unsigned i = 0; i < slots_count(bus); i++) {
        const struct det_subscription *subscription = subscription_at(bus, i);

        if (subscription && atomic_load(&subscription->reader) == self)
            return true;
    }
    return false;
}

void det_bus_close(struct det_bus *bus)
{
    struct det_list *node;

    if (!bus)
        return;
    (void)det_bus_end(bus, 0);
    while ((node = det_list_take(&bus->live)))
        det_subscription_leave(DET_CONTAINER(node, struct det_subscription, node));
    free_retired(bus);
    atomic_store(&bus->is_closed, true);
    det_bus_release(bus);
}

uint64_t det_bus_newest(const struct det_bus *bus)
{
    return atomic_load_explicit(&bus->ring.newest, memory_order_acquire);
}

int det_bus_read(
    struct det_bus *bus, uint64_t *cursor, struct det_task_event *ret, uint64_t *ret_lost)
{
    uint64_t next = det_bus_ring_oldest(&bus->ring);

    /* An unreadable entry has just been overwritten by a newer event. */
    if (next <= *cursor)
        next = *cursor + 1;
    for (; next <= det_bus_newest(bus); next++) {
        if (!det_bus_ring_read(&bus->ring, next, ret))
            continue;
        *ret_lost = *cursor ? next - *cursor - 1 : 0;
        *cursor = next;
        return 1;
    }
    return 0;
}
