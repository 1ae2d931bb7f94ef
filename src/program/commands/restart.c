/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* restart.c - `detent restart`: begins tasks anew, at once. */
#include "client/task_order.h"

static const struct cli_option option_table[] = {
    ORDER_OPTION_TABLE,
    { NULL, 0, NULL, NULL, NULL },
};

static int run_command(struct cli *cli, const struct cli_args *args)
{
    static const struct order order = { .verb = "restart",
                                        .doing = "restarting",
                                        .done = "restarted" };

    return order_run(cli, args, &order);
}

extern const struct cli_command cli_command_restart;
const struct cli_command cli_command_restart = {
    .name = "restart",
    .summary = "restart tasks of a detent that is up",
    .about =
        "Ends what runs of each task, and begins its next attempt at once; earlier failures are\n"
        "forgotten. One that is in backoff or rests begins at once too. The name of a group stands "
        "for\n"
        "all of its members.",
    .operand = { .form = "NAME...", .least = 1, .most = CLI_OPERANDS_ANY, .names = "tree" },
    .options = option_table,
    .run = run_command,
};
