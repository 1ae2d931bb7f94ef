/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gateway.c - the run loop: the only code that steps the machine of a component and runs its
 * functions.
 *
 *     one run:   settle <--------------------------------------+
 *                  | a failure waits: the failure event         |
 *                  | events that actions produced, in order     |
 *                next                                           |
 *                  | abort, budget used          -> over        |
 *                  | timeout, external event     -> step -------+
 *                  | dispatch function           -> step, park, again, end
 *
 *     an offer:  the event, and its settling; the rest belongs to a separate run
 *
 * Invariants
 *   1. A component is in at most one run, and this file does not recurse: the same loop takes the
 *      consequences of a step from the frame. Only a function that offers an event to another
 *      component makes a second frame.
 *   2. While the failure event is handled (its step, its actions and the events that they
 *      produced), another failure ends the component; after it, a failure is a new one.
 *   3. If an action of a step fails, the events that earlier actions of the step produced are
 *      dropped: the failure event is next, in the current state.
 *   4. If an external event that caused a step is repeated, and the new state has no row for it,
 *      the repetition is counted and ignored until another event causes a step or the component
 *      fails. */
#include <detent/tool/machine.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/unset.h"
#include "supervise/handle.h"

#define PLACES (DET_COMPONENT_PRODUCED_MAX + 1)

static const char *state_name(const struct det_frame *frame)
{
    return frame->def->machine->states[frame->component->internal.state].name;
}

/* Detects an event that was not written. */
static void unset_kind(void *event)
{
    const unsigned kind = UINT_MAX;

    memcpy(event, &kind, sizeof kind);
}

/* Functions return 0 or a negative error; other values are an error, too. */
static int run_hook(struct det_frame *frame, const struct det_hook_def *hook, const void *event)
{
    int r;

    frame->noted = 0;
    r = hook->run(NULL, frame->context, event);
    return r > 0 ? DET_ERR_INVALID : r;
}

/* The guard, exit hook and CALL hook precede the move: if they fail, nothing has happened. */
static bool leave(
    struct det_frame *frame, const struct det_transition *transition, const void *event)
{
    const struct det_hook_def *exit =
        transition->outcome == DET_OUTCOME_STAY
            ? NULL
            : frame->def->machine->states[frame->component->internal.state].exit;
    const struct det_hook_def *hook = transition->more ? transition->more->hook : NULL;
    int r;

    r = exit ? run_hook(frame, exit, event) : 0;
    if (r < 0) {
        det_frame_fail(frame, DET_FAILURE_HOOK, r, "exit hook of %s", state_name(frame));
        return false;
    }
    r = hook ? run_hook(frame, hook, event) : 0;
    if (r < 0) {
        det_frame_fail(
            frame, DET_FAILURE_HOOK, r, "hook %s in state %s", hook->name, state_name(frame));
        return false;
    }
    return true;
}

static int arm_timeout(struct det_frame *frame, const struct det_timeout *timeout)
{
    struct det_component *component = frame->component;
    int r;

    if (!timeout && component->internal.timeout_at == DET_NEVER)
        return 0;
    component->internal.timeout_at = DET_NEVER;
    if (timeout) {
        component->internal.timeout_at =
            det_add_time(det_loop_now(frame->executor->loop), timeout->after);
        component->internal.timeout_event = timeout->event;
    }
    r = det_executor_arm(component);
    if (r < 0)
        component->internal.timeout_at = DET_NEVER;
    return r;
}

/* The move itself; then the entry hook, then the timeout, which is armed even if the hook failed,
 * since the machine may stay in the state. */
static bool enter(
    struct det_frame *frame, const struct det_transition *transition, const void *event)
{
    const struct det_machine *machine = frame->def->machine;
    const struct det_hook_def *entry = machine->states[transition->to].entry;
    int r, timer;

    frame->component->internal.state = transition->to;
    r = entry ? run_hook(frame, entry, event) : 0;
    timer = arm_timeout(frame, det_machine_timeout(machine, transition));
    if (r < 0)
        det_frame_fail(frame, DET_FAILURE_HOOK, r, "entry hook of %s", state_name(frame));
    else if (timer < 0)
        det_frame_fail(frame, DET_FAILURE_HOOK, timer, "timeout of %s", state_name(frame));
    return r == 0 && timer == 0;
}

static bool may_produce(const struct det_effect_def *action, unsigned kind)
{
    for (unsigned i = 0; i < action->produces_count; i++) {
        if (action->produces[i] == kind)
            return true;
    }
    return false;
}

static int keep_produced(struct det_frame *frame, const struct det_effect_def *action, void *place)
{
    if (!may_produce(action, det_event_kind(place)))
        return DET_ERR_INVALID;
    if (frame->produced_count == DET_COMPONENT_PRODUCED_MAX)
        return DET_ERR_LIMIT;
    frame->produced_count++;
    return 0;
}

static void *produced_place(struct det_frame *frame, unsigned number)
{
    unsigned place = frame->produced_first + number;

    return frame->produced[place < PLACES ? place : place - PLACES];
}

static void act(struct det_frame *frame, const struct det_transition *transition, const void *event)
{
    const struct det_transition_more *more = transition->more;

    for (unsigned i = 0; more && i < more->effect_count; i++) {
        const struct det_effect_def *action = &frame->def->machine->effects[more->effects[i]];
        void *place = produced_place(frame, frame->produced_count);
        int r;

        frame->noted = 0;
        unset_kind(place);
        r = action->run(NULL, frame->context, event, place);
        if (r == DET_EFFECT_PRODUCED)
            r = keep_produced(frame, action, place);
        if (r != 0) {
            det_frame_fail(
                frame, DET_FAILURE_ACTION, r > 0 ? DET_ERR_INVALID : r, "action %s in state %s",
                action->name, state_name(frame));
            return;
        }
    }
}

_Noreturn static void fail_invariant(const struct det_frame *frame)
{
    char text[DET_ERROR_TEXT_MAX];

    snprintf(
        text, sizeof text, "the invariant of %s in state %s", frame->def->machine->name,
        state_name(frame));
    det_assert_failed(text, __FILE__, __LINE__);
}

static void assert_sound(const struct det_frame *frame)
{
    if (frame->def->invariant && !frame->def->invariant(frame->context))
        fail_invariant(frame);
}

/* Reports a step to observers, even if its last action failed; watchers see it later in that
 * case. */
static void observe(struct det_frame *frame, unsigned from, int event)
{
    const struct det_executor_options *options = &frame->executor->options;
    const struct det_component *component = frame->component;

    if (options->observe)
        options->observe(options->observer, component, from, component->internal.state, event);
    if (frame->is_pending || frame->over == DET_OVER_ENDED)
        return;
    assert_sound(frame);
    det_control_publish(frame->component);
    if (frame->def->machine->states[component->internal.state].flags & DET_STATE_FINAL)
        frame->over = DET_OVER_ENDED;
}

static void take_event(
    struct det_frame *frame, const struct det_transition *transition, const void *event)
{
    unsigned from = frame->component->internal.state;

    if (!leave(frame, transition, event))
        return;
    frame->executor->counts.steps++;
    if (transition->outcome != DET_OUTCOME_GOTO || enter(frame, transition, event))
        act(frame, transition, event);
    observe(frame, from, (int)det_event_kind(event));
    if (transition->outcome == DET_OUTCOME_STOP && !frame->is_pending)
        frame->over = DET_OVER_ENDED;
}

static bool is_allowed(
    const struct det_frame *frame, const struct det_transition *transition, const void *event)
{
    const struct det_guard_def *guard = transition->more ? transition->more->guard : NULL;

    return !guard || guard->run(NULL, frame->context, event);
}

/* DET_ERR_UNHANDLED and DET_ERR_REFUSED: nothing has happened. 0: accepted; later failures wait in
 * the frame. */
static int step(struct det_frame *frame, const void *event)
{
    const struct det_machine *machine = frame->def->machine;
    unsigned state = frame->component->internal.state, kind = det_event_kind(event);
    const struct det_transition *transition = det_machine_step(machine, state, kind);
    const struct det_choice *choice = NULL;

    if (transition->outcome == DET_OUTCOME_UNHANDLED)
        return DET_ERR_UNHANDLED;
    while (!is_allowed(frame, transition, event)) {
        choice = det_machine_choice(machine, state, kind, choice);
        if (!choice)
            return DET_ERR_REFUSED;
        transition = &choice->transition;
    }
    take_event(frame, transition, event);
    return 0;
}

/* Applies the event's policy if the state does not accept it. */
static int receive(struct det_frame *frame, const void *event)
{
    int r = step(frame, event);

    if (r == DET_ERR_UNHANDLED &&
        frame->def->machine->events[det_event_kind(event)].unhandled == DET_UNHANDLED_IGNORE)
        return 0;
    return r;
}

/* An event that the machine must accept. */
static void give_event(struct det_frame *frame, const void *event)
{
    int r;

    r = receive(frame, event);
    if (r < 0)
        det_frame_fail(
            frame, DET_FAILURE_UNHANDLED, r, "event %s in state %s",
            frame->def->machine->events[det_event_kind(event)].name, state_name(frame));
}

static void write_event(struct det_frame *frame, unsigned kind)
{
    memset(frame->event, 0, frame->def->machine->event_size);
    memcpy(frame->event, &kind, sizeof kind);
}

static void report_failure(struct det_frame *frame)
{
    int r;

    frame->is_pending = false;
    frame->is_failing = true;
    frame->component->internal.request = UINT16_MAX;
    frame->produced_count = 0;
    write_event(frame, frame->def->failure);
    r = step(frame, frame->event);
    if (r < 0)
        det_frame_last_resort(frame, r);
}

static void give_produced(struct det_frame *frame)
{
    memcpy(frame->event, produced_place(frame, 0), frame->def->machine->event_size);
    frame->produced_first = (frame->produced_first + 1) % PLACES;
    frame->produced_count--;
    if (++frame->chain > DET_COMPONENT_CHAIN_MAX)
        det_frame_fail(
            frame, DET_FAILURE_ACTION, DET_ERR_LIMIT, "events that actions produce in %s",
            state_name(frame));
    else
        give_event(frame, frame->event);
}

/* Handles all consequences of the last event. */
static void settle(struct det_frame *frame)
{
    while (frame->over == DET_OVER_NOT && (frame->is_pending || frame->produced_count)) {
        if (frame->is_pending)
            report_failure(frame);
        else
            give_produced(frame);
    }
    frame->is_failing = false;
    frame->chain = 0;
}

static void broken_answer(struct det_frame *frame, int code)
{
    det_frame_fail(frame, DET_FAILURE_DISPATCH, code, "dispatch of %s", state_name(frame));
}

static void dispatch(struct det_frame *frame)
{
    struct det_component *component = frame->component;
    int r;

    component->internal.wake_wanted = false;
    if (component->internal.wake_at != DET_NEVER) {
        component->internal.wake_at = DET_NEVER;
        component->internal.timer_stale = true;
    }
    frame->noted = 0;
    unset_kind(frame->event);
    r = frame->def->dispatch[component->internal.state].run(frame->context, frame->event);
    if (r == DET_DIRECTIVE_CONTINUE)
        frame->over = DET_OVER_PARKED;
    else if (r == DET_DIRECTIVE_AGAIN)
        frame->over = DET_OVER_AGAIN;
    else if (r == DET_DIRECTIVE_TERMINATE)
        frame->over = DET_OVER_ENDED;
    else if (
        r == DET_DIRECTIVE_TRANSITION &&
        det_event_kind(frame->event) < frame->def->machine->event_count)
        give_event(frame, frame->event);
    else
        broken_answer(frame, r < 0 ? r : DET_ERR_INVALID);
}

static bool timeout_is_due(const struct det_frame *frame)
{
    det_time at = frame->component->internal.timeout_at;

    return at != DET_NEVER && at <= det_loop_now(frame->executor->loop);
}

static void give_timeout(struct det_frame *frame)
{
    struct det_component *component = frame->component;

    component->internal.timeout_at = DET_NEVER;
    component->internal.timer_stale = true;
    write_event(frame, component->internal.timeout_event);
    give_event(frame, frame->event);
}

/* True if the external event that caused the last step is repeated without a row for it: a second
 * stop. */
static bool is_repeat(const struct det_frame *frame, unsigned kind)
{
    const struct det_component *component = frame->component;

    return kind == component->internal.request &&
           det_machine_step(frame->def->machine, component->internal.state, kind)->outcome ==
               DET_OUTCOME_UNHANDLED;
}

static void give_request(struct det_frame *frame)
{
    unsigned from = frame->component->internal.state, kind = det_event_kind(frame->event);

    if (is_repeat(frame, kind)) {
        frame->executor->counts.repeats++;
        return;
    }
    give_event(frame, frame->event);
    if (frame->component->internal.state != from)
        frame->component->internal.request = (uint16_t)kind;
}

static void give_control(struct det_frame *frame)
{
    switch (det_control_next(frame->component, frame->event)) {
    case DET_CONTROL_EVENT:
        give_request(frame);
        break;
    case DET_CONTROL_CLOSED:
        det_frame_fail(
            frame, DET_FAILURE_CLOSED, DET_ERR_CLOSED, "control channel in %s", state_name(frame));
        break;
    case DET_CONTROL_PARK:
        frame->over = DET_OVER_PARKED;
        break;
    case DET_CONTROL_NONE:
        dispatch(frame);
        break;
    }
}

static void abort_it(struct det_frame *frame)
{
    frame->is_failing = false;
    det_frame_fail(
        frame, DET_FAILURE_ABORTED, DET_ERR_CANCELLED, "aborted in %s", state_name(frame));
    frame->failure.is_last_resort = true;
    frame->over = DET_OVER_ENDED;
}

static void next(struct det_frame *frame)
{
    if (frame->component->internal.end_wanted)
        abort_it(frame);
    else if (frame->rounds++ >= frame->executor->options.budget)
        frame->over = DET_OVER_AGAIN;
    else if (timeout_is_due(frame))
        give_timeout(frame);
    else
        give_control(frame);
}

/* The entry hook of the initial state, before anything else. */
static void start(struct det_frame *frame)
{
    const struct det_hook_def *entry =
        frame->def->machine->states[frame->component->internal.state].entry;
    int r;

    frame->component->internal.is_started = true;
    r = entry ? run_hook(frame, entry, NULL) : 0;
    if (r < 0)
        det_frame_fail(frame, DET_FAILURE_HOOK, r, "entry hook of %s", state_name(frame));
    observe(frame, frame->component->internal.state, -1);
    settle(frame);
}

/* During an offer the dispatch function is not called: it has its own turn. */
static bool has_more(const struct det_frame *frame, bool was_ready)
{
    const struct det_component *component = frame->component;

    return was_ready || component->internal.has_handle || component->internal.wake_wanted ||
           component->internal.end_wanted || frame->def->dispatch[component->internal.state].run;
}

static int run_it(struct det_component *component, const void *offered, bool is_dispatched)
{
    DET_UNSET struct det_frame frame;
    bool was_ready = component->internal.phase == DET_PHASE_READY;
    int r;

    det_frame_open(&frame, component);
    frame.executor->counts.turns++;
    if (!component->internal.is_started)
        start(&frame);
    if (offered) {
        r = frame.over == DET_OVER_NOT ? receive(&frame, offered) : DET_ERR_CLOSED;
        if (r < 0) {
            if (frame.over == DET_OVER_NOT)
                frame.over = was_ready ? DET_OVER_AGAIN : DET_OVER_PARKED;
            (void)det_frame_close(&frame);
            return r;
        }
    }
    settle(&frame);
    if (!is_dispatched && frame.over == DET_OVER_NOT)
        frame.over = has_more(&frame, was_ready) ? DET_OVER_AGAIN : DET_OVER_PARKED;
    for (; frame.over == DET_OVER_NOT; settle(&frame))
        next(&frame);
    return det_frame_close(&frame);
}

int det_gateway_run(struct det_component *component, const void *offered)
{
    return run_it(component, offered, !offered);
}

int det_gateway_deliver(struct det_component *component, const void *event)
{
    return run_it(component, event, true);
}

void det_gateway_abort(struct det_component *component)
{
    DET_UNSET struct det_frame frame;

    det_frame_open(&frame, component);
    abort_it(&frame);
    (void)det_frame_close(&frame);
}
