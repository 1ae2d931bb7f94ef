/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* group_commit.c - a queue of calls with one lock and no thread.
 *
 *     arrive --+-- a writer is free, the queue is empty --------------> LEADER
 *              +-- else --> QUEUED --+-- promoted, wakes -------------> LEADER
 *                                    +-- taken by a leader --> FOLLOWER ---> done
 *     LEADER: takes calls from the front of the queue, writes without the lock, ends its followers,
 *             returns its number, promotes the first call in the queue
 *
 * Invariants, under `mutex`
 *   1. A call is in the queue, or a leader, or in the batch of exactly one leader.
 *   2. At most one call is promoted and not awake yet, so it finds all calls queued meanwhile.
 *   3. While `is_alone` is true there is no other leader.
 *   4. A call lives on its sender's stack: it is not accessed once `is_done` is set. */
#include "store/group_commit.h"

#include <string.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/memory.h"
#include "os/os.h"

#define ITEMS_DEFAULT 512u
/* Followers woken without the lock; the rest is woken with it. */
#define WOKEN_MAX 64u

/* A condition that a sender sleeps on; created on demand and reused. */
struct waiter {
    struct waiter *next_free, *next;
    struct det_condition *condition;
};

struct call {
    struct det_list node;
    const void *items;
    size_t count;
    int (*run)(void *context); /* not NULL: run this alone */
    void *context;
    struct waiter *waiter;
    unsigned writer;
    bool is_promoted, is_done;
    int result;
};

/* Resources of a leader; one per number. */
struct seat {
    bool is_taken;
    char *items;
};

/* Conditions to wake. Conditions live as long as the group, calls do not. */
struct woken {
    struct det_condition *conditions[WOKEN_MAX];
    size_t count;
};

struct det_group {
    struct det_group_options options;
    struct det_mutex *mutex;
    struct det_list queue;
    struct call *promoted; /* not awake yet */
    struct seat *seats;
    unsigned leaders;
    bool is_alone;
    struct waiter *waiters, *free;
};

static struct waiter *waiter_open(struct det_group *group)
{
    struct waiter *waiter = DET_NEW(group->options.allocator, struct waiter);

    if (!waiter)
        return NULL;
    if (det_condition_open(group->options.world, &waiter->condition) < 0) {
        DET_DELETE(group->options.allocator, waiter);
        return NULL;
    }
    waiter->next = group->waiters;
    group->waiters = waiter;
    return waiter;
}

static struct waiter *waiter_take(struct det_group *group)
{
    struct waiter *waiter = group->free;

    if (!waiter)
        return waiter_open(group);
    group->free = waiter->next_free;
    return waiter;
}

static void waiter_give(struct det_group *group, struct waiter *waiter)
{
    waiter->next_free = group->free;
    group->free = waiter;
}

static bool has_room(const struct det_group *group, const struct call *call)
{
    if (group->is_alone || group->promoted)
        return false;
    return call->run ? group->leaders == 0 : group->leaders < group->options.writers;
}

static void seat_take(struct det_group *group, struct call *call)
{
    unsigned number = 0;

    while (group->seats[number].is_taken)
        number++;
    det_assert(number < group->options.writers);
    group->seats[number].is_taken = true;
    call->writer = number;
    group->leaders++;
    group->is_alone = call->run != NULL;
}

/* Promotes the first call of the queue if a seat is free, and returns the condition to wake. */
static struct det_condition *promote_leader(struct det_group *group)
{
    struct call *call;

    if (det_list_is_empty(&group->queue))
        return NULL;
    call = DET_CONTAINER(group->queue.next, struct call, node);
    if (!has_room(group, call))
        return NULL;
    det_list_remove(&call->node);
    seat_take(group, call);
    call->is_promoted = true;
    group->promoted = call;
    return call->waiter->condition;
}

/* Moves calls that fit from the queue to the batch; returns the number of items in the batch. */
static size_t gather_batch(struct det_group *group, struct call *leader, struct det_list *batch)
{
    struct seat *seat = &group->seats[leader->writer];
    size_t count = leader->count, size = group->options.item_size;

    if (leader->run || count > group->options.items_max)
        return count;
    memcpy(seat->items, leader->items, count * size);
    while (!det_list_is_empty(&group->queue)) {
        struct call *call = DET_CONTAINER(group->queue.next, struct call, node);

        if (call->run || call->count > group->options.items_max - count)
            break;
        det_list_remove(&call->node);
        det_list_append(batch, &call->node);
        memcpy(seat->items + count * size, call->items, call->count * size);
        count += call->count;
    }
    return count;
}

static void end_followers(
    struct det_group *group, struct det_list *batch, int result, struct woken *woken)
{
    struct det_list *node;

    while ((node = det_list_take(batch))) {
        struct call *call = DET_CONTAINER(node, struct call, node);

        if (woken->count < WOKEN_MAX)
            woken->conditions[woken->count++] = call->waiter->condition;
        else
            det_condition_signal(group->options.world, call->waiter->condition);
        call->result = result;
        call->is_done = true;
    }
}

static int write_batch(struct det_group *group, const struct call *leader, size_t count)
{
    const struct det_group_options *options = &group->options;

    if (leader->run)
        return leader->run(leader->context);
    return options->write(
        options->context, leader->writer,
        count == leader->count ? leader->items : group->seats[leader->writer].items, count);
}

/* Enters with the lock and leaves without. Wakes the next leader first. Most followers are woken
 * without the lock, so that they do not block on it. */
static void lead_batch(struct det_group *group, struct call *call)
{
    struct det_world *world = group->options.world;
    struct woken woken = { .count = 0 };
    struct det_condition *next;
    struct det_list batch;
    size_t count;

    det_list_init(&batch);
    count = gather_batch(group, call, &batch);
    next = promote_leader(group);
    det_mutex_unlock(world, group->mutex);
    if (next)
        det_condition_signal(world, next);
    call->result = write_batch(group, call, count);
    det_mutex_lock(world, group->mutex);
    end_followers(group, &batch, call->result, &woken);
    group->seats[call->writer].is_taken = false;
    group->leaders--;
    group->is_alone = false;
    next = promote_leader(group);
    det_mutex_unlock(world, group->mutex);
    if (next)
        det_condition_signal(world, next);
    for (size_t i = 0; i < woken.count; i++)
        det_condition_signal(world, woken.conditions[i]);
}

/* Sleeps until the call is done or the leader; the lock is held before and after. An error occurs
 * only in a simulated world without runnable threads; the remaining calls are dropped. */
static int wait_turn(struct det_group *group, struct call *call)
{
    int r;

    call->waiter = waiter_take(group);
    if (!call->waiter)
        return DET_ERR_NO_MEMORY;
    det_list_append(&group->queue, &call->node);
    while (!call->is_done && !call->is_promoted) {
        r = det_condition_wait(
            group->options.world, call->waiter->condition, group->mutex, DET_NEVER);
        if (r < 0) {
            det_list_remove(&call->node);
            return r;
        }
    }
    waiter_give(group, call->waiter);
    if (call->is_promoted)
        group->promoted = NULL;
    return 0;
}

static int enter_group(struct det_group *group, struct call *call)
{
    struct det_world *world = group->options.world;
    int r = 0;

    det_list_init(&call->node);
    det_mutex_lock(world, group->mutex);
    if (det_list_is_empty(&group->queue) && has_room(group, call))
        seat_take(group, call);
    else
        r = wait_turn(group, call);
    if (r < 0 || call->is_done) {
        det_mutex_unlock(world, group->mutex);
        return r < 0 ? r : call->result;
    }
    lead_batch(group, call);
    return call->result;
}

static int open_seats(struct det_group *group)
{
    const struct det_group_options *options = &group->options;

    group->seats = DET_NEW_ARRAY(options->allocator, options->writers, struct seat);
    if (!group->seats)
        return DET_ERR_NO_MEMORY;
    for (unsigned i = 0; i < options->writers; i++) {
        group->seats[i].items =
            det_alloc_zero(options->allocator, options->items_max * options->item_size);
        if (!group->seats[i].items)
            return DET_ERR_NO_MEMORY;
    }
    return 0;
}

int det_group_open(const struct det_group_options *options, struct det_group **ret)
{
    struct det_group *group = DET_NEW(options->allocator, struct det_group);
    int r;

    det_assert(options->item_size > 0);
    if (!group)
        return DET_ERR_NO_MEMORY;
    group->options = *options;
    if (!options->writers)
        group->options.writers = 1;
    if (!options->items_max)
        group->options.items_max = ITEMS_DEFAULT;
    det_list_init(&group->queue);
    r = open_seats(group);
    if (r == 0)
        r = det_mutex_open(options->world, &group->mutex);
    if (r < 0) {
        det_group_close(group);
        return r;
    }
    *ret = group;
    return 0;
}

static void close_waiters(struct det_group *group)
{
    struct waiter *waiter;

    while ((waiter = group->waiters)) {
        group->waiters = waiter->next;
        det_condition_close(group->options.world, waiter->condition);
        DET_DELETE(group->options.allocator, waiter);
    }
}

void det_group_close(struct det_group *group)
{
    const struct det_group_options *options;

    if (!group)
        return;
    options = &group->options;
    det_assert(group->leaders == 0 && det_list_is_empty(&group->queue));
    close_waiters(group);
    for (unsigned i = 0; group->seats && i < options->writers; i++) {
        det_free(
            options->allocator, group->seats[i].items, options->items_max * options->item_size);
    }
    if (group->seats)
        DET_DELETE_ARRAY(options->allocator, group->seats, options->writers);
    det_mutex_close(options->world, group->mutex);
    DET_DELETE(options->allocator, group);
}

int det_group_commit(struct det_group *group, const void *items, size_t count)
{
    struct call call = { .items = items, .count = count };

    det_assert(count > 0);
    return enter_group(group, &call);
}

int det_group_alone(struct det_group *group, int (*run)(void *context), void *context)
{
    struct call call = { .run = run, .context = context };

    det_assert(run);
    return enter_group(group, &call);
}
