/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* live_events.c - task events and the status of the daemon, for current subscribers.
 *
 * Nothing is stored. A subscriber without room gets the number of missed events and the current
 * status once it has room. Writing more than it has room for would close its connection, even while
 * a long row of the log is being sent to it. */
#include <detent/driver/loop.h>

#include "api/live_events.h"

#include <stdio.h>
#include <string.h>

#include "api/request_stream.h"
#include "base/assert.h"
#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/lookups.h"

static bool has_room(const struct api_news *news, const struct api_listener *listener, size_t size)
{
    return api_feed_waiting(listener->feed) + size <= news->room;
}

static void send_status(const struct api_news *news, struct api_listener *listener)
{
    size_t size = strlen(news->status);

    listener->is_behind = !has_room(news, listener, size);
    if (!listener->is_behind)
        (void)api_feed_publish(listener->feed, "status", news->status, size);
}

/* Retries for subscribers that had no room. */
static void send_status_again(const struct api_news *news)
{
    DET_LIST_EACH(node, &news->listeners)
    {
        struct api_listener *listener = DET_CONTAINER(node, struct api_listener, node);

        if (listener->is_behind && news->status)
            send_status(news, listener);
    }
}

/* Task events. */

static void send_task(
    const struct api_news *news, struct api_listener *listener, const char *text, size_t size)
{
    if (!has_room(news, listener, size)) {
        listener->missed++;
        return;
    }
    if (listener->missed) {
        (void)api_feed_report_number(listener->feed, "missed", "events", listener->missed);
        listener->missed = 0;
    }
    (void)api_feed_publish(listener->feed, "task", text, size);
}

static size_t on_task(void *user, const char *text, size_t size)
{
    const struct api_news *news = user;

    DET_LIST_EACH(node, &news->listeners)
    {
        struct api_listener *listener = DET_CONTAINER(node, struct api_listener, node);

        if (listener->wants_tasks)
            send_task(news, listener, text, size);
    }
    return 0;
}

/* The next api_news_refresh() follows them again. */
static void on_tasks_end(void *user, const struct det_error *error)
{
    struct api_news *news = user;

    (void)error;
    news->tasks = NULL;
}

static void follow_new(struct up *up, struct up_request *request, void *arguments)
{
    (void)arguments;
    up_follow_events(up, request, UP_NEW_EVENTS, true);
}

static void follow_tasks(struct api_news *news)
{
    if (news->tasks || !news->task_count)
        return;
    news->tasks = request_stream_open(&(struct request_stream_options){
        .api = news->api,
        .run = follow_new,
        .on_part = on_task,
        .on_end = on_tasks_end,
        .user = news,
    });
}

/* The status of the daemon. */

/* Without subscribers the status is not kept current. */
static void forget_status(struct api_news *news)
{
    if (news->status)
        det_free(news->api->allocator, news->status, strlen(news->status) + 1);
    news->status = NULL;
}

static void take_status(struct api_news *news, char *status_take)
{
    forget_status(news);
    news->status = status_take;
    DET_LIST_EACH(node, &news->listeners)
    {
        send_status(news, DET_CONTAINER(node, struct api_listener, node));
    }
}

/* All subscribers may have left. */
static void end_check(void *argument)
{
    struct api_news *news = argument;
    const struct det_json_writer *seen = &news->seen;
    const char *text = det_buffer_status(&seen->text) == 0 ? det_buffer_text(&seen->text) : NULL;
    bool is_news = text && !det_list_is_empty(&news->listeners) &&
                   !(news->status && strcmp(news->status, text) == 0);
    char *copy = is_news ? det_alloc(news->api->allocator, seen->text.size + 1) : NULL;

    if (copy) {
        memcpy(copy, text, seen->text.size + 1);
        take_status(news, copy);
    }
    det_json_writer_deinit(&news->seen);
    det_assert(news->is_looking && news->api->streams > 0);
    news->is_looking = false;
    news->api->streams--;
}

/* On the daemon's loop. Writes only the parts of the status that are events; the others are figures
 * that change all the time. */
static void inspect_daemon(void *argument)
{
    struct api_news *news = argument;
    struct det_json_writer *json = &news->seen;
    char unreachable[UP_UNREACHABLE_TEXT];

    det_json_open(json, NULL, '{');
    det_json_text(json, "state", up_state_name(news->api->up));
    if (up_store_is_unreachable(news->api->up, unreachable))
        det_json_bytes(json, "away", unreachable, strlen(unreachable));
    else
        det_json_null(json, "away");
    det_json_close(json, '}');
    news->status_post = (struct det_post){ .run = end_check, .argument = news };
    det_loop_post(news->api->loop, &news->status_post);
}

static void ask_status(struct api_news *news)
{
    if (news->is_looking)
        return;
    news->is_looking = true;
    news->api->streams++;
    det_json_writer_init(&news->seen, news->api->allocator);
    news->status_post = (struct det_post){ .run = inspect_daemon, .argument = news };
    up_post(news->api->up, &news->status_post);
}

/* Public functions. */

void api_news_init(struct api_news *news, struct api *api, size_t room)
{
    *news = (struct api_news){ .api = api, .room = room };
    det_list_init(&news->listeners);
}

void api_news_join(struct api_news *news, struct api_listener *listener)
{
    det_assert(det_list_is_empty(&listener->node) && listener->feed);
    det_list_append(&news->listeners, &listener->node);
    news->task_count += listener->wants_tasks;
    if (news->status)
        send_status(news, listener);
    api_news_refresh(news);
}

static void cancel_stream(struct request_stream **stream)
{
    if (*stream)
        request_stream_cancel(*stream);
    *stream = NULL;
}

void api_news_leave(struct api_news *news, struct api_listener *listener)
{
    if (det_list_is_empty(&listener->node))
        return;
    det_list_remove(&listener->node);
    det_assert(news->task_count >= listener->wants_tasks);
    news->task_count -= listener->wants_tasks;
    if (!news->task_count)
        cancel_stream(&news->tasks);
    if (det_list_is_empty(&news->listeners))
        forget_status(news);
}

void api_news_refresh(struct api_news *news)
{
    send_status_again(news);
    follow_tasks(news);
    ask_status(news);
}

void api_news_end(struct api_news *news)
{
    cancel_stream(&news->tasks);
}

void api_news_deinit(struct api_news *news)
{
    forget_status(news);
}
