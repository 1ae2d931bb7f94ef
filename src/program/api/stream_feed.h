/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stream_feed.h - Server-Sent Events to one client: the part that all streams share.
 *
 *     begin --> publish, publish, ... --> over: the client left, or the stream ended or was dropped
 *
 * Invariants
 *   1. At most `sse_subscribers` streams are open.
 *   2. An idle stream gets a comment every 15 seconds, so that a dead peer is detected.
 *   3. A stream is dropped within 5 seconds after its token is revoked or expires.
 *
 * Call everything on the http thread. */
#ifndef DET_API_STREAM_FEED_H
#define DET_API_STREAM_FEED_H

#include "api/api.h"

struct api_feed;

struct api_feed_ops {
    void (*drained)(struct api_feed *feed); /* all written data was sent */
    void (*over)(struct api_feed *feed);    /* called once; then the call is finished */
    void (*release)(struct api_feed *feed); /* before the call is finished; NULL: nothing to do */
};

struct api_feed {
    struct det_list node;
    const struct api_feed_ops *ops;
    struct api_call *call;
    struct http_exchange *exchange; /* NULL: the stream is over */
    const uint64_t *position;       /* position in the log, reported when dropped; NULL: none */
    bool is_catching;               /* a lane reads a page for it: the call is finished later */
};

void api_feeds_open(struct api *api);
/* Drops all streams, since the API is closing. */
void api_feeds_end(struct api *api);

/* Begins a stream; `feed` is in the arena of the call. False: finish the call, which has its
 * answer: too many streams, or a HEAD request. */
bool api_feed_begin(struct api_feed *feed, struct api_call *call, const struct api_feed_ops *ops);
/* Returns the number of unread bytes. */
size_t api_feed_waiting(const struct api_feed *feed);
/* Writes raw text. Returns a negative error if the client is gone or about to be closed. */
int api_feed_write(struct api_feed *feed, const char *text, size_t size);
/* Writes an event with a name and one line of JSON as its data. */
int api_feed_publish(struct api_feed *feed, const char *name, const char *data, size_t size);
/* Writes an event whose data is an object with one number, or null for UINT64_MAX:
 * {"position":7}. Allocates nothing. */
int api_feed_report_number(
    struct api_feed *feed, const char *name, const char *key, uint64_t number);
/* Clears `is_catching`. False: the stream was over, and is freed now. */
bool api_feed_page_done(struct api_feed *feed);
/* Ends the stream; over() has run when this returns. The stream is freed, unless `is_catching`:
 * then api_feed_page_done() frees it. The same holds for api_feed_drop(). */
void api_feed_end(struct api_feed *feed);
/* Sends `dropped` with a reason, and ends the stream. If the client is already gone, over() runs
 * later. Allocates nothing, since it also reports a lack of memory. */
void api_feed_drop(struct api_feed *feed, const char *why);

#endif
