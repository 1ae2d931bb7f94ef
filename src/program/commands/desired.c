/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* desired.c - `detent desired`: what a worker shall bring about. */
#include "client/worker_print.h"

static void print(struct cli *cli, const json_t *worker)
{
    static const struct table_column columns[] = { { "field", 0, false }, { "desired", 0, false } };
    json_t *desired = json_object_get(worker, "desired"), *value;
    struct table table;
    const char *name;

    worker_show_head(cli, worker);
    table_init(&table, cli, columns, sizeof columns / sizeof *columns);
    json_object_foreach(desired, name, value)
    {
        table_add(&table, CLI_BOLD, "%s", name);
        worker_show_cell(&table, CLI_PLAIN, value);
    }
    if (table_rows(&table))
        table_print(&table, 0);
    else
        cli_say(cli, "Nothing is desired of it but to be there.\n");
    table_deinit(&table);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    static const char *const members[] = { "desired", "spec", "shutdown_wanted", "disabled", NULL };

    return worker_show(cli, args, "worker_desired", members, print);
}

extern const struct cli_command cli_command_desired;
const struct cli_command cli_command_desired = {
    .name = "desired",
    .summary = "show the desired state of a worker of a running detent",
    .about = "Its desired state, as it was derived from its config, variables and location. Fields "
             "that\n"
             "are sensitive are not shown.",
    .operand = { .form = "ID", .least = 1, .most = 1 },
    .options = worker_show_options,
    .run = run_command,
};
