/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* remote.c - requests to the running daemon, for commands. */
#include "client/remote.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "inspect/print_tasks.h"
#include "terminal/input.h"

int remote_report_error(struct remote *remote, int code, const struct det_error *error)
{
    if (code == DET_ERR_CLOSED && remote->follows)
        remote->has_ended = true;
    else if (code != DET_ERR_CANCELLED || !cli_is_interrupted())
        cli_report_error(remote->cli, "%s", error->text);
    return cli_exit_of(code);
}

det_time remote_within(det_time patience)
{
    return det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + patience;
}

/* Uses a named folder itself, without searching its parents. */
static int find_named(const char *project, char *target, struct det_error *reterr)
{
    char *path = realpath(project, NULL);
    bool fits = path && det_text_copy(target, DET_PATH_MAX, path);

    free(path);
    if (fits)
        return 0;
    return det_error_set(
        reterr, DET_ERR_NOT_FOUND,
        "%.200s: there is no such folder; --project needs the folder of a "
        "detent.yaml",
        project);
}

int remote_open(struct cli *cli, const char *project, struct remote *ret)
{
    struct det_error error = { 0 };
    int r;

    *ret = (struct remote){ .cli = cli };
    if (project)
        r = find_named(project, ret->project, &error);
    else
        r = socket_find(".", ret->project, &error);
    if (r == 0)
        r = daemon_client_open(ret->project, cli->allocator, &ret->client, &error);
    return r < 0 ? remote_report_error(ret, r, &error) : CLI_OK;
}

void remote_close(struct remote *remote)
{
    daemon_client_close(remote->client);
    remote->client = NULL;
}

/* Passes each part of an answer to the stream, until its exit code is not CLI_OK. Returns 0 or an
 * error. Values live in `keep`; NULL: until the next part. */
static int read_parts(
    struct remote *remote, struct remote_stream *stream, struct det_arena *keep, int *ret_exit,
    struct det_error *reterr)
{
    bool goes_on = stream->on_time || stream->deadline == DET_NEVER;
    const struct det_json_value *data = NULL;
    int r;

    *ret_exit = CLI_OK;
    r = daemon_client_ask(remote->client, "GET", stream->path, NULL, NULL, reterr);
    if (r == 0 && keep)
        daemon_client_keep(remote->client, keep);
    while (r >= 0 && *ret_exit == CLI_OK && !(goes_on && cli_is_stopped(remote->cli))) {
        r = daemon_client_next(remote->client, stream->deadline, &data, reterr);
        if (r == 0)
            return 0;
        if (r == DET_ERR_TIMEOUT && stream->on_time) {
            *ret_exit = stream->on_time(stream->user);
            r = 0;
        } else if (r > 0) {
            *ret_exit = stream->each(stream->user, data);
        }
    }
    return r < 0 ? r : 0;
}

static int read_all(
    struct remote *remote, const char *path, struct det_arena *keep, remote_each_fn *each,
    void *user)
{
    struct remote_stream stream = {
        .path = path, .each = each, .deadline = remote_within(REMOTE_PATIENCE), .user = user
    };
    struct det_error error = { 0 };
    int code, r;

    r = read_parts(remote, &stream, keep, &code, &error);
    return r < 0 ? remote_report_error(remote, r, &error) : code;
}

int remote_each(struct remote *remote, const char *path, remote_each_fn *each, void *user)
{
    return read_all(remote, path, NULL, each, user);
}

int remote_follow(struct remote *remote, struct remote_stream *stream)
{
    struct det_error error = { 0 };
    int code, r;

    r = read_parts(remote, stream, NULL, &code, &error);
    if (r == DET_ERR_CLOSED)
        return remote_report_end(remote);
    return r < 0 ? remote_report_error(remote, r, &error) : code;
}

int remote_report_end(struct remote *remote)
{
    struct daemon_client *again = NULL;

    if (daemon_client_open(remote->project, remote->cli->allocator, &again, NULL) < 0) {
        cli_print_error(remote->cli, "The running detent has exited.\n");
        return CLI_OK;
    }
    daemon_client_close(again);
    cli_report_error(remote->cli, "the daemon closed the stream: it was not read fast enough");
    return CLI_FAILURE;
}

static int print_part(void *user, const struct det_json_value *data)
{
    cli_print_value(user, data);
    return CLI_OK;
}

int remote_print(struct remote *remote, const char *path)
{
    return remote_each(remote, path, print_part, remote->cli);
}

int remote_call(
    struct remote *remote, const char *method, const char *path, struct det_json_writer *body_take,
    det_time patience, const struct det_json_value **ret)
{
    struct det_error error = { 0 };
    int r;

    r = daemon_client_call(remote->client, method, path, body_take, patience, ret, &error);
    return r < 0 ? remote_report_error(remote, r, &error) : CLI_OK;
}

int remote_command(
    struct cli *cli, const char *project, const char *method, const char *path,
    void (*show)(struct cli *cli, const struct det_json_value *answer))
{
    const struct det_json_value *answer = NULL;
    bool is_post = strcmp(method, "POST") == 0;
    struct det_json_writer body;
    struct remote remote;
    int code = remote_open(cli, project, &remote);

    if (code != CLI_OK)
        return code;
    if (is_post)
        body = daemon_body(remote.client);
    code = remote_call(&remote, method, path, is_post ? &body : NULL, REMOTE_PATIENCE, &answer);
    if (code == CLI_OK)
        show(cli, answer);
    remote_close(&remote);
    return code;
}

static int add_part(void *user, const struct det_json_value *data)
{
    struct remote_list *list = user;
    const struct det_json_value **items = list->items;

    if (list->count == list->room) {
        list->room = 2 * list->room + 16;
        items = det_arena_array(&list->values, list->room, sizeof(struct det_json_value *));
        if (!items)
            return CLI_FAILURE;
        if (list->count)
            memcpy(items, list->items, list->count * sizeof(struct det_json_value *));
        list->items = items;
    }
    det_assert(list->count < list->room && !list->is_read);
    items[list->count++] = data;
    return CLI_OK;
}

static int add_tree(void *user, const struct det_json_value *data)
{
    static const char *const members[] = { "groups", "tasks" };
    int code = CLI_OK;

    for (size_t i = 0; i < 2; i++) {
        DET_JSON_EACH (part, det_json_get(data, members[i]))
            code = code == CLI_OK ? add_part(user, part) : code;
    }
    return code;
}

static int read_list(
    struct remote *remote, const char *path, remote_each_fn *add, struct remote_list *ret)
{
    int code;

    *ret = (struct remote_list){ .is_read = false };
    det_arena_init(&ret->values, remote->cli->allocator);
    code = read_all(remote, path, &ret->values, add, ret);
    ret->is_read = code == CLI_OK;
    if (!ret->is_read)
        remote_list_free(ret);
    return code;
}

int remote_list(struct remote *remote, const char *path, struct remote_list *ret)
{
    return read_list(remote, path, add_part, ret);
}

int remote_tree(struct remote *remote, struct remote_list *ret)
{
    return read_list(remote, "/v1/tree", add_tree, ret);
}

void remote_list_free(struct remote_list *list)
{
    det_arena_deinit(&list->values);
    *list = (struct remote_list){ .is_read = false };
}

int remote_print_table(struct remote *remote, const char *path, const struct remote_table *form)
{
    det_time now = det_world_now(remote->cli->world, DET_CLOCK_WALL);
    struct remote_list list;
    struct table table;
    int code;

    if (remote->cli->is_json)
        return remote_print(remote, path);
    code = remote_list(remote, path, &list);
    table_init(&table, remote->cli, form->columns, form->column_count);
    for (size_t i = 0; i < list.count; i++)
        form->add_row(&table, list.items[i], now);
    if (code == CLI_OK)
        table_show(&table, form->none);
    table_deinit(&table);
    remote_list_free(&list);
    return code;
}

const struct det_json_value *remote_find(const struct remote_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(show_text(list->items[i], "name"), name) == 0)
            return list->items[i];
    }
    return NULL;
}

bool remote_is_in_group(
    const struct remote_list *tree, const struct det_json_value *task, const char *name)
{
    const char *group = show_text(task, "group");

    /* At most one step per group: the groups of the answer might form a cycle. */
    for (size_t i = 0; *group && i <= tree->count; i++) {
        if (strcmp(group, name) == 0)
            return true;
        group = show_text(remote_find(tree, group), "parent");
    }
    return false;
}

const char *remote_hint(
    struct cli *cli, const struct remote_list *list, const char *name, char *target)
{
    const char **names = DET_NEW_ARRAY(cli->allocator, list->count + 1, const char *);
    int nearest = -1;

    *target = '\0';
    for (size_t i = 0; names && i < list->count; i++)
        names[i] = show_text(list->items[i], "name");
    if (names)
        nearest = det_text_nearest(name, names, list->count);
    if (nearest >= 0)
        snprintf(target, REMOTE_HINT_TEXT, "; did you mean '%s'?", names[nearest]);
    DET_DELETE_ARRAY(cli->allocator, names, list->count + 1);
    return target;
}
