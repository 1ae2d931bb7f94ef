/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lease.c - keeps a lease, or the lock of an instance: the functions that lease.fsm names.
 *
 *     sent_at ------------------ renewal ---------------- until --- margin --- sent_at + span
 *        |  ours by our own clock                           |  treated as lost  |  by the
 *        |  (BOOT: it counts while the machine sleeps)      |                   |  store's
 *
 * The store counts from the arrival of the request, which is not before `sent_at`. So whatever
 * delays the answer or this process, we give up before another holder is possible. A check of the
 * lease compares with the clock, and does not depend on the loop. */
#include <detent/driver/loop.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "runtime/node.h"
#include "runtime/until.h"

/* The holder's end of a lease precedes the store's by this part of the span. */
#define MARGIN_PART 10
/* A failed renewal is retried after this part of the renewal interval. */
#define RETRY_PART 4

struct det_lease {
    struct det_component component;
    struct det_node *node;
    struct det_list link;
    struct det_lease_plan plan; /* its name and owner are those below */
    char name[DET_ID_MAX + 1], owner[DET_OWNER_MAX + 1];
    struct det_alarm alarm;
    struct det_post begin, end, nudge;
    bool is_users;         /* opened by det_lease_open() */
    bool is_given;         /* starts as held */
    bool is_abandoned;     /* its holder has already released it in the store */
    bool is_held_reported; /* the last reported value */
    atomic_bool is_nudged;
    struct det_job job;
    enum det_store_lease_verb verb; /* operation of the job */
    int result;
    det_time answer_until;
    uint64_t answer_token;
    _Atomic uint64_t token;     /* 0: the store does not know it as ours */
    _Atomic det_time until;     /* BOOT: our own end; 0: not held */
    bool is_closed, is_telling; /* under the node's mutex */
};

#define FSM_LOCAL
#define FSM_SPEC "runtime/lease.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "runtime/lease.fsm"
#include <detent/fsm/define.h>

struct det_lease *det_lease_of(struct det_list *node)
{
    return DET_CONTAINER(node, struct det_lease, link);
}

static struct det_world *world_of(const struct det_lease *lease)
{
    return lease->node->runtime->world;
}

static det_time monotonic(const struct det_lease *lease)
{
    return det_world_now(world_of(lease), DET_CLOCK_MONOTONIC);
}

static void offer(struct det_lease *lease, struct lease_event event)
{
    int r;

    if (!det_component_is_supervised(&lease->component))
        return;
    r = lease_offer(lease, event);
    det_assert(r == 0 || r == DET_ERR_UNHANDLED);
}

/* Calls the store. */

static int call(
    struct det_runtime *runtime, const struct det_lease_plan *plan,
    const struct det_store_lease_change *change, struct det_store_lease *ret)
{
    if (plan->machine)
        return runtime->ops->lock(runtime->store, plan->machine, change, ret);
    return runtime->ops->lease(runtime->store, change, ret);
}

int det_lease_call(
    struct det_runtime *runtime, const struct det_lease_plan *plan,
    const struct det_store_lease_change *change, struct det_store_lease *ret, det_time *ret_until)
{
    struct det_store_lease_change again = *change;
    det_time sent_at = det_world_now(runtime->world, DET_CLOCK_BOOT);
    int r;

    *ret = (struct det_store_lease){ 0 };
    r = call(runtime, plan, change, ret);
    if (change->verb == DET_LEASE_ACQUIRE && r == DET_ERR_LOCKED &&
        strcmp(ret->owner, change->owner) == 0) {
        again.verb = DET_LEASE_RENEW;
        again.token = ret->token;
        sent_at = det_world_now(runtime->world, DET_CLOCK_BOOT);
        r = call(runtime, plan, &again, ret);
    }
    *ret_until = det_add_time(sent_at, change->span - change->span / MARGIN_PART);
    if (r == 0 && change->verb != DET_LEASE_RELEASE &&
        *ret_until <= det_world_now(runtime->world, DET_CLOCK_BOOT))
        r = DET_ERR_TIMEOUT;
    return r;
}

/* On the pool. */
static void run_job(void *argument)
{
    struct det_lease *lease = argument;
    struct det_store_lease answer;

    lease->result = det_lease_call(
        lease->node->runtime, &lease->plan,
        &(struct det_store_lease_change){ .verb = lease->verb,
                                          .name = lease->name,
                                          .owner = lease->owner,
                                          .token = atomic_load(&lease->token),
                                          .span = lease->plan.span },
        &answer, &lease->answer_until);
    lease->answer_token = answer.token;
}

static struct lease_event answer_of(int result)
{
    if (result == 0)
        return lease_granted();
    if (result == DET_ERR_LOCKED || result == DET_ERR_LOCK_LOST || result == DET_ERR_NOT_FOUND)
        return lease_refused();
    return lease_failed();
}

/* On the loop. */
static void job_done(void *argument)
{
    struct det_lease *lease = argument;

    if (lease->result == 0 && lease->verb == DET_LEASE_ACQUIRE)
        atomic_store(&lease->token, lease->answer_token);
    if (lease->verb == DET_LEASE_RELEASE)
        det_node_wake(lease->node);
    offer(lease, answer_of(lease->result));
}

static void submit(struct det_lease *lease, enum det_store_lease_verb verb)
{
    lease->verb = verb;
    lease->job = (struct det_job){
        .run = run_job, .done = job_done, .argument = lease, .loop = lease->node->runtime->loop
    };
    det_pool_submit(lease->node->pool, &lease->job);
}

/* Reporting. */

static void notify_holder(struct det_lease *lease, bool is_held, uint64_t token)
{
    struct det_world *world = world_of(lease);
    bool is_wanted;

    if (!lease->plan.changed || lease->is_held_reported == is_held)
        return;
    det_mutex_lock(world, lease->node->mutex);
    is_wanted = lease->is_telling = !lease->is_closed;
    det_mutex_unlock(world, lease->node->mutex);
    if (!is_wanted)
        return;
    lease->is_held_reported = is_held;
    lease->plan.changed(lease->plan.user, is_held, token);
    det_mutex_lock(world, lease->node->mutex);
    lease->is_telling = false;
    det_condition_broadcast(world, lease->node->changed);
    det_mutex_unlock(world, lease->node->mutex);
}

/* Alarms. */

static void alarm_in(struct det_lease *lease, det_time span)
{
    det_alarm_set(lease->node, &lease->alarm, det_add_time(monotonic(lease), span));
}

/* Not after our own end of the lease. */
static void alarm_within(struct det_lease *lease, det_time span)
{
    det_time left = atomic_load(&lease->until) - det_world_now(world_of(lease), DET_CLOCK_BOOT);

    if (left < 0)
        left = 0;
    alarm_in(lease, span < left ? span : left);
}

static bool is_over(const struct det_lease *lease)
{
    return atomic_load(&lease->until) <= det_world_now(world_of(lease), DET_CLOCK_BOOT);
}

static void alarmed(void *argument)
{
    struct det_lease *lease = argument;
    bool is_ours = lease_is_ours((enum lease_state)det_component_state(&lease->component));

    if (is_ours && is_over(lease))
        offer(lease, lease_expired());
    else if (det_component_state(&lease->component) == LEASE_RENEWING)
        alarm_within(lease, DET_NEVER);
    else
        offer(lease, lease_time());
}

/* Guards. */

static bool is_once(const struct det_lease *lease, const struct lease_event *event)
{
    (void)event;
    return lease->plan.is_once;
}

static bool has_token(const struct det_lease *lease, const struct lease_event *event)
{
    (void)event;
    return atomic_load(&lease->token) && !lease->is_abandoned;
}

/* Actions: none of them can fail. */

#define ACTION(name)                                                                       \
    static int name(                                                                       \
        struct det_lease *lease, const struct lease_event *event, struct lease_event *ret) \
    {                                                                                      \
        (void)event;                                                                       \
        (void)ret;                                                                         \
        name##_now(lease);                                                                 \
        return DET_EFFECT_DONE;                                                            \
    }

static void ask_now(struct det_lease *lease)
{
    submit(lease, DET_LEASE_ACQUIRE);
}
ACTION(ask)

static void extend_now(struct det_lease *lease)
{
    det_until_extend(&lease->until, lease->answer_until);
}
ACTION(extend)

static void hold_now(struct det_lease *lease)
{
    atomic_store(&lease->until, lease->answer_until);
    notify_holder(lease, true, atomic_load(&lease->token));
}
ACTION(hold)

static void renew_now(struct det_lease *lease)
{
    submit(lease, DET_LEASE_RENEW);
    alarm_within(lease, DET_NEVER);
}
ACTION(renew)

static void plan_renewal_now(struct det_lease *lease)
{
    alarm_within(
        lease, det_node_vary(lease->node, lease->plan.renewal, lease->plan.jitter_percent));
}
ACTION(plan_renewal)

static void plan_retry_now(struct det_lease *lease)
{
    alarm_within(
        lease,
        det_node_vary(lease->node, lease->plan.renewal / RETRY_PART, lease->plan.jitter_percent));
}
ACTION(plan_retry)

static void plan_asking_now(struct det_lease *lease)
{
    alarm_in(lease, det_node_vary(lease->node, lease->plan.renewal, lease->plan.jitter_percent));
}
ACTION(plan_asking)

static void ask_soon_now(struct det_lease *lease)
{
    if (lease->plan.is_once)
        det_alarm_set(lease->node, &lease->alarm, DET_NEVER);
    else
        alarm_in(lease, 0);
}
ACTION(ask_soon)

/* Keeps the token: while a renewal is under way the store may know it as ours. */
static void lose_now(struct det_lease *lease)
{
    atomic_store(&lease->until, 0);
    det_alarm_set(lease->node, &lease->alarm, DET_NEVER);
    notify_holder(lease, false, atomic_load(&lease->token));
}
ACTION(lose)

static void withdraw_now(struct det_lease *lease)
{
    atomic_store(&lease->until, 0);
    det_alarm_set(lease->node, &lease->alarm, DET_NEVER);
}
ACTION(withdraw)

static void release_now(struct det_lease *lease)
{
    submit(lease, DET_LEASE_RELEASE);
}
ACTION(release)

static bool lease_is_sound(const struct det_lease *lease)
{
    return lease_is_ours((enum lease_state)det_component_state(&lease->component)) ||
           atomic_load(&lease->until) == 0 || lease->is_given;
}

/* Creation and destruction. */

static void free_lease(void *argument)
{
    struct det_lease *lease = argument;
    struct det_node *node = lease->node;

    det_list_remove(&lease->link);
    det_alarm_unpromise(node);
    DET_DELETE(node->runtime->allocator, lease);
    atomic_fetch_sub(&node->kept, 1);
}

/* A message frees the lease, after the gateway is done and no other message is under way. */
static int lease_completed(struct det_lease *lease, const struct det_component_end *end)
{
    (void)end;
    det_alarm_set(lease->node, &lease->alarm, DET_NEVER);
    lease->end.run = free_lease;
    det_loop_post(lease->node->runtime->loop, &lease->end);
    return 0;
}

static void begin(void *argument)
{
    struct det_lease *lease = argument;
    int r;

    det_list_append(&lease->node->leases, &lease->link);
    r = lease_supervise(
        lease->node->executor, lease, &(struct det_supervise_options){ .without_handle = true },
        NULL, NULL);
    /* Needs no memory, because the lease has neither a handle nor a timer. */
    det_assert(r == 0);
    if (lease->is_given)
        offer(lease, lease_given());
    else
        alarm_in(lease, 0);
    lease->is_given = false;
}

static void end(void *argument)
{
    offer(argument, lease_close());
}

static void nudged(void *argument)
{
    struct det_lease *lease = argument;

    atomic_store(&lease->is_nudged, false);
    if (det_component_is_supervised(&lease->component) &&
        lease_is_ours((enum lease_state)det_component_state(&lease->component)))
        alarm_in(lease, 0);
}

int det_lease_make(struct det_node *node, const struct det_lease_plan *plan, struct det_lease **ret)
{
    const struct det_allocator *allocator = node->runtime->allocator;
    struct det_lease *lease;
    int r;

    r = det_node_need_pool(node);
    if (r == 0)
        r = det_alarm_promise(node);
    if (r < 0)
        return r;
    lease = DET_NEW(allocator, struct det_lease);
    if (!lease) {
        det_alarm_unpromise(node);
        return DET_ERR_NO_MEMORY;
    }
    lease->node = node;
    lease->plan = *plan;
    snprintf(lease->name, sizeof lease->name, "%s", plan->name);
    snprintf(lease->owner, sizeof lease->owner, "%s", plan->owner);
    lease->plan.name = lease->name;
    lease->plan.owner = lease->owner;
    det_list_init(&lease->link);
    det_alarm_init(&lease->alarm, alarmed, lease);
    lease->begin = (struct det_post){ .run = begin, .argument = lease };
    lease->end = (struct det_post){ .run = end, .argument = lease };
    lease->nudge = (struct det_post){ .run = nudged, .argument = lease };
    atomic_fetch_add(&node->kept, 1);
    *ret = lease;
    return 0;
}

void det_lease_discard(struct det_lease *lease)
{
    free_lease(lease);
}

void det_lease_begin(struct det_lease *lease, const struct det_grant *grant)
{
    if (grant) {
        lease->is_given = lease->is_held_reported = true;
        atomic_store(&lease->token, grant->token);
        atomic_store(&lease->until, grant->until);
    }
    det_loop_post(lease->node->runtime->loop, &lease->begin);
}

void det_lease_lose(struct det_lease *lease)
{
    atomic_store(&lease->until, 0);
    if (!atomic_exchange(&lease->is_nudged, true))
        det_loop_post(lease->node->runtime->loop, &lease->nudge);
}

void det_lease_hurry(struct det_lease *lease)
{
    if (det_component_state(&lease->component) == LEASE_FREE && !lease->plan.is_once)
        alarm_in(lease, 0);
}

void det_lease_close(struct det_lease *lease)
{
    struct det_world *world;
    struct det_node *node;

    if (!lease)
        return;
    node = lease->node;
    world = world_of(lease);
    if (lease->is_users)
        atomic_fetch_sub(&node->opened, 1);
    det_mutex_lock(world, node->mutex);
    lease->is_closed = true;
    while (lease->is_telling && !det_loop_is_mine(node->runtime->loop))
        (void)det_condition_wait(world, node->changed, node->mutex, DET_NEVER);
    det_mutex_unlock(world, node->mutex);
    det_loop_post(node->runtime->loop, &lease->end);
}

void det_lease_abandon(struct det_lease *lease)
{
    lease->is_abandoned = true;
    det_lease_close(lease);
}

bool det_lease_is_held(struct det_lease *lease, uint64_t *ret_fence)
{
    uint64_t token, again = atomic_load(&lease->token);
    det_time until;

    /* The new token is written between the end of the old grant and that of the new one. */
    do {
        token = again;
        until = atomic_load(&lease->until);
        again = atomic_load(&lease->token);
    } while (token != again);
    if (ret_fence)
        *ret_fence = token;
    return until > det_world_now(world_of(lease), DET_CLOCK_BOOT);
}

static int check(const char *name, const struct det_lease_options *options, struct det_error *error)
{
    size_t length = strlen(name);

    if (length == 0 || length > DET_ID_MAX)
        return det_error_set(
            error, DET_ERR_INVALID, "the name of a lease must have 1 to %d bytes", DET_ID_MAX);
    if (options->owner && (!*options->owner || strlen(options->owner) > DET_OWNER_GIVEN_MAX))
        return det_error_set(
            error, DET_ERR_INVALID, "the owner of a lease must have 1 to %d bytes",
            DET_OWNER_GIVEN_MAX);
    if (options->span < 0 || options->renewal < 0)
        return det_error_set(error, DET_ERR_INVALID, "a duration is negative");
    return det_reserved_check(options->reserved, "a lease", error);
}

int det_lease_open(
    struct det_runtime *runtime, const char *name, const struct det_lease_options *options,
    struct det_lease **ret, struct det_error *reterr)
{
    struct det_lease_options filled = options ? *options : (struct det_lease_options){ 0 };
    struct det_lease_plan plan = { .name = name, .jitter_percent = 10 };
    char owner[DET_OWNER_MAX + 1];
    int r;

    det_assert(runtime && name && ret);
    r = check(name, &filled, reterr);
    if (r < 0)
        return r;
    if (!runtime->ops->lease)
        return det_error_set(reterr, DET_ERR_UNSUPPORTED, "this store does not support leases");
    plan.span = filled.span ? filled.span : 30 * DET_SECOND;
    plan.renewal = filled.renewal ? filled.renewal : plan.span / 3;
    if (plan.renewal >= plan.span)
        return det_error_set(reterr, DET_ERR_INVALID, "a lease must be renewed within its span");
    det_node_owner(runtime, filled.owner, owner);
    plan.owner = owner;
    plan.changed = filled.changed;
    plan.user = filled.user;
    r = det_lease_make(runtime->node, &plan, ret);
    if (r < 0)
        return det_error_set(reterr, r, "out of memory for a lease");
    atomic_fetch_add(&runtime->node->opened, 1);
    (*ret)->is_users = true;
    det_lease_begin(*ret, NULL);
    return 0;
}
