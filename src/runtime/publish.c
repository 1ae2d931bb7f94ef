/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* publish.c - publishes a committed draft to the resident and to observers. Nothing here can
 * fail. */
#include <string.h>

#include "base/assert.h"
#include "machine/data_copy.h"
#include "runtime/node.h"
#include "runtime/turn.h"

static void publish_slot(struct det_turn *turn, size_t slot)
{
    struct det_draft_timer *timer = &turn->draft->timers[slot];
    struct det_armed *armed =
        det_resident_timer(turn->resident, det_timer_number(turn->served->machine, slot));
    det_time next = timer->next ? timer->next : timer->due;

    if (!armed)
        return;
    det_armed_disarm(turn->runtime, armed);
    if (!timer->is_set)
        return;
    armed->has_place = true;
    det_armed_arm(
        turn->shard, armed,
        &(struct det_store_timer){ .event = timer->event,
                                   .visit = timer->visit,
                                   .due = timer->due,
                                   .next = timer->next,
                                   .attempts = timer->attempts,
                                   .last_error = timer->last_error });
    armed->value = timer->value;
    armed->reason = timer->reason;
    timer->value = timer->reason = NULL;
    if (next < turn->earliest)
        turn->earliest = next;
}

static void publish_timers(struct det_turn *turn)
{
    if (det_turn_fired(turn) && turn->firing.change == DET_STORE_UPDATE) {
        det_armed_fail(turn->runtime, turn->firing.armed, &turn->firing.row, turn->firing.reason);
        turn->firing.reason = NULL;
    } else if (det_turn_fired(turn)) {
        det_armed_disarm(turn->runtime, turn->firing.armed);
    }
    for (size_t i = 0; turn->draft->has_timers && i < det_timer_slots(turn->served->machine); i++) {
        if (turn->draft->timers[i].is_touched)
            publish_slot(turn, i);
    }
}

static void publish_effect_runs(struct det_turn *turn)
{
    struct det_resident_more *more = turn->resident->more;
    struct det_list *node;

    while ((node = det_list_take(&turn->draft->effect_runs))) {
        struct det_effect_run *effect_run = DET_CONTAINER(node, struct det_effect_run, node);

        det_assert(more && effect_run->due.resident == turn->resident);
        det_assert(effect_run->state == DET_EFFECT_RUN_WAITING && !effect_run->is_gone);
        det_list_append(&more->effect_runs, node);
        more->open_count++;
        atomic_fetch_add(&turn->runtime->effect_runs, 1);
        /* The loop begins the effect when this node may act. */
        if (!det_node_may_act(turn->runtime)) {
            det_due_insert(turn->shard, &effect_run->due, effect_run->row.next);
            continue;
        }
        if (!det_effect_run_begin(turn->runtime, effect_run))
            continue;
        *turn->to_run_last = effect_run;
        turn->to_run_last = &effect_run->next;
    }
}

/* Dropped deferred events stay in the draft, to be reported. */
static void publish_kept(struct det_turn *turn)
{
    struct det_resident_more *more = turn->resident->more;
    struct det_draft *draft = turn->draft;
    struct det_list *node;

    if (turn->retry.kept && !turn->retry.is_put_off) {
        det_assert(more && more->kept_count > 0);
        det_list_remove(&turn->retry.kept->node);
        more->kept_count--;
    }
    if (draft->is_kept_dropped) {
        while (more && (node = det_list_take(&more->kept)))
            det_list_append(&draft->kept, node);
        if (more)
            more->kept_count = 0;
        return;
    }
    while ((node = det_list_take(&draft->kept))) {
        det_list_append(&more->kept, node);
        more->kept_count++;
    }
}

static void publish_history(struct det_turn *turn)
{
    struct det_resident *resident = turn->resident;
    uint64_t count = resident->head.transition_count;

    for (size_t i = 0; i < turn->draft->event_count; i++) {
        const struct det_store_event *event = &turn->draft->events[i];

        if (event->outcome == DET_OUTCOME_GOTO)
            resident->history[count++ % turn->runtime->options.history_kept] = event->from;
        if (event->outcome <= DET_OUTCOME_STOP)
            turn->counts.transitions++;
    }
}

/* Prepares the slot for the next send. */
static void hint(const struct det_turn *turn, const struct det_store_commit *commit)
{
    struct det_index_slot *slot = det_index_find_first(
        det_served_index(turn->runtime, turn->served, turn->shard), turn->hash);

    if (!slot || slot->resident != turn->resident)
        return;
    slot->handle = commit->instance;
    slot->next = commit->next;
}

/* True if user code must be called, or deferred events may be retried: otherwise the turn ends with
 * the publish, in one lock section. */
static bool needs_user_code(const struct det_turn *turn)
{
    const struct det_draft *draft = turn->draft;

    if (draft->is_snapshot || turn->runtime->options.observe || turn->retry.kept ||
        det_resident_kept(turn->resident) || !det_list_is_empty(&draft->kept))
        return true;
    for (size_t i = 0; i < draft->event_count; i++) {
        if (draft->events[i].outcome == DET_OUTCOME_DEAD_LETTER)
            return true;
    }
    return false;
}

/* The sequence of an instance never decreases, and only its one writer advances it. */
static void assert_advances(const struct det_turn *turn)
{
    const struct det_store_head *before = &turn->resident->head, *after = &turn->draft->head;

    det_assert(turn->resident->is_claimed == turn->is_claimed);
    det_assert(after->sequence == before->sequence + turn->draft->event_count);
    det_assert(after->visit >= before->visit);
    det_assert(after->transition_count >= before->transition_count);
}

/* With a claim: the lock is kept if only the end of the turn is left. */
void det_turn_publish(struct det_turn *turn, const struct det_store_commit *commit)
{
    struct det_resident *resident = turn->resident;
    struct det_draft *draft = turn->draft;

    if (turn->is_claimed)
        det_shard_lock(turn->runtime, turn->shard);
    assert_advances(turn);
    publish_history(turn);
    if (commit->timer_count)
        publish_timers(turn);
    if (det_turn_ended(turn))
        det_effect_run_change(
            turn->runtime, turn->shard, turn->effect_run, turn->effect_run_change);
    if (draft->effect_run_count)
        publish_effect_runs(turn);
    if (draft->kept_count || draft->is_kept_dropped || turn->retry.kept)
        publish_kept(turn);
    if (draft->is_data_changed)
        det_machine_copy_data(
            turn->served->machine, turn->served->data_size, resident->data, draft->data);
    if (draft->reason) {
        det_assert(resident->more && strlen(draft->reason) <= DET_REASON_MAX);
        memcpy(resident->more->reason, draft->reason, strlen(draft->reason) + 1);
    }
    resident->handle = commit->instance;
    turn->since = resident->head.last_transition_at;
    resident->head = draft->head;
    if (draft->event_count)
        resident->acted_at = turn->now;
    hint(turn, commit);
    if (!turn->is_claimed)
        return;
    turn->is_locked = !needs_user_code(turn);
    if (!turn->is_locked)
        det_shard_unlock(turn->runtime, turn->shard);
}

/* The event that started the visit in which the timer was armed: its sequence is one below the
 * visit. */
static int take_cause(void *context, const struct det_store_event *row)
{
    struct det_turn *turn = context;

    if (row->trace && row->sequence + 1 == turn->firing.visit)
        turn->firing.armed_by = *row->trace;
    return 1;
}

/* No other turn uses the instance now. Unknown values are omitted. */
static void find_cause(struct det_turn *turn)
{
    const struct det_runtime *runtime = turn->runtime;

    if (!turn->request.trace || !(turn->request.trace->flags & DET_TRACE_SAMPLED) ||
        turn->firing.visit < 2)
        return;
    (void)!runtime->ops->events(
        runtime->store, turn->resident->handle, turn->firing.visit - 2, take_cause, turn);
}

static const struct det_trace_context *armed_by(
    const struct det_turn *turn, const struct det_store_event *event)
{
    static const struct det_trace_context none;

    if (!event->is_timeout || memcmp(&turn->firing.armed_by, &none, sizeof none) == 0)
        return NULL;
    return &turn->firing.armed_by;
}

/* `since` is when the initial state was entered; 0: unknown. */
static void report_note(
    const struct det_turn *turn, const struct det_store_event *event, det_time since)
{
    const struct det_runtime_options *options = &turn->runtime->options;

    if (options->observe)
        options->observe(
            options->observer, &(struct det_note){
                                   .machine = turn->served->machine,
                                   .instance = turn->resident->id,
                                   .sequence = event->sequence,
                                   .visit = event->visit,
                                   .from = event->from,
                                   .to = event->to,
                                   .event = event->event,
                                   .outcome = event->outcome,
                                   .is_timeout = event->is_timeout,
                                   .choice = event->choice,
                                   .cause = event->cause,
                                   .at = event->at,
                                   .since = since,
                                   .commit_took = turn->commit_took,
                                   .event_value = event->value,
                                   .data = turn->resident->data,
                                   .trace = event->trace,
                                   .armed_by = armed_by(turn, event),
                               });
}

static void report_dead(const struct det_turn *turn, unsigned kind, int code)
{
    det_runtime_report_incident(
        turn->runtime, turn->resident,
        &(struct det_incident){ .kind = DET_INCIDENT_EVENT_DEAD,
                                .name = turn->served->machine->events[kind].name,
                                .code = code },
        NULL);
}

static void report_start(const struct det_turn *turn, det_time at)
{
    uint16_t initial = turn->served->machine->initial;

    report_note(
        turn,
        &(struct det_store_event){ .visit = 1,
                                   .from = initial,
                                   .to = initial,
                                   .event = UINT16_MAX,
                                   .outcome = DET_OUTCOME_GOTO,
                                   .at = at,
                                   .trace = turn->request.trace },
        0);
}

static void report_event(
    const struct det_turn *turn, const struct det_store_event *event, det_time since)
{
    report_note(turn, event, since);
    /* The delivery of a deferred event reports the reason itself. */
    if (event->outcome == DET_OUTCOME_DEAD_LETTER && !turn->retry.kept)
        report_dead(turn, event->event, DET_ERR_UNHANDLED);
}

/* Calls user code while the instance is claimed, so that reports are in order. A turn with
 * observers or reports has a claim. */
void det_turn_announce(struct det_turn *turn)
{
    struct det_draft *draft = turn->draft;
    det_time since = turn->since;
    struct det_list *node;

    if (det_turn_fired(turn))
        find_cause(turn);
    if (turn->kind == DET_TURN_START)
        report_start(turn, turn->now);
    for (size_t i = 0; i < draft->event_count; i++) {
        const struct det_store_event *event = &draft->events[i];

        report_event(turn, event, since);
        if (event->outcome == DET_OUTCOME_GOTO)
            since = event->at;
    }
    while ((node = det_list_take(&draft->kept))) {
        struct det_kept *kept = DET_CONTAINER(node, struct det_kept, node);

        report_dead(turn, det_event_kind(kept->event), DET_ERR_STOPPED);
        det_kept_close(turn->runtime, turn->served->machine, kept);
    }
}

struct found {
    const struct det_turn *turn;
    uint32_t transitions;
};

static int report_found(void *context, const struct det_store_event *row)
{
    struct found *found = context;

    /* Committed after the load by another process: the next load will see it. */
    if (row->sequence > found->turn->resident->head.sequence)
        return 1;
    found->transitions += row->outcome <= DET_OUTCOME_STOP;
    report_event(found->turn, row, 0);
    return 0;
}

uint32_t det_turn_announce_found(struct det_turn *turn, bool is_new, uint64_t after)
{
    const struct det_runtime *runtime = turn->runtime;
    const struct det_resident *resident = turn->resident;
    struct found found = { turn, 0 };
    int r;

    if (is_new)
        report_start(turn, resident->head.started_at);
    if (resident->head.sequence == after)
        return 0;
    r = runtime->ops->events(runtime->store, resident->handle, after, report_found, &found);
    /* If the store fails now, the events read so far are reported; the committed state stays
     * valid. */
    (void)r;
    return found.transitions;
}
