/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* daemon_request.c - calls answered by the daemon.
 *
 *     http thread: api_request --post--> daemon's loop: run, with a request
 *                  then        <--post-- when the request is finished
 *
 * The answer is written into the writer of the call, which belongs to the daemon's loop
 * meanwhile. */
#include <detent/driver/loop.h>

#include "api/api_internal.h"
#include "base/assert.h"

struct daemon_request {
    struct up_request request; /* first */
    struct det_post post;
    struct api_call *call;
    api_request_fn *run;
    void *arguments;
    void (*then)(struct api_call *call);
};

/* Runs inside, since `then` may use the machines. */
static void continue_call(void *argument)
{
    struct daemon_request *pending = argument;
    struct api_call *call = pending->call;

    det_assert(call->is_inside && det_list_is_empty(&pending->request.node));
    if (pending->request.error.code < 0)
        api_fail_with(call, pending->request.error.code, &pending->request.error);
    if (pending->then && !call->status)
        pending->then(call);
    else
        api_finish(call);
}

static void enter_call(void *argument)
{
    struct daemon_request *pending = argument;

    api_enter(pending->call, continue_call, pending);
}

static void on_finished(struct up_request *request)
{
    struct daemon_request *pending = (struct daemon_request *)(void *)request;

    pending->post = (struct det_post){ .run = enter_call, .argument = pending };
    det_loop_post(pending->call->api->loop, &pending->post);
}

static void run_request(void *argument)
{
    static const struct up_request_ops ops = { .finished = on_finished };
    struct daemon_request *pending = argument;
    struct up *up = pending->call->api->up;

    pending->request.ops = &ops;
    up_request_open(up, &pending->request);
    pending->run(up, &pending->request, pending->arguments);
}

void api_request(
    struct api_call *call, api_request_fn *run, void *arguments,
    void (*then)(struct api_call *call))
{
    struct daemon_request *pending = det_arena_alloc(&call->arena, sizeof *pending);

    if (!pending) {
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
        api_finish(call);
        return;
    }
    *pending = (struct daemon_request){ .request.json = &call->json,
                                        .post = { .run = run_request, .argument = pending },
                                        .call = call,
                                        .run = run,
                                        .arguments = arguments,
                                        .then = then };
    api_call_release_store(call);
    up_post(call->api->up, &pending->post);
}
