/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_command.h - a command about one instance of a store. */
#ifndef DET_CLIENT_INSTANCE_COMMAND_H
#define DET_CLIENT_INSTANCE_COMMAND_H

#include "inspect/instance_summary.h"

/* Runs a command about the instance of its first operand: prints an object, or calls `print`.
 * Returns an exit code. */
extern const struct cli_option instance_command_options[];
typedef int instance_print_fn(struct cli *cli, const struct instance *instance);
DET_MUST_CHECK int instance_command(
    struct cli *cli, const struct cli_args *args, instance_print_fn *print, facts_line_fn *more);

#endif
