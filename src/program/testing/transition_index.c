/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* transition_index.c - counts, finds and chooses the transitions of a machine. */
#include "testing/transition_index.h"

#include <detent/tool/builder.h>
#include <detent/tool/machine.h>

#include "base/assert.h"
#include "base/memory.h"

static size_t cell_count(const struct det_machine *machine)
{
    return (size_t)machine->state_count * machine->event_count;
}

size_t cli_transitions_count(const struct det_machine *machine)
{
    return cell_count(machine) + machine->choice_count;
}

struct cli_transition cli_transition_at(const struct det_machine *machine, size_t number)
{
    size_t cells = cell_count(machine);
    const struct det_choice *choice;

    det_assert(number < cli_transitions_count(machine));
    if (number < cells)
        return (struct cli_transition){
            .state = (unsigned)(number / machine->event_count),
            .event = (unsigned)(number % machine->event_count),
            .transition = &machine->table[number],
        };
    choice = &machine->choices[number - cells];
    return (struct cli_transition){
        .state = choice->state,
        .event = choice->event,
        .is_else = true,
        .transition = &choice->transition,
    };
}

static const struct det_guard_def *guard_of(const struct det_transition *transition)
{
    return transition->more ? transition->more->guard : NULL;
}

static size_t cell_of(const struct det_machine *machine, const struct det_choice *choice)
{
    return (size_t)choice->state * machine->event_count + choice->event;
}

/* Places the alternatives with a guard, or those without, after the previous ones of their cell. */
static void place_choices(
    const struct det_machine *machine, bool has_guard, size_t *next, size_t *order)
{
    for (uint32_t i = 0; i < machine->choice_count; i++) {
        const struct det_choice *choice = &machine->choices[i];

        if ((guard_of(&choice->transition) != NULL) == has_guard)
            order[next[cell_of(machine, choice)]++] = cell_count(machine) + i;
    }
}

/* `next` is all zero: first it counts the alternatives of each cell, and then it is the place of
 * the next one. */
static void sort_transitions(const struct det_machine *machine, size_t *next, size_t *order)
{
    size_t used = 0;

    for (uint32_t i = 0; i < machine->choice_count; i++)
        next[cell_of(machine, &machine->choices[i])]++;
    for (size_t cell = 0; cell < cell_count(machine); cell++) {
        size_t choices = next[cell];

        order[used++] = cell;
        next[cell] = used;
        used += choices;
    }
    det_assert(used == cli_transitions_count(machine));
    place_choices(machine, true, next, order);
    place_choices(machine, false, next, order);
}

size_t *cli_transitions_in_order(
    const struct det_machine *machine, const struct det_allocator *allocator)
{
    size_t *order = DET_NEW_ARRAY(allocator, cli_transitions_count(machine), size_t);
    size_t *next = DET_NEW_ARRAY(allocator, cell_count(machine), size_t);

    if (order && next) {
        sort_transitions(machine, next, order);
    } else {
        cli_transitions_free(machine, allocator, order);
        order = NULL;
    }
    DET_DELETE_ARRAY(allocator, next, cell_count(machine));
    return order;
}

void cli_transitions_free(
    const struct det_machine *machine, const struct det_allocator *allocator, size_t *order)
{
    DET_DELETE_ARRAY(allocator, order, cli_transitions_count(machine));
}

/* The guards of a machine that was read stand in one list. */
static bool guards_fit(
    const struct det_machine *machine, const struct det_transition *transition, const bool *answers)
{
    const struct det_guard_def *guard = guard_of(transition);

    return !guard || answers[guard - det_machine_guard_at(machine, 0)];
}

size_t cli_transition_chosen(
    const struct det_machine *machine, unsigned state, unsigned event, const bool *answers)
{
    const struct det_transition *first = det_machine_step(machine, state, event);
    const struct det_choice *choice = NULL;

    if (guards_fit(machine, first, answers))
        return (size_t)(first - machine->table);
    do
        choice = det_machine_choice(machine, state, event, choice);
    while (choice && !guards_fit(machine, &choice->transition, answers));
    return choice ? cell_count(machine) + (size_t)(choice - machine->choices)
                  : (size_t)(first - machine->table);
}

bool cli_may_be_refused(const struct det_machine *machine, unsigned state, unsigned event)
{
    const struct det_transition *edge = det_machine_step(machine, state, event);
    const struct det_choice *choice = NULL;

    while (guard_of(edge)) {
        choice = det_machine_choice(machine, state, event, choice);
        if (!choice)
            return true;
        edge = &choice->transition;
    }
    return false;
}
