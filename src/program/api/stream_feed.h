/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stream_feed.h - a client that is told what happens, as Server-Sent Events: what is the same for
 * all of them, whatever they are told.
 *
 *     begin --> tell, tell, ... --> over: its client went away, it has ended, or was dropped
 *
 * Invariants
 *   1. There are at most `sse_subscribers` of them.
 *   2. Who is told nothing gets a comment every 15 seconds, so that a peer that is dead is noticed.
 *   3. Whose token is revoked or expires is dropped within 5 seconds.
 *
 * All of it on the http thread. */
#ifndef DET_API_STREAM_FEED_H
#define DET_API_STREAM_FEED_H

#include "api/api.h"

struct api_feed;

struct api_feed_ops {
    void (*drained)(struct api_feed *feed); /* all that it was told is on its way */
    void (*over)(struct api_feed *feed);    /* the last thing, once; its call is to be finished */
};

struct api_feed {
    struct det_list node;
    const struct api_feed_ops *ops;
    struct api_call *call;
    struct http_exchange *exchange; /* NULL: it is over */
    const uint64_t *position;       /* in the log, for who is dropped; NULL: it is not told of it */
};

void api_feeds_open(struct api *api);
/* All are dropped: it stops. */
void api_feeds_end(struct api *api);

/* In the memory of the call. False: the call has its answer, and is to be finished: there are too
 * many, or it was only asked what the answer would be (HEAD). */
bool api_feed_begin(struct api_feed *feed, struct api_call *call, const struct api_feed_ops *ops);
/* How much waits to be read. */
size_t api_feed_waiting(const struct api_feed *feed);
/* The text as it is; less than 0: the client is gone, or as good as that. */
int api_feed_write(struct api_feed *feed, const char *text, size_t size);
/* An event by its name, with an object in one line as its data. */
int api_feed_tell(struct api_feed *feed, const char *name, const char *data, size_t size);
/* Nothing more comes. It is over() when this returns. */
void api_feed_end(struct api_feed *feed);
/* The same with a word; `why` needs no escapes. Of one whose client is gone already over() comes
 * later. */
void api_feed_drop(struct api_feed *feed, const char *why);

#endif
