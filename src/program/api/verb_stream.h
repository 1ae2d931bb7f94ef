/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* verb_stream.h - a verb of `up` that goes on: its parts come to the http thread as they are made.
 *
 *     http thread                             loop of `up`
 *     stream_open ------------------------->  the verb, with the stream as its call
 *     on_part <-------------------------------  part, part, ...
 *     stream_cancel ----------------------->  its on_gone
 *     on_end, once, unless it was cancelled <-  finished
 *
 * What is not read yet slows the verb down, not the loop: it asks how much waits. */
#ifndef DET_API_VERB_STREAM_H
#define DET_API_VERB_STREAM_H

#include "api/api.h"
#include "daemon/daemon.h"

struct stream;

struct stream_options {
    struct api *api;
    const char *verb;       /* of up_verbs; stays */
    json_t *arguments_take; /* NULL: for want of memory */
    /* A part as JSON. Answers how much its reader has not read, with this. */
    size_t (*on_part)(void *user, const char *text, size_t size);
    void (*on_end)(void *user, const struct det_error *error); /* code 0: it came to its end */
    void *user;
};

/* On the http thread, as the others. NULL: no memory. */
struct stream *stream_open(const struct stream_options *options);
/* Nothing is told any more, not even the end. */
void stream_cancel(struct stream *stream);
/* Its reader has this much left to read. */
void stream_drained(struct stream *stream, size_t unread);

#endif
