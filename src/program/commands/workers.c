/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers.c - `detent workers`: shows the workers of the running daemon as a tree.
 *
 *     worker      kind         state      phase    for  seen  why
 *     plant       application  running    running   2m        3 of 3 well
 *     |- press    link         up         running   2m  0.4s  connected to 10.0.0.7
 *     `- hello    helloworld   running    running   2m  0.2s  said */
#include <string.h>

#include "base/memory.h"
#include "client/worker_print.h"
#include "inspect/print_tasks.h"

/* Maximum depth of a supervisor. */
#define DEPTH_MAX 32

enum { OPTION_HISTORY, OPTION_PROJECT };

static const struct cli_option option_table[] = {
    [OPTION_HISTORY] = { "history", 0, NULL, NULL,
                         "of ID: show its last changes of state and ends of actions" },
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

/* Appends the path of the list, or of the history. */
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

static size_t depth_of(const struct det_json_value *worker, int64_t top)
{
    int64_t depth = det_json_get_signed(worker, "depth") - top;

    return depth < 0 ? 0 : depth < DEPTH_MAX ? (size_t)depth : DEPTH_MAX - 1;
}

/* Finds out for each worker whether another one follows on its level. */
static void find_ends(const struct remote_list *all, int64_t top, bool *follows)
{
    bool *last[DEPTH_MAX] = { NULL };

    for (size_t i = 0; i < all->count; i++) {
        const struct det_json_value *worker = all->items[i];
        size_t depth = depth_of(worker, top);

        if (last[depth])
            *last[depth] = true;
        last[depth] = &follows[i];
        for (size_t j = depth + 1; j < DEPTH_MAX; j++)
            last[j] = NULL;
    }
}

/* Adds the age of the observation; a stale or missing one is highlighted. */
static void add_seen(struct table *table, const struct det_json_value *worker, det_time now)
{
    const char *freshness = show_text(worker, "freshness");
    det_time at = det_json_get_time(worker, "observed_at");
    char span[SHOW_SPAN_TEXT];

    if (strcmp(freshness, "never") == 0)
        table_add(table, CLI_FAINT, "never");
    else if (strcmp(freshness, "stale") == 0)
        table_add(table, CLI_RED, "%s", show_span(now - at, span));
    else
        table_add(table, CLI_PLAIN, "%s", at ? show_span(now - at, span) : "");
}

static void add_why(struct table *table, const struct det_json_value *worker)
{
    const char *reason = show_text(worker, "reason");
    const char *degraded = show_text(worker, "degraded_by");

    if (*degraded)
        table_add(table, CLI_RED, "%s", degraded);
    else if (det_json_get_bool(worker, "circuit_open"))
        table_add(table, CLI_RED, "paused, circuit open: %s", reason);
    else if (det_json_get_bool(worker, "disabled"))
        table_add(table, CLI_FAINT, "disabled%s%s", *reason ? ": " : "", reason);
    else
        table_add(table, CLI_PLAIN, "%s", reason);
}

static void add_rows(
    struct table *table, const struct remote_list *all, int64_t top, const bool *follows)
{
    det_time now = det_world_now(table->cli->world, DET_CLOCK_WALL);
    bool goes_on[DEPTH_MAX] = { false };

    for (size_t i = 0; i < all->count; i++) {
        const struct det_json_value *worker = all->items[i];
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
    struct remote_list all;
    struct table table;
    int code = remote_list(remote, path, &all);
    size_t count = all.count + 1;
    bool *follows = DET_NEW_ARRAY(remote->cli->allocator, count, bool);
    int64_t top = all.count ? det_json_get_signed(all.items[0], "depth") : 0;

    if (code == CLI_OK && !follows)
        code = cli_no_memory(remote->cli);
    if (code == CLI_OK) {
        find_ends(&all, top, follows);
        table_init(&table, remote->cli, columns, sizeof columns / sizeof *columns);
        add_rows(&table, &all, top, follows);
        table_print(&table, 0);
        table_deinit(&table);
    }
    DET_DELETE_ARRAY(remote->cli->allocator, follows, count);
    remote_list_free(&all);
    return code;
}

/* The history of a worker. */

static void add_happened(struct table *table, const struct det_json_value *row, det_time now)
{
    const char *action = show_text(row, "action"), *result = show_text(row, "result");
    bool has_failed = *result && strcmp(result, "OK") != 0;
    det_time at = det_json_get_time(row, "at");
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
    static const struct remote_table form = { columns, sizeof columns / sizeof *columns,
                                              add_happened, "There is no history yet." };

    return remote_print_table(remote, path, &form);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    bool is_history = args->values[OPTION_HISTORY] != NULL;
    struct det_buffer path;
    struct remote remote;
    int code;

    if (is_history && !args->operand_count) {
        cli_report_error(cli, "--history needs a worker: detent workers ID --history");
        return CLI_USAGE;
    }
    code = remote_open(cli, args->values[OPTION_PROJECT], &remote);
    if (code != CLI_OK)
        return code;
    det_buffer_init(&path, cli->allocator);
    append_path(&path, args);
    if (det_buffer_status(&path) < 0)
        code = cli_no_memory(cli);
    else if (is_history)
        code = print_history(&remote, daemon_path_text(&path));
    else if (cli->is_json)
        code = remote_print(&remote, daemon_path_text(&path));
    else
        code = print_tree(&remote, daemon_path_text(&path));
    det_buffer_deinit(&path);
    remote_close(&remote);
    return code;
}

extern const struct cli_command cli_command_workers;
const struct cli_command cli_command_workers = {
    .name = "workers",
    .summary = "show the workers of the running daemon as a tree",
    .about = "Prints each worker with its kind, its state and phase, the time in that state, the\n"
             "age of its last observation, and the reason for its state. With an ID, prints only\n"
             "that worker and its descendants; an ID is the path of names from the root, with\n"
             "or without the root itself: plant/press or press.",
    .operand = { .form = "[ID]", .least = 0, .most = 1 },
    .options = option_table,
    .run = run_command,
};
