/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_command.c - shared by the commands about one instance. */
#include "client/instance_command.h"
#include "client/served_store.h"

#include "client/activity_remote.h"

enum { OPTION_STORE, OPTION_MACHINE };

const struct cli_option instance_command_options[] = {
    [OPTION_STORE] = STORE_OPTION_URL,
    [OPTION_MACHINE] = STORE_OPTION_MACHINE,
    { NULL, 0, NULL, NULL, NULL },
};

int instance_command(
    struct cli *cli, const struct cli_args *args, instance_print_fn *print, facts_line_fn *more)
{
    const struct store_request request = { .url = args->values[OPTION_STORE],
                                           .machine = args->values[OPTION_MACHINE] };
    struct instance instance;
    struct cli_store store;
    int code = served_store_open(cli, &request, &store);

    if (code == CLI_OK)
        code = instance_find(&store, args->operands[0], &instance);
    if (code == CLI_OK) {
        activity_ask(&instance);
        if (cli->is_json)
            facts_json(cli, &instance, more);
        else
            code = print(cli, &instance);
        instance_close(&instance);
    }
    cli_store_close(&store);
    return code;
}
