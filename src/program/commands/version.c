/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* version.c - `detent version`. */
#include "terminal/command.h"
#include "json/writer.h"

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct det_json_writer json;

    (void)args;
    if (!cli->is_json) {
        cli_print(cli, "detent %s\n", det_version());
        return CLI_OK;
    }
    cli_json_begin(cli, &json, "version");
    det_json_text(&json, "name", "detent");
    det_json_text(&json, "version", det_version());
    cli_json_end(cli, &json);
    return CLI_OK;
}

extern const struct cli_command cli_command_version;
const struct cli_command cli_command_version = {
    .name = "version",
    .summary = "print the version",
    .about = "Prints the name and the version of the program.",
    .operand = { .form = "" },
    .run = run_command,
};
