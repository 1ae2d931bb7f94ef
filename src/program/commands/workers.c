/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers.c - `detent workers`: the workers of a detent that is up, as a tree.
 *
 *     worker      kind         state      phase    for  seen  why
 *     plant       application  running    running   2m        3 of 3 well
 *     |- press    link         up         running   2m  0.4s  connected to 10.0.0.7
 *     `- hello    helloworld   running    running   2m  0.2s  said */
#include <string.h>

#include "base/memory.h"
#include "client/worker_print.h"
#include "inspect/print_tasks.h"

/* That a supervisor has at most. */
#define DEPTH_MAX 32

enum { OPTION_HISTORY, OPTION_PROJECT };

static const struct cli_option option_table[] = {
    [OPTION_HISTORY] = { "history", 0, NULL, NULL,
                         "of ID: its last changes of state and ends of actions" },
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

/* Where the list, or the history, is. */
static void append_path(struct det_buffer *path, const struct cli_args *args)
{
    const char *id = args->operand_count ? args->operands[0] : NULL;

    if (args->values[OPTION_HISTORY]) {
        worker_path(path, id, "/history");
        return;
    }
    det_buffer_append_text(path, "/v1/workers");
    if (id) {
        det_buffer_append_text(path, "?below=");
        daemon_path_add(path, id);
    }
}

/* The tree. */

static size_t depth_of(const json_t *worker, size_t top)
{
    json_int_t depth = show_number(worker, "depth") - (json_int_t)top;

    return depth < 0 ? 0 : depth < DEPTH_MAX ? (size_t)depth : DEPTH_MAX - 1;
}

/* Whether something follows on the level of each, seen from the end. */
static void find_ends(const json_t *all, size_t top, bool *follows)
{
    bool later[DEPTH_MAX] = { false };

    for (size_t i = json_array_size(all); i-- > 0;) {
        size_t depth = depth_of(json_array_get(all, i), top);

        follows[i] = later[depth];
        later[depth] = true;
        for (size_t j = depth + 1; j < DEPTH_MAX; j++)
            later[j] = false;
    }
}

/* How old its observation is; what is too old, or was never there, stands out. */
static void add_seen(struct table *table, const json_t *worker, det_time now)
{
    const char *freshness = show_text(worker, "freshness");
    det_time at = show_time(worker, "observed_at");
    char span[SHOW_SPAN_TEXT];

    if (strcmp(freshness, "never") == 0)
        table_add(table, CLI_FAINT, "never");
    else if (strcmp(freshness, "stale") == 0)
        table_add(table, CLI_RED, "%s", show_span(now - at, span));
    else
        table_add(table, CLI_PLAIN, "%s", at ? show_span(now - at, span) : "");
}

static void add_why(struct table *table, const json_t *worker)
{
    const char *reason = show_text(worker, "reason");
    const char *degraded = show_text(worker, "degraded_by");

    if (*degraded)
        table_add(table, CLI_RED, "%s", degraded);
    else if (json_is_true(json_object_get(worker, "circuit_open")))
        table_add(table, CLI_RED, "paused, as too much has failed: %s", reason);
    else if (json_is_true(json_object_get(worker, "disabled")))
        table_add(table, CLI_FAINT, "disabled%s%s", *reason ? ": " : "", reason);
    else
        table_add(table, CLI_PLAIN, "%s", reason);
}

static void add_rows(struct table *table, const json_t *all, const bool *follows, det_time now)
{
    size_t top = (size_t)show_number(json_array_get(all, 0), "depth");
    bool goes_on[DEPTH_MAX] = { false };

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *worker = json_array_get(all, i);
        size_t depth = depth_of(worker, top);

        goes_on[depth] = follows[i];
        table_add_branch(
            table, goes_on + 1, depth, show_text(worker, depth || top == 0 ? "name" : "id"));
        table_add(table, CLI_FAINT, "%s", show_text(worker, "worker_kind"));
        show_state_cell(table, show_worker_state(worker));
        table_add(table, show_worker_state(worker).style, "%s", show_text(worker, "phase"));
        show_age_cell(table, worker, now);
        add_seen(table, worker, now);
        add_why(table, worker);
    }
}

static int print_tree(struct remote *remote, const char *path)
{
    static const struct table_column columns[] = {
        { "worker", 0, false }, { "kind", 3, false }, { "state", 0, false }, { "phase", 2, false },
        { "for", 1, true },     { "seen", 4, true },  { "why", 0, false },
    };
    det_time now = det_world_now(remote->cli->world, DET_CLOCK_WALL);
    struct table table;
    json_t *all;
    bool *follows;
    int code = remote_list(remote, path, &all);
    size_t count;

    if (code != CLI_OK)
        return code;
    count = json_array_size(all);
    follows = DET_NEW_ARRAY(remote->cli->allocator, count + 1, bool);
    if (!follows) {
        json_decref(all);
        return cli_no_memory(remote->cli);
    }
    find_ends(all, (size_t)show_number(json_array_get(all, 0), "depth"), follows);
    table_init(&table, remote->cli, columns, sizeof columns / sizeof *columns);
    add_rows(&table, all, follows, now);
    table_print(&table, 0);
    table_deinit(&table);
    DET_DELETE_ARRAY(remote->cli->allocator, follows, count + 1);
    json_decref(all);
    return CLI_OK;
}

/* The history of one. */

static void add_happened(struct table *table, const json_t *row, det_time now)
{
    const char *action = show_text(row, "action"), *result = show_text(row, "result");
    bool has_failed = *result && strcmp(result, "OK") != 0;
    det_time at = show_time(row, "at");
    char span[SHOW_SPAN_TEXT];

    table_add(table, CLI_FAINT, "%s", at ? show_span(now - at, span) : "");
    if (*action)
        table_add(
            table, has_failed ? CLI_RED : CLI_PLAIN, "%s %s", action,
            has_failed ? "failed" : "done");
    else
        table_add(table, CLI_BOLD, "%s -> %s", show_text(row, "from"), show_text(row, "to"));
    table_add(table, CLI_PLAIN, "%s", show_text(row, "reason"));
}

static int print_history(struct remote *remote, const char *path)
{
    static const struct table_column columns[] = { { "ago", 0, true },
                                                   { "what", 0, false },
                                                   { "why", 0, false } };
    det_time now = det_world_now(remote->cli->world, DET_CLOCK_WALL);
    struct table table;
    json_t *all;
    int code = remote_list(remote, path, &all);

    if (code != CLI_OK)
        return code;
    table_init(&table, remote->cli, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < json_array_size(all); i++)
        add_happened(&table, json_array_get(all, i), now);
    if (json_array_size(all))
        table_print(&table, 0);
    else
        cli_say(remote->cli, "Nothing has happened to it yet.\n");
    table_deinit(&table);
    json_decref(all);
    return CLI_OK;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    bool is_history = args->values[OPTION_HISTORY] != NULL;
    struct det_buffer path;
    struct remote remote;
    int code;

    if (is_history && !args->operand_count) {
        cli_complain(cli, "whose history? detent workers ID --history");
        return CLI_USAGE;
    }
    code = remote_open(cli, args->values[OPTION_PROJECT], &remote);
    if (code != CLI_OK)
        return code;
    det_buffer_init(&path, cli->allocator);
    append_path(&path, args);
    if (det_buffer_status(&path) < 0)
        code = cli_no_memory(cli);
    else if (cli->is_json)
        code = remote_print(&remote, daemon_path_text(&path));
    else if (is_history)
        code = print_history(&remote, daemon_path_text(&path));
    else
        code = print_tree(&remote, daemon_path_text(&path));
    det_buffer_deinit(&path);
    remote_close(&remote);
    return code;
}

extern const struct cli_command cli_command_workers;
const struct cli_command cli_command_workers = {
    .name = "workers",
    .summary = "show the workers of a detent that is up as a tree",
    .about =
        "Each with its kind, its state and the phase of that, how long it is in it, how old its "
        "last\n"
        "observation is, and why it is there. With an ID only this one and those below it; the id "
        "is\n"
        "the names from the root to the worker, with or without that of the root: plant/press or "
        "press.",
    .operand = { .form = "[ID]", .least = 0, .most = 1 },
    .options = option_table,
    .run = run_command,
};
