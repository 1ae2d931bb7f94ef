/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_pause.c - the API while a reload, or the end, takes the machines and the store away.
 *
 *     loop of `up`                    http thread
 *     api_pause  ---------------->    pausing: what comes is held
 *                <----------------    paused: all that was inside has left
 *     (machines and file change)
 *     api_resume ---------------->    serving: takes the new file; what was held is run
 *
 * Invariants
 *   1. While it is paused nothing of the http thread or of its lanes reads the machines, the
 *      store or the file.
 *   2. A call that waits for `up`, a stream and every connection outlives it. A server whose
 *      settings have changed keeps the connections that it has, each up to the answer that is
 *      on its way. */
#include <detent/driver/loop.h>
#include <string.h>

#include "api/api_internal.h"
#include "base/assert.h"
#include "daemon/daemon.h"

/* Going in and out, on the http thread. */

static void take_quiet(void *argument)
{
    struct api *api = argument;

    api->is_quiet = true;
}

static void look_whether_quiet(struct api *api)
{
    if (api->state != API_PAUSING || api->inside > 0)
        return;
    api->state = API_PAUSED;
    api->quiet_post = (struct det_post){ .run = take_quiet, .argument = api };
    det_loop_post(api->up->loop, &api->quiet_post);
}

void api_leave(struct api *api)
{
    det_assert(api->inside > 0);
    api->inside--;
    look_whether_quiet(api);
}

void api_rest(struct api_call *call)
{
    if (!call->is_inside)
        return;
    call->is_inside = false;
    api_leave(call->api);
}

static void run_inside(struct api_call *call, void (*run)(void *argument), void *argument)
{
    call->is_inside = true;
    call->api->inside++;
    run(argument);
}

static void refuse_call(struct api_call *call)
{
    api_fail(call, DET_ERR_CLOSED, CLI_SHUTDOWN);
    api_finish(call);
}

void api_enter(struct api_call *call, void (*run)(void *argument), void *argument)
{
    struct api *api = call->api;

    if (api->is_ending && !call->has_begun) {
        refuse_call(call);
        return;
    }
    if (api->state == API_SERVING) {
        run_inside(call, run, argument);
        return;
    }
    call->resume = run;
    call->resume_argument = argument;
    det_list_append(&api->held, &call->held_node);
}

bool api_unhold(struct api_call *call)
{
    if (det_list_is_empty(&call->held_node) || call->has_begun)
        return false;
    det_list_remove(&call->held_node);
    return true;
}

static void resume_call(struct det_list *node)
{
    struct api_call *call = DET_CONTAINER(node, struct api_call, held_node);

    run_inside(call, call->resume, call->resume_argument);
}

static void resume_held(struct api *api)
{
    struct det_list *node;

    while ((node = det_list_take(&api->held)))
        resume_call(node);
    while ((node = det_list_take(&api->held_jobs)))
        api_lane_resume(api, DET_CONTAINER(node, struct api_lane_job, node));
}

void api_held_end(struct api *api)
{
    api->is_ending = true;
    api->state = API_SERVING;
    for (struct det_list *node; (node = det_list_take(&api->held));) {
        struct api_call *call = DET_CONTAINER(node, struct api_call, held_node);

        if (call->has_begun)
            resume_call(node);
        else
            refuse_call(call);
    }
    resume_held(api);
}

/* Servers. */

size_t api_connections(const struct api *api)
{
    size_t count = http_server_connections(api->server);

    for (size_t i = 0; i < API_OLD_SERVERS && api->old_servers[i]; i++)
        count += http_server_connections(api->old_servers[i]);
    return count;
}

void api_old_servers_close(struct api *api, bool is_end)
{
    size_t kept = 0;

    for (size_t i = 0; i < API_OLD_SERVERS && api->old_servers[i]; i++) {
        struct http_server *server = api->old_servers[i];

        api->old_servers[i] = NULL;
        if (is_end || !http_server_connections(server))
            http_server_close(server);
        else
            api->old_servers[kept++] = server;
    }
}

static void keep_old_server(struct api *api, struct http_server *server)
{
    size_t count = 0;

    http_server_drain(server);
    api_old_servers_close(api, false);
    while (count < API_OLD_SERVERS && api->old_servers[count])
        count++;
    if (count == API_OLD_SERVERS) {
        http_server_close(api->old_servers[0]);
        for (size_t i = 1; i < count; i++)
            api->old_servers[i - 1] = api->old_servers[i];
        count--;
    }
    api->old_servers[count] = server;
}

static int replace_server(struct api *api, struct det_error *reterr)
{
    struct http_server *server = NULL;
    int r = api_server_open(api, &server, reterr);

    if (r < 0) {
        http_server_close(server);
        return r;
    }
    keep_old_server(api, api->server);
    api->server = server;
    api_note_address(api);
    return 0;
}

/* Between the loops. */

static void begin_pause(void *argument)
{
    struct api *api = argument;

    api->state = API_PAUSING;
    look_whether_quiet(api);
}

static void refuse_held(struct api *api)
{
    struct det_list kept, *node;

    det_list_init(&kept);
    while ((node = det_list_take(&api->held))) {
        if (DET_CONTAINER(node, struct api_call, held_node)->has_begun)
            det_list_append(&kept, node);
        else
            refuse_call(DET_CONTAINER(node, struct api_call, held_node));
    }
    while ((node = det_list_take(&kept)))
        det_list_append(&api->held, node);
}

static void begin_end(void *argument)
{
    struct api *api = argument;

    api->is_ending = true;
    refuse_held(api);
    begin_pause(api);
}

void api_pause(struct up *up, bool is_end)
{
    struct api *api = up->api;

    if (!api || !api->has_started)
        return;
    api->is_quiet = false;
    api->post = (struct det_post){ .run = is_end ? begin_end : begin_pause, .argument = api };
    det_loop_post(api->loop, &api->post);
    while (!api->is_quiet) {
        if (det_loop_turn(up->loop, DET_NEVER) < 0)
            break;
    }
    api_readers_close(api);
}

static void end_resume(void *argument)
{
    struct api *api = argument;

    api->is_resumed = true;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* What a server cannot change while it runs. */
static bool needs_server(const struct config_http *before, const struct config_http *now)
{
    return memcmp(&before->limits, &now->limits, sizeof now->limits) != 0 ||
           !is_same_text(before->socket, now->socket) ||
           !is_same_text(before->tls.certificate, now->tls.certificate) ||
           !is_same_text(before->tls.key, now->tls.key) ||
           !is_same_text(before->tls.clients, now->tls.clients);
}

static void begin_resume(void *argument)
{
    struct api *api = argument;
    bool shall_replace = api->has_new_http && needs_server(&api->http, &api->up->file.config.http);
    int r = api_learn(api, &api->resume_error);

    if (r == 0 && shall_replace)
        r = replace_server(api, &api->resume_error);
    api->resume_result = r;
    if (r == 0) {
        api->state = API_SERVING;
        resume_held(api);
    }
    api->resume_post = (struct det_post){ .run = end_resume, .argument = api };
    det_loop_post(api->up->loop, &api->resume_post);
}

int api_resume(struct up *up, bool has_new_http, struct det_error *reterr)
{
    struct api *api = up->api;
    int r = has_new_http ? api_bind(up, reterr) : 0;

    if (r < 0)
        return r;
    api->is_resumed = false;
    api->has_new_http = has_new_http;
    api->resume_error = (struct det_error){ 0 };
    api->post = (struct det_post){ .run = begin_resume, .argument = api };
    det_loop_post(api->loop, &api->post);
    while (!api->is_resumed) {
        r = det_loop_turn(up->loop, DET_NEVER);
        if (r < 0)
            return det_error_set(reterr, r, "%s", det_error_text(r));
    }
    api_take_stamps(api);
    if (api->resume_result < 0 && reterr)
        *reterr = api->resume_error;
    return api->resume_result;
}
