/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* drain.c - `detent drain`: lets what runs come to its own end, and nothing follow. */
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
        .all_doing = "Nothing more is admitted; detent up ends when all have come to their end",
        .all_done = "All have come to their end; detent has ended.",
    };

    return order_run(cli, args, &order);
}

extern const struct cli_command cli_command_drain;
const struct cli_command cli_command_drain = {
    .name = "drain",
    .summary = "let running attempts of tasks finish, then stop the tasks",
    .about =
        "The attempt of a task that runs may end by itself, and none follows; one that waits ends "
        "at\n"
        "once. Of a slot the queue is emptied, and what runs in it may end.\n"
        "\n"
        "Without a name it is about everything: nothing more is admitted, and detent up ends when "
        "the\n"
        "last one has. A task that is meant to run for ever never ends by itself: stop it.",
    .operand = { .form = "[NAME...]", .most = CLI_OPERANDS_ANY, .names = "tree" },
    .options = option_table,
    .run = run_command,
};
