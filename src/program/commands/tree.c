/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tree.c - `detent tree`: shows groups and their tasks as a tree.
 *
 *     shop            state    for  restarts     next  why
 *     |- back         running         1 of 5           rest-for-one, restarts within 10s
 *     |  |- database  running   2m         0
 *     |  `- web       backoff   1s         1  in 1.6s  exit code 1
 *     `- mail         running   2m         0
 *
 * The walk uses its own stack, since the depth of groups is input. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "client/remote.h"
#include "inspect/print_tasks.h"

/* Deeper groups are not drawn. */
#define DEPTH_MAX 32

enum { OPTION_PROJECT };

static const struct cli_option option_table[] = {
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

struct drawing {
    struct cli *cli;
    struct remote_list all; /* groups and tasks */
    struct table table;
    det_time now;
    /* For each level, the position of the walk, and whether more entries follow. */
    size_t at[DEPTH_MAX];
    const char *parents[DEPTH_MAX];
    bool goes_on[DEPTH_MAX];
    size_t depth;
};

static bool is_group(const struct det_json_value *object)
{
    return strcmp(show_text(object, "kind"), "group") == 0;
}

static const char *parent_of(const struct det_json_value *object)
{
    return show_text(object, is_group(object) ? "parent" : "group");
}

/* Returns the next child of this parent from `from` on, or the size of the list. */
static size_t next_child(const struct drawing *drawing, const char *parent, size_t from)
{
    const struct remote_list *all = &drawing->all;

    while (from < all->count && strcmp(parent_of(all->items[from]), parent) != 0)
        from++;
    return from;
}

static void add_name(struct drawing *drawing, const char *name)
{
    table_add_branch(&drawing->table, drawing->goes_on, drawing->depth, name);
}

static void add_group(struct drawing *drawing, const struct det_json_value *group)
{
    struct table *table = &drawing->table;
    int64_t restarts = det_json_get_signed(group, "restarts");
    const char *reason = show_text(group, "reason");
    enum cli_style style = show_group_state(group).style;
    char window[SHOW_SPAN_TEXT];

    add_name(drawing, show_text(group, "name"));
    show_state_cell(table, show_group_state(group));
    table_add(table, CLI_PLAIN, "%s", "");
    table_add(
        table, restarts ? CLI_YELLOW : CLI_PLAIN, "%lld of %lld", (long long)restarts,
        (long long)det_json_get_signed(group, "restarts_max"));
    table_add(table, CLI_PLAIN, "%s", "");
    table_add(table, CLI_PLAIN, "%s", "");
    /* The reason of a manually stopped task would be an old one. */
    if (*reason && (style == CLI_RED || style == CLI_YELLOW))
        table_add(table, CLI_PLAIN, "%s", reason);
    else
        table_add(
            table, CLI_FAINT, "%s, restarts within %s", show_text(group, "strategy"),
            show_span(det_json_get_signed(group, "window_ns"), window));
}

static void add_task(struct drawing *drawing, const struct det_json_value *task)
{
    struct table *table = &drawing->table;
    int64_t restarts = det_json_get_signed(task, "restarts");

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
    det_assert(drawing->depth < DEPTH_MAX);
    drawing->parents[drawing->depth] = parent;
    drawing->at[drawing->depth++] = next_child(drawing, parent, 0);
}

static void draw(struct drawing *drawing)
{
    descend(drawing, "");
    while (drawing->depth > 0) {
        size_t level = drawing->depth - 1, at = drawing->at[level];
        const struct det_json_value *object;

        if (at == drawing->all.count) {
            drawing->depth--;
            continue;
        }
        drawing->at[level] = next_child(drawing, drawing->parents[level], at + 1);
        drawing->goes_on[level] = drawing->at[level] < drawing->all.count;
        object = drawing->all.items[at];
        if (!is_group(object)) {
            add_task(drawing, object);
            continue;
        }
        add_group(drawing, object);
        if (drawing->depth < DEPTH_MAX)
            descend(drawing, show_text(object, "name"));
    }
}

/* Returns the last part of the path: the root of the tree. */
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
    int code = remote_tree(remote, &drawing.all);

    if (code == CLI_OK) {
        table_init(&drawing.table, remote->cli, columns, sizeof columns / sizeof *columns);
        draw(&drawing);
        table_print(&drawing.table, 0);
        table_deinit(&drawing.table);
    }
    remote_list_free(&drawing.all);
    return code;
}

static int print_objects(struct remote *remote)
{
    struct remote_list all;
    int code = remote_tree(remote, &all);

    for (size_t i = 0; i < all.count; i++)
        cli_print_value(remote->cli, all.items[i]);
    remote_list_free(&all);
    return code;
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
    .summary = "show the groups and tasks of the running daemon as a tree",
    .about = "Prints groups with their members below them, in the order in which they start. A\n"
             "group shows how many of the restarts permitted in its window are used, a task how\n"
             "often it was restarted.",
    .operand = { .form = "" },
    .options = option_table,
    .run = run_command,
};
