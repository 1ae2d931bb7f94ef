/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tasks.c - `detent tasks`: shows the tasks of the running daemon, once or continuously. */
#include <string.h>

#include "client/remote.h"
#include "inspect/print_tasks.h"

/* Ages are updated at this interval. Events are shown at once, but not more often than this. */
#define WATCH_EVERY DET_SECOND
#define WATCH_LEAST (100 * DET_MILLISECOND)

enum { OPTION_WATCH, OPTION_PROJECT };

static const struct cli_option option_table[] = {
    [OPTION_WATCH] = { "watch", 'w', NULL, NULL, "keep showing changes" },
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

static const struct table_column columns[] = {
    { "task", 0, false },    { "state", 0, false },  { "for", 2, true },  { "attempt", 5, true },
    { "restarts", 3, true }, { "process", 4, true }, { "next", 0, true }, { "group", 6, false },
    { "slot", 7, false },    { "why", 0, false },
};

struct view {
    struct remote remote;
    const struct cli_args *args;
    struct remote_list tree;     /* nested groups; read on demand */
    struct remote_list tasks;    /* as shown last */
    size_t lines;                /* of the last table on the terminal */
    struct remote_stream stream; /* of events; each triggers a refresh */
    det_time shown_at;
};

/* Compares the name with those of the task, its slot and its groups. */
static bool is_named(const struct view *view, const struct det_json_value *task, const char *name)
{
    return strcmp(show_text(task, "name"), name) == 0 ||
           strcmp(show_text(task, "slot"), name) == 0 ||
           remote_is_in_group(&view->tree, task, name);
}

/* No names mean all tasks. */
static bool is_wanted(const struct view *view, const struct det_json_value *task)
{
    for (size_t i = 0; i < view->args->operand_count; i++) {
        if (is_named(view, task, view->args->operands[i]))
            return true;
    }
    return view->args->operand_count == 0;
}

static bool has_wanted(const struct view *view, const struct remote_list *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        const struct det_json_value *task = tasks->items[i];
        if (is_wanted(view, task))
            return true;
    }
    return false;
}

static bool is_known(const struct view *view, const struct remote_list *tasks, const char *name)
{
    for (size_t i = 0; i < tasks->count; i++) {
        const struct det_json_value *task = tasks->items[i];
        if (is_named(view, task, name))
            return true;
    }
    return remote_find(&view->tree, name) != NULL;
}

/* An unknown name may be that of a group. */
static int check_name(struct view *view, const struct remote_list *tasks, const char *name)
{
    char hint[REMOTE_HINT_TEXT];
    int code = CLI_OK;

    if (!is_known(view, tasks, name) && !view->tree.is_read)
        code = remote_tree(&view->remote, &view->tree);
    if (code != CLI_OK || is_known(view, tasks, name))
        return code;
    cli_report_error(
        view->remote.cli, "there is no task or group '%s'%s", name,
        remote_hint(view->remote.cli, &view->tree, name, hint));
    return CLI_NOT_FOUND;
}

static void add_row(struct table *table, const struct det_json_value *task, det_time now)
{
    int64_t process = det_json_get_signed(task, "process");
    int64_t restarts = det_json_get_signed(task, "restarts");

    table_add(table, CLI_BOLD, "%s", show_text(task, "name"));
    show_state_cell(table, show_task_state(task));
    show_age_cell(table, task, now);
    table_add(table, CLI_PLAIN, "%lld", (long long)det_json_get_signed(task, "attempt"));
    table_add(table, restarts ? CLI_YELLOW : CLI_PLAIN, "%lld", (long long)restarts);
    if (process)
        table_add(table, CLI_PLAIN, "%lld", (long long)process);
    else
        table_add(table, CLI_PLAIN, "%s", "");
    show_next_cell(table, task, now);
    table_add(table, CLI_PLAIN, "%s", show_text(task, "group"));
    table_add(table, CLI_PLAIN, "%s", show_text(task, "slot"));
    show_why_cell(table, task);
}

/* Erases the previous table, to replace it. */
static void wipe(const struct view *view)
{
    char text[64];
    int size;

    if (view->lines == 0)
        return;
    size = snprintf(text, sizeof text, "\033[%zuA\033[J", view->lines);
    cli_write(view->remote.cli, text, (size_t)size);
}

static void print_table(struct view *view, const struct remote_list *tasks)
{
    struct cli *cli = view->remote.cli;
    det_time now = det_world_now(cli->world, DET_CLOCK_WALL);
    bool is_replaced = view->args->values[OPTION_WATCH] && cli->out_is_terminal;
    struct table table;
    size_t lines;

    table_init(&table, cli, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < tasks->count; i++) {
        const struct det_json_value *task = tasks->items[i];
        if (is_wanted(view, task))
            add_row(&table, task, now);
    }
    if (is_replaced)
        wipe(view);
    else if (view->tasks.is_read)
        cli_print(cli, "\n");
    lines = table_print(&table, is_replaced && cli->out_rows ? cli->out_rows - 1 : 0);
    view->lines = is_replaced ? lines : 0;
    table_deinit(&table);
}

/* JSON has only the tasks that have changed. */
static void print_changes(struct view *view, const struct remote_list *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        const struct det_json_value *task = tasks->items[i];
        const struct det_json_value *before = remote_find(&view->tasks, show_text(task, "name"));

        if (is_wanted(view, task) && !(before && det_view_equal(before->raw, task->raw)))
            cli_print_value(view->remote.cli, task);
    }
}

static bool are_as_shown(const struct view *view, const struct remote_list *tasks)
{
    bool are_same = view->tasks.is_read && view->tasks.count == tasks->count;

    for (size_t i = 0; are_same && i < tasks->count; i++)
        are_same = det_view_equal(view->tasks.items[i]->raw, tasks->items[i]->raw);
    return are_same;
}

static void print(struct view *view, const struct remote_list *tasks)
{
    struct cli *cli = view->remote.cli;

    if (cli->is_json)
        print_changes(view, tasks);
    else if (!has_wanted(view, tasks) && !view->tasks.is_read)
        cli_print_error(cli, "There are no tasks.\n");
    else if (cli->out_is_terminal || !are_as_shown(view, tasks))
        print_table(view, tasks);
    cli_flush(cli);
}

static int show_once(struct view *view)
{
    struct remote_list tasks;
    int code = remote_list(&view->remote, "/v1/tasks", &tasks);

    for (size_t i = 0; tasks.is_read && i < view->args->operand_count && !view->tasks.is_read;
         i++) {
        int missing = check_name(view, &tasks, view->args->operands[i]);

        code = missing != CLI_OK ? missing : code;
    }
    if (tasks.is_read && (code == CLI_OK || has_wanted(view, &tasks))) {
        print(view, &tasks);
        remote_list_free(&view->tasks);
        view->tasks = tasks;
    } else {
        remote_list_free(&tasks);
    }
    return code;
}

static int show_again(void *user)
{
    struct view *view = user;
    struct cli *cli = view->remote.cli;
    bool has_ages = cli->out_is_terminal && !cli->is_json;

    view->shown_at = remote_within(0);
    view->stream.deadline = has_ages ? view->shown_at + WATCH_EVERY : DET_NEVER;
    cli_measure(cli);
    return show_once(view);
}

static int note_event(void *user, const struct det_json_value *event)
{
    struct view *view = user;

    (void)event;
    view->stream.deadline = view->shown_at + WATCH_LEAST;
    return CLI_OK;
}

static int watch(struct view *view)
{
    struct remote events;
    int code = remote_open(view->remote.cli, view->remote.project, &events);

    if (code != CLI_OK)
        return code;
    view->remote.follows = true;
    view->stream = (struct remote_stream){ .path = "/v1/task-events?follow=true&new=true",
                                           .each = note_event,
                                           .on_time = show_again,
                                           .user = view };
    code = remote_follow(&events, &view->stream);
    remote_close(&events);
    return view->remote.has_ended ? remote_report_end(&view->remote) : code;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct view view = { .args = args };
    int code = remote_open(cli, args->values[OPTION_PROJECT], &view.remote);

    if (code != CLI_OK)
        return code;
    code = args->values[OPTION_WATCH] ? watch(&view) : show_once(&view);
    remote_list_free(&view.tasks);
    remote_list_free(&view.tree);
    remote_close(&view.remote);
    return code;
}

extern const struct cli_command cli_command_tasks;
const struct cli_command cli_command_tasks = {
    .name = "tasks",
    .summary = "show the tasks of the running daemon",
    .about = "Prints one line per task, or only for those named, by task, group or slot. A task\n"
             "is starting until it is ready, then running; in backoff after a failure until its\n"
             "next attempt; resting until its next run; held while it waits for other tasks.\n"
             "\n"
             "With --watch it updates the table on every change; if the output is not a\n"
             "terminal, it prints only the changes.",
    .operand = { .form = "[NAME...]", .most = CLI_OPERANDS_ANY, .names = "tree" },
    .options = option_table,
    .run = run_command,
};
