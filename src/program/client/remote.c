/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* remote.c - asks a `detent up` that runs, for the commands that drive it. */
#include "client/remote.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "inspect/print_tasks.h"
#include "terminal/input.h"

int remote_complain(struct remote *remote, int code, const struct det_error *error)
{
    if (code == DET_ERR_CLOSED && remote->follows)
        remote->has_ended = true;
    else if (code != DET_ERR_CANCELLED || !cli_is_interrupted())
        cli_complain(remote->cli, "%s", error->text);
    return cli_exit_of_request(code);
}

det_time remote_within(det_time patience)
{
    return det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + patience;
}

/* A folder that was named: as it is, without looking above it. */
static int find_named(const char *project, char *target, struct det_error *reterr)
{
    char *path = realpath(project, NULL);
    bool fits = path && det_text_copy(target, DET_PATH_MAX, path);

    free(path);
    if (fits)
        return 0;
    return det_error_set(
        reterr, DET_ERR_NOT_FOUND,
        "%.200s: there is no such folder; --project is that of a "
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
    return r < 0 ? remote_complain(ret, r, &error) : CLI_OK;
}

void remote_close(struct remote *remote)
{
    daemon_client_close(remote->client);
    remote->client = NULL;
}

int remote_each(struct remote *remote, const char *path, remote_each_fn *each, void *user)
{
    det_time deadline = remote_within(REMOTE_PATIENCE);
    struct det_error error = { 0 };
    json_t *data = NULL;
    int code = CLI_OK, r;

    r = daemon_client_ask(remote->client, "GET", path, NULL, &error);
    if (r == 0)
        r = daemon_client_next(remote->client, deadline, &data, &error);
    while (r > 0 && code == CLI_OK) {
        code = each(user, data);
        json_decref(data);
        r = code == CLI_OK ? daemon_client_next(remote->client, deadline, &data, &error) : 0;
    }
    return r < 0 ? remote_complain(remote, r, &error) : code;
}

static int print_part(void *user, json_t *data)
{
    cli_json(user, json_incref(data));
    return CLI_OK;
}

int remote_print(struct remote *remote, const char *path)
{
    return remote_each(remote, path, print_part, remote->cli);
}

static int add_part(void *user, json_t *data)
{
    json_t *list = user;

    return json_array_append(list, data) < 0 ? CLI_FAILURE : CLI_OK;
}

int remote_command(
    struct cli *cli, const char *project, const char *path, json_t *body_take, remote_each_fn *each)
{
    const char *method = body_take ? "POST" : "GET";
    struct det_error error = { 0 };
    struct remote remote;
    json_t *data = NULL;
    int code = remote_open(cli, project, &remote), r;

    if (code != CLI_OK) {
        json_decref(body_take);
        return code;
    }
    r = daemon_client_call(remote.client, method, path, body_take, REMOTE_PATIENCE, &data, &error);
    if (r < 0)
        code = remote_complain(&remote, r, &error);
    else
        code = cli->is_json ? print_part(cli, data) : each(&remote, data);
    json_decref(data);
    remote_close(&remote);
    return code;
}

int remote_list(struct remote *remote, const char *path, json_t **ret)
{
    json_t *list = json_array();
    int code;

    if (!list)
        return cli_no_memory(remote->cli);
    code = remote_each(remote, path, add_part, list);
    if (code == CLI_OK)
        *ret = list;
    else
        json_decref(list);
    return code;
}

static int add_tree(void *user, json_t *data)
{
    json_t *list = user;
    bool is_added = json_array_extend(list, json_object_get(data, "groups")) == 0 &&
                    json_array_extend(list, json_object_get(data, "tasks")) == 0;

    return is_added ? CLI_OK : CLI_FAILURE;
}

int remote_tree(struct remote *remote, json_t **ret)
{
    json_t *list = json_array();
    int code;

    if (!list)
        return cli_no_memory(remote->cli);
    code = remote_each(remote, "/v1/tree", add_tree, list);
    if (code == CLI_OK)
        *ret = list;
    else
        json_decref(list);
    return code;
}

json_t *remote_find(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *object = json_array_get(list, i);

        if (strcmp(show_text(object, "name"), name) == 0)
            return object;
    }
    return NULL;
}

bool remote_is_in_group(const json_t *tree, const json_t *task, const char *name)
{
    const char *group = show_text(task, "group");

    /* Not more steps than there are groups: what the other side says may go in circles. */
    for (size_t i = 0; *group && i <= json_array_size(tree); i++) {
        if (strcmp(group, name) == 0)
            return true;
        group = show_text(remote_find(tree, group), "parent");
    }
    return false;
}

const char *remote_hint(struct cli *cli, const json_t *list, const char *name, char *target)
{
    size_t count = json_array_size(list);
    const char **names = DET_NEW_ARRAY(cli->allocator, count + 1, const char *);
    int nearest = -1;

    *target = '\0';
    for (size_t i = 0; names && i < count; i++)
        names[i] = show_text(json_array_get(list, i), "name");
    if (names)
        nearest = det_text_nearest(name, names, count);
    if (nearest >= 0)
        snprintf(target, REMOTE_HINT_TEXT, "; did you mean '%s'?", names[nearest]);
    DET_DELETE_ARRAY(cli->allocator, names, count + 1);
    return target;
}
