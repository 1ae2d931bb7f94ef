/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_order.h - orders to the running daemon: restart, stop, drain. They differ only in words. */
#ifndef DET_CLIENT_TASK_ORDER_H
#define DET_CLIENT_TASK_ORDER_H

#include "client/remote.h"

/* These options stand first, in this order, in the table of each such command. */
enum { ORDER_OPTION_WAIT, ORDER_OPTION_TIMEOUT, ORDER_OPTION_PROJECT, ORDER_OPTIONS };
#define ORDER_OPTION_TABLE                                                             \
    [ORDER_OPTION_WAIT] = { "wait", 'w', NULL, NULL, "wait until it has happened" },   \
    [ORDER_OPTION_TIMEOUT] = { "timeout", 't', "TIME", NULL,                           \
                               "with --wait: give up after this long (default 30s)" }, \
    [ORDER_OPTION_PROJECT] = REMOTE_OPTION_PROJECT

struct order {
    const char *verb;
    const char *doing, *done;         /* of tasks: "stopping", "stopped" */
    const char *all_doing, *all_done; /* sentences for all tasks; NULL: a name is required */
    bool purges;                      /* also empties the queue of a slot */
};

/* Sends the order for each operand, or for all tasks without operands. Returns the first exit code
 * that is not CLI_OK. */
int order_run(struct cli *cli, const struct cli_args *args, const struct order *order);

#endif
