/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cancel.c - `detent cancel`: stops an instance permanently. */
#include "client/instance_change.h"

enum { OPTION_REASON, OPTION_MACHINE, OPTION_STORE };

static const struct cli_option option_table[] = {
    [OPTION_REASON] = { "reason", 'r', "TEXT", NULL,
                        "record the reason and report it to later senders" },
    [OPTION_MACHINE] = STORE_OPTION_MACHINE,
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

static int stop(struct act *act, const char *reason)
{
    struct det_error error = { 0 };
    struct instance before;
    struct det_sent sent;
    bool is_over;
    int code, r;

    code = instance_open(&act->store, act->machine, act->id, &before);
    if (code != CLI_OK)
        return code;
    if (before.loaded.head.is_stopped)
        cli_print_error(
            act->store.cli, "%s: was already stopped%s%s\n", act->id,
            before.loaded.reason[0] ? ": " : "", before.loaded.reason);
    is_over = !before.loaded.head.is_stopped && instance_is_final(&before);
    if (is_over)
        cli_report_error(
            act->store.cli, "%s is in the final state %s", act->id, instance_state(&before));
    instance_close(&before);
    if (is_over)
        return CLI_REFUSED;
    r = act_stop(act, reason, &sent, &error);
    if (r < 0)
        return act_report_error(act, r, &error);
    act_report(act, NULL, &sent);
    return CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct store_request request = { .url = args->values[OPTION_STORE],
                                           .machine = args->values[OPTION_MACHINE] };
    struct det_machine *machine;
    struct act act;
    int code = act_open(cli, &request, &act);

    act.id = args->operands[0];
    if (code == CLI_OK)
        code = cli_store_find(&act.store, act.id, &machine);
    if (code == CLI_OK) {
        act.machine = machine;
        code = stop(&act, args->values[OPTION_REASON]);
    }
    act_close(&act);
    return code;
}

extern const struct cli_command cli_command_cancel;
const struct cli_command cli_command_cancel = {
    .name = "cancel",
    .summary = "stop an instance permanently",
    .about = "Stops an instance in its current state: no hook runs, its timers are deleted, and\n"
             "it accepts no more events. Effects that were already requested still run. A\n"
             "stopped instance keeps its first reason. An instance in a final state is not\n"
             "stopped; this is exit code 6.",
    .operand = { .form = "ID", .least = 1, .most = 1 },
    .options = option_table,
    .run = run_command,
};
