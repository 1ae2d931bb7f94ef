/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* restart.c - `detent restart`: restarts tasks at once. */
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
    .summary = "restart tasks of the running daemon",
    .about = "Stops the running attempt of each task and starts the next one at once; earlier\n"
             "failures are forgotten. A task that is in backoff or resting also starts at once.\n"
             "The name of a group stands for all of its members.",
    .operand = { .form = "NAME...", .least = 1, .most = CLI_OPERANDS_ANY, .names = "tree" },
    .options = option_table,
    .run = run_command,
};
