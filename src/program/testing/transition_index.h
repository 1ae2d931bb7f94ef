/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* transition_index.h - all transitions of a machine under one number each: first the cells of the
 * table, which may say nothing, then the alternatives in the order of their rows. */
#ifndef DET_TESTING_TRANSITION_INDEX_H
#define DET_TESTING_TRANSITION_INDEX_H

#include <detent/machine.h>

struct cli_way {
    unsigned state, event;
    bool is_else; /* an alternative, with a guard or without */
    const struct det_transition *transition;
};

size_t cli_ways_count(const struct det_machine *machine);
struct cli_way cli_way_at(const struct det_machine *machine, size_t number);
/* The numbers of all ways as people read them: behind each cell its alternatives in the order in
 * which they are tried. Of cli_ways_count() items; NULL: no memory. */
size_t *cli_ways_in_order(const struct det_machine *machine, const struct det_allocator *allocator);
void cli_ways_free(
    const struct det_machine *machine, const struct det_allocator *allocator, size_t *order);
/* The number of the way that an event takes in a state of a machine that was read, when its guards
 * answer like this, by their number; of the cell when none says yes. */
size_t cli_way_chosen(
    const struct det_machine *machine, unsigned state, unsigned event, const bool *answers);
/* Whether all guards of the pair may say no, so that the event is refused. */
bool cli_may_be_refused(const struct det_machine *machine, unsigned state, unsigned event);

#endif
