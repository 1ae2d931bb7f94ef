/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gateway.c - the one file that may step the machine of a component. */
#include <detent/machine.h>

int gateway(const struct det_machine *machine)
{
    return det_machine_step(machine, 0, 0)->outcome;
}
