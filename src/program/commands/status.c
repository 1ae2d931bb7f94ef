/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* status.c - `detent status`: whether something runs here, since when, and how much of it. */
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

/* Phases, and what else there is to worry about. */
static void print_workers(struct cli *cli, const json_t *workers)
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
        { "stale", "paused: observations too old", CLI_RED },
        { "circuits_open", "paused: too many failures below", CLI_RED },
    };

    if (!workers)
        return;
    cli_print(cli, "workers    %lld\n", (long long)show_number(workers, "count"));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (show_number(workers, lines[i].key) > 0)
            cli_print_in(
                cli, lines[i].style, "           %lld %s\n",
                (long long)show_number(workers, lines[i].key), lines[i].word);
    }
}

static int print_status(void *user, json_t *status)
{
    struct remote *remote = user;
    struct cli *cli = remote->cli;
    det_time now = det_world_now(cli->world, DET_CLOCK_WALL);
    const char *away = show_text(status, "away"), *api = show_text(status, "api");
    uint64_t lost = (uint64_t)show_number(status, "events_lost");
    char age[SHOW_SPAN_TEXT];

    cli_print(cli, "%s is ", show_text(status, "project"));
    cli_print_in(cli, CLI_GREEN, "%s", show_text(status, "state"));
    cli_print(
        cli, ", for %s (process %lld)\n", show_span(now - show_time(status, "since"), age),
        (long long)show_number(status, "process"));
    if (*api)
        cli_print(cli, "API        %s; 'detent console' prints a link to its console\n", api);
    if (*away)
        cli_print(cli, "store      cannot be reached: %s\n", away);
    cli_print(
        cli, "tasks      %lld; %lld restart%s, %lld rejection%s\n",
        (long long)(show_number(status, "registered") + show_number(status, "queued")),
        (long long)show_number(status, "restarts"),
        det_plural((uint64_t)show_number(status, "restarts")),
        (long long)show_number(status, "rejected"),
        det_plural((uint64_t)show_number(status, "rejected")));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (show_number(status, counts[i].key) > 0)
            cli_print(
                cli, "           %lld %s\n", (long long)show_number(status, counts[i].key),
                counts[i].word);
    }
    if (lost > 0)
        cli_print_in(
            cli, CLI_YELLOW, "           %llu event%s %s lost by slow subscribers\n",
            (unsigned long long)lost, det_plural(lost), det_was_or_were(lost));
    print_workers(cli, json_object_get(status, "workers"));
    return CLI_OK;
}

/* The counts of tasks stand beside the rest; there are no workers where there is no member. */
static json_t *flat_status(const json_t *status)
{
    static const char *const members[] = { "api",     "away",  "kind", "project",
                                           "process", "since", "state" };
    const json_t *workers = json_object_get(status, "workers");
    json_t *flat = json_object();
    int r = flat ? 0 : -1;

    for (size_t i = 0; r == 0 && i < sizeof members / sizeof *members; i++)
        r = json_object_set(flat, members[i], json_object_get(status, members[i]));
    if (r == 0)
        r = json_object_update(flat, json_object_get(status, "tasks"));
    if (r == 0 && json_is_object(workers))
        r = json_object_set(flat, "workers", json_object_get(status, "workers"));
    if (r == 0)
        return flat;
    json_decref(flat);
    return NULL;
}

static int show_status(void *user, json_t *status)
{
    struct remote *remote = user;
    json_t *flat = flat_status(status);
    int code = CLI_OK;

    if (!flat)
        return cli_no_memory(remote->cli);
    if (remote->cli->is_json)
        cli_json(remote->cli, json_incref(flat));
    else
        code = print_status(remote, flat);
    json_decref(flat);
    return code;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct remote remote;
    int code = remote_open(cli, args->values[OPTION_PROJECT], &remote);

    if (code != CLI_OK)
        return code;
    code = remote_each(&remote, "/v1/status", show_status, &remote);
    remote_close(&remote);
    return code;
}

extern const struct cli_command cli_command_status;
const struct cli_command cli_command_status = {
    .name = "status",
    .summary = "show whether a detent runs here, and how it does",
    .about = "Since when it runs, where its API listens, whether its store can be reached, and "
             "how many of\n"
             "its tasks do what. Exits with 3 when none runs here.",
    .operand = { .form = "" },
    .options = option_table,
    .run = run_command,
};
