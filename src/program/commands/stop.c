/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stop.c - `detent stop`: stops tasks, slots, or all of it. */
#include "client/task_order.h"

enum { OPTION_PURGE = ORDER_OPTIONS };

static const struct cli_option option_table[] = {
    ORDER_OPTION_TABLE,
    [OPTION_PURGE] = { "purge", 0, NULL, NULL, "of a slot: empty its queue too" },
    { NULL, 0, NULL, NULL, NULL },
};

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct order order = {
        .verb = "stop",
        .doing = "stopping",
        .done = "stopped",
        .all_doing = "Everything is stopping, and then detent up ends",
        .all_done = "Everything has stopped; detent has ended.",
        .purges = args->values[OPTION_PURGE] != NULL,
    };

    if (order.purges && args->operand_count == 0) {
        cli_complain(cli, "--purge is about a slot: detent stop SLOT --purge");
        return CLI_USAGE;
    }
    return order_run(cli, args, &order);
}

extern const struct cli_command cli_command_stop;
const struct cli_command cli_command_stop = {
    .name = "stop",
    .summary = "stop tasks of a detent that is up, or all of it",
    .about =
        "Stops a task, all members of a group, or what runs in a slot, whose next one starts then\n"
        "unless --purge empties its queue. Each is asked by its stop signal, and forced when its "
        "grace\n"
        "is over. What was stopped stays so until detent restart.\n"
        "\n"
        "Without a name it stops everything, and detent up ends.",
    .operand = { .form = "[NAME...]", .most = CLI_OPERANDS_ANY, .names = "tree" },
    .options = option_table,
    .run = run_command,
};
