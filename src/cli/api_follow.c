/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_follow.c - the lines of a task as it writes them, as Server-Sent Events. */
#include "cli/api_parts.h"
#include "cli/api_stream.h"

struct following {
    struct api_call *call;
    struct stream *stream;
    bool has_begun;
};

static void leave_lines(void *user)
{
    struct following *following = user;

    stream_cancel(following->stream);
    following->call->exchange = NULL;
    api_finish(following->call);
}

static void lines_drained(void *user)
{
    struct following *following = user;

    stream_drained(following->stream, 0);
}

static void begin_lines(struct following *following)
{
    if (following->has_begun)
        return;
    following->has_begun = true;
    http_begin(
        following->call->exchange, &(struct http_answer){ .status = 200,
                                                          .type = "text/event-stream",
                                                          .body = "retry: 1000\n\n",
                                                          .body_size = 13 });
}

static size_t on_line(void *user, const char *text, size_t size)
{
    static const char head[] = "event: line\ndata: ";
    struct following *following = user;
    struct http_exchange *exchange = following->call->exchange;

    begin_lines(following);
    if (http_write(exchange, head, sizeof head - 1) == 0 && http_write(exchange, text, size) == 0)
        (void)http_write(exchange, "\n\n", 2);
    return http_waiting(exchange);
}

static void on_lines_end(void *user, const struct det_error *error)
{
    struct following *following = user;
    struct api_call *call = following->call;

    if (following->has_begun) {
        http_end(call->exchange);
        call->exchange = NULL;
    } else {
        api_fail_with(call, error->code < 0 ? error->code : DET_ERR_CLOSED, error);
    }
    api_finish(call);
}

void api_follow_logs(struct api_call *call, uint64_t lines)
{
    struct following *following = det_arena_alloc(&call->arena, sizeof *following);

    if (!call->exchange) {
        api_finish(call);
        return;
    }
    if (following) {
        following->call = call;
        following->stream = stream_open(&(struct stream_options){
            .api = call->api,
            .verb = "logs",
            .arguments_take = json_pack(
                "{s:[s], s:I, s:b}", "names", call->parameters[0], "lines", (json_int_t)lines,
                "follow", 1),
            .on_part = on_line,
            .on_end = on_lines_end,
            .user = following,
        });
    }
    if (!following || !following->stream) {
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        api_finish(call);
        return;
    }
    api_call_streams(call);
    http_keep(call->exchange, leave_lines, lines_drained, following);
    begin_lines(following);
}
