/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* commit.c - from the draft to the store.
 *
 *     collect the changes -> reserve memory for publishing -> commit -> publish -> report
 *
 * Everything that can fail comes before the commit or is the commit itself, which may share a call
 * of the store with others. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "runtime/keep.h"
#include "runtime/meter.h"

static struct det_store_timer armed_row(const struct det_armed *armed)
{
    return (struct det_store_timer){
        .timer = armed->timer,
        .event = armed->event,
        .visit = armed->visit,
        .due = armed->deadline,
        .value = armed->value,
    };
}

static void collect_slot(struct det_turn *turn, size_t slot, struct det_store_commit *commit)
{
    const struct det_draft_timer *timer = &turn->draft->timers[slot];
    uint16_t number = det_timer_number(turn->served->machine, slot);
    const struct det_armed *armed = det_resident_timer(turn->resident, number);
    struct det_store_timer_change *change = &turn->draft->timer_changes[commit->timer_count];

    if (!timer->is_set && (!armed || !det_armed_is_set(armed) || armed == det_turn_fired(turn)))
        return;
    change->kind = timer->is_moved ? DET_STORE_UPDATE
                   : timer->is_set ? DET_STORE_SET
                                   : DET_STORE_CLEAR;
    change->timer = (struct det_store_timer){
        .timer = number,
        .event = timer->event,
        .visit = timer->visit,
        .due = timer->due,
        .value = timer->value,
        .attempts = timer->attempts,
        .last_error = timer->last_error,
        .reason = timer->reason,
        .next = timer->next,
    };
    commit->timer_count++;
}

static int collect_timers(struct det_turn *turn, struct det_store_commit *commit)
{
    struct det_draft *draft = turn->draft;
    size_t slots = det_timer_slots(turn->served->machine);
    int r;

    if (!draft->has_timers && !det_turn_fired(turn))
        return 0;
    r = det_draft_room(
        turn->runtime, &draft->timer_changes, &draft->timer_change_capacity, slots + 1,
        sizeof *draft->timer_changes);
    if (r < 0)
        return r;
    if (det_turn_fired(turn))
        draft->timer_changes[commit->timer_count++] =
            (struct det_store_timer_change){ turn->firing.change,
                                             turn->firing.change == DET_STORE_UPDATE
                                                 ? turn->firing.row
                                                 : armed_row(turn->firing.armed) };
    for (size_t i = 0; draft->has_timers && i < slots; i++) {
        if (draft->timers[i].is_touched)
            collect_slot(turn, i, commit);
    }
    commit->timers = draft->timer_changes;
    return 0;
}

static int collect_effects(struct det_turn *turn, struct det_store_commit *commit)
{
    struct det_draft *draft = turn->draft;
    int r;

    if (!draft->effect_run_count && !det_turn_ended(turn))
        return 0;
    r = det_draft_room(
        turn->runtime, &draft->effect_changes, &draft->effect_change_capacity,
        draft->effect_run_count + 1, sizeof *draft->effect_changes);
    if (r < 0)
        return r;
    if (det_turn_ended(turn))
        draft->effect_changes[commit->effect_count++] =
            (struct det_store_effect_change){ turn->effect_run_change, turn->effect_run->row };
    DET_LIST_EACH(node, &draft->effect_runs)
    draft->effect_changes[commit->effect_count++] =
        (struct det_store_effect_change){ DET_STORE_SET,
                                          DET_CONTAINER(node, struct det_effect_run, node)->row };
    commit->effects = draft->effect_changes;
    return 0;
}

static void collect_list(
    struct det_draft *draft, const struct det_list *list, enum det_store_change_kind kind,
    struct det_store_commit *commit)
{
    DET_LIST_EACH(node, list)
    {
        const struct det_kept *kept = DET_CONTAINER(node, struct det_kept, node);

        draft->kept_changes[commit->deferred_count++] =
            (struct det_store_deferred_change){ kind, { kept->sequence, kept->event } };
    }
}

static int collect_kept(struct det_turn *turn, struct det_store_commit *commit)
{
    struct det_draft *draft = turn->draft;
    size_t standing = det_resident_kept(turn->resident);
    int r;

    if (!draft->kept_count && !turn->retry.kept && (!draft->is_kept_dropped || !standing))
        return 0;
    r = det_draft_room(
        turn->runtime, &draft->kept_changes, &draft->kept_change_capacity,
        draft->kept_count + standing, sizeof *draft->kept_changes);
    if (r < 0)
        return r;
    if (draft->is_kept_dropped)
        collect_list(draft, &turn->resident->more->kept, DET_STORE_TAKE, commit);
    else if (turn->retry.kept && !turn->retry.is_put_off)
        draft->kept_changes[commit->deferred_count++] = (struct det_store_deferred_change){
            DET_STORE_TAKE, { turn->retry.kept->sequence, turn->retry.kept->event }
        };
    /* Events deferred and dropped by the same commit leave no trace. */
    if (!draft->is_kept_dropped)
        collect_list(draft, &draft->kept, DET_STORE_SET, commit);
    commit->deferred = draft->kept_changes;
    return 0;
}

static void collect_snapshot(struct det_turn *turn, struct det_store_commit *commit)
{
    struct det_draft *draft = turn->draft;

    draft->is_snapshot = det_keep_wants_snapshot(turn);
    if (!draft->is_snapshot)
        return;
    commit->is_snapshot = true;
    commit->history = draft->history;
    commit->history_count = det_keep_history(turn, draft->history);
}

static int collect(struct det_turn *turn, struct det_store_commit *commit)
{
    const struct det_draft *draft = turn->draft;
    int r;

    *commit = (struct det_store_commit){
        .machine = turn->served->machine,
        .id = turn->resident->id,
        .instance = turn->resident->handle,
        .is_new = turn->kind == DET_TURN_START,
        .expected = turn->resident->head.sequence,
        .head = &draft->head,
        .reason = draft->reason,
        .data = draft->is_data_changed ? draft->data : NULL,
        .events = draft->events,
        .event_count = draft->event_count,
        .fence = turn->request.fence,
    };
    if (!turn->retry.kept && (draft->event_count || commit->is_new))
        commit->event_id = turn->request.event_id;
    collect_snapshot(turn, commit);
    r = collect_timers(turn, commit);
    if (r == 0)
        r = collect_effects(turn, commit);
    if (r == 0)
        r = collect_kept(turn, commit);
    return r;
}

/* Reserves places for all entries that publishing adds to the heap and the resident. */
static size_t count_due(const struct det_turn *turn)
{
    const struct det_machine *machine = turn->served->machine;
    const struct det_draft *draft = turn->draft;
    size_t count = draft->effect_run_count;

    for (size_t i = 0; draft->has_timers && i < det_timer_slots(machine); i++) {
        const struct det_armed *armed =
            det_resident_timer(turn->resident, det_timer_number(machine, i));

        count += draft->timers[i].is_set && (!armed || !armed->has_place);
    }
    return count;
}

static bool sets_named(const struct det_turn *turn)
{
    const struct det_draft *draft = turn->draft;

    for (size_t i = 1; draft->has_timers && i < det_timer_slots(turn->served->machine); i++) {
        if (draft->timers[i].is_set)
            return true;
    }
    return false;
}

static int prepare(struct det_turn *turn, size_t due)
{
    const struct det_draft *draft = turn->draft;
    bool is_named = sets_named(turn);
    int r = 0;

    if (!due && !draft->kept_count && !draft->reason && !is_named)
        return 0;
    if (turn->is_claimed)
        det_shard_lock(turn->runtime, turn->shard);
    if (draft->effect_run_count || draft->kept_count || draft->reason || is_named)
        r = det_resident_need_more(turn->runtime, turn->resident, is_named);
    if (r == 0)
        r = det_due_promise(turn->shard, due);
    if (r == 0)
        turn->promised = due;
    if (turn->is_claimed)
        det_shard_unlock(turn->runtime, turn->shard);
    return r;
}

static void unpromise(struct det_turn *turn)
{
    if (!turn->promised)
        return;
    if (turn->is_claimed)
        det_shard_lock(turn->runtime, turn->shard);
    turn->shard->promised -= turn->promised;
    if (turn->is_claimed)
        det_shard_unlock(turn->runtime, turn->shard);
}

static void answer(const struct det_turn *turn, struct det_sent *ret)
{
    const struct det_draft *draft = turn->draft;
    const struct det_store_head *head = &draft->head;

    *ret = (struct det_sent){
        .outcome = (enum det_outcome)draft->outcome,
        .state = head->state,
        .sequence = head->sequence,
        .visit = head->visit,
    };
    if (turn->kind == DET_TURN_START)
        ret->outcome = DET_OUTCOME_GOTO;
    else if (turn->kind == DET_TURN_STOP)
        ret->outcome = DET_OUTCOME_STOP;
}

/* The reason of a failure, as the end of a sentence; says whether the outcome is known. */
static const char *failure_text(int r)
{
    if (r == DET_ERR_CANCELLED)
        return "the store did not answer before the stop; it is not known whether it was committed";
    if (r == DET_ERR_CLOSED)
        return "detent is shutting down; retry later";
    return det_error_text(r);
}

/* A timeout of the store leaves the outcome unknown; a send's DET_ERR_TIMEOUT does not. */
static int fail(struct det_turn *turn, const struct det_store_commit *commit, int result)
{
    int r = result == DET_ERR_TIMEOUT ? DET_ERR_IO : result;

    turn->is_in_doubt = !det_runtime_is_certain(r);
    turn->may_have_happened = !turn->runtime->ops->is_shared || !det_runtime_is_other_holder(r);
    turn->counts.conflicts += r == DET_ERR_CONFLICT;
    det_error_set(
        turn->error, r, "%s %s: the commit failed: %s", commit->machine->name, commit->id,
        failure_text(result));
    if (turn->error && r == DET_ERR_CONFLICT) {
        turn->error->expected = commit->expected;
        turn->error->actual = commit->actual;
    }
    return r;
}

static bool is_nothing(const struct det_store_commit *commit)
{
    return !commit->is_new && !commit->event_count && !commit->timer_count &&
           !commit->effect_count && !commit->deferred_count;
}

static int collect_request(struct det_turn *turn, struct det_store_commit *commit)
{
    int r;

    r = det_turn_request(turn);
    commit->answer.request = turn->request.hash;
    commit->answer.event =
        turn->request.event_count
            ? (uint16_t)det_event_kind(turn->request.events[turn->request.event_count - 1])
            : UINT16_MAX;
    return r;
}

int det_turn_collect(struct det_turn *turn, struct det_store_commit *commit, struct det_sent *ret)
{
    int r;

    turn->promised = 0;
    det_deferred_plan(turn);
    r = collect(turn, commit);
    answer(turn, ret);
    if (r == 0 && is_nothing(commit))
        return 0;
    commit->answer = (struct det_store_answer){ .outcome = (uint16_t)ret->outcome,
                                                .state = (uint16_t)ret->state,
                                                .sequence = ret->sequence,
                                                .visit = ret->visit };
    if (r == 0 && commit->event_id)
        r = collect_request(turn, commit);
    if (r == 0)
        r = prepare(turn, count_due(turn));
    if (r < 0)
        det_draft_discard(turn);
    return r < 0 ? r : 1;
}

int det_turn_store(struct det_turn *turn, struct det_store_commit *commit)
{
    struct det_store_commit *const one = commit;
    int r;

    r = det_meter_commit(turn->runtime, &one, 1, &turn->commit_took);
    return r < 0 ? r : commit->result;
}

int det_turn_stored(struct det_turn *turn, const struct det_store_commit *commit, int r)
{
    if (r < 0) {
        unpromise(turn);
        det_draft_discard(turn);
        return fail(turn, commit, r);
    }
    det_turn_publish(turn, commit);
    if (turn->is_claimed && !turn->is_locked) {
        if (turn->draft->is_snapshot)
            det_keep_prune(turn);
        det_turn_announce(turn);
    }
    return 0;
}
