/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* shortcut.c - steps a machine past the gateway, and runs an action itself. */
#include <detent/machine.h>

int shortcut(const struct det_machine *machine, void *context)
{
    const struct det_transition *transition = det_machine_step(machine, 0, 0);

    if (machine->table[1].outcome == DET_OUTCOME_UNHANDLED)
        return 0;
    return machine->effects[transition->more->effects[0]].run(0, context, 0, 0);
}
