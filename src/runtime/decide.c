/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* decide.c - computes the result of an event on an instance, in a draft. Nothing outside the draft
 * changes, so any step may still refuse. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "machine/data_copy.h"
#include "runtime/meter.h"
#include "store/effect_key.h"

/* One event under decision. */
struct step {
    const struct det_transition *transition;
    const void *event;
    struct det_move move;
    uint64_t visit;  /* the visit after the event */
    uint16_t choice; /* number of the alternative */
};

static bool arms_with_fill(
    const struct det_machine *machine, const struct det_transition_more *more)
{
    for (unsigned i = 0; i < more->arm_count; i++) {
        if (machine->timers[more->arms[i]].timeout.fill)
            return true;
    }
    return false;
}

bool det_decide_runs_code(
    const struct det_machine *machine, unsigned state, const struct det_transition *transition)
{
    const struct det_transition_more *more = transition->more;
    const struct det_timeout *timeout = det_machine_timeout(machine, transition);

    if (more && (more->guard || more->hook || more->update || arms_with_fill(machine, more)))
        return true;
    if (transition->outcome != DET_OUTCOME_STAY && machine->states[state].exit)
        return true;
    if (transition->outcome == DET_OUTCOME_GOTO && machine->states[transition->to].entry)
        return true;
    return timeout && timeout->fill;
}

/* True if no user code runs and nothing is reported: the turn then needs no claim. */
bool det_decide_is_plain(const struct det_turn *turn, const void *event)
{
    const struct det_machine *machine = turn->served->machine;
    unsigned state = turn->resident->head.state, kind = det_event_kind(event);
    const struct det_transition *transition = det_machine_step(machine, state, kind);

    if (transition->outcome == DET_OUTCOME_UNHANDLED)
        return machine->events[kind].unhandled != DET_UNHANDLED_DEAD_LETTER;
    return !det_decide_runs_code(machine, state, transition);
}

int det_decide_check(const struct det_served *served, const void *event, struct det_error *reterr)
{
    const struct det_machine *machine = served->machine;
    unsigned kind = det_event_kind(event);
    const struct det_record *payload;
    int r;

    if (kind >= machine->event_count)
        return det_error_set(
            reterr, DET_ERR_INVALID, "%u is not an event of %s", kind, machine->name);
    payload = served->payloads[kind];
    if (!payload)
        return 0;
    r = det_record_validate(
        payload, (const char *)event + machine->events[kind].payload_offset, reterr);
    if (r < 0 && reterr)
        reterr->code = DET_ERR_INVALID;
    return r < 0 ? DET_ERR_INVALID : 0;
}

/* The data of the draft, copied on the first change. */
static int own_data(struct det_turn *turn)
{
    struct det_draft *draft = turn->draft;
    int r;

    if (draft->is_data_changed)
        return 0;
    r = det_draft_room(
        turn->runtime, &draft->data, &draft->data_capacity, turn->served->data_size, 1);
    if (r < 0)
        return r;
    det_machine_copy_data(
        turn->served->machine, turn->served->data_size, draft->data, turn->resident->data);
    draft->is_data_changed = true;
    return 0;
}

static int check_data(struct det_turn *turn)
{
    int r;

    if (!turn->served->data)
        return 0;
    r = det_record_validate(turn->served->data, turn->draft->data, turn->error);
    if (r < 0 && turn->error)
        turn->error->code = DET_ERR_INVALID;
    return r < 0 ? DET_ERR_INVALID : 0;
}

int det_decide_data(
    struct det_turn *turn, const struct det_transition *transition, const void *event)
{
    const struct det_transition_more *more = transition->more;
    int r;

    if (!more || (!more->keep_count && !more->update))
        return 0;
    r = own_data(turn);
    if (r == 0)
        r = det_machine_apply(
            turn->served->machine, transition, turn->draft->data, event, turn->error);
    return r < 0 ? r : check_data(turn);
}

static struct det_draft_timer *touch(struct det_turn *turn, size_t slot)
{
    struct det_draft_timer *timer = &turn->draft->timers[slot];

    if (timer->value)
        det_free(turn->runtime->allocator, timer->value, turn->served->machine->event_size);
    *timer = (struct det_draft_timer){ .is_touched = true };
    turn->draft->has_timers = true;
    return timer;
}

/* Makes the event of a timer; user code fills its payload. */
static int fill(
    struct det_turn *turn, struct det_draft_timer *timer, const struct det_timeout *timeout,
    const struct det_move *move)
{
    unsigned kind = timeout->event;
    int r;

    if (!timeout->fill->run)
        return det_error_set(
            turn->error, DET_ERR_UNBOUND, "%s of %s is only a name; bind it", timeout->fill->name,
            turn->served->machine->name);
    timer->value = det_alloc_zero(turn->runtime->allocator, turn->served->machine->event_size);
    if (!timer->value)
        return DET_ERR_NO_MEMORY;
    memcpy(timer->value, &kind, sizeof kind);
    timeout->fill->run(move, det_turn_data(turn), timer->value);
    r = det_decide_check(turn->served, timer->value, turn->error);
    return r == 0 && det_event_kind(timer->value) != kind ? DET_ERR_INVALID : r;
}

static int arm(
    struct det_turn *turn, size_t slot, const struct det_timeout *timeout, const struct step *step)
{
    struct det_draft_timer *timer = touch(turn, slot);

    timer->is_set = true;
    timer->event = timeout->event;
    timer->visit = step->visit;
    timer->due = det_add_time(turn->now, timeout->after);
    return timeout->fill ? fill(turn, timer, timeout, &step->move) : 0;
}

/* The state's own timer: removed with its visit, and set on entry. */
static int set_own_timer(struct det_turn *turn, const struct step *step)
{
    const struct det_timeout *timeout;

    if (!turn->resident->own || step->transition->outcome != DET_OUTCOME_GOTO)
        return 0;
    timeout = det_machine_timeout(turn->served->machine, step->transition);
    if (timeout && timeout->after)
        return arm(turn, 0, timeout, step);
    touch(turn, 0);
    return 0;
}

static int set_timers(struct det_turn *turn, const struct step *step)
{
    const struct det_machine *machine = turn->served->machine;
    const struct det_transition_more *more = step->transition->more;
    int r;

    r = set_own_timer(turn, step);
    for (unsigned i = 0; more && i < more->disarm_count; i++)
        touch(turn, (size_t)more->disarms[i] + 1);
    for (unsigned i = 0; r == 0 && more && i < more->arm_count; i++)
        r = arm(turn, (size_t)more->arms[i] + 1, &machine->timers[more->arms[i]].timeout, step);
    return r;
}

static size_t open_effect_runs(const struct det_turn *turn)
{
    return turn->draft->effect_run_count +
           (turn->resident->more ? turn->resident->more->open_count : 0);
}

static int add_effect(struct det_turn *turn, const struct step *step, uint16_t index)
{
    const struct det_machine *machine = turn->served->machine;
    uint16_t effect = step->transition->more->effects[index];
    struct det_effect_run *effect_run;
    struct det_store_effect row = {
        .sequence = step->move.sequence,
        .index = det_effect_index(turn->runtime->store, index),
        .effect = effect,
        .from = step->move.from,
        .to = step->move.to,
        .visit = step->move.visit,
        .asked = step->visit,
        .at = turn->now,
        .next = turn->now,
        .data = det_turn_data(turn),
        .event = step->event,
        .trace = det_turn_trace(turn),
    };

    if (!machine->effects[effect].run && !turn->runtime->options.is_passive)
        return det_error_set(
            turn->error, DET_ERR_UNBOUND, "effect %s of %s is only a name; bind it",
            machine->effects[effect].name, machine->name);
    if (open_effect_runs(turn) >= DET_EFFECTS_PENDING)
        return det_error_set(
            turn->error, DET_ERR_LIMIT, "%s %s has %d effects that have not ended", machine->name,
            turn->resident->id, DET_EFFECTS_PENDING);
    effect_run = det_effect_run_open(turn->runtime, turn->resident, &row);
    if (!effect_run)
        return DET_ERR_NO_MEMORY;
    det_list_append(&turn->draft->effect_runs, &effect_run->node);
    turn->draft->effect_run_count++;
    return 0;
}

static int add_effects(struct det_turn *turn, const struct step *step)
{
    const struct det_transition_more *more = step->transition->more;
    int r = 0;

    for (uint16_t i = 0; r == 0 && more && i < more->effect_count; i++)
        r = add_effect(turn, step, i);
    return r;
}

/* Stops the instance: removes all timers and drops the deferred events. */
static void end(struct det_turn *turn, const char *reason)
{
    for (size_t i = 0; i < det_timer_slots(turn->served->machine); i++)
        touch(turn, i);
    turn->draft->is_kept_dropped = true;
    turn->draft->reason = reason;
    turn->draft->head.is_stopped = true;
}

/* Adds the event's row and advances the head. */
static void record(struct det_turn *turn, const struct step *step, unsigned outcome)
{
    struct det_draft *draft = turn->draft;
    struct det_store_head *head = &draft->head;

    det_assert(draft->event_count < draft->event_capacity);
    draft->outcome = outcome;
    head->sequence = step->move.sequence;
    head->state = step->move.to;
    head->visit = step->visit;
    if (outcome == DET_OUTCOME_GOTO)
        head->transition_count++;
    if (outcome == DET_OUTCOME_GOTO || outcome == DET_OUTCOME_STOP)
        head->last_transition_at = turn->now;
    draft->events[draft->event_count++] = (struct det_store_event){
        .sequence = head->sequence,
        .visit = head->visit,
        .from = step->move.from,
        .to = step->move.to,
        .event = step->event ? (uint16_t)det_event_kind(step->event) : UINT16_MAX,
        .outcome = (uint16_t)outcome,
        .choice = step->choice,
        .is_timeout = turn->firing.armed && !turn->retry.kept,
        .at = turn->now,
        .cause = turn->effect_run && !turn->retry.kept ? turn->effect_run->key : NULL,
        .value = step->event,
        .trace = det_turn_trace(turn),
    };
}

void det_decide_dead_letter(struct det_turn *turn, const void *event)
{
    const struct det_store_head *head = &turn->draft->head;
    const struct step step = { .event = event,
                               .move = det_decide_move(turn, head->state),
                               .visit = head->visit };

    record(turn, &step, DET_OUTCOME_DEAD_LETTER);
}

static int keep(struct det_turn *turn, const struct step *step)
{
    struct det_draft *draft = turn->draft;
    struct det_kept *kept;

    if (det_resident_kept(turn->resident) + draft->kept_count >= DET_DEFERRED_MAX)
        return det_error_set(
            turn->error, DET_ERR_LIMIT, "%s %s has %d deferred events already",
            turn->served->machine->name, turn->resident->id, DET_DEFERRED_MAX);
    kept = det_kept_open(turn->runtime, turn->served->machine, step->move.sequence, step->event);
    if (!kept)
        return DET_ERR_NO_MEMORY;
    det_list_append(&draft->kept, &kept->node);
    draft->kept_count++;
    record(turn, step, DET_OUTCOME_DEFERRED);
    return 0;
}

static int unhandled(struct det_turn *turn, const struct step *step)
{
    const struct det_machine *machine = turn->served->machine;
    const struct det_event_def *event = &machine->events[det_event_kind(step->event)];
    const char *state = machine->states[turn->draft->head.state].name;

    turn->counts.unhandled++;
    det_meter_unhandled(turn, det_event_kind(step->event));
    switch ((enum det_unhandled)event->unhandled) {
    case DET_UNHANDLED_IGNORE:
        turn->draft->outcome = DET_OUTCOME_IGNORED;
        return 0;
    case DET_UNHANDLED_DEFER:
        return keep(turn, step);
    case DET_UNHANDLED_DEAD_LETTER:
        record(turn, step, DET_OUTCOME_DEAD_LETTER);
        return 0;
    case DET_UNHANDLED_ERROR:
        break;
    }
    det_error_set(
        turn->error, DET_ERR_UNHANDLED, "%s %s is %s, which does not accept %s", machine->name,
        turn->resident->id, state, event->name);
    if (turn->error) {
        turn->error->state = state;
        turn->error->event = event->name;
    }
    return DET_ERR_UNHANDLED;
}

struct det_move det_decide_move(const struct det_turn *turn, uint16_t to)
{
    const struct det_store_head *head = &turn->draft->head;

    return (struct det_move){
        .machine = turn->served->machine->name,
        .instance = turn->resident->id,
        .sequence = head->sequence + 1,
        .visit = head->visit,
        .from = head->state,
        .to = to,
        .now = turn->now,
        .user = turn->runtime->options.user,
    };
}

static int stopped(struct det_turn *turn)
{
    const struct det_machine *machine = turn->served->machine;
    const struct det_resident_more *more = turn->resident->more;

    det_error_set(
        turn->error, DET_ERR_STOPPED, "%s %s has stopped%s%s", machine->name, turn->resident->id,
        more && more->reason[0] ? ": " : "", more ? more->reason : "");
    if (turn->error)
        turn->error->state = machine->states[turn->resident->head.state].name;
    return DET_ERR_STOPPED;
}

static void set_transition(
    const struct det_turn *turn, struct step *step, const struct det_transition *transition)
{
    const struct det_store_head *head = &turn->draft->head;
    bool is_goto = transition->outcome == DET_OUTCOME_GOTO;

    step->transition = transition;
    step->move = det_decide_move(turn, is_goto ? transition->to : head->state);
    step->visit = is_goto ? step->move.sequence + 1 : head->visit;
}

/* Chooses the first alternative whose guard permits it, or that has no guard. A guard sees the
 * target of its own alternative. */
static int choose(struct det_turn *turn, struct step *step)
{
    const struct det_machine *machine = turn->served->machine;
    unsigned state = turn->draft->head.state, kind = det_event_kind(step->event);
    const struct det_transition *first = det_machine_step(machine, state, kind);
    const struct det_choice *choice = NULL, *next;
    int r;

    set_transition(turn, step, first);
    while (step->transition->more && step->transition->more->guard) {
        r = det_hooks_check_guard(turn, step->transition->more->guard, &step->move, step->event);
        if (r != 0)
            return r < 0 ? r : 0;
        next = det_machine_choice(machine, state, kind, choice);
        if (!next)
            return det_hooks_refuse(turn, first->more->guard, choice != NULL, step->event);
        choice = next;
        step->choice++;
        set_transition(turn, step, &choice->transition);
    }
    return 0;
}

int det_decide_event(struct det_turn *turn, const void *event)
{
    struct det_draft *draft = turn->draft;
    struct step step = { .event = event };
    int r;

    if (draft->head.is_stopped)
        return stopped(turn);
    r = choose(turn, &step);
    if (r < 0)
        return r;
    if (step.transition->outcome == DET_OUTCOME_UNHANDLED)
        return unhandled(turn, &step);
    r = det_hooks_act(turn, step.transition, &step.move, event);
    if (r == 0)
        r = det_decide_data(turn, step.transition, event);
    if (r == 0)
        r = set_timers(turn, &step);
    if (r == 0)
        r = add_effects(turn, &step);
    if (r < 0)
        return r;
    if (step.transition->outcome == DET_OUTCOME_STOP)
        end(turn, step.transition->more ? step.transition->more->reason : NULL);
    record(turn, &step, step.transition->outcome);
    return 0;
}

int det_decide_start(struct det_turn *turn)
{
    const struct det_machine *machine = turn->served->machine;
    struct det_draft *draft = turn->draft;
    struct det_transition entry = { .outcome = DET_OUTCOME_GOTO, .to = machine->initial };
    struct step step = { .transition = &entry, .visit = 1 };
    int r;

    r = own_data(turn);
    if (r < 0)
        return r;
    if (turn->request.start_data)
        memcpy(draft->data, turn->request.start_data, turn->served->data_size);
    r = check_data(turn);
    if (r < 0)
        return r;
    draft->head = (struct det_store_head){
        .visit = 1,
        .started_at = turn->now,
        .last_transition_at = turn->now,
        .state = machine->initial,
    };
    step.move = det_decide_move(turn, machine->initial);
    step.move.sequence = 0;
    r = det_hooks_entry(turn, &step.move);
    return r < 0 ? r : set_own_timer(turn, &step);
}

int det_decide_stop(struct det_turn *turn)
{
    struct det_transition stop = { .outcome = DET_OUTCOME_STOP };
    struct step step = { .transition = &stop };

    /* The first stop wins. */
    if (turn->draft->head.is_stopped)
        return 0;
    step.move = det_decide_move(turn, turn->draft->head.state);
    step.visit = turn->draft->head.visit;
    end(turn, turn->request.stop_reason);
    record(turn, &step, DET_OUTCOME_STOP);
    return 0;
}
