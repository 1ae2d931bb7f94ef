/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compare_transitions.c - compares what states of both definitions do on events of both, and
 * whether instances in such a state can still progress. */
#include <detent/tool/machine.h>
#include <string.h>

#include "machine/compare.h"

static int new_id(const struct det_comparison *comparison, enum det_name_kind kind, size_t id)
{
    return comparison->maps[kind][id];
}

/* Describes all alternatives of a pair. */
static const char *describe_choices(
    struct det_comparison *comparison, struct det_writer *writer, unsigned state, unsigned event)
{
    const struct det_machine *machine = writer->machine;
    const struct det_choice *choice = NULL;

    det_compare_clear(comparison, writer);
    det_write_transition(writer, det_machine_step(machine, state, event));
    while ((choice = det_machine_choice(machine, state, event, choice)) != NULL) {
        det_buffer_append_text(&writer->text, "; else it ");
        det_write_transition(writer, &choice->transition);
    }
    return det_buffer_text(&writer->text);
}

static bool is_taken(const struct det_machine *machine, int state, int event)
{
    return det_machine_step(machine, (unsigned)state, (unsigned)event)->outcome !=
           DET_OUTCOME_UNHANDLED;
}

static void compare_pair(struct det_comparison *comparison, unsigned state, unsigned event)
{
    int to_state = new_id(comparison, DET_NAME_STATE, state);
    int to_event = new_id(comparison, DET_NAME_EVENT, event);
    const char *old = describe_choices(comparison, &comparison->of_old, state, event);
    const char *new =
        describe_choices(comparison, &comparison->of_new, (unsigned)to_state, (unsigned)to_event);
    struct det_change change = {
        .kind = DET_CHANGE_CHANGED,
        .subject = "transition",
        .name = comparison->old->states[state].name,
        .event = comparison->old->events[event].name,
    };

    if (strcmp(old, new) == 0)
        return;
    if (!is_taken(comparison->old, (int)state, (int)event)) {
        change.kind = DET_CHANGE_ADDED;
        det_compare_report(
            comparison, change, "%s now accepts %s: it %s", change.name, change.event, new);
    } else if (!is_taken(comparison->new, to_state, to_event)) {
        change.kind = DET_CHANGE_REMOVED;
        det_compare_report(
            comparison, change, "%s no longer accepts %s (before: it %s)", change.name,
            change.event, old);
    } else {
        det_compare_report(
            comparison, change, "%s on %s: it %s (before: it %s)", change.name, change.event, new,
            old);
    }
}

static const char *hook_name(const struct det_hook_def *hook)
{
    return hook != NULL ? hook->name : "none";
}

static void compare_hook(
    struct det_comparison *comparison, const char *state, const char *what,
    const struct det_hook_def *const hooks[2])
{
    const char *old = hook_name(hooks[0]), *new = hook_name(hooks[1]);

    if (strcmp(old, new) != 0)
        det_compare_report(
            comparison, (struct det_change){ DET_CHANGE_CHANGED, "state", state, NULL, NULL },
            "state %s: its %s hook is %s (before: %s)", state, what, new, old);
}

/* Writes "MINUTES(5), late", or "none". */
static const char *describe_timeout(
    struct det_comparison *comparison, struct det_writer *writer, const struct det_timeout *timeout)
{
    det_compare_clear(comparison, writer);
    if (timeout->after > 0)
        det_write_timeout(writer, timeout);
    else
        det_buffer_append_text(&writer->text, "none");
    return det_buffer_text(&writer->text);
}

static const char *health_of(unsigned flags)
{
    const char *name = det_state_health_name(flags);

    return name ? name : "unspecified";
}

static void compare_state(struct det_comparison *comparison, size_t old_state, size_t new_state)
{
    const struct det_state_def *old = &comparison->old->states[old_state];
    const struct det_state_def *new = &comparison->new->states[new_state];
    const char *before = describe_timeout(comparison, &comparison->of_old, &old->timeout);
    const char *after = describe_timeout(comparison, &comparison->of_new, &new->timeout);
    struct det_change change = { DET_CHANGE_CHANGED, "state", old->name, NULL, NULL };

    if (((old->flags ^ new->flags) & DET_STATE_FINAL) != 0)
        det_compare_report(
            comparison, change, "state %s is %s final", old->name,
            (new->flags &DET_STATE_FINAL) != 0 ? "now" : "no longer");
    if (((old->flags ^ new->flags) & DET_STATE_HEALTH) != 0)
        det_compare_report(
            comparison, change, "state %s: its health is %s (before: %s)", old->name,
            health_of(new->flags), health_of(old->flags));
    if (strcmp(before, after) != 0)
        det_compare_report(
            comparison, change, "state %s: its timeout is %s (before: %s)", old->name, after,
            before);
    compare_hook(
        comparison, old->name, "entry", (const struct det_hook_def *[]){ old->entry, new->entry });
    compare_hook(
        comparison, old->name, "exit", (const struct det_hook_def *[]){ old->exit, new->exit });
}

void det_compare_transitions(struct det_comparison *comparison)
{
    const struct det_machine *old = comparison->old;

    for (unsigned state = 0; state < old->state_count; state++) {
        int to_state = new_id(comparison, DET_NAME_STATE, state);

        if (to_state < 0)
            continue;
        compare_state(comparison, state, (size_t)to_state);
        for (unsigned event = 0; event < old->event_count; event++) {
            if (new_id(comparison, DET_NAME_EVENT, event) >= 0)
                compare_pair(comparison, state, event);
        }
    }
}

static bool leaves_state(const struct det_transition *transition, size_t state)
{
    return transition->outcome == DET_OUTCOME_STOP ||
           (transition->outcome == DET_OUTCOME_GOTO && transition->to != state);
}

static bool has_exit(const struct det_machine *machine, size_t state)
{
    for (size_t i = 0; i < machine->event_count; i++) {
        if (leaves_state(det_machine_step(machine, (unsigned)state, (unsigned)i), state))
            return true;
    }
    for (size_t i = 0; i < machine->choice_count; i++) {
        if (machine->choices[i].state == state &&
            leaves_state(&machine->choices[i].transition, state))
            return true;
    }
    return false;
}

/* A timeout that the old definition armed in a state fires there under the new one. */
static void check_timeout(
    struct det_comparison *comparison, size_t state, const struct det_timeout *timeout)
{
    int to_state = new_id(comparison, DET_NAME_STATE, state);
    int to_event = new_id(comparison, DET_NAME_EVENT, timeout->event);
    bool *is_warned = &comparison->is_warned[state * comparison->old->event_count + timeout->event];

    if (to_state < 0 || to_event < 0 || is_taken(comparison->new, to_state, to_event) || *is_warned)
        return;
    *is_warned = true;
    if (comparison->new->events[to_event].unhandled == DET_UNHANDLED_ERROR)
        det_compare_warn(
            comparison, DET_HAZARD_STATE, comparison->old->states[state].name,
            "no longer accepts %s, which an armed timeout may send there",
            comparison->old->events[timeout->event].name);
}

static void check_within(struct det_comparison *comparison, const struct det_transition *transition)
{
    const struct det_timeout *timeout = det_machine_timeout(comparison->old, transition);

    if (timeout != NULL && transition->more != NULL && timeout == transition->more->within)
        check_timeout(comparison, transition->to, timeout);
}

static void check_timeouts(struct det_comparison *comparison)
{
    const struct det_machine *old = comparison->old;

    for (size_t i = 0; i < old->state_count; i++) {
        if (old->states[i].timeout.after > 0)
            check_timeout(comparison, i, &old->states[i].timeout);
    }
    for (size_t i = 0; i < (size_t)old->state_count * old->event_count; i++)
        check_within(comparison, &old->table[i]);
    for (size_t i = 0; i < old->choice_count; i++)
        check_within(comparison, &old->choices[i].transition);
}

void det_compare_transition_hazards(struct det_comparison *comparison)
{
    const struct det_machine *old = comparison->old, *new = comparison->new;

    for (size_t i = 0; i < old->state_count; i++) {
        int to = new_id(comparison, DET_NAME_STATE, i);

        if (to >= 0 && (new->states[to].flags &DET_STATE_FINAL) == 0 && has_exit(old, i) &&
            !has_exit(new, (size_t)to))
            det_compare_warn(
                comparison, DET_HAZARD_STATE, old->states[i].name, "no longer has an exit");
    }
    check_timeouts(comparison);
}
