/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* console.c - `detent console`: a link to the web console of the running daemon. */
#include "client/remote.h"
#include "inspect/print_tasks.h"

enum { OPTION_PROJECT };

static const struct cli_option option_table[] = {
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

static void print_link(struct cli *cli, const struct det_json_value *answer)
{
    if (cli->is_json)
        cli_print_value(cli, answer);
    else
        cli_print(cli, "%s\n", show_text(answer, "url"));
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    return remote_command(
        cli, args->values[OPTION_PROJECT], "POST", "/v1/console-links", print_link);
}

extern const struct cli_command cli_command_console;
const struct cli_command cli_command_console = {
    .name = "console",
    .summary = "print a link to the web console of the running daemon",
    .about = "The link contains a code that is valid once, for ten minutes, and signs its user\n"
             "in for twelve hours. Only the code is secret, and it is not sent in a URL.",
    .operand = { .form = "" },
    .options = option_table,
    .run = run_command,
};
