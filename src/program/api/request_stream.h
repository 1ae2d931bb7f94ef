/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* request_stream.h - a request to the daemon with an answer in parts.
 *
 *     http thread                             daemon's loop
 *     request_stream_open ----------------->  run, with the request
 *     on_part <------------------------------  part, part, ...
 *     request_stream_cancel --------------->  its on_gone
 *     on_end, once, unless cancelled <-------  finished
 *
 * The producer checks the number of unread bytes and pauses; its loop never blocks. */
#ifndef DET_API_REQUEST_STREAM_H
#define DET_API_REQUEST_STREAM_H

#include "api/api.h"
#include "daemon/loop_request.h"

struct request_stream;

struct request_stream_options {
    struct api *api;
    void (*run)(struct up *up, struct up_request *request, void *arguments);
    void *arguments;             /* static, or in the arena; may receive results */
    struct det_arena arena_take; /* freed with the stream */
    /* Takes one part, as JSON. Returns the number of unread bytes, including this part. */
    size_t (*on_part)(void *user, const char *text, size_t size);
    void (*on_end)(void *user, const struct det_error *error); /* code 0: success */
    void *user;
};

/* On the http thread, like the others. NULL: no memory. */
struct request_stream *request_stream_open(const struct request_stream_options *options);
/* Cancels the request. No callback runs afterwards, not even on_end. */
void request_stream_cancel(struct request_stream *stream);
/* Reports that the reader has `unread` bytes left to read. */
void request_stream_drained(struct request_stream *stream, size_t unread);

#endif
