/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tasks.c - `detent tasks`: the tasks of a detent that is up, once or for as long as one looks. */
#include <string.h>

#include "client/remote.h"
#include "inspect/print_tasks.h"

/* Ages go on by themselves; what happens is shown at once, but not more often than this. */
#define WATCH_EVERY DET_SECOND
#define WATCH_LEAST (100 * DET_MILLISECOND)

enum { OPTION_WATCH, OPTION_PROJECT };

static const struct cli_option option_table[] = {
    [OPTION_WATCH] = { "watch", 'w', NULL, NULL, "go on, and show what changes" },
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

static const struct table_column columns[] = {
    { "task", 0, false },    { "state", 0, false },  { "for", 2, true },  { "attempt", 5, true },
    { "restarts", 3, true }, { "process", 4, true }, { "next", 0, true }, { "group", 6, false },
    { "slot", 7, false },    { "why", 0, false },
};

/* What is looked at. */
struct view {
    struct remote remote;
    const struct cli_args *args;
    json_t *tree;  /* for the groups within groups; NULL: nobody has asked for one */
    json_t *tasks; /* as they were shown last; NULL: not yet */
    size_t lines;  /* that this took on the terminal */
};

/* By its own name, or by that of its slot or of a group it is in. */
static bool is_named(const struct view *view, const json_t *task, const char *name)
{
    return strcmp(show_text(task, "name"), name) == 0 ||
           strcmp(show_text(task, "slot"), name) == 0 || remote_is_in_group(view->tree, task, name);
}

/* Without names all of them. */
static bool is_wanted(const struct view *view, const json_t *task)
{
    for (size_t i = 0; i < view->args->operand_count; i++) {
        if (is_named(view, task, view->args->operands[i]))
            return true;
    }
    return view->args->operand_count == 0;
}

static bool has_wanted(const struct view *view, const json_t *tasks)
{
    for (size_t i = 0; i < json_array_size(tasks); i++) {
        if (is_wanted(view, json_array_get(tasks, i)))
            return true;
    }
    return false;
}

static bool is_known(const struct view *view, const json_t *tasks, const char *name)
{
    for (size_t i = 0; i < json_array_size(tasks); i++) {
        if (is_named(view, json_array_get(tasks, i), name))
            return true;
    }
    return remote_find(view->tree, name) != NULL;
}

/* Names that say nothing by themselves may be those of groups. */
static int check_name(struct view *view, const json_t *tasks, const char *name)
{
    char hint[REMOTE_HINT_TEXT];
    int code = CLI_OK;

    if (!is_known(view, tasks, name) && !view->tree)
        code = remote_tree(&view->remote, &view->tree);
    if (code != CLI_OK || is_known(view, tasks, name))
        return code;
    cli_complain(
        view->remote.cli, "there is no task or group '%s'%s", name,
        remote_hint(view->remote.cli, view->tree, name, hint));
    return CLI_NOT_FOUND;
}

static void add_row(struct table *table, const json_t *task, det_time now)
{
    json_int_t process = show_number(task, "process"), restarts = show_number(task, "restarts");

    table_add(table, CLI_BOLD, "%s", show_text(task, "name"));
    show_state_cell(table, show_task_state(task));
    show_age_cell(table, task, now);
    table_add(table, CLI_PLAIN, "%lld", (long long)show_number(task, "attempt"));
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

/* Where the table was, if it is to be replaced. */
static void wipe(const struct view *view)
{
    char text[64];
    int size;

    if (view->lines == 0)
        return;
    size = snprintf(text, sizeof text, "\033[%zuA\033[J", view->lines);
    cli_write(view->remote.cli, text, (size_t)size);
}

static void print_table(struct view *view, const json_t *tasks)
{
    struct cli *cli = view->remote.cli;
    det_time now = det_world_now(cli->world, DET_CLOCK_WALL);
    bool is_replaced = view->args->values[OPTION_WATCH] && cli->out_is_terminal;
    struct table table;
    size_t lines;

    table_init(&table, cli, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_array_size(tasks); i++) {
        if (is_wanted(view, json_array_get(tasks, i)))
            add_row(&table, json_array_get(tasks, i), now);
    }
    if (is_replaced)
        wipe(view);
    else if (view->tasks)
        cli_print(cli, "\n");
    lines = table_print(&table, is_replaced && cli->out_rows ? cli->out_rows - 1 : 0);
    view->lines = is_replaced ? lines : 0;
    table_deinit(&table);
}

/* As data only those that are not as they were. */
static void print_changes(struct view *view, const json_t *tasks)
{
    for (size_t i = 0; i < json_array_size(tasks); i++) {
        json_t *task = json_array_get(tasks, i);
        const json_t *before =
            view->tasks ? remote_find(view->tasks, show_text(task, "name")) : NULL;

        if (is_wanted(view, task) && !(before && json_equal(before, task)))
            cli_json(view->remote.cli, json_incref(task));
    }
}

static void print(struct view *view, json_t *tasks_take)
{
    struct cli *cli = view->remote.cli;

    if (cli->is_json)
        print_changes(view, tasks_take);
    else if (!has_wanted(view, tasks_take) && !view->tasks)
        cli_say(cli, "There are no tasks.\n");
    else if (cli->out_is_terminal || !view->tasks || !json_equal(view->tasks, tasks_take))
        print_table(view, tasks_take);
    cli_flush(cli);
    json_decref(view->tasks);
    view->tasks = tasks_take;
}

static int show_once(struct view *view)
{
    json_t *tasks;
    int code = remote_list(&view->remote, "/v1/tasks", &tasks);

    if (code != CLI_OK)
        return code;
    for (size_t i = 0; i < view->args->operand_count && !view->tasks; i++) {
        int missing = check_name(view, tasks, view->args->operands[i]);

        code = missing != CLI_OK ? missing : code;
    }
    if (code == CLI_OK || has_wanted(view, tasks))
        print(view, tasks);
    else
        json_decref(tasks);
    return code;
}

/* Until something has happened or time has passed, and then until it is time to look again: 1, or
 * 0 when there will be no more, or an error. */
static int wait_for_change(
    struct view *view, struct daemon_client *events, det_time shown_at, struct det_error *reterr)
{
    bool has_ages = view->remote.cli->out_is_terminal && !view->remote.cli->is_json;
    det_time deadline = has_ages ? shown_at + WATCH_EVERY : DET_NEVER;
    json_t *event = NULL;
    int r;

    for (;;) {
        r = daemon_client_next(events, deadline, &event, reterr);
        if (r <= 0)
            return r == DET_ERR_TIMEOUT ? 1 : r;
        json_decref(event);
        deadline = shown_at + WATCH_LEAST;
    }
}

/* Looks again and again; `events` tells when. */
static int watch_by(struct view *view, struct remote *events)
{
    struct det_error error = { 0 };
    int code = CLI_OK, r;

    r = daemon_client_ask(
        events->client, "GET", "/v1/task-events?follow=true&new=true", NULL, &error);
    while (r >= 0) {
        det_time shown_at = remote_within(0);

        cli_measure(view->remote.cli);
        code = show_once(view);
        if (code != CLI_OK || cli_is_stopped(view->remote.cli))
            return code;
        r = wait_for_change(view, events->client, shown_at, &error);
        if (r == 0)
            return CLI_OK;
    }
    return remote_complain(events, r, &error);
}

static int watch(struct view *view)
{
    struct cli *cli = view->remote.cli;
    struct remote events;
    int code = remote_open(cli, view->remote.project, &events);

    if (code != CLI_OK)
        return code;
    view->remote.follows = events.follows = true;
    code = watch_by(view, &events);
    remote_close(&events);
    if (!view->remote.has_ended && !events.has_ended)
        return code;
    cli_say(cli, "The detent that ran here has ended.\n");
    return CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct view view = { .args = args };
    int code = remote_open(cli, args->values[OPTION_PROJECT], &view.remote);

    if (code != CLI_OK)
        return code;
    code = args->values[OPTION_WATCH] ? watch(&view) : show_once(&view);
    json_decref(view.tasks);
    json_decref(view.tree);
    remote_close(&view.remote);
    return code;
}

extern const struct cli_command cli_command_tasks;
const struct cli_command cli_command_tasks = {
    .name = "tasks",
    .summary = "show the tasks of a detent that is up",
    .about =
        "One line for each task, or for those that are named: by their own name, or by that of "
        "their\n"
        "group or slot. A task is starting until it is ready, then running; in backoff after a "
        "failure\n"
        "until its next attempt; resting until its next time; held while it waits for others.\n"
        "\n"
        "--watch shows the table anew whenever something happens; where the output is no terminal "
        "it\n"
        "prints what has changed.",
    .operand = { .form = "[NAME...]", .most = CLI_OPERANDS_ANY, .names = "tree" },
    .options = option_table,
    .run = run_command,
};
