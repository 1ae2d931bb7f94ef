/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* overdue.c - a passive runtime fires the overdue timers of an instance before it sends an event to
 * it, in the order of an active runtime. A rejected timer is removed, as there. A timer that cannot
 * fire here, for example because a function is unbound, is left for an active runtime, and later
 * timers fire. */
#include <string.h>

#include "base/memory.h"
#include "runtime/meter.h"

/* A due timer may arm the next one, which may be due, too, as the clock advances. */
#define FIRED_MAX 64

/* The timer that is due for the longest time, except one that has just failed. NULL: none. Lock
 * held. The sending turn delivers deferred events that the state accepts. */
static struct det_armed *find_first(struct det_resident *resident, det_time now)
{
    const struct det_machine *machine = resident->served->machine;
    struct det_armed *first = NULL;

    for (size_t i = 0; i <= machine->timer_count; i++) {
        struct det_armed *armed = det_resident_timer(resident, det_timer_number(machine, i));

        if (armed && det_armed_is_ours(armed) && armed->state == DET_ARMED_WAITING &&
            armed->deadline <= now && armed->when <= now &&
            (!first || armed->deadline < first->deadline))
            first = armed;
    }
    return first;
}

static void write_event(const struct det_armed *armed, void *event)
{
    unsigned kind = armed->event;

    memcpy(event, &kind, sizeof kind);
    if (armed->value)
        memcpy(event, armed->value, armed->due.resident->served->machine->event_size);
}

/* True if only this timer failed, for example for an unbound function. Others may fire, and the
 * send may proceed. */
static bool is_its_own(int r)
{
    return det_turn_may_pass_later(r) || r == DET_ERR_UNBOUND || r == DET_ERR_EARLY ||
           r == DET_ERR_NOT_FOUND;
}

/* After the turn. Timers left to others are reported only to the sender. */
static void fired(struct det_turn *turn, uint32_t attempt, int r)
{
    struct det_runtime_counts *counts = &turn->shard->counts;
    int code = r < 0 ? r : turn->rejected;

    if (det_turn_may_pass_later(code) || (r == 0 && code < 0))
        det_due_report_rejected(turn, attempt, code);
    if (r == 0 && !det_due_will_retry(turn))
        det_meter_timeout(turn);
    det_shard_lock(turn->runtime, turn->shard);
    if (is_its_own(r))
        det_due_fire_later(turn, r);
    else if (r == 0 && !det_due_will_retry(turn))
        det_due_count(turn, counts);
    det_due_let_go(turn->shard, turn->firing.armed);
    turn->resident->pins--;
    det_shard_unlock(turn->runtime, turn->shard);
}

/* 1: continue with the next timer. The lock is held before and not after. The timer is out of the
 * heap, as in the loop: its own event cannot cancel it. */
static int fire(struct det_turn *turn, struct det_armed *armed, const void *event)
{
    uint32_t attempt = armed->attempts + armed->tries + 1;
    struct det_error error = { 0 }, *reterr = turn->error;
    struct det_sent sent;
    int r;

    turn->error = &error;
    turn->is_internal = true;
    turn->firing.armed = armed;
    turn->firing.visit = armed->visit;
    turn->firing.deadline = armed->deadline;
    det_meter_fire(turn);
    if (det_heap_contains(&armed->due.node))
        det_heap_remove(&turn->shard->due, &armed->due.node);
    det_armed_fire(armed);
    turn->resident->pins++;
    r = det_turn_run(turn, &event, 1, &sent);
    fired(turn, attempt, r);
    if (r == 0 || is_its_own(r))
        return 1;
    if (reterr)
        *reterr = error;
    return r;
}

/* 1: a timer was fired, perhaps without success; 0: none is due; or the error that prevents the
 * send. */
static int fire_first(struct det_turn *turn, const char *id)
{
    size_t size = turn->served->machine->event_size;
    struct det_armed *armed = NULL;
    void *event = det_alloc_zero(turn->runtime->allocator, size);
    int r;

    if (!event)
        return DET_ERR_NO_MEMORY;
    det_shard_lock(turn->runtime, turn->shard);
    r = det_turn_take(turn, id, NULL);
    if (r == 0)
        armed = find_first(turn->resident, det_runtime_now(turn->runtime));
    if (armed) {
        write_event(armed, event);
        r = fire(turn, armed, event);
    } else {
        det_shard_unlock(turn->runtime, turn->shard);
    }
    det_free(turn->runtime->allocator, event, size);
    return r;
}

int det_overdue_fire(
    struct det_runtime *runtime, struct det_served *served, const char *id, uint64_t fence,
    struct det_error *reterr)
{
    int r = 1;

    for (int i = 0; r > 0 && i < FIRED_MAX; i++) {
        struct det_turn turn;

        det_turn_init(&turn, runtime, served, det_served_hash(runtime, id));
        turn.request.fence = fence;
        turn.error = reterr;
        r = fire_first(&turn, id);
    }
    return r < 0 ? r : 0;
}
