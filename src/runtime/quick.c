/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* quick.c - one event in one lock section. */
#include "runtime/quick.h"

#include "base/assert.h"
#include "base/checked.h"

/* What is committed, all on the stack. */
struct quick {
    struct det_store_head head;
    struct det_store_event event;
    struct det_store_timer_change timer;
    struct det_store_commit commit;
};

static bool has_writer(const struct det_resident *resident)
{
    return resident->is_claimed || resident->is_stale || resident->head.is_stopped;
}

/* The transition, if it is as simple as that; otherwise NULL. */
static const struct det_transition *find_transition(
    const struct det_resident *resident, unsigned kind)
{
    const struct det_machine *machine = resident->served->machine;
    const struct det_state_def *from = &machine->states[resident->head.state];
    const struct det_transition *transition = det_machine_step(machine, resident->head.state, kind);
    const struct det_state_def *to = &machine->states[transition->to];

    if (transition->more || det_resident_kept(resident))
        return NULL;
    if (transition->outcome == DET_STAY)
        return transition;
    if (transition->outcome != DET_GOTO || from->exit || to->entry || to->timeout.fill)
        return NULL;
    return transition;
}

static void step(
    struct quick *quick, const struct det_resident *resident,
    const struct det_transition *transition, det_time now)
{
    struct det_store_head *head = &quick->head;

    *head = resident->head;
    head->sequence++;
    if (transition->outcome == DET_GOTO) {
        head->state = transition->to;
        head->visit = head->sequence + 1;
        head->transition_count++;
        head->last_transition_at = now;
    }
}

static void fill_event(
    struct quick *quick, const struct det_resident *resident,
    const struct det_transition *transition, const void *event, det_time now)
{
    quick->event = (struct det_store_event){
        .sequence = quick->head.sequence,
        .visit = quick->head.visit,
        .from = resident->head.state,
        .to = quick->head.state,
        .event = (uint16_t)det_event_kind(event),
        .outcome = transition->outcome,
        .at = now,
        .value = event,
    };
}

static void fill_commit(struct quick *quick, const struct det_resident *resident)
{
    quick->commit = (struct det_store_commit){
        .machine = resident->served->machine,
        .id = resident->id,
        .instance = resident->handle,
        .expected = resident->head.sequence,
        .head = &quick->head,
        .events = &quick->event,
        .event_count = 1,
    };
}

/* The state's own timer: set anew by an entry, or cleared. */
static int fill_timer(
    struct quick *quick, struct det_shard *shard, struct det_resident *resident, det_time now)
{
    const struct det_timeout *timeout =
        &resident->served->machine->states[quick->head.state].timeout;
    struct det_armed *own = resident->own;

    if (!timeout->after && !own->is_armed)
        return 0;
    quick->timer.kind = timeout->after ? DET_STORE_SET : DET_STORE_CLEAR;
    quick->timer.timer = (struct det_store_timer){
        .timer = DET_STATE_TIMER,
        .event = timeout->event,
        .visit = quick->head.visit,
        .due = det_add_time(now, timeout->after),
    };
    quick->commit.timers = &quick->timer;
    quick->commit.timer_count = 1;
    if (!timeout->after || own->has_place)
        return 0;
    if (det_due_promise(shard, 1) < 0)
        return DET_ERR_NO_MEMORY;
    own->has_place = true;
    return 0;
}

static void publish_timer(
    const struct quick *quick, struct det_runtime *runtime, struct det_shard *shard,
    struct det_resident *resident)
{
    struct det_armed *own = resident->own;

    det_assert(own);
    det_armed_disarm(runtime, own);
    if (quick->timer.kind == DET_STORE_CLEAR)
        return;
    det_armed_arm(shard, own, &quick->timer.timer);
    det_due_kick(runtime, own->deadline);
}

/* Nothing happened, or nobody knows: then it is loaded again before its next turn. */
static int fail(
    struct det_runtime *runtime, struct det_shard *shard, struct det_resident *resident, int r)
{
    if (det_runtime_is_certain(r))
        return r;
    resident->is_stale = true;
    shard->stale++;
    det_due_kick(runtime, INT64_MIN);
    return r == DET_ERR_CONFLICT ? 0 : r;
}

static int commit(struct quick *quick, struct det_runtime *runtime)
{
    struct det_store_commit *const one = &quick->commit;
    int r;

    r = runtime->ops->commit(runtime->store, &one, 1);
    return r < 0 ? r : quick->commit.result;
}

static void publish(
    const struct quick *quick, struct det_runtime *runtime, struct det_shard *shard,
    struct det_resident *resident)
{
    uint64_t count = resident->head.transition_count;

    if (quick->event.outcome == DET_GOTO)
        resident->history[count % runtime->options.history_kept] = quick->event.from;
    resident->head = quick->head;
    if (quick->commit.timer_count)
        publish_timer(quick, runtime, shard, resident);
    shard->counts.transitions++;
}

int det_quick_send(
    struct det_runtime *runtime, struct det_shard *shard, struct det_index_slot *slot,
    const void *event, struct det_sent *ret)
{
    struct det_resident *resident = slot->resident;
    const struct det_transition *transition;
    struct quick quick;
    det_time now;
    int r;

    if (has_writer(resident))
        return 0;
    transition = find_transition(resident, det_event_kind(event));
    if (!transition)
        return 0;
    now = det_world_now(runtime->world, DET_CLOCK_WALL);
    step(&quick, resident, transition, now);
    fill_event(&quick, resident, transition, event, now);
    fill_commit(&quick, resident);
    if (transition->outcome == DET_GOTO && resident->own) {
        r = fill_timer(&quick, shard, resident, now);
        if (r < 0)
            return r;
    }
    r = commit(&quick, runtime);
    if (r < 0)
        return fail(runtime, shard, resident, r);
    publish(&quick, runtime, shard, resident);
    slot->handle = resident->handle;
    slot->next = quick.commit.next;
    *ret = (struct det_sent){
        .outcome = (enum det_outcome)transition->outcome,
        .state = quick.head.state,
        .sequence = quick.head.sequence,
        .visit = quick.head.visit,
    };
    return 1;
}
