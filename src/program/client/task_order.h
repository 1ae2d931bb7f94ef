/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_order.h - orders to a `detent up` that runs: restart, stop, drain. They differ in a few
 * words. */
#ifndef DET_CLIENT_TASK_ORDER_H
#define DET_CLIENT_TASK_ORDER_H

#include "client/remote.h"

/* These options stand first, in this order, in the table of each such command. */
enum { ORDER_OPTION_WAIT, ORDER_OPTION_TIMEOUT, ORDER_OPTION_PROJECT, ORDER_OPTIONS };
#define ORDER_OPTION_TABLE                                                                      \
    [ORDER_OPTION_WAIT] = { "wait", 'w', NULL, NULL, "come back when it has happened" },        \
    [ORDER_OPTION_TIMEOUT] = { "timeout", 't', "TIME", NULL, "wait no longer than this: 30s" }, \
    [ORDER_OPTION_PROJECT] = REMOTE_OPTION_PROJECT

struct order {
    const char *verb;
    const char *doing, *done; /* "stopping", "stopped": of tasks */
    const char *all_doing,
        *all_done; /* a sentence, when it is about everything; NULL: it may not */
    bool purges;   /* the queue of a slot too */
};

/* Gives it for each operand, or for everything when there are none. Returns an exit code: the first
 * that is not CLI_OK. */
int order_run(struct cli *cli, const struct cli_args *args, const struct order *order);

#endif
