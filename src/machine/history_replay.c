/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* history_replay.c - derives recorded events again, by names; a pure function of definition and
 * record. */
#include <detent/tool/machine.h>

#include "machine/history_replay.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* The transition that the definition derives for an event. */
struct derived {
    unsigned outcome;
    bool is_deferrable;
    const char *to; /* NULL: the event is not accepted */
};

void det_replay_init(struct det_replay *replay, const struct det_machine *machine)
{
    *replay = (struct det_replay){ .machine = machine };
}

void det_replay_begin(struct det_replay *replay, uint64_t sequence, const char *state)
{
    replay->sequence = sequence;
    (void)det_text_copy(replay->state, sizeof replay->state, state);
}

/* Fills the difference and returns false. The text begins with the name of the machine. */
DET_PRINTF(4, 5)
static bool report_drift(
    struct det_replay *replay, const struct det_replay_event *event, struct det_replay_drift *ret,
    const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(replay->text, sizeof replay->text, format, arguments);
    va_end(arguments);
    *ret = (struct det_replay_drift){
        .sequence = event->sequence,
        .event = event->event,
        .from = event->from,
        .recorded = event->to,
        .text = replay->text,
    };
    return false;
}

/* Returns true if the event follows the previous one. */
static bool check_place(
    struct det_replay *replay, const struct det_replay_event *event, struct det_replay_drift *ret)
{
    const struct det_machine *machine = replay->machine;
    const char *initial = machine->states[machine->initial].name;

    if (replay->sequence == 0 && event->sequence == 1 && replay->state[0] &&
        strcmp(event->from, replay->state) != 0)
        return report_drift(
            replay, event, ret, "event 1 was accepted in %s, but the instance began in %s",
            event->from, replay->state);
    if (replay->sequence == 0 && event->sequence == 1 && strcmp(event->from, initial) != 0) {
        (void)report_drift(
            replay, event, ret, "event 1 was accepted in %s, but %s begins in %s", event->from,
            machine->name, initial);
        return false;
    }
    if (replay->sequence == 0)
        return true;
    if (event->sequence != replay->sequence + 1)
        return report_drift(
            replay, event, ret, "event %llu follows event %llu: events between them are missing",
            (unsigned long long)event->sequence, (unsigned long long)replay->sequence);
    if (strcmp(event->from, replay->state) != 0)
        return report_drift(
            replay, event, ret, "event %llu was accepted in %s, but the one before it led to %s",
            (unsigned long long)event->sequence, event->from, replay->state);
    return true;
}

const struct det_transition *det_replay_transition(
    const struct det_machine *machine, unsigned state, unsigned event, unsigned choice)
{
    const struct det_choice *at = NULL;

    det_assert(state < machine->state_count && event < machine->event_count);
    if (choice == 0)
        return det_machine_step(machine, state, event);
    for (unsigned i = 0; i < choice; i++) {
        at = det_machine_choice(machine, state, event, at);
        if (at == NULL)
            return NULL;
    }
    return &at->transition;
}

/* Applies the policy of an event that the state does not accept. */
static unsigned outcome_of_policy(const struct det_event_def *event)
{
    switch ((enum det_unhandled)event->unhandled) {
    case DET_UNHANDLED_ERROR:
        break;
    case DET_UNHANDLED_IGNORE:
        return DET_OUTCOME_IGNORED;
    case DET_UNHANDLED_DEFER:
        return DET_OUTCOME_DEFERRED;
    case DET_UNHANDLED_DEAD_LETTER:
        return DET_OUTCOME_DEAD_LETTER;
    }
    return DET_OUTCOME_UNHANDLED;
}

static const char *outcome_text(unsigned outcome)
{
    static const char *const texts[] = {
        [DET_OUTCOME_UNHANDLED] = "is not accepted",
        [DET_OUTCOME_GOTO] = "leads",
        [DET_OUTCOME_STAY] = "stays",
        [DET_OUTCOME_STOP] = "stops it",
        [DET_OUTCOME_IGNORED] = "is ignored",
        [DET_OUTCOME_DEFERRED] = "is deferred",
        [DET_OUTCOME_DEAD_LETTER] = "is a dead letter",
    };

    return outcome < sizeof texts / sizeof *texts ? texts[outcome] : "is unknown";
}

/* Returns false, after a report, if the definition has no such name or alternative. */
static bool derive_event(
    struct det_replay *replay, const struct det_replay_event *event, struct derived *ret,
    struct det_replay_drift *reterr)
{
    const struct det_machine *machine = replay->machine;
    int state = det_machine_find_state(machine, event->from);
    int kind = det_machine_find_event(machine, event->event);
    const struct det_transition *way;

    if (state < 0)
        return report_drift(
            replay, event, reterr, "%s has no state %s", machine->name, event->from);
    if (kind < 0)
        return report_drift(
            replay, event, reterr, "%s has no event %s", machine->name, event->event);
    way = det_replay_transition(machine, (unsigned)state, (unsigned)kind, event->choice);
    if (way == NULL)
        return report_drift(
            replay, event, reterr, "%s on %s no longer has an alternative %u", event->from,
            event->event, event->choice + 1);
    ret->outcome = way->outcome;
    ret->is_deferrable = machine->events[kind].unhandled == DET_UNHANDLED_DEFER;
    if (way->outcome == DET_OUTCOME_UNHANDLED)
        ret->outcome = outcome_of_policy(&machine->events[kind]);
    ret->to = ret->outcome == DET_OUTCOME_UNHANDLED || ret->outcome == DET_OUTCOME_IGNORED
                  ? NULL
                  : machine->states[way->to].name;
    return true;
}

/* A deferred event becomes a dead letter if it is refused later, whatever the table says. */
static bool is_same(const struct det_replay_event *event, const struct derived *derived)
{
    if (event->outcome == DET_OUTCOME_DEAD_LETTER && derived->is_deferrable)
        return strcmp(event->to, event->from) == 0;
    return event->outcome == derived->outcome && strcmp(event->to, derived->to) == 0;
}

static bool compare_event(
    struct det_replay *replay, const struct det_replay_event *event, struct det_replay_drift *ret)
{
    struct derived derived = { 0 };

    if (event->event == NULL)
        return true;
    if (!derive_event(replay, event, &derived, ret))
        return false;
    if (derived.to != NULL && is_same(event, &derived))
        return true;
    (void)report_drift(
        replay, event, ret, "%s on %s %s%s%s; recorded: it %s%s%s", event->from, event->event,
        outcome_text(derived.outcome), derived.outcome == DET_OUTCOME_GOTO ? " to " : "",
        derived.outcome == DET_OUTCOME_GOTO ? derived.to : "", outcome_text(event->outcome),
        event->outcome == DET_OUTCOME_GOTO ? " to " : "",
        event->outcome == DET_OUTCOME_GOTO ? event->to : "");
    ret->derived = derived.to;
    return false;
}

bool det_replay_step(
    struct det_replay *replay, const struct det_replay_event *event, struct det_replay_drift *ret)
{
    bool is_fine = check_place(replay, event, ret) && compare_event(replay, event, ret);

    replay->sequence = event->sequence;
    replay->steps++;
    (void)det_text_copy(replay->state, sizeof replay->state, event->to);
    return is_fine;
}

bool det_replay_end(
    struct det_replay *replay, uint64_t sequence, const char *state, struct det_replay_drift *ret)
{
    struct det_replay_event end = { .sequence = sequence, .to = state };

    if (det_machine_find_state(replay->machine, state) < 0)
        return report_drift(replay, &end, ret, "%s has no state %s", replay->machine->name, state);
    if (replay->sequence == 0 && sequence == 0 && replay->state[0] &&
        strcmp(state, replay->state) != 0)
        return report_drift(
            replay, &end, ret,
            "the instance is in %s, but it began in %s and has accepted no event", state,
            replay->state);
    if (replay->sequence == 0)
        return true;
    if (sequence != replay->sequence)
        return report_drift(
            replay, &end, ret, "the instance is at event %llu, but the last stored one is %llu",
            (unsigned long long)sequence, (unsigned long long)replay->sequence);
    if (strcmp(state, replay->state) == 0)
        return true;
    (void)report_drift(
        replay, &end, ret, "the instance is in %s, but its last event led to %s", state,
        replay->state);
    ret->derived = NULL;
    return false;
}
