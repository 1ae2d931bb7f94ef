/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* due.c - the loop that executes due work by the store's clock.
 *
 * Each shard has a heap of timers and effects by time. The loop sleeps until the first of them,
 * with its own wall timer, which also notices that the clock is set. Nothing runs early; a jump
 * forward makes work due at once, each item once; a jump back delays it by as much. The clock of a
 * shared store is the server's, and does not jump. On a store that blocks, work that is due at the
 * same time shares a commit.
 *
 *     in the heap --due, free--> in the batch --turn--> gone, or armed again, or later again
 *                 --due, claimed--> held --release--> in the heap */
#include <detent/driver/loop.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "runtime/meter.h"
#include "runtime/node.h"
#include "runtime/turn_batch.h"
#include "store/row.h"

/* Items per shard in one pass; then the other shards and the loop's messages get their turn. */
#define PASS_MAX 64
/* Delay before retrying a timer that is due by our clock, but not by the store's. */
#define EARLY_SPAN DET_MILLISECOND

int det_due_promise(struct det_shard *shard, size_t count)
{
    int r;

    r = det_heap_reserve(&shard->due, shard->promised + count);
    if (r == 0)
        shard->promised += count;
    return r;
}

void det_due_insert(struct det_shard *shard, struct det_due *due, det_time when)
{
    int r;

    det_assert(shard->due.count < shard->promised);
    r = det_heap_insert(&shard->due, &due->node, when);
    det_assert(r == 0);
}

void det_due_hold(struct det_runtime *runtime, struct det_due *due)
{
    struct det_resident *resident = due->resident;

    if (due->is_held) {
        det_due_handled(runtime);
        return;
    }
    det_assert(resident->is_claimed && !det_heap_contains(&due->node));
    due->is_held = true;
    due->next_held = resident->held;
    resident->held = due;
}

void det_due_wake(struct det_runtime *runtime, det_time when)
{
    if (runtime->options.is_passive)
        return;
    if (when < atomic_load(&runtime->next_pass) && !atomic_exchange(&runtime->is_kicked, true))
        det_loop_post(runtime->loop, &runtime->kick);
}

void det_due_handled(struct det_runtime *runtime)
{
    size_t before = atomic_fetch_sub(&runtime->handled, 1);

    det_assert(before > 0);
    if (!atomic_load(&runtime->settling))
        return;
    det_mutex_lock(runtime->world, runtime->quiet_mutex);
    runtime->quiet_generation++;
    det_condition_broadcast(runtime->world, runtime->quiet);
    det_mutex_unlock(runtime->world, runtime->quiet_mutex);
}

void det_due_report_rejected(const struct det_turn *turn, uint32_t attempt, int code)
{
    const struct det_armed *armed = turn->firing.armed;
    const struct det_resident *resident = armed->due.resident;
    const struct det_machine *machine = resident->served->machine;

    det_runtime_report_incident(
        turn->runtime, resident,
        &(struct det_incident){ .kind = DET_INCIDENT_TIMEOUT_REJECTED,
                                .name = det_row_timer_name(machine, armed->timer),
                                .attempt = attempt,
                                .is_dead = turn->rejected &&
                                           turn->firing.change == DET_STORE_UPDATE &&
                                           turn->firing.row.is_dead,
                                .code = code },
        turn->error);
}

bool det_due_will_retry(const struct det_turn *turn)
{
    return turn->rejected && turn->firing.change == DET_STORE_UPDATE && !turn->firing.row.is_dead;
}

void det_due_count(const struct det_turn *turn, struct det_runtime_counts *counts)
{
    if (turn->rejected)
        counts->timeouts_rejected++;
    else
        counts->timeouts_fired++;
}

/* A copy of a timer's event struct, which outlives the timer; NULL: no memory. */
static const void *event_of(struct det_batch_item *item, const struct det_armed *armed)
{
    const struct det_served *served = armed->due.resident->served;
    const struct det_machine *machine = served->machine;
    unsigned kind = armed->event;
    int r;

    r = det_draft_room(served->runtime, &item->copy, &item->copy_capacity, machine->event_size, 1);
    if (r < 0)
        return NULL;
    memset(item->copy, 0, machine->event_size);
    memcpy(item->copy, &kind, sizeof kind);
    if (armed->value)
        memcpy(item->copy, armed->value, machine->event_size);
    return item->copy;
}

void det_due_fire_later(struct det_turn *turn, int r)
{
    const struct det_effect_policy *policy = &turn->runtime->options.effects;
    struct det_armed *armed = turn->firing.armed;
    det_time span = EARLY_SPAN;

    if (!det_armed_is_ours(armed) || armed->visit != turn->firing.visit ||
        armed->deadline != turn->firing.deadline)
        return;
    if (det_turn_met_others(r))
        span = det_effect_run_backoff(turn->runtime, policy, 1, 0);
    else if (r != DET_ERR_EARLY)
        span = det_effect_run_backoff(turn->runtime, policy, ++armed->tries, 0);
    armed->when = det_add_time(turn->now, span);
}

void det_due_let_go(struct det_shard *shard, struct det_armed *armed)
{
    det_armed_reported(armed);
    if (det_armed_is_ours(armed) && !det_heap_contains(&armed->due.node) && !armed->due.is_held)
        det_due_insert(shard, &armed->due, armed->when);
}

/* After a turn of a batch. The resident is pinned until now. */
static void fired(struct det_batch_item *item)
{
    struct det_turn *turn = &item->turn;
    struct det_runtime_counts *counts = &turn->shard->counts;
    int r = item->result, code = r < 0 ? r : turn->rejected;

    if (code < 0 && code != DET_ERR_NOT_FOUND && code != DET_ERR_EARLY &&
        !det_turn_met_others(code))
        det_due_report_rejected(turn, item->of.attempt, code);
    if (r == 0 && !det_due_will_retry(turn))
        det_meter_timeout(turn);
    det_shard_lock(turn->runtime, turn->shard);
    if (r < 0)
        det_due_fire_later(turn, r);
    else if (!det_due_will_retry(turn))
        det_due_count(turn, counts);
    det_due_let_go(turn->shard, turn->firing.armed);
    det_assert(turn->resident->pins > 0);
    turn->resident->pins--;
    det_shard_unlock(turn->runtime, turn->shard);
    det_due_handled(turn->runtime);
}

static void report_undelivered(const struct det_turn *turn, int code)
{
    const struct det_armed *armed = turn->firing.armed;
    const struct det_resident *resident = armed->due.resident;

    det_runtime_report_incident(
        turn->runtime, resident,
        &(struct det_incident){ .kind = DET_INCIDENT_EVENT_FAILED,
                                .name = resident->served->machine->events[armed->event].name,
                                .attempt = armed->attempts + armed->tries + 1,
                                .code = code },
        NULL);
}

/* After a turn of the timer of deferred events. Events that could neither be delivered nor
 * postponed in the store are retried from here. */
static void delivered(struct det_batch_item *item)
{
    struct det_turn *turn = &item->turn;
    int r = item->result < 0 ? item->result : turn->retry.undelivered;

    if (r < 0 && r != DET_ERR_NOT_FOUND && !det_turn_met_others(r))
        report_undelivered(turn, r);
    det_shard_lock(turn->runtime, turn->shard);
    if (det_armed_is_ours(turn->firing.armed) && turn->firing.armed->attempts == item->of.attempt)
        det_due_fire_later(turn, r < 0 ? r : DET_ERR_IO);
    det_due_let_go(turn->shard, turn->firing.armed);
    det_assert(turn->resident->pins > 0);
    turn->resident->pins--;
    det_shard_unlock(turn->runtime, turn->shard);
    det_due_handled(turn->runtime);
}

/* Chooses the work: the event of a timer, or only the delivery of deferred events. */
static int take_aim(struct det_batch_item *item, const struct det_armed *armed)
{
    if (armed->timer == DET_DEFERRED_TIMER) {
        item->ended = delivered;
        item->of.attempt = armed->attempts;
        return 0;
    }
    item->ended = fired;
    item->of.attempt = armed->attempts + armed->tries + 1;
    item->event = event_of(item, armed);
    return item->event ? 0 : DET_ERR_NO_MEMORY;
}

/* The lock is held before and after. The timer is out of the heap: its own event cannot cancel it,
 * and no other turn can fire it. */
static void fire(
    struct det_runtime *runtime, struct det_shard *shard, struct det_armed *armed, det_time now)
{
    struct det_resident *resident = armed->due.resident;
    struct det_batch_item *item = det_batch_next(runtime->batch);
    struct det_turn *turn = &item->turn;

    if (resident->is_stale || take_aim(item, armed) < 0) {
        armed->when = det_add_time(now, DET_CHECK_SPAN);
        det_due_insert(shard, &armed->due, armed->when);
        det_due_handled(runtime);
        return;
    }
    det_turn_init(turn, runtime, resident->served, resident->hash);
    turn->resident = resident;
    turn->error = &item->error;
    turn->is_internal = true;
    turn->firing.armed = armed;
    turn->firing.visit = armed->visit;
    turn->firing.deadline = armed->deadline;
    if (det_turn_fired(turn))
        det_meter_fire(turn);
    det_armed_fire(armed);
    resident->pins++;
    det_batch_begin(runtime->batch, item);
    det_shard_lock(runtime, shard);
}

/* The lock is held before and after. */
static void timer_due(
    struct det_runtime *runtime, struct det_shard *shard, struct det_armed *armed, det_time now)
{
    bool is_ours = det_armed_is_ours(armed) && armed->state == DET_ARMED_WAITING;

    if (is_ours && armed->when <= now && armed->due.resident->is_claimed) {
        det_due_hold(runtime, &armed->due);
        return;
    }
    if (is_ours && armed->when <= now) {
        fire(runtime, shard, armed, now);
        return;
    }
    if (is_ours)
        det_due_insert(shard, &armed->due, armed->when);
    det_due_handled(runtime);
}

static void do_due(
    struct det_runtime *runtime, struct det_shard *shard, struct det_due *due, det_time now)
{
    atomic_fetch_add(&runtime->handled, 1);
    det_heap_remove(&shard->due, &due->node);
    switch (due->kind) {
    case DET_DUE_TIMER:
        timer_due(runtime, shard, det_armed_of(due), now);
        break;
    case DET_DUE_EFFECT_RUN:
        det_effect_run_due(runtime, shard, det_effect_run_of(due));
        break;
    }
}

static struct det_resident *find_stale(struct det_runtime *runtime, const struct det_shard *shard)
{
    struct det_resident *resident;

    for (size_t i = 0; i < DET_SERVED_BUCKETS; i++) {
        for (const struct det_served *s = atomic_load(&runtime->served[i]); s; s = s->next) {
            const struct det_index *index = det_served_index(runtime, s, shard);

            for (size_t cursor = 0; (resident = det_index_next(index, &cursor));) {
                if (resident->is_stale && !resident->is_claimed)
                    return resident;
            }
        }
    }
    return NULL;
}

/* Rare: a resident could not be loaded again when needed. Retries one at a time, in case the store
 * has recovered. */
static void refresh_stale(struct det_runtime *runtime, struct det_shard *shard)
{
    char id[DET_ID_MAX + 1]; /* a copy, since the resident may be removed */
    struct det_resident *resident;
    struct det_turn turn;
    int r = 0;

    while (r == 0 && shard->stale && (resident = find_stale(runtime, shard))) {
        det_turn_init(&turn, runtime, resident->served, resident->hash);
        turn.is_internal = true;
        memcpy(id, resident->id, strlen(resident->id) + 1);
        r = det_turn_take(&turn, id, NULL);
    }
}

static void execute_shard(struct det_runtime *runtime, struct det_shard *shard, det_time now)
{
    det_shard_lock(runtime, shard);
    for (int i = 0; i < PASS_MAX; i++) {
        struct det_heap_node *node = det_heap_first(&shard->due);

        if (!node || node->key > now)
            break;
        if (det_batch_is_full(runtime->batch)) {
            det_shard_unlock(runtime, shard);
            det_batch_end(runtime->batch);
            det_shard_lock(runtime, shard);
            continue;
        }
        do_due(runtime, shard, DET_CONTAINER(node, struct det_due, node), now);
    }
    if (shard->stale)
        refresh_stale(runtime, shard);
    det_shard_unlock(runtime, shard);
}

static det_time earliest(struct det_runtime *runtime, det_time now)
{
    det_time first = det_recover_next(runtime), queue_next = atomic_load(&runtime->queue_next);

    if (queue_next < first)
        first = queue_next;

    for (uint32_t i = 0; i <= runtime->shard_mask; i++) {
        struct det_shard *shard = &runtime->shards[i];
        const struct det_heap_node *node;

        det_shard_lock(runtime, shard);
        node = det_heap_first(&shard->due);
        if (node && node->key < first)
            first = node->key;
        if (shard->stale && first > now + DET_CHECK_SPAN)
            first = now + DET_CHECK_SPAN;
        det_shard_unlock(runtime, shard);
    }
    return first;
}

/* Converts to the monotonic clock, which jumps of the wall clock do not affect. That clock stops
 * during machine sleep, so the result is limited. */
static det_time monotonic(struct det_runtime *runtime, det_time first)
{
    det_time now = det_world_now(runtime->world, DET_CLOCK_MONOTONIC), span;

    if (first == DET_NEVER)
        return DET_NEVER;
    span = first == INT64_MIN ? 0 : first - det_runtime_now(runtime);
    return det_add_time(now, span < DET_CHECK_SPAN ? span : DET_CHECK_SPAN);
}

/* If the store's clock is this machine's, the loop's own wall timer notices that it is set. */
static void plan(struct det_runtime *runtime, det_time first)
{
    int r;

    atomic_store(&runtime->next_pass, first);
    if (runtime->ops->is_shared)
        r = det_loop_timer_set(runtime->loop, &runtime->look, monotonic(runtime, first));
    else
        r = det_loop_timer_set_wall(runtime->loop, &runtime->look, first);
    /* The timer is set at the start and reuses its place, so this cannot fail. */
    det_assert(r == 0);
}

void det_due_execute(void *argument)
{
    struct det_runtime *runtime = argument;
    det_time now;

    plan(runtime, DET_NEVER);
    now = det_runtime_now(runtime);
    /* The loop is kicked when a lost lease is acquired again; but a renewal may arrive just in
     * time, and only this pass notices. */
    if (!det_node_may_act(runtime)) {
        plan(runtime, det_add_time(now, DET_CHECK_SPAN));
        return;
    }
    det_recover_due(runtime, now);
    det_effect_queue_due(runtime, now);
    for (uint32_t i = 0; i <= runtime->shard_mask; i++)
        execute_shard(runtime, &runtime->shards[i], now);
    det_batch_end(runtime->batch);
    plan(runtime, earliest(runtime, det_runtime_now(runtime)));
}

void det_due_kicked(void *argument)
{
    struct det_runtime *runtime = argument;

    atomic_store(&runtime->is_kicked, false);
    det_due_execute(runtime);
}

bool det_due_is_settled(struct det_runtime *runtime)
{
    det_time now = det_runtime_now(runtime);

    if (atomic_load(&runtime->effect_runs) || atomic_load(&runtime->handled))
        return false;
    if (earliest(runtime, now) <= now)
        return false;
    /* Work may have left a heap while the other shards were inspected. */
    return !atomic_load(&runtime->effect_runs) && !atomic_load(&runtime->handled);
}
