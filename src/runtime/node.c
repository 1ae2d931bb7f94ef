/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* node.c - a runtime as a node: alarms, the pool for leases, the node's own lease. */
#include <detent/driver/loop.h>

#include "runtime/node.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"

/* More than one, so that a slow call of the store does not delay the others. */
#define POOL_THREADS 2

/* Alarms. */

void det_alarm_init(struct det_alarm *alarm, det_loop_fn *run, void *argument)
{
    *alarm = (struct det_alarm){ .run = run, .argument = argument };
    det_heap_node_init(&alarm->node);
}

int det_alarm_promise(struct det_node *node)
{
    int r;

    det_mutex_lock(node->runtime->world, node->mutex);
    r = det_heap_reserve(&node->alarms, node->promised + 1);
    if (r == 0)
        node->promised++;
    det_mutex_unlock(node->runtime->world, node->mutex);
    return r;
}

void det_alarm_unpromise(struct det_node *node)
{
    det_mutex_lock(node->runtime->world, node->mutex);
    node->promised--;
    det_mutex_unlock(node->runtime->world, node->mutex);
}

static det_time first_alarm(struct det_node *node)
{
    const struct det_heap_node *first;
    det_time at;

    det_mutex_lock(node->runtime->world, node->mutex);
    first = det_heap_first(&node->alarms);
    at = first ? first->key : DET_NEVER;
    det_mutex_unlock(node->runtime->world, node->mutex);
    return at;
}

/* The timer is always set, at least to never, so it always has a place on the loop. */
static void plan(struct det_node *node, det_time at)
{
    int r;

    r = det_loop_timer_set(node->runtime->loop, &node->timer, at);
    det_assert(r == 0);
}

void det_alarm_set(struct det_node *node, struct det_alarm *alarm, det_time at)
{
    struct det_world *world = node->runtime->world;
    int r;

    det_mutex_lock(world, node->mutex);
    if (det_heap_contains(&alarm->node))
        det_heap_remove(&node->alarms, &alarm->node);
    r = at == DET_NEVER ? 0 : det_heap_insert(&node->alarms, &alarm->node, at);
    det_assert(r == 0);
    det_mutex_unlock(world, node->mutex);
    plan(node, first_alarm(node));
}

static struct det_alarm *take_due(struct det_node *node, det_time now)
{
    struct det_heap_node *first;
    struct det_alarm *alarm = NULL;

    det_mutex_lock(node->runtime->world, node->mutex);
    first = det_heap_first(&node->alarms);
    if (first && first->key <= now) {
        det_heap_remove(&node->alarms, first);
        alarm = DET_CONTAINER(first, struct det_alarm, node);
    }
    det_mutex_unlock(node->runtime->world, node->mutex);
    return alarm;
}

static void run_alarms(void *argument)
{
    struct det_node *node = argument;
    det_time now = det_loop_now(node->runtime->loop);
    struct det_alarm *alarm;

    plan(node, DET_NEVER);
    while ((alarm = take_due(node, now)))
        alarm->run(alarm->argument);
    plan(node, first_alarm(node));
}

det_time det_node_vary(struct det_node *node, det_time span, uint32_t percent)
{
    uint64_t most = (uint64_t)span / 100 * percent;

    if (!most)
        return span;
    return span - (det_time)most +
           (det_time)(det_world_random_u64(node->runtime->world) % (2 * most + 1));
}

void det_node_owner(struct det_runtime *runtime, const char *given, char *target)
{
    const char *who = given ? given : runtime->store->owner;

    snprintf(
        target, DET_OWNER_MAX + 1, "%s%s%016llx", who, *who ? "/" : "",
        (unsigned long long)det_world_random_u64(runtime->world));
}

int det_node_need_pool(struct det_node *node)
{
    const struct det_runtime *runtime = node->runtime;
    int r = 0;

    det_mutex_lock(runtime->world, node->mutex);
    if (!node->pool)
        r = det_pool_open(runtime->world, runtime->allocator, POOL_THREADS, &node->pool);
    det_mutex_unlock(runtime->world, node->mutex);
    return r;
}

/* Waking. */

static void woken(void *argument)
{
    struct det_node *node = argument;

    atomic_store(&node->is_woken, false);
    DET_LIST_EACH(link, &node->leases)
    det_lease_hurry(det_lease_of(link));
    DET_LIST_EACH(link, &node->sweepers)
    det_sweeper_wake(det_sweeper_of(link));
    det_due_kick(node->runtime, INT64_MIN);
}

void det_node_wake(struct det_node *node)
{
    det_mutex_lock(node->runtime->world, node->mutex);
    node->wakes++;
    det_condition_broadcast(node->runtime->world, node->changed);
    det_mutex_unlock(node->runtime->world, node->mutex);
}

/* Called by the store, on any thread. */
static void notice_change(void *context)
{
    struct det_node *node = context;

    det_node_wake(node);
    if (!atomic_exchange(&node->is_woken, true))
        det_loop_post(node->runtime->loop, &node->wake);
}

static void make_stale_in(
    struct det_shard *shard, const struct det_index *index,
    bool (*is_meant)(const struct det_resident *resident))
{
    struct det_resident *resident;

    for (size_t cursor = 0; (resident = det_index_next(index, &cursor));) {
        if (resident->is_stale || resident->is_loading || !is_meant(resident))
            continue;
        resident->is_stale = true;
        shard->stale++;
    }
}

/* A stale resident is loaded again before its next use, by its user or by the loop. */
static void make_stale(struct det_node *node, bool (*is_meant)(const struct det_resident *resident))
{
    struct det_runtime *runtime = node->runtime;

    for (uint32_t i = 0; i <= runtime->shard_mask; i++) {
        struct det_shard *shard = &runtime->shards[i];

        det_shard_lock(runtime, shard);
        for (size_t bucket = 0; bucket < DET_SERVED_BUCKETS; bucket++) {
            for (const struct det_served *s = atomic_load(&runtime->served[bucket]); s; s = s->next)
                make_stale_in(shard, det_served_index(runtime, s, shard), is_meant);
        }
        det_shard_unlock(runtime, shard);
    }
    det_due_kick(runtime, INT64_MIN);
}

static bool has_foreign(const struct det_resident *resident)
{
    return resident->has_foreign;
}

static bool has_effect_runs(const struct det_resident *resident)
{
    return resident->more && resident->more->open_count;
}

void det_node_adopted(struct det_node *node)
{
    make_stale(node, has_foreign);
}

/* While the lease was lost, other nodes may have taken over our work. A commit would detect this
 * for a timer; an effect would already have run. */
static void changed(void *user, bool is_held, uint64_t token)
{
    struct det_node *node = user;

    (void)token;
    if (is_held)
        make_stale(node, has_effect_runs);
}

bool det_node_may_act(const struct det_runtime *runtime)
{
    struct det_lease *own = runtime->node->own;

    return !own || det_lease_is_held(own, NULL);
}

/* Opening. */

/* Acquired before the first commit: work set by a node without a lease would be free for
 * takeover. */
static int join(struct det_node *node, struct det_error *reterr)
{
    struct det_runtime *runtime = node->runtime;
    const struct det_node_options *options = &runtime->options.node;
    char name[sizeof runtime->store->owner + 5];
    struct det_lease_plan plan = {
        .name = name,
        .owner = runtime->store->owner,
        .span = options->lease,
        .renewal = options->renewal,
        .jitter_percent = 10,
        .changed = changed,
        .user = node,
    };
    struct det_store_lease answer;
    struct det_grant grant = { 0 };
    int r;

    snprintf(name, sizeof name, "node/%s", runtime->store->owner);
    r = det_lease_make(node, &plan, &node->own);
    if (r < 0)
        return r;
    r = det_lease_call(
        runtime, &plan,
        &(struct det_store_lease_change){
            .verb = DET_LEASE_ACQUIRE, .name = name, .owner = plan.owner, .span = plan.span },
        &answer, &grant.until);
    if (r < 0) {
        det_lease_discard(node->own);
        node->own = NULL;
        return det_error_set(
            reterr, r, "the store refuses this node its lease: %s", det_error_text(r));
    }
    grant.token = answer.token;
    det_lease_begin(node->own, &grant);
    runtime->ops->listen(runtime->store, notice_change, node);
    return 0;
}

static int open_parts(struct det_node *node)
{
    struct det_runtime *runtime = node->runtime;
    int r;

    r = det_mutex_open(runtime->world, &node->mutex);
    if (r == 0)
        r = det_condition_open(runtime->world, &node->changed);
    if (r == 0)
        r = det_executor_open(
            runtime->loop, &(struct det_executor_options){ .allocator = runtime->allocator },
            &node->executor, NULL);
    if (r == 0)
        r = det_loop_timer_set(runtime->loop, &node->timer, DET_NEVER);
    return r;
}

int det_node_open(struct det_runtime *runtime, struct det_error *reterr)
{
    struct det_node *node = DET_NEW(runtime->allocator, struct det_node);
    int r;

    if (!node)
        return DET_ERR_NO_MEMORY;
    runtime->node = node;
    node->runtime = runtime;
    det_heap_init(&node->alarms, runtime->allocator);
    det_list_init(&node->lock_waiters);
    det_list_init(&node->leases);
    det_list_init(&node->sweepers);
    node->timer.run = run_alarms;
    node->timer.argument = node;
    node->wake = (struct det_post){ .run = woken, .argument = node };
    r = open_parts(node);
    /* A passive runtime has no lease: its work is for active ones. */
    if (r == 0 && runtime->ops->is_shared && !runtime->options.is_passive)
        r = join(node, reterr);
    return r;
}

int det_node_serve(struct det_runtime *runtime, const struct det_machine *machine)
{
    return runtime->node->own ? det_sweeper_open(runtime->node, machine) : 0;
}

void det_node_enter(struct det_node *node)
{
    det_mutex_lock(node->runtime->world, node->mutex);
    node->calls++;
    det_mutex_unlock(node->runtime->world, node->mutex);
}

/* The node may be freed once the mutex is released. */
void det_node_leave(struct det_node *node)
{
    struct det_world *world = node->runtime->world;
    struct det_mutex *mutex = node->mutex;

    det_mutex_lock(world, mutex);
    node->calls--;
    if (node->is_closing)
        det_condition_broadcast(world, node->changed);
    det_mutex_unlock(world, mutex);
}

/* Closing. */

void det_node_refuse_calls(struct det_runtime *runtime)
{
    struct det_node *node = runtime->node;

    /* Locks and leases must be closed before their runtime. */
    det_assert(atomic_load(&node->opened) == 0);
    det_mutex_lock(runtime->world, node->mutex);
    node->is_closing = true;
    det_lock_queue_close(node);
    det_condition_broadcast(runtime->world, node->changed);
    while (node->calls)
        (void)det_condition_wait(runtime->world, node->changed, node->mutex, DET_NEVER);
    det_mutex_unlock(runtime->world, node->mutex);
}

/* Turns the loop until at most `left` leases and sweepers exist. Each posts a message when its job
 * is done, or is gone. */
static void turn_until(struct det_node *node, size_t left)
{
    while (atomic_load(&node->kept) > left || atomic_load(&node->is_woken))
        (void)det_loop_turn(node->runtime->loop, DET_NEVER);
}

void det_node_stop_sweeping(struct det_runtime *runtime)
{
    struct det_node *node = runtime->node;

    if (!node || !node->own)
        return;
    runtime->ops->listen(runtime->store, NULL, NULL);
    /* Messages that start something have run then. */
    (void)det_loop_turn(runtime->loop, 0);
    DET_LIST_EACH(link, &node->sweepers)
    det_sweeper_stop(det_sweeper_of(link));
    turn_until(node, 1);
}

void det_node_close(struct det_runtime *runtime)
{
    struct det_node *node = runtime->node;

    if (!node)
        return;
    det_lease_close(node->own);
    turn_until(node, 0);
    det_pool_close(node->pool);
    if (runtime->loop)
        det_loop_timer_cancel(runtime->loop, &node->timer);
    det_executor_close(node->executor);
    det_heap_deinit(&node->alarms);
    det_condition_close(runtime->world, node->changed);
    det_mutex_close(runtime->world, node->mutex);
    DET_DELETE(runtime->allocator, node);
    runtime->node = NULL;
}
