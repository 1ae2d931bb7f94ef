/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machine.c - queries on a machine of any origin: pure functions over its tables. */
#include <detent/machine.h>
#include <detent/tool/machine.h>

#include <string.h>

#include "base/assert.h"

static void assert_transition(
    const struct det_machine *machine, const struct det_transition *transition)
{
    det_assert(transition->outcome <= DET_OUTCOME_STOP);
    det_assert(transition->to < machine->state_count);
}

static const struct det_field *field_at(const struct det_record *record, size_t offset)
{
    for (size_t i = 0; i < record->field_count; i++) {
        if (record->fields[i].offset == offset)
            return &record->fields[i];
    }
    det_assert_failed("a kept field is one of its record", __FILE__, __LINE__);
}

/* Copies the presence or count of the field of a bare keep. */
static void keep_presence(
    const struct det_machine *machine, const struct det_keep *keep, char *data, const char *event)
{
    const struct det_event_def *def = &machine->events[det_event_kind(event)];
    const struct det_field *to = field_at(det_machine_data(machine), keep->data_offset);
    const struct det_field *from;

    if (!(to->flags & (DET_FIELD_OPTIONAL | DET_FIELD_ARRAY)))
        return;
    from = field_at(
        det_machine_payload(machine, det_event_kind(event)),
        keep->event_offset - def->payload_offset);
    det_assert(((to->flags ^ from->flags) & ~(unsigned)DET_FIELD_SENSITIVE) == 0);
    if (to->flags & DET_FIELD_OPTIONAL)
        memcpy(data + to->presence, event + def->payload_offset + from->presence, sizeof(bool));
    if (to->flags & DET_FIELD_ARRAY)
        memcpy(data + to->presence, event + def->payload_offset + from->presence, sizeof(uint32_t));
}

static void keep_field(
    const struct det_machine *machine, const struct det_keep *keep, void *data, const void *event)
{
    memcpy((char *)data + keep->data_offset, (const char *)event + keep->event_offset, keep->size);
    if (keep->is_bare)
        keep_presence(machine, keep, data, event);
}

int det_machine_apply(
    const struct det_machine *machine, const struct det_transition *transition, void *data,
    const void *event, struct det_error *reterr)
{
    const struct det_transition_more *more = transition->more;

    assert_transition(machine, transition);
    if (more == NULL)
        return 0;
    if (more->update != NULL && more->update->run == NULL)
        return det_error_set(
            reterr, DET_ERR_UNBOUND, "the update %s of %s has no function; bind one",
            more->update->name, machine->name);
    for (size_t i = 0; i < more->keep_count; i++)
        keep_field(machine, &more->keeps[i], data, event);
    if (more->update != NULL)
        more->update->run(data, event);
    return 0;
}

static bool is_guarded(const struct det_choice *choice)
{
    return choice->transition.more && choice->transition.more->guard;
}

/* Returns the first alternative of the pair from `at` on, with a guard or without. */
static const struct det_choice *find_choice(
    const struct det_machine *machine, unsigned state, unsigned event, size_t at, bool has_guard)
{
    for (; at < machine->choice_count; at++) {
        const struct det_choice *choice = &machine->choices[at];

        if (choice->state == state && choice->event == event && is_guarded(choice) == has_guard)
            return choice;
    }
    return NULL;
}

const struct det_choice *det_machine_choice(
    const struct det_machine *machine, unsigned state, unsigned event,
    const struct det_choice *after)
{
    const struct det_choice *choice;

    det_assert(!after || (after->state == state && after->event == event));
    if (after && !is_guarded(after))
        return NULL;
    choice = find_choice(
        machine, state, event, after ? (size_t)(after - machine->choices) + 1 : 0, true);
    return choice ? choice : find_choice(machine, state, event, 0, false);
}

int det_machine_find_state(const struct det_machine *machine, const char *name)
{
    for (int i = 0; i < machine->state_count; i++) {
        if (strcmp(machine->states[i].name, name) == 0)
            return i;
    }
    return -1;
}

int det_machine_find_event(const struct det_machine *machine, const char *name)
{
    for (int i = 0; i < machine->event_count; i++) {
        if (strcmp(machine->events[i].name, name) == 0)
            return i;
    }
    return -1;
}

int det_machine_find_effect(const struct det_machine *machine, const char *name)
{
    for (int i = 0; i < machine->effect_count; i++) {
        if (strcmp(machine->effects[i].name, name) == 0)
            return i;
    }
    return -1;
}

int det_machine_find_timer(const struct det_machine *machine, const char *name)
{
    for (int i = 0; i < machine->timer_count; i++) {
        if (strcmp(machine->timers[i].name, name) == 0)
            return i;
    }
    return -1;
}

bool det_machine_group_has(const struct det_group_def *group, unsigned member)
{
    for (size_t i = 0; i < group->member_count; i++) {
        if (group->members[i] == member)
            return true;
    }
    return false;
}

static const struct det_record *record_or_empty(struct det_record_ref ref)
{
    const struct det_record *record = det_record_of(ref);

    return record != NULL ? record : det_empty_record();
}

const struct det_record *det_machine_payload(const struct det_machine *machine, unsigned event)
{
    det_assert(event < machine->event_count);
    return record_or_empty(machine->events[event].payload);
}

const struct det_record *det_machine_data(const struct det_machine *machine)
{
    return record_or_empty(machine->data);
}

const struct det_timeout *det_machine_timeout(
    const struct det_machine *machine, const struct det_transition *transition)
{
    const struct det_timeout *timeout;

    assert_transition(machine, transition);
    if (transition->outcome != DET_OUTCOME_GOTO)
        return NULL;
    if (transition->more != NULL && transition->more->within != NULL)
        return transition->more->within;
    timeout = &machine->states[transition->to].timeout;
    return timeout->after > 0 ? timeout : NULL;
}

const char *det_state_health_name(unsigned flags)
{
    return (flags & DET_STATE_GOOD) != 0      ? "good"
           : (flags & DET_STATE_WARNING) != 0 ? "warning"
           : (flags & DET_STATE_BAD) != 0     ? "bad"
           : (flags & DET_STATE_NEUTRAL) != 0 ? "neutral"
                                              : NULL;
}
