/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lock.c - exclusive access to an instance; and sends to instances that another holder has locked.
 *
 * A lock is acquired on the caller's thread, and kept by a lease on the loop, which starts as held.
 * It is released on the caller's thread, too, so it is free when det_lock_close() returns. Every
 * acquisition has its own owner: opening a lock twice in one process waits. */
#include <detent/lock.h>

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "runtime/node.h"
#include "runtime/turn.h"

#define JITTER_DEFAULT 10
#define JITTER_MAX     90
/* A value of `wait`. */
#define NOT_AT_ALL (-1)

struct det_lock {
    struct det_runtime *runtime;
    const struct det_machine *machine;
    struct det_lock_options options;
    struct det_lease *lease;
    uint64_t fence;
    char owner[DET_OWNER_MAX + 1];
    char instance[DET_ID_MAX + 1];
};

const struct det_lock_options det_lock_default = {
    .span = 30 * DET_SECOND,
    .wait = 10 * DET_SECOND,
};
const struct det_lock_options det_lock_fast = {
    .span = 10 * DET_SECOND,
    .wait = 5 * DET_SECOND,
};
const struct det_lock_options det_lock_long_running = {
    .span = 5 * DET_MINUTE,
    .wait = 30 * DET_SECOND,
};

/* The options with defaults filled in; NULL: all defaults. */
static struct det_lock_options fill_options(const struct det_lock_options *options)
{
    struct det_lock_options filled = options ? *options : det_lock_default;

    if (!filled.span)
        filled.span = det_lock_default.span;
    if (!filled.wait)
        filled.wait = det_lock_default.wait;
    if (!filled.retry)
        filled.retry = 100 * DET_MILLISECOND;
    if (!filled.renewal)
        filled.renewal = filled.span / 3;
    if (!filled.jitter_percent)
        filled.jitter_percent = JITTER_DEFAULT;
    if (filled.jitter_percent == UINT32_MAX)
        filled.jitter_percent = 0;
    return filled;
}

static int check_options(const struct det_lock_options *filled, struct det_error *reterr)
{
    if (filled->span < 0 || filled->wait < -1 || filled->retry < 0 || filled->renewal < 0)
        return det_error_set(reterr, DET_ERR_INVALID, "a duration is negative");
    if (filled->renewal >= filled->span)
        return det_error_set(reterr, DET_ERR_INVALID, "a lock must be renewed within its span");
    if (filled->jitter_percent > JITTER_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "jitter_percent must be at most %d", JITTER_MAX);
    return det_reserved_check(filled->reserved, "a lock", reterr);
}

/* Waiting. */

static det_time deadline_of(struct det_runtime *runtime, const struct det_lock_options *options)
{
    return det_add_time(
        det_world_now(runtime->world, DET_CLOCK_MONOTONIC), options->wait > 0 ? options->wait : 0);
}

static uint64_t wakes_seen(struct det_node *node)
{
    uint64_t wakes;

    det_mutex_lock(node->runtime->world, node->mutex);
    wakes = node->wakes;
    det_mutex_unlock(node->runtime->world, node->mutex);
    return wakes;
}

/* Waits until a lock was released or `retry` has passed: 0. DET_ERR_TIMEOUT at the deadline. */
static int wait_for_wake(struct det_node *node, uint64_t seen, det_time retry, det_time deadline)
{
    struct det_world *world = node->runtime->world;
    det_time now = det_world_now(world, DET_CLOCK_MONOTONIC);
    det_time until = det_add_time(now, retry);
    int r = 0;

    if (now >= deadline)
        return DET_ERR_TIMEOUT;
    det_mutex_lock(world, node->mutex);
    while (r == 0 && node->wakes == seen && !node->is_closing)
        r = det_condition_wait(
            world, node->changed, node->mutex, until < deadline ? until : deadline);
    if (node->is_closing)
        r = DET_ERR_CLOSED;
    det_mutex_unlock(world, node->mutex);
    return r == DET_ERR_TIMEOUT ? 0 : r;
}

static int fail_locked(
    const char *machine, const char *instance, const struct det_store_lease *lease,
    struct det_error *reterr)
{
    det_error_set(
        reterr, DET_ERR_LOCKED, "%s %s is locked by %s", machine, instance,
        *lease->owner ? lease->owner : "somebody");
    if (reterr) {
        reterr->until = lease->expires_at;
        memcpy(reterr->holder, lease->owner, sizeof reterr->holder);
    }
    return DET_ERR_LOCKED;
}

/* Errors that may pass soon. */
static bool is_passing(int r)
{
    return r == DET_ERR_LOCKED || r == DET_ERR_IO || r == DET_ERR_TIMEOUT || r == DET_ERR_BUSY;
}

static int fail_lock(
    const struct det_lease_plan *plan, int r, const struct det_store_lease *lease,
    struct det_error *reterr)
{
    const char *machine = plan->machine->name;

    if (r == DET_ERR_LOCKED)
        return fail_locked(machine, plan->name, lease, reterr);
    if (r == DET_ERR_NOT_FOUND)
        return det_error_set(
            reterr, r, "%s %s does not exist; start it first", machine, plan->name);
    return det_error_set(
        reterr, r, "%s %s cannot be locked: %s", machine, plan->name, det_error_text(r));
}

/* Requests the lock from the store until it is acquired or the deadline passes; at least once,
 * which returns the holder. */
static int request_lock(
    struct det_runtime *runtime, const struct det_lease_plan *plan,
    const struct det_lock_options *options, det_time deadline, struct det_grant *ret,
    struct det_error *reterr)
{
    struct det_store_lease lease;
    int r, w = 0;

    do {
        uint64_t seen = wakes_seen(runtime->node);

        r = det_lease_call(
            runtime, plan,
            &(struct det_store_lease_change){ .verb = DET_LEASE_ACQUIRE,
                                              .name = plan->name,
                                              .owner = plan->owner,
                                              .span = plan->span },
            &lease, &ret->until);
        if (r < 0 && is_passing(r))
            w = wait_for_wake(
                runtime->node, seen, det_node_vary(runtime->node, options->retry, JITTER_DEFAULT),
                deadline);
    } while (r < 0 && is_passing(r) && w == 0);
    if (r < 0 && w < 0 && w != DET_ERR_TIMEOUT)
        return det_error_set(
            reterr, w, "cannot wait for the lock of %.64s: %s", plan->name, det_error_text(w));
    if (r < 0)
        return fail_lock(plan, r, &lease, reterr);
    ret->token = lease.token;
    ret->sequence = lease.sequence;
    return 0;
}

/* After the earlier requests of this process. */
static int acquire(
    struct det_runtime *runtime, const struct det_lease_plan *plan,
    const struct det_lock_options *options, struct det_grant *ret, struct det_error *reterr)
{
    struct det_lock_waiter waiter = { .machine = plan->machine, .instance = plan->name };
    det_time deadline = deadline_of(runtime, options);
    int r = 0;

    if (options->wait > 0)
        r = det_lock_queue_enter(runtime->node, &waiter, deadline);
    if (r == 0 || r == DET_ERR_TIMEOUT)
        r = request_lock(runtime, plan, options, deadline, ret, reterr);
    else
        det_error_set(
            reterr, r, "cannot wait for the lock of %.64s: %s", plan->name, det_error_text(r));
    det_lock_queue_leave(runtime->node, &waiter);
    return r;
}

static void release(struct det_runtime *runtime, const struct det_lease_plan *plan, uint64_t token)
{
    struct det_store_lease lease;
    int r;

    r = runtime->ops->lock(
        runtime->store, plan->machine,
        &(struct det_store_lease_change){
            .verb = DET_LEASE_RELEASE, .name = plan->name, .owner = plan->owner, .token = token },
        &lease);
    /* If the store cannot be reached, the lock lapses there. */
    (void)r;
    det_node_wake(runtime->node);
}

/* The previous holder may have changed the instance, so the resident is stale. The machine is
 * served already. */
static void freshen(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    uint64_t sequence)
{
    const struct det_index_slot *slot;
    struct det_served *served;
    struct det_shard *shard;
    uint64_t hash;
    int r;

    r = det_served_get(runtime, machine, NULL, &served);
    det_assert(r == 0);
    hash = det_served_hash(runtime, instance);
    shard = det_served_shard(runtime, hash);
    det_shard_lock(runtime, shard);
    slot = det_index_find(det_served_index(runtime, served, shard), hash, instance);
    if (slot && !slot->resident->is_loading && !slot->resident->is_stale &&
        slot->resident->head.sequence < sequence) {
        slot->resident->is_stale = true;
        shard->stale++;
    }
    det_shard_unlock(runtime, shard);
}

/* Sends and locks. */

static struct det_lease_plan plan_of_send(
    const struct det_send_lock *lock, const struct det_lock_options *options)
{
    return (struct det_lease_plan){
        .machine = lock->machine,
        .name = lock->instance,
        .owner = lock->owner,
        .span = options->span,
    };
}

int det_send_lock_enter(struct det_send_lock *lock, struct det_error *reterr)
{
    struct det_runtime *runtime = lock->runtime;
    struct det_lock_options options = fill_options(runtime->options.lock);
    struct det_lease_plan plan;
    struct det_grant grant;
    int r;

    if (runtime->options.locking != DET_LOCKING_LEASE || lock->fence)
        return 0;
    if (lock->is_hasty)
        options.wait = NOT_AT_ALL;
    det_node_owner(runtime, NULL, lock->owner);
    plan = plan_of_send(lock, &options);
    r = acquire(runtime, &plan, &options, &grant, reterr);
    if (r < 0)
        return r;
    freshen(runtime, lock->machine, lock->instance, grant.sequence);
    lock->fence = grant.token;
    lock->is_ours = true;
    return 0;
}

void det_lock_explain(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_error *reterr)
{
    struct det_store_lease lease = { 0 };
    int r;

    r = runtime->ops->lock(
        runtime->store, machine,
        &(struct det_store_lease_change){ .verb = DET_LEASE_READ, .name = instance }, &lease);
    if (r == 0 && *lease.owner)
        fail_locked(machine->name, instance, &lease, reterr);
}

/* Another holder has the lock: fills in the holder and the end; then waits for a change. */
static bool wait_unlocked(struct det_send_lock *lock, struct det_error *reterr)
{
    struct det_runtime *runtime = lock->runtime;
    struct det_lock_options options = fill_options(runtime->options.lock);
    uint64_t seen = wakes_seen(runtime->node);
    struct det_store_lease lease = { 0 };
    int r;

    r = runtime->ops->lock(
        runtime->store, lock->machine,
        &(struct det_store_lease_change){ .verb = DET_LEASE_READ, .name = lock->instance }, &lease);
    if (r == 0 && !*lease.owner)
        return true;
    if (!lock->until)
        lock->until = deadline_of(runtime, &options);
    fail_locked(lock->machine->name, lock->instance, &lease, reterr);
    if (lock->is_hasty)
        return false;
    r = wait_for_wake(
        runtime->node, seen, det_node_vary(runtime->node, options.retry, JITTER_DEFAULT),
        lock->until);
    return r == 0;
}

bool det_send_lock_leave(struct det_send_lock *lock, int result, struct det_error *reterr)
{
    struct det_lock_options options;
    struct det_lease_plan plan;

    if (!lock->is_ours)
        return result == DET_ERR_LOCKED && wait_unlocked(lock, reterr);
    options = fill_options(lock->runtime->options.lock);
    plan = plan_of_send(lock, &options);
    release(lock->runtime, &plan, lock->fence);
    lock->is_ours = false;
    lock->fence = 0;
    if (result != DET_ERR_LOCK_LOST || lock->is_again)
        return false;
    lock->is_again = true;
    return true;
}

/* Locks. */

static struct det_lease_plan plan_of(const struct det_lock *lock)
{
    return (struct det_lease_plan){
        .machine = lock->machine,
        .name = lock->instance,
        .owner = lock->owner,
        .span = lock->options.span,
        .renewal = lock->options.renewal,
        .jitter_percent = lock->options.jitter_percent,
        .is_once = true,
    };
}

/* On the loop. */
static void changed(void *user, bool is_held, uint64_t token)
{
    const struct det_lock *lock = user;

    (void)token;
    det_assert(!is_held);
    if (lock->options.lost)
        lock->options.lost(lock->options.user);
}

static int open_lock(struct det_lock *lock, struct det_error *reterr)
{
    struct det_lease_plan plan = plan_of(lock);
    struct det_grant grant;
    int r;

    plan.changed = changed;
    plan.user = lock;
    r = det_lease_make(lock->runtime->node, &plan, &lock->lease);
    if (r < 0)
        return det_error_set(reterr, r, "out of memory for a lock");
    r = acquire(lock->runtime, &plan, &lock->options, &grant, reterr);
    if (r < 0) {
        det_lease_discard(lock->lease);
        return r;
    }
    freshen(lock->runtime, lock->machine, lock->instance, grant.sequence);
    lock->fence = grant.token;
    det_lease_begin(lock->lease, &grant);
    return 0;
}

/* A caller that closes the runtime cannot close a lock that was not returned to it, so the lock is
 * not counted. */
static int count_opened(struct det_lock *lock, struct det_error *reterr)
{
    struct det_node *node = lock->runtime->node;
    struct det_lease_plan plan = plan_of(lock);
    bool is_closing;

    det_mutex_lock(lock->runtime->world, node->mutex);
    is_closing = node->is_closing;
    if (!is_closing)
        atomic_fetch_add(&node->opened, 1);
    det_mutex_unlock(lock->runtime->world, node->mutex);
    if (!is_closing)
        return 0;
    release(lock->runtime, &plan, lock->fence);
    det_lease_abandon(lock->lease);
    return det_error_set(
        reterr, DET_ERR_CLOSED, "cannot wait for the lock of %.64s: %s", plan.name,
        det_error_text(DET_ERR_CLOSED));
}

static int check_instance(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_error *reterr)
{
    struct det_served *served;

    if (!runtime->ops->lock)
        return det_error_set(reterr, DET_ERR_UNSUPPORTED, "this store does not support locks");
    if (!det_store_id_is_valid(instance))
        return det_error_set(
            reterr, DET_ERR_INVALID, "an id must have 1 to %d characters of A-Z a-z 0-9 . _ : -",
            DET_ID_MAX);
    return det_served_get(runtime, machine, reterr, &served);
}

static int make_lock(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const struct det_lock_options *filled, struct det_lock **ret, struct det_error *reterr)
{
    struct det_lock *lock;
    int r;

    r = check_instance(runtime, machine, instance, reterr);
    if (r < 0)
        return r;
    lock = DET_NEW(runtime->allocator, struct det_lock);
    if (!lock)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a lock");
    lock->runtime = runtime;
    lock->machine = machine;
    lock->options = *filled;
    snprintf(lock->instance, sizeof lock->instance, "%s", instance);
    det_node_owner(runtime, NULL, lock->owner);
    r = open_lock(lock, reterr);
    if (r == 0)
        r = count_opened(lock, reterr);
    if (r < 0) {
        DET_DELETE(runtime->allocator, lock);
        return r;
    }
    *ret = lock;
    return 0;
}

int det_lock_open(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const struct det_lock_options *options, struct det_lock **ret, struct det_error *reterr)
{
    struct det_lock_options filled = fill_options(options);
    int r;

    det_assert(runtime && machine && instance && ret);
    r = check_options(&filled, reterr);
    if (r < 0)
        return r;
    det_node_enter(runtime->node);
    r = make_lock(runtime, machine, instance, &filled, ret, reterr);
    det_node_leave(runtime->node);
    return r;
}

void det_lock_close(struct det_lock *lock)
{
    struct det_lease_plan plan;

    if (!lock)
        return;
    plan = plan_of(lock);
    release(lock->runtime, &plan, lock->fence);
    det_lease_abandon(lock->lease);
    atomic_fetch_sub(&lock->runtime->node->opened, 1);
    DET_DELETE(lock->runtime->allocator, lock);
}

static int fail_lost(const struct det_lock *lock, struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_LOCK_LOST, "%s %s: the lock with the number %llu was lost",
        lock->machine->name, lock->instance, (unsigned long long)lock->fence);
}

int det_lock_send_all(
    struct det_lock *lock, const void *const *events, size_t count,
    const struct det_send_options *options, struct det_sent *ret, struct det_error *reterr)
{
    struct det_send_all send = { .runtime = lock->runtime,
                                 .machine = lock->machine,
                                 .instance = lock->instance,
                                 .events = events,
                                 .count = count,
                                 .fence = lock->fence };
    int r = DET_ERR_LOCK_LOST;

    if (det_lock_is_held(lock))
        r = det_send_under(&send, options, ret, reterr);
    if (r != DET_ERR_LOCK_LOST)
        return r;
    det_lease_lose(lock->lease);
    if (lock->options.on_lost == DET_LOCK_LOST_FAIL_FAST)
        return fail_lost(lock, reterr);
    send.fence = 0;
    return det_send_under(&send, options, ret, reterr);
}

int det_lock_send(
    struct det_lock *lock, const void *event, const struct det_send_options *options,
    struct det_sent *ret, struct det_error *reterr)
{
    return det_lock_send_all(lock, &event, 1, options, ret, reterr);
}

int det_lock_get(
    struct det_lock *lock, struct det_instance *ret, void *ret_data, struct det_error *reterr)
{
    if (lock->options.on_lost == DET_LOCK_LOST_FAIL_FAST && !det_lock_is_held(lock))
        return fail_lost(lock, reterr);
    return det_runtime_get(lock->runtime, lock->machine, lock->instance, ret, ret_data, reterr);
}

uint64_t det_lock_fence(const struct det_lock *lock)
{
    return lock->fence;
}

bool det_lock_is_held(struct det_lock *lock)
{
    return det_lease_is_held(lock->lease, NULL);
}
