/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_stream.c - the lines of a task as it writes them, as Server-Sent Events. */
#include "api/api_internal.h"
#include "api/stream_feed.h"
#include "api/verb_stream.h"

struct following {
    struct api_feed feed;  /* first */
    struct stream *stream; /* NULL: it has ended */
};

static struct following *following_of(struct api_feed *feed)
{
    return (struct following *)(void *)feed;
}

static void on_drained(struct api_feed *feed)
{
    if (following_of(feed)->stream)
        stream_drained(following_of(feed)->stream, 0);
}

static void on_over(struct api_feed *feed)
{
    if (following_of(feed)->stream)
        stream_cancel(following_of(feed)->stream);
    api_finish(feed->call);
}

static size_t on_line(void *user, const char *text, size_t size)
{
    struct following *following = user;

    (void)api_feed_tell(&following->feed, "line", text, size);
    return api_feed_waiting(&following->feed);
}

static void on_lines_end(void *user, const struct det_error *error)
{
    struct following *following = user;

    following->stream = NULL;
    if (error->code < 0)
        api_feed_drop(&following->feed, det_error_text(error->code));
    else
        api_feed_end(&following->feed);
}

static struct stream *open_lines(struct following *following, uint64_t lines)
{
    const struct api_call *call = following->feed.call;

    return stream_open(&(struct stream_options){
        .api = call->api,
        .verb = "logs",
        .arguments_take = json_pack(
            "{s:[s], s:I, s:b}", "names", call->parameters[0], "lines", (json_int_t)lines, "follow",
            1),
        .on_part = on_line,
        .on_end = on_lines_end,
        .user = following,
    });
}

void api_follow_logs(struct api_call *call, uint64_t lines)
{
    static const struct api_feed_ops ops = { on_drained, on_over };
    struct following *following = det_arena_alloc(&call->arena, sizeof *following);

    if (!following)
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
    if (!call->exchange || !following || !api_feed_begin(&following->feed, call, &ops)) {
        api_finish(call);
        return;
    }
    following->stream = open_lines(following, lines);
    if (!following->stream)
        api_feed_drop(&following->feed, "there is no memory left");
}
