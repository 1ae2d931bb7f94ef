/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_pause.c - pauses the API while a reload, or shutdown, replaces the machines and the store.
 *
 *     daemon's loop                   http thread
 *     api_pause  ---------------->    pausing: new calls are held
 *                <----------------    paused: nothing is inside
 *     (machines and settings change)
 *     api_resume ---------------->    serving: takes the new settings, runs held calls
 *
 * Invariants
 *   1. While paused, neither the http thread nor a lane reads the machines, the store or the
 *      configuration of the daemon.
 *   2. Calls that wait for the daemon, streams and connections survive a pause. A server whose
 *      settings have changed is replaced: it keeps its connections, each until its pending answer
 *      is sent. */
#include <detent/driver/loop.h>
#include <string.h>

#include "api/api_internal.h"
#include "base/assert.h"
#include "daemon/daemon.h"

/* Entering and leaving, on the http thread. */

static void note_quiet(void *argument)
{
    struct api *api = argument;

    api->pause.is_quiet = true;
}

static void assert_pause(const struct api *api)
{
    const struct api_pausing *pause = &api->pause;

    switch (pause->state) {
    case API_SERVING:
        return;
    case API_PAUSING:
        det_assert(api->has_started);
        return;
    case API_PAUSED:
        det_assert(api->has_started && pause->inside == 0);
        return;
    }
}

/* The only place where the state changes. */
static void set_state(struct api *api, enum api_state state)
{
    api->pause.state = state;
    assert_pause(api);
}

static void check_quiet(struct api *api)
{
    if (api->pause.state != API_PAUSING || api->pause.inside > 0)
        return;
    set_state(api, API_PAUSED);
    api->pause.quiet_post = (struct det_post){ .run = note_quiet, .argument = api };
    det_loop_post(up_loop(api->up), &api->pause.quiet_post);
}

void api_release_store(struct api *api)
{
    det_assert(api->pause.inside > 0);
    api->pause.inside--;
    check_quiet(api);
}

void api_call_release_store(struct api_call *call)
{
    if (!call->is_inside)
        return;
    call->is_inside = false;
    api_release_store(call->api);
}

static void run_inside(struct api_call *call, void (*run)(void *argument), void *argument)
{
    det_assert(call->api->pause.state == API_SERVING && !call->is_inside);
    call->is_inside = true;
    call->api->pause.inside++;
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

    det_assert(!call->is_inside && det_list_is_empty(&call->held_node));
    if (api->pause.is_ending && !call->has_begun) {
        refuse_call(call);
        return;
    }
    if (api->pause.state == API_SERVING) {
        run_inside(call, run, argument);
        return;
    }
    call->resume = run;
    call->resume_argument = argument;
    det_list_append(&api->pause.held, &call->held_node);
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

    while ((node = det_list_take(&api->pause.held)))
        resume_call(node);
    while ((node = det_list_take(&api->pause.held_jobs)))
        api_lane_resume(api, DET_CONTAINER(node, struct api_lane_job, node));
    det_assert(det_list_is_empty(&api->pause.held));
}

void api_held_end(struct api *api)
{
    api->pause.is_ending = true;
    set_state(api, API_SERVING);
    for (struct det_list *node; (node = det_list_take(&api->pause.held));) {
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
    det_assert(count < API_OLD_SERVERS && !api->old_servers[count]);
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

    det_assert(api->pause.state != API_PAUSING);
    set_state(api, API_PAUSING);
    check_quiet(api);
}

static void refuse_held(struct api *api)
{
    struct det_list kept, *node;

    det_list_init(&kept);
    while ((node = det_list_take(&api->pause.held))) {
        if (DET_CONTAINER(node, struct api_call, held_node)->has_begun)
            det_list_append(&kept, node);
        else
            refuse_call(DET_CONTAINER(node, struct api_call, held_node));
    }
    while ((node = det_list_take(&kept)))
        det_list_append(&api->pause.held, node);
}

static void begin_end(void *argument)
{
    struct api *api = argument;

    api->pause.is_ending = true;
    refuse_held(api);
    begin_pause(api);
}

void api_pause(struct up *up, bool is_end)
{
    struct api *api = up_api(up);

    if (!api || !api->has_started)
        return;
    det_assert(det_loop_is_mine(up_loop(up)));
    api->pause.is_quiet = false;
    api->end.post = (struct det_post){ .run = is_end ? begin_end : begin_pause, .argument = api };
    det_loop_post(api->loop, &api->end.post);
    while (!api->pause.is_quiet) {
        if (det_loop_turn(up_loop(up), DET_NEVER) < 0)
            break;
    }
    api_readers_close(api);
}

static void note_resumed(void *argument)
{
    struct api *api = argument;

    api->pause.is_resumed = true;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Settings that a running server cannot change. */
static bool needs_new_server(const struct config_http *before, const struct config_http *now)
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
    bool replace_wanted =
        api->pause.has_new_http && needs_new_server(&api->http, &up_config(api->up)->http);
    int r = api_copy_settings(api, &api->pause.resume_error);

    if (r == 0 && replace_wanted)
        r = replace_server(api, &api->pause.resume_error);
    api->pause.resume_result = r;
    det_assert(r < 0 || api->server);
    if (r == 0) {
        set_state(api, API_SERVING);
        resume_held(api);
    }
    api->pause.resume_post = (struct det_post){ .run = note_resumed, .argument = api };
    det_loop_post(up_loop(api->up), &api->pause.resume_post);
}

int api_resume(struct up *up, bool has_new_http, struct det_error *reterr)
{
    struct api *api = up_api(up);
    int r = has_new_http ? up_run_sockets_bind(up, reterr) : 0;

    if (r < 0)
        return r;
    api->pause.is_resumed = false;
    api->pause.has_new_http = has_new_http;
    api->pause.resume_error = (struct det_error){ 0 };
    api->end.post = (struct det_post){ .run = begin_resume, .argument = api };
    det_loop_post(api->loop, &api->end.post);
    while (!api->pause.is_resumed) {
        r = det_loop_turn(up_loop(up), DET_NEVER);
        if (r < 0)
            return det_error_set(reterr, r, "%s", det_error_text(r));
    }
    api_take_stamps(api);
    if (api->pause.resume_result < 0 && reterr)
        *reterr = api->pause.resume_error;
    return api->pause.resume_result;
}
