/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* loop_loan.c - lends a sleeping loop to another thread: see loop_loan.h and the invariants of
 * loop.c. */
#include "os/loop_loan.h"

#include "base/checked.h"
#include "os/loop_internal.h"

static int64_t first_key(const struct det_heap *heap)
{
    const struct det_heap_node *node = det_heap_first(heap);

    return node ? node->key : DET_NEVER;
}

/* Makes the loop available to borrowers. */
static void park_loop(struct det_loop *loop, det_time deadline)
{
    loop->parked_until = deadline;
    loop->parked_timer = first_key(&loop->timers);
    loop->parked_wall_timer = first_key(&loop->wall_timers);
    loop->has_unwatched = false;
    atomic_store(&loop->tenure, TENURE_PARKED);
}

/* Returns the loop to its owner; waits for a borrower. */
static void unpark_loop(struct det_loop *loop)
{
    enum loop_tenure seen;

    for (;;) {
        seen = TENURE_PARKED;
        if (atomic_compare_exchange_strong(&loop->tenure, &seen, TENURE_OWNED))
            return;
        seen = TENURE_LENT;
        if (atomic_compare_exchange_strong(&loop->tenure, &seen, TENURE_WANTED))
            break;
    }
    det_mutex_lock(loop->world, loop->mutex);
    while (atomic_load(&loop->tenure) == TENURE_WANTED)
        (void)det_condition_wait(loop->world, loop->changed, loop->mutex, DET_NEVER);
    det_mutex_unlock(loop->world, loop->mutex);
}

void det_loop_lend(struct det_loop *loop, det_time nap)
{
    loop->nap = nap;
    loop->is_lendable = true;
}

bool det_loop_borrow(struct det_loop *loop)
{
    enum loop_tenure seen = TENURE_PARKED;

    if (atomic_load_explicit(&loop->tenure, memory_order_relaxed) != TENURE_PARKED ||
        !atomic_compare_exchange_strong(&loop->tenure, &seen, TENURE_LENT))
        return false;
    det_thread_preempt(loop->world);
    loop->sleeper = atomic_load(&loop->owner);
    loop->was_lent = true;
    atomic_store(&loop->is_urgent, false);
    atomic_store(&loop->owner, det_thread_self(loop->world));
    /* Messages posted during the loan are seen at the return: one wake for all of them. */
    atomic_store(&loop->wake_wanted, false);
    loop->now = det_world_now(loop->world, DET_CLOCK_MONOTONIC);
    loop->is_turning = true;
    return true;
}

static bool has_news(const struct det_loop *loop)
{
    return det_loop_has_posts(loop) || atomic_load(&loop->stop_wanted) ||
           first_key(&loop->timers) < loop->parked_timer ||
           first_key(&loop->wall_timers) < loop->parked_wall_timer;
}

static bool wakes_soon(const struct det_loop *loop)
{
    return !atomic_load(&loop->is_urgent) &&
           loop->parked_until <= det_add_time(loop->now, loop->nap);
}

/* `wake_wanted` is true: from here on a post wakes the owner. */
static void wake_for_news(struct det_loop *loop)
{
    if (!has_news(loop) || wakes_soon(loop))
        return;
    loop->parked_until = loop->now;
    if (atomic_exchange(&loop->wake_wanted, false))
        loop->world->ops->poller_wake(loop->world, loop->poller);
}

void det_loop_return(struct det_loop *loop)
{
    struct det_world *world = loop->world;
    enum loop_tenure seen = TENURE_LENT;

    loop->is_turning = false;
    atomic_store(&loop->owner, loop->sleeper);
    atomic_store(&loop->wake_wanted, true);
    det_thread_preempt(world);
    wake_for_news(loop);
    det_thread_preempt(world);
    if (atomic_compare_exchange_strong(&loop->tenure, &seen, TENURE_PARKED))
        return;
    det_mutex_lock(world, loop->mutex);
    atomic_store(&loop->tenure, TENURE_OWNED);
    det_condition_broadcast(world, loop->changed);
    det_mutex_unlock(world, loop->mutex);
}

/* Called by the borrower. */
static void work_and_return(
    struct det_loop *loop, det_time deadline, bool (*is_over)(void *argument), void *argument)
{
    int count;

    do {
        count = det_loop_run_posts(loop);
        count += det_loop_run_timers(loop);
        loop->now = det_world_now(loop->world, DET_CLOCK_MONOTONIC);
    } while (count > 0 && loop->now < deadline && atomic_load(&loop->tenure) == TENURE_LENT &&
             !is_over(argument));
    det_loop_return(loop);
}

void det_loop_work_and_return(
    struct det_loop *loop, bool (*is_over)(void *argument), void *argument)
{
    work_and_return(loop, DET_NEVER, is_over, argument);
}

void det_loop_help(
    struct det_loop *loop, det_time deadline, bool (*is_over)(void *argument), void *argument)
{
    if (det_loop_borrow(loop))
        work_and_return(loop, deadline, is_over, argument);
}

int det_loop_wait_parked(struct det_loop *loop, det_time deadline)
{
    struct det_world *world = loop->world;
    det_time nap = det_add_time(loop->now, loop->nap);
    int r;

    if (loop->was_lent && loop->nap > 0 && nap < deadline)
        deadline = nap;
    loop->was_lent = false;
    park_loop(loop, deadline);
    det_thread_preempt(world);
    r = world->ops->poller_wait(world, loop->poller, loop->events, DET_LOOP_EVENTS_MAX, deadline);
    unpark_loop(loop);
    return r > 0 && loop->has_unwatched ? 0 : r;
}
