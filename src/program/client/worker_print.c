/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_print.c - one worker of a detent that is up. */
#include "client/worker_print.h"

#include <stdlib.h>

const struct cli_option worker_show_options[] = {
    [WORKER_OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

static json_t *some_of(const json_t *worker, const char *kind, const char *const *members)
{
    static const char *const always[] = { "id",    "path",   "worker_kind", "state",
                                          "phase", "reason", "degraded_by", NULL };
    const char *const *lists[] = { always, members };
    json_t *object = json_pack("{s:s}", "kind", kind);

    for (size_t i = 0; object && i < 2; i++) {
        for (const char *const *name = lists[i]; *name; name++) {
            json_t *value = json_object_get(worker, *name);

            if (value && json_object_set(object, *name, value) < 0) {
                json_decref(object);
                return NULL;
            }
        }
    }
    return object;
}

void worker_path(struct det_buffer *path, const char *id, const char *rest)
{
    char part[2] = "";

    det_buffer_append_text(path, "/v1/workers/");
    for (; *id; id++) {
        *part = *id == '/' ? '~' : *id;
        daemon_path_add(path, part);
    }
    det_buffer_append_text(path, rest);
}

int worker_show(
    struct cli *cli, const struct cli_args *args, const char *kind, const char *const *members,
    void (*print)(struct cli *cli, const json_t *worker))
{
    struct det_error error = { 0 };
    struct remote remote;
    json_t *worker = NULL;
    struct det_buffer path;
    int code = remote_open(cli, args->values[WORKER_OPTION_PROJECT], &remote), r;

    if (code != CLI_OK)
        return code;
    det_buffer_init(&path, cli->allocator);
    worker_path(&path, args->operands[0], "");
    r = daemon_client_call(
        remote.client, "GET", daemon_path_text(&path), NULL, REMOTE_PATIENCE, &worker, &error);
    det_buffer_deinit(&path);
    if (r < 0)
        code = remote_complain(&remote, r, &error);
    else if (cli->is_json)
        cli_json(cli, some_of(worker, kind, members));
    else
        print(cli, worker);
    json_decref(worker);
    remote_close(&remote);
    return code;
}

void worker_show_head(struct cli *cli, const json_t *worker)
{
    struct show_state state = show_worker_state(worker);
    det_time now = det_world_now(cli->world, DET_CLOCK_WALL), since = show_time(worker, "since");
    const char *reason = show_text(worker, "reason"), *degraded = show_text(worker, "degraded_by");
    char span[SHOW_SPAN_TEXT];

    cli_print_in(cli, CLI_BOLD, "%s", show_text(worker, "id"));
    cli_print(cli, " (%s): ", show_text(worker, "worker_kind"));
    cli_print_in(cli, state.style, "%s", state.word);
    cli_print(cli, " for %s%s%s\n", show_span(now - since, span), *reason ? ": " : "", reason);
    if (*degraded)
        cli_print_in(cli, CLI_RED, "not as it should be: %s\n", degraded);
}

void worker_show_cell(struct table *table, enum cli_style style, const json_t *value)
{
    char *text;

    if (!value || json_is_null(value)) {
        table_add(table, style, "%s", "");
        return;
    }
    if (json_is_string(value)) {
        table_add(table, style, "%s", json_string_value(value));
        return;
    }
    text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (!text)
        table->cli->has_failed = true;
    table_add(table, style, "%s", text ? text : "");
    free(text);
}
