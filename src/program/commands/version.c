/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* version.c - `detent version`. */
#include "terminal/command.h"

static int run(struct cli *cli, const struct cli_args *args)
{
    (void)args;
    if (cli->is_json)
        cli_json(
            cli,
            json_pack(
                "{s:s, s:s, s:s}", "type", "version", "name", "detent", "version", det_version()));
    else
        cli_print(cli, "detent %s\n", det_version());
    return CLI_OK;
}

extern const struct cli_command cli_command_version;
const struct cli_command cli_command_version = {
    .name = "version",
    .summary = "print the version",
    .about = "Prints the name and the version of the program.",
    .operand = { .form = "" },
    .run = run,
};
