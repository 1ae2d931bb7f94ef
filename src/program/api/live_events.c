/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* live_events.c - events of tasks and of `up` itself, for as long as somebody listens.
 *
 * Nothing of it is kept: who has no room is told how much it has missed when it has, and how `up`
 * is by then. Who is given more than it has room for is cut off, also while a long row of the log
 * is on its way to it. */
#include "api/live_events.h"

#include <stdlib.h>
#include <string.h>

#include "api/verb_stream.h"

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

/* What of its status is news: the rest are figures, which change all the time. */
static char *brief(const char *text, size_t size)
{
    json_t *status = json_loadb(text, size, 0, NULL);
    json_t *news = status ? json_pack(
                                "{s:O?, s:O?}", "state", json_object_get(status, "state"), "away",
                                json_object_get(status, "away"))
                          : NULL;
    char *ret = news ? json_dumps(news, JSON_COMPACT) : NULL;

    json_decref(news);
    json_decref(status);
    return ret;
}

/* It is old when the next one comes. */
static void forget_status(struct api_news *news)
{
    free(news->status);
    news->status = NULL;
}

static size_t on_status(void *user, const char *text, size_t size)
{
    struct api_news *news = user;
    char *status = brief(text, size);

    if (!status || (news->status && strcmp(news->status, status) == 0)) {
        free(status);
        return 0;
    }
    forget_status(news);
    news->status = status;
    DET_LIST_EACH(node, &news->listeners)
    {
        tell_status(news, DET_CONTAINER(node, struct api_listener, node));
    }
    return 0;
}

static void on_status_end(void *user, const struct det_error *error)
{
    struct api_news *news = user;

    (void)error;
    news->asking = NULL;
}

static void ask_status(struct api_news *news)
{
    if (news->asking)
        return;
    news->asking = stream_open(&(struct stream_options){
        .api = news->api,
        .verb = "status",
        .arguments_take = json_object(),
        .on_part = on_status,
        .on_end = on_status_end,
        .user = news,
    });
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
    if (det_list_is_empty(&news->listeners)) {
        cancel(&news->asking);
        forget_status(news);
    }
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
    cancel(&news->asking);
}

void api_news_deinit(struct api_news *news)
{
    forget_status(news);
}
