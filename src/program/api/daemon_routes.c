/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* daemon_routes.c - tasks, groups, slots, jobs, status.
 *
 *     http thread: api_on_daemon --post--> daemon's loop: run, which writes the answer
 *                  then          <--post-- at once */
#include <detent/driver/loop.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_internal.h"
#include "daemon/front.h"
#include "daemon/lookups.h"
#include "daemon/slots.h"

struct visit {
    struct det_post post;
    struct api_call *call;
    void (*run)(struct up *up, struct api_call *call);
    void (*then)(struct api_call *call); /* NULL: finish the call */
};

static void continue_visit(void *argument)
{
    struct visit *visit = argument;

    if (visit->then && !visit->call->status)
        visit->then(visit->call);
    else
        api_finish(visit->call);
}

static void end_visit(void *argument)
{
    struct visit *visit = argument;

    api_enter(visit->call, continue_visit, visit);
}

static void run_visit(void *argument)
{
    struct visit *visit = argument;

    visit->run(visit->call->api->up, visit->call);
    visit->post = (struct det_post){ .run = end_visit, .argument = visit };
    det_loop_post(visit->call->api->loop, &visit->post);
}

void api_on_daemon(
    struct api_call *call, void (*run)(struct up *up, struct api_call *call),
    void (*then)(struct api_call *call))
{
    struct visit *visit = det_arena_alloc(&call->arena, sizeof *visit);

    if (!visit) {
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
        api_finish(call);
        return;
    }
    *visit = (struct visit){
        .post = { .run = run_visit, .argument = visit }, .call = call, .run = run, .then = then
    };
    api_call_release_store(call);
    up_post(call->api->up, &visit->post);
}

/* Answers. */

static void fail_on_error(struct api_call *call, int r)
{
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

static void write_tasks(struct up *up, struct api_call *call)
{
    int r;

    det_json_open(&call->json, NULL, '{');
    r = up_write_tasks(up, &call->json, "items");
    det_json_close(&call->json, '}');
    fail_on_error(call, r);
}

void api_get_tasks(struct api_call *call)
{
    api_on_daemon(call, write_tasks, NULL);
}

void api_fail_task(struct api_call *call)
{
    api_fail(call, DET_ERR_NOT_FOUND, "there is no task '%s'", call->parameters[0]);
}

static void write_task(struct up *up, struct api_call *call)
{
    int r = up_write_one_task(up, &call->json, call->parameters[0]);

    if (r == DET_ERR_NOT_FOUND)
        api_fail_task(call);
    else
        fail_on_error(call, r);
}

void api_get_task(struct api_call *call)
{
    api_on_daemon(call, write_task, NULL);
}

static void write_tree(struct up *up, struct api_call *call)
{
    int r;

    det_json_open(&call->json, NULL, '{');
    r = up_write_groups(up, &call->json, "groups");
    if (r == 0)
        r = up_write_tasks(up, &call->json, "tasks");
    det_json_close(&call->json, '}');
    fail_on_error(call, r);
}

void api_get_tree(struct api_call *call)
{
    api_on_daemon(call, write_tree, NULL);
}

/* Slots and their jobs. */

static void list_slots(struct up *up, struct up_request *request, void *arguments)
{
    up_list_slots(up, request, arguments);
}

static void end_slots(struct api_call *call)
{
    det_json_close(&call->json, ']');
    det_json_close(&call->json, '}');
    api_finish(call);
}

void api_get_slots(struct api_call *call)
{
    static struct up_slots_viewer nobody;

    det_json_open(&call->json, NULL, '{');
    det_json_open(&call->json, "items", '[');
    api_request(call, list_slots, &nobody, end_slots);
}

static void change_job(struct up *up, struct up_request *request, void *arguments)
{
    up_change_job(up, request, arguments);
}

/* NULL: the call has failed. */
static struct det_job_change *read_change(struct api_call *call)
{
    struct det_job_change *change = det_arena_alloc(&call->arena, sizeof *change);
    struct det_json_object *members = api_body(call, "reason");

    if (!change)
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
    if (!members || !change)
        return NULL;
    change->queue = call->parameters[0];
    change->id = call->parameters[1];
    change->verb = strcmp(call->parameters[2], "cancel") == 0 ? DET_JOB_CANCEL : DET_JOB_RETRY;
    if (!api_body_text(call, members, "reason", DET_REASON_MAX, &change->reason))
        return NULL;
    if (change->reason && !*change->reason) {
        api_fail(call, DET_ERR_INVALID, "'reason' must not be empty");
        return NULL;
    }
    if (change->verb == DET_JOB_CANCEL && !change->reason)
        change->reason = api_actor(call);
    return change;
}

void api_change_job(struct api_call *call)
{
    struct det_job_change *change = read_change(call);

    if (change)
        api_request(call, change_job, change, NULL);
    else
        api_finish(call);
}

/* The process itself. */

static void write_status(struct up *up, struct api_call *call)
{
    up_write_status(up, &call->json, NULL);
}

void api_get_status(struct api_call *call)
{
    api_on_daemon(call, write_status, NULL);
}

/* Returns the absolute path of a SQLite file; NULL: none. */
static const char *store_file(const char *address, char target[PATH_MAX])
{
    char path[DET_PATH_MAX];

    return address && cli_store_file(address, path) ? realpath(path, target) : NULL;
}

void api_get_served(struct api_call *call)
{
    const struct api_source *source = &call->api->source;
    char file[PATH_MAX];

    up_write_served(call->api->up, &call->json, source->url, store_file(source->address, file));
}

static void write_console_link(struct up *up, struct api_call *call)
{
    char link[UP_LINK_TEXT];

    if (!api_front.console_link(up, link, sizeof link)) {
        api_fail(
            call, DET_ERR_NOT_FOUND,
            "no address is open for browsers; set http.listen in " CONFIG_FILE_NAME);
        return;
    }
    det_json_open(&call->json, NULL, '{');
    det_json_text(&call->json, "kind", "console");
    det_json_text(&call->json, "url", link);
    det_json_close(&call->json, '}');
}

/* Only for our own user over the unix socket; other clients sign in with a token. */
void api_make_console_link(struct api_call *call)
{
    if (!api_body(call, "")) {
        api_finish(call);
        return;
    }
    if (!http_request(call->exchange)->is_trusted) {
        api_fail(call, DET_ERR_REFUSED, "console links are available only over the unix socket");
        api_finish(call);
        return;
    }
    api_on_daemon(call, write_console_link, NULL);
}
