/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lock_queue.c - the threads of this process that wait for the same lock, in the order of requests.
 * Only the first queries the store, so a released lock costs one request for any number of waiting
 * threads. */
#include "runtime/node.h"

#include "base/assert.h"

#include <string.h>

static bool is_same(const struct det_lock_waiter *a, const struct det_lock_waiter *b)
{
    return a->machine == b->machine && strcmp(a->instance, b->instance) == 0;
}

/* The next waiter for the same lock, from `link` on; NULL: none. Mutex held. */
static struct det_lock_waiter *find_same(
    const struct det_node *node, struct det_list *link, const struct det_lock_waiter *waiter)
{
    for (; link != &node->lock_waiters; link = link->next) {
        struct det_lock_waiter *other = DET_CONTAINER(link, struct det_lock_waiter, link);

        if (is_same(other, waiter))
            return other;
    }
    return NULL;
}

static bool is_first(const struct det_node *node, const struct det_lock_waiter *waiter)
{
    return find_same(node, node->lock_waiters.next, waiter) == waiter;
}

int det_lock_queue_enter(struct det_node *node, struct det_lock_waiter *waiter, det_time deadline)
{
    struct det_world *world = node->runtime->world;
    int r;

    det_list_init(&waiter->link);
    r = det_condition_open(world, &waiter->turn);
    if (r < 0)
        return r;
    det_mutex_lock(world, node->mutex);
    det_list_append(&node->lock_waiters, &waiter->link);
    while (r == 0 && !node->is_closing && !is_first(node, waiter))
        r = det_condition_wait(world, waiter->turn, node->mutex, deadline);
    if (node->is_closing)
        r = DET_ERR_CLOSED;
    det_mutex_unlock(world, node->mutex);
    return r;
}

void det_lock_queue_leave(struct det_node *node, struct det_lock_waiter *waiter)
{
    struct det_world *world = node->runtime->world;
    struct det_lock_waiter *next;

    if (!waiter->turn)
        return;
    det_mutex_lock(world, node->mutex);
    det_assert(!det_list_is_empty(&waiter->link));
    det_list_remove(&waiter->link);
    next = find_same(node, node->lock_waiters.next, waiter);
    if (next)
        det_condition_signal(world, next->turn);
    det_mutex_unlock(world, node->mutex);
    det_condition_close(world, waiter->turn);
}

void det_lock_queue_close(struct det_node *node)
{
    DET_LIST_EACH(link, &node->lock_waiters)
    det_condition_signal(
        node->runtime->world, DET_CONTAINER(link, struct det_lock_waiter, link)->turn);
}
