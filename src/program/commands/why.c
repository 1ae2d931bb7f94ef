/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* why.c - `detent why`: why an instance is in its state, and what can move it on. */
#include "client/instance_command.h"
#include "inspect/explain.h"

static int run_command(struct cli *cli, const struct cli_args *args)
{
    return instance_command(cli, args, explain_print, explain_line);
}

extern const struct cli_command cli_command_why;
const struct cli_command cli_command_why = {
    .name = "why",
    .summary = "explain why an instance is in its state",
    .about = "Prints since when an instance is in its state and which event led there, which\n"
             "events the state handles or defers, which timers and effects are due and when,\n"
             "what has failed, which events are deferred, who holds its lock, and whether work\n"
             "is due but no process serves the store.",
    .operand = { .form = "ID", .least = 1, .most = 1 },
    .options = instance_command_options,
    .run = run_command,
};
