/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sweeper.c - takes over the work of lapsed nodes: the functions that sweeper.fsm names. */
#include <detent/driver/loop.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "runtime/node.h"

struct det_sweeper {
    struct det_component component;
    struct det_node *node;
    struct det_list link;
    const struct det_machine *machine;
    struct det_lease *lease; /* lease of the leader; NULL after its release */
    struct det_alarm alarm;
    struct det_post begin, end;
    struct det_job job;
    int result;
    size_t adopted;
};

#define FSM_LOCAL
#define FSM_SPEC "runtime/sweeper.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "runtime/sweeper.fsm"
#include <detent/fsm/define.h>

struct det_sweeper *det_sweeper_of(struct det_list *node)
{
    return DET_CONTAINER(node, struct det_sweeper, link);
}

static void offer(struct det_sweeper *sweeper, struct sweeper_event event)
{
    int r;

    if (!det_component_is_supervised(&sweeper->component))
        return;
    r = sweeper_offer(sweeper, event);
    det_assert(r == 0 || r == DET_ERR_UNHANDLED);
}

static const struct det_node_options *options_of(const struct det_sweeper *sweeper)
{
    return &sweeper->node->runtime->options.node;
}

/* The sweep. */

/* On the pool. Checks the clock, not the loop, for being the leader: the process may have been
 * stopped for a while. */
static void run_job(void *argument)
{
    struct det_sweeper *sweeper = argument;
    const struct det_runtime *runtime = sweeper->node->runtime;

    sweeper->adopted = 0;
    sweeper->result = DET_ERR_LOCK_LOST;
    if (sweeper->lease && det_lease_is_held(sweeper->lease, NULL))
        sweeper->result = runtime->ops->adopt(
            runtime->store, sweeper->machine, options_of(sweeper)->sweep_batch, &sweeper->adopted);
}

static void count_up(const struct det_sweeper *sweeper)
{
    struct det_runtime *runtime = sweeper->node->runtime;
    struct det_shard *shard = &runtime->shards[0];

    det_shard_lock(runtime, shard);
    shard->counts.sweeps++;
    shard->counts.adopted += sweeper->adopted;
    det_shard_unlock(runtime, shard);
}

/* On the loop. */
static void job_done(void *argument)
{
    struct det_sweeper *sweeper = argument;

    if (sweeper->result == 0)
        count_up(sweeper);
    if (sweeper->result < 0)
        offer(sweeper, sweeper_failed());
    else if (sweeper->adopted >= options_of(sweeper)->sweep_batch)
        offer(sweeper, sweeper_full());
    else
        offer(sweeper, sweeper->adopted ? sweeper_found() : sweeper_empty());
}

static void alarmed(void *argument)
{
    offer(argument, sweeper_time());
}

static void led(void *user, bool is_held, uint64_t token)
{
    (void)token;
    offer(user, is_held ? sweeper_lead() : sweeper_follow());
}

/* The interval plus a random part. */
static void plan_in(struct det_sweeper *sweeper, det_time more)
{
    const struct det_node_options *options = options_of(sweeper);
    struct det_world *world = sweeper->node->runtime->world;
    uint64_t most = (uint64_t)options->sweep_interval / 100 * options->sweep_jitter_percent;
    det_time span = det_add_time(options->sweep_interval, more);

    if (most)
        span = det_add_time(span, (det_time)(det_world_random_u64(world) % (most + 1)));
    det_alarm_set(
        sweeper->node, &sweeper->alarm,
        det_add_time(det_world_now(world, DET_CLOCK_MONOTONIC), span));
}

/* Guards and actions: none of them can fail. */

static bool leads(const struct det_sweeper *sweeper, const struct sweeper_event *event)
{
    (void)event;
    return sweeper->lease && det_lease_is_held(sweeper->lease, NULL);
}

#define ACTION(name)                                                                               \
    static int name(                                                                               \
        struct det_sweeper *sweeper, const struct sweeper_event *event, struct sweeper_event *ret) \
    {                                                                                              \
        (void)event;                                                                               \
        (void)ret;                                                                                 \
        name##_now(sweeper);                                                                       \
        return DET_EFFECT_DONE;                                                                    \
    }

static void sweep_now(struct det_sweeper *sweeper)
{
    sweeper->job = (struct det_job){
        .run = run_job, .done = job_done, .argument = sweeper, .loop = sweeper->node->runtime->loop
    };
    det_pool_submit(sweeper->node->pool, &sweeper->job);
}
ACTION(sweep)

static void kick_now(struct det_sweeper *sweeper)
{
    det_node_adopted(sweeper->node);
    det_served_list_again(sweeper->node->runtime, sweeper->machine);
}
ACTION(kick)

static void plan_now(struct det_sweeper *sweeper)
{
    plan_in(sweeper, 0);
}
ACTION(plan)

static void plan_backoff_now(struct det_sweeper *sweeper)
{
    plan_in(sweeper, options_of(sweeper)->sweep_backoff);
}
ACTION(plan_backoff)

static void unplan_now(struct det_sweeper *sweeper)
{
    det_alarm_set(sweeper->node, &sweeper->alarm, DET_NEVER);
}
ACTION(unplan)

static void resign_now(struct det_sweeper *sweeper)
{
    det_lease_close(sweeper->lease);
    sweeper->lease = NULL;
}
ACTION(resign)

/* Creation and destruction. */

static void free_sweeper(void *argument)
{
    struct det_sweeper *sweeper = argument;
    struct det_node *node = sweeper->node;

    det_list_remove(&sweeper->link);
    det_alarm_unpromise(node);
    DET_DELETE(node->runtime->allocator, sweeper);
    atomic_fetch_sub(&node->kept, 1);
}

static int sweeper_completed(struct det_sweeper *sweeper, const struct det_component_end *end)
{
    (void)end;
    det_loop_post(sweeper->node->runtime->loop, &sweeper->end);
    return 0;
}

static void begin(void *argument)
{
    struct det_sweeper *sweeper = argument;
    int r;

    det_list_append(&sweeper->node->sweepers, &sweeper->link);
    r = sweeper_supervise(
        sweeper->node->executor, sweeper, &(struct det_supervise_options){ .without_handle = true },
        NULL, NULL);
    det_assert(r == 0);
}

static int open_lease(struct det_sweeper *sweeper)
{
    struct det_runtime *runtime = sweeper->node->runtime;
    const struct det_node_options *options = &runtime->options.node;
    char name[DET_ID_MAX + 1], owner[DET_OWNER_MAX + 1];

    snprintf(name, sizeof name, "sweeper/%s", sweeper->machine->name);
    det_node_owner(runtime, NULL, owner);
    return det_lease_make(
        sweeper->node,
        &(struct det_lease_plan){ .name = name,
                                  .owner = owner,
                                  .span = options->lease,
                                  .renewal = options->renewal,
                                  .jitter_percent = 10,
                                  .changed = led,
                                  .user = sweeper },
        &sweeper->lease);
}

int det_sweeper_open(struct det_node *node, const struct det_machine *machine)
{
    const struct det_allocator *allocator = node->runtime->allocator;
    struct det_sweeper *sweeper;
    int r;

    r = det_alarm_promise(node);
    if (r < 0)
        return r;
    sweeper = DET_NEW(allocator, struct det_sweeper);
    if (sweeper) {
        sweeper->node = node;
        sweeper->machine = machine;
        r = open_lease(sweeper);
    }
    if (!sweeper || r < 0) {
        if (sweeper)
            DET_DELETE(allocator, sweeper);
        det_alarm_unpromise(node);
        return DET_ERR_NO_MEMORY;
    }
    det_list_init(&sweeper->link);
    det_alarm_init(&sweeper->alarm, alarmed, sweeper);
    sweeper->begin = (struct det_post){ .run = begin, .argument = sweeper };
    sweeper->end = (struct det_post){ .run = free_sweeper, .argument = sweeper };
    atomic_fetch_add(&node->kept, 1);
    det_loop_post(node->runtime->loop, &sweeper->begin);
    det_lease_begin(sweeper->lease, NULL);
    return 0;
}

void det_sweeper_stop(struct det_sweeper *sweeper)
{
    offer(sweeper, sweeper_stop());
}

void det_sweeper_wake(struct det_sweeper *sweeper)
{
    offer(sweeper, sweeper_wake());
}
