/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stop.c - `detent stop`: stops tasks, slots, or the whole daemon. */
#include "client/task_order.h"

enum { OPTION_PURGE = ORDER_OPTIONS };

static const struct cli_option option_table[] = {
    ORDER_OPTION_TABLE,
    [OPTION_PURGE] = { "purge", 0, NULL, NULL, "also empty the queue of the slot" },
    { NULL, 0, NULL, NULL, NULL },
};

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct order order = {
        .verb = "stop",
        .doing = "stopping",
        .done = "stopped",
        .all_doing = "Stopping everything, then detent up exits",
        .all_done = "Everything has stopped; detent up has exited.",
        .purges = args->values[OPTION_PURGE] != NULL,
    };

    if (order.purges && args->operand_count == 0) {
        cli_report_error(cli, "--purge needs a slot: detent stop SLOT --purge");
        return CLI_USAGE;
    }
    return order_run(cli, args, &order);
}

extern const struct cli_command cli_command_stop;
const struct cli_command cli_command_stop = {
    .name = "stop",
    .summary = "stop tasks of the running daemon, or the whole daemon",
    .about = "Stops a task, all members of a group, or the running tasks of a slot, whose queue\n"
             "then continues unless --purge empties it. Each task receives its stop signal and\n"
             "is killed when its grace is over. A stopped task stays stopped until detent\n"
             "restart.\n"
             "\n"
             "Without a name it stops everything, and detent up exits.",
    .operand = { .form = "[NAME...]", .most = CLI_OPERANDS_ANY, .names = "tree" },
    .options = option_table,
    .run = run_command,
};
