/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* transition_index.h - all transitions of a machine under one number each: first the cells of the
 * table, which may be empty, then the alternatives in the order of their rows. */
#ifndef DET_TESTING_TRANSITION_INDEX_H
#define DET_TESTING_TRANSITION_INDEX_H

#include <detent/machine.h>

struct cli_transition {
    unsigned state, event;
    bool is_else; /* an alternative, with a guard or without */
    const struct det_transition *transition;
};

size_t cli_transitions_count(const struct det_machine *machine);
struct cli_transition cli_transition_at(const struct det_machine *machine, size_t number);
/* Returns the numbers of all transitions in reading order: after each cell its alternatives in the
 * order in which they are tried. cli_transitions_count() items; NULL: no memory. */
size_t *cli_transitions_in_order(
    const struct det_machine *machine, const struct det_allocator *allocator);
void cli_transitions_free(
    const struct det_machine *machine, const struct det_allocator *allocator, size_t *order);
/* Returns the number of the transition that an event takes in a state, given the answers of the
 * guards by their index; that of the cell if no guard permits it. */
size_t cli_transition_chosen(
    const struct det_machine *machine, unsigned state, unsigned event, const bool *answers);
/* Returns true if all guards of the pair may forbid it, so that the event is refused. */
bool cli_may_be_refused(const struct det_machine *machine, unsigned state, unsigned event);

#endif
