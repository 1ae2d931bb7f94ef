/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tree.c - `detent tree`: groups and their tasks, as a tree.
 *
 *     shop            state    for  restarts     next  why
 *     |- back         running         1 of 5           rest-for-one, restarts within 10s
 *     |  |- database  running   2m         0
 *     |  `- web       backoff   1s         1  in 1.6s  exit code 1
 *     `- mail         running   2m         0
 *
 * The walk keeps a stack of its own, since how deep groups are nested is not ours to say. */
#include <string.h>

#include "base/memory.h"
#include "client/remote.h"
#include "inspect/print_tasks.h"

/* Groups within groups, as far as they are drawn. */
#define DEPTH_MAX 32

enum { OPTION_PROJECT };

static const struct cli_option option_table[] = {
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

struct drawing {
    struct cli *cli;
    const json_t *all; /* groups and tasks */
    struct table table;
    det_time now;
    /* On each level where the walk stands, and whether something follows there. */
    size_t at[DEPTH_MAX];
    const char *parents[DEPTH_MAX];
    bool goes_on[DEPTH_MAX];
    size_t depth;
};

static bool is_group(const json_t *object)
{
    return strcmp(show_text(object, "kind"), "group") == 0;
}

static const char *parent_of(const json_t *object)
{
    return show_text(object, is_group(object) ? "parent" : "group");
}

/* The next child of this parent from `from` on; the size of the list when there is none. */
static size_t next_child(const struct drawing *drawing, const char *parent, size_t from)
{
    size_t count = json_array_size(drawing->all);

    while (from < count && strcmp(parent_of(json_array_get(drawing->all, from)), parent) != 0)
        from++;
    return from;
}

static void add_name(struct drawing *drawing, const char *name)
{
    table_add_branch(&drawing->table, drawing->goes_on, drawing->depth, name);
}

static void add_group(struct drawing *drawing, const json_t *group)
{
    struct table *table = &drawing->table;
    json_int_t restarts = show_number(group, "restarts");
    const char *reason = show_text(group, "reason");
    enum cli_style style = show_group_state(group).style;
    char window[SHOW_SPAN_TEXT];

    add_name(drawing, show_text(group, "name"));
    show_state_cell(table, show_group_state(group));
    table_add(table, CLI_PLAIN, "%s", "");
    table_add(
        table, restarts ? CLI_YELLOW : CLI_PLAIN, "%lld of %lld", (long long)restarts,
        (long long)show_number(group, "restarts_max"));
    table_add(table, CLI_PLAIN, "%s", "");
    table_add(table, CLI_PLAIN, "%s", "");
    /* What was stopped by hand has an old reason, if any. */
    if (*reason && (style == CLI_RED || style == CLI_YELLOW))
        table_add(table, CLI_PLAIN, "%s", reason);
    else
        table_add(
            table, CLI_FAINT, "%s, restarts within %s", show_text(group, "strategy"),
            show_span(show_number(group, "window_ns"), window));
}

static void add_task(struct drawing *drawing, const json_t *task)
{
    struct table *table = &drawing->table;
    json_int_t restarts = show_number(task, "restarts");

    add_name(drawing, show_text(task, "name"));
    show_state_cell(table, show_task_state(task));
    show_age_cell(table, task, drawing->now);
    table_add(table, restarts ? CLI_YELLOW : CLI_PLAIN, "%lld", (long long)restarts);
    show_next_cell(table, task, drawing->now);
    table_add(table, CLI_PLAIN, "%s", show_text(task, "slot"));
    show_why_cell(table, task);
}

static void descend(struct drawing *drawing, const char *parent)
{
    drawing->parents[drawing->depth] = parent;
    drawing->at[drawing->depth++] = next_child(drawing, parent, 0);
}

static void draw(struct drawing *drawing)
{
    size_t count = json_array_size(drawing->all);

    descend(drawing, "");
    while (drawing->depth > 0) {
        size_t level = drawing->depth - 1, at = drawing->at[level];
        const json_t *object = json_array_get(drawing->all, at);

        if (at == count) {
            drawing->depth--;
            continue;
        }
        drawing->at[level] = next_child(drawing, drawing->parents[level], at + 1);
        drawing->goes_on[level] = drawing->at[level] < count;
        if (!is_group(object)) {
            add_task(drawing, object);
            continue;
        }
        add_group(drawing, object);
        if (drawing->depth < DEPTH_MAX)
            descend(drawing, show_text(object, "name"));
    }
}

/* The last part of the path: the root of the tree. */
static const char *project_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static int print_tree(struct remote *remote)
{
    const struct table_column columns[] = {
        { project_name(remote->project), 0, false },
        { "state", 0, false },
        { "for", 1, true },
        { "restarts", 2, true },
        { "next", 0, true },
        { "slot", 3, false },
        { "why", 0, false },
    };
    struct drawing drawing = {
        .cli = remote->cli,
        .now = det_world_now(remote->cli->world, DET_CLOCK_WALL),
    };
    json_t *all;
    int code = remote_tree(remote, &all);

    if (code != CLI_OK)
        return code;
    drawing.all = all;
    table_init(&drawing.table, remote->cli, columns, sizeof columns / sizeof *columns);
    draw(&drawing);
    table_print(&drawing.table, 0);
    table_deinit(&drawing.table);
    json_decref(all);
    return CLI_OK;
}

static int print_objects(struct remote *remote)
{
    json_t *all, *object;
    size_t i;
    int code = remote_tree(remote, &all);

    if (code != CLI_OK)
        return code;
    json_array_foreach(all, i, object)
    {
        cli_json(remote->cli, json_incref(object));
    }
    json_decref(all);
    return CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct remote remote;
    int code = remote_open(cli, args->values[OPTION_PROJECT], &remote);

    if (code != CLI_OK)
        return code;
    code = cli->is_json ? print_objects(&remote) : print_tree(&remote);
    remote_close(&remote);
    return code;
}

extern const struct cli_command cli_command_tree;
const struct cli_command cli_command_tree = {
    .name = "tree",
    .summary = "show the groups and tasks of a detent that is up as a tree",
    .about =
        "Groups with their members below them, in the order in which they start. Of a group it "
        "shows\n"
        "how many of the restarts it may have in its window are used up, of a task how often it "
        "was\n"
        "started again.",
    .operand = { .form = "" },
    .options = option_table,
    .run = run_command,
};
