/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* console.c - `detent console`: a link to the web console of the detent that runs here. */
#include "client/remote.h"
#include "inspect/print_tasks.h"

enum { OPTION_PROJECT };

static const struct cli_option option_table[] = {
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

static int print_link(void *user, json_t *answer)
{
    struct remote *remote = user;

    cli_print(remote->cli, "%s\n", show_text(answer, "url"));
    return CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    return remote_command(
        cli, args->values[OPTION_PROJECT], "/v1/console-links", json_object(), print_link);
}

extern const struct cli_command cli_command_console;
const struct cli_command cli_command_console = {
    .name = "console",
    .summary = "print a link to the web console of the detent that runs here",
    .about = "The link has a code that is good once, for ten minutes: whoever opens it is signed "
             "in for\n"
             "twelve hours. Nothing else of it is secret, and the code is not sent in a URL.",
    .operand = { .form = "" },
    .options = option_table,
    .run = run_command,
};
