/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/machine.h - reads a machine: alternatives, names, records, timeouts. */
#ifndef DETENT_TOOL_MACHINE_H
#define DETENT_TOOL_MACHINE_H

#include <detent/machine.h>

DET_BEGIN

/* The alternative to try when the guard of `after` refused (NULL: the guard of the pair's cell):
 * the next one in order with a guard, at last the one without; NULL: none, and the event is
 * refused. Searches all choices of the machine: half a nanosecond for each. */
DET_API const struct det_choice *det_machine_choice(
    const struct det_machine *machine, unsigned state, unsigned event,
    const struct det_choice *after);

/* Computes the data after the transition, in place: first the keeps, then the update function.
 * `data` has the size of the machine's data record. DET_ERR_UNBOUND: the update function is only a
 * name. */
DET_API int det_machine_apply(
    const struct det_machine *machine, const struct det_transition *transition, void *data,
    const void *event, struct det_error *reterr) DET_MUST_CHECK;

/* The id of a name on disk, or -1. */
DET_API int det_machine_find_state(const struct det_machine *machine, const char *name);
DET_API int det_machine_find_event(const struct det_machine *machine, const char *name);
DET_API int det_machine_find_effect(const struct det_machine *machine, const char *name);
DET_API int det_machine_find_timer(const struct det_machine *machine, const char *name);
DET_API bool det_machine_group_has(const struct det_group_def *group, unsigned member);
/* "good", "warning", "bad", "neutral"; NULL: no health flag. */
DET_API const char *det_state_health_name(unsigned flags);
/* The payload record of an event; det_empty_record() for an event without payload. Never NULL. */
DET_API const struct det_record *det_machine_payload(
    const struct det_machine *machine, unsigned event);
/* The record of the instance data; det_empty_record() for a machine without data. Never NULL. */
DET_API const struct det_record *det_machine_data(const struct det_machine *machine);
/* The timeout that entering by this transition arms, or NULL. */
DET_API const struct det_timeout *det_machine_timeout(
    const struct det_machine *machine, const struct det_transition *transition);

DET_END
#endif
