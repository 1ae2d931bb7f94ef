/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stream_feed.c - begins, keeps alive and ends Server-Sent Events. */
#include <detent/driver/loop.h>

#include "api/stream_feed.h"

#include <stdio.h>
#include <string.h>

#include "api/api_internal.h"
#include "base/assert.h"
#include "record/text_sink.h"

#define BEAT_SPAN     (5 * DET_SECOND)
#define COMMENT_BEATS 3
/* The data of a small event. */
#define OBJECT_TEXT 256

static const char type[] = "text/event-stream";

/* Ending. */

/* Frees the feed. */
static void finish_call(struct api_feed *feed)
{
    if (feed->ops->release)
        feed->ops->release(feed);
    api_finish(feed->call);
}

static void end_feed(struct api_feed *feed)
{
    det_assert(feed->exchange && feed->call->api->feeds.count > 0);
    det_list_remove(&feed->node);
    feed->call->api->feeds.count--;
    det_assert(
        det_list_is_empty(&feed->call->api->feeds.list) == (feed->call->api->feeds.count == 0));
    feed->exchange = NULL;
    feed->call->exchange = NULL;
    feed->ops->over(feed);
    if (!feed->is_catching)
        finish_call(feed);
}

bool api_feed_page_done(struct api_feed *feed)
{
    det_assert(feed->is_catching);
    feed->is_catching = false;
    if (feed->exchange)
        return true;
    finish_call(feed);
    return false;
}

void api_feed_end(struct api_feed *feed)
{
    struct http_exchange *exchange = feed->exchange;

    if (!exchange)
        return;
    http_end(exchange);
    end_feed(feed);
}

static void write_number(struct det_output *output, const char *key, uint64_t number)
{
    char digits[24] = "null";

    if (number != UINT64_MAX)
        snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    det_output_quoted(output, det_view_text(key));
    det_output_char(output, ':');
    det_output_text(output, digits);
}

int api_feed_report_number(
    struct api_feed *feed, const char *name, const char *key, uint64_t number)
{
    char text[OBJECT_TEXT];
    struct det_output output = { .target = text, .capacity = sizeof text };

    det_output_char(&output, '{');
    write_number(&output, key, number);
    det_output_char(&output, '}');
    (void)det_output_finish(&output);
    det_assert(output.length < sizeof text);
    return api_feed_publish(feed, name, text, output.length);
}

/* Tells the position, unless it is not known yet, and the reason. */
void api_feed_drop(struct api_feed *feed, const char *why)
{
    char text[OBJECT_TEXT];
    struct det_output output = { .target = text, .capacity = sizeof text };

    det_output_char(&output, '{');
    write_number(&output, "position", feed->position ? *feed->position : UINT64_MAX);
    det_output_text(&output, ",\"why\":");
    det_output_quoted(&output, det_view_text(why));
    det_output_char(&output, '}');
    (void)det_output_finish(&output);
    det_assert(output.length < sizeof text);
    if (feed->exchange && api_feed_publish(feed, "dropped", text, output.length) == 0)
        api_feed_end(feed);
}

void api_feeds_end(struct api *api)
{
    struct det_list *next;

    api->feeds.is_over = true;
    for (struct det_list *node = api->feeds.list.next; node != &api->feeds.list; node = next) {
        next = node->next;
        api_feed_drop(DET_CONTAINER(node, struct api_feed, node), CLI_SHUTDOWN);
    }
}

/* Keeping alive. */

/* Clients of the unix socket have no token. */
static bool is_allowed(const struct api_feed *feed)
{
    const struct api_call *call = feed->call;

    return strlen(call->who) != TOKENS_ID_SIZE ||
           tokens_is_good(call->api->tokens, call->who, call->route->scope);
}

static void set_beat(struct api *api)
{
    (void)!det_loop_timer_set(api->loop, &api->feeds.beat, det_loop_now(api->loop) + BEAT_SPAN);
}

static void on_beat(void *argument)
{
    struct api *api = argument;
    bool is_comment = ++api->feeds.beats % COMMENT_BEATS == 0;
    struct det_list *next;

    for (struct det_list *node = api->feeds.list.next; node != &api->feeds.list; node = next) {
        struct api_feed *feed = DET_CONTAINER(node, struct api_feed, node);

        next = node->next;
        if (!is_allowed(feed))
            api_feed_drop(feed, "its token has expired or was revoked");
        else if (is_comment && api_feed_waiting(feed) == 0)
            (void)api_feed_write(feed, ":\n\n", 3);
    }
    if (api->feeds.count)
        set_beat(api);
}

void api_feeds_open(struct api *api)
{
    det_list_init(&api->feeds.list);
    api->feeds.beat = (struct det_timer){ .run = on_beat, .argument = api };
}

/* Beginning. */

static void on_gone(void *user)
{
    end_feed(user);
}

static void on_drained(void *user)
{
    struct api_feed *feed = user;

    feed->ops->drained(feed);
}

static bool has_room(struct api_call *call)
{
    if (call->api->feeds.is_over) {
        api_fail(call, DET_ERR_CLOSED, CLI_SHUTDOWN);
        return false;
    }
    if (call->api->feeds.count < call->api->http.sse_subscribers)
        return true;
    api_fail(
        call, DET_ERR_LIMIT,
        "too many streams are open (http.limits.sse_subscribers); retry later");
    call->status = 503;
    return false;
}

bool api_feed_begin(struct api_feed *feed, struct api_call *call, const struct api_feed_ops *ops)
{
    static const char first[] = "retry: 1000\n\n";
    static const struct http_header headers[] = { { "x-accel-buffering", "no" } };
    struct api *api = call->api;

    det_assert(ops->drained && ops->over && call->exchange);
    if (!has_room(call))
        return false;
    call->type = type;
    if (http_request(call->exchange)->method == HTTP_HEAD)
        return false;
    *feed = (struct api_feed){ .ops = ops, .call = call, .exchange = call->exchange };
    det_list_init(&feed->node);
    det_list_append(&api->feeds.list, &feed->node);
    if (++api->feeds.count == 1)
        set_beat(api);
    api_call_streams(call);
    http_keep(feed->exchange, on_gone, on_drained, feed);
    http_begin(
        feed->exchange, &(struct http_answer){ .status = 200,
                                               .type = type,
                                               .headers = headers,
                                               .header_count = 1,
                                               .body = first,
                                               .body_size = sizeof first - 1 });
    return true;
}

/* Writing. */

size_t api_feed_waiting(const struct api_feed *feed)
{
    return feed->exchange ? http_waiting(feed->exchange) : 0;
}

int api_feed_write(struct api_feed *feed, const char *text, size_t size)
{
    return feed->exchange ? http_write(feed->exchange, text, size) : DET_ERR_CLOSED;
}

int api_feed_publish(struct api_feed *feed, const char *name, const char *data, size_t size)
{
    char head[64];
    int length = snprintf(head, sizeof head, "event: %s\ndata: ", name);
    int r;

    det_assert(length > 0 && (size_t)length < sizeof head);
    det_check(!memchr(data, '\n', size));
    r = api_feed_write(feed, head, (size_t)length);

    if (r == 0)
        r = api_feed_write(feed, data, size);
    return r == 0 ? api_feed_write(feed, "\n\n", 2) : r;
}
