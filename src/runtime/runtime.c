/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* runtime.c - opens, settles and closes a runtime.
 *
 *     open -> serving --close--> submitted sends are carried out -> no new calls -> calls end
 *                                -> the loop stops -> running effects end -> their ends are
 *                                recorded -> gone */
#include <detent/driver/loop.h>

#include "runtime/runtime.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "runtime/node.h"
#include "runtime/submit.h"
#include "runtime/turn_batch.h"

#define SHARDS_MAX  1024
#define WRITERS_MAX 1024
#define JITTER_MAX  1000
/* Number of pool threads at the start. */
#define THREADS_FIRST 2

static void or_default(uint32_t *value, uint32_t otherwise)
{
    if (!*value)
        *value = otherwise;
}

static void or_default_time(det_time *value, det_time otherwise)
{
    if (!*value)
        *value = otherwise;
}

static void fill_node(struct det_node_options *node)
{
    or_default_time(&node->lease, 10 * DET_SECOND);
    or_default_time(&node->renewal, node->lease / 3);
    or_default_time(&node->sweep_interval, 5 * DET_SECOND);
    or_default(&node->sweep_jitter_percent, 20);
    or_default(&node->sweep_batch, 256);
    if (node->sweep_jitter_percent == UINT32_MAX)
        node->sweep_jitter_percent = 0;
}

static void fill_defaults(struct det_runtime_options *options, const struct det_store *store)
{
    or_default(&options->pool_threads, DET_EFFECT_THREADS);
    or_default(&options->shards, 64);
    or_default(&options->history_kept, 16);
    or_default(&options->instances_max, 100000);
    or_default(&options->writers, store->writers > 1 ? 2 : 1);
    or_default_time(&options->hook_deadline, 5 * DET_SECOND);
    or_default_time(&options->send_deadline, 10 * DET_SECOND);
    or_default(&options->effects.attempts_max, 8);
    or_default_time(&options->effects.backoff_first, 100 * DET_MILLISECOND);
    or_default_time(&options->effects.backoff_max, 30 * DET_SECOND);
    or_default(&options->effects.jitter_percent, 20);
    if (options->effects.jitter_percent == UINT32_MAX)
        options->effects.jitter_percent = 0;
    fill_node(&options->node);
}

static int check_node(const struct det_node_options *node, struct det_error *reterr)
{
    if (node->lease < 0 || node->renewal < 0 || node->sweep_interval < 0 || node->sweep_backoff < 0)
        return det_error_set(reterr, DET_ERR_INVALID, "a duration is negative");
    if (node->renewal >= node->lease)
        return det_error_set(
            reterr, DET_ERR_INVALID, "the lease of a node must be renewed within its span");
    if (node->sweep_jitter_percent > JITTER_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "jitter_percent must be at most %d", JITTER_MAX);
    return 0;
}

static int check_options(
    const struct det_runtime_options *options, const struct det_store *store,
    struct det_error *reterr)
{
    int r = det_reserved_check(options->reserved, "a runtime", reterr);

    if (r < 0)
        return r;
    if (options->world != store->world)
        return det_error_set(reterr, DET_ERR_INVALID, "the store belongs to another world");
    if (options->loop && det_loop_world(options->loop) != store->world)
        return det_error_set(reterr, DET_ERR_INVALID, "the loop belongs to another world");
    if (options->shards > SHARDS_MAX || options->shards & (options->shards - 1))
        return det_error_set(
            reterr, DET_ERR_INVALID, "shards must be a power of two of at most %d, not %u",
            SHARDS_MAX, options->shards);
    if (options->pool_threads > DET_EFFECT_THREADS_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "pool_threads must be at most %d", DET_EFFECT_THREADS_MAX);
    if (options->writers > WRITERS_MAX)
        return det_error_set(reterr, DET_ERR_INVALID, "writers must be at most %d", WRITERS_MAX);
    if (options->history_kept > DET_HISTORY_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "history_kept must be at most %d", DET_HISTORY_MAX);
    if (options->hook_deadline < 0 || options->send_deadline < 0 || options->effects.deadline < 0 ||
        options->effects.backoff_first < 0 || options->effects.backoff_max < 0 ||
        options->snapshots.span < 0)
        return det_error_set(reterr, DET_ERR_INVALID, "a duration is negative");
    if (options->effects.jitter_percent > JITTER_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "jitter_percent must be at most %d", JITTER_MAX);
    return check_node(&options->node, reterr);
}

static int open_shards(struct det_runtime *runtime, uint32_t count)
{
    int r = 0;

    runtime->shards = DET_NEW_ARRAY(runtime->allocator, count, struct det_shard);
    if (!runtime->shards)
        return DET_ERR_NO_MEMORY;
    runtime->shard_mask = count - 1;
    runtime->instances_max = (runtime->options.instances_max + (uint64_t)count - 1) / count;
    for (uint32_t i = 0; i < count; i++) {
        det_heap_init(&runtime->shards[i].due, runtime->allocator);
        det_list_init(&runtime->shards[i].ring);
    }
    for (uint32_t i = 0; r == 0 && i < count; i++) {
        r = det_mutex_open(runtime->world, &runtime->shards[i].mutex);
        if (r == 0)
            r = det_condition_open(runtime->world, &runtime->shards[i].changed);
    }
    return r;
}

static int open_loop(struct det_runtime *runtime)
{
    int r = 0;

    runtime->loop = runtime->options.is_passive ? NULL : runtime->options.loop;
    runtime->is_loop_ours = !runtime->loop;
    if (runtime->is_loop_ours)
        r = det_loop_open(runtime->world, runtime->allocator, &runtime->loop);
    if (r < 0)
        return r;
    runtime->look.run = det_due_execute;
    runtime->look.argument = runtime;
    runtime->kick.run = det_due_kicked;
    runtime->kick.argument = runtime;
    /* due.c overwrites this. */
    if (runtime->ops->is_shared)
        return det_loop_timer_set(runtime->loop, &runtime->look, DET_NEVER);
    return det_loop_timer_set_wall(runtime->loop, &runtime->look, DET_NEVER);
}

static int open_pool(struct det_runtime *runtime)
{
    uint32_t most = runtime->options.pool_threads;
    struct det_pool *pool = NULL;
    int r;

    r = det_pool_open_growing(
        runtime->world, runtime->allocator, most < THREADS_FIRST ? most : THREADS_FIRST, most,
        &pool);
    atomic_store(&runtime->pool, pool);
    return r;
}

static int open_parts(struct det_runtime *runtime, struct det_error *reterr)
{
    bool acts = !runtime->options.is_passive;
    int r;

    r = open_shards(runtime, runtime->options.shards);
    if (r == 0)
        r = det_mutex_open(runtime->world, &runtime->mutex);
    if (r == 0)
        r = det_mutex_open(runtime->world, &runtime->quiet_mutex);
    if (r == 0)
        r = det_condition_open(runtime->world, &runtime->quiet);
    if (r == 0)
        r = det_batch_open(runtime, runtime->ops->is_quick ? 1 : DET_BATCH_TURNS, &runtime->batch);
    if (r == 0)
        r = open_loop(runtime);
    /* Without a pool no effect begins, and a stopped loop fires no timer. */
    if (r == 0 && acts)
        r = open_pool(runtime);
    if (r == 0)
        r = det_node_open(runtime, reterr);
    if (r == 0 && acts && runtime->is_loop_ours)
        r = det_loop_start(runtime->loop, "det-runtime");
    return r;
}

static void close_shards(struct det_runtime *runtime)
{
    for (uint32_t i = 0; runtime->shards && i <= runtime->shard_mask; i++) {
        struct det_shard *shard = &runtime->shards[i];

        det_draft_close_all(runtime, shard);
        det_heap_deinit(&shard->due);
        det_condition_close(runtime->world, shard->changed);
        det_mutex_close(runtime->world, shard->mutex);
    }
    if (runtime->shards)
        DET_DELETE_ARRAY(runtime->allocator, runtime->shards, runtime->shard_mask + 1);
}

/* Effects that have ended are due at once, whatever the time. */
static void drain(struct det_runtime *runtime)
{
    while (atomic_load(&runtime->jobs) || atomic_load(&runtime->is_kicked) ||
           atomic_load(&runtime->next_pass) == INT64_MIN)
        (void)det_loop_turn(runtime->loop, 0);
}

/* Also for a partially opened runtime. */
static void close_parts(struct det_runtime *runtime)
{
    det_node_stop_sweeping(runtime);
    det_pool_close(atomic_exchange(&runtime->pool, NULL));
    /* The pool has posted all its messages, which need the complete runtime. */
    drain(runtime);
    det_node_close(runtime);
    drain(runtime);
    if (runtime->loop)
        det_loop_timer_cancel(runtime->loop, &runtime->look);
    if (runtime->is_loop_ours)
        det_loop_close(runtime->loop);
    det_writers_close(runtime);
    det_batch_close(runtime->batch);
    det_served_close_all(runtime);
    close_shards(runtime);
    det_condition_close(runtime->world, runtime->quiet);
    det_mutex_close(runtime->world, runtime->quiet_mutex);
    det_mutex_close(runtime->world, runtime->mutex);
    DET_DELETE(runtime->allocator, runtime);
}

/* True if this call occupied the store. Drivers are C, and this is the one field two threads may
 * race for, so the type stays a plain bool. */
static bool occupy(struct det_store *store)
{
    return !__atomic_test_and_set(&store->is_used, __ATOMIC_SEQ_CST);
}

static void vacate(struct det_store *store)
{
    store->upcast = NULL;
    store->upcast_user = NULL;
    __atomic_clear(&store->is_used, __ATOMIC_SEQ_CST);
}

static bool snapshots_by_itself(const struct det_runtime_options *options)
{
    return options->snapshots.every || options->snapshots.span || options->snapshots.on_final;
}

int det_runtime_open(
    struct det_store *store, const struct det_runtime_options *options, struct det_runtime **ret,
    struct det_error *reterr)
{
    struct det_runtime_options filled = options ? *options : (struct det_runtime_options){ 0 };
    struct det_error error = { 0 };
    struct det_runtime *runtime;
    int r;

    det_assert(store);
    filled.world = det_world_or_real(filled.world);
    fill_defaults(&filled, store);
    r = check_options(&filled, store, reterr);
    if (r < 0)
        return r;
    if (!occupy(store))
        return det_error_set(reterr, DET_ERR_BUSY, "the store is already used by another runtime");
    store->upcast = filled.upcast;
    store->upcast_user = filled.user;
    runtime = DET_NEW(filled.allocator, struct det_runtime);
    if (!runtime) {
        vacate(store);
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a runtime");
    }
    runtime->world = filled.world;
    runtime->allocator = filled.allocator;
    runtime->store = store;
    runtime->ops = store->ops;
    runtime->options = filled;
    runtime->is_quick = store->ops->is_quick && !filled.observe && !filled.meter &&
                        !snapshots_by_itself(&filled) && filled.locking == DET_LOCKING_OPTIMISTIC;
    runtime->hook_clock =
        filled.hook_deadline < DET_TICK_SPAN ? DET_CLOCK_MONOTONIC : DET_CLOCK_TICK;
    runtime->seed = det_world_random_u64(filled.world);
    atomic_init(&runtime->next_pass, DET_NEVER);
    atomic_init(&runtime->queue_next, DET_NEVER);
    r = open_parts(runtime, &error);
    if (r < 0) {
        close_parts(runtime);
        vacate(store);
        return det_error_set(
            reterr, r, "the runtime cannot be opened: %s",
            error.code == r ? error.text : det_error_text(r));
    }
    *ret = runtime;
    return 0;
}

/* Refuses new calls and waits until all have left. */
static void refuse_calls(struct det_runtime *runtime, struct det_shard *shard)
{
    det_shard_lock(runtime, shard);
    shard->is_closing = true;
    det_condition_broadcast(runtime->world, shard->changed);
    while (shard->calls)
        (void)det_condition_wait(runtime->world, shard->changed, shard->mutex, DET_NEVER);
    det_shard_unlock(runtime, shard);
}

void det_runtime_close(struct det_runtime *runtime)
{
    struct det_store *store;

    if (!runtime)
        return;
    store = runtime->store;
    det_writers_stop(runtime);
    for (uint32_t i = 0; i <= runtime->shard_mask; i++)
        refuse_calls(runtime, &runtime->shards[i]);
    det_node_refuse_calls(runtime);
    if (runtime->is_loop_ours && !runtime->options.is_passive)
        det_loop_stop(runtime->loop);
    close_parts(runtime);
    vacate(store);
}

void det_runtime_close_within(struct det_runtime *runtime, det_time span)
{
    if (runtime)
        det_store_cancel(runtime->store, span);
    det_runtime_close(runtime);
}

int det_runtime_serve(
    struct det_runtime *runtime, const struct det_machine *machine, struct det_error *reterr)
{
    struct det_error error = { 0 };
    struct det_served *served;
    int r;

    r = det_served_get(runtime, machine, &error, &served);
    if (r < 0 && error.code != r)
        det_error_set(&error, r, "%s cannot be served: %s", machine->name, det_error_text(r));
    if (r < 0 && reterr)
        *reterr = error;
    return r;
}

/* The caller's own loop turns only here. */
static int settle_by_turning(struct det_runtime *runtime, det_time until)
{
    while (!det_due_is_settled(runtime)) {
        int r;

        if (det_world_now(runtime->world, DET_CLOCK_MONOTONIC) >= until)
            return DET_ERR_TIMEOUT;
        r = det_loop_turn(runtime->loop, until);
        if (r < 0)
            return r;
    }
    return 0;
}

static uint64_t generation(struct det_runtime *runtime)
{
    uint64_t now;

    det_mutex_lock(runtime->world, runtime->quiet_mutex);
    now = runtime->quiet_generation;
    det_mutex_unlock(runtime->world, runtime->quiet_mutex);
    return now;
}

static int wait_for_next(struct det_runtime *runtime, uint64_t seen, det_time until)
{
    int r = 0;

    det_mutex_lock(runtime->world, runtime->quiet_mutex);
    while (r == 0 && runtime->quiet_generation == seen)
        r = det_condition_wait(runtime->world, runtime->quiet, runtime->quiet_mutex, until);
    det_mutex_unlock(runtime->world, runtime->quiet_mutex);
    return r;
}

static int settle_by_waiting(struct det_runtime *runtime, det_time until)
{
    int r = 0;

    atomic_fetch_add(&runtime->settling, 1);
    while (r == 0) {
        uint64_t seen = generation(runtime);

        if (det_due_is_settled(runtime))
            break;
        r = wait_for_next(runtime, seen, until);
    }
    atomic_fetch_sub(&runtime->settling, 1);
    return r;
}

int det_runtime_settle(struct det_runtime *runtime, det_time span)
{
    det_time until = det_add_time(det_world_now(runtime->world, DET_CLOCK_MONOTONIC), span);

    if (runtime->options.is_passive)
        return 0;
    return runtime->is_loop_ours ? settle_by_waiting(runtime, until)
                                 : settle_by_turning(runtime, until);
}
