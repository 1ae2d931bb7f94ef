/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* observed.c - `detent observed`: what a worker has seen last, and what of it is not as desired. */
#include <string.h>

#include "client/worker_print.h"

static void print_age(struct cli *cli, const json_t *worker)
{
    det_time at = show_time(worker, "observed_at");
    bool is_stale = strcmp(show_text(worker, "freshness"), "stale") == 0;
    char span[SHOW_SPAN_TEXT];

    if (at)
        cli_print_in(
            cli, is_stale ? CLI_RED : CLI_PLAIN, "observed %s ago%s\n",
            show_span(det_world_now(cli->world, DET_CLOCK_WALL) - at, span),
            is_stale ? ", which is too long: it is paused" : "");
    else
        cli_print_in(cli, CLI_FAINT, "nothing was observed yet\n");
}

static void print(struct cli *cli, const json_t *worker)
{
    static const struct table_column columns[] = { { "field", 0, false },
                                                   { "observed", 0, false },
                                                   { "desired", 0, false } };
    json_t *gap = json_object_get(worker, "gap"), *value;
    struct table table;
    const char *name;

    worker_show_head(cli, worker);
    print_age(cli, worker);
    table_init(&table, cli, columns, sizeof columns / sizeof *columns);
    json_object_foreach(json_object_get(worker, "observed"), name, value)
    {
        const json_t *other = json_object_get(gap, name);

        table_add(&table, CLI_BOLD, "%s", name);
        worker_show_cell(&table, other ? CLI_YELLOW : CLI_PLAIN, value);
        worker_show_cell(&table, CLI_YELLOW, json_object_get(other, "desired"));
    }
    if (table_rows(&table))
        table_print(&table, 0);
    table_deinit(&table);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    static const char *const members[] = { "observed", "observed_at", "freshness",
                                           "gap",      "metrics",     NULL };

    return worker_show(cli, args, "worker_observed", members, print);
}

extern const struct cli_command cli_command_observed;
const struct cli_command cli_command_observed = {
    .name = "observed",
    .summary = "show the observed state of a worker of a running detent",
    .about = "Its last observation, how old that is, and beside each field that desired and "
             "observed state\n"
             "have in common and that differs, what is desired. With --json also what it counts "
             "and\n"
             "measures.",
    .operand = { .form = "ID", .least = 1, .most = 1 },
    .options = worker_show_options,
    .run = run_command,
};
