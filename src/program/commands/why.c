/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* why.c - `detent why`: why an instance is where it is, and what will move it. */
#include "client/instance_command.h"
#include "inspect/explain.h"

static int run_command(struct cli *cli, const struct cli_args *args)
{
    return instance_command(cli, args, explain_print, explain_line);
}

extern const struct cli_command cli_command_why;
const struct cli_command cli_command_why = {
    .name = "why",
    .summary = "explain why an instance is where it is",
    .about = "Says since when an instance is in its state and which event brought it there, which "
             "events it\n"
             "takes now and which it would defer, which timers and effects will move it and when, "
             "what\n"
             "failed, what is kept for later, who holds its lock, and when nobody serves a store "
             "that\n"
             "has work.",
    .operand = { .form = "ID", .least = 1, .most = 1 },
    .options = instance_command_options,
    .run = run_command,
};
