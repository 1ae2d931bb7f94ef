/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* live_events.c - events of tasks and of `up` itself, for as long as somebody listens.
 *
 * Nothing of it is kept: who has no room is told how much it has missed when it has, and how `up`
 * is by then. Who is given more than it has room for is cut off, also while a long row of the log
 * is on its way to it. */
#include <detent/driver/loop.h>

#include "api/live_events.h"

#include <stdio.h>
#include <string.h>

#include "api/verb_stream.h"
#include "base/memory.h"
#include "daemon/lookups.h"

static bool has_room(const struct api_news *news, const struct api_listener *listener, size_t size)
{
    return api_feed_waiting(listener->feed) + size <= news->room;
}

static void tell_status(const struct api_news *news, struct api_listener *listener)
{
    size_t size = strlen(news->status);

    listener->is_behind = !has_room(news, listener, size);
    if (!listener->is_behind)
        (void)api_feed_tell(listener->feed, "status", news->status, size);
}

/* Those that had no room for it. */
static void tell_status_again(const struct api_news *news)
{
    DET_LIST_EACH(node, &news->listeners)
    {
        struct api_listener *listener = DET_CONTAINER(node, struct api_listener, node);

        if (listener->is_behind && news->status)
            tell_status(news, listener);
    }
}

/* Events of tasks. */

static void tell_task(
    const struct api_news *news, struct api_listener *listener, const char *text, size_t size)
{
    char note[48];
    int length;

    if (!has_room(news, listener, size)) {
        listener->missed++;
        return;
    }
    if (listener->missed) {
        length =
            snprintf(note, sizeof note, "{\"events\":%llu}", (unsigned long long)listener->missed);
        listener->missed = 0;
        (void)api_feed_tell(listener->feed, "missed", note, (size_t)length);
    }
    (void)api_feed_tell(listener->feed, "task", text, size);
}

static size_t on_task(void *user, const char *text, size_t size)
{
    const struct api_news *news = user;

    DET_LIST_EACH(node, &news->listeners)
    {
        struct api_listener *listener = DET_CONTAINER(node, struct api_listener, node);

        if (listener->wants_tasks)
            tell_task(news, listener, text, size);
    }
    return 0;
}

/* Those who are there get another one with the next look. */
static void on_tasks_end(void *user, const struct det_error *error)
{
    struct api_news *news = user;

    (void)error;
    news->tasks = NULL;
}

static void follow_tasks(struct api_news *news)
{
    if (news->tasks || !news->task_count)
        return;
    news->tasks = stream_open(&(struct stream_options){
        .api = news->api,
        .verb = "events",
        .arguments_take = json_pack("{s:b, s:b}", "follow", 1, "new", 1),
        .on_part = on_task,
        .on_end = on_tasks_end,
        .user = news,
    });
}

/* How `up` is. */

/* It is old when the next one comes. */
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
        tell_status(news, DET_CONTAINER(node, struct api_listener, node));
    }
}

/* Nobody may listen by now. */
static void end_look(void *argument)
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
    news->is_looking = false;
    news->api->streams--;
}

/* On the loop of `up`. What of its status is news: the rest are figures, which change all the
 * time. */
static void look_at_daemon(void *argument)
{
    struct api_news *news = argument;
    struct det_json_writer *json = &news->seen;
    char away[UP_AWAY_TEXT];

    det_json_open(json, NULL, '{');
    det_json_text(json, "state", up_state_name(news->api->up));
    if (up_store_is_away(news->api->up, away))
        det_json_bytes(json, "away", away, strlen(away));
    else
        det_json_null(json, "away");
    det_json_close(json, '}');
    news->look = (struct det_post){ .run = end_look, .argument = news };
    det_loop_post(news->api->loop, &news->look);
}

static void ask_status(struct api_news *news)
{
    if (news->is_looking)
        return;
    news->is_looking = true;
    news->api->streams++;
    det_json_writer_init(&news->seen, news->api->allocator);
    news->look = (struct det_post){ .run = look_at_daemon, .argument = news };
    det_loop_post(news->api->up->loop, &news->look);
}

/* The interface. */

void api_news_init(struct api_news *news, struct api *api, size_t room)
{
    *news = (struct api_news){ .api = api, .room = room };
    det_list_init(&news->listeners);
}

void api_news_join(struct api_news *news, struct api_listener *listener)
{
    det_list_append(&news->listeners, &listener->node);
    news->task_count += listener->wants_tasks;
    if (news->status)
        tell_status(news, listener);
    api_news_look(news);
}

static void cancel(struct stream **stream)
{
    if (*stream)
        stream_cancel(*stream);
    *stream = NULL;
}

void api_news_leave(struct api_news *news, struct api_listener *listener)
{
    if (det_list_is_empty(&listener->node))
        return;
    det_list_remove(&listener->node);
    news->task_count -= listener->wants_tasks;
    if (!news->task_count)
        cancel(&news->tasks);
    if (det_list_is_empty(&news->listeners))
        forget_status(news);
}

void api_news_look(struct api_news *news)
{
    tell_status_again(news);
    follow_tasks(news);
    ask_status(news);
}

void api_news_end(struct api_news *news)
{
    cancel(&news->tasks);
}

void api_news_deinit(struct api_news *news)
{
    forget_status(news);
}
