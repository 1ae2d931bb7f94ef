/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* logs.c - `detent logs`: what the tasks of a detent that is up have written, and write. */
#include <string.h>

#include "base/buffer.h"
#include "base/text.h"
#include "client/remote.h"
#include "inspect/print_tasks.h"
#include "terminal/args.h"
#include "terminal/line_prefix.h"

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
    json_t *tasks; /* that are there */
    json_t *tree;  /* for the groups within groups; NULL: nobody has asked for one */
    json_t *names; /* whose lines are wanted, an array; empty: all */
    json_t *seen;  /* an object with the names of the lines that came */
};

/* Of the members of a group, of groups below it, or of a slot. */
static int add_members(struct logs *logs, const char *name)
{
    int count = 0;

    for (size_t i = 0; i < json_array_size(logs->tasks); i++) {
        json_t *task = json_array_get(logs->tasks, i);

        if (!remote_is_in_group(logs->tree, task, name) &&
            strcmp(show_text(task, "slot"), name) != 0)
            continue;
        if (json_array_append(logs->names, json_object_get(task, "name")) < 0)
            logs->remote.cli->has_failed = true;
        count++;
    }
    return count;
}

static bool is_wanted(const struct logs *logs, const char *name)
{
    for (size_t i = 0; i < json_array_size(logs->names); i++) {
        if (strcmp(json_string_value(json_array_get(logs->names, i)), name) == 0)
            return true;
    }
    return json_array_size(logs->names) == 0;
}

/* One that says nothing by itself may be that of a group of groups, of a job that has ended, or of
 * one to come. */
static int add_name(struct logs *logs, const char *name)
{
    int code = CLI_OK;

    if (!remote_find(logs->tasks, name)) {
        if (add_members(logs, name) > 0)
            return CLI_OK;
        if (!logs->tree)
            code = remote_tree(&logs->remote, &logs->tree);
        if (code != CLI_OK || add_members(logs, name) > 0)
            return code;
    }
    if (json_array_append_new(logs->names, cli_json_text(name)) < 0)
        logs->remote.cli->has_failed = true;
    return CLI_OK;
}

/* Which names are meant; they stand in a column from the first line on. */
static int read_names(struct logs *logs)
{
    int code = remote_list(&logs->remote, "/v1/tasks", &logs->tasks);

    if (code != CLI_OK)
        return code;
    for (size_t i = 0; i < logs->args->operand_count && code == CLI_OK; i++)
        code = add_name(logs, logs->args->operands[i]);
    for (size_t i = 0; i < json_array_size(logs->tasks); i++) {
        const char *name = show_text(json_array_get(logs->tasks, i), "name");

        if (is_wanted(logs, name))
            prefix_learn(&logs->prefix, name);
    }
    return code;
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

    if (json_object_set_new(logs->seen, line.name, json_true()) < 0)
        logs->remote.cli->has_failed = true;
    if (logs->remote.cli->is_json) {
        cli_json(logs->remote.cli, json_incref(data));
        return;
    }
    if (missed > 0)
        prefix_note(
            &logs->prefix, line.name, at, "%lld line%s before this one %s gone", (long long)missed,
            det_plural((uint64_t)missed), det_is_or_are((uint64_t)missed));
    prefix_line(&logs->prefix, &line, at);
}

static int ask_lines(struct logs *logs, struct det_error *reterr)
{
    bool follows = logs->args->values[OPTION_FOLLOW] != NULL;
    struct det_buffer path;
    int r;

    det_buffer_init(&path, logs->remote.cli->allocator);
    det_buffer_format(
        &path, "/v1/lines?lines=%llu%s", (unsigned long long)logs->lines,
        follows ? "&follow=true" : "");
    for (size_t i = 0; i < json_array_size(logs->names); i++) {
        det_buffer_append_text(&path, i == 0 ? "&task=" : ",");
        daemon_path_add(&path, json_string_value(json_array_get(logs->names, i)));
    }
    r = daemon_client_ask(logs->remote.client, "GET", daemon_path_text(&path), NULL, reterr);
    det_buffer_deinit(&path);
    return r;
}

/* That all has ended is no failure to one who follows; that he was too slow to be told is one. */
static int tell_closed(struct logs *logs, const struct det_error *error)
{
    struct daemon_client *client;

    if (!logs->args->values[OPTION_FOLLOW])
        return remote_complain(&logs->remote, DET_ERR_CLOSED, error);
    if (daemon_client_open(logs->remote.project, logs->remote.cli->allocator, &client, NULL) < 0) {
        cli_say(logs->remote.cli, "The detent that ran here has ended.\n");
        return CLI_OK;
    }
    daemon_client_close(client);
    cli_complain(logs->remote.cli, "cut off: the lines were not read as fast as they came");
    return CLI_FAILURE;
}

/* A job that has ended may have left lines; one who follows may wait for one that is to come. */
static int complain_of_names(struct logs *logs)
{
    bool follows = logs->args->values[OPTION_FOLLOW] != NULL;
    char hint[REMOTE_HINT_TEXT];
    int code = CLI_OK;

    for (size_t i = 0; i < json_array_size(logs->names); i++) {
        const char *name = json_string_value(json_array_get(logs->names, i));

        if (remote_find(logs->tasks, name) || json_object_get(logs->seen, name))
            continue;
        cli_complain(
            logs->remote.cli, "there is no task '%s'%s%s", name, follows ? " yet" : "",
            remote_hint(logs->remote.cli, logs->tasks, name, hint));
        code = follows ? CLI_OK : CLI_NOT_FOUND;
    }
    return code;
}

static int print_logs(struct logs *logs)
{
    bool follows = logs->args->values[OPTION_FOLLOW] != NULL;
    det_time deadline = follows ? DET_NEVER : remote_within(REMOTE_PATIENCE);
    struct det_error error = { 0 };
    json_t *data = NULL;
    int r;

    r = ask_lines(logs, &error);
    if (r == 0)
        r = daemon_client_next(logs->remote.client, deadline, &data, &error);
    while (r > 0) {
        print_line(logs, data);
        json_decref(data);
        /* Those who follow see each line when it comes. */
        if (follows)
            prefix_flush(&logs->prefix);
        if (cli_is_stopped(logs->remote.cli))
            return CLI_OK;
        r = daemon_client_next(logs->remote.client, deadline, &data, &error);
    }
    if (r == DET_ERR_CLOSED)
        return tell_closed(logs, &error);
    return r < 0 ? remote_complain(&logs->remote, r, &error) : complain_of_names(logs);
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
    logs.names = json_array();
    logs.seen = json_object();
    code = logs.names && logs.seen ? read_names(&logs) : cli_no_memory(cli);
    if (code == CLI_OK && args->values[OPTION_FOLLOW])
        code = complain_of_names(&logs);
    if (code == CLI_OK)
        code = print_logs(&logs);
    json_decref(logs.tasks);
    json_decref(logs.tree);
    json_decref(logs.names);
    json_decref(logs.seen);
    remote_close(&logs.remote);
    return code;
}

extern const struct cli_command cli_command_logs;
const struct cli_command cli_command_logs = {
    .name = "logs",
    .summary = "show what the tasks of a detent that is up write",
    .about =
        "The last lines of all tasks, or of those that are named: by their own name, or by that of "
        "their\n"
        "group or slot. Before each line stands the name of its task: with | what came from its "
        "output,\n"
        "with ! what came from its error stream. With --follow it goes on until you end it, or "
        "the\n"
        "detent that is up ends.",
    .operand = { .form = "[NAME...]", .most = CLI_OPERANDS_ANY, .names = "tree" },
    .options = option_table,
    .run = run_command,
};
