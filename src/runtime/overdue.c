/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* overdue.c - what was due before an event came to a runtime that fires nothing by itself: the
 * timers of that instance go first, as they would have, had somebody been there. One that cannot
 * fire here, for want of a function say, stays as it is, for a runtime that acts. */
#include <string.h>

#include "base/memory.h"
#include "runtime/turn.h"

/* A timer that is due may arm the next one, due as well if the clock goes on meanwhile. */
#define FIRED_MAX 64

/* The one that has been due for longest; NULL: none. Lock held. */
static struct det_armed *find_first(struct det_resident *resident, det_time now)
{
    size_t slots = (size_t)resident->served->machine->timer_count + 1;
    struct det_armed *first = NULL;

    for (size_t i = 0; i < slots; i++) {
        struct det_armed *armed = det_resident_timer(resident, det_turn_timer_number(i));

        if (armed && det_armed_is_ours(armed) && armed->state == DET_ARMED_WAITING &&
            armed->deadline <= now && (!first || armed->deadline < first->deadline))
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

/* Lock held before and not after. It is out of the heap, as with the loop: its own firing cannot
 * cancel it. */
static int fire(struct det_turn *turn, struct det_armed *armed, const void *event)
{
    struct det_resident *resident = turn->resident;
    struct det_runtime *runtime = turn->runtime;
    struct det_shard *shard = turn->shard;
    struct det_sent sent;
    int r;

    turn->timer = armed;
    turn->timer_visit = armed->visit;
    turn->timer_deadline = armed->deadline;
    if (det_heap_contains(&armed->due.node))
        det_heap_remove(&shard->due, &armed->due.node);
    det_armed_fire(armed);
    resident->pins++;
    r = det_turn_run(turn, &event, 1, &sent);
    det_shard_lock(runtime, shard);
    shard->counts.timeouts_fired += r == 0;
    det_armed_told(armed);
    if (det_armed_is_ours(armed) && !det_heap_contains(&armed->due.node))
        det_due_insert(shard, &armed->due, armed->when);
    resident->pins--;
    det_shard_unlock(runtime, shard);
    return r;
}

/* 1: it fired; 0: there is none, or it cannot; or there is no memory. */
static int fire_first(struct det_turn *turn, const char *id)
{
    size_t size = turn->served->machine->event_size;
    struct det_armed *armed = NULL;
    void *event = det_alloc_zero(turn->runtime->allocator, size);
    int r;

    if (!event)
        return DET_ERR_NO_MEMORY;
    det_shard_lock(turn->runtime, turn->shard);
    /* What is wrong with the instance is told to who sends. */
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
    if (r == DET_ERR_NO_MEMORY)
        return r;
    return armed && r == 0;
}

int det_overdue_fire(
    struct det_runtime *runtime, struct det_served *served, const char *id, uint64_t fence)
{
    int r = 1;

    for (int i = 0; r > 0 && i < FIRED_MAX; i++) {
        struct det_turn turn;

        det_turn_init(&turn, runtime, served, det_served_hash(runtime, id));
        turn.fence = fence;
        r = fire_first(&turn, id);
    }
    return r < 0 ? r : 0;
}
