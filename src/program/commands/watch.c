/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* watch.c - `detent watch`: follows an instance until it has ended. */
#include <string.h>

#include "client/follow.h"
#include "client/served_store.h"
#include "inspect/event_print.h"
#include "inspect/instance_summary.h"
#include "terminal/args.h"

enum { OPTION_AFTER, OPTION_TIMEOUT, OPTION_MACHINE, OPTION_STORE };

static const struct cli_option option_table[] = {
    [OPTION_AFTER] = { "after", 0, "N", NULL, "also show earlier events after this number" },
    [OPTION_TIMEOUT] = { "timeout", 't', "TIME", NULL, "give up after this long (default never)" },
    [OPTION_MACHINE] = STORE_OPTION_MACHINE,
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

static void print_start(struct cli *cli, const struct instance *instance)
{
    if (cli->is_json)
        facts_json(cli, instance, NULL);
    else
        facts_head(cli, instance);
    cli_flush(cli);
}

static int watch(struct instance *instance, uint64_t after, det_time timeout)
{
    struct cli *cli = instance->store->cli;
    struct follow follow = { .instance = instance, .after = after, .is_shown = true };
    int code;

    print_start(cli, instance);
    code = follow_until_end(&follow, timeout);
    if (code == CLI_TIMEOUT)
        cli_report_error(cli, "%s is still %s", instance->id, instance_state(instance));
    return code;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct store_request request = { .url = args->values[OPTION_STORE],
                                           .machine = args->values[OPTION_MACHINE] };
    det_time timeout = DET_NEVER;
    struct instance instance;
    struct cli_store store;
    uint64_t after = 0;
    int code;

    if (args->values[OPTION_AFTER] &&
        !cli_args_number(cli, "after", args->values[OPTION_AFTER], 0, INT64_MAX, &after))
        return CLI_USAGE;
    if (args->values[OPTION_TIMEOUT] &&
        !cli_args_span(cli, "timeout", args->values[OPTION_TIMEOUT], 0, &timeout))
        return CLI_USAGE;
    code = served_store_open(cli, &request, &store);
    if (code == CLI_OK)
        code = instance_find(&store, args->operands[0], &instance);
    if (code == CLI_OK) {
        if (!args->values[OPTION_AFTER])
            after = instance.loaded.head.sequence;
        code = watch(&instance, after, timeout);
        instance_close(&instance);
    }
    cli_store_close(&store);
    return code;
}

extern const struct cli_command cli_command_watch;
const struct cli_command cli_command_watch = {
    .name = "watch",
    .summary = "follow an instance until it has ended",
    .about = "Prints the current state of an instance, then each event and each failed attempt\n"
             "of its effects, until it reaches a final state or stops, or until Ctrl-C. With\n"
             "--json the first object is the instance, the others are its events and attempts.\n"
             "The store is read a few times per second.",
    .operand = { .form = "ID", .least = 1, .most = 1 },
    .options = option_table,
    .run = run_command,
};
