/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* logs.c - `detent logs`: prints the output of the tasks of the running daemon. */
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
    [OPTION_FOLLOW] = { "follow", 'f', NULL, NULL, "follow new output" },
    [OPTION_LINES] = { "lines", 'n', "N", NULL, "print the last N lines (default 100)" },
    [OPTION_TIMES] = { "times", 't', NULL, NULL, "print the time of each line" },
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

/* A requested name. */
struct wanted {
    struct wanted *next;
    const char *name;
    bool is_seen; /* has lines */
};

struct logs {
    struct remote remote;
    struct prefix prefix;
    const struct cli_args *args;
    bool follows;
    uint64_t lines;
    struct remote_list tasks;          /* present tasks */
    struct remote_list tree;           /* nested groups; read on demand */
    struct wanted *names, **names_end; /* none: all */
};

static void add_wanted(struct logs *logs, const char *name)
{
    struct wanted *wanted = det_arena_alloc(&logs->tasks.values, sizeof *wanted);

    if (!wanted) {
        logs->remote.cli->has_failed = true;
        return;
    }
    wanted->name = name;
    *logs->names_end = wanted;
    logs->names_end = &wanted->next;
}

/* Adds the members of a group and the groups below it, or of a slot. */
static bool add_members(struct logs *logs, const char *name)
{
    bool has_some = false;

    for (size_t i = 0; i < logs->tasks.count; i++) {
        const struct det_json_value *task = logs->tasks.items[i];
        if (!remote_is_in_group(&logs->tree, task, name) &&
            strcmp(show_text(task, "slot"), name) != 0)
            continue;
        add_wanted(logs, show_text(task, "name"));
        has_some = true;
    }
    return has_some;
}

static struct wanted *find_wanted(const struct logs *logs, const char *name)
{
    struct wanted *wanted = logs->names;

    while (wanted && strcmp(wanted->name, name) != 0)
        wanted = wanted->next;
    return wanted;
}

/* An unknown name may be that of a group of groups, of a job that has ended, or of a future job. */
static int add_name(struct logs *logs, const char *name)
{
    int code = CLI_OK;

    if (!remote_find(&logs->tasks, name)) {
        if (add_members(logs, name))
            return CLI_OK;
        if (!logs->tree.is_read)
            code = remote_tree(&logs->remote, &logs->tree);
        if (code != CLI_OK || add_members(logs, name))
            return code;
    }
    add_wanted(logs, name);
    return CLI_OK;
}

/* Reads the names first, so that all lines are aligned. */
static int read_names(struct logs *logs)
{
    int code = remote_list(&logs->remote, "/v1/tasks", &logs->tasks);

    if (code != CLI_OK)
        return code;
    for (size_t i = 0; i < logs->args->operand_count && code == CLI_OK; i++)
        code = add_name(logs, logs->args->operands[i]);
    for (size_t i = 0; i < logs->tasks.count; i++) {
        const struct det_json_value *task = logs->tasks.items[i];
        const char *name = show_text(task, "name");

        if (!logs->names || find_wanted(logs, name))
            prefix_learn(&logs->prefix, name);
    }
    return code;
}

static int print_line(void *user, const struct det_json_value *data)
{
    struct logs *logs = user;
    const struct det_json_value *text = det_json_get(data, "text");
    det_time at = det_json_get_time(data, "at");
    uint64_t missed = det_json_get_number(data, "missed");
    struct det_line line = {
        .name = show_text(data, "name"),
        .stream =
            strcmp(show_text(data, "stream"), "error") == 0 ? DET_STREAM_ERROR : DET_STREAM_OUTPUT,
        .text = text ? text->text.data : "",
        .size = text ? text->text.size : 0,
        .is_cut = det_json_get_bool(data, "cut"),
        .dropped = det_json_get_number(data, "dropped"),
    };
    struct wanted *wanted = find_wanted(logs, line.name);

    if (wanted)
        wanted->is_seen = true;
    if (logs->remote.cli->is_json) {
        cli_print_value(logs->remote.cli, data);
    } else {
        if (missed > 0)
            prefix_note(
                &logs->prefix, line.name, at, "%llu earlier line%s %s no longer stored",
                (unsigned long long)missed, det_plural(missed), det_is_or_are(missed));
        prefix_line(&logs->prefix, &line, at);
    }
    /* A follower sees each line at once. */
    if (logs->follows)
        prefix_flush(&logs->prefix);
    return CLI_OK;
}

/* A name without a task is valid if it has lines, or with --follow, for a future job. */
static int report_names(struct logs *logs)
{
    char hint[REMOTE_HINT_TEXT];
    int code = CLI_OK;

    for (const struct wanted *wanted = logs->names; wanted; wanted = wanted->next) {
        if (wanted->is_seen || remote_find(&logs->tasks, wanted->name))
            continue;
        cli_report_error(
            logs->remote.cli, "there is no task '%s'%s%s", wanted->name,
            logs->follows ? " yet" : "",
            remote_hint(logs->remote.cli, &logs->tasks, wanted->name, hint));
        code = logs->follows ? CLI_OK : CLI_NOT_FOUND;
    }
    return code;
}

static int print_logs(struct logs *logs)
{
    struct remote_stream stream = { .each = print_line, .deadline = DET_NEVER, .user = logs };
    struct det_buffer path;
    int code = CLI_OK;

    det_buffer_init(&path, logs->remote.cli->allocator);
    det_buffer_format(
        &path, "/v1/lines?lines=%llu%s", (unsigned long long)logs->lines,
        logs->follows ? "&follow=true" : "");
    for (const struct wanted *wanted = logs->names; wanted; wanted = wanted->next) {
        det_buffer_append_text(&path, wanted == logs->names ? "&task=" : ",");
        daemon_path_add(&path, wanted->name);
    }
    stream.path = daemon_path_text(&path);
    if (logs->follows)
        code = report_names(logs);
    if (code == CLI_OK && logs->follows)
        code = remote_follow(&logs->remote, &stream);
    else if (code == CLI_OK)
        code = remote_each(&logs->remote, stream.path, print_line, logs);
    det_buffer_deinit(&path);
    return code == CLI_OK && !logs->follows ? report_names(logs) : code;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const char *lines = args->values[OPTION_LINES];
    struct logs logs = { .args = args,
                         .follows = args->values[OPTION_FOLLOW] != NULL,
                         .lines = LINES_DEFAULT };
    int code;

    if (lines && !cli_args_number(cli, "lines", lines, 0, LINES_MAX, &logs.lines))
        return CLI_USAGE;
    code = remote_open(cli, args->values[OPTION_PROJECT], &logs.remote);
    if (code != CLI_OK)
        return code;
    prefix_init(&logs.prefix, cli, args->values[OPTION_TIMES] != NULL);
    logs.names_end = &logs.names;
    code = read_names(&logs);
    if (code == CLI_OK)
        code = print_logs(&logs);
    remote_list_free(&logs.tasks);
    remote_list_free(&logs.tree);
    remote_close(&logs.remote);
    return code;
}

extern const struct cli_command cli_command_logs;
const struct cli_command cli_command_logs = {
    .name = "logs",
    .summary = "show the output of the tasks of the running daemon",
    .about = "Prints the last lines of all tasks, or of those named directly, by group or by\n"
             "slot. Each line begins with the name of its task, then | for its output or ! for\n"
             "its error stream. With --follow it continues until you interrupt it or the daemon\n"
             "exits.",
    .operand = { .form = "[NAME...]", .most = CLI_OPERANDS_ANY, .names = "tree" },
    .options = option_table,
    .run = run_command,
};
