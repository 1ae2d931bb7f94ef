/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table_print.h - the events that each state accepts, and the policies for the others.
 *
 *             push  pull   lend
 *     closed  ->    .      defer
 *     open    .     ->+1   stay
 *
 *     -> goes to a state, stay changes no state, +1 counts ELSE rows, . is an error,
 *     defer waits for another state
 *
 * On a terminal that is too narrow the same is a list by state:
 *
 *     closed
 *         ->     push
 *         .      pull
 *         defer  lend */
#ifndef DET_TESTING_TABLE_PRINT_H
#define DET_TESTING_TABLE_PRINT_H

#include <detent/machine.h>

#include "terminal/terminal.h"

/* Prints it; returns an exit code. */
int cli_matrix_print(struct cli *cli, const struct det_machine *machine);

#endif
