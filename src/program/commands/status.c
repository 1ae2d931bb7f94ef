/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* status.c - `detent status`: the state of the running daemon. */
#include "base/text.h"
#include "client/remote.h"
#include "inspect/print_tasks.h"

enum { OPTION_PROJECT };

static const struct cli_option option_table[] = {
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

struct count {
    const char *key, *word;
};

static const struct count counts[] = {
    { "running", "running" },
    { "waiting", "waiting for a permit" },
    { "queued", "queued in slots" },
    { "held", "held by others" },
    { "backing_off", "waiting for the next attempt" },
    { "resting", "resting until the next time" },
    { "stuck", "not stopping" },
};

/* Counts of phases and of problems. */
static void print_workers(struct cli *cli, const struct det_json_value *workers)
{
    static const struct {
        const char *key, *word;
        enum cli_style style;
    } lines[] = {
        { "running", "running", CLI_PLAIN },
        { "degraded", "degraded", CLI_RED },
        { "starting", "starting", CLI_PLAIN },
        { "stopping", "stopping", CLI_PLAIN },
        { "stopped", "stopped", CLI_PLAIN },
        { "stale", "paused: stale observations", CLI_RED },
        { "circuits_open", "paused: circuit open", CLI_RED },
    };

    if (!workers)
        return;
    cli_print(cli, "workers    %lld\n", (long long)det_json_get_signed(workers, "count"));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (det_json_get_signed(workers, lines[i].key) > 0)
            cli_print_in(
                cli, lines[i].style, "           %lld %s\n",
                (long long)det_json_get_signed(workers, lines[i].key), lines[i].word);
    }
}

static void print_status(struct cli *cli, const struct det_json_value *status)
{
    const struct det_json_value *tasks = det_json_get(status, "tasks");
    det_time now = det_world_now(cli->world, DET_CLOCK_WALL);
    const char *unreachable = show_text(status, "away"), *api = show_text(status, "api");
    uint64_t count =
        det_json_get_number(tasks, "registered") + det_json_get_number(tasks, "queued");
    uint64_t restarts = det_json_get_number(tasks, "restarts");
    uint64_t rejected = det_json_get_number(tasks, "rejected");
    uint64_t lost = det_json_get_number(tasks, "events_lost");
    char age[SHOW_SPAN_TEXT];

    cli_print(cli, "%s is ", show_text(status, "project"));
    cli_print_in(cli, CLI_GREEN, "%s", show_text(status, "state"));
    cli_print(
        cli, ", for %s (process %lld)\n", show_span(now - det_json_get_time(status, "since"), age),
        (long long)det_json_get_signed(status, "process"));
    if (*api)
        cli_print(cli, "API        %s; 'detent console' prints a link to its console\n", api);
    if (*unreachable)
        cli_print(cli, "store      cannot be reached: %s\n", unreachable);
    cli_print(
        cli, "tasks      %llu; %llu restart%s, %llu rejection%s\n", (unsigned long long)count,
        (unsigned long long)restarts, det_plural(restarts), (unsigned long long)rejected,
        det_plural(rejected));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (det_json_get_signed(tasks, counts[i].key) > 0)
            cli_print(
                cli, "           %lld %s\n", (long long)det_json_get_signed(tasks, counts[i].key),
                counts[i].word);
    }
    if (lost > 0)
        cli_print_in(
            cli, CLI_YELLOW, "           %llu event%s %s lost by slow subscribers\n",
            (unsigned long long)lost, det_plural(lost), det_was_or_were(lost));
    print_workers(cli, det_json_get(status, "workers"));
}

/* The counts of tasks are members of the object itself; "workers" is absent without workers. */
static void print_members(struct cli *cli, const struct det_json_value *status)
{
    static const char *const members[] = { "api",     "away",  "kind", "project",
                                           "process", "since", "state" };
    const struct det_json_value *workers = det_json_get(status, "workers");
    struct det_json_writer json;

    cli_json_begin(cli, &json, NULL);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        det_json_copy(&json, members[i], det_json_get(status, members[i]));
    det_json_copy_members(&json, det_json_get(status, "tasks"));
    if (det_json_is(workers, DET_JSON_OBJECT))
        det_json_copy(&json, "workers", workers);
    cli_json_end(cli, &json);
}

static void show_status(struct cli *cli, const struct det_json_value *status)
{
    if (cli->is_json)
        print_members(cli, status);
    else
        print_status(cli, status);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    return remote_command(cli, args->values[OPTION_PROJECT], "GET", "/v1/status", show_status);
}

extern const struct cli_command cli_command_status;
const struct cli_command cli_command_status = {
    .name = "status",
    .summary = "show the state of the running daemon",
    .about = "Prints since when the daemon runs, where its API listens, whether its store can be\n"
             "reached, and the number of tasks in each state. Exits with 3 if no daemon runs in\n"
             "the project.",
    .operand = { .form = "" },
    .options = option_table,
    .run = run_command,
};
