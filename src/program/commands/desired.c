/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* desired.c - `detent desired`: the desired state of a worker. */
#include "client/worker_print.h"

static void print(struct cli *cli, const struct det_json_value *worker)
{
    static const struct table_column columns[] = { { "field", 0, false }, { "desired", 0, false } };
    struct table table;

    worker_show_head(cli, worker);
    table_init(&table, cli, columns, sizeof columns / sizeof *columns);
    DET_JSON_EACH (value, det_json_get(worker, "desired")) {
        table_add(&table, CLI_BOLD, "%.*s", (int)value->key.size, value->key.data);
        worker_show_cell(&table, CLI_PLAIN, value);
    }
    table_show(&table, "The desired state has no fields.");
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
    .summary = "show the desired state of a worker",
    .about = "Prints the desired state as derived from the config, variables and location of the\n"
             "worker. Sensitive fields are not shown.",
    .operand = { .form = "ID", .least = 1, .most = 1 },
    .options = worker_show_options,
    .run = run_command,
};
