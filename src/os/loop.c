/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* loop.c - the event loop over the seam: a poller, a heap of timers, a stack of posts.
 *
 *     any thread                               the owner
 *     post: push, then                         turn: take all posts, reverse them, run them;
 *       wake if wake_wanted was set                   run due timers; run ready descriptors
 *
 * Invariants
 *   1. `posts` is last in, first out, and the owner only ever takes all of it at once; reversed,
 *      that is the order of posting, and no node can be reused while a push reads it.
 *   2. `wake_wanted` is true whenever the owner is, or is about to be, asleep or away. The owner
 *      sets it and then reads `posts`; a poster pushes and then reads it. So one of the two
 *      sees the other, and a post to a busy owner costs no system call.
 *   3. `state` and `thread` change under `mutex`; `changed` signals the change. `stop_wanted` is
 *      cleared only when the loop becomes idle, so no request to stop a running loop is lost.
 *   4. A timer's `is_set` is true exactly while its node is in a heap; `is_wall` selects the heap.
 *   5. A wall deadline is converted to a monotonic one for each wait, and the poller returns when
 *      the wall clock is set: a jump is noticed at once, and an idle loop reads no clock.
 *   6. `tenure` identifies the owner of the loop (loop_loan.h). While LENT or WANTED the borrower
 *      owns everything that is the owner's, except the wait itself and `events`. After a return no
 *      borrower touches the loop: it may have been closed.
 *   7. A loop that has been borrowed since its last wait naps: it wakes by itself after `nap`. Work
 *      that a borrower leaves to an owner that naps, or was woken already, needs no wake: the next
 *      borrower, or one that waits for the work, finds it first. */
#include <detent/driver/loop.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/memory.h"
#include "os/loop_internal.h"

/* The public timer mirrors the heap's node, which is not a public type. Its fields are only
 * accessed through the heap, so the two types never meet in one place. */
_Static_assert(
    offsetof(struct det_timer, internal.tie) - offsetof(struct det_timer, internal.key) ==
        offsetof(struct det_heap_node, tie),
    "the timer's node has the layout of the heap's");
_Static_assert(
    offsetof(struct det_timer, internal.position) - offsetof(struct det_timer, internal.key) ==
        offsetof(struct det_heap_node, position),
    "the timer's node has the layout of the heap's");
_Static_assert(
    offsetof(struct det_timer, internal.is_set) - offsetof(struct det_timer, internal.key) ==
        sizeof(struct det_heap_node),
    "the timer's node has the size of the heap's");

static struct det_heap_node *node_of(struct det_timer *timer)
{
    return (struct det_heap_node *)(void *)&timer->internal;
}

static struct det_timer *timer_of(struct det_heap_node *node)
{
    return DET_CONTAINER(node, struct det_timer, internal);
}

int det_loop_open(
    struct det_world *world, const struct det_allocator *allocator, struct det_loop **ret)
{
    struct det_loop *loop;
    int r;

    loop = DET_NEW(allocator, struct det_loop);
    if (!loop)
        return DET_ERR_NO_MEMORY;
    loop->world = world = det_world_or_real(world);
    det_assert(world->ops->version == DET_WORLD_VERSION);
    loop->allocator = allocator;
    det_heap_init(&loop->timers, allocator);
    det_heap_init(&loop->wall_timers, allocator);
    atomic_init(&loop->wake_wanted, true);
    r = world->ops->poller_open(world, &loop->poller);
    if (r == 0)
        r = det_mutex_open(world, &loop->mutex);
    if (r == 0)
        r = det_condition_open(world, &loop->changed);
    if (r < 0) {
        det_loop_close(loop);
        return r;
    }
    loop->now = det_world_now(world, DET_CLOCK_MONOTONIC);
    *ret = loop;
    return 0;
}

static struct det_post *take_posts(struct det_loop *loop)
{
    struct det_post *newest = atomic_exchange(&loop->posts, NULL), *oldest = NULL;

    while (newest) {
        struct det_post *next = newest->internal.next;

        newest->internal.next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

int det_loop_run_posts(struct det_loop *loop)
{
    struct det_post *post = take_posts(loop);
    int count = 0;

    while (post) {
        /* The message may have been freed or posted again after it ran. */
        struct det_post *next = post->internal.next;

        post->run(post->argument);
        post = next;
        count++;
    }
    return count;
}

/* Joins a thread that was stopped from inside: it has ended or is about to. */
static void join_ended(struct det_loop *loop)
{
    struct det_thread *thread;

    det_mutex_lock(loop->world, loop->mutex);
    det_assert(loop->state == LOOP_IDLE || (loop->thread && atomic_load(&loop->stop_wanted)));
    thread = loop->thread;
    loop->thread = NULL;
    det_mutex_unlock(loop->world, loop->mutex);
    if (thread)
        det_thread_join(loop->world, thread);
}

static void drop_timers(struct det_loop *loop, struct det_heap *heap)
{
    for (struct det_heap_node *node; (node = det_heap_first(heap));)
        det_loop_timer_cancel(loop, timer_of(node));
    det_heap_deinit(heap);
}

void det_loop_close(struct det_loop *loop)
{
    struct det_world *world;

    if (!loop)
        return;
    world = loop->world;
    if (loop->changed) {
        join_ended(loop);
        while (det_loop_run_posts(loop) > 0)
            continue;
    }
    drop_timers(loop, &loop->timers);
    drop_timers(loop, &loop->wall_timers);
    det_condition_close(world, loop->changed);
    det_mutex_close(world, loop->mutex);
    if (loop->poller)
        world->ops->poller_close(world, loop->poller);
    DET_DELETE(loop->allocator, loop);
}

struct det_world *det_loop_world(const struct det_loop *loop)
{
    return loop->world;
}

void det_loop_post(struct det_loop *loop, struct det_post *post)
{
    struct det_world *world = loop->world;

    post->internal.next = atomic_load_explicit(&loop->posts, memory_order_relaxed);
    det_thread_preempt(world);
    while (!atomic_compare_exchange_weak(&loop->posts, &post->internal.next, post))
        continue;
    det_thread_preempt(world);
    if (atomic_load(&loop->tenure) >= TENURE_LENT && !det_loop_is_mine(loop))
        atomic_store(&loop->is_urgent, true);
    if (atomic_load(&loop->wake_wanted) && atomic_exchange(&loop->wake_wanted, false))
        world->ops->poller_wake(world, loop->poller);
}

det_time det_loop_now(const struct det_loop *loop)
{
    return loop->is_turning ? loop->now : det_world_now(loop->world, DET_CLOCK_MONOTONIC);
}

static struct det_heap *heap_of(struct det_loop *loop, bool is_wall)
{
    return is_wall ? &loop->wall_timers : &loop->timers;
}

/* If a timer cannot move from one heap to the other, it stays unchanged. */
static int set_timer(
    struct det_loop *loop, struct det_timer *timer, bool is_wall, det_time deadline)
{
    struct det_heap *heap = heap_of(loop, is_wall);
    int r;

    det_assert(timer->run);
    if (timer->internal.is_set && timer->internal.is_wall == is_wall) {
        det_heap_rekey(heap, node_of(timer), deadline);
        return 0;
    }
    r = det_heap_reserve(heap, heap->count + 1);
    if (r < 0)
        return r;
    det_loop_timer_cancel(loop, timer);
    det_heap_node_init(node_of(timer));
    r = det_heap_insert(heap, node_of(timer), deadline);
    det_assert(r == 0);
    timer->internal.is_set = true;
    timer->internal.is_wall = is_wall;
    return 0;
}

int det_loop_timer_set(struct det_loop *loop, struct det_timer *timer, det_time deadline)
{
    return set_timer(loop, timer, false, deadline);
}

int det_loop_timer_set_wall(struct det_loop *loop, struct det_timer *timer, det_time deadline)
{
    return set_timer(loop, timer, true, deadline);
}

void det_loop_timer_cancel(struct det_loop *loop, struct det_timer *timer)
{
    if (!timer->internal.is_set)
        return;
    det_heap_remove(heap_of(loop, timer->internal.is_wall), node_of(timer));
    timer->internal.is_set = false;
}

/* A timer that a callback sets to now or earlier runs in the next turn: timers set after
 * `first_tie` do not belong to this turn, or a callback could occupy the loop for ever. */
static int run_timers(struct det_loop *loop, struct det_heap *heap, det_time now)
{
    uint64_t first_tie = heap->next_tie;
    struct det_heap_node *node;
    int count = 0;

    while ((node = det_heap_first(heap))) {
        struct det_timer *timer = timer_of(node);

        if (node->key > now || node->tie >= first_tie)
            break;
        det_loop_timer_cancel(loop, timer);
        timer->run(timer->argument);
        count++;
    }
    return count;
}

static int run_wall_timers(struct det_loop *loop)
{
    if (loop->wall_timers.count == 0)
        return 0;
    return run_timers(loop, &loop->wall_timers, det_world_now(loop->world, DET_CLOCK_WALL));
}

int det_loop_run_timers(struct det_loop *loop)
{
    int count = run_timers(loop, &loop->timers, loop->now);

    return count + run_wall_timers(loop);
}

int det_loop_watch(struct det_loop *loop, struct det_watch *watch, unsigned events)
{
    struct det_world *world = loop->world;
    int r;

    det_assert(watch->run && events);
    r = world->ops->poller_watch(world, loop->poller, watch->descriptor, events, watch);
    if (r < 0)
        return r;
    if (!watch->internal.events)
        loop->watches++;
    watch->internal.events = events;
    return 0;
}

void det_loop_unwatch(struct det_loop *loop, struct det_watch *watch)
{
    struct det_world *world = loop->world;

    if (!watch->internal.events)
        return;
    (void)world->ops->poller_watch(world, loop->poller, watch->descriptor, 0, watch);
    watch->internal.events = 0;
    loop->watches--;
    loop->has_unwatched = true;
    /* It may be ready in this turn, and its memory freed before its event is handled. */
    for (int i = 0; i < loop->events_count; i++)
        if (loop->events[i].tag == watch)
            loop->events[i].tag = NULL;
}

static int run_watches(struct det_loop *loop)
{
    int count = 0;

    for (int i = 0; i < loop->events_count; i++) {
        struct det_watch *watch = loop->events[i].tag;

        if (!watch)
            continue;
        watch->run(watch->argument, loop->events[i].events);
        count++;
    }
    loop->events_count = 0;
    return count;
}

/* The first wall deadline, converted to the monotonic clock. */
static det_time first_wall_timer(const struct det_loop *loop)
{
    const struct det_heap_node *node = det_heap_first(&loop->wall_timers);
    det_time wall;

    if (!node || node->key == DET_NEVER)
        return DET_NEVER;
    wall = det_world_now(loop->world, DET_CLOCK_WALL);
    if (node->key <= wall)
        return loop->now;
    return det_add_time(det_world_now(loop->world, DET_CLOCK_MONOTONIC), node->key - wall);
}

static det_time first_timer(const struct det_loop *loop)
{
    const struct det_heap_node *node = det_heap_first(&loop->timers);
    det_time first = node ? node->key : DET_NEVER, wall = first_wall_timer(loop);

    return wall < first ? wall : first;
}

/* Sleeps until something may be due. Requests the wake before it checks the posts for the last
 * time: a message posted later sees the request. */
static int wait_until(struct det_loop *loop, det_time deadline)
{
    struct det_world *world = loop->world;
    det_time timer = first_timer(loop);
    int r;

    if (timer < deadline)
        deadline = timer;
    det_thread_preempt(world);
    atomic_store(&loop->wake_wanted, true);
    det_thread_preempt(world);
    if (det_loop_has_posts(loop))
        deadline = 0;
    if (loop->is_lendable && atomic_load(&loop->state) == LOOP_RUNNING && deadline > loop->now)
        r = det_loop_wait_parked(loop, deadline);
    else
        r = world->ops->poller_wait(
            world, loop->poller, loop->events, DET_LOOP_EVENTS_MAX, deadline);
    atomic_store(&loop->wake_wanted, false);
    if (r < 0)
        return r;
    loop->events_count = r;
    return 0;
}

/* Runs one turn, with or without a wait. Polls descriptors in every turn, so that a stream of
 * messages cannot starve them; without descriptors that costs nothing. */
static int turn_once(struct det_loop *loop, det_time deadline)
{
    bool is_due;
    int count, r;

    det_assert(!loop->is_turning);
    loop->now = det_world_now(loop->world, DET_CLOCK_MONOTONIC);
    is_due = det_loop_has_posts(loop) || first_timer(loop) <= loop->now;
    if (!is_due || loop->watches) {
        r = wait_until(loop, is_due ? 0 : deadline);
        if (r < 0)
            return r;
        loop->now = det_world_now(loop->world, DET_CLOCK_MONOTONIC);
    }
    loop->is_turning = true;
    count = det_loop_run_posts(loop);
    count += det_loop_run_timers(loop);
    count += run_watches(loop);
    loop->is_turning = false;
    return count;
}

int det_loop_turn(struct det_loop *loop, det_time deadline)
{
    int count;

    /* Also between turns: no other thread may claim a loop that has an owner. */
    atomic_store(&loop->owner, det_thread_self(loop->world));
    atomic_store(&loop->wake_wanted, false);
    do
        count = turn_once(loop, deadline);
    while (count == 0 && loop->now < deadline);
    atomic_store(&loop->wake_wanted, true);
    /* Messages posted meanwhile woke no thread; a foreign loop only watches the descriptor. */
    if (det_loop_has_posts(loop) && atomic_exchange(&loop->wake_wanted, false))
        loop->world->ops->poller_wake(loop->world, loop->poller);
    return count;
}

static void set_state(struct det_loop *loop, enum loop_state state)
{
    det_mutex_lock(loop->world, loop->mutex);
    det_assert(loop->state != state);
    loop->state = state;
    if (state == LOOP_IDLE)
        atomic_store(&loop->stop_wanted, false);
    det_condition_broadcast(loop->world, loop->changed);
    det_mutex_unlock(loop->world, loop->mutex);
    /* A thread that waited for IDLE may have closed the loop by now. */
}

/* Turns until a stop is requested, then releases the loop. */
static int run_until_stopped(struct det_loop *loop)
{
    int r = 0;

    atomic_store(&loop->owner, det_thread_self(loop->world));
    atomic_store(&loop->wake_wanted, false);
    while (r >= 0 && !atomic_load(&loop->stop_wanted))
        r = turn_once(loop, DET_NEVER);
    atomic_store(&loop->wake_wanted, true);
    atomic_store(&loop->owner, NULL);
    set_state(loop, LOOP_IDLE);
    return r < 0 ? r : 0;
}

int det_loop_run(struct det_loop *loop)
{
    set_state(loop, LOOP_RUNNING);
    return run_until_stopped(loop);
}

static void loop_main(void *argument)
{
    int r;

    r = run_until_stopped(argument);
    /* A poller that cannot wait is a bug of ours; a loop that ended silently would hang
     * everything. */
    det_assert(r == 0);
}

int det_loop_start(struct det_loop *loop, const char *name)
{
    struct det_thread *thread;
    int r;

    join_ended(loop);
    atomic_store(&loop->stop_wanted, false);
    atomic_store(&loop->owner, NULL);
    set_state(loop, LOOP_RUNNING);
    r = det_thread_start(loop->world, name, loop_main, loop, &thread);
    if (r < 0) {
        set_state(loop, LOOP_IDLE);
        return r;
    }
    det_mutex_lock(loop->world, loop->mutex);
    loop->thread = thread;
    det_mutex_unlock(loop->world, loop->mutex);
    return 0;
}

void det_loop_break(struct det_loop *loop)
{
    struct det_world *world = loop->world;

    atomic_store(&loop->stop_wanted, true);
    if (atomic_load(&loop->owner) != det_thread_self(world))
        world->ops->poller_wake(world, loop->poller);
}

void det_loop_stop(struct det_loop *loop)
{
    struct det_world *world = loop->world;
    struct det_thread *thread;

    /* The thread that runs the loop would wait for itself. */
    det_assert(
        atomic_load(&loop->owner) != det_thread_self(world) ||
        atomic_load(&loop->state) != LOOP_RUNNING);
    det_loop_break(loop);
    det_mutex_lock(world, loop->mutex);
    while (loop->state == LOOP_RUNNING)
        (void)det_condition_wait(world, loop->changed, loop->mutex, DET_NEVER);
    thread = loop->thread;
    loop->thread = NULL;
    det_mutex_unlock(world, loop->mutex);
    if (thread)
        det_thread_join(world, thread);
}

bool det_loop_is_mine(const struct det_loop *loop)
{
    const void *owner = atomic_load(&loop->owner);

    if (owner)
        return owner == det_thread_self(loop->world);
    return atomic_load(&loop->state) == LOOP_IDLE;
}

void det_loop_claim(struct det_loop *loop)
{
    const void *nobody = NULL;

    if (atomic_load(&loop->state) == LOOP_IDLE)
        (void)atomic_compare_exchange_strong(&loop->owner, &nobody, det_thread_self(loop->world));
}

int det_loop_descriptor(const struct det_loop *loop)
{
    return loop->world->ops->poller_descriptor(loop->world, loop->poller);
}

det_time det_loop_deadline(const struct det_loop *loop)
{
    return det_loop_has_posts(loop) ? 0 : first_timer(loop);
}
