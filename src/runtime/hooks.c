/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* hooks.c - the user code that may refuse a transition: guards, then exit, the transition's own
 * hook, entry. All of them share one deadline. They cannot be interrupted: a late result is
 * refused, and no further function runs. The deadline uses a monotonic clock, which jumps of the
 * wall clock do not affect, or its coarse variant if the deadline is long enough. The clock is read
 * after each guard or hook, and not at all without one. */
#include "runtime/turn.h"

/* Fills in the place of the error; returns the code. */
static int fail_at(struct det_turn *turn, int code, const void *event, const char *action)
{
    const struct det_machine *machine = turn->served->machine;

    if (!turn->error)
        return code;
    turn->error->state = machine->states[turn->draft->head.state].name;
    turn->error->action = action;
    if (event && code != DET_ERR_TIMEOUT)
        turn->error->event = machine->events[det_event_kind(event)].name;
    return code;
}

static int unbound(struct det_turn *turn, const char *what, const char *name)
{
    return det_error_set(
        turn->error, DET_ERR_UNBOUND, "%s %s of %s is only a name; bind it", what, name,
        turn->served->machine->name);
}

static int check_clock(struct det_turn *turn)
{
    struct det_runtime *runtime = turn->runtime;
    det_time waited;

    if (!turn->action || runtime->options.hook_deadline == DET_NEVER)
        return 0;
    waited = det_world_now(runtime->world, runtime->hook_clock) - turn->hooks_began;
    if (waited <= runtime->options.hook_deadline)
        return 0;
    det_error_set(
        turn->error, DET_ERR_TIMEOUT,
        "guards and hooks of %s %s took too long; %s was "
        "the last",
        turn->served->machine->name, turn->resident->id, turn->action);
    if (turn->error)
        turn->error->waited = waited;
    return fail_at(turn, DET_ERR_TIMEOUT, NULL, turn->action);
}

/* The first function starts the time for all; after the deadline none runs. */
static int begin_action(struct det_turn *turn, const char *action)
{
    struct det_runtime *runtime = turn->runtime;
    int r;

    r = check_clock(turn);
    if (r < 0)
        return r;
    if (!turn->action && runtime->options.hook_deadline != DET_NEVER)
        turn->hooks_began = det_world_now(runtime->world, runtime->hook_clock);
    turn->action = action;
    return 0;
}

int det_hooks_check_guard(
    struct det_turn *turn, const struct det_guard_def *guard, const struct det_move *move,
    const void *event)
{
    int r;

    if (!guard->run)
        return unbound(turn, "guard", guard->name);
    r = begin_action(turn, guard->name);
    if (r < 0)
        return r;
    return guard->run(move, det_turn_data(turn), event);
}

int det_hooks_refuse(
    struct det_turn *turn, const struct det_guard_def *guard, bool has_else, const void *event)
{
    turn->counts.refused++;
    det_error_set(
        turn->error, DET_ERR_REFUSED, "%s %s: guard %s refused%s", turn->served->machine->name,
        turn->resident->id, guard->name, has_else ? ", and no alternative fits" : "");
    return fail_at(turn, DET_ERR_REFUSED, event, guard->name);
}

static int run_hook(
    struct det_turn *turn, const struct det_hook_def *hook, const struct det_move *move,
    const void *event)
{
    int r;

    if (!hook)
        return 0;
    if (!hook->run)
        return unbound(turn, "hook", hook->name);
    r = begin_action(turn, hook->name);
    if (r < 0)
        return r;
    r = hook->run(move, det_turn_data(turn), event);
    if (r == 0)
        return 0;
    det_error_set(
        turn->error, DET_ERR_ACTION_FAILED, "%s %s: %s failed with %s", turn->served->machine->name,
        turn->resident->id, hook->name, det_code_text(r).text);
    if (turn->error)
        turn->error->cause = r;
    return fail_at(turn, DET_ERR_ACTION_FAILED, event, hook->name);
}

int det_hooks_act(
    struct det_turn *turn, const struct det_transition *transition, const struct det_move *move,
    const void *event)
{
    const struct det_transition_more *more = transition->more;
    const struct det_state_def *states = turn->served->machine->states;
    int r = 0;

    if (transition->outcome != DET_OUTCOME_STAY)
        r = run_hook(turn, states[move->from].exit, move, event);
    if (r == 0 && more)
        r = run_hook(turn, more->hook, move, event);
    if (r == 0 && transition->outcome == DET_OUTCOME_GOTO)
        r = run_hook(turn, states[move->to].entry, move, event);
    return r < 0 ? r : check_clock(turn);
}

int det_hooks_run(
    struct det_turn *turn, const struct det_transition *transition, const struct det_move *move,
    const void *event)
{
    const struct det_guard_def *guard = transition->more ? transition->more->guard : NULL;
    int r = guard ? det_hooks_check_guard(turn, guard, move, event) : 1;

    if (r == 0)
        return det_hooks_refuse(turn, guard, false, event);
    return r < 0 ? r : det_hooks_act(turn, transition, move, event);
}

int det_hooks_entry(struct det_turn *turn, const struct det_move *move)
{
    int r;

    r = run_hook(turn, turn->served->machine->states[move->to].entry, move, NULL);
    return r < 0 ? r : check_clock(turn);
}
