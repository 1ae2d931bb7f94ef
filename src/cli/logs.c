/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* logs.c - `detent logs`: what the tasks of a detent that is up have written, and write. */
#include <string.h>

#include "cli/args.h"
#include "cli/prefix.h"
#include "cli/remote.h"
#include "cli/show.h"

#define LINES_DEFAULT 100
#define LINES_MAX     1000000

enum { OPTION_FOLLOW, OPTION_LINES, OPTION_TIMES, OPTION_PROJECT };

static const struct cli_option option_table[] = {
    [OPTION_FOLLOW] = { "follow", 'f', NULL, NULL, "go on with what they write from now on" },
    [OPTION_LINES] = { "lines", 'n', "N", NULL, "the last so many; 100 when left out" },
    [OPTION_TIMES] = { "times", 't', NULL, NULL, "with the time of each line" },
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

struct logs {
    struct remote remote;
    struct prefix prefix;
    const struct cli_args *args;
    uint64_t lines;
};

static bool is_wanted(const struct cli_args *args, const char *name)
{
    for (size_t i = 0; i < args->operand_count; i++) {
        if (strcmp(args->operands[i], name) == 0)
            return true;
    }
    return args->operand_count == 0;
}

/* The names stand in a column from the first line on. */
static int learn_name(void *user, json_t *task)
{
    struct logs *logs = user;
    const char *name = show_text(task, "name");

    if (is_wanted(logs->args, name))
        prefix_learn(&logs->prefix, name);
    return CLI_OK;
}

static void print_line(struct logs *logs, json_t *data)
{
    const json_t *text = json_object_get(data, "text");
    det_time at = show_time(data, "at");
    json_int_t missed = show_number(data, "missed");
    struct det_line line = {
        .name = show_text(data, "name"),
        .stream =
            strcmp(show_text(data, "stream"), "error") == 0 ? DET_STREAM_ERROR : DET_STREAM_OUTPUT,
        .text = show_text(data, "text"),
        .size = json_string_length(text),
        .is_cut = json_is_true(json_object_get(data, "cut")),
        .dropped = (uint64_t)show_number(data, "dropped"),
    };

    if (logs->remote.cli->is_json) {
        cli_json(logs->remote.cli, json_incref(data));
        return;
    }
    if (missed > 0)
        prefix_note(
            &logs->prefix, line.name, at, "%lld lines before this one are gone", (long long)missed);
    prefix_line(&logs->prefix, &line, at);
}

/* NULL: no memory. */
static json_t *arguments_of(const struct logs *logs)
{
    json_t *arguments = json_pack(
        "{s:I, s:b}", "lines", (json_int_t)logs->lines, "follow",
        logs->args->values[OPTION_FOLLOW] != NULL);
    json_t *names = json_array();

    for (size_t i = 0; i < logs->args->operand_count; i++) {
        if (json_array_append_new(names, cli_json_text(logs->args->operands[i])) < 0)
            logs->remote.cli->has_failed = true;
    }
    if (logs->args->operand_count == 0)
        json_decref(names);
    else if (json_object_set_new(arguments, "names", names) < 0)
        logs->remote.cli->has_failed = true;
    return arguments;
}

/* That all has ended is no failure to one who follows; that he was too slow to be told is one. */
static int tell_closed(struct logs *logs, const struct det_error *error)
{
    struct socket_client *client;

    if (!logs->args->values[OPTION_FOLLOW])
        return remote_complain(&logs->remote, DET_ERR_CLOSED, error);
    if (socket_client_open(logs->remote.project, logs->remote.cli->allocator, &client, NULL) < 0) {
        cli_say(logs->remote.cli, "The detent that ran here has ended.\n");
        return CLI_OK;
    }
    socket_client_close(client);
    cli_complain(logs->remote.cli, "cut off: the lines were not read as fast as they came");
    return CLI_FAILURE;
}

static int complain_of_name(struct logs *logs, const struct det_error *error)
{
    char hint[REMOTE_HINT_TEXT] = "";
    json_t *tasks = NULL;

    if (!strstr(error->text, "did you mean") && logs->args->operand_count == 1 &&
        remote_list(&logs->remote, "tasks", &tasks) == CLI_OK)
        remote_hint(logs->remote.cli, tasks, logs->args->operands[0], hint);
    cli_complain(logs->remote.cli, "%s%s", error->text, hint);
    json_decref(tasks);
    return CLI_NOT_FOUND;
}

static int print_logs(struct logs *logs)
{
    bool follows = logs->args->values[OPTION_FOLLOW] != NULL;
    det_time deadline = follows ? DET_NEVER : remote_within(REMOTE_PATIENCE);
    struct det_error error = { 0 };
    json_t *data = NULL;
    int r;

    r = socket_client_ask(logs->remote.client, "logs", arguments_of(logs), &error);
    if (r == 0)
        r = socket_client_next(logs->remote.client, deadline, &data, &error);
    while (r > 0) {
        print_line(logs, data);
        json_decref(data);
        /* Those who follow see each line when it comes. */
        if (follows)
            prefix_flush(&logs->prefix);
        if (cli_is_stopped(logs->remote.cli))
            return CLI_OK;
        r = socket_client_next(logs->remote.client, deadline, &data, &error);
    }
    if (r == DET_ERR_CLOSED)
        return tell_closed(logs, &error);
    if (r == DET_ERR_NOT_FOUND)
        return complain_of_name(logs, &error);
    return r < 0 ? remote_complain(&logs->remote, r, &error) : CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const char *lines = args->values[OPTION_LINES];
    struct logs logs = { .args = args, .lines = LINES_DEFAULT };
    int code;

    if (lines && !cli_args_number(cli, "lines", lines, 0, LINES_MAX, &logs.lines))
        return CLI_USAGE;
    code = remote_open(cli, args->values[OPTION_PROJECT], &logs.remote);
    if (code != CLI_OK)
        return code;
    prefix_init(&logs.prefix, cli, args->values[OPTION_TIMES] != NULL);
    if (!cli->is_json)
        code = remote_each(&logs.remote, "tasks", NULL, learn_name, &logs);
    if (code == CLI_OK)
        code = print_logs(&logs);
    remote_close(&logs.remote);
    return code;
}

extern const struct cli_command cli_command_logs;
const struct cli_command cli_command_logs = {
    .name = "logs",
    .summary = "show what the tasks of a detent that is up write",
    .about =
        "The last lines of all tasks, or of those that are named, each with the name of its task: "
        "|\n"
        "stands before what came from its output, ! before what came from its error stream. With\n"
        "--follow it goes on until you end it, or the detent that is up ends.",
    .operand = { .form = "[NAME...]", .most = CLI_OPERANDS_ANY, .words = "" },
    .options = option_table,
    .run = run_command,
};
