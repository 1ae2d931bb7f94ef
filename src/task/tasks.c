/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tasks.c - opens and closes the supervisor of tasks; common parts: policies, clocks, random
 * numbers. */
#include <detent/driver/policy.h>

#include "task/supervisor.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "os/loop_loan.h"

/* Number of pool threads at the start. */
#define POOL_THREADS_FIRST 4
/* Normal difference of two readings of two clocks; a larger one means that a clock was set. */
#define CLOCKS_SLACK (10 * DET_MILLISECOND)

/* Options with their defaults. */
static void set_options(struct det_tasks *tasks, const struct det_tasks_options *options)
{
    struct det_tasks_options *all = &tasks->options;

    if (options)
        *all = *options;
    if (!all->pool_threads)
        all->pool_threads = DET_POOL_THREADS;
    if (!all->tasks_max)
        all->tasks_max = DET_TASKS_MAX;
    if (!all->intake_max)
        all->intake_max = DET_INTAKE_MAX;
    if (!all->slot_depth_max)
        all->slot_depth_max = DET_SLOT_DEPTH_MAX;
    if (!all->bus_capacity)
        all->bus_capacity = DET_BUS_CAPACITY;
    if (!all->grace)
        all->grace = 60 * DET_SECOND;
    if (!all->subscriber_grace)
        all->subscriber_grace = 5 * DET_SECOND;
    tasks->world = all->loop ? det_loop_world(all->loop) : det_world_or_real(all->world);
    tasks->allocator = all->allocator;
}

static void init_lists(struct det_tasks *tasks)
{
    det_world_random(tasks->world, &tasks->chance, sizeof tasks->chance);
    det_id_map_init(&tasks->index.ids, tasks->allocator);
    det_map_init(
        &tasks->index.names, tasks->allocator, det_tasks_chance(tasks),
        offsetof(struct det_task, name));
    det_slots_init(tasks);
    det_tree_init(tasks);
    det_list_init(&tasks->policies);
    det_list_init(&tasks->permits.line);
    det_list_init(&tasks->permits.pool_line);
    det_list_init(&tasks->settling.ended);
    tasks->index.next_id = 1;
    tasks->status.is_empty = true;
    tasks->status.is_idle = true;
}

/* Longer than a call from another thread, and too short to be noticed. In virtual time it would
 * last until a test moves the clocks. */
static det_time nap_of(const struct det_world *world)
{
    return world->ops->preempt ? 0 : 50 * DET_MICROSECOND;
}

static int open_parts(struct det_tasks *tasks)
{
    int r;

    r = det_mutex_open(tasks->world, &tasks->status.mutex);
    if (r == 0)
        r = det_condition_open(tasks->world, &tasks->status.changed);
    if (r == 0)
        r = det_condition_open(tasks->world, &tasks->intake.has_room);
    if (r == 0 && !tasks->options.loop)
        r = det_loop_open(tasks->world, tasks->allocator, &tasks->own_loop);
    if (r < 0)
        return r;
    if (tasks->own_loop)
        det_loop_lend(tasks->own_loop, nap_of(tasks->world));
    tasks->loop = tasks->own_loop ? tasks->own_loop : tasks->options.loop;
    r = det_executor_open(
        tasks->loop, &(struct det_executor_options){ .allocator = tasks->allocator },
        &tasks->executor, NULL);
    if (r == 0)
        r = det_bus_open(tasks->loop, tasks->allocator, tasks->options.bus_capacity, &tasks->bus);
    if (r == 0) {
        det_bus_set_relief(tasks->bus, det_tasks_relieved, tasks);
        r = det_tree_open(tasks);
    }
    tasks->permits.pool_size = tasks->options.pool_threads;
    if (tasks->permits.pool_size > POOL_THREADS_FIRST)
        tasks->permits.pool_size = POOL_THREADS_FIRST;
    if (r == 0)
        r = det_pool_open(tasks->world, tasks->allocator, tasks->permits.pool_size, &tasks->pool);
    if (r == 0)
        r = det_supervisor_start(tasks);
    return r;
}

/* All tasks are gone, or there were none. */
static void free_parts(struct det_tasks *tasks)
{
    det_assert(tasks->index.ids.count == 0 && tasks->index.queued == 0);
    det_assert(tasks->permits.used == 0 && atomic_load(&tasks->intake.posted) == 0);
    if (tasks->pool)
        det_pool_close(tasks->pool);
    if (tasks->loop)
        det_supervisor_stop(tasks);
    det_executor_close(tasks->executor);
    if (tasks->bus)
        det_bus_close(tasks->bus);
    det_tree_close(tasks);
    det_slots_deinit(tasks);
    det_map_deinit(&tasks->index.names);
    det_id_map_deinit(&tasks->index.ids);
    det_loop_close(tasks->own_loop);
    det_signals_close(tasks);
    det_condition_close(tasks->world, tasks->intake.has_room);
    det_condition_close(tasks->world, tasks->status.changed);
    det_mutex_close(tasks->world, tasks->status.mutex);
    DET_DELETE(tasks->allocator, tasks);
}

int det_tasks_open(
    const struct det_tasks_options *options, struct det_tasks **ret, struct det_error *reterr)
{
    struct det_tasks *tasks;
    int r;

    r = options ? det_reserved_check(options->reserved, "a supervisor of tasks", reterr) : 0;
    if (r < 0)
        return r;
    if (options && options->bus_capacity > DET_BUS_CAPACITY_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "bus_capacity is %u; at most %u events can be kept",
            (unsigned)options->bus_capacity, (unsigned)DET_BUS_CAPACITY_MAX);
    tasks = DET_NEW(options ? options->allocator : NULL, struct det_tasks);
    if (!tasks)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a supervisor of tasks");
    set_options(tasks, options);
    init_lists(tasks);
    r = det_policy_resolve(&tasks->options.defaults, NULL, &tasks->defaults, reterr);
    if (r < 0) {
        free_parts(tasks);
        return r;
    }
    r = open_parts(tasks);
    if (r == 0 && tasks->own_loop)
        r = det_loop_start(tasks->own_loop, "tasks");
    if (r < 0) {
        free_parts(tasks);
        return det_error_set(reterr, r, "the supervisor of tasks: %s", det_error_text(r));
    }
    *ret = tasks;
    return 0;
}

void det_tasks_close(struct det_tasks *tasks)
{
    if (!tasks)
        return;
    det_assert(!det_tasks_is_waiting_for_itself(tasks));
    (void)det_tasks_shutdown(tasks, NULL);
    /* Waits for stuck functions without a limit. */
    det_supervisor_wait_over(tasks);
    if (tasks->own_loop)
        det_loop_stop(tasks->own_loop);
    /* A user's loop outlives the supervisor, and a posted message cannot be withdrawn. */
    while (!tasks->own_loop &&
           (tasks->settling.is_posted || atomic_load(&tasks->intake.posted) > 0) &&
           det_loop_turn(tasks->loop, 0) >= 0)
        continue;
    free_parts(tasks);
}

struct det_bus *det_tasks_bus(struct det_tasks *tasks)
{
    return tasks->bus;
}

static bool policies_are_equal(const struct det_policy *a, const struct det_policy *b)
{
    const struct det_backoff *x = &a->backoff, *y = &b->backoff;

    return a->restart == b->restart && a->interval == b->interval &&
           a->retries_max == b->retries_max && a->timeout == b->timeout && a->grace == b->grace &&
           x->first == y->first && x->max == y->max && !(x->factor < y->factor) &&
           !(x->factor > y->factor) && x->jitter == y->jitter && x->stable_after == y->stable_after;
}

static struct shared_policy *find_policy(struct det_tasks *tasks, const struct det_policy *policy)
{
    DET_LIST_EACH(node, &tasks->policies)
    {
        struct shared_policy *shared = DET_CONTAINER(node, struct shared_policy, all);

        if (policies_are_equal(&shared->policy, policy))
            return shared;
    }
    return NULL;
}

/* Policies are shared: a hundred thousand tasks rarely have more than a handful of them. */
int det_tasks_share_policy(
    struct det_tasks *tasks, const struct det_policy *policy, const struct det_policy **ret,
    struct det_error *reterr)
{
    struct shared_policy *shared;
    struct det_policy resolved;
    int r;

    r = det_policy_resolve(policy, &tasks->defaults, &resolved, reterr);
    if (r < 0)
        return r;
    shared = find_policy(tasks, &resolved);
    if (!shared) {
        shared = DET_NEW(tasks->allocator, struct shared_policy);
        if (!shared)
            return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a policy");
        shared->policy = resolved;
        det_list_append(&tasks->policies, &shared->all);
    }
    det_assert(shared->users < UINT64_MAX);
    shared->users++;
    *ret = &shared->policy;
    return 0;
}

void det_tasks_unshare_policy(struct det_tasks *tasks, const struct det_policy *policy)
{
    struct shared_policy *shared;

    if (!policy)
        return;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the policy is its first member, and ours */
    shared = (struct shared_policy *)(uintptr_t)policy;
    det_assert(shared->users > 0);
    if (--shared->users > 0)
        return;
    det_list_remove(&shared->all);
    DET_DELETE(tasks->allocator, shared);
}

/* The wall clock is read once per turn. */
det_time det_tasks_wall(struct det_tasks *tasks)
{
    det_time now = det_loop_now(tasks->loop);

    if (now != tasks->wall.read_at) {
        tasks->wall.read_at = now;
        tasks->wall.time = det_world_now(tasks->world, DET_CLOCK_WALL);
    }
    return tasks->wall.time;
}

/* The clocks are read one after the other, so their difference varies slightly. */
det_time det_tasks_wall_of(struct det_tasks *tasks, det_time at)
{
    det_time apart = det_tasks_wall(tasks) - det_loop_now(tasks->loop);

    if (apart - tasks->wall.apart > CLOCKS_SLACK || tasks->wall.apart - apart > CLOCKS_SLACK)
        tasks->wall.apart = apart;
    return at + tasks->wall.apart;
}

/* Sufficient for spreading delays; the world's randomness costs more than a whole restart. */
uint64_t det_tasks_chance(struct det_tasks *tasks)
{
    uint64_t x = tasks->chance += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
