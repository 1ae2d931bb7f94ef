/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* quick.c - the fast path for one event, entirely on the stack. */
#include <detent/tool/machine.h>

#include "machine/data_copy.h"
#include "runtime/quick.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/unset.h"
#include "runtime/turn.h"

/* An event under decision, and its commit. */
struct quick {
    struct det_runtime *runtime;
    struct det_shard *shard;
    struct det_resident *resident;
    const struct det_transition *transition;
    const void *event;
    det_time now;
    struct det_store_head head;
    struct det_store_event row;
    struct det_store_timer_change timer;
    struct det_store_commit commit;
};

enum det_send_path det_quick_path(
    const struct det_machine *machine, unsigned state, const struct det_transition *transition)
{
    const struct det_transition_more *more = transition->more;
    const struct det_timeout *timeout = det_machine_timeout(machine, transition);

    if (transition->outcome != DET_OUTCOME_GOTO && transition->outcome != DET_OUTCOME_STAY)
        return DET_SEND_PATH_TURN;
    if (more && (more->effect_count || more->arm_count || more->disarm_count))
        return DET_SEND_PATH_TURN;
    if (timeout && timeout->fill)
        return DET_SEND_PATH_TURN;
    if ((more && more->keep_count) || det_decide_runs_code(machine, state, transition))
        return DET_SEND_PATH_CODE;
    return DET_SEND_PATH_PLAIN;
}

static bool has_writer(const struct det_resident *resident)
{
    return resident->is_claimed || resident->is_stale || resident->head.is_stopped;
}

static void step(struct quick *quick)
{
    struct det_store_head *head = &quick->head;

    *head = quick->resident->head;
    head->sequence++;
    if (quick->transition->outcome == DET_OUTCOME_GOTO) {
        head->state = quick->transition->to;
        head->visit = head->sequence + 1;
        head->transition_count++;
        head->last_transition_at = quick->now;
    }
}

static void fill_row(struct quick *quick)
{
    quick->row = (struct det_store_event){
        .sequence = quick->head.sequence,
        .visit = quick->head.visit,
        .from = quick->resident->head.state,
        .to = quick->head.state,
        .event = (uint16_t)det_event_kind(quick->event),
        .outcome = quick->transition->outcome,
        .at = quick->now,
        .value = quick->event,
    };
}

static void fill_commit(struct quick *quick, const void *data)
{
    quick->commit = (struct det_store_commit){
        .machine = quick->resident->served->machine,
        .id = quick->resident->id,
        .instance = quick->resident->handle,
        .expected = quick->resident->head.sequence,
        .head = &quick->head,
        .data = data,
        .events = &quick->row,
        .event_count = 1,
    };
}

/* The state's own timer: set by an entry, or cleared. */
static int fill_timer(struct quick *quick)
{
    const struct det_timeout *timeout =
        det_machine_timeout(quick->resident->served->machine, quick->transition);
    struct det_armed *own = quick->resident->own;
    bool is_set = timeout && timeout->after;

    if (!is_set && !det_armed_is_set(own))
        return 0;
    quick->timer.kind = is_set ? DET_STORE_SET : DET_STORE_CLEAR;
    quick->timer.timer = (struct det_store_timer){ .timer = DET_STATE_TIMER };
    quick->commit.timers = &quick->timer;
    quick->commit.timer_count = 1;
    if (!is_set)
        return 0;
    quick->timer.timer.event = timeout->event;
    quick->timer.timer.visit = quick->head.visit;
    quick->timer.timer.due = det_add_time(quick->now, timeout->after);
    if (own->has_place)
        return 0;
    if (det_due_promise(quick->shard, 1) < 0)
        return DET_ERR_NO_MEMORY;
    own->has_place = true;
    return 0;
}

static void publish_timer(const struct quick *quick)
{
    struct det_armed *own = quick->resident->own;

    det_assert(own);
    det_armed_disarm(quick->runtime, own);
    if (quick->timer.kind == DET_STORE_CLEAR)
        return;
    det_armed_arm(quick->shard, own, &quick->timer.timer);
    det_due_kick(quick->runtime, own->deadline);
}

static void publish(const struct quick *quick)
{
    struct det_resident *resident = quick->resident;
    uint64_t count = resident->head.transition_count;

    if (quick->transition->outcome == DET_OUTCOME_GOTO)
        resident->history[count % quick->runtime->options.history_kept] = quick->row.from;
    resident->head = quick->head;
    if (quick->commit.data)
        det_machine_copy_data(
            resident->served->machine, resident->served->data_size, resident->data,
            quick->commit.data);
    if (quick->commit.timer_count)
        publish_timer(quick);
    quick->shard->counts.transitions++;
}

/* After an uncertain failure the instance is loaded before its next turn. */
static int fail(const struct quick *quick, int r)
{
    quick->shard->counts.conflicts += r == DET_ERR_CONFLICT;
    if (det_runtime_is_certain(r))
        return r;
    quick->resident->is_stale = quick->resident->is_in_doubt = true;
    quick->shard->stale++;
    det_due_kick(quick->runtime, INT64_MIN);
    return r == DET_ERR_CONFLICT ? 0 : r;
}

/* The lock is held. */
static int commit(struct quick *quick, const void *data, struct det_sent *ret)
{
    struct det_store_commit *const one = &quick->commit;
    int r;

    step(quick);
    fill_row(quick);
    fill_commit(quick, data);
    if (quick->transition->outcome == DET_OUTCOME_GOTO && quick->resident->own) {
        r = fill_timer(quick);
        if (r < 0)
            return r;
    }
    r = quick->runtime->ops->commit(quick->runtime->store, &one, 1);
    if (r == 0)
        r = one->result;
    if (r < 0)
        return fail(quick, r);
    publish(quick);
    *ret = (struct det_sent){
        .outcome = (enum det_outcome)quick->transition->outcome,
        .state = quick->head.state,
        .sequence = quick->head.sequence,
        .visit = quick->head.visit,
    };
    return 1;
}

/* Claimed, without the lock: runs user code, then computes the data in the draft. */
static int run_user_code(struct det_turn *turn, const struct quick *quick)
{
    struct det_move move;
    int r;

    turn->draft->head = turn->resident->head;
    turn->draft->is_data_changed = false;
    move = det_decide_move(turn, quick->transition->to);
    r = det_hooks_run(turn, quick->transition, &move, quick->event);
    return r < 0 ? r : det_decide_data(turn, quick->transition, quick->event);
}

static int send_with_code(struct quick *quick, struct det_error *reterr, struct det_sent *ret)
{
    DET_UNSET struct det_turn turn;
    int r;

    det_turn_init(&turn, quick->runtime, quick->resident->served, quick->resident->hash);
    turn.resident = quick->resident;
    turn.error = reterr;
    turn.draft = det_draft_take(quick->runtime, quick->shard);
    if (!turn.draft)
        return DET_ERR_NO_MEMORY;
    det_resident_claim(quick->runtime, quick->shard, quick->resident);
    det_shard_unlock(quick->runtime, quick->shard);
    quick->now = turn.now = det_runtime_now(quick->runtime);
    r = run_user_code(&turn, quick);
    det_assert(r <= 0);
    det_shard_lock(quick->runtime, quick->shard);
    if (r == 0)
        r = commit(quick, turn.draft->is_data_changed ? turn.draft->data : NULL, ret);
    quick->shard->counts.refused += turn.counts.refused;
    det_resident_release(quick->runtime, quick->shard, quick->resident);
    det_draft_release(quick->shard, turn.draft);
    return r;
}

/* Prepares the slot for the next send. */
static void hint(struct det_index_slot *slot, const struct quick *quick)
{
    slot->handle = quick->resident->handle;
    slot->next = quick->commit.next;
}

static int send_coded(
    struct quick *quick, struct det_index_slot **slot, struct det_error *reterr,
    struct det_sent *ret)
{
    const struct det_resident *resident = quick->resident;
    int r;

    r = send_with_code(quick, reterr, ret);
    *slot = det_index_find_first(
        det_served_index(quick->runtime, resident->served, quick->shard), resident->hash);
    if (*slot && (*slot)->resident != resident)
        *slot = NULL;
    return r;
}

int det_quick_send(
    struct det_runtime *runtime, struct det_shard *shard, struct det_index_slot **slot,
    const void *event, struct det_error *reterr, struct det_sent *ret)
{
    struct det_resident *resident = (*slot)->resident;
    const struct det_served *served = resident->served;
    DET_UNSET struct quick quick;
    size_t cell;
    int r;

    if (has_writer(resident) || det_resident_kept(resident))
        return 0;
    cell = (size_t)resident->head.state * served->machine->event_count + det_event_kind(event);
    if (served->send_paths[cell] == DET_SEND_PATH_TURN)
        return 0;
    quick.runtime = runtime;
    quick.shard = shard;
    quick.resident = resident;
    quick.transition = &served->machine->table[cell];
    quick.event = event;
    if (served->send_paths[cell] == DET_SEND_PATH_CODE) {
        r = send_coded(&quick, slot, reterr, ret);
    } else {
        quick.now = det_runtime_now(runtime);
        r = commit(&quick, NULL, ret);
    }
    if (r == 1 && *slot)
        hint(*slot, &quick);
    return r;
}
