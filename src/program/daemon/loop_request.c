/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* loop_request.c - opens, answers and finishes requests. */
#include "daemon/loop_request.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "daemon/daemon.h"

void up_post(struct up *up, struct det_post *post)
{
    det_assert(post->run);
    det_loop_post(up_loop(up), post);
}

void up_request_open(struct up *up, struct up_request *request)
{
    det_assert(request->ops && request->ops->finished && request->json);
    det_assert(!request->is_kept && det_loop_is_mine(up_loop(up)));
    det_list_init(&request->node);
    det_list_append(up_open_requests(up), &request->node);
}

static bool is_open(const struct up_request *request)
{
    return !det_list_is_empty(&request->node);
}

static void finish_request(struct up_request *request)
{
    det_assert(is_open(request));
    det_list_remove(&request->node);
    request->ops->finished(request);
}

void up_request_part(struct up_request *request)
{
    det_assert(is_open(request));
    if (request->ops->part)
        request->ops->part(request);
}

size_t up_request_waiting(const struct up_request *request)
{
    return request->ops->waiting ? request->ops->waiting(request) : 0;
}

void up_request_end(struct up_request *request)
{
    finish_request(request);
}

void up_request_fail(struct up_request *request, int code, const char *format, ...)
{
    va_list arguments;

    det_assert(code < 0 && request->error.code == 0);
    request->error.code = code;
    va_start(arguments, format);
    (void)vsnprintf(request->error.text, sizeof request->error.text, format, arguments);
    va_end(arguments);
    det_json_writer_clear(request->json);
    finish_request(request);
}

void up_request_fail_memory(struct up_request *request)
{
    up_request_fail(request, DET_ERR_NO_MEMORY, "out of memory");
}

void up_request_keep(struct up_request *request, void (*on_gone)(void *user), void *user)
{
    det_assert(is_open(request) && !request->is_kept);
    request->is_kept = true;
    request->on_gone = on_gone;
    request->user = user;
}

void up_request_abandon(struct up_request *request)
{
    det_assert(is_open(request) && request->is_kept);
    if (request->on_gone)
        request->on_gone(request->user);
    up_request_fail(request, DET_ERR_CANCELLED, "the client has disconnected");
}

void up_requests_close(struct up *up)
{
    while (!det_list_is_empty(up_open_requests(up))) {
        struct up_request *request =
            DET_CONTAINER(up_open_requests(up)->next, struct up_request, node);

        if (request->on_gone)
            request->on_gone(request->user);
        up_request_fail(request, DET_ERR_CLOSED, CLI_SHUTDOWN);
    }
}
