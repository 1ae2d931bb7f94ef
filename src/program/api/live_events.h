/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* live_events.h - events besides the log, for subscribers of /v1/events: task events, and the
 * status of the daemon. On the http thread. */
#ifndef DET_API_LIVE_EVENTS_H
#define DET_API_LIVE_EVENTS_H

#include <detent/driver/loop.h>

#include "api/stream_feed.h"

struct request_stream;

/* A subscriber. */
struct api_listener {
    struct det_list node; /* in no list before it has joined */
    struct api_feed *feed;
    bool wants_tasks;
    bool is_behind;  /* the last status did not fit */
    uint64_t missed; /* task events that did not fit */
};

struct api_news {
    struct api *api;
    struct det_list listeners;
    size_t task_count;            /* listeners that want task events */
    size_t room;                  /* limit of the unread bytes of a listener */
    struct request_stream *tasks; /* no listener wants them, or it has ended */
    struct det_post status_post;  /* asks the daemon for its status */
    struct det_json_writer seen;
    bool is_looking;
    char *status; /* the status sent last; NULL: unknown */
};

void api_news_init(struct api_news *news, struct api *api, size_t room);
void api_news_join(struct api_news *news, struct api_listener *listener);
/* Does nothing for a listener that has not joined. */
void api_news_leave(struct api_news *news, struct api_listener *listener);
/* Call it periodically while there are listeners: asks for the status, and follows task events
 * again if that has ended. */
void api_news_refresh(struct api_news *news);
/* Stops following task events. */
void api_news_end(struct api_news *news);
void api_news_deinit(struct api_news *news);

#endif
