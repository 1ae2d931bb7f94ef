/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* drain.c - `detent drain`: lets running attempts finish and starts no new ones. */
#include "client/task_order.h"

static const struct cli_option option_table[] = {
    ORDER_OPTION_TABLE,
    { NULL, 0, NULL, NULL, NULL },
};

static int run_command(struct cli *cli, const struct cli_args *args)
{
    static const struct order order = {
        .verb = "drain",
        .doing = "draining",
        .done = "drained",
        .all_doing = "Draining; detent up exits when all attempts have finished",
        .all_done = "All attempts have finished; detent up has exited.",
    };

    return order_run(cli, args, &order);
}

extern const struct cli_command cli_command_drain;
const struct cli_command cli_command_drain = {
    .name = "drain",
    .summary = "let running attempts of tasks finish, then stop the tasks",
    .about = "The running attempt of a task may finish, and no new one starts; a task that waits\n"
             "for its next attempt stops at once. The queue of a slot is emptied, and its\n"
             "running tasks may finish.\n"
             "\n"
             "Without a name everything is drained: no new task is admitted, and detent up exits\n"
             "when the last attempt has finished. A task that runs for ever never finishes: stop\n"
             "it.",
    .operand = { .form = "[NAME...]", .most = CLI_OPERANDS_ANY, .names = "tree" },
    .options = option_table,
    .run = run_command,
};
