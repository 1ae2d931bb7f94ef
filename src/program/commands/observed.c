/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* observed.c - `detent observed`: the last observation of a worker, and its drift. */
#include <stdio.h>
#include <string.h>

#include "client/worker_print.h"

static void print_age(struct cli *cli, const struct det_json_value *worker)
{
    det_time at = det_json_get_time(worker, "observed_at");
    bool is_stale = strcmp(show_text(worker, "freshness"), "stale") == 0;
    char span[SHOW_SPAN_TEXT];

    if (at)
        cli_print_in(
            cli, is_stale ? CLI_RED : CLI_PLAIN, "observed %s ago%s\n",
            show_span(det_world_now(cli->world, DET_CLOCK_WALL) - at, span),
            is_stale ? "; stale: the worker is paused" : "");
    else
        cli_print_in(cli, CLI_FAINT, "not observed yet\n");
}

static void print(struct cli *cli, const struct det_json_value *worker)
{
    static const struct table_column columns[] = { { "field", 0, false },
                                                   { "observed", 0, false },
                                                   { "desired", 0, false } };
    const struct det_json_value *gap = det_json_get(worker, "gap");
    char name[DET_NAME_MAX + 1];
    struct table table;

    worker_show_head(cli, worker);
    print_age(cli, worker);
    table_init(&table, cli, columns, sizeof columns / sizeof *columns);
    DET_JSON_EACH (value, det_json_get(worker, "observed")) {
        const struct det_json_value *other;

        snprintf(name, sizeof name, "%.*s", (int)value->key.size, value->key.data);
        other = det_json_get(gap, name);
        table_add(&table, CLI_BOLD, "%s", name);
        worker_show_cell(&table, other ? CLI_YELLOW : CLI_PLAIN, value);
        worker_show_cell(&table, CLI_YELLOW, det_json_get(other, "desired"));
    }
    table_show(&table, NULL);
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
    .summary = "show the observed state of a worker",
    .about = "Prints the last observation of a worker and its age. Beside each field that\n"
             "desired and observed state have in common and that differs, it prints the desired\n"
             "value. With --json it also prints counters and gauges.",
    .operand = { .form = "ID", .least = 1, .most = 1 },
    .options = worker_show_options,
    .run = run_command,
};
