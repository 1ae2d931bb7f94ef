/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_print.c - prints one worker of the running daemon. */
#include "client/worker_print.h"

const struct cli_option worker_show_options[] = {
    [WORKER_OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

static void print_members(
    struct cli *cli, const struct det_json_value *worker, const char *kind,
    const char *const *members)
{
    static const char *const always[] = { "id",    "path",   "worker_kind", "state",
                                          "phase", "reason", "degraded_by", NULL };
    const char *const *lists[] = { always, members };
    struct det_json_writer json;

    cli_json_begin(cli, &json, NULL);
    det_json_text(&json, "kind", kind);
    for (size_t i = 0; i < 2; i++) {
        for (const char *const *name = lists[i]; *name; name++) {
            const struct det_json_value *value = det_json_get(worker, *name);

            if (value)
                det_json_copy(&json, *name, value);
        }
    }
    cli_json_end(cli, &json);
}

void worker_path(struct det_buffer *path, const char *id, const char *rest)
{
    char part[2] = "";

    det_buffer_append_text(path, "/v1/workers/");
    for (; *id; id++) {
        *part = *id;
        if (*part == '/')
            *part = '~';
        daemon_path_add(path, part);
    }
    det_buffer_append_text(path, rest);
}

int worker_show(
    struct cli *cli, const struct cli_args *args, const char *kind, const char *const *members,
    worker_show_fn *print)
{
    const struct det_json_value *worker = NULL;
    struct det_buffer path;
    struct remote remote;
    int code = remote_open(cli, args->values[WORKER_OPTION_PROJECT], &remote);

    if (code != CLI_OK)
        return code;
    det_buffer_init(&path, cli->allocator);
    worker_path(&path, args->operands[0], "");
    code = remote_call(&remote, "GET", daemon_path_text(&path), NULL, REMOTE_PATIENCE, &worker);
    det_buffer_deinit(&path);
    if (code == CLI_OK && cli->is_json)
        print_members(cli, worker, kind, members);
    else if (code == CLI_OK)
        print(cli, worker);
    remote_close(&remote);
    return code;
}

void worker_show_head(struct cli *cli, const struct det_json_value *worker)
{
    struct show_state state = show_worker_state(worker);
    det_time now = det_world_now(cli->world, DET_CLOCK_WALL),
             since = det_json_get_time(worker, "since");
    const char *reason = show_text(worker, "reason"), *degraded = show_text(worker, "degraded_by");
    char span[SHOW_SPAN_TEXT];

    cli_print_in(cli, CLI_BOLD, "%s", show_text(worker, "id"));
    cli_print(cli, " (%s): ", show_text(worker, "worker_kind"));
    cli_print_in(cli, state.style, "%s", state.word);
    cli_print(cli, " for %s%s%s\n", show_span(now - since, span), *reason ? ": " : "", reason);
    if (*degraded)
        cli_print_in(cli, CLI_RED, "degraded: %s\n", degraded);
}

void worker_show_cell(struct table *table, enum cli_style style, const struct det_json_value *value)
{
    const char *text = det_json_value_text(value);
    struct det_json_writer json;

    det_json_writer_init(&json, table->cli->allocator);
    if (!text && value && value->kind != DET_JSON_NULL)
        det_json_copy(&json, NULL, value);
    if (det_buffer_status(&json.text) < 0)
        table->cli->has_failed = true;
    table_add(table, style, "%s", text ? text : det_buffer_text(&json.text));
    det_json_writer_deinit(&json);
}
