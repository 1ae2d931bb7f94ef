/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cancel.c - `detent cancel`: stops an instance by hand. */
#include "client/instance_change.h"

enum { OPTION_REASON, OPTION_MACHINE, OPTION_STORE };

static const struct cli_option option_table[] = {
    [OPTION_REASON] = { "reason", 'r', "TEXT", NULL, "is recorded, and told to who sends to it" },
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
        cli_say(
            act->store.cli, "%s: had stopped before%s%s\n", act->id,
            before.loaded.reason[0] ? ": " : "", before.loaded.reason);
    is_over = !before.loaded.head.is_stopped && instance_is_final(&before);
    if (is_over)
        cli_complain(act->store.cli, "%s has ended in %s", act->id, instance_state(&before));
    instance_close(&before);
    if (is_over)
        return CLI_REFUSED;
    r = act_stop(act, reason, &sent, &error);
    if (r < 0)
        return act_complain(act, r, &error);
    act_report(act, NULL, &sent);
    return CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct store_wish wish = { .url = args->values[OPTION_STORE],
                                     .machine = args->values[OPTION_MACHINE] };
    struct det_machine *machine;
    struct act act;
    int code = act_open(cli, &wish, &act);

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
    .summary = "stop an instance by hand",
    .about =
        "Stops an instance for good, where it is: no hook is asked, its timers are gone, and it "
        "takes\n"
        "no event any more. Effects that were asked for before still run. One that has stopped "
        "keeps its\n"
        "first reason; one in a final state has ended, which is exit code 6.",
    .operand = { .form = "ID", .least = 1, .most = 1 },
    .options = option_table,
    .run = run_command,
};
