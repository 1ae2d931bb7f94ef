/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_stream.c - what a verb of `up` sends part by part, as Server-Sent Events: lines and events of
 * tasks. */
#include "api/api_internal.h"
#include "api/stream_feed.h"
#include "api/verb_stream.h"

struct following {
    struct api_feed feed;  /* first */
    struct stream *stream; /* NULL: it has ended */
    const char *event;
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

static size_t on_part(void *user, const char *text, size_t size)
{
    struct following *following = user;

    (void)api_feed_tell(&following->feed, following->event, text, size);
    return api_feed_waiting(&following->feed);
}

static void on_end(void *user, const struct det_error *error)
{
    struct following *following = user;

    following->stream = NULL;
    if (error->code < 0)
        api_feed_drop(&following->feed, det_error_text(error->code));
    else
        api_feed_end(&following->feed);
}

void api_follow(struct api_call *call, const char *verb, json_t *arguments_take, const char *event)
{
    static const struct api_feed_ops ops = { on_drained, on_over };
    struct following *following = det_arena_alloc(&call->arena, sizeof *following);

    if (!following)
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
    if (!call->exchange || !following || !api_feed_begin(&following->feed, call, &ops)) {
        json_decref(arguments_take);
        api_finish(call);
        return;
    }
    following->event = event;
    following->stream = stream_open(&(struct stream_options){ .api = call->api,
                                                              .verb = verb,
                                                              .arguments_take = arguments_take,
                                                              .on_part = on_part,
                                                              .on_end = on_end,
                                                              .user = following });
    if (!following->stream)
        api_feed_drop(&following->feed, "there is no memory left");
}
