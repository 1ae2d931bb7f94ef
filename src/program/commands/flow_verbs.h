/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_verbs.h - the verbs of `detent flow`, shared by its files. */
#ifndef DET_COMMANDS_FLOW_VERBS_H
#define DET_COMMANDS_FLOW_VERBS_H

#include <detent/flow.h>

#include "terminal/command.h"

struct det_json_value;

enum {
    FLOW_OPTION_FRESH,
    FLOW_OPTION_DURABILITY,
    FLOW_OPTION_STATE,
    FLOW_OPTION_MODULE,
    FLOW_OPTION_FILE,
    FLOW_OPTION_FOLLOW,
    FLOW_OPTION_FROM,
    FLOW_OPTION_CANCEL,
    FLOW_OPTION_TIMEOUT,
    FLOW_OPTION_PROJECT,
    FLOW_OPTION_COUNT
};

/* flow_order_run: an order to the running daemon.
 *
 * A verb; its operands begin after the word. Returns an exit code. */
typedef int flow_verb_fn(struct cli *cli, const struct cli_args *args);
flow_verb_fn flow_order_run, flow_run, flow_list, flow_tap, flow_top, flow_lag, flow_stop,
    flow_connectors;

/* flow_offline.c: flows that no process runs, from their state in a project or in the folder of
 * --state. */
flow_verb_fn flow_offline_list, flow_offline_tap, flow_offline_lag;

/* flow_print.c */

/* A row of a stream (the answer of the API, or flow_row_write()) as a line. */
void flow_print_row(struct cli *cli, const struct det_json_value *row);
/* "1,234,567". Returns `target`. */
#define FLOW_COUNT_TEXT 32
const char *flow_count_text(uint64_t count, char target[FLOW_COUNT_TEXT]);
/* "1.2 M/s", "812 /s". Returns `target`. */
const char *flow_rate_text(double rate, char target[FLOW_COUNT_TEXT]);

#endif
