/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* limits.c - `detent limits`: every limit there is, with its default and the most it can be. */
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/config.h"
#include "cli/line.h"
#include "cli/table.h"

struct limit {
    const char *where, *name;
    uint64_t otherwise, most;
    const char *unit, *about;
    bool is_time;
};

#define IS_TIME(type) _Generic((type)0, det_time : true, default : false)
#define HTTP_LIMIT(name, type, otherwise, most, unit, about) \
    { "http.limits", #name, (uint64_t)(otherwise), (uint64_t)(most), unit, about, IS_TIME(type) },
#define CONFIG_LIMIT HTTP_LIMIT

/* What is the same for all stores and definitions stands in the headers of the library. */
static const struct limit limits[] = {
#include "cli/config_limits.def"
#include "console/http_limits.def"
    { "", "states", DET_STATES_MAX, DET_STATES_MAX, "", "states of a machine", false },
    { "", "history", 16, DET_HISTORY_MAX, "", "states before, of an instance in memory", false },
    { "", "batch", DET_BATCH_MAX, DET_BATCH_MAX, "", "events in one commit of an instance", false },
    { "", "id", DET_ID_MAX, DET_ID_MAX, "B", "ids of instances, events and jobs", false },
    { "", "reason", DET_REASON_MAX, DET_REASON_MAX, "B", "why something stopped or failed", false },
};

static const char *show(const struct limit *limit, uint64_t value, char target[64])
{
    if (limit->is_time)
        det_format_duration((det_time)value, target, 64);
    else if (strcmp(limit->unit, "B") == 0 && value >= 1024 && value % 1024 == 0)
        snprintf(
            target, 64, "%llu %s", (unsigned long long)(value >> (value % (1 << 20) ? 10 : 20)),
            value % (1 << 20) ? "KiB" : "MiB");
    else
        snprintf(
            target, 64, "%llu%s%s", (unsigned long long)value, *limit->unit ? " " : "",
            limit->unit);
    return target;
}

static void print_object(struct cli *cli, struct line *line, const struct limit *limit)
{
    line_open(line, NULL, '{');
    line_text(line, "type", "limit");
    line_text(line, "where", *limit->where ? limit->where : NULL);
    line_text(line, "name", limit->name);
    line_number(line, "default", limit->otherwise);
    line_number(line, "most", limit->most);
    line_text(line, "unit", limit->is_time ? "ns" : *limit->unit ? limit->unit : NULL);
    line_text(line, "about", limit->about);
    line_close(line, '}');
    line_print(line, cli);
}

static const struct table_column columns[] = {
    { "limit", 0, false },
    { "default", 0, true },
    { "at most", 0, true },
    { "of", 1, false },
};

static void add_row(struct table *table, const struct limit *limit)
{
    char text[64];

    table_add(table, CLI_BOLD, "%s%s%s", limit->where, *limit->where ? "." : "", limit->name);
    table_add(table, CLI_PLAIN, "%s", show(limit, limit->otherwise, text));
    table_add(table, CLI_PLAIN, "%s", show(limit, limit->most, text));
    table_add(table, CLI_PLAIN, "%s", limit->about);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct table table;
    struct line line;

    (void)args;
    table_init(&table, cli, columns, sizeof columns / sizeof *columns);
    line_init(&line, cli->allocator);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (cli->is_json)
            print_object(cli, &line, &limits[i]);
        else
            add_row(&table, &limits[i]);
    }
    if (!cli->is_json)
        table_print(&table, 0);
    line_deinit(&line);
    table_deinit(&table);
    return CLI_OK;
}

extern const struct cli_command cli_command_limits;
const struct cli_command cli_command_limits = {
    .name = "limits",
    .summary = "list every limit, its default and the most it can be",
    .about = "Those with a path are keys of detent.yaml. What goes over a limit is refused with "
             "the limit's\n"
             "name; nothing is cut off in silence, and nothing hangs.",
    .operand = { .form = "" },
    .options = (const struct cli_option[]){ { NULL, 0, NULL, NULL, NULL } },
    .run = run_command,
};
