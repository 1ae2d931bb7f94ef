/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* live_events.h - what those who follow events are told beside the log: the events of tasks, and
 * what has become of `up` itself. On the http thread. */
#ifndef DET_API_LIVE_EVENTS_H
#define DET_API_LIVE_EVENTS_H

#include <detent/driver/loop.h>

#include "api/stream_feed.h"

struct stream;

/* One who is told. */
struct api_listener {
    struct det_list node; /* in no list, if it has not joined */
    struct api_feed *feed;
    bool wants_tasks;
    bool is_behind;  /* it had no room for how `up` is */
    uint64_t missed; /* events of tasks that it had no room for */
};

struct api_news {
    struct api *api;
    struct det_list listeners;
    size_t task_count;    /* those who want them */
    size_t room;          /* more than this waits for nobody */
    struct stream *tasks; /* NULL: nobody wants them, or it has ended */
    struct det_post look; /* how `up` is */
    struct det_json_writer seen;
    bool is_looking;
    char *status; /* as it was told last; NULL: it is not known yet */
};

void api_news_init(struct api_news *news, struct api *api, size_t room);
void api_news_join(struct api_news *news, struct api_listener *listener);
/* Harmless for one that has not joined. */
void api_news_leave(struct api_news *news, struct api_listener *listener);
/* From time to time while somebody listens: how `up` is, and what has ended begins again. */
void api_news_look(struct api_news *news);
/* Nobody is told any more. */
void api_news_end(struct api_news *news);
void api_news_deinit(struct api_news *news);

#endif
